"""A table: private rows behind one verb, the sum of a kernel over all of them.

What `sum` returns is exact and therefore private: only aggregates and mechanisms call it,
nothing prints or stores it.  A table shows its public schema and keeps the rest to itself,
the number of its rows included.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from dpublish.data.batch import Batch, Kernel, S
from dpublish.data.schema import Schema
from dpublish.privacy.neighbours import Neighbours
from dpublish.randomness import RandomSource

__all__ = ["Batch", "Kernel", "Table"]


class Table(Protocol):
    """Private rows and their public schema; every engine offers the same few verbs."""

    @property
    def schema(self) -> Schema:
        """What is publicly known about the rows."""
        ...

    @property
    def neighbours(self) -> Neighbours:
        """The change to the rows that a release must hide."""
        ...

    def sum(self, kernel: Kernel[S]) -> S:
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
