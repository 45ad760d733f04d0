"""How records lie in the plane of every two columns of a box, in one pass."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from dpublish.data.box import UNIT, Box
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import IntArray

MOST_CELLS = 1 << 24


@dataclass(frozen=True)
class PairCounts:
    """Kernel: count records by equal bins of every two columns of a box.

    The answer is [pair, bin of the earlier column, bin of the later one].
    """

    box: Box
    bins: int

    def __post_init__(self) -> None:
        if len(self.pairs) * self.bins**2 > MOST_CELLS:
            raise InvalidParameter("there are too many columns to look at every two of them")

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Numbers of the columns of each pair, the earlier first."""
        return tuple(combinations(range(self.box.dimensions), 2))

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes: none."""
        return ()

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return self.box.names

    def zero(self) -> IntArray:
        """Make the answer for no records."""
        return np.zeros((len(self.pairs), self.bins, self.bins), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        # Integers: the bin of a record is the same in whatever batch it comes.
        places = np.minimum(
            (self.box.lattice(batch) + UNIT) * self.bins // (2 * UNIT), self.bins - 1
        )
        for number, (first, second) in enumerate(self.pairs):
            keys = places[first] * self.bins + places[second]
            counted = np.bincount(keys, minlength=self.bins**2)
            out[number] += counted.reshape(self.bins, self.bins)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Say how much the counts of one pair change at most, in sum: a record is in one cell."""
        if not isinstance(neighbors, AddRemoveRecord):
            raise InvalidParameter("pairs are counted for single records added or removed")
        return 1
