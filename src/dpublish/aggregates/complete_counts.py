"""How many complete records lie in each cell, so that counts over different columns agree."""

from dataclasses import dataclass

from dpublish.aggregates.counts import Counts
from dpublish.aggregates.kernel import unbounded
from dpublish.privacy.neighbors import AddRemoveUnit, Neighbors


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

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return by how much the changes of two counts differ at most (R).

        As for `Counts`, but for units: the table shows a unit's distinct combinations of all
        columns that are read.  If its rows differ in a column outside the set, one cell counts
        as many of them as there are combinations, so only columns of the set are allowed.
        """
        outside = set(self.columns) - {name for one in self.sets for name, _ in one}
        if isinstance(neighbors, AddRemoveUnit) and outside:
            raise unbounded(neighbors, f"count over {', '.join(sorted(outside))}, too")
        return super().range_sensitivity(neighbors)
