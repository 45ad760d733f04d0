"""How far the rows are from the truth, as the release itself measured it.

The distance of a pair of columns is the total variation distance between the true relative
frequencies and the model's probabilities: half of the sum of their absolute differences.  Counts
are compared in steps of a record with what the model expects of N records, where N is an
estimate of the number of records n.  Dividing by N instead of n shifts a distance by at most
|n - N| / (2 N), which the intervals cover (docs/proofs/synth.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, floor, inf

import numpy as np

from dpublish.accuracy.intervals import require_confidence
from dpublish.accuracy.noise_distribution import Terms, quantile
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.synth.model import Known

STEPS = 64
"""Steps of a score or a distance for one record: expected counts are rounded to such parts."""
_LEVELS = 1 - np.geomspace(0.5, 1e-4, 24)
"""Confidences at which the error of the number of records is bounded."""
UNKNOWN = 0.1
"""A half-width above this says little: it is told as such."""


@dataclass(frozen=True)
class Distance:
    """A distance between 0 and 1, and an interval that covers the noise."""

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        width = max(self.high - self.value, self.value - self.low)
        return f"{self.value:.3f} ± {width:.3f} ({100 * self.confidence:g} %)"


@dataclass(frozen=True)
class Quality:
    """Noisy distances between the true counts of all pairs of columns and the model's.

    Attributes:
        pairs: How many pairs of columns were compared.
        summed: Noisy sum of the L1 distances of all pairs, in steps of a record.
        worst: Noisy largest L1 distance of a pair, in steps of a record.
        summed_rate: Rate of the noise of `summed`.
        worst_rate: Rate of the noise of `worst`.
        rounding: Most by which rounding to steps changes a pair's distance; public.
    """

    pairs: int
    summed: int
    worst: int
    summed_rate: Fraction
    worst_rate: Fraction
    rounding: float

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_count(pairs=self.pairs)
        require_rate(self.summed_rate)
        require_rate(self.worst_rate)
        if type(self.summed) is not int or type(self.worst) is not int:
            raise InvalidParameter("noisy distances are integers")
        if not 0 <= self.rounding <= 1:
            raise InvalidParameter("rounding changes a distance by a part of 1")


@dataclass(frozen=True, eq=False)
class QualityIntervals:
    """The distances of a release as intervals."""

    quality: Quality
    known: Known

    def mean(self, confidence: float = 0.95) -> Distance:
        """Return the mean distance over all pairs of columns."""
        scale = STEPS * self.quality.pairs
        return self._interval(
            self.quality.summed / scale, self.quality.summed_rate, scale, confidence
        )

    def worst(self, confidence: float = 0.95) -> Distance:
        """Return the largest distance of a pair of columns."""
        return self._interval(
            self.quality.worst / STEPS, self.quality.worst_rate, STEPS, confidence
        )

    def _interval(self, records: float, rate: Fraction, scale: int, confidence: float) -> Distance:
        """Divide an L1 distance in records by twice the number of records."""
        require_confidence(confidence)
        total = self.known.total
        value = min(max(records / (2 * total), 0.0), 1.0)
        width = self._error(float(rate), scale, confidence) / (2 * total) + self.quality.rounding
        middle = records / (2 * total)
        low, high = min(max(middle - width, 0.0), 1.0), max(min(middle + width, 1.0), 0.0)
        return Distance(value, low, high, confidence)

    @cached_property
    def _size_errors(self) -> list[tuple[float, float]]:
        """Bound the error of the number of records: with each probability, at most how many."""
        if any(not one.columns for one in self.known.totals):
            return [(1.0, 0.0)]
        terms = size_terms(self.known)
        return [(float(level), quantile(terms, float(level))) for level in _LEVELS]

    def _error(self, rate: float, scale: int, confidence: float) -> float:
        """Bound the noise of a distance and the error of the size, both in records.

        The size's error is replaced by a larger one that has a few values only, so that the
        probability of their sum is a sum of a few terms.
        """
        risk = 1 - confidence
        if self._tail(rate, scale, inf) > risk:
            return inf
        low, high = 0.0, 60 / (rate * scale) + 2 * self._size_errors[-1][1] + 1
        for _ in range(60):
            middle = (low + high) / 2
            is_enough = self._tail(rate, scale, middle) <= risk
            low, high = (low, middle) if is_enough else (middle, high)
        return high

    def _tail(self, rate: float, scale: int, bound: float) -> float:
        """Bound the probability that both errors add up to more than a bound."""
        before, found = 0.0, 0.0
        for level, error in self._size_errors:
            steps = scale * (bound - error)
            beyond = 0.0 if bound == inf else 1.0
            if 0 <= steps < inf:  # of two-sided geometric noise
                beyond = min(1.0, 2 * exp(-rate * (floor(steps) + 1)) / (1 + exp(-rate)))
            found += (level - before) * beyond
            before = level
        return found + (1 - before)


def size_terms(known: Known) -> Terms:
    """Gather the noise of the estimated number of records."""
    variances = np.array([one.total_variance for one in known.marginals])
    shares = 1 / np.maximum(variances, 1e-9)
    shares = shares / shares.sum()
    weights, rates = [], []
    for share, marginal in zip(shares, known.marginals, strict=True):
        own = marginal.noise_weights(np.ones(marginal.leaves))
        if own is None:
            raise InvalidParameter("the total of every marginal is unbiased")
        weights.append(share * own)
        rates.append(np.full(own.size, float(marginal.rate)))
    return Terms.gather(np.concatenate(weights), np.concatenate(rates))
