"""Publish when the counts have moved, with what the steps that were skipped have saved.

Known as: BA, budget absorption.
Reference: G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias, "Differentially Private Event
Sequences over Infinite Streams", PVLDB 7(12), 2014.  Comparisons are blurred with noise of
their own at every step; the distance is that from the last release, never from the snapshot
behind it.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.data.schema import Schema
from dpublish.mechanisms.exact import require_rate
from dpublish.release.recipe import ExpectedError, setting
from dpublish.streams.bins import Bins
from dpublish.streams.budget_distribution import (
    NoiseFloor,
    require_decisions,
    share_of_decisions,
)
from dpublish.streams.history import History, Publication
from dpublish.streams.method import StreamMethod
from dpublish.streams.plan import Ask, Repeat
from dpublish.streams.stream import Policy

UNITS = "units"
"""Where the history remembers how many units the last publication took."""


@dataclass(frozen=True)
class AbsorbSkipped:
    """Policy: every step has one unit; a publication takes those of the steps skipped before.

    It then pays them back: as many steps after it as it took units beyond its own are silent.

    Attributes:
        window: Steps in a window, and most units that a publication takes.
        unit: An equal part of the pool for publications.
        price: What the comparison of a step costs.
        floor: Number of bins, and most rows of a user.
    """

    window: int
    unit: Fraction
    price: Fraction
    floor: NoiseFloor

    def plan(self, history: History) -> Ask | Repeat:
        """Be silent while the last publication is paid back, then ask with what is saved."""
        taken = int(history.memory.get(UNITS, 1))
        if history.age <= taken - 1:
            return Repeat()
        saved = history.age - (taken - 1)
        epsilon = min(self.window, saved) * self.unit
        return Ask(self.floor.threshold(history, epsilon), epsilon, self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how many units the publication took, and how noisy it was."""
        self.floor.learn(history, publication)
        history.memory[UNITS] = int(publication.epsilon / self.unit)


@dataclass(frozen=True, kw_only=True)
class BudgetAbsorption(StreamMethod):
    """Recipe: publications take the units that skipped steps have saved, if it is worth it."""

    name: ClassVar[str] = "ba"
    horizon: ClassVar[int | None] = None

    window: int = setting("Hide a user within so many consecutive steps (w), for ever.")
    decision_share: Fraction | None = setting(
        "Part of epsilon that buys the comparisons; unless given 1/2, or window / bins if there "
        "are more than twice as many bins as steps in a window.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_decisions(self.window, self.decision_share)

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy for windows of `epsilon`."""
        share = share_of_decisions(self.decision_share, self.window, bins)
        return AbsorbSkipped(
            window=self.window,
            unit=self.publication_epsilon(bins, epsilon),
            price=share * epsilon / self.window,
            floor=NoiseFloor(bins.size, self.contribution),
        )

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Give the unit: a publication costs at least one, and more after skipped steps."""
        share = share_of_decisions(self.decision_share, self.window, bins)
        return (1 - share) * epsilon / self.window

    def expected_error(
        self, schema: Schema, n_hint: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Foretell the noise of a publication, and refuse all that `start` would."""
        found = super().expected_error(schema, n_hint, epsilon)
        bins = Bins.of(schema, self.columns)
        share = share_of_decisions(self.decision_share, self.window, bins)
        require_rate(share * epsilon / self.window / self.contribution)
        unit = self.publication_epsilon(bins, epsilon) / self.contribution
        self.static_histogram().check(schema, bins, unit)
        return found
