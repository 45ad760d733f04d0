"""T-round: publish group by group in rounds, until little is left of any level's number."""

from dataclasses import dataclass
from typing import ClassVar

from dpublish.core.method import Run, setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.personalized.groups.method import GroupMethod, publish_groups
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
        inner: Method to run on each group, with its settings.
        preference: Column that holds how much epsilon each person accepts.
        levels: The public levels, rising; each person's number is rounded down to one of them.
        exchangeable: Asserts that levels tell nothing about the other values, nor about who is
            present; needed.
        rounds: Most rounds, up to 3.
        objective: `"utility"` forms the most precise groups, `"privacy"` those that waste least
            of people's numbers.
        within: What a group spends: `"auto"`, `"draw"` or `"least"`.
        groups: Most groups of a round; without it the objective decides.
        least_size: Smallest number of people in a group, where sizes are known.
        noise: A group's variance is noise / (n epsilon)^2 + person_variance / n.
        person_variance: Variance of one person's value, q (1 - q) for counts of a share q.
        size_share: Share of each level's number that measures how many people it has, in the
            mode `"levels"`.
        mode: What is public: `"frame"`, `"levels"` or `"values-only"`.
        sizes: Number of eligible people at each level, for the mode `"frame"`.
        rule: Levels by the preference column's values, such as `"0..17=0.01, 18..=1"`.
        derived: Confirms that the levels of a rule may tell something about its column.

    Returns:
        A `PersonalizedRelease` with `count(query)`, `rows(n)`, `predict(rows)` and `parts`, as
        far as `inner` offers them.

    Example:
        >>> import numpy as np, pyarrow as pa
        >>> from dpublish import Histogram, TRound, datasets, open_table, seeded
        >>> people = datasets.census(10_000)
        >>> accepted = np.resize([0.01, 0.2, 1.0, 1.0], 10_000)
        >>> rows = people.append_column("accepted", pa.array(accepted))
        >>> method = TRound(
        ...     inner=Histogram(columns=("sex",)),
        ...     preference="accepted",
        ...     levels=("0.01", "0.2", "1"),
        ...     sizes=(2_500, 2_500, 5_000),
        ...     exchangeable=True,
        ... )
        >>> table = open_table(rows, method.prepare(datasets.schema("census")))
        >>> release = method.release(table, budget=method.budget(1), rng=seeded(7))
        >>> print(release.count("sex = Female"))
        4,961.6  (0.95 confidence: 4,901.6 to 5,021.5)

    Reference:
        The T-round mechanism, chapter 5 of "Differentially private data release and analytics".
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
                "add --exchangeable (exchangeable=True in Python) if levels tell nothing "
                "about the other values"
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
            `Partitioning._release`.  Rounds compose: what one publishes does not change the
            next.  Proof: docs/proofs/partitioning.md.
        """
        return publish_groups(run, self)
