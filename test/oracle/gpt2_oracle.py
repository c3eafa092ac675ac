"""The GPT-2 family in plain PyTorch, as gptbench defines it: an implementation that shares nothing
with the engine but the paper (Radford et al. 2019) and this text.

  x = wte[token] + wpe[position]
  each layer:  x += proj(attention(LN1(x))),  x += mlp.proj(gelu(mlp.fc(LN2(x))))
  logits = LN(x) wte^T, no bias; only the first vocab_size columns exist for the softmax
  loss = mean over the tokens of the global batch of the cross-entropy

Linear weights are [out, in]; the rows of attn.qkv are q, k, v, heads contiguous inside each. The
optimizer is AdamW (decoupled weight decay, on matrices and embedding tables only) after clipping the
global gradient norm by the factor clip / norm where norm > clip.

Dropout acts on the sum of the embeddings, on the attention probabilities and on what each of the two
residual branches adds; whether an element is kept depends on its place in the global batch alone.
"""

import math

import torch
import torch.nn.functional as F

import philox

EMBEDDING, ATTENTION, PROJ, MLP = range(4)  # sites of dropout (src/plan/programs.h)


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


def forward_loss(deck, w, tokens, targets, step=0, first=0):
    """Sum (not mean) of the cross-entropy over tokens [B, T]; w: {name: tensor}. `first` is the
    place of the first sequence in the global batch of `step`."""
    B, T = tokens.shape
    C, H = deck.C, deck.H
    D = C // H
    epsilon = deck.model["layernorm_epsilon"]
    drop = lambda x, layer, site: dropout(deck, x, step, layer, site, first * x[0].numel())
    x = drop(w["wte"][tokens] + w["wpe"][:T], -1, EMBEDDING)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    for layer in range(deck.L):
        p = lambda name: w["h.%d.%s" % (layer, name)]
        n = F.layer_norm(x, (C,), p("ln_1.weight"), p("ln_1.bias"), epsilon)
        q, k, v = F.linear(n, p("attn.qkv.weight"), p("attn.qkv.bias")).split(C, dim=2)
        q, k, v = (t.view(B, T, H, D).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(D)
        probabilities = scores.masked_fill(future, float("-inf")).softmax(dim=3)
        attention = drop(probabilities, layer, ATTENTION) @ v
        attention = attention.transpose(1, 2).reshape(B, T, C)
        branch = F.linear(attention, p("attn.proj.weight"), p("attn.proj.bias"))
        x = x + drop(branch, layer, PROJ)
        n = F.layer_norm(x, (C,), p("ln_2.weight"), p("ln_2.bias"), epsilon)
        f = F.linear(n, p("mlp.fc.weight"), p("mlp.fc.bias"))
        g = 0.5 * f * (1 + torch.tanh(math.sqrt(2 / math.pi) * (f + 0.044715 * f**3)))
        x = x + drop(F.linear(g, p("mlp.proj.weight"), p("mlp.proj.bias")), layer, MLP)
    x = F.layer_norm(x, (C,), w["ln_f.weight"], w["ln_f.bias"], epsilon)
    logits = F.linear(x, w["wte"])[..., :deck.V_valid]
    return F.cross_entropy(logits.reshape(B * T, -1), targets.reshape(-1), reduction="sum")


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
    """tokens, targets [B, T] of a step."""
    rows = torch.stack([torch.from_numpy(deck.sequence(step * deck.B + b)) for b in range(deck.B)])
    return rows[:, :-1], rows[:, 1:]


def loss_and_gradients(deck, w, step):
    """Mean loss of the global batch and its gradients, a micro-batch at a time."""
    parameters = {name: p.detach().requires_grad_(True) for name, p in w.items()}
    tokens, targets = batch(deck, step)
    micro = deck.batch["micro_batch_size"]
    loss = 0.0
    for b in range(0, deck.B, micro):
        part = forward_loss(deck, parameters, tokens[b:b + micro], targets[b:b + micro], step, b)
        part = part / tokens.numel()
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
