"""Weights and tokens that other programs wrote: tiny GPT-2 and Llama models in safetensors and in the
format of llm.c, and token files, written here with numpy alone. gptpost converts the weights, gptbench
begins with them, and its first loss is that of PyTorch in float64, which reads the same arrays as
transformers defines the models. The tolerance is the oracle's (test/oracle/tolerance.py).

usage: published_test.py            Environment: GPTBENCH, GPTPOST
"""

import json
import os
import struct
import subprocess
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import tolerance  # noqa: E402

L, C, H, T, V = 2, 24, 4, 17, 61
LLAMA_KV, LLAMA_F, GPT_POSITIONS = 2, 40, 23
EPSILON, THETA = 1e-3, 100.0  # of a size that a wrong one shows
failures = []


def check(what, good, detail=""):
    print("%-6s %s %s" % ("ok" if good else "FAILED", what, detail))
    sys.stdout.flush()
    if not good:
        failures.append(what)


# ---- Files as others write them.

def bf16_bits(a):
    bits = np.ascontiguousarray(a, dtype="<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def stored(a, dtype):
    """Bytes of an array, and the values that they mean."""
    if dtype == "BF16":
        bits = bf16_bits(a)
        return bits.tobytes(), (bits.astype("<u4") << 16).view("<f4").reshape(a.shape)
    typed = a.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8"}[dtype])
    return typed.tobytes(), typed.astype(np.float64)


def write_safetensors(path, tensors, dtype="F32"):
    """Returns the values that were stored."""
    header, data, values = {"__metadata__": {"format": "pt"}}, b"", {}
    for name, a in tensors.items():
        of = "I64" if a.dtype == np.int64 else dtype
        raw, values[name] = stored(a, of)
        header[name] = {"dtype": of, "shape": list(a.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    return values


def read_safetensors(path):
    with open(path, "rb") as file:
        raw = file.read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, t in json.loads(raw[8:end]).items():
        if name == "__metadata__":
            continue
        begin, stop = t["data_offsets"]
        tensors[name] = (t["dtype"], tuple(t["shape"]), raw[end + begin:end + stop])
    return tensors


def write_tokens(path, ids, magic, version, dtype):
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, len(ids)
    with open(path, "wb") as file:
        file.write(header.tobytes() + np.asarray(ids).astype(dtype).tobytes())


def write_llmc(path, w, version):
    """The GPT-2 of `w`, under names of transformers, as train_gpt2.py of llm.c writes it."""
    padded = -(-V // 128) * 128
    header = np.zeros(256, "<i4")
    header[:8] = 20240326, version, GPT_POSITIONS, V, L, H, C, padded
    stack = lambda name, turn=False: np.stack(
        [w["h.%d.%s" % (l, name)].T if turn else w["h.%d.%s" % (l, name)] for l in range(L)])
    wte = np.concatenate([w["wte.weight"], np.zeros((padded - V, C), "f4")])
    arrays = [wte, w["wpe.weight"], stack("ln_1.weight"), stack("ln_1.bias"),
              stack("attn.c_attn.weight", True), stack("attn.c_attn.bias"),
              stack("attn.c_proj.weight", True), stack("attn.c_proj.bias"),
              stack("ln_2.weight"), stack("ln_2.bias"),
              stack("mlp.c_fc.weight", True), stack("mlp.c_fc.bias"),
              stack("mlp.c_proj.weight", True), stack("mlp.c_proj.bias"),
              w["ln_f.weight"], w["ln_f.bias"]]
    dtype = {3: "F32", 5: "BF16"}[version]
    with open(path, "wb") as file:
        file.write(header.tobytes() + b"".join(stored(a, dtype)[0] for a in arrays))


# ---- The models of transformers.

def gpt2_weights(rng):
    w = {"wte.weight": (V, C), "wpe.weight": (GPT_POSITIONS, C)}
    for l in range(L):
        h = "h.%d." % l
        w.update({h + "ln_1.weight": (C,), h + "ln_1.bias": (C,),
                  h + "attn.c_attn.weight": (C, 3 * C), h + "attn.c_attn.bias": (3 * C,),
                  h + "attn.c_proj.weight": (C, C), h + "attn.c_proj.bias": (C,),
                  h + "ln_2.weight": (C,), h + "ln_2.bias": (C,),
                  h + "mlp.c_fc.weight": (C, 4 * C), h + "mlp.c_fc.bias": (4 * C,),
                  h + "mlp.c_proj.weight": (4 * C, C), h + "mlp.c_proj.bias": (C,)})
    w.update({"ln_f.weight": (C,), "ln_f.bias": (C,)})
    return {name: rng.normal(0, 0.2, shape).astype("f4") for name, shape in w.items()}


def llama_weights(rng):
    D = C // H
    w = {"model.embed_tokens.weight": (V, C)}
    for l in range(L):
        h = "model.layers.%d." % l
        w.update({h + "input_layernorm.weight": (C,), h + "post_attention_layernorm.weight": (C,),
                  h + "self_attn.q_proj.weight": (C, C),
                  h + "self_attn.k_proj.weight": (LLAMA_KV * D, C),
                  h + "self_attn.v_proj.weight": (LLAMA_KV * D, C),
                  h + "self_attn.o_proj.weight": (C, C), h + "mlp.gate_proj.weight": (LLAMA_F, C),
                  h + "mlp.up_proj.weight": (LLAMA_F, C), h + "mlp.down_proj.weight": (C, LLAMA_F)})
    w.update({"model.norm.weight": (C,), "lm_head.weight": (V, C)})
    return {name: rng.normal(0, 0.2, shape).astype("f4") for name, shape in w.items()}


GPT2_CONFIG = {"model_type": "gpt2", "n_embd": C, "n_layer": L, "n_head": H,
               "n_positions": GPT_POSITIONS, "vocab_size": V, "layer_norm_epsilon": EPSILON,
               "activation_function": "gelu_new", "n_inner": None}
LLAMA_CONFIG = {"model_type": "llama", "num_attention_heads": H, "num_key_value_heads": LLAMA_KV,
                "max_position_embeddings": 64, "rms_norm_eps": EPSILON, "rope_theta": THETA,
                "hidden_act": "silu", "rope_scaling": None, "attention_bias": False,
                "tie_word_embeddings": False}


def attention(q, k, v):
    scores = q @ k.transpose(2, 3) / (q.shape[-1] ** 0.5)
    future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
    return mixed.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


def heads(x, n):
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def gpt2_logits(w, tokens):
    """modeling_gpt2.py: Conv1D computes x W + b; the head is the embedding."""
    norm = lambda x, n: F.layer_norm(x, (C,), w[n + ".weight"], w[n + ".bias"], EPSILON)
    conv = lambda x, n: x @ w[n + ".weight"] + w[n + ".bias"]
    x = w["wte.weight"][tokens] + w["wpe.weight"][:tokens.shape[1]]
    for l in range(L):
        h = "h.%d." % l
        q, k, v = (heads(t, H) for t in conv(norm(x, h + "ln_1"), h + "attn.c_attn").split(C, 2))
        x = x + conv(attention(q, k, v), h + "attn.c_proj")
        f = conv(norm(x, h + "ln_2"), h + "mlp.c_fc")
        gelu = 0.5 * f * (1 + torch.tanh((2 / np.pi) ** 0.5 * (f + 0.044715 * f ** 3)))
        x = x + conv(gelu, h + "mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def llama_logits(w, tokens):
    """modeling_llama.py: rotate_half pairs channels d and d + D/2."""
    D = C // H
    angle = torch.outer(torch.arange(tokens.shape[1], dtype=torch.float64),
                        THETA ** (-torch.arange(0, D, 2, dtype=torch.float64) / D))
    cos, sin = torch.cat([angle, angle], 1).cos(), torch.cat([angle, angle], 1).sin()
    half = lambda x: torch.cat([-x[..., D // 2:], x[..., :D // 2]], -1)
    turn = lambda x: x * cos + half(x) * sin
    norm = lambda x, n: w[n + ".weight"] * x * torch.rsqrt((x * x).mean(-1, True) + EPSILON)
    linear = lambda x, n: x @ w[n + ".weight"].T
    x = w["model.embed_tokens.weight"][tokens]
    for l in range(L):
        h = "model.layers.%d." % l
        n = norm(x, h + "input_layernorm")
        q, k, v = (heads(linear(n, h + "self_attn.%s_proj" % p), m)
                   for p, m in (("q", H), ("k", LLAMA_KV), ("v", LLAMA_KV)))
        k, v = (t.repeat_interleave(H // LLAMA_KV, 1) for t in (turn(k), v))
        x = x + linear(attention(turn(q), k, v), h + "self_attn.o_proj")
        n = norm(x, h + "post_attention_layernorm")
        gated = F.silu(linear(n, h + "mlp.gate_proj")) * linear(n, h + "mlp.up_proj")
        x = x + linear(gated, h + "mlp.down_proj")
    return linear(norm(x, "model.norm"), "lm_head")


def loss_of(logits, weights, sequences):
    w = {name: torch.tensor(np.asarray(a), dtype=torch.float64) for name, a in weights.items()}
    batch = torch.tensor(np.array(sequences), dtype=torch.int64)
    return float(F.cross_entropy(logits(w, batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()))


# ---- gptbench.

def run(arguments, status=0):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != status:
        sys.exit("%s\n%s\nexit status %d, expected %d" % (
            done.stdout, " ".join(arguments), done.returncode, status))
    return done.stdout


def convert(*arguments, status=0):
    return run([os.environ["GPTPOST"], "convert"] + list(arguments), status)


def deck_of(convert_text, name, tokens, batch):
    """A deck with the keys that `convert` printed, for a shorter sequence."""
    text = convert_text[convert_text.index("&run"):]
    text = text.replace("&run\n", "&run\n  name = '%s'\n  steps = 1\n  warmup_steps = 0\n" % name)
    lines = [line for line in text.split("\n") if "seq_length" not in line]
    text = "\n".join(lines).replace("&model\n", "&model\n  seq_length = %d\n" % T)
    text += "&batch\n  micro_batch_size = 2\n  global_batch_size = %d\n/\n" % batch
    text += "&data\n  source = 'tokens'\n  path = '%s'\n/\n" % tokens
    text += "&precision\n  compute = 'fp32'\n/\n"
    with open(name + ".in", "w") as file:
        file.write(text)
    return name + ".in"


def first_loss(deck, *overrides):
    directory = os.path.splitext(deck)[0] + "_out"
    run([os.environ["GPTBENCH"], deck, "run.verify=F", "output.peak_tflops=1",
         "output.directory=" + directory] + list(overrides))
    with h5py.File(os.path.join(directory, "result.h5"), "r") as result:
        return float(result["steps/loss"][0])


def check_loss(what, loss, expected, batch):
    deck = SimpleNamespace(L=L, C=C, F=4 * C, V=V, B=batch, T=T)
    allowed = tolerance.loss(deck, "fp32", 0)
    difference = abs(loss - expected) / expected
    check(what, difference <= allowed, "loss %.7f, PyTorch %.7f, difference %.1e of %.1e allowed"
          % (loss, expected, difference, allowed))


def model_directory(name, weights, config, dtype):
    os.makedirs(name, exist_ok=True)
    with open(name + "/config.json", "w") as file:
        json.dump(config, file)
    return write_safetensors(name + "/model.safetensors", weights, dtype)


def same_tensors(what, path, expected):
    found = read_safetensors(path)
    wrong = [name for name in set(found) | set(expected)
             if name not in found or name not in expected
             or found[name] != ("F32", expected[name].shape, expected[name].tobytes())]
    check(what, not wrong, str(sorted(wrong)[:3]) if wrong else "")


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(5)
    ids = rng.integers(0, V, 9 * T + 7)
    write_tokens("one.bin", ids, 20240520, 1, "<u2")
    sequences = [ids[s * T:s * T + T + 1] for s in range(4)]
    gpt2, llama = gpt2_weights(rng), llama_weights(rng)

    # GPT-2, the buffers and the prefix of some files included; f32, f16, bf16.
    extra = {"h.0.attn.bias": np.ones((1, 1, 4, 4), "f4"), "h.0.attn.masked_bias": np.float32([-1e4])}
    for dtype in ("F32", "F16", "BF16"):
        name = "gpt2_" + dtype.lower()
        values = model_directory(name, {**gpt2, **extra}, GPT2_CONFIG, dtype)
        text = convert(name, name + "_ck")
        deck = deck_of(text, name, "one.bin", 4)
        check_loss("GPT-2 " + dtype, first_loss(deck), loss_of(gpt2_logits, values, sequences), 4)
    expected = loss_of(gpt2_logits, gpt2, sequences)
    check_loss("GPT-2, padded vocabulary", first_loss("gpt2_f32.in", "model.vocab_multiple=16"),
               expected, 4)
    prefixed = {"transformer." + name: a for name, a in gpt2.items()}
    prefixed["lm_head.weight"] = gpt2["wte.weight"]
    model_directory("prefixed", prefixed, GPT2_CONFIG, "F32")
    convert("prefixed/model.safetensors", "prefixed.h5")
    check_loss("GPT-2 with its head", first_loss("gpt2_f32.in", "run.init_from=prefixed.h5"),
               expected, 4)

    # Llama with fewer key/value heads, in one file and in several, with a tied head.
    model_directory("llama", llama, LLAMA_CONFIG, "F32")
    deck = deck_of(convert("llama", "llama_ck"), "llama", "one.bin", 4)
    check_loss("Llama", first_loss(deck), loss_of(llama_logits, llama, sequences), 4)
    os.makedirs("sharded", exist_ok=True)
    names = list(llama)
    places = {}
    for i in range(3):
        file = "model-%05d-of-00003.safetensors" % (i + 1)
        write_safetensors("sharded/" + file, {n: llama[n] for n in names[i::3]})
        places.update({n: file for n in names[i::3]})
    for path, content in (("sharded/model.safetensors.index.json",
                           {"metadata": {"total_size": 1}, "weight_map": places}),
                          ("sharded/config.json", LLAMA_CONFIG)):
        with open(path, "w") as file:
            json.dump(content, file)
    convert("sharded", "sharded_ck")
    convert("sharded_ck", "sharded_back")
    same_tensors("sharded Llama, there and back", "sharded_back/model.safetensors", llama)
    convert("--shard-gib", "1e-5", "llama_ck", "resharded")
    index = json.load(open("resharded/model.safetensors.index.json"))
    check("several files", len(set(index["weight_map"].values())) > 2)
    convert("resharded", "resharded.h5")
    check_loss("Llama from several files", first_loss("llama.in", "run.init_from=resharded.h5"),
               loss_of(llama_logits, llama, sequences), 4)
    tied = {name: a for name, a in llama.items() if name != "lm_head.weight"}
    model_directory("tied", tied, {**LLAMA_CONFIG, "tie_word_embeddings": True}, "F32")
    text = convert("tied", "tied.h5")
    check("a tied head is said to be copied", "note: the head" in text)
    tied["lm_head.weight"] = tied["model.embed_tokens.weight"]
    check_loss("Llama with a tied head", first_loss("llama.in", "run.init_from=tied.h5"),
               loss_of(llama_logits, tied, sequences), 4)

    # There and back, bit by bit, through every format.
    convert("gpt2_f32", "back.h5")
    convert("back.h5", "back.bin")
    convert("back.bin", "again_ck", "model.layernorm_epsilon=%g" % EPSILON)  # llm.c knows 1e-5 alone
    convert("again_ck", "back/model.safetensors")
    same_tensors("GPT-2 through checkpoint and llm.c and back", "back/model.safetensors", gpt2)
    config = json.load(open("back/config.json"))
    check("config.json", all(config[k] == GPT2_CONFIG[k] for k in GPT2_CONFIG if GPT2_CONFIG[k]),
          str(config))
    for version, dtype in ((3, "f32"), (5, "bf16")):
        file = "llmc%d.bin" % version
        write_llmc(file, gpt2, version)
        convert("--type", dtype, "gpt2_f32", "ours.bin")
        check("llm.c, version %d: the same bytes" % version,
              open(file, "rb").read() == open("ours.bin", "rb").read())
        convert(file, "llmc.h5", "model.layernorm_epsilon=%g" % EPSILON)
        values = {name: stored(a, dtype.upper())[1] for name, a in gpt2.items()}
        check_loss("llm.c, version %d" % version,
                   first_loss("gpt2_f32.in", "run.init_from=llmc.h5"),
                   loss_of(gpt2_logits, values, sequences), 4)

    # A file that ends within a tensor.
    with open("gpt2_f32/model.safetensors", "rb") as file:
        cut = file.read()[:-1]
    with open("cut.safetensors", "wb") as file:
        file.write(cut)
    text = convert("cut.safetensors", "cut.h5", status=7)
    check("damage", "cut.safetensors" in text and "h.0.attn.masked_bias" in text
          and not os.path.exists("cut.h5"), text.strip())

    # Several token files, of both types; no sequence spans two, and what is left of each is not read.
    first, second = rng.integers(0, V, 2 * T + 5), rng.integers(0, V, 3 * T + 1)
    write_tokens("part_2.bin", second, 20240801, 7, "<u4")
    write_tokens("part_1.bin", first, 20240520, 1, "<u2")
    cut = lambda a: [a[s * T:s * T + T + 1] for s in range((len(a) - 1) // T)]
    six = cut(first) + cut(second)
    six.append(six[0])
    expected = loss_of(gpt2_logits, gpt2, six)
    for path in ("part_*.bin", "part_1.bin,part_2.bin"):
        check_loss("tokens of " + path, first_loss("gpt2_f32.in", "data.path=" + path,
                                                   "batch.global_batch_size=6"), expected, 6)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
