"""What is added up over records for all measures of all groups, in one pass.

Every number is an exact integer.  A column's values are brought to a public lattice between its
bounds; a record without a value adds nothing there, and still counts elsewhere.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import ColumnSet, Lookups, cell_keys, find_axes, look_up, tabulate
from dpublish.aggregates.kernel import ArrayKernel, unbounded
from dpublish.data.axis import Axis
from dpublish.data.batch import BATCH_ROWS
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

FINENESS = 1 << 26
"""Steps of a lattice between the bounds: far below the noise, and 2^34 records fit an integer."""
_REMEDY = "give statistics single records, or bound the records of a person (contribution)"
Keys = NDArray[np.integer]


@dataclass(frozen=True)
class Bounds:
    """The public bounds of a column, and whether its values are integers."""

    low: float
    high: float
    whole: bool

    @classmethod
    def of(cls, column: NumberColumn) -> "Bounds":
        """Take the bounds of a column."""
        low, high = column.bounds
        return cls(float(low), float(high), column.partition.whole)

    @property
    def width(self) -> float:
        """The distance between the bounds."""
        return self.high - self.low

    @property
    def largest(self) -> float:
        """The largest size of a value."""
        return max(abs(self.low), abs(self.high))


# --- Parts of the answer --------------------------------------------------------------------


class Part(ABC):
    """Numbers of one sort for every group: some integers each, which add up over records.

    Subclasses are frozen dataclasses.
    """

    column: str | None

    @property
    @abstractmethod
    def rows(self) -> int:
        """Numbers of each group."""

    @property
    @abstractmethod
    def record_change(self) -> int:
        """The most by which one record changes all numbers of the part, in sum (L1)."""

    @abstractmethod
    def add(self, groups: Keys, values: FloatArray, out: IntArray) -> None:
        """Add records with values, each in its group, to `out`: numbers by groups."""

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return the most by which all numbers together can change, in sum (L1)."""
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, _REMEDY)
        return self.record_change


@dataclass(frozen=True)
class GroupCounts(Part):
    """How many records each group has."""

    column: None = None

    @property
    def rows(self) -> int:
        """Numbers of each group."""
        return 1

    @property
    def record_change(self) -> int:
        """A record adds 1 to one group."""
        return 1

    def add(self, groups: Keys, values: FloatArray, out: IntArray) -> None:
        """Add records, each in its group."""
        out[0] += np.bincount(groups, minlength=out.shape[1])


@dataclass(frozen=True)
class GroupSums(Part):
    """The sum of a column's values in each group, in steps of `unit`."""

    column: str
    bounds: Bounds

    @property
    def is_exact(self) -> bool:
        """Whether values are integers that fit, and are added up as they are."""
        return self.bounds.whole and self.bounds.largest <= FINENESS

    @property
    def unit(self) -> float:
        """Size of a step."""
        return 1.0 if self.is_exact else self.bounds.largest / FINENESS

    @property
    def rows(self) -> int:
        """Numbers of each group."""
        return 1

    @property
    def record_change(self) -> int:
        """A value is at most as large as the larger bound."""
        return int(self.bounds.largest) if self.is_exact else FINENESS

    def add(self, groups: Keys, values: FloatArray, out: IntArray) -> None:
        """Add records with values, each in its group."""
        steps = values
        if not self.is_exact:
            scaled = np.rint(values * (FINENESS / self.bounds.largest))
            steps = np.clip(scaled, -float(FINENESS), float(FINENESS))
        out[0] += _sums(groups, steps, out.shape[1])


@dataclass(frozen=True)
class GroupMoments(Part):
    """Sums of powers of a column in each group, such that one record costs as little as a count.

    Let t be a value's position between the bounds, from 0 to 1.  With order 1 a record adds
    (1 - t, t) to two sums, with order 2 it adds ((1 - t)^2, 2 t (1 - t), t^2) to three, in steps
    of 1 / `scale`.  These are never negative and add up to `scale` exactly, whatever t is: that
    is all a record changes, though count, sum and sum of squares all follow from them.
    """

    column: str
    bounds: Bounds
    order: Literal[1, 2]

    @property
    def is_exact(self) -> bool:
        """Whether values are integers whose powers fit, so that nothing is rounded."""
        return self.bounds.whole and self.bounds.width**self.order <= FINENESS

    @property
    def scale(self) -> int:
        """What the numbers of one record add up to."""
        if not self.is_exact:
            return FINENESS
        return self._powers * self._steps

    @property
    def _steps(self) -> int:
        return FINENESS // self._powers

    @property
    def _powers(self) -> int:
        width = int(self.bounds.width)
        return width if self.order == 1 else width * width

    @property
    def rows(self) -> int:
        """Numbers of each group."""
        return self.order + 1

    @property
    def record_change(self) -> int:
        """The numbers of one record add up to `scale`, none is negative."""
        return self.scale

    def add(self, groups: Keys, values: FloatArray, out: IntArray) -> None:
        """Add records with values, each in its group."""
        for number, powers in enumerate(self.powers(values)):
            out[number] += _sums(groups, powers, out.shape[1])

    def powers(self, values: FloatArray) -> tuple[FloatArray, ...]:
        """Return what each record adds, as exact integers."""
        above, below = values - self.bounds.low, self.bounds.high - values
        if self.is_exact:
            if self.order == 1:
                return below * self._steps, above * self._steps
            first, last = below * below * self._steps, above * above * self._steps
            return first, float(self.scale) - first - last, last
        part = np.clip(above * (1 / self.bounds.width), 0.0, 1.0)
        if self.order == 1:
            last = np.rint(part * FINENESS)
            return FINENESS - last, last
        rest = 1.0 - part
        # Rounded down, the outer two never add up to more than the whole.
        first, last = np.floor(rest * rest * FINENESS), np.floor(part * part * FINENESS)
        return first, FINENESS - first - last, last


