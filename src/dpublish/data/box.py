"""The box in which records are points: numeric columns between their public bounds.

Inside a box every coordinate runs from -1 to 1.  For sums it is put on a lattice of whole
multiples of 1 / UNIT, so that adding up is exact, in whatever order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpublish.data.batch import Batch
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema, all_names, listed_names, refuse_unit
from dpublish.errors import InvalidParameter, require_known
from dpublish.types import FloatArray

UNIT = 1 << 20
"""Lattice coordinates are integers from -UNIT to UNIT."""


@dataclass(frozen=True)
class Box:
    """Numeric columns and their public bounds.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("x", "numeric", bounds=[0, 10]),))
    >>> box = Box.of(schema)
    >>> box.scale(np.array([[0.0], [7.5]])).tolist(), box.unscale(np.array([[0.5]])).tolist()
    ([[-1.0], [0.5]], [[7.5]])
    """

    columns: tuple[NumberColumn, ...]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str] = ()) -> "Box":
        """Take the named columns, or every column of numbers."""
        refuse_unit(schema)
        for name in names:
            require_known("column", name, schema.names)
            if not isinstance(schema[name], NumberColumn):
                raise InvalidParameter(f"column {name!r} holds no numbers; clusters need them")
        every = [schema[name] for name in names or schema.names]
        return cls(tuple(column for column in every if isinstance(column, NumberColumn)))

    @staticmethod
    def names_of(schema: Schema, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Name the columns that `of` takes, without checking them."""
        if names:
            return listed_names(names, schema)
        return tuple(x for x in all_names(schema) if isinstance(schema[x], NumberColumn))

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidParameter("there is no column of numbers to find clusters in")
        if len(set(self.names)) < len(self.names):
            raise InvalidParameter("a column is listed twice")
        for column in self.columns:
            low, high = column.bounds
            if not low < high:
                raise InvalidParameter(f"column {column.name!r} has one value only; leave it out")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def dimensions(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @cached_property
    def low(self) -> FloatArray:
        """Lower bounds."""
        return np.array([column.bounds[0] for column in self.columns])

    @cached_property
    def high(self) -> FloatArray:
        """Upper bounds."""
        return np.array([column.bounds[1] for column in self.columns])

    def scale(self, points: FloatArray) -> FloatArray:
        """Map points (rows) from the columns' own units to -1 .. 1, clipped."""
        return np.clip(2 * ((points - self.low) / (self.high - self.low)) - 1, -1, 1)

    def unscale(self, points: FloatArray) -> FloatArray:
        """Map points (rows) from -1 .. 1 to the columns' own units."""
        return np.asarray(self.low + (points + 1) / 2 * (self.high - self.low))

    def lattice(self, batch: Batch) -> NDArray[np.int64]:
        """Return the lattice coordinates of a batch, a row per column and a column per record.

        Only operations on one number at a time are used, which are exact to the last bit
        wherever a record stands in its batch.
        """
        found = np.empty((self.dimensions, len(batch)), dtype=np.int64)
        for index, column in enumerate(self.columns):
            low, high = column.bounds
            part = (batch.values(column.name) - low) / (high - low)
            found[index] = np.rint(part * (2 * UNIT)).astype(np.int64) - UNIT
        return np.clip(found, -UNIT, UNIT)
