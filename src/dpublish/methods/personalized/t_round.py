"""T-round: publish group by group in rounds, until little is left of any level's number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import Run, setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.personalized.groups.method import GroupMethod, Plan, publish_groups
from dpublish.methods.personalized.groups.plan import left_over
from dpublish.methods.personalized.released import PersonalizedRelease

MOST_ROUNDS = 3
"""Later rounds have next to nothing left to spend."""


@dataclass(frozen=True, kw_only=True)
class TRound(GroupMethod):
    """Publish from groups of people with similar levels, in up to three rounds.

    What people have left of their numbers after one round is grouped and spent again in the
    next; all groups of all rounds are averaged by their covariance.  A further round is
    planned only if it lowers the variance by 1 % or more.  Choose it when `Partitioning` fits
    and the last few per cent matter, at the price of one more inner release for every group.

    Guarantee:
        Personalized pure differential privacy for one record added or removed (or its values
        exchanged, in the mode `values-only`): over all rounds a record pays no more than its
        level's share.  Proof: docs/proofs/partitioning.md.

    Parameters:
        preference, levels, mode, sizes, rule, derived: How much each person accepts, and what is
            public about it; see `PersonalSettings`.
        rounds: Most rounds, up to 3.
        inner: Method to run on each group of each round, with its settings.
        exchangeable: Asserts that levels tell nothing about the other values, nor about who is
            present; needed.
        objective, within, groups, least_size, noise, person_variance, size_share: As for
            `Partitioning`.

    Returns:
        A `PersonalizedRelease` with one part for each group of each round.

    Example:
        >>> from dpublish import Histogram, TRound, datasets, seeded
        >>> method = TRound(
        ...     inner=Histogram(columns=("sex",)),
        ...     exchangeable=True,
        ...     within="least",
        ...     mode="values-only",
        ...     least_size=0,
        ...     groups=1,
        ...     preference="region",
        ...     rule="North=0.4, East=0.6, South=0.8, West=1",
        ...     derived=True,
        ...     levels=("0.4", "0.6", "0.8", "1"),
        ... )
        >>> people = datasets.table("census", 300)
        >>> release = method.release(people, budget=method.budget(1), rng=seeded(7))
        >>> [(part.level_names, float(part.epsilon)) for part in release.parts]
        [('levels 0.4 to 1', 0.2), ('levels 0.6 to 1', 0.1), ('levels 0.8 and 1', 0.1)]

    Reference:
        The T-round mechanism, chapter 5 of "Differentially private data release and analytics".
    """

    name: ClassVar[str] = "t-round"
    proofs: ClassVar[tuple[str, ...]] = ("partitioning", "exact")
    publishes: ClassVar[str] = (
        "the same as partitioning, in several rounds that use up what each level has left"
    )
    prefer_when: ClassVar[str] = (
        "groups are wide, so that many people have epsilon left after one round"
    )

    rounds: int = setting(f"Most rounds, up to {MOST_ROUNDS}.", default=MOST_ROUNDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(rounds=self.rounds)
        if self.rounds > MOST_ROUNDS:
            raise InvalidParameter(f"rounds ({self.rounds}) must be {MOST_ROUNDS} at most")
        if not self.exchangeable:
            raise InvalidParameter(
                "t-round averages groups, each of which it takes to be a sample of all people; "
                "add --exchangeable (exchangeable=True in Python) if levels tell nothing "
                "about the other values"
            )

    @property
    def round_limit(self) -> int:
        """The most rounds that a plan has."""
        return self.rounds

    def figures(self, plan: Plan, sizes: Sequence[float], epsilon: Fraction) -> Mapping[str, float]:
        """Predict the error of a count, and what is left of people's numbers after all rounds."""
        left = left_over(plan, self.available(epsilon), sizes)
        return {**super().figures(plan, sizes, epsilon), "left_over": left}

    def _release(self, run: Run) -> PersonalizedRelease:
        """Publish from each group of levels, round by round.

        Privacy:
            All rounds are planned before records are read, or from noisy level sizes that are
            paid for.  In each round a record's level puts it into one group at most, where it
            pays what the plan says, never more than it has left; so over all rounds it pays
            no more than its share (`spending`).  Why a group costs what it says is argued in
            `Partitioning._release`.  Rounds compose: what one publishes does not change the
            next.  Proof: docs/proofs/partitioning.md.
        """
        return publish_groups(run, self)
