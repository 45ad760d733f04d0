"""A noisy grid over the box of the records: what remains to be clustered, drawn and counted.

The box is cut into equal cells along each column.  Whatever is computed from the noisy counts
is free.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.projection import project_nonnegative
from dpublish.core.noisy_size import NoisySize, estimate_total
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.types import FloatArray


@dataclass(frozen=True, eq=False)
class GridSynopsis:
    """Noisy counts of all cells of an equal grid, in row-major order.

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
    counts: NDArray[np.int64]
    rate: Fraction
    records: NoisySize | None = None

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        if not self.sizes:
            raise InvalidParameter("a grid has at least one column")
        for size in self.sizes:
            require_count(size=size)
        if self.counts.dtype != np.int64 or self.counts.shape != (prod(self.sizes),):
            raise InvalidParameter("a grid has a whole count for every cell")
        require_rate(self.rate)
        if self.records is not None:
            require_rate(self.records.rate)
            if type(self.records.value) is not int:
                raise InvalidParameter("the noisy number of records must be an integer")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GridSynopsis)
            and (self.sizes, self.rate, self.records) == (other.sizes, other.rate, other.records)
            and np.array_equal(self.counts, other.counts)
        )

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
        """Give the middles of the cells along one column, between -1 and 1."""
        size = self.sizes[column]
        return (2 * np.arange(size) + 1) / size - 1

    def cell_centers(self) -> FloatArray:
        """Give the middle of every cell, a row of coordinates between -1 and 1 for each."""
        lines = [self.lines(column) for column in range(len(self.sizes))]
        return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(self.sizes))

    def estimates(self) -> FloatArray:
        """Find the non-negative counts nearest to the noisy ones that add up to `total`."""
        return project_nonnegative(self.counts, self.total)

    def plane(self, first: int, second: int) -> NDArray[np.int64]:
        """Add up the noisy counts by two columns of the box."""
        others = tuple(c for c in range(len(self.sizes)) if c not in (first, second))
        sums = np.asarray(self.counts.reshape(self.sizes).sum(axis=others))
        return sums if first < second else sums.T
