"""Publish from groups of people with similar levels, each with an epsilon of its own.

Known as: privacy-aware and utility-based partitioning (PDP, chapter 5 of "Differentially
private data release and analytics").  Proof: docs/proofs/partitioning.md.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.groups.method import GroupMethod
from dpublish.methods.personalized.groups.release import publish_groups
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.weighting import Weighting

CHOSEN = "partitioning runs weighting here, since no grouping of people counts better"


@dataclass(frozen=True, kw_only=True)
class Partitioning(GroupMethod):
    """Method: group the levels, run `inner` on each group, and bring the results together.

    Groups are formed from public sizes, from noisy ones that are paid for, or from the levels
    alone; never from the records present.
    """

    name: ClassVar[str] = "partitioning"

    combine: Literal["sum", "weighted"] = setting(
        "Add up what groups count (sum: no assumption, but noise adds up, so that one group is "
        "best), or average what they tell about everybody, by inverse variance (weighted: "
        "needs exchangeable).",
        default="sum",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within == "weigh" and not self._may_weigh:
            raise InvalidParameter(
                "people are weighed only where inner is a histogram without a threshold, parts are "
                "weighted for the objective utility, and it is public how many people there are"
            )
        if self.combine == "weighted" and not self.exchangeable:
            raise InvalidParameter(
                "weighted takes every group to be a sample of all people, which holds only if "
                "levels tell nothing about the other values; say exchangeable=True if you know "
                "that, or combine by sum"
            )

    @property
    def is_summed(self) -> bool:
        """Whether what groups publish is added up, rather than averaged."""
        return self.combine == "sum"

    @property
    def weighing(self) -> Weighting | None:
        """The one group in which people weigh what they accept, where `inner` counts them.

        It leaves nobody out and draws nobody by lot, so no grouping counts better.
        """
        if not self._may_weigh or not isinstance(self.inner, Histogram):
            return None
        return Weighting(
            preference=self.preference,
            levels=self.levels,
            mode=self.mode,
            sizes=self.sizes,
            rule=self.rule,
            derived=self.derived,
            columns=self.inner.columns,
            exchangeable=True,
            spread=min(self.spread, Fraction(1, 4)),
        )

    @property
    def _may_weigh(self) -> bool:
        counts = isinstance(self.inner, Histogram) and self.inner.threshold is None
        counted = getattr(self.inner, "columns", ())
        counts = counts and self.preference not in {name.split("@")[0] for name in counted}
        is_asked = self.within == "weigh" or (self.within == "auto" and self.groups is None)
        return is_asked and counts and self._may_draw and self.mode != "levels"

    @property
    def runs(self) -> PersonalSettings:
        """Weighting, where people are weighed; else partitioning."""
        return self.weighing or self

    def spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Say what each level pays: what its groups cost, or its share if they are not known."""
        weighing = self.weighing
        return super().spending(epsilon) if weighing is None else weighing.spending(epsilon)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of a count of half of all people, and that of the heaviest group."""
        weighing = self.weighing
        if weighing is None:
            return super().expected_error(schema, n_records, epsilon)
        found = weighing.expected_error(schema, n_records, epsilon)
        return replace(found, summary=f"{CHOSEN}; {found.summary}")

    def _release(self, run: Run) -> PersonalizedRelease:
        """Publish from each group of levels.

        Privacy:
            Groups are fixed before records are read, or by noisy level sizes, of which each
            level's cost size_share of its own number.  A record's level puts it into one
            group; others do not change.  A group spends t at most what its members have, and
            the record loses t; or, drawing, a record with less, a < t, is drawn with
            probability (e^a - 1) / (e^t - 1) at most and loses a.  Either is what `spending`
            says at its level.  Counts may have everybody in one group, each weighing what her
            level pays (`Weighting.release`).  If values are exchanged (`values-only`), sizes
            are public and `inner` runs with half.  Proof: docs/proofs/partitioning.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        weighing = self.weighing
        if weighing is not None:
            found = weighing._release(run)
            return replace(found, notes=(CHOSEN, *found.notes))
        return publish_groups(self, table, budget=budget, rng=rng, progress=progress)
