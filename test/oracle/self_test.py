"""Tests of the oracle itself: published answers of Philox, finite differences of its loss, PyTorch's
own optimizer, and that a mistake of the usual kinds would be seen."""

import copy
import math
import os
import types
import unittest

import numpy as np
import torch

import oracle
import philox
import tolerance
from deck import Deck

DECKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "decks")


class Philox(unittest.TestCase):
    def test_known_answers(self):
        # Test vectors published with Random123 (Salmon et al., SC11), philox 4x32, 10 rounds.
        ones = 0xFFFFFFFF
        for counter, key, expected in (
                ([0] * 4, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
                ([ones] * 4, ones << 32 | ones, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
                ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], 0x299F31D0A4093822,
                 [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])):
            self.assertEqual([int(word) for word in philox.philox(counter, key)], expected)

    def test_streams_are_functions_of_the_position(self):
        whole = philox.random_words(5, philox.STREAM_TOKENS, 3, 0, 100)
        for first in (0, 1, 2, 3, 4, 37):
            part = philox.random_words(5, philox.STREAM_TOKENS, 3, first, 21)
            np.testing.assert_array_equal(part, whole[first:first + 21])

    def test_normal_numbers(self):
        n = philox.normal(1 << 20, 9, philox.STREAM_WEIGHTS, 0, 1.0).astype(np.float64)
        # Standard errors of mean, variance and fourth moment over 2^20 samples: 1e-3, 1.4e-3,
        # 9.6e-3; six of each.
        self.assertLess(abs(n.mean()), 6e-3)
        self.assertLess(abs((n**2).mean() - 1), 8.4e-3)
        self.assertLess(abs((n**4).mean() - 3), 5.8e-2)

    def test_normal_numbers_follow_box_and_muller(self):
        # Against double precision: float32 log and sincos to 1e-7, then six roundings of 6e-8.
        words = philox.random_words(9, philox.STREAM_WEIGHTS, 4, 0, 4000)
        u = ((words >> np.uint64(9)).astype(np.float64) + 0.5) * 2.0**-23
        radius, angle = np.sqrt(-2 * np.log(u[0::2])), 2 * math.pi * u[1::2]
        exact = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
        drawn = philox.normal(4000, 9, philox.STREAM_WEIGHTS, 4, 1.0)
        # The largest radius is 5.8: 5.8 (1e-7 + 6 * 6e-8) < 3e-6.
        self.assertLess(np.abs(drawn - exact).max(), 3e-6)


