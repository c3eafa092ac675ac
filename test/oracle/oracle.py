"""The model families in plain PyTorch, as gptbench defines them (doc/models.md): an implementation that
shares nothing with the engine but the papers and this text.

  x = wte[token] (+ wpe[position], where positions are learned)
  each layer:  x += proj(attention(norm_1(x))),  x += mlp.proj(activation(mlp.fc(norm_2(x))))
  logits = norm_f(x) wte^T, or lm_head^T where the head is not tied, no bias; only the first vocab_size
  columns exist for the softmax
  loss = mean over the tokens of the global batch of the cross-entropy

            norm       positions          activation  biases     head
  gpt       LayerNorm  learned            GELU        yes        tied      Radford et al. 2019
  mpt       LayerNorm  learned or ALiBi   GELU        yes or no  tied      MosaicML llm-foundry
  llama     RMSNorm    rotary             SwiGLU      no         untied    arXiv:2302.13971
  bert      LayerNorm  learned            GELU        yes        masked    arXiv:1810.04805

BERT is not causal, adds wtt[segment] to the embedding, and its loss is the sum of two means:
  over the masked tokens, of the cross-entropy of logits LN(gelu(dense(norm_f(x)))) wte^T + mlm.bias
  over the sequences, of that of nsp(tanh(pooler(norm_f(x)[0]))) with two classes
Padding behind a sequence is no key of the attention and no target.

Linear weights are [out, in]; the rows of attn.qkv are q, k, v, heads contiguous inside each; several
query heads may read one key/value head. The rows of a gated mlp.fc are gate and value. The optimizer
is AdamW (decoupled weight decay, on matrices and embedding tables only) after clipping the global
gradient norm by the factor clip / norm where norm > clip.

Dropout acts on the sum of the embeddings, on the attention probabilities and on what each of the two
residual branches adds; whether an element is kept depends on its place in the global batch alone.
"""

import math

import torch
import torch.nn.functional as F

import philox

EMBEDDING, ATTENTION, PROJ, MLP = range(4)  # sites of dropout (src/plan/stage_builder.h)


def dropout(deck, x, step, layer, site, first_element):
    """x with elements dropped; first_element is the global index of x[0, ..., 0]. layer -1: before
    the first."""
    rate = deck.model["dropout"]
    if rate == 0:
        return x
    seed = (deck.run["seed"] + step * 0x9E3779B97F4A7C15) % 2**64
    instance = (layer + 1) * 2**3 + site
    factors = philox.dropout_factors(rate, seed, instance, first_element, x.numel())
    return x * torch.from_numpy(factors).to(x.dtype).view(x.shape)


def norm(deck, x, w, name):
    epsilon = deck.model["layernorm_epsilon"]
    if deck.family == "llama":
        return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + epsilon) * w[name + ".weight"]
    return F.layer_norm(x, (deck.C,), w[name + ".weight"], w.get(name + ".bias"), epsilon)


def linear(x, w, name):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def alibi_slopes(H):
    """Press et al., arXiv:2108.12409: the geometric sequence of the power of two at or above H; where H
    is not one, every other slope first, as MPT has it."""
    n = 1 << (H - 1).bit_length()
    slopes = [2.0**(-8.0 * (h + 1) / n) for h in range(n)]
    return slopes if n == H else (slopes[1::2] + slopes[::2])[:H]


