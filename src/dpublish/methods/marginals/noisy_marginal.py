"""The marginal of one column as it was published: noisy integers, and what follows from them.

Five ways of counting lead to one: value by value (identity), a tree of counts (hierarchical),
the lowest Fourier coefficients (EFPA), runs of noisy counts (NoiseFirst), and counts of buckets
that were chosen before (StructureFirst).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from dpublish.accuracy.intervals import mixed_half_width
from dpublish.accuracy.isotonic import isotonic_probabilities
from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core.released import is_same
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.marginals.efpa import coefficients, from_coefficients
from dpublish.methods.marginals.hierarchical import CountHierarchy, count_hierarchy
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.types import FloatArray, IntArray

PublishedMethod = Literal["identity", "hierarchical", "efpa", "noise-first", "structure-first"]
BRANCHING = 16
MOST_MERGED = 4096
"""Most values whose marginal is merged or transformed: the work grows with their square."""
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """Noisy numbers about the values of one column, each with noise of the same rate.

    Attributes:
        method: How they were counted.
        leaves: Number of values or bins of the column, special ones included.
        units: The published integers; each stands for `units * 2**exponent`.  Counts by value
            (identity, noise-first); counts of all nodes below the root, level by level from
            the top (hierarchical); the lowest coefficients, times sqrt(leaves) (efpa); counts
            of buckets (structure-first).
        rate: Rate of the two-sided geometric noise of each unit.
        exponent: Fineness of the units, 0 for counts.
        kept: Number of coefficients; None where EFPA chose to count value by value.
        branching: Most children of a node of the tree.
        ends: Where each bucket of neighboring values ends, the last one with all values.
    """

    method: PublishedMethod
    leaves: int
    units: IntArray
    rate: Fraction
    exponent: int = 0
    kept: int | None = None
    branching: int = BRANCHING
    ends: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a marginal may come from anywhere."""
        require_known("method", self.method, get_args(PublishedMethod))
        require_count(leaves=self.leaves)
        require_count(branching=self.branching, at_least=2)
        require_rate(self.rate)
        if self.kept is not None:
            require_count(kept=self.kept)
            if self.method != "efpa" or self.kept > self.leaves:
                raise InvalidParameter("only efpa keeps coefficients, at most as many as values")
        if self.method in ("efpa", "noise-first") and self.leaves > MOST_MERGED:
            raise InvalidParameter(f"{self.method} takes at most {MOST_MERGED:,} values")
        self._require_ends()
        whole = isinstance(self.exponent, int) and -60 <= self.exponent <= 0
        if not whole or (self.exponent and not self.is_transformed):
            raise InvalidParameter("counts have the exponent 0, coefficients one from -60 to 0")
        if self.units.dtype != np.int64 or self.units.shape != (self._size,):
            raise InvalidParameter(f"this marginal is made of {self._size:,} integers")

    def _require_ends(self) -> None:
        """Refuse buckets that are empty or do not hold all values."""
        if self.method != "structure-first":
            if self.ends:
                raise InvalidParameter("only structure-first has buckets")
            return
        cuts = (0, *self.ends)
        is_whole = all(type(end) is int for end in self.ends) and cuts[-1] == self.leaves
        if not is_whole or any(stop <= start for start, stop in pairwise(cuts)):
            raise InvalidParameter("buckets follow each other and hold all values")

    def __eq__(self, other: object) -> bool:
        return is_same(self, other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def _starts(self) -> IntArray:
        return np.array((0, *self.ends[:-1]), dtype=np.int64)

    @property
    def _lengths(self) -> IntArray:
        """Number of values of each bucket."""
        return np.diff((0, *self.ends))

    @property
    def is_transformed(self) -> bool:
        """Whether coefficients were published instead of counts."""
        return self.kept is not None

    @property
    def _tree(self) -> CountHierarchy:
        return count_hierarchy(self.leaves, self.branching)

    @property
    def _size(self) -> int:
        if self.method == "hierarchical":
            return self._tree.nodes
        if self.method == "structure-first":
            return len(self.ends)
        return self.leaves if self.kept is None else self.kept

    @cached_property
    def bins(self) -> FloatArray:
        """Estimates of the counts by value; they may be negative."""
        numbers = np.ldexp(self.units.astype(np.float64), self.exponent)
        if self.method == "hierarchical":
            return self._tree.estimate(numbers)
        if self.method == "noise-first":
            return segment_means(numbers, noise_variance(self.rate))
        if self.method == "structure-first":
            return np.repeat(numbers / self._lengths, self._lengths)
        if self.is_transformed:
            return from_coefficients(numbers / sqrt(self.leaves), self.leaves)
        return numbers

    @property
    def total(self) -> float:
        """Estimate of the number of records."""
        return float(self.bins.sum())

    @cached_property
    def total_variance(self) -> float:
        """Variance that noise gives `total`; it is unbiased, whatever the method."""
        weights = self._unit_weights(np.ones(self.leaves))
        return noise_variance(self.rate) * float(weights @ weights)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of each value: not negative, and adding up to 1."""
        if self.method == "hierarchical":
            counts = self._tree.plausible(self.units.astype(np.float64), noise_variance(self.rate))
            return np.asarray(counts / counts.sum())
        return isotonic_probabilities(self.bins)

    def half_width(self, weights: FloatArray, confidence: float) -> float | None:
        """Compute the half-width of the confidence interval of `weights @ bins`.

        It is None where an estimate has an unknown bias: sums that need other coefficients
        than were kept, runs chosen by their noise, and parts of buckets.
        """
        return joint_half_width([self], [weights], confidence)

    def bound(self, chosen: FloatArray, confidence: float, sign: int) -> float:
        """Bound how many records have one of the `chosen` values (1, others 0).

        From below if `sign` is -1, from above if it is 1.  Both bounds together hold with
        probability `confidence`, whatever the records are.  Where values were merged or
        smoothed, what was published is still known: noisy counts of each value, of whole buckets,
        or of all records.
        """
        return joint_bound([(self, chosen)], confidence, sign)

    def bounding_weights(self, chosen: FloatArray, sign: int) -> FloatArray:
        """Weigh the published units so that they add up to no more, or no less, than `chosen`."""
        if not chosen.any():
            return np.zeros(self.units.size)
        if self.method == "noise-first":
            return chosen
        if self.method == "structure-first":
            means = self._bucket_means(chosen)
            return (means >= 1 if sign < 0 else means > 0).astype(np.float64)
        exact = self.noise_weights(chosen)
        if exact is not None:
            return exact
        return self._unit_weights(np.full(self.leaves, 1.0 if sign > 0 else 0.0))

    def noise_weights(self, weights: FloatArray) -> FloatArray | None:
        """Compute how much the noise of each unit weighs in `weights @ bins`; None if biased."""
        if weights.shape != (self.leaves,):
            raise InvalidParameter(f"this marginal has {self.leaves:,} values")
        every = bool(np.all(weights == weights[0]))
        if self.method == "noise-first" and not every:
            return None
        if self.method == "structure-first" and not every:
            means = np.repeat(self._bucket_means(weights), self._lengths)
            if not np.allclose(means, weights, rtol=0, atol=_NEGLIGIBLE):
                return None
        if self.is_transformed:
            lost = coefficients(weights)[self.kept :]
            if lost @ lost > _NEGLIGIBLE**2 * (weights @ weights):
                return None
        return self._unit_weights(weights)

    def _unit_weights(self, weights: FloatArray) -> FloatArray:
        """Compute how much each published unit weighs in `weights @ bins`."""
        if self.method == "hierarchical":
            return self._tree.adjoint(weights)
        if self.method == "structure-first":
            return self._bucket_means(weights)
        if self.is_transformed:
            kept = coefficients(weights)[: self.kept] / sqrt(self.leaves)
            # What rounding left of a coefficient that is zero would count as a weight.
            tiny = np.abs(kept) <= _NEGLIGIBLE * np.abs(kept).max()
            return np.asarray(np.ldexp(np.where(tiny, 0, kept), self.exponent))
        return weights

    def _bucket_means(self, weights: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(weights, self._starts) / self._lengths)

    def metadata(self) -> dict[str, Any]:
        """Return all but the units, as plain values."""
        buckets = {"ends": list(self.ends)} if self.ends else {}
        return buckets | {
            "method": self.method,
            "leaves": self.leaves,
            "rate": format_epsilon(self.rate),
            "exponent": self.exponent,
            "kept": self.kept,
            "branching": self.branching,
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], units: IntArray) -> "NoisyMarginal":
        """Rebuild a marginal from `metadata` and its units."""
        return cls(
            method=metadata["method"],
            leaves=metadata["leaves"],
            units=units,
            rate=parse_epsilon(metadata["rate"]),
            exponent=metadata["exponent"],
            kept=metadata["kept"],
            branching=metadata["branching"],
            ends=tuple(metadata.get("ends", ())),
        )


def joint_bound(
    chosen: Sequence[tuple[NoisyMarginal, FloatArray]], confidence: float, sign: int
) -> float:
    """Bound a sum of counts of chosen values of several marginals, as `bound` does for one."""
    weights = [marginal.bounding_weights(own, sign) for marginal, own in chosen]
    if not any(own.any() for own in weights):
        return 0.0
    marginals = [marginal for marginal, _ in chosen]
    value = sum(float(own @ one.units) for own, one in zip(weights, marginals, strict=True))
    width = mixed_half_width([one.rate for one in marginals], weights, confidence)
    return max(value + sign * width, 0.0)


def joint_half_width(
    marginals: Sequence[NoisyMarginal],
    weights: Sequence[FloatArray],
    confidence: float,
    *,
    others: Sequence[tuple[Fraction, FloatArray]] = (),
    deviation: float = 0.0,
) -> float | None:
    """Compute the half-width of the confidence interval of a sum over several marginals.

    Args:
        marginals: The marginals.
        weights: How much each value of each marginal counts.
        confidence: Probability with which the interval holds the truth.
        others: Rates of further noise, and how much each of its numbers counts.
        deviation: Standard deviation of a normal error on top.

    Returns:
        The half-width, or None where a marginal's own error is not known.
    """
    pairs = [*others]
    for marginal, own in zip(marginals, weights, strict=True):
        noise = marginal.noise_weights(own)
        if noise is None:
            return None
        pairs.append((marginal.rate, noise))
    rates, parts = zip(*pairs, strict=True)
    return mixed_half_width(rates, parts, confidence, deviation=deviation)


def segment_means(noisy: FloatArray, variance: float) -> FloatArray:
    """Replace counts by the means of the runs whose estimated error is the smallest.

    This is NoiseFirst.  A run B of |B| counts, with noise of `variance` each, costs the sum of
    squared deviations of its true counts from their mean, estimated by
    max(0, SSE(B) - (|B| - 1) variance), plus the error of its mean, `variance`.
    The cheapest way to cut the column is found by dynamic programming, one row at a time; the
    time grows with the square of the number of counts.

    Reference: J. Xu, Z. Zhang, X. Xiao, Y. Yang, G. Yu, M. Winslett, "Differentially Private
    Histogram Publication", The VLDB Journal 22(6), 2013.

    >>> segment_means(np.array([10.0, 12.0, 11.0, 90.0, 92.0]), variance=2.0).tolist()
    [11.0, 11.0, 11.0, 91.0, 91.0]
    """
    size = noisy.size
    centered = noisy - noisy.mean()  # keeps the squares small
    sums = np.concatenate([[0.0], np.cumsum(centered)])
    squares = np.concatenate([[0.0], np.cumsum(centered**2)])
    cheapest = np.zeros(size + 1)
    starts = np.zeros(size + 1, dtype=np.int64)
    lengths = np.arange(size, 0, -1.0)
    for stop in range(1, size + 1):
        length = lengths[size - stop :]
        deviations = squares[stop] - squares[:stop] - (sums[stop] - sums[:stop]) ** 2 / length
        bias = np.maximum(deviations - (length - 1) * variance, 0)
        costs = cheapest[:stop] + bias
        starts[stop] = int(np.argmin(costs))
        cheapest[stop] = costs[starts[stop]] + variance
    means = np.empty(size)
    stop = size
    while stop:
        start = int(starts[stop])
        means[start:stop] = noisy[start:stop].mean()
        stop = start
    return means