@dataclass(frozen=True)
class GroupCells(Part):
    """How many values of a column lie in each of `cells` equal public cells, in each group.

    Integers have a cell each if there are enough cells.
    """

    column: str
    bounds: Bounds
    cells: int

    @property
    def rows(self) -> int:
        """Numbers of each group."""
        return self.cells

    @property
    def record_change(self) -> int:
        """A record lies in one cell of one group."""
        return 1

    @cached_property
    def edges(self) -> FloatArray:
        """Edges of the cells; an integer is where its cell starts."""
        return np.linspace(self.bounds.low, self.bounds.low + self._span, self.cells + 1)

    @property
    def _span(self) -> float:
        return self.bounds.width + (1 if self.bounds.whole else 0)

    def locate(self, values: FloatArray) -> IntArray:
        """Find the cell of each value."""
        scaled = np.floor((values - self.bounds.low) * (self.cells / self._span))
        return np.clip(scaled, 0, self.cells - 1).astype(np.int64)

    def add(self, groups: Keys, values: FloatArray, out: IntArray) -> None:
        """Add records with values, each in its group."""
        keys = self.locate(values) * out.shape[1]
        keys += groups
        np.add.at(out.reshape(-1), keys, 1)


def _sums(groups: Keys, steps: FloatArray, size: int) -> IntArray:
    # A batch adds up to at most 2^42, so these floats are exact integers.
    return np.bincount(groups, weights=steps, minlength=size).astype(np.int64)


# --- All parts in one pass ------------------------------------------------------------------


@dataclass(frozen=True)
class GroupStatistics(ArrayKernel):
    """Kernel: add up all parts of all groups at once.

    Attributes:
        schema: What is publicly known about the records.
        by: Columns that make the groups, each with its level (None: the finest).
        parts: What is added up in each group.

    A record that lacks a group column is left out; one without a value of a measured column
    only adds nothing to the parts of that column.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),
    ...                  column("age", "integer", bounds=[0, 4])))
    >>> parts = (GroupCounts(), GroupSums("age", Bounds(0, 4, True)))
    >>> kernel = GroupStatistics(schema, (("sex", None),), parts)
    >>> answer = kernel.zero()
    >>> sexes, ages = np.array([0, 1, 0], dtype=np.uint8), np.array([3.0, np.nan, 1.0])
    >>> kernel.add(Batch(3, codes={"sex": sexes}, values={"age": ages}), answer)
    >>> [part.tolist() for part in kernel.split(answer)]
    [[[2, 1]], [[4, 0]]]
    """

    remedy = _REMEDY

    schema: Schema
    by: ColumnSet
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidParameter("statistics need at least one measure")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes: those that make the groups."""
        return tuple(name for name, _ in self.by)

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return tuple(dict.fromkeys(x.column for x in self.parts if x.column is not None))

    @property
    def optional(self) -> tuple[str, ...]:
        """Those of `values` that leave no record out: all."""
        return self.values

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the groups."""
        return find_axes(self.schema, self.by)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of groups along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Number of integers of the answer, one part after the other."""
        return self.groups * sum(part.rows for part in self.parts)

    @property
    def record_change(self) -> int:
        """What one record changes in all parts together."""
        return sum(part.record_change for part in self.parts)

    @cached_property
    def _lookups(self) -> Lookups:
        return tabulate(self.axes)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`, some records at a time."""
        parts = self.split(out)
        for some in batch.cut(BATCH_ROWS):
            self._add(some, parts)

    def _add(self, batch: Batch, parts: list[IntArray]) -> None:
        cells = look_up(batch, self._lookups)
        along = [cells[axis.column, axis.level] for axis in self.axes]
        groups = cell_keys(along, self.shape, len(batch))
        known: dict[str | None, tuple[Keys, FloatArray]] = {None: (groups, np.empty(0))}
        for name in self.values:
            known[name] = _with_value(groups, batch.values(name))
        for part, sums in zip(self.parts, parts, strict=True):
            part.add(*known[part.column], sums)

    def split(self, answer: IntArray) -> list[IntArray]:
        """Cut an answer into the numbers of each part, by number and group."""
        cuts = np.cumsum([part.rows * self.groups for part in self.parts])[:-1]
        pieces = np.split(answer, cuts)
        return [
            piece.reshape(part.rows, self.groups)
            for part, piece in zip(self.parts, pieces, strict=True)
        ]


def _with_value(groups: Keys, values: FloatArray) -> tuple[Keys, FloatArray]:
    absent = np.isnan(values)
    if not absent.any():
        return groups, values
    return groups[~absent], values[~absent]
