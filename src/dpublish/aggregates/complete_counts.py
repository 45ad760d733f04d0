"""How many complete records lie in each cell, so that counts over different columns agree."""

from dataclasses import dataclass

from dpublish.aggregates.counts import Counts


@dataclass(frozen=True)
class CompleteCounts(Counts):
    """Kernel: count, in every cell of every set, the records that have all of `columns`.

    A record that the missing rule of one of `columns` leaves out is in no cell of any set,
    also where a set does not name that column: all sets count the same records.

    >>> import numpy as np
    >>> from dpublish.data.schema import Schema, column
    >>> names = ("sex", "town")
    >>> schema = Schema(tuple(column(name, "category", values=["a", "b"]) for name in names))
    >>> CompleteCounts(schema, ((("sex", None),),), names).codes
    ('sex', 'town')
    """

    columns: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((*super().codes, *self.columns)))
