"""A tree of noisy marginals: columns of a box, each tied to one other by counts of the two.

It is a synopsis for many columns, where a grid over all of them would have too many cells:
every column but the first has one table of counts with the column above it.  In its own table
a column has fine bins, the column above it coarse ones, each made of whole fine bins.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.projection import project_nonnegative
from dpublish.core.noisy_size import NoisySize
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.types import FloatArray

ROOT = -1


@dataclass(frozen=True, eq=False)
class MarginalTree:
    """Noisy counts of pairs of columns that hang together as a tree.

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
    root: NDArray[np.int64]
    counts: NDArray[np.int64]
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
            raise InvalidParameter("a tree has whole counts for each of its columns")
        if self.root.shape != (self.bins,) or len(self.counts) != count - 1:
            raise InvalidParameter("a tree has counts for each of its columns")
        if not self.coarse_bins or self.bins % self.coarse_bins:
            raise InvalidParameter("coarse bins must be made of whole fine ones")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MarginalTree)
            and (self.order, self.parents, self.rate, self.records)
            == (other.order, other.parents, other.rate, other.records)
            and np.array_equal(self.root, other.root)
            and np.array_equal(self.counts, other.counts)
        )

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
        """Draw points of the box from -1 to 1, spread evenly within each cell.

        The first column comes from its counts, each further one from those with the column
        above it.
        """
        places = np.zeros((len(self.order), size), dtype=np.int64)
        first = project_nonnegative(self.root, self.total)
        places[self.order[0]] = rng.choice(self.bins, size, p=_shares(first))
        merged = self.bins // self.coarse_bins
        for edge, (child, parent) in enumerate(zip(self.order[1:], self.parents[1:], strict=True)):
            limits = np.cumsum([_shares(row) for row in self.tables[edge]], axis=1)
            picked = limits[places[parent] // merged] < rng.random(size)[:, None]
            places[child] = np.minimum(picked.sum(axis=1), self.bins - 1)
        points = (2 * (places + rng.random(places.shape)) / self.bins - 1).T
        return np.asarray(np.clip(points, -1, 1))


def _shares(counts: FloatArray) -> FloatArray:
    """Turn counts into shares; evenly, if nothing was counted."""
    total = counts.sum()
    return counts / total if total > 0 else np.full(counts.size, 1 / counts.size)
