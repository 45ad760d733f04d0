"""What a sample allows: never more than is proved, hardly less, and checked by enumeration."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.privacy.amplification import amplified_epsilon
from dpublish.testing import privacy_loss

CASES = [
    (Fraction(epsilon), Fraction(rate))
    for epsilon in ("0.000001", "0.1", "1", "1/3", "20", "700")
    for rate in ("0.001", "1/7", "0.5", "1")
]


@pytest.mark.parametrize(("epsilon", "rate"), CASES)
def test_it_is_the_exact_value_rounded_down(epsilon, rate):
    found = amplified_epsilon(epsilon, rate)
    with localcontext() as context:
        context.prec = 700
        grown = (Decimal(epsilon.numerator) / epsilon.denominator).exp() - 1
        exact = Fraction((1 + grown * rate.denominator / rate.numerator).ln())
    assert epsilon <= found <= max(exact, epsilon)
    assert found >= exact - Fraction(1, 10**9)


def sampled_distribution(records, epsilon, rate):
    """Give the distribution of a noisy count of a sample."""
    grid = np.arange(-60, 70)
    distribution = np.zeros(grid.size)
    for kept in range(records + 1):
        probability = (
            comb(records, kept) * float(rate) ** kept * float(1 - rate) ** (records - kept)
        )
        distribution += probability * noise_pmf(epsilon, grid - kept)
    return dict(zip(grid.tolist(), distribution.tolist(), strict=True))


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
def test_a_sampled_count_loses_what_was_paid_and_a_greedy_one_more(rate):
    epsilon = Fraction(3, 10)
    inner = amplified_epsilon(epsilon, rate)
    loss = privacy_loss(sampled_distribution(3, inner, rate), sampled_distribution(4, inner, rate))
    assert float(epsilon) * 0.999 < loss <= float(epsilon) + 1e-9
    greedy = epsilon / rate
    broken = privacy_loss(
        sampled_distribution(3, greedy, rate), sampled_distribution(4, greedy, rate)
    )
    assert broken > float(epsilon) * 1.05