def rotate(x, theta):
    """x [B, heads, T, D]: channels d and d + D/2 of position t turn by t theta^(-2d/D) (Su et al.,
    arXiv:2104.09864)."""
    T, D = x.shape[2:]
    frequency = theta**(-2.0 * torch.arange(D // 2, dtype=torch.float64) / D)
    turn = torch.polar(torch.ones(T, D // 2, dtype=torch.float64),
                       torch.arange(T, dtype=torch.float64)[:, None] * frequency)
    turned = torch.complex(x[..., :D // 2], x[..., D // 2:]) * turn
    return torch.cat([turned.real, turned.imag], dim=-1)


def activation(deck, f):
    if deck.family == "llama":
        gate, value = f.chunk(2, dim=-1)
        return gate * torch.sigmoid(gate) * value
    return 0.5 * f * (1 + torch.tanh(math.sqrt(2 / math.pi) * (f + 0.044715 * f**3)))


def attention(deck, n, w, h, drop, lengths=None):
    """n [B, T, C]; drop acts on the probabilities [B, H, T, T]; keys from lengths [B] on are padding."""
    B, T, _ = n.shape
    H, H_kv, D = deck.H, deck.H_kv, deck.C // deck.H
    q, k, v = linear(n, w, h + "attn.qkv").split([H * D, H_kv * D, H_kv * D], dim=2)
    q = q.view(B, T, H, D).transpose(1, 2)
    k, v = (t.view(B, T, H_kv, D).transpose(1, 2) for t in (k, v))
    if deck.positions == "rotary":
        q, k = (rotate(t, deck.model["rotary_theta"]) for t in (q, k))
    k, v = (t.repeat_interleave(H // H_kv, dim=1) for t in (k, v))
    scores = q @ k.transpose(2, 3) / math.sqrt(D)
    if deck.positions == "alibi":
        position = torch.arange(T, dtype=torch.float64)
        distance = (position[:, None] - position[None, :]).abs()
        scores = scores - torch.tensor(alibi_slopes(H), dtype=torch.float64)[:, None, None] * distance
    if deck.family != "bert":
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    if lengths is not None:
        padding = torch.arange(T)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(padding[:, None, None, :], float("-inf"))
    probabilities = scores.softmax(dim=3)
    return (drop(probabilities) @ v).transpose(1, 2).reshape(B, T, H * D)


def transformer(deck, x, w, drop, lengths=None):
    """The layers and the final norm; drop(x, layer, site)."""
    x = drop(x, -1, EMBEDDING)
    for layer in range(deck.L):
        h = "h.%d." % layer
        attended = attention(deck, norm(deck, x, w, h + "ln_1"), w, h,
                             lambda p: drop(p, layer, ATTENTION), lengths)
        x = x + drop(linear(attended, w, h + "attn.proj"), layer, PROJ)
        f = linear(norm(deck, x, w, h + "ln_2"), w, h + "mlp.fc")
        x = x + drop(linear(activation(deck, f), w, h + "mlp.proj"), layer, MLP)
    return norm(deck, x, w, "ln_f")


def token_loss(deck, x, w, targets, step, bias=None):
    """Mean of the cross-entropy over the targets of the global batch, the share of x [B, T, C]; rows
    whose target is negative have no part."""
    table = w.get("lm_head.weight", w["wte"])
    logits = F.linear(x, table, bias)[..., :deck.V_valid].flatten(0, 1)
    losses = F.cross_entropy(logits, targets.flatten(), ignore_index=-1, reduction="sum")
    return losses / deck.targets(step)


def sentence_loss(deck, x, w, labels):
    """Mean over the sequences of the global batch, the share of x [B, T, C]."""
    pooled = torch.tanh(linear(x[:, 0], w, "pooler"))
    return F.cross_entropy(linear(pooled, w, "nsp"), labels, reduction="sum") / deck.B


def forward_loss(deck, w, samples, step=0, first=0):
    """The share of some samples in the loss of the global batch; w: {name: tensor}. `first` is the
    place of the first of them in the batch of `step`."""
    tokens = samples["tokens"]
    drop = lambda x, layer, site: dropout(deck, x, step, layer, site, first * x[0].numel())
    x = w["wte"][tokens]
    if deck.positions == "learned":
        x = x + w["wpe"][:tokens.shape[1]]
    if deck.family == "bert":
        x = x + w["wtt"][samples["types"]]
    x = transformer(deck, x, w, drop, samples.get("lengths"))
    if deck.family != "bert":
        return token_loss(deck, x, w, samples["targets"], step)
    y = activation(deck, linear(x, w, "mlm.dense"))
    y = norm(deck, y, w, "mlm.ln")
    return (token_loss(deck, y, w, samples["targets"], step, w["mlm.bias"])
            + sentence_loss(deck, x, w, samples["labels"]))


class AdamW:
    def __init__(self, options, w):
        self.o = options
        self.t = 0
        self.m = {name: torch.zeros_like(p) for name, p in w.items()}
        self.v = {name: torch.zeros_like(p) for name, p in w.items()}

    def step(self, w, gradients):
        o = self.o
        self.t += 1
        for name, p in w.items():
            g, m, v = gradients[name], self.m[name], self.v[name]
            m.mul_(o["beta1"]).add_((1 - o["beta1"]) * g)
            v.mul_(o["beta2"]).add_((1 - o["beta2"]) * g * g)
            update = (m / (1 - o["beta1"]**self.t)) / (
                torch.sqrt(v / (1 - o["beta2"]**self.t)) + o["epsilon"])
            if p.dim() == 2:
                update = update + o["weight_decay"] * p
            p -= o["lr"] * update


def batch(deck, step):
    """The samples of a step: {name: tensor [B, ...]}."""
    samples = [deck.sample(step * deck.B + b) for b in range(deck.B)]
    return {name: torch.stack([torch.as_tensor(sample[name]) for sample in samples])
            for name in samples[0]}


def loss_and_gradients(deck, w, step):
    """Loss of the global batch and its gradients, a micro-batch at a time."""
    parameters = {name: p.detach().requires_grad_(True) for name, p in w.items()}
    samples = batch(deck, step)
    micro = deck.batch["micro_batch_size"]
    loss = 0.0
    for b in range(0, deck.B, micro):
        some = {name: values[b:b + micro] for name, values in samples.items()}
        part = forward_loss(deck, parameters, some, step, b)
        part.backward()
        loss += float(part.detach())
    return loss, {name: p.grad for name, p in parameters.items()}


def train(deck, weights, dtype=torch.float64, steps=None):
    """Trains from `weights` ({name: array}). Returns losses, gradient norms (before clipping), the
    gradients of the first step and the final weights."""
    w = {name: torch.tensor(value, dtype=dtype) for name, value in weights.items()}
    optimizer = AdamW(deck.optimizer, w)
    losses, norms, first = [], [], None
    for step in range(deck.run["steps"] if steps is None else steps):
        loss, gradients = loss_and_gradients(deck, w, step)
        if first is None:
            first = {name: g.clone() for name, g in gradients.items()}
        norm = math.sqrt(sum(float((g.double()**2).sum()) for g in gradients.values()))
        clip = deck.optimizer["clip"]
        if clip > 0 and norm > clip:
            gradients = {name: g * (clip / norm) for name, g in gradients.items()}
        optimizer.step(w, gradients)
        losses.append(loss)
        norms.append(norm)
    return losses, norms, first, w
