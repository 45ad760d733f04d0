"""The noisy number of records, and limits that all released values share."""

from fractions import Fraction
from typing import NamedTuple

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.types import IntArray

RESERVED = frozenset({"cell_number", "noisy_count", "estimated_count"})
"""Column names that published tables of counts use themselves."""
MAX_ROWS = 100_000_000
"""Most synthetic rows that are drawn at once."""
MAX_STREAMED_ROWS = 10_000_000_000
"""Most synthetic rows that are drawn batch by batch."""


class NoisySize(NamedTuple):
    """The number of records, perturbed with two-sided geometric noise of a rate."""

    value: int
    rate: Fraction


def estimate_total(counts: IntArray, rate: Fraction, records: NoisySize) -> float:
    """Average the sum of all noisy counts and the noisy number of records.

    Both are unbiased and independent, so each is weighed by the other's variance.
    """
    variance = counts.size * noise_variance(rate)
    other = noise_variance(records.rate)
    if variance + other == 0:
        return float(records.value)
    return (float(counts.sum()) * other + records.value * variance) / (variance + other)