class Model(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.deck = Deck(os.path.join(DECKS, "accumulate.in"))
        self.weights = self.deck.initial_weights()

    def test_gradients_are_slopes(self):
        w = {name: torch.tensor(a, dtype=torch.float64) for name, a in self.weights.items()}
        _, gradients = oracle.loss_and_gradients(self.deck, w, 0)
        h = 1e-6
        for name, g in gradients.items():
            direction = torch.randn_like(g)
            loss = []
            for sign in (1, -1):
                moved = dict(w)
                moved[name] = w[name] + sign * h * direction
                loss.append(oracle.loss_and_gradients(self.deck, moved, 0)[0])
            slope = (loss[0] - loss[1]) / (2 * h)
            # Rounding of the loss (4) / h: 1e-9; truncation h^2 times a third derivative below 1e3.
            self.assertAlmostEqual(slope, float((g * direction).sum()), delta=2e-8, msg=name)

    def test_micro_batches_do_not_matter(self):
        whole = copy.deepcopy(self.deck)
        whole.batch["micro_batch_size"] = 7
        w = {name: torch.tensor(a, dtype=torch.float64) for name, a in self.weights.items()}
        loss, gradients = oracle.loss_and_gradients(self.deck, w, 0)
        loss_whole, gradients_whole = oracle.loss_and_gradients(whole, w, 0)
        self.assertAlmostEqual(loss, loss_whole, delta=1e-14)
        for name, g in gradients.items():
            self.assertLess(float((g - gradients_whole[name]).norm() / g.norm()), 1e-13, name)

    def test_padding_rows_have_no_gradient_from_the_head(self):
        deck = Deck(os.path.join(DECKS, "plain.in"))
        w = {name: torch.tensor(a, dtype=torch.float64)
             for name, a in deck.initial_weights().items()}
        _, gradients = oracle.loss_and_gradients(deck, w, 0)
        self.assertEqual(gradients["wte"].shape[0], 64)
        self.assertEqual(float(gradients["wte"][61:].abs().max()), 0.0)

    def test_optimizer_is_that_of_pytorch(self):
        o = self.deck.optimizer
        w = {"matrix": torch.randn(5, 3, dtype=torch.float64),
             "vector": torch.randn(7, dtype=torch.float64)}
        theirs = {name: p.clone().requires_grad_(True) for name, p in w.items()}
        reference = torch.optim.AdamW(
            [{"params": [theirs["matrix"]], "weight_decay": o["weight_decay"]},
             {"params": [theirs["vector"]], "weight_decay": 0.0}],
            lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"])
        ours = oracle.AdamW(o, w)
        for _ in range(5):
            gradients = {name: torch.randn_like(p) for name, p in w.items()}
            for name, p in theirs.items():
                p.grad = gradients[name].clone()
            reference.step()
            ours.step(w, gradients)
            for name, p in theirs.items():
                self.assertLess(float((w[name] - p.detach()).abs().max()), 1e-15, name)

    def test_tanh_gelu_is_that_of_pytorch(self):
        x = torch.linspace(-6, 6, 1001, dtype=torch.float64)
        g = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        self.assertLess(
            float((g - torch.nn.functional.gelu(x, approximate="tanh")).abs().max()), 1e-14)

    def test_rotary_turns_pairs_of_channels(self):
        # R(p) q . R(p') k depends on p - p' alone, and position 0 is left as it is.
        q, k = torch.randn(2, 1, 1, 9, 6, dtype=torch.float64)
        q[..., :, :], k[..., :, :] = q[..., :1, :].clone(), k[..., :1, :].clone()
        turned = oracle.rotate(q, 50.0) @ oracle.rotate(k, 50.0).transpose(2, 3)
        for offset in range(-4, 5):
            diagonal = turned[0, 0].diagonal(offset)
            self.assertLess(float((diagonal - diagonal[0]).abs().max()), 1e-13)
        self.assertEqual(float((oracle.rotate(q, 50.0)[..., 0, :] - q[..., 0, :]).abs().max()), 0.0)

    def test_slopes_of_alibi(self):
        # Press et al., section 3: 1/2, 1/4 ... 1/256 of 8 heads; of 16 the sequence starts at 2^-1/2.
        self.assertEqual(oracle.alibi_slopes(8), [2.0**-i for i in range(1, 9)])
        self.assertAlmostEqual(oracle.alibi_slopes(16)[0], 2.0**-0.5, delta=1e-16)

    def test_training_learns(self):
        losses, norms, _, _ = oracle.train(self.deck, self.weights)
        self.assertEqual(len(losses), 10)
        self.assertGreater(min(norms), self.deck.optimizer["clip"], "clips in every step")


def with_mistake(right, wrong):
    """The oracle with one piece of its text replaced."""
    with open(oracle.__file__) as file:
        source = file.read()
    assert source.count(right) >= 1, right
    module = types.ModuleType("mistaken_oracle")
    exec(source.replace(right, wrong), module.__dict__)
    return module


class Mistakes(unittest.TestCase):
    """Usual mistakes move the compared values by more than the tolerance of fp32."""

    def setUp(self):
        self.deck = Deck(os.path.join(DECKS, "accumulate.in"))
        self.weights = self.deck.initial_weights()
        self.loss, self.norm, self.gradients, _ = oracle.train(self.deck, self.weights)

    def test_in_the_model(self):
        allowed = tolerance.gradients(self.deck, "fp32")
        for right, wrong in (
                ("torch.tanh(math.sqrt(2 / math.pi) * (f + 0.044715 * f**3))",
                 "torch.erf(f / math.sqrt(2))"),
                ("/ math.sqrt(D)", "/ math.sqrt(deck.C)"),
                ("triu(1)", "triu(2)"),
                ("q, k, v = linear", "k, q, v = linear"),
                ('deck.model["layernorm_epsilon"]', "1e-5"),
                ("view(B, T, H, D).transpose(1, 2)", "view(B, T, D, H).permute(0, 3, 1, 2)"),
                ("deck.targets(step)", "(deck.targets(step) - 1)")):
            mistaken = with_mistake(right, wrong)
            _, gradients = mistaken.loss_and_gradients(
                self.deck, {name: torch.tensor(a, dtype=torch.float64)
                            for name, a in self.weights.items()}, 0)
            worst = max(float((gradients[name] - g).norm() / g.norm())
                        for name, g in self.gradients.items())
            self.assertGreater(worst, 3 * allowed, wrong)

    def test_in_the_families(self):
        mistakes = {
            "llama": (
                ("theta**(-2.0", "theta**(-1.0"),
                ("x[..., :D // 2], x[..., D // 2:]", "x[..., 0::2], x[..., 1::2]"),
                ("* turn", "* turn.conj()"),
                ("repeat_interleave(H // H_kv, dim=1)", "repeat(1, H // H_kv, 1, 1)"),
                ("gate * torch.sigmoid(gate) * value", "value * torch.sigmoid(value) * gate"),
                ('w.get("lm_head.weight", w["wte"])', 'w["wte"]'),
                ("(x * x).mean(dim=-1, keepdim=True)", "x.var(dim=-1, keepdim=True)")),
            "bert": (
                ('deck.family != "bert":\n        future', 'True:\n        future'),
                ('w["wtt"][samples["types"]]', 'w["wtt"][1 - samples["types"]]'),
                ("x[:, 0]", "x[:, 1]"),
                ("torch.tanh(linear(x", "(linear(x"),
                ('reduction="sum") / deck.B', 'reduction="sum") / (deck.B - 1)'),
                ('y = activation(deck, linear(x, w, "mlm.dense"))', 'y = linear(x, w, "mlm.dense")'),
                ("table, bias)", "table)")),
            "bert_padded": (
                (">= lengths[:, None]", "> lengths[:, None]"),
                ("lengths is not None", "False"),
                ("deck.targets(step)", "(deck.B * (3 * deck.T + 10) // 20)")),
            "mpt_alibi": (
                ("slopes[1::2] + slopes[::2]", "slopes[::2] + slopes[1::2]"),
                ("scores - torch.tensor(alibi_slopes", "scores + torch.tensor(alibi_slopes"),
                ("-8.0 * (h + 1) / n", "-8.0 * (h + 1) / H")),
        }
        for name, replacements in mistakes.items():
            deck = Deck(os.path.join(DECKS, name + ".in"))
            w = {key: torch.tensor(a, dtype=torch.float64)
                 for key, a in deck.initial_weights().items()}
            _, truth = oracle.loss_and_gradients(deck, w, 0)
            allowed = tolerance.gradients(deck, "fp32")
            for right, wrong in replacements:
                _, gradients = with_mistake(right, wrong).loss_and_gradients(deck, w, 0)
                worst = max(float((g - truth[key]).norm() / truth[key].norm())
                            if g is not None else 1.0 for key, g in gradients.items())
                self.assertGreater(worst, 3 * allowed, (name, wrong))

    def test_in_the_optimizer(self):
        for right, wrong in (
                ("p.dim() == 2", "False"),
                ("p.dim() == 2", "True"),
                ("(1 - o[\"beta1\"]**self.t)", "1"),
                ("norm > clip", "norm > clip * 1e9"),
                ("self.t += 1", "self.t = 1"),
                ("(1 - o[\"beta2\"]) * g * g", "(1 - o[\"beta2\"]) * g.abs()")):
            loss, _, _, _ = with_mistake(right, wrong).train(self.deck, self.weights)
            worst = max(abs(a - b) / b / tolerance.loss(self.deck, "fp32", step)
                        for step, (a, b) in enumerate(zip(loss, self.loss)))
            self.assertGreater(worst, 3, wrong)


if __name__ == "__main__":
    unittest.main(verbosity=2)
