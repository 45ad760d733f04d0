"""How many records lie in each cell of a domain too large to list: occupied cells only."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import ColumnSet, Lookups, cell_keys, find_axes, look_up, tabulate
from dpublish.aggregates.kernel import Kernel
from dpublish.data.axis import Axis
from dpublish.data.engines.source import within_memory
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, Neighbors

MAX_DOMAIN = 2**62
_PENDING_KEYS = 1 << 20


class OccupiedCells(NamedTuple):
    """Occupied cells in increasing order, and the number of records in each."""

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]


class Tally:
    """A growing count of occupied cells; private, for an empty cell reveals as much as a full one.

    >>> tally = Tally()
    >>> tally.add(np.array([7, 3, 7]))
    >>> tally.compact()
    OccupiedCells(keys=array([3, 7]), counts=array([1, 2]))
    """

    def __init__(self) -> None:
        nothing = np.empty(0, dtype=np.int64)
        self._cells = OccupiedCells(nothing, nothing)
        self._pending: list[OccupiedCells] = []
        self._waiting = 0  # keys in all that is pending

    def __repr__(self) -> str:
        return "Tally()"

    def add(self, keys: NDArray[Any]) -> None:
        """Count some more records, each in the cell of its key."""
        cells, counts = np.unique(keys, return_counts=True)
        self._append(OccupiedCells(cells.astype(np.int64), counts.astype(np.int64)))

    def merge(self, other: "Tally") -> None:
        """Add the counts of other records."""
        self._append(other.compact())

    def compact(self) -> OccupiedCells:
        """Merge all that was counted; memory stays within a few times the occupied cells."""
        if self._pending:
            parts = [self._cells, *self._pending]
            self._cells = within_memory(lambda: _merge(parts))
            self._pending, self._waiting = [], 0
        return self._cells

    def _append(self, cells: OccupiedCells) -> None:
        if not cells.keys.size:
            return
        self._pending.append(cells)
        self._waiting += cells.keys.size
        if self._waiting > max(_PENDING_KEYS, self._cells.keys.size):
            self.compact()


def _merge(parts: Sequence[OccupiedCells]) -> OccupiedCells:
    keys = np.concatenate([part.keys for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return OccupiedCells(keys[starts], np.add.reduceat(counts, starts))


@dataclass(frozen=True)
class SparseCounts(Kernel[Tally]):
    """Kernel: count the records in every occupied cell of a set of columns.

    Attributes:
        schema: What is publicly known about the records.
        columns: The columns, each with its level (None: the finest).

    >>> from dpublish.data.schema import column
    >>> columns = [column(name, "integer", bounds=[0, top]) for name, top in (("a", 9), ("b", 4))]
    >>> kernel = SparseCounts(Schema(tuple(columns)), (("a", None), ("b", None)))
    >>> kernel.domain_size, [cells.tolist() for cells in kernel.decode(np.array([7, 49]))]
    (50, [[1, 9], [2, 4]])
    """

    remedy: ClassVar[str] = "count single records, or select from the counts instead"

    schema: Schema
    columns: ColumnSet

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidParameter("sparse counts need at least one column")
        if self.domain_size >= MAX_DOMAIN:
            raise InvalidParameter(
                "the columns have 2**62 cells or more; take fewer columns or coarser levels"
            )

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(name for name, _ in self.columns)

    @property
    def levels(self) -> dict[str, int]:
        """Levels on which rows of a unit are distinguished."""
        return {axis.column: axis.level for axis in self.axes}

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the columns."""
        return find_axes(self.schema, self.columns)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def domain_size(self) -> int:
        """Number of cells, occupied or not; public."""
        return prod(self.shape)

    @cached_property
    def _lookups(self) -> Lookups:
        return tabulate(self.axes)

    def zero(self) -> Tally:
        """Return the answer for no records."""
        return Tally()

    def add(self, batch: Batch, out: Tally) -> None:
        """Add the records of `batch` to `out`."""
        cells = look_up(batch, self._lookups)
        out.add(cell_keys(list(cells.values()), self.shape, len(batch)))

    def merge(self, out: Tally, other: Tally) -> None:
        """Add another partial answer to `out`."""
        out.merge(other)

    def decode(self, keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Turn keys of cells into the position along each axis."""
        positions = []
        for size in reversed(self.shape):
            keys, position = np.divmod(keys, size)
            positions.append(position)
        return positions[::-1]

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return by how much the changes of two counts differ at most (R).

        Adding a record or a unit raises some counts by 1 and lowers none: the table shows
        each cell once per unit.
        """
        if isinstance(neighbors, (AddRemoveRecord, AddRemoveUnit)):
            return 1
        return self.sensitivity(neighbors)
