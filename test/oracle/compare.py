"""Trains small models with gptbench and with PyTorch in float64 and compares loss, gradient norm,
initial weights, gradients and final weights, tensor by tensor.

usage: compare.py [CASE ...]        CASE is deck:device:compute:ranks, for example text:host:bf16:2
       compare.py --show CASE       the same, every tensor printed

Environment: GPTBENCH (the program), GPTBENCH_LAUNCH (what starts it on several ranks).
"""

import os
import shlex
import subprocess
import sys

import h5py
import numpy as np
import torch

import make_golden
import oracle
import tolerance
from deck import Deck

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = ["%s:%s" % (deck, how) for deck in make_golden.DECKS
         for how in ("ref:fp64:1", "ref:fp32:1", "host:fp32:1", "host:bf16:1")]
CASES += ["accumulate:ref:fp64:2", "accumulate:host:fp32:2", "dropout:host:fp32:2",
          "plain:host:fp16:1", "text:host:bf16:2", "llama:host:fp32:2", "mpt:ref:fp64:2",
          "bert:host:fp32:2", "bert_padded:host:fp32:2"]


def run_gptbench(deck, device, compute, ranks, directory):
    """Starts gptbench on the deck; returns loss, gradient norm and {group: {tensor: array}}."""
    arguments = [os.environ["GPTBENCH"], deck.path, "run.device=" + device, "run.verify=F",
                 "precision.compute=" + compute, "output.dump=weights",
                 "output.peak_tflops=1", "output.directory=" + directory]
    if deck.data["path"]:
        arguments.append("data.path=" + deck.data_path())
    if ranks > 1:
        arguments = shlex.split(os.environ["GPTBENCH_LAUNCH"]) + [str(ranks)] + arguments
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit("%s\n%s\nexit status %d" % (done.stdout, " ".join(arguments), done.returncode))
    with h5py.File(os.path.join(directory, "result.h5"), "r") as result:
        loss, norm = result["steps/loss"][:], result["steps/grad_norm"][:]
    with h5py.File(os.path.join(directory, "dump.h5"), "r") as dump:
        tensors = {group: {name: dump[group][name][:].astype(np.float64) for name in dump[group]}
                   for group in ("weights_initial", "gradients", "weights_final")}
    return loss, norm, tensors


class Report:
    """Differences of one case; the worst of each kind is printed, or all."""

    def __init__(self, case, show):
        self.case, self.show, self.worst, self.failed = case, show, {}, False

    def check(self, kind, name, value, allowed):
        bad = not value <= allowed  # NaN is bad
        self.failed |= bad
        if bad or self.show:
            print("    %-16s %-24s %9.2e  allowed %9.2e%s" % (
                kind, name, value, allowed, "  FAILED" if bad else ""))
        if value / allowed >= self.worst.get(kind, (-1,))[0]:
            self.worst[kind] = (value / allowed, value, allowed, name)

    def close(self):
        print("%-6s %s" % ("FAILED" if self.failed else "ok", self.case))
        for kind, (_, value, allowed, name) in self.worst.items():
            print("    %-16s %9.2e  allowed %9.2e  worst: %s" % (kind, value, allowed, name))
        sys.stdout.flush()
        return not self.failed


def distance(a, b, scale):
    """||a - b|| / ||scale||; 0 when both are equal."""
    difference = np.linalg.norm(a - b)
    return difference / np.linalg.norm(scale) if difference > 0 else 0.0


def check_weights_initial(report, deck, weights):
    table = deck.tensor_table()
    names = [row[0] for row in table]
    if sorted(weights) != sorted(names):
        sys.exit("tensors in the dump: %s, expected: %s" % (sorted(weights), sorted(names)))
    for (name, shape, _, _), expected in zip(table, deck.initial_weights().values()):
        if weights[name].shape != shape:
            sys.exit("%s has shape %s, expected %s" % (name, weights[name].shape, shape))
        wrong = np.count_nonzero(weights[name] != expected.astype(np.float64))
        report.check("weights_initial", name, float(wrong), 1e-300)  # bit by bit


def compare(case, show):
    deck_name, device, compute, ranks = case.split(":")
    deck = Deck(os.path.join(HERE, "decks", deck_name + ".in"))
    directory = os.path.join(os.getcwd(), case.replace(":", "_"))
    loss, norm, dump = run_gptbench(deck, device, compute, int(ranks), directory)
    report = Report(case, show)
    check_weights_initial(report, deck, dump["weights_initial"])

    expected_loss, expected_norm, gradients, final = truth(deck)
    if len(loss) != len(expected_loss):
        sys.exit("%s: %d steps recorded, expected %d" % (case, len(loss), len(expected_loss)))
    for step, (a, b) in enumerate(zip(loss, expected_loss)):
        report.check("loss", "step %d" % step, abs(a - b) / b, tolerance.loss(deck, compute, step))
    report.check("grad_norm", "step 0", abs(norm[0] - expected_norm[0]) / expected_norm[0],
                 tolerance.gradients(deck, compute))
    for name, g in gradients.items():
        report.check("gradients", name, distance(dump["gradients"][name], g, g),
                     tolerance.gradients(deck, compute))
    if compute == "fp64":
        for name, w in final.items():
            moved = w - dump["weights_initial"][name]
            rms = np.sqrt(np.mean(gradients[name]**2))
            report.check("weights_final", name, distance(dump["weights_final"][name], w, moved),
                         tolerance.weights(deck, compute, rms))
    return report.close()


_oracles = {}


def truth(deck):
    if deck.name not in _oracles:
        loss, norm, gradients, final = oracle.train(deck, deck.initial_weights())
        _oracles[deck.name] = (loss, norm, {name: g.numpy() for name, g in gradients.items()},
                               {name: w.numpy() for name, w in final.items()})
    return _oracles[deck.name]


def main(arguments):
    if "GPTBENCH" not in os.environ:
        sys.exit("set GPTBENCH to the program under test")
    torch.set_num_threads(1)
    show = "--show" in arguments
    cases = [a for a in arguments if a != "--show"] or CASES
    passed = [compare(case, show) for case in cases]
    print("%d of %d cases agree with PyTorch in float64" % (sum(passed), len(passed)))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
