"""How far a run may be from the oracle. Derived, not fitted; README.md says how."""

import math

# Unit roundoff of what is stored, and of what sums are kept in: 2^-p of a format with p significant
# bits, the hidden one counted (24 in fp32, 8 in bf16, 11 in fp16).
ROUNDOFF = {"fp64": (2.0**-53, 2.0**-53), "fp32": (2.0**-24, 2.0**-24), "bf16": (2.0**-8, 2.0**-24),
            "fp16": (2.0**-11, 2.0**-24)}


def _one_operation(deck, compute):
    # A sum of K terms, then one rounding of the result. Rounding errors of a sum behave like a random
    # walk: sqrt(K) u instead of K u (Higham and Mary 2019).
    stored, summed = ROUNDOFF[compute]
    longest_sum = max(3 * deck.C, deck.F, deck.V, deck.B * deck.T)
    return stored + math.sqrt(longest_sum) * summed


def gradients(deck, compute):
    """||g - g_oracle|| / ||g_oracle|| of one tensor: 12 operations a layer and 6 around them, forward
    and again backward, independent of each other; 4 of their standard deviations."""
    operations = 2 * (12 * deck.L + 6)
    return 4 * math.sqrt(operations) * _one_operation(deck, compute)


def loss(deck, compute, step):
    """|loss - loss_oracle| / loss_oracle: what the last operation, the logits, leaves; weights drift
    apart with the steps like a random walk."""
    return 4 * math.sqrt(step + 1) * _one_operation(deck, compute)


def weights(deck, compute, gradient_rms):
    """||w - w_oracle|| / ||w_final - w_initial||, for fp64: Adam divides a gradient by its own size
    plus epsilon, so an error of the gradient counts in units of epsilon where elements are small."""
    return gradients(deck, compute) * max(1.0, gradient_rms / deck.optimizer["epsilon"])
