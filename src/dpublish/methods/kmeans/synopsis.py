"""What is published besides centers: a noisy grid over the box, or a tree of noisy marginals.

Both remain to be clustered, drawn from and counted in.  Whatever is computed from their noisy
counts is free.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.projection import project_nonnegative
from dpublish.core.noisy_size import NoisySize, estimate_total
from dpublish.core.released import is_same
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.types import FloatArray, IntArray

ROOT = -1
"""The parent of the first column of a tree: none."""


@dataclass(frozen=True, eq=False)
class GridSynopsis:
    """Noisy counts of all cells of an equal grid over the box, in row-major order.

    Attributes:
        sizes: Number of cells along each column of the box.
        counts: Noisy counts as they were drawn; they may be negative.
        rate: Rate of their noise (two-sided geometric).
        records: Noisy number of records, if it was paid for apart from the counts.

    >>> grid = GridSynopsis((2, 1), np.array([5, -2]), Fraction(1, 2))
    >>> grid.cell_centers().tolist(), grid.estimates().tolist()
    ([[-0.5, 0.0], [0.5, 0.0]], [3.0, 0.0])
    """

    sizes: tuple[int, ...]
    counts: IntArray
    rate: Fraction
    records: NoisySize | None = None

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        if not self.sizes:
            raise InvalidParameter("a grid has at least one column")
        for size in self.sizes:
            require_count(size=size)
        if self.counts.dtype != np.int64 or self.counts.shape != (prod(self.sizes),):
            raise InvalidParameter("a grid has an integer count for every cell")
        require_rate(self.rate)
        if self.records is not None:
            require_rate(self.records.rate)
            if type(self.records.value) is not int:
                raise InvalidParameter("the noisy number of records must be an integer")

    def __eq__(self, other: object) -> bool:
        return is_same(self, other) if isinstance(other, GridSynopsis) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.counts.size

    @cached_property
    def total(self) -> float:
        """Estimate the number of records, at least 1, from all that was published of it."""
        if self.records is None:
            return max(float(self.counts.sum()), 1.0)
        return max(estimate_total(self.counts, self.rate, self.records), 1.0)

    @property
    def total_deviation(self) -> float:
        """Standard deviation of the noise of `total`."""
        summed = self.size * noise_variance(self.rate)
        if self.records is None:
            return sqrt(summed)
        other = noise_variance(self.records.rate)
        return sqrt(summed * other / (summed + other)) if summed + other else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of one count."""
        return sqrt(noise_variance(self.rate))

    def lines(self, column: int) -> FloatArray:
        """Return the middles of the cells along one column, between -1 and 1."""
        size = self.sizes[column]
        return (2 * np.arange(size) + 1) / size - 1

    def cell_centers(self) -> FloatArray:
        """Return the middle of every cell, a row of coordinates between -1 and 1 for each."""
        lines = [self.lines(column) for column in range(len(self.sizes))]
        return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(self.sizes))

    def estimates(self) -> FloatArray:
        """Find the non-negative counts nearest to the noisy ones that add up to `total`."""
        return project_nonnegative(self.counts, self.total)

    def plane(self, first: int, second: int) -> IntArray:
        """Add up the noisy counts by two columns of the box."""
        others = tuple(c for c in range(len(self.sizes)) if c not in (first, second))
        sums = np.asarray(self.counts.reshape(self.sizes).sum(axis=others))
        return sums if first < second else sums.T


@dataclass(frozen=True, eq=False)
class MarginalTree:
    """Noisy counts of pairs of columns that form a tree.

    It suits many columns, where a grid over all of them would have too many cells: every
    column but the first has one table of counts with the column above it.  In its own table a
    column has fine bins, the column above it coarse ones, each made of whole fine bins.

    Attributes:
        order: Numbers of the columns, each after the one above it.
        parents: For each of `order` the number of the column above it; `ROOT` for the first.
        root: Noisy counts of the first column by fine bin.
        counts: Noisy counts [further column, coarse bin of its parent, fine bin of its own].
        rate: Rate of the noise of each count.
        records: The noisy number of records.
    """

    order: tuple[int, ...]
    parents: tuple[int, ...]
    root: IntArray
    counts: IntArray
    rate: Fraction
    records: NoisySize

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.rate)
        require_rate(self.records.rate)
        count = len(self.order)
        if sorted(self.order) != list(range(count)) or len(self.parents) != count or count < 2:
            raise InvalidParameter("a tree lists two or more columns, each once")
        above = [p in self.order[:i] for i, p in enumerate(self.parents)]
        if self.parents[0] != ROOT or not all(above[1:]):
            raise InvalidParameter("a tree lists each column after the one above it")
        if self.counts.dtype != np.int64 or self.counts.ndim != 3 or self.root.dtype != np.int64:
            raise InvalidParameter("a tree has integer counts for each of its columns")
        if self.root.shape != (self.bins,) or len(self.counts) != count - 1:
            raise InvalidParameter("a tree has counts for each of its columns")
        if not self.coarse_bins or self.bins % self.coarse_bins:
            raise InvalidParameter("coarse bins must be made of whole fine ones")

    def __eq__(self, other: object) -> bool:
        return is_same(self, other) if isinstance(other, MarginalTree) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def bins(self) -> int:
        """Number of equal fine bins of each column."""
        return int(self.counts.shape[2])

    @property
    def coarse_bins(self) -> int:
        """Number of equal coarse bins of each column."""
        return int(self.counts.shape[1])

    @property
    def total(self) -> float:
        """Estimate the number of records, at least 1."""
        return max(float(self.records.value), 1.0)

    @cached_property
    def tables(self) -> FloatArray:
        """Counts that could be real: not negative, adding up to the number of records."""
        return np.stack([project_nonnegative(one, self.total) for one in self.counts])

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw points of the box from -1 to 1, uniformly within each cell.

        The first column comes from its counts, each further one from those with the column
        above it.
        """
        found = np.zeros((len(self.order), size), dtype=np.int64)
        first = project_nonnegative(self.root, self.total)
        found[self.order[0]] = rng.choice(self.bins, size, p=_shares(first))
        merged = self.bins // self.coarse_bins
        for edge, (child, parent) in enumerate(zip(self.order[1:], self.parents[1:], strict=True)):
            limits = np.cumsum([_shares(row) for row in self.tables[edge]], axis=1)
            picked = limits[found[parent] // merged] < rng.random(size)[:, None]
            found[child] = np.minimum(picked.sum(axis=1), self.bins - 1)
        points = (2 * (found + rng.random(found.shape)) / self.bins - 1).T
        return np.asarray(np.clip(points, -1, 1))


def _shares(counts: FloatArray) -> FloatArray:
    """Turn counts into shares; evenly, if nothing was counted."""
    total = counts.sum()
    return counts / total if total > 0 else np.full(counts.size, 1 / counts.size)
