"""How scores of columns go together inside groups: products added up over all records."""

from dataclasses import dataclass

import numpy as np

from dpublish.aggregates.cells import unbounded
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.kernel_group_marginals import Grouping
from dpublish.methods.dpcopula.kernel_score_products import LARGEST_SCORE
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import IntArray

_PART = 1 << 13  # records multiplied at once: they stay in the cache, and sums below 2**53


@dataclass(frozen=True, eq=False)
class GroupScoreProducts:
    """Kernel: score each record's leaves as its own group does, and add up the products.

    Attributes:
        grouping: The group of each record, by its own codes.
        columns: Columns that have scores.
        scores: For each of them a row of whole scores for each group, one for every leaf code,
            the special ones included.

    The answer is the symmetric matrix of all sums of products, over the records of all groups
    together.  They are exact: products of floats stand for integers below 2**53.
    """

    grouping: Grouping
    columns: tuple[str, ...]
    scores: tuple[IntArray, ...]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.columns):
            raise InvalidParameter("there must be scores for each column")
        for name, table in zip(self.columns, self.scores, strict=True):
            shape = (self.grouping.groups, self.grouping.schema[name].size)
            if table.dtype.kind not in "iu" or table.shape != shape:
                raise InvalidParameter(f"column {name!r} needs a whole score for each group's leaf")
            if int(np.abs(table).max(initial=0)) > LARGEST_SCORE:
                raise InvalidParameter(f"scores of {name!r} must be at most {LARGEST_SCORE:,}")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*self.grouping.columns, *self.columns)))

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers: none."""
        return ()

    def zero(self) -> IntArray:
        """Make the answer for no records."""
        return np.zeros((len(self.columns), len(self.columns)), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        tables = [table.astype(np.float64) for table in self.scores]
        for part in batch.cut(_PART):
            groups = self.grouping.of(part)
            rows = np.empty((len(self.columns), len(part)))
            for row, name, table in zip(rows, self.columns, tables, strict=True):
                row[:] = table[groups, part.codes(name)]
            out += (rows @ rows.T).astype(np.int64)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Say how much the products of all pairs change at most, in sum (L1).

        A record adds to each pair the product of two scores of its own group.  Within a group
        its leaves are free, so the sum is largest where every score is the farthest from 0;
        and the record may be in any group.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "multiply scores of single records")
        return max(self._reach(group) for group in range(self.grouping.groups))

    def _reach(self, group: int) -> int:
        farthest = [int(np.abs(table[group]).max(initial=0)) for table in self.scores]
        # Twice the sum over pairs is the square of the sum without the squares.
        return (sum(farthest) ** 2 - sum(score**2 for score in farthest)) // 2
