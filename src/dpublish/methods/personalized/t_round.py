"""Publish group by group in rounds, until little is left of anybody's number.

Known as: the T-round mechanism of personalized differential privacy (chapter 5 of
"Differentially private data release and analytics").  Proof: docs/proofs/partitioning.md.
"""

from dataclasses import dataclass
from typing import ClassVar

from dpublish.core.method import Run, setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.personalized.groups.method import GroupMethod
from dpublish.methods.personalized.groups.release import publish_groups
from dpublish.methods.personalized.released import PersonalizedRelease

MOST_ROUNDS = 3
"""Later rounds have next to nothing left to spend."""


@dataclass(frozen=True, kw_only=True)
class TRound(GroupMethod):
    """Method: group the levels, run `inner` on each group; group what they have left again.

    A further round is planned only if it lowers the variance by 1 % or more.
    """

    name: ClassVar[str] = "t-round"

    rounds: int = setting(f"Most rounds, up to {MOST_ROUNDS}.", default=MOST_ROUNDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(rounds=self.rounds)
        if self.rounds > MOST_ROUNDS:
            raise InvalidParameter(f"rounds ({self.rounds}) must be {MOST_ROUNDS} at most")
        if not self.exchangeable:
            raise InvalidParameter(
                "t-round averages groups, each of which it takes to be a sample of all people; "
                "say exchangeable=True if levels tell nothing about the other values"
            )

    @property
    def round_limit(self) -> int:
        """The most rounds that a plan has."""
        return self.rounds

    def _release(self, run: Run) -> PersonalizedRelease:
        """Publish from each group of levels, round by round.

        Privacy:
            All rounds are planned before records are read, or from noisy level sizes that are
            paid for.  In each round a record's level puts it into one group at most, where it
            pays what the plan says, never more than it has left; so over all rounds it pays
            no more than its share (`spending`).  Why a group costs what it says is argued in
            `Partitioning.release`.  Rounds compose: what one publishes does not change the
            next.  Proof: docs/proofs/partitioning.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        return publish_groups(self, table, budget=budget, rng=rng, progress=progress)
