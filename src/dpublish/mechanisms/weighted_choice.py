"""Choose one of many with exact odds: P(i) proportional to weight_i * exp(-rate * distance_i).

Candidates stand on shelves of equally wide distances, and one is found in three steps: pick a
shelf with the odds of its nearest edge, pick one of those on it by weight, and keep that one
with the probability by which it falls short of the edge.  A shelf is so narrow that at least
one pick in e is kept, however the distances are distributed, and so wide that some two hundred
shelves hold all but a 2^-128 of the odds: the work in Python does not grow with the number of
candidates.  Nothing is rounded and nothing is cut off.

Proof: docs/proofs/selection.md.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.mechanisms.exact.enclosures import floor_exp
from dpublish.mechanisms.exact.sampler import bernoulli_exp, uniform_below
from dpublish.randomness import RandomSource

WORD_BITS = 64  # bits of the uniform number that each refinement adds; tests lower it
GUARD_BITS = 64  # bits by which the odds are known better than the uniform number


class Odds(NamedTuple):
    """The occupied shelves, nearest first, and integers around 2^precision times their odds.

    A last entry with the number `None` stands for all the shelves that are farther away.
    """

    shelves: list[int | None]
    low: list[int]
    high: list[int]


class Shelves:
    """Candidates sorted by distance; see `weighted_choice` for what may stand on them."""

    def __init__(
        self, rate: Fraction, distances: NDArray[np.int64], weights: NDArray[np.int64] | None
    ) -> None:
        # The widest power of two with rate * width <= 1: a shift is faster than a division.
        self._shift = max(0, (rate.denominator // rate.numerator).bit_length() - 1)
        self._rate = rate
        self._distances = distances
        self._weights = weights
        self._shelf_of = distances >> self._shift
        self._odds: dict[int, Odds] = {}

    def edge(self, shelf: int) -> int:
        """Return the smallest distance that belongs on `shelf`."""
        return shelf << self._shift

    def odds(self, precision: int) -> Odds:
        """Enclose 2^precision times the odds of every shelf: low <= truth <= high."""
        if precision not in self._odds:
            self._odds[precision] = self._enclose(precision)
        return self._odds[precision]

    def _enclose(self, precision: int) -> Odds:
        # exp(-0.7) < 1/2: what lies beyond these shelves is below 2^-precision, one by one.
        beyond = Fraction(7 * precision, 10) // (self._rate * self.edge(1)) + 1
        totals = np.zeros(beyond + 1, dtype=np.int64)
        shelf_of = np.minimum(self._shelf_of, beyond)
        if self._weights is None:
            totals += np.bincount(shelf_of, minlength=beyond + 1)
        else:
            np.add.at(totals, shelf_of, self._weights)
        odds = Odds([], [], [])
        for shelf in np.flatnonzero(totals).tolist():
            total = int(totals[shelf])
            rounded_down = floor_exp(self._rate, self.edge(shelf), precision)
            odds.shelves.append(shelf if shelf < beyond else None)
            odds.low.append(total * rounded_down if shelf < beyond else 0)
            odds.high.append(total * (rounded_down + 1))
        return odds

    def pick_shelf(self, rng: RandomSource) -> int:
        """Draw a shelf, reading random bits until there is no doubt which it is."""
        numerator = bits = 0
        while True:
            word = int(rng.words(1)[0])
            numerator = numerator << WORD_BITS | word >> 64 - WORD_BITS
            bits += WORD_BITS
            shelf = locate(numerator, bits, self.odds(bits + GUARD_BITS))
            if shelf is not None:
                return shelf

    def pick_member(self, shelf: int, rng: RandomSource) -> int:
        """Draw one of the candidates on `shelf` in proportion to the weights."""
        members = np.flatnonzero(self._shelf_of == shelf)
        if self._weights is None:
            return int(members[uniform_below(len(members), 1, rng)[0]])
        upper_ends = np.cumsum(self._weights[members])
        target = uniform_below(int(upper_ends[-1]), 1, rng)[0]
        return int(members[np.searchsorted(upper_ends, target, side="right")])

    def keeps(self, member: int, shelf: int, rng: RandomSource) -> bool:
        """Flip the coin that makes up for the member's distance from its shelf's edge."""
        shortfall = self._distances[member : member + 1] - self.edge(shelf)
        return bool(bernoulli_exp(self._rate, shortfall, rng)[0])


def locate(numerator: int, bits: int, odds: Odds) -> int | None:
    """Return on which shelf a uniform number in [numerator, numerator + 1) / 2^bits lands.

    Returns None if that cannot be said yet: the number may lie on either side of an edge, or
    it lies among the shelves that are too far away to be told apart at this precision.
    """
    certainly_above = numerator * sum(odds.low)
    certainly_below = (numerator + 1) * sum(odds.high)
    low = high = 0
    for shelf, shelf_low, shelf_high in zip(*odds, strict=True):
        if high << bits > certainly_above:
            return None
        low += shelf_low
        high += shelf_high
        if certainly_below <= low << bits:
            return shelf
    return shelf  # the last one: no edge lies above it


def weighted_choice(
    rate: Fraction,
    distances: NDArray[np.int64],
    weights: NDArray[np.int64] | None,
    rng: RandomSource,
) -> int:
    """Draw the index i with probability proportional to weights[i] * exp(-rate * distances[i]).

    Args:
        rate: Exact, and at least 2^-40.
        distances: Integers from 0 to 2^62 - 1; the least distance is 0.
        weights: Integers above 0 that add up to less than 2^62; all equal if None.
        rng: Source of uniform words.
    """
    shelves = Shelves(rate, distances, weights)
    while True:
        shelf = shelves.pick_shelf(rng)
        member = shelves.pick_member(shelf, rng)
        if shelves.keeps(member, shelf, rng):
            return member
