"""A tree of counts over the values of a column, and the best estimate of its leaves.

The leaves are the values.  Each level cuts them into runs; a run of one level is made of up to
`branching` runs of the level below.  All nodes below the root carry independent noise of the
same variance, so least squares is the best linear unbiased estimate.  One pass up and one down
computes it.

Known as: hierarchical histogram with consistency (boosting).
Reference: M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the Accuracy of Differentially
Private Histograms Through Consistency", VLDB 2010; W. Qardaji, W. Yang, N. Li, "Understanding
Hierarchical Methods for Differentially Private Histograms", VLDB 2013.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.isotonic import isotonic_probabilities
from dpublish.errors import require_count
from dpublish.types import FloatArray, IntArray

WIDEST = 40
"""Most children of a node; wider trees have long sums, deeper ones more noise in each count."""
# Standard deviations of the noise, chosen by trial on marginals of many shapes: wide empty
# stretches then stay empty, and tails that hold something do not.
_LOW, _LOW_TOGETHER = 3.0, 2.0
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class CountHierarchy:
    """The tree over `leaves` leaves; nodes are listed level by level, from the top.

    The last run of a level may be shorter than the others.

    >>> tree = CountHierarchy(leaves=5, branching=2)
    >>> tree.sizes
    (2, 3, 5)
    >>> tree.totals(np.array([1, 2, 3, 4, 5])).tolist()
    [10, 5, 3, 7, 5, 1, 2, 3, 4, 5]
    """

    leaves: int
    branching: int

    def __post_init__(self) -> None:
        require_count(leaves=self.leaves)
        require_count(branching=self.branching, at_least=2)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes on each level below the root, from the top."""
        sizes = [self.leaves]
        while sizes[0] > self.branching:
            sizes.insert(0, -(-sizes[0] // self.branching))
        return tuple(sizes)

    @property
    def levels(self) -> int:
        """Number of levels below the root: so many nodes hold any one record."""
        return len(self.sizes)

    @property
    def nodes(self) -> int:
        """Number of nodes below the root."""
        return sum(self.sizes)

    def totals(self, counts: IntArray) -> IntArray:
        """Count the records of every node, exactly."""
        levels = [counts]
        for _ in self.sizes[1:]:
            levels.insert(0, self._add_up(levels[0]))
        return np.concatenate(levels)

    def estimate(self, noisy: FloatArray) -> FloatArray:
        """Estimate the leaf counts by least squares from the noisy counts of all nodes."""
        fused = self._fuse(noisy)
        final = fused[0]
        for level in range(1, self.levels):
            gap = final - self._add_up(fused[level])
            final = fused[level] + self._shares[level] * self._repeat(gap, level)
        return final

    def plausible(self, noisy: FloatArray, variance: float) -> FloatArray:
        """Estimate leaf counts that are not negative, from the top down; their total is positive.

        The first runs follow the nearest rising cumulative count; neighbors among them whose counts
        are as low as noise alone may be, each by itself and all together, are taken to be empty,
        `variance` being that of each node's noise.  The children of a node are
        moved to the nearest counts that are not negative and add up to its own, so that a run
        that holds little stays small however many leaves it has.
        """
        fused = self._fuse(noisy)
        first = isotonic_probabilities(fused[0]) * max(float(fused[0].sum()), 1.0)
        empty = _seem_empty(fused[0], variance * self._variances[0])
        final = np.where(empty, 0.0, first) if first[~empty].sum() > 0 else first
        for level in range(1, self.levels):
            families = np.full((self.sizes[level - 1], self.branching), -np.inf)
            families.ravel()[: self.sizes[level]] = fused[level]
            final = _share_out(families, final).ravel()[: self.sizes[level]]
        return final

    def _fuse(self, noisy: FloatArray) -> list[FloatArray]:
        """Join each node's noisy count with the sum of what is known of its children."""
        raw = self._split(noisy)
        fused = [raw[-1]]
        for level in range(self.levels - 2, -1, -1):
            below = self._below[level]
            own = below / (1 + below)
            fused.insert(0, own * raw[level] + (1 - own) * self._add_up(fused[0]))
        return fused

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Compute how much each node weighs in `weights @ estimate(noisy)`.

        It is `estimate` transposed: the same steps, backward.
        """
        final = weights
        fused: list[FloatArray] = []
        for level in range(self.levels - 1, 0, -1):
            above = self._add_up(self._shares[level] * final)
            fused.insert(0, final - self._repeat(above, level))
            final = above
        fused.insert(0, final)
        found: list[FloatArray] = []
        for level in range(self.levels - 1):
            own = self._below[level] / (1 + self._below[level])
            found.append(own * fused[level])
            fused[level + 1] += self._repeat((1 - own) * fused[level], level + 1)
        return np.concatenate([*found, fused[-1]])

    @cached_property
    def _variances(self) -> list[FloatArray]:
        """Variance of each node's count given the nodes below it, in units of the noise's."""
        found = [np.ones(self.leaves)]
        for _ in self.sizes[1:]:
            below = self._add_up(found[0])
            found.insert(0, below / (1 + below))
        return found

    @cached_property
    def _below(self) -> list[FloatArray]:
        """Variance of the sum of each inner node's children, level by level."""
        return [self._add_up(variances) for variances in self._variances[1:]]

    @cached_property
    def _shares(self) -> list[FloatArray]:
        """Part of a gap between parent and children that each child takes; none at the top."""
        own = self._variances
        pairs = enumerate(zip(own[1:], self._below, strict=True), start=1)
        shares = [one / self._repeat(below, level) for level, (one, below) in pairs]
        return [np.zeros(0), *shares]

    def _split(self, nodes: FloatArray) -> list[FloatArray]:
        return np.split(nodes, np.cumsum(self.sizes)[:-1])

    def _add_up(self, level: NDArray[Number]) -> NDArray[Number]:
        """Add up the children of every node."""
        sums: NDArray[Number] = np.add.reduceat(level, np.arange(0, level.size, self.branching))
        return sums

    def _repeat(self, values: FloatArray, level: int) -> FloatArray:
        """Return for every node of `level` the value of its parent."""
        return np.repeat(values, self.branching)[: self.sizes[level]]


def _seem_empty(counts: FloatArray, variances: FloatArray) -> NDArray[np.bool_]:
    """Find stretches of low counts whose sum is low, too: noise alone may have made them."""
    low = counts < _LOW * np.sqrt(variances)
    edges = np.flatnonzero(np.diff(low.astype(np.int64), prepend=0, append=0))
    empty = np.zeros(counts.size, dtype=np.bool_)
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        together = float(counts[start:stop].sum())
        empty[start:stop] = together < _LOW_TOGETHER * sqrt(float(variances[start:stop].sum()))
    return empty


def _share_out(families: FloatArray, totals: FloatArray) -> FloatArray:
    """Project each row onto counts that are not negative and add up to its total.

    The nearest such counts are max(count - level, 0), as in `project_nonnegative`.
    """
    falling = -np.sort(-families, axis=1)
    sums = np.cumsum(np.where(np.isfinite(falling), falling, 0.0), axis=1)
    levels = (sums - totals[:, None]) / np.arange(1, families.shape[1] + 1)
    kept = np.maximum((falling > levels).sum(axis=1), 1)
    level = np.take_along_axis(levels, kept[:, None] - 1, axis=1)
    return np.asarray(np.where(totals[:, None] > 0, np.maximum(families - level, 0.0), 0.0))


@lru_cache(maxsize=256)
def count_hierarchy(leaves: int, branching: int) -> CountHierarchy:
    """Build the tree, or take it from those built before."""
    return CountHierarchy(leaves, branching)


def best_branching(leaves: int) -> int:
    """Choose how wide the tree is: of the fewest levels that do, but at least two, even ones.

    Measured on marginals of many shapes (docs/methods/marginals.md), even levels do better than
    a fixed width, which often leaves a top level of very few nodes.

    >>> best_branching(1000), best_branching(4096), best_branching(100_000)
    (32, 16, 18)
    """
    levels = 2
    while WIDEST**levels < leaves:
        levels += 1
    width = 2
    while width**levels < leaves:
        width += 1
    return width
