"""What the oracle must know of a deck, from its text alone: sizes, tokens and initial weights. It
reads plain decks only (one `key = value` a line, values that are numbers or quoted strings), which
is how those of test/oracle/decks are written."""

import os

import numpy as np

import philox

# Defaults that the decks here rely on (src/deck/config.h).
DEFAULTS = {
    "run": {"seed": 1, "steps": 10},
    "model": {"family": "gpt", "num_kv_heads": 0, "ffn_hidden_size": 0, "vocab_multiple": 1,
              "position_embedding": "auto", "rotary_theta": 10000.0, "no_bias": False,
              "dropout": 0.0, "init_std": 0.02, "layernorm_epsilon": 1e-5},
    "batch": {"micro_batch_size": 1, "global_batch_size": 0},
    "optimizer": {"lr": 6e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1,
                  "clip": 1.0},
    "data": {"source": "synthetic", "path": "", "short_seq_prob": 0.0},
}


def _value(text):
    text = text.strip().rstrip(",").strip()
    if text[0] in "'\"":
        return text[1:-1]
    if text.lower() in (".true.", ".false."):
        return text.lower() == ".true."
    try:
        return int(text)
    except ValueError:
        return float(text.lower().replace("d", "e"))


def masked_tokens(length):
    """Targets of a sequence of BERT: 15%, rounded, at least one."""
    return max(1, (3 * length + 10) // 20)


class Deck:
    """Groups as dictionaries (deck.model["hidden_size"]) and the sizes L, C, H, F, T, V."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        groups = {group: dict(keys) for group, keys in DEFAULTS.items()}
        group = None
        with open(path) as file:
            lines = file.readlines()
        for line in lines:
            line = line.split("!")[0].strip()
            if line.startswith("&"):
                group = groups.setdefault(line[1:].lower(), {})
            elif "=" in line:
                key, value = line.split("=", 1)
                group[key.strip().lower()] = _value(value)
        self.__dict__.update(groups)
        model = self.model
        self.L, self.C, self.H = (
            model[k] for k in ("num_layers", "hidden_size", "num_attention_heads"))
        self.H_kv = model["num_kv_heads"] or self.H
        self.family = model["family"]
        self.biases = self.family != "llama" and not model["no_bias"]
        self.positions = model["position_embedding"]
        if self.positions == "auto":
            self.positions = "rotary" if self.family == "llama" else "learned"
        self.F = model["ffn_hidden_size"]
        if self.F == 0:
            third = -(-8 * self.C // 3)
            self.F = -(-third // 256) * 256 if self.family == "llama" else 4 * self.C
        self.T, self.V_valid = model["seq_length"], model["vocab_size"]
        self.V = -(-self.V_valid // model["vocab_multiple"]) * model["vocab_multiple"]
        self.B = self.batch["global_batch_size"]
        self.directory = os.path.dirname(os.path.abspath(path))

    def sequence(self, s):
        """The T + 1 tokens of global sequence s (src/data)."""
        if self.data["source"] == "synthetic":
            return philox.markov_tokens(self.run["seed"], s, self.T, self.V_valid)
        if self.data["source"] == "uniform":
            return philox.uniform_tokens(self.run["seed"], s * self.T, self.T + 1, self.V_valid)
        stream = self._file_tokens()
        begin = s % ((len(stream) - 1) // self.T) * self.T
        return stream[begin:begin + self.T + 1]

    def length(self, s):
        """Tokens of sequence s, behind which it is padded (src/plan/lengths.h)."""
        words = philox.random_words(self.run["seed"], philox.STREAM_MASKING, 1, 2 * s, 2)
        if philox.uniform(words)[0] >= self.data["short_seq_prob"]:
            return self.T
        return 5 + (int(words[1]) * (self.T - 4) >> 32)

    def targets(self, step):
        """Rows of the global batch that have a target."""
        if self.family != "bert":
            return self.B * self.T
        return sum(masked_tokens(self.length(step * self.B + b)) for b in range(self.B))

    def sample(self, s):
        """What sequence s trains on: tokens and targets [T]; of BERT segments [T], length and label
        too."""
        if self.family == "bert":
            return self._sentence_pair(s)
        sequence = self.sequence(s)
        return {"tokens": sequence[:-1], "targets": sequence[1:]}

    def _sentence_pair(self, s):
        """Two segments with masked tokens (src/data/sentence_pairs.h)."""
        T, length = self.T, self.length(s)
        sep, cls, mask = self.V_valid - 3, self.V_valid - 2, self.V_valid - 1
        words = philox.random_words(self.run["seed"], philox.STREAM_MASKING, 0, s * (3 + 3 * T),
                                    3 + 3 * T)
        below = lambda number, bound: int(words[number]) * bound >> 32
        a = 1 + below(0, length - 4)
        label = int(words[1]) >> 31
        first = self.sequence(s)
        second = self.sequence(s + 1 + below(2, 65536)) if label else first
        tokens = np.concatenate([[cls], first[:a], [sep], second[a:length - 3], [sep],
                                 np.zeros(T - length, dtype=np.int64)])
        types = np.repeat([0, 1, 0], [a + 2, length - a - 2, T - length])
        targets = np.full(T, -1, dtype=np.int64)
        places = [t for t in range(1, length - 1) if t != a + 1]
        for i in range(masked_tokens(length)):
            drawn = i + below(3 + i, len(places) - i)
            places[i], places[drawn] = places[drawn], places[i]
            at = places[i]
            targets[at] = tokens[at]
            tenth = below(3 + T + i, 10)
            if tenth < 8:
                tokens[at] = mask
            elif tenth == 8:
                tokens[at] = below(3 + 2 * T + i, self.V_valid - 3)
        return {"tokens": tokens, "targets": targets, "types": types, "labels": label,
                "lengths": length}

    def data_path(self):
        """The data file; relative names lie beside the deck."""
        return os.path.join(self.directory, self.data["path"])

    def _file_tokens(self):
        path = self.data_path()
        if self.data["source"] == "text":
            return np.fromfile(path, dtype=np.uint8).astype(np.int64)
        if self.data["source"] == "tokens":
            header = np.fromfile(path, dtype="<i4", count=256)
            assert header[0] == 20240520 and header[1] == 1, path
            return np.fromfile(path, dtype="<u2", offset=1024).astype(np.int64)
        raise ValueError("the oracle does not read data.source = " + self.data["source"])

    def tensor_table(self):
        """[(name, shape, kind, std)] in canonical order (src/plan/model.cpp); kind is normal, ones
        or zeros. The place in the list is the tensor's random instance."""
        C, F, D, std = self.C, self.F, self.C // self.H, self.model["init_std"]
        residual = std / np.sqrt(2.0 * self.L)
        qkv, fc = (self.H + 2 * self.H_kv) * D, 2 * F if self.family == "llama" else F
        matrix = lambda name, rows, columns, s=std: (name + ".weight", (rows, columns), "normal", s)
        bias = lambda name, size: (name + ".bias", (size,), "zeros", 0)
        norm = lambda name: [(name + ".weight", (C,), "ones", 0), bias(name, C)]
        table = [("wte", (self.V, C), "normal", std)]
        if self.positions == "learned":
            table += [("wpe", (self.T, C), "normal", std)]
        if self.family == "bert":
            table += [("wtt", (2, C), "normal", std)]
        for layer in range(self.L):
            h = "h.%d." % layer
            table += norm(h + "ln_1")
            table += [matrix(h + "attn.qkv", qkv, C), bias(h + "attn.qkv", qkv),
                      matrix(h + "attn.proj", C, C, residual), bias(h + "attn.proj", C)]
            table += norm(h + "ln_2")
            table += [matrix(h + "mlp.fc", fc, C), bias(h + "mlp.fc", fc),
                      matrix(h + "mlp.proj", C, F, residual), bias(h + "mlp.proj", C)]
        table += norm("ln_f")
        if self.family == "llama":
            table += [matrix("lm_head", self.V, C)]
        if self.family == "bert":
            table += [matrix("mlm.dense", C, C), bias("mlm.dense", C)]
            table += norm("mlm.ln")
            table += [("mlm.bias", (self.V,), "zeros", 0), matrix("pooler", C, C),
                      bias("pooler", C), matrix("nsp", 2, C), bias("nsp", 2)]
        return [row for row in table if self.biases or not row[0].endswith(".bias")]

    def initial_weights(self):
        """{name: float32 array}: the bits that the engine starts from."""
        weights = {}
        for instance, (name, shape, kind, std) in enumerate(self.tensor_table()):
            count = int(np.prod(shape))
            if kind == "normal":
                values = philox.normal(count, self.run["seed"], philox.STREAM_WEIGHTS, instance, std)
            else:
                values = np.full(count, 1 if kind == "ones" else 0, dtype=np.float32)
            weights[name] = values.reshape(shape)
        return weights
