"""How many records of each group lie in each leaf: several columns in one pass."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpublish.aggregates.cells import cell_keys, unbounded
from dpublish.aggregates.counts import MAX_CELLS
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import IntArray


@dataclass(frozen=True, eq=False)
class Grouping:
    """A group for every cell of some columns; fixed before any record is looked at.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns whose leaves make the cells, the last counting fastest.
        groups_of_cells: The group of each cell: 0, 1, ..., all of them used.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),))
    >>> grouping = Grouping(schema, ("sex",), np.array([1, 0]))
    >>> grouping.of(Batch(3, codes={"sex": np.array([0, 0, 1])}))
    array([1, 1, 0])
    """

    schema: Schema
    columns: tuple[str, ...]
    groups_of_cells: IntArray

    def __post_init__(self) -> None:
        cells = int(np.prod(self.shape, dtype=np.int64))
        if self.groups_of_cells.shape != (cells,) or self.groups_of_cells.min(initial=0) < 0:
            raise InvalidParameter(f"a grouping needs a group for each of its {cells:,} cells")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of leaves of each column."""
        return tuple(self.schema[name].size for name in self.columns)

    @cached_property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.groups_of_cells.max()) + 1

    def of(self, batch: Batch) -> IntArray:
        """Find the group of each record from its own codes and nothing else."""
        codes = [batch.codes(name) for name in self.columns]
        return self.groups_of_cells.take(cell_keys(codes, self.shape, len(batch)))


@dataclass(frozen=True, eq=False)
class GroupMarginals:
    """Kernel: count the records of every group in every leaf of every one of `columns`.

    Only records that have all columns, also those of the grouping, are counted.
    """

    grouping: Grouping
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns or self.size > MAX_CELLS:
            raise InvalidParameter(
                f"marginals of groups need at least one column and at most {MAX_CELLS:,} counts; "
                "take fewer columns or coarser bins"
            )

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*self.grouping.columns, *self.columns)))

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers: none."""
        return ()

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Number of leaves of each column."""
        return tuple(self.grouping.schema[name].size for name in self.columns)

    @property
    def size(self) -> int:
        """Number of all counts."""
        return self.grouping.groups * sum(self.leaves)

    def zero(self) -> IntArray:
        """Make the answer for no records."""
        return np.zeros(self.size, dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        groups = self.grouping.of(batch)
        for name, counts in zip(self.columns, self.split(out), strict=True):
            np.add.at(counts, (groups, batch.codes(name)), 1)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other

    def split(self, answer: IntArray) -> list[IntArray]:
        """Show an answer as one array per column: a row for each group, a count per leaf."""
        groups = self.grouping.groups
        cuts = np.cumsum(self.leaves)[:-1] * groups
        parts = zip(np.split(answer, cuts), self.leaves, strict=True)
        return [part.reshape(groups, leaves) for part, leaves in parts]

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Say how much all counts together change at most, in sum (L1).

        A record lies in one group, and there in one leaf of each column.
        """
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "count single records")
        return len(self.columns)
