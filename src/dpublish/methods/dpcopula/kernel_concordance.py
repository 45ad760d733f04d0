"""Whether pairs of records are ordered alike by two columns: joint counts, and what they say.

Records are put into classes of neighboring leaves first.  Of counts by two columns' classes,
the number of pairs of records that agree minus that of pairs that disagree follows exactly by
sums over quadrants, without sorting: the work per pair of columns grows with the records only.

Known as: Kendall's tau (a), its numerator.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter, require_count
from dpublish.types import IntArray

MOST_CELLS = 1 << 24
_HALF = 20


@dataclass(frozen=True, eq=False)
class PairTables:
    """Kernel: count records by the classes of every two columns.

    Attributes:
        schema: What is publicly known about the records.
        columns: Columns, at least two.
        classes: For each of them, the class of every leaf code; -1 where a leaf has no place
            in the order (a missing value, say).
        complete: Further columns that a record must have, or it is not counted.

    The answer is [pair, class of the earlier column, class of the later one].  The last class
    holds the records without a place in the order, so every table counts all records.
    """

    schema: Schema
    columns: tuple[str, ...]
    classes: tuple[IntArray, ...]
    complete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.columns) < 2 or len(self.classes) != len(self.columns):
            raise InvalidParameter("there must be two columns or more, each with its classes")
        for name, table in zip(self.columns, self.classes, strict=True):
            if table.dtype.kind not in "iu" or table.shape != (self.schema[name].size,):
                raise InvalidParameter(f"column {name!r} needs a class for each of its leaves")
        if comb(len(self.columns), 2) * self.size**2 > MOST_CELLS:
            raise InvalidParameter("there are too many columns to compare every two of them")

    @cached_property
    def size(self) -> int:
        """Number of classes along each side of a table, that of no place included."""
        return 2 + max(int(table.max(initial=-1)) for table in self.classes)

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*self.columns, *self.complete)))

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers: none."""
        return ()

    def zero(self) -> IntArray:
        """Make the answer for no records."""
        return np.zeros((comb(len(self.columns), 2), self.size, self.size), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        tables = [np.where(x < 0, self.size - 1, x).astype(np.int32) for x in self.classes]
        for part in batch.cut():
            places = [
                table.take(part.codes(name))
                for name, table in zip(self.columns, tables, strict=True)
            ]
            for number, (first, second) in enumerate(combinations(places, 2)):
                counted = np.bincount(first * self.size + second, minlength=self.size**2)
                out[number] += counted.reshape(self.size, self.size)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other


def count_agreement(counts: IntArray) -> int:
    """Count the pairs of records that two columns order alike, minus those ordered apart.

    Pairs that are equal in one of the columns count as neither.  The number is exact for up
    to 2^40 records: products are added up in two halves.

    >>> count_agreement(np.array([[2, 0], [1, 3]]))
    6
    """
    left = np.cumsum(counts, axis=1) - counts
    right = counts.sum(axis=1, keepdims=True) - left - counts
    # Of records in earlier rows, those in earlier columns agree and those in later ones do not.
    difference = left - right
    earlier = np.cumsum(difference, axis=0) - difference
    high, low = earlier >> _HALF, earlier & ((1 << _HALF) - 1)
    return (int((counts * high).sum()) << _HALF) + int((counts * low).sum())


def tau_values(tables: IntArray, fewest: int) -> list[Fraction]:
    """Divide agreement by the number of pairs of records, or of `fewest` records if that is more.

    `tables` is an answer of `PairTables`; the last class of either column has no place in the
    order, so its records agree with nothing but count as records.
    """
    records = max(int(tables[0].sum()), fewest)
    return [Fraction(count_agreement(table[:-1, :-1]), comb(records, 2)) for table in tables]


def tau_sensitivity(columns: int, fewest: int) -> Fraction:
    """Bound how much all `tau_values` together change (L1) when one record is added or removed.

    Holds for every table if `fewest` is at least the number of columns
    (docs/proofs/correlation.md).

    >>> tau_sensitivity(5, 99)
    Fraction(6, 25)
    """
    require_count(columns=columns, at_least=2)
    require_count(fewest=fewest, at_least=columns)
    return Fraction(4 * (columns**2 // 4), fewest + 1)
