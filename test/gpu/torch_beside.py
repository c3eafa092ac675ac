#!/usr/bin/env python3
"""torch_beside.py LAYERS HIDDEN HEADS SEQUENCE BATCH: what PyTorch reaches on the same model as a deck.

A GPT-2 (biases, learned positions, tied head, vocabulary 50304) in bf16 autocast with its fused
attention, AdamW fused, torch.compile where this PyTorch has it; synthetic tokens. Prints one line
TORCH tokens_per_s=... mfu=...; the model FLOPs are those of the convention mpt (doc/performance.md),
the peak that of H100 and H200. Status 77, with the reason, where there is no PyTorch 2 or no GPU.
"""
import statistics
import sys
import time

VOCABULARY, PEAK, STEPS, WARMUP = 50304, 989.5e12, 12, 4


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    skip(str(error))
if not hasattr(functional, "scaled_dot_product_attention"):
    skip("PyTorch " + torch.__version__ + " has no fused attention")


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, length, hidden = x.shape
        qkv = self.qkv(self.norm_1(x)).view(batch, length, 3, self.heads, hidden // self.heads)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(out.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, hidden), nn.Embedding(length, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, VOCABULARY).float(), targets.view(-1))


def main():
    layers, hidden, heads, length, batch = (int(word) for word in sys.argv[1:6])
    if not torch.cuda.is_available():
        skip("PyTorch " + torch.__version__ + " sees no GPU")
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = Gpt(layers, hidden, heads, length).cuda()
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    compiled = torch.compile(model) if hasattr(torch, "compile") else model
    tokens = torch.randint(0, VOCABULARY, (batch, length + 1), device="cuda")
    times = []
    for step in range(STEPS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        torch.cuda.synchronize()
        if step >= WARMUP:
            times.append(time.perf_counter() - start)
    rate = batch * length / statistics.median(times)
    flops = rate * (6 * parameters + 12 * layers * hidden * length)
    print(f"TORCH version={torch.__version__} params={parameters} tokens_per_s={rate:.0f} "
          f"model_tflops={flops / 1e12:.1f} mfu={flops / PEAK:.3f} loss={loss.item():.4f} "
          f"peak_gib={torch.cuda.max_memory_allocated() / 2**30:.1f}")


if __name__ == "__main__":
    main()
