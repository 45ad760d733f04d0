"""The marginal of one column as it was published: noisy integers, and what follows from them.

Four ways of counting lead to one: leaf by leaf (identity), a tree of counts (hierarchical), the
lowest Fourier coefficients (EFPA), and runs of noisy counts (NoiseFirst).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import mixed_half_width
from dpublish.accuracy.isotonic import isotonic_probabilities
from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.marginals.count_hierarchy import CountHierarchy, count_hierarchy
from dpublish.methods.marginals.fourier import coefficients, from_coefficients
from dpublish.methods.marginals.segment_means import segment_means
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon

PublishedMethod = Literal["identity", "hierarchical", "efpa", "noise-first"]
BRANCHING = 16
MOST_MERGED = 4096
"""Most leaves whose marginal is merged or transformed: the work grows with their square."""
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """Noisy numbers about the leaves of one column, each with noise of the same rate.

    Attributes:
        method: How they were counted.
        leaves: Number of leaves, special ones included.
        units: The published integers; each stands for `units * 2**exponent`.  Leaf counts
            (identity, noise-first); counts of all nodes below the root, level by level from
            the top (hierarchical); the lowest coefficients, times sqrt(leaves) (efpa).
        rate: Rate of the two-sided geometric noise of each unit.
        exponent: Fineness of the units, 0 for counts.
        kept: Number of coefficients; None where EFPA chose to count leaf by leaf.
        branching: Most children of a node of the tree.
    """

    method: PublishedMethod
    leaves: int
    units: NDArray[np.int64]
    rate: Fraction
    exponent: int = 0
    kept: int | None = None
    branching: int = BRANCHING

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a marginal may come from anywhere."""
        require_known("method", self.method, get_args(PublishedMethod))
        require_count(leaves=self.leaves)
        require_count(branching=self.branching, at_least=2)
        require_rate(self.rate)
        if self.kept is not None:
            require_count(kept=self.kept)
            if self.method != "efpa" or self.kept > self.leaves:
                raise InvalidParameter("only efpa keeps coefficients, at most as many as leaves")
        if self.method in ("efpa", "noise-first") and self.leaves > MOST_MERGED:
            raise InvalidParameter(f"{self.method} takes at most {MOST_MERGED} leaves")
        whole = isinstance(self.exponent, int) and -60 <= self.exponent <= 0
        if not whole or (self.exponent and not self.is_transformed):
            raise InvalidParameter("counts have the exponent 0, coefficients one from -60 to 0")
        if self.units.dtype != np.int64 or self.units.shape != (self._size,):
            raise InvalidParameter(f"this marginal is made of {self._size:,} integers")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NoisyMarginal)
            and self.metadata() == other.metadata()
            and np.array_equal(self.units, other.units)
        )

    __hash__ = None  # type: ignore[assignment]

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
        return self.leaves if self.kept is None else self.kept

    @cached_property
    def bins(self) -> NDArray[np.float64]:
        """Estimates of the leaf counts; they may be negative."""
        numbers = np.ldexp(self.units.astype(np.float64), self.exponent)
        if self.method == "hierarchical":
            return self._tree.estimate(numbers)
        if self.method == "noise-first":
            return segment_means(numbers, noise_variance(self.rate))
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
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each leaf: not negative, and adding up to 1."""
        if self.method == "hierarchical":
            counts = self._tree.plausible(self.units.astype(np.float64), noise_variance(self.rate))
            return np.asarray(counts / counts.sum())
        return isotonic_probabilities(self.bins)

    def half_width(self, weights: NDArray[np.float64], confidence: float) -> float | None:
        """Find how far noise reaches in `weights @ bins`, with probability `confidence`.

        There is no answer where an estimate is biased by an amount that nobody knows: sums
        that need other coefficients than were kept, and runs chosen by their noise.
        """
        return joint_half_width([self], [weights], confidence)

    def noise_weights(self, weights: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Say how much the noise of each unit weighs in `weights @ bins`, if that is all."""
        if weights.shape != (self.leaves,):
            raise InvalidParameter(f"this marginal has {self.leaves:,} leaves")
        every = bool(np.all(weights == weights[0]))
        if self.method == "noise-first" and not every:
            return None
        if self.is_transformed:
            lost = coefficients(weights)[self.kept :]
            if lost @ lost > _NEGLIGIBLE**2 * (weights @ weights):
                return None
        return self._unit_weights(weights)

    def _unit_weights(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Say how much each published unit weighs in `weights @ bins`."""
        if self.method == "hierarchical":
            return self._tree.adjoint(weights)
        if self.is_transformed:
            kept = coefficients(weights)[: self.kept] / sqrt(self.leaves)
            # What rounding left of a coefficient that is zero would count as a weight.
            tiny = np.abs(kept) <= _NEGLIGIBLE * np.abs(kept).max()
            return np.asarray(np.ldexp(np.where(tiny, 0, kept), self.exponent))
        return weights

    def metadata(self) -> dict[str, Any]:
        """Give all but the units, as plain values."""
        return {
            "method": self.method,
            "leaves": self.leaves,
            "rate": format_epsilon(self.rate),
            "exponent": self.exponent,
            "kept": self.kept,
            "branching": self.branching,
        }

    @classmethod
    def from_metadata(
        cls, metadata: Mapping[str, Any], units: NDArray[np.int64]
    ) -> "NoisyMarginal":
        """Rebuild a marginal from `metadata` and its units."""
        return cls(
            method=metadata["method"],
            leaves=metadata["leaves"],
            units=units,
            rate=parse_epsilon(metadata["rate"]),
            exponent=metadata["exponent"],
            kept=metadata["kept"],
            branching=metadata["branching"],
        )


def joint_half_width(
    marginals: Sequence[NoisyMarginal],
    weights: Sequence[NDArray[np.float64]],
    confidence: float,
    *,
    others: Sequence[tuple[Fraction, NDArray[np.float64]]] = (),
    deviation: float = 0.0,
) -> float | None:
    """Find how far all noise together reaches in a sum over several marginals.

    Args:
        marginals: The marginals.
        weights: How much each leaf of each marginal counts.
        confidence: Probability with which the truth is within reach.
        others: Rates of further noise, and how much each of its numbers counts.
        deviation: Standard deviation of a normal error on top.

    Returns:
        The reach, or None where a marginal's own error is not known.
    """
    pairs = [*others]
    for marginal, own in zip(marginals, weights, strict=True):
        noise = marginal.noise_weights(own)
        if noise is None:
            return None
        pairs.append((marginal.rate, noise))
    rates, parts = zip(*pairs, strict=True)
    return mixed_half_width(rates, parts, confidence, deviation=deviation)
