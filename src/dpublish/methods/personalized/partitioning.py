"""Partitioning: publish from groups of people with similar levels, each with its own epsilon."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.groups.method import GroupMethod, publish_groups
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.weighting import Weighting

CHOSEN = "partitioning runs weighting here, since no grouping of people counts better"


@dataclass(frozen=True, kw_only=True)
class Partitioning(GroupMethod):
    """Publish from each of several groups of people with similar levels, and combine them.

    Privacy-aware and utility-based partitioning: groups are formed from public sizes, from
    noisy ones that are paid for, or from the levels alone; never from the records present.
    Choose it when levels differ much and tell nothing about the values; it has no threshold to
    choose, unlike `Threshold` and `Sampling`.  With a histogram inside, public sizes and
    `combine="weighted"` it runs `Weighting`, which counts better than any grouping.  Choose
    `Minimum` if levels may depend on the values.

    Guarantee:
        Personalized pure differential privacy for one record added or removed (or its values
        exchanged, in the mode `values-only`): a record loses what its level pays, never more
        than its level's share.  Proof: docs/proofs/partitioning.md.

    Parameters:
        preference, levels, mode, sizes, rule, derived: How much each person accepts, and what is
            public about it; see `PersonalSettings`.
        inner: Method to run on each group, with its settings.
        combine: `"sum"` adds up what groups count; `"weighted"` averages what they estimate of
            all people, by inverse variance, and needs `exchangeable`.
        exchangeable: Asserts that levels tell nothing about the other values, nor about who is
            present.
        objective, within, groups, least_size: Which groups are formed, and what each spends; see
            `GroupMethod`.
        noise, person_variance, size_share: What is assumed and measured for the plan; see
            `GroupMethod`.

    Returns:
        A `PersonalizedRelease` with one part for each group, and `count(query)`, `rows(n)` and
        `predict(rows)` over all of them, as far as `inner` offers them.

    Example:
        >>> import numpy as np, pyarrow as pa
        >>> from dpublish import Partitioning, datasets, make_method, open_table, seeded
        >>> own = pa.array(np.resize([0.01, 0.2, 1.0, 1.0], 10_000))
        >>> method = Partitioning(
        ...     inner=make_method("histogram", {"columns": "sex"}),
        ...     preference="own",
        ...     levels=("0.01", "0.2", "1"),
        ...     sizes=(2_500, 2_500, 5_000),
        ...     combine="weighted",
        ...     exchangeable=True,
        ...     within="least",
        ... )
        >>> schema = method.prepare(datasets.schema("census"))
        >>> table = open_table(datasets.census(10_000).append_column("own", own), schema)
        >>> release = method.release(table, budget=method.budget(1), rng=seeded(7))
        >>> [part.level_names for part in release.parts]
        ['level 0.2', 'level 1']
        >>> print(release.count("sex = Female"))
        4,961.6 (95 % model interval 4,901.6 to 5,021.5)

    Reference:
        Partitioning mechanisms for personalized differential privacy, chapter 5 of
        "Differentially private data release and analytics".
    """

    name: ClassVar[str] = "partitioning"
    proofs: ClassVar[tuple[str, ...]] = ("partitioning", "exact")
    publishes: ClassVar[str] = (
        "the releases of another method for groups of people with similar epsilon, combined"
    )
    prefer_when: ClassVar[str] = (
        "people accept different epsilons, and no threshold has to be chosen"
    )
    standing: ClassVar[Standing] = "default"

    combine: Literal["sum", "weighted"] = setting(
        "Add up what groups count (sum: no assumption, but noise adds up, so that one group is "
        "best), or average what they estimate of all people, by inverse variance (weighted: "
        "needs exchangeable).",
        default="sum",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within == "weigh" and not self._may_weigh:
            raise InvalidParameter(
                "--within weigh needs a histogram without a threshold as --inner, --combine "
                "weighted, --objective utility, and a public number of people (--sizes, or --mode "
                "values-only)"
            )
        if self.combine == "weighted" and not self.exchangeable:
            raise InvalidParameter(
                "weighted takes every group to be a sample of all people, which holds only if "
                "levels tell nothing about the other values; add --exchangeable "
                "(exchangeable=True in Python) if you know that, or combine by sum"
            )

    @property
    def is_summed(self) -> bool:
        """Whether what groups publish is added up, rather than averaged."""
        return self.combine == "sum"

    @property
    def weighing(self) -> Weighting | None:
        """The one group in which people weigh what they accept, where `inner` counts them.

        It leaves no one out and draws no one at random, so no grouping counts better.
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
            person_variance=self.person_variance,
            contribution=self.contribution,
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

    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level pays: what its groups cost, or its share if they are not known."""
        weighing = self.weighing
        return super().row_spending(epsilon) if weighing is None else weighing.row_spending(epsilon)

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
            says at its level.  Counts may have all people in one group, each weighing what their
            level pays (`Weighting._release`).  If values are exchanged (`values-only`), sizes
            are public and `inner` runs with half.  Proof: docs/proofs/partitioning.md.
        """
        weighing = self.weighing
        if weighing is not None:
            found = weighing._release(run)
            return replace(found, notes=(CHOSEN, *found.notes))
        return publish_groups(run, self)
