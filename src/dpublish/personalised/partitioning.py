"""Publish from groups of people with similar levels, each with an epsilon of its own.

Known as: privacy-aware and utility-based partitioning (PDP, chapter 5 of "Differentially
private data release and analytics").  Proof: docs/proofs/partitioning.md.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.personalised.group_method import GroupMethod
from dpublish.personalised.group_release import publish_groups
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.release.personal import PersonalRelease
from dpublish.release.recipe import Progress, setting


@dataclass(frozen=True, kw_only=True)
class Partitioning(GroupMethod):
    """Recipe: group the levels, run `inner` on each group, and bring the results together.

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

    def release(
        self,
        table: Table,
        *,
        budget: Budget,
        rng: RandomSource,
        progress: Progress | None = None,
    ) -> PersonalRelease:
        """Publish from each group of levels.

        Privacy:
            Groups are fixed before records are read, or by noisy level sizes, of which each
            level's cost size_share of its own number.  A record's level puts it into one
            group; others do not change.  A group spends t at most what its members have, and
            the record loses t; or, drawing, a record with less, a < t, is drawn with
            probability (e^a - 1) / (e^t - 1) at most and loses a.  Either is what `spending`
            says at its level.  If values are exchanged (`values-only`), sizes are public and
            `inner` runs with half.  Proof: docs/proofs/partitioning.md.
        """
        return publish_groups(self, table, budget=budget, rng=rng, progress=progress)
