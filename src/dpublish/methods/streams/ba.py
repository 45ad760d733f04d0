"""Publish when the counts have moved, with what the steps that were skipped have saved.

Known as: BA, budget absorption.
Reference: G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias, "Differentially Private Event
Sequences over Infinite Streams", PVLDB 7(12), 2014.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.contract import Policy
from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.plan import Ask, Repeat
from dpublish.methods.streams.step_prices import NoiseFloor, PricedMethod

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
class BA(PricedMethod):
    """Method: publications take the units that skipped steps have saved, if it is worth it."""

    name: ClassVar[str] = "ba"

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy for windows of `epsilon`."""
        return AbsorbSkipped(
            window=self.window,
            unit=self.smallest(bins, epsilon),
            price=self.price(bins, epsilon),
            floor=NoiseFloor(bins.size, self.contribution),
        )

    def smallest(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Give the unit: a publication costs at least one, and more after skipped steps."""
        return self.pool(bins, epsilon) / self.window

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Take the unit as what a publication costs."""
        return self.smallest(bins, epsilon)
