"""A training step of GPT-2 in PyTorch, the plain way: what a user would otherwise run.

    pytorch_step.py [--layers L] [--hidden C] [--heads H] [--vocab V] [--length T] [--batch B]
                    [--accumulate N] [--compute fp32|bf16] [--threads N] [--steps N]
                    [--device cpu|cuda] [--compile]

Trains on random tokens: forward, cross-entropy, backward, of N micro-batches of B sequences per step,
and AdamW (on a GPU the fused one). bf16 is autocast. Attention is torch's fused one where the version
has it (flash or cuDNN on a GPU), else the product with a mask. Prints one line:

    pytorch version=2.3.0 compute=fp32 tokens_per_s=106.1 step_s=38.6 peak_mib=10812 loss=10.97

tokens_per_s is of the median of the timed steps (the first is not timed); peak_mib is the process's
high-water mark, or on a GPU that of the allocator.
"""

import argparse
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, hidden, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.proj = nn.Linear(hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)
        self.gelu = Gelu()
        if not hasattr(F, "scaled_dot_product_attention"):
            mask = torch.full((length, length), float("-inf")).triu(1)
            self.register_buffer("mask", mask, persistent=False)

    def attention(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) * (q.shape[3] ** -0.5) + self.mask
            y = torch.softmax(scores, 3) @ v
        return self.proj(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.gelu(self.up(self.norm2(x))))


class Gelu(nn.Module):
    """tanh approximation, by the fused operator where the version has it."""

    def forward(self, x):
        try:
            return F.gelu(x, approximate="tanh")
        except TypeError:
            return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


class Gpt2(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.tokens = nn.Embedding(args.vocab, args.hidden)
        self.positions = nn.Embedding(args.length, args.hidden)
        self.blocks = nn.ModuleList(
            Block(args.hidden, args.heads, args.length) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.hidden)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)  # tied head
        return F.cross_entropy(logits.float().view(-1, logits.shape[2]), targets.view(-1))


def main():
    parser = argparse.ArgumentParser()
    for name, default in [("layers", 12), ("hidden", 768), ("heads", 12), ("vocab", 50304),
                          ("length", 1024), ("batch", 4), ("accumulate", 1), ("threads", 0), ("steps", 2)]:
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--compute", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    if args.threads > 0:
        torch.set_num_threads(args.threads)

    torch.manual_seed(1)
    device = torch.device(args.device)
    model = Gpt2(args).to(device)
    fused = {"fused": True} if args.device == "cuda" else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)
    step_model = torch.compile(model) if args.compile else model
    tokens = torch.randint(args.vocab, (args.batch, args.length + 1), device=device)
    times = []
    for _ in range(1 + args.steps):
        start = time.perf_counter()
        for _ in range(args.accumulate):
            with torch.autocast(args.device, dtype=torch.bfloat16, enabled=args.compute == "bf16"):
                loss = step_model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
            (loss / args.accumulate).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()  # waits for the device
        times.append(time.perf_counter() - start)
    step_s = statistics.median(times[1:])
    peak = (torch.cuda.max_memory_allocated() if args.device == "cuda" else
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    print(f"pytorch version={torch.__version__} compute={args.compute} "
          f"tokens_per_s={args.accumulate * args.batch * args.length / step_s:.6g} step_s={step_s:.6g} "
          f"peak_mib={peak / 2**20:.0f} loss={value:.4f}")


if __name__ == "__main__":
    main()
