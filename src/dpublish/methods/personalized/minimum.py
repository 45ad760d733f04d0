"""Publish from everybody with the smallest epsilon that anybody accepts.

Known as: Minimum, the first baseline of personalized differential privacy.
Reference: Z. Jorgensen, T. Yu and G. Cormode, "Conservative or liberal? Personalized
differential privacy", ICDE 2015.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import ExpectedError, Run
from dpublish.data.schema import Schema
from dpublish.methods.personalized.method import PersonalMethod
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.threshold import group_error, group_spending, publish_group


@dataclass(frozen=True, kw_only=True)
class Minimum(PersonalMethod):
    """Method: run `inner` on everybody, with the epsilon of the lowest level."""

    name: ClassVar[str] = "minimum"

    def spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Say what each level pays: the share of the lowest one."""
        return group_spending(self, self.lowest, epsilon)

    @property
    def lowest(self) -> Fraction:
        """The lowest level at which anybody may be: public, whoever is in the table."""
        sizes = self.sizes or (1,)
        occupied = (level for level, size in zip(self.levels, sizes, strict=False) if size)
        return next(occupied, self.levels[0])

    def _release(self, run: Run) -> PersonalizedRelease:
        """Publish from all records with the smallest share.

        Privacy:
            Every record loses at most the share of the lowest level of the public grid (or of
            the public frame), which no record's own share is below: `inner` hides one record
            added or removed with that epsilon (half of it if values are exchanged).  The
            minimum is never taken over the records present: their levels are private, and a
            noise that depends on them gives them away.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        everybody = (self.lowest, False)
        return publish_group(
            self, *everybody, table=table, budget=budget, rng=rng, progress=progress
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of `inner` with the smallest share."""
        return group_error(self, self.lowest, schema, n_records, epsilon)
