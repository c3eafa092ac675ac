"""Writes golden/<deck>.csv: loss and gradient norm of every step, and of each gradient of the first
step its norm and its projection on fixed numbers (which sees permutations and signs), computed by
PyTorch in float64 from weights and tokens that numpy generates (philox.py). gptbench has no part in it.

usage: make_golden.py [--check]      --check: compares with the files instead of writing them
"""

import os
import sys

import numpy as np
import torch

import oracle
from deck import Deck

HERE = os.path.dirname(os.path.abspath(__file__))
DECKS = ("plain", "accumulate", "dropout", "text", "mpt", "mpt_alibi", "llama", "bert", "bert_padded")


def projection(g):
    """Sum of g[i] p(i), i row-major, p(i) = (7919 i mod 1009) / 1009 - 1/2."""
    i = np.arange(g.size, dtype=np.int64)
    return float(np.dot(g.reshape(-1), (7919 * i % 1009) / 1009.0 - 0.5))


def golden_rows(deck):
    losses, norms, gradients, _ = oracle.train(deck, deck.initial_weights())
    rows = [("loss", str(step), value, 0.0) for step, value in enumerate(losses)]
    rows += [("grad_norm", str(step), value, 0.0) for step, value in enumerate(norms)]
    rows += [("gradient", name, float(g.norm()), projection(g.numpy()))
             for name, g in gradients.items()]
    return rows


def main(check):
    torch.set_num_threads(1)
    for name in DECKS:
        rows = golden_rows(Deck(os.path.join(HERE, "decks", name + ".in")))
        path = os.path.join(HERE, "golden", name + ".csv")
        if not check:
            with open(path, "w") as file:
                file.write("# decks/%s.in in float64, made by make_golden.py (PyTorch)\n" % name)
                file.write("quantity,name,value,projection\n")
                for row in rows:
                    file.write("%s,%s,%.17g,%.17g\n" % row)
            continue
        with open(path) as file:
            lines = file.read().splitlines()[2:]
        if len(lines) != len(rows):
            sys.exit("%s: %d rows, PyTorch gives %d" % (path, len(lines), len(rows)))
        for line, (quantity, key, value, projected) in zip(lines, rows):
            found = line.split(",")
            # Another PyTorch sums in another order: 1e-12 is far above that and far below any error.
            if found[:2] != [quantity, key] or not np.allclose(
                    [float(x) for x in found[2:]], [value, projected], rtol=1e-12, atol=1e-12):
                sys.exit("%s: '%s', PyTorch gives %.17g, %.17g" % (path, line, value, projected))
        print("ok     %s" % path)


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
