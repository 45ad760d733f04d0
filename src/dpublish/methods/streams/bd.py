"""Publish when the counts have moved, with half of what the window has left.

Known as: BD, budget distribution.
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

SMALLEST_PART = Fraction(1, 1 << 20)
"""Publications cost multiples of this part of epsilon, so that fractions stay short."""


@dataclass(frozen=True)
class HalveTheRest:
    """Policy: offer half of what is left of the window's pool for publications.

    Attributes:
        pool: What the publications of any window may cost together.
        unit: What a publication costs is a multiple of this.
        price: What the comparison of a step costs.
        floor: Number of bins, and most rows of a user.
    """

    pool: Fraction
    unit: Fraction
    price: Fraction
    floor: NoiseFloor

    def plan(self, history: History) -> Ask | Repeat:
        """Ask whether the counts are further from the last release than noise would be."""
        half = (self.pool - history.recent_spending) / 2
        epsilon = half // self.unit * self.unit
        if epsilon == 0:  # known from past publications, so no question is needed
            return Repeat()
        return Ask(self.floor.threshold(history, epsilon), epsilon, self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how noisy the static histogram is."""
        self.floor.learn(history, publication)


@dataclass(frozen=True, kw_only=True)
class BD(PricedMethod):
    """Method: half of the window's remaining budget for each publication, if it is worth it."""

    name: ClassVar[str] = "bd"

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy for windows of `epsilon`."""
        return HalveTheRest(
            pool=self.pool(bins, epsilon),
            unit=self.smallest(bins, epsilon),
            price=self.price(bins, epsilon),
            floor=NoiseFloor(bins.size, self.contribution),
        )

    def smallest(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Give the least that a publication costs."""
        return SMALLEST_PART * epsilon

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Take the second publication of a window as a usual one: a quarter of the pool."""
        return self.pool(bins, epsilon) / 4
