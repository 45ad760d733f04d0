"""How many complete records lie in each occupied cell of cuts through several columns."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

from dpublish.aggregates.cells import Lookups, cell_keys, look_up, tabulate
from dpublish.aggregates.kernel import Kernel
from dpublish.aggregates.sparse_counts import MAX_DOMAIN, Tally
from dpublish.data.axis import Axis
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter


@dataclass(frozen=True)
class CutCounts(Kernel[list[Tally]]):
    """Kernel: count the records in every occupied cell of every set of axes.

    An axis may be a level of a taxonomy or a cut through it.  A record that the missing rule
    of one of `columns` leaves out is in no cell of any set: all sets count the same records.
    Memory grows with the occupied cells, of which there are no more than records.

    Attributes:
        sets: Sets of axes; the cells of a set are numbered with its last axis fastest.
        columns: All columns that a record must have.

    >>> import numpy as np
    >>> from dpublish.data.cut import cut_axis
    >>> from dpublish.data.schema import column
    >>> work = column("work", "category", taxonomy={"Paid": ["Private", "State"], "Unpaid": {}})
    >>> kernel = CutCounts(((cut_axis(work, [0, 2]),),), ("work",))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(3, codes={"work": np.array([0, 1, 1], dtype=np.uint8)}), answer)
    >>> answer[0].compact()
    OccupiedCells(keys=array([0]), counts=array([3]))
    """

    sets: tuple[tuple[Axis, ...], ...]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if any(prod(shape) >= MAX_DOMAIN for shape in self.shapes):
            raise InvalidParameter(
                "the columns have 2**62 cells or more; take fewer columns or coarser cells"
            )
        every = {axis for axes in self.sets for axis in axes}
        if len({(axis.column, axis.level) for axis in every}) < len(every):
            raise InvalidParameter("the sets cut a column in two ways; cut it in one")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        used = (axis.column for axes in self.sets for axis in axes)
        return tuple(dict.fromkeys((*self.columns, *used)))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The number of cells along each axis of each set."""
        return tuple(tuple(axis.size for axis in axes) for axes in self.sets)

    @cached_property
    def _lookups(self) -> Lookups:
        return tabulate(axis for axes in self.sets for axis in axes)

    def zero(self) -> list[Tally]:
        """Return the answer for no records: a tally of occupied cells for each set."""
        return [Tally() for _ in self.sets]

    def add(self, batch: Batch, out: list[Tally]) -> None:
        """Add the records of `batch` to `out`."""
        cells = look_up(batch, self._lookups)
        for axes, shape, tally in zip(self.sets, self.shapes, out, strict=True):
            found = [cells[axis.column, axis.level] for axis in axes]
            tally.add(cell_keys(found, shape, len(batch)))

    def merge(self, out: list[Tally], other: list[Tally]) -> None:
        """Add another partial answer to `out`."""
        for mine, more in zip(out, other, strict=True):
            mine.merge(more)

    @property
    def record_change(self) -> int:
        """The number of sets: a record lies in one cell of each, and adds one to it."""
        return len(self.sets)
