"""Independent answers to check the noise core against, and sources that can be watched."""

import mpmath
import numpy as np
from scipy.stats import chisquare


def real(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def geometric_survival(rate, values):
    """P(G >= k) in floats."""
    return np.exp(-float(rate) * np.maximum(values, 0))


def two_sided_survival(rate, values):
    """P(N >= k) in floats, from the definition alone."""
    tail = np.exp(-float(rate) * np.maximum(values, 1)) / (1 + np.exp(-float(rate)))
    other = np.exp(-float(rate) * np.maximum(1 - values, 1)) / (1 + np.exp(-float(rate)))
    return np.where(values >= 1, tail, 1 - other)


def fit_p_value(samples, survival, bins=100):
    """Chi-squared p-value that whole-numbered samples follow a survival function.

    Bins are cut at the distribution's own quantiles, and merged where they would be expected
    rarely.
    """
    cuts = quantiles(survival, 1 - np.arange(1, bins) / bins)
    masses = len(samples) * -np.diff(np.concatenate([[1.0], survival(cuts), [0.0]]))
    cuts = cuts[(masses[1:] >= 5) & (masses[:-1] >= 5)]
    masses = len(samples) * -np.diff(np.concatenate([[1.0], survival(cuts), [0.0]]))
    seen = np.bincount(np.searchsorted(cuts, samples, side="right"), minlength=len(masses))
    return float(chisquare(seen, masses).pvalue) if len(masses) > 1 else 1.0


def quantiles(survival, levels):
    """The distinct smallest k with P(value >= k) <= level, by bisection."""
    low, high = np.full(len(levels), -(1 << 50)), np.full(len(levels), 1 << 50)
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_above = survival(middle) > levels
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    return np.unique(high)


class CountingSource:
    """Pass on the words of another source and count them."""

    def __init__(self, source):
        self.source, self.used = source, 0

    def words(self, count):
        self.used += count
        return self.source.words(count)


class ScriptedSource:
    """Hand out the given words, and not one more."""

    def __init__(self, *script):
        self.script = list(script)

    def words(self, count):
        drawn, self.script = self.script[:count], self.script[count:]
        assert len(drawn) == count, "the script is over"
        return np.array(drawn, dtype=np.uint64)
