"""A table: private rows behind one verb, the sum of a kernel over all of them.

What `sum` returns is exact and therefore private: only aggregates and mechanisms call it,
nothing prints or stores it.  A table shows its public schema and keeps the rest to itself,
the number of its rows included.
"""

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any, Protocol

from dpublish.data.batch import Batch, S, Summable
from dpublish.data.lowest import Lowest
from dpublish.data.schema import Schema
from dpublish.privacy.neighbors import Neighbors
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

__all__ = ["Batch", "Summable", "Table", "is_table"]


class Table(Protocol):
    """Private rows and their public schema; every engine offers the same few verbs."""

    @property
    def schema(self) -> Schema:
        """What is publicly known about the rows."""
        ...

    @property
    def neighbors(self) -> Neighbors:
        """The change to the rows that a release must hide."""
        ...

    def sum(self, kernel: Summable[S]) -> S:
        """Add up a kernel over all records.

        A record that the missing rule of one of the kernel's columns leaves out is not
        seen.  If rows belong to units (`AddRemoveUnit`), the kernel sees every distinct
        combination of its columns' codes and values once per unit, not every row.
        """
        ...

    def sample(
        self, rate: Fraction, rng: RandomSource, columns: Sequence[str] | None = None
    ) -> "Table":
        """Keep every record (every unit, if rows have units) with probability `rate`, exactly."""
        ...

    def split(
        self, blocks: int, rng: RandomSource, columns: Sequence[str] | None = None
    ) -> Sequence["Table"]:
        """Put every record (every unit) into one of `blocks` tables, uniformly at random."""
        ...

    def bound(
        self,
        most: int,
        key: bytes,
        columns: Sequence[str] | None = None,
        lowest: str | Lowest | None = None,
        complete: Sequence[str] | None = None,
    ) -> "Table":
        """Keep at most `most` rows of each unit, as records of their own.

        Of the rows that no missing rule of the columns leaves out, or of those that are to be
        `complete` (None: all; of the others, a row may lack a value and stay).  Which of a
        unit's rows stay depends on the key and on that unit's rows alone, not on their order.
        Adding or removing a unit adds or removes at most `most` rows of the result.

        If `lowest` names one of the columns, every row of a unit gets the smallest code of that
        column over all rows of the unit, those included that do not stay; if one of them has no
        code there (a missing rule leaves it out), no row of the unit stays.  A `Lowest` names
        numbers for the codes, and the column into which the smallest goes.
        """
        ...

    def rows_per_unit(
        self,
        most: int,
        columns: Sequence[str] | None = None,
        complete: Sequence[str] | None = None,
    ) -> IntArray:
        """Count the units with 1, 2, ... rows, the last entry those with `most` or more.

        Of the rows that no missing rule of the columns (of those that are to be `complete`)
        leaves out; a unit without any is not counted.  Exact, and therefore private: one unit
        changes one entry by one.
        """
        ...

    def only(self, column: str, leaves: Collection[int], *, keep: bool = False) -> "Table":
        """Pick the records whose leaf of `column` is one of `leaves`.

        Each record's own value decides, so tables of different leaves share no record.  The
        result is without `column` unless it is to `keep` it, and without the records that the
        column's missing rule leaves out.  Rows must be records of their own.
        """
        ...

    def sample_by(
        self,
        column: str,
        rates: Sequence[Fraction],
        rng: RandomSource,
        columns: Sequence[str] | None = None,
    ) -> "Table":
        """Keep a record whose leaf of `column` is k with probability `rates[k]`, exactly.

        Records are kept independently.  Rates are from 0 to 1 in whole steps of 2^-64.  The
        result has the given columns, or all but `column`.  Rows must be records of their own.
        """
        ...

    def close(self) -> None:
        """End what was started for the table, and let go of a database; it is not used again."""
        ...


def is_table(data: Any) -> bool:
    """Return whether rows were opened already by `open_table`."""
    kind = type(data)
    return hasattr(kind, "neighbors") and hasattr(kind, "bound") and hasattr(kind, "sum")
