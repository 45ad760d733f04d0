"""How many records lie in each cell: several sets of columns, at any levels, in one pass."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import ColumnSet, Lookups, cell_keys, find_axes, look_up, tabulate
from dpublish.aggregates.kernel import ArrayKernel, unbounded
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, Neighbors, ReplaceRecord

MAX_CELLS = 2**27


@dataclass(frozen=True)
class Counts(ArrayKernel):
    """Kernel: count the records in every cell of every set.

    Attributes:
        schema: What is publicly known about the records.
        sets: Sets of columns, each with its level (None: the finest).  The empty set has one
            cell, which counts all records.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),))
    >>> kernel = Counts(schema, ((("sex", None),), ()))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, codes={"sex": np.array([0, 1, 0], dtype=np.uint8)}), answer)
    >>> kernel.split(answer)
    [array([2, 1]), array(3)]
    """

    remedy: ClassVar[str] = "count single records, or select from the counts instead"

    schema: Schema
    sets: tuple[ColumnSet, ...]

    def __post_init__(self) -> None:
        if not self.sets:
            raise InvalidParameter("counts need at least one set of columns")
        if self.size > MAX_CELLS:
            raise InvalidParameter(
                f"{self.size:,} cells are too many to count one by one (at most {MAX_CELLS:,}); "
                "take fewer columns or coarser levels, or count sparsely"
            )

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys(name for one in self.sets for name, _ in one))

    @property
    def levels(self) -> dict[str, int]:
        """Levels on which rows of a unit are distinguished; the finest, if sets differ."""
        return {axis.column: axis.level for axis in self.axes[0]} if len(self.sets) == 1 else {}

    @cached_property
    def axes(self) -> tuple[tuple[Axis, ...], ...]:
        """The axes of each set."""
        return tuple(find_axes(self.schema, one) for one in self.sets)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The number of cells along each axis of each set."""
        return tuple(tuple(axis.size for axis in axes) for axes in self.axes)

    @cached_property
    def size(self) -> int:
        """Number of cells of all sets together; the answer lists them one set after the other."""
        return sum(map(prod, self.shapes))

    @cached_property
    def _lookups(self) -> Lookups:
        return tabulate(axis for axes in self.axes for axis in axes)

    def add(self, batch: Batch, out: NDArray[np.int64]) -> None:
        """Add the records of `batch` to `out`."""
        cells = look_up(batch, self._lookups)
        start = 0
        for axes, shape in zip(self.axes, self.shapes, strict=True):
            stop = start + prod(shape)
            keys = cell_keys([cells[axis.column, axis.level] for axis in axes], shape, len(batch))
            np.add.at(out[start:stop], keys, 1)  # as fast as bincount, and needs no second array
            start = stop

    def split(self, answer: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Cut an answer into one array per set, shaped by its axes."""
        cuts = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        parts = np.split(answer, cuts)
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    @property
    def record_change(self) -> int:
        """The number of sets: a record lies in one cell of each, and adds one to it."""
        return len(self.sets)

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return by how much the changes of two counts differ at most (R).

        Adding a record raises some counts by 1 and lowers none.  So does adding a unit if
        there is a single set: the table shows each of its cells once per unit.
        """
        if isinstance(neighbors, AddRemoveRecord):
            return 1
        if isinstance(neighbors, ReplaceRecord):
            return 2
        if isinstance(neighbors, AddRemoveUnit) and len(self.sets) == 1:
            return 1
        raise unbounded(neighbors, "count one set of columns at a time")
