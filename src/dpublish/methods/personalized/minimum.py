"""Minimum: publish from all people with the smallest epsilon that any of them accepts."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import ExpectedError, Run, Standing
from dpublish.data.schema import Schema
from dpublish.methods.personalized.method import PersonalMethod
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.threshold import group_error, group_spending, publish_group


@dataclass(frozen=True, kw_only=True)
class Minimum(PersonalMethod):
    """Publish from all people who have a level, with the epsilon of the lowest level.

    The first baseline of personalized differential privacy: `inner` runs once, on the records
    of all levels.  Choose it as a baseline, when people hardly differ in what they accept, or
    when nothing may be assumed about levels.  Choose `Partitioning` to use more of what people
    accept, and `Threshold` to leave out those who accept least.

    Guarantee:
        Personalized pure differential privacy: a record of any level loses at most the share
        of the lowest level, for one record added or removed (or its values exchanged, in the
        mode `values-only`).

    Parameters:
        preference, levels, mode, sizes, rule, derived: How much each person accepts, and what is
            public about it; see `PersonalSettings`.
        inner: Method to run on all of them, with its settings.

    Returns:
        A `PersonalizedRelease`, which answers what `inner` answers: `count(query)`, `rows(n)`,
        `predict(rows)`.

    Example:
        >>> import numpy as np, pyarrow as pa
        >>> from dpublish import Histogram, Minimum, datasets, open_table, seeded
        >>> own = np.resize([0.01, 0.2, 1.0, 1.0], 10_000)
        >>> rows = datasets.census(10_000).append_column("own", pa.array(own))
        >>> inner = Histogram(columns=("sex",))
        >>> method = Minimum(inner=inner, preference="own", levels=("0.01", "0.2", "1"))
        >>> table = open_table(rows, method.prepare(datasets.schema("census")))
        >>> release = method.release(table, budget=method.budget(1), rng=seeded(7))
        >>> print(release.count("sex = Female"))
        4,962 (95 % confidence interval 4,662 to 5,262)

    Reference:
        Z. Jorgensen, T. Yu and G. Cormode, "Conservative or liberal? Personalized differential
        privacy", ICDE 2015.
    """

    name: ClassVar[str] = "minimum"
    proofs: ClassVar[tuple[str, ...]] = ("exact",)
    publishes: ClassVar[str] = "the release of another method for all people, at the smallest level"
    prefer_when: ClassVar[str] = "you want a baseline, or people accept similar epsilons"
    standing: ClassVar[Standing] = "baseline"

    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level pays: the share of the lowest one."""
        return group_spending(self, self.lowest, epsilon)

    @property
    def lowest(self) -> Fraction:
        """The lowest level at which anyone may be: public, whoever is in the table."""
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
        return publish_group(run, self, self.lowest, exchangeable=False)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of `inner` with the smallest share."""
        return group_error(self, self.lowest, schema, n_records, epsilon)
