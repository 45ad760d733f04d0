"""The distance of an answer: the price of the edits after which it would be true.

Every edit (a record added or removed) has a price, that of its person's level, in integer units.
The distance of an answer is the least total price of edits after which it is the right one.
One record more or less changes no distance by more than its own price.
Proof: docs/proofs/personal_choice.md.
"""

from fractions import Fraction
from math import ceil, exp, expm1, gcd, lcm, log
from typing import NamedTuple

import numpy as np

from dpublish.errors import InvalidParameter
from dpublish.types import IntArray

LARGEST_DISTANCE = 1 << 60


class Prices(NamedTuple):
    """Prices of the levels as multiples of a common unit."""

    unit: Fraction
    units: tuple[int, ...]


def common_prices(levels: tuple[Fraction, ...]) -> Prices:
    """Find the largest unit of which all levels are multiples.

    >>> common_prices((Fraction(1, 100), Fraction(1, 5), Fraction(1)))
    Prices(unit=Fraction(1, 100), units=(1, 20, 100))
    """
    bottom = lcm(*(level.denominator for level in levels))
    tops = [int(level * bottom) for level in levels]
    shared = gcd(*tops)
    return Prices(Fraction(shared, bottom), tuple(top // shared for top in tops))


def require_distances(units: tuple[int, ...], people: int) -> None:
    """Refuse levels whose common unit is so small that distances would not fit."""
    if units[-1] * max(people, 1) >= LARGEST_DISTANCE:
        raise InvalidParameter(
            "these levels have no common unit that is large enough; write them with fewer digits"
        )


def cheapest(number: IntArray, sizes: IntArray, units: IntArray) -> IntArray:
    """Add up the `number` smallest prices, of which there are sizes[b] of units[b] each.

    >>> cheapest(np.array([0, 2, 3]), np.array([2, 5]), np.array([1, 10]))
    array([ 0,  2, 12])
    """
    ends, costs = np.cumsum(sizes), np.cumsum(sizes * units)
    position = np.minimum(np.searchsorted(ends, number), len(sizes) - 1)
    missing: IntArray = costs[position] - (ends[position] - number) * units[position]
    return missing


def count_distances(
    counted: IntArray, others: IntArray, units: IntArray, candidates: IntArray
) -> IntArray:
    """Compute the distance of each candidate for the number of people counted.

    Args:
        counted: How many people of each level are counted.
        others: How many more of each level could be.
        units: Price of each level, rising.
        candidates: The possible answers.

    >>> count_distances(np.array([1, 1]), np.array([0, 2]), np.array([1, 10]), np.arange(5))
    array([11,  1,  0, 10, 20])
    """
    gap = candidates - counted.sum()
    fewer = cheapest(np.maximum(-gap, 0), counted, units)
    more = cheapest(np.maximum(gap, 0), others, units)
    return fewer + more


def median_distances(present: IntArray, sizes: IntArray, units: IntArray) -> IntArray:
    """Compute the distance of each bin from being a median.

    A bin is a median if the people below it and those above it differ by no more than those
    in it.  Each edit moves that balance by one.  A person on the heavy side can be taken out
    and put back into the bin, two edits; an eligible person who is absent can be put into it.
    If more people are present than are eligible, the distance still changes by no more than a
    person's price when they come or go.

    Args:
        present: How many people of each level (row) are in each bin (column).
        sizes: How many people of each level are eligible.
        units: Price of each level, rising.

    >>> median_distances(np.array([[1, 0, 4]]), np.array([5]), np.array([1]))
    array([3, 3, 0])
    """
    upto = np.cumsum(present, axis=1)
    below, above = upto - present, upto[:, -1:] - upto
    absent = sizes - upto[:, -1]
    surplus = above.sum(axis=0) - below.sum(axis=0)
    inside = present.sum(axis=0)
    # The side that is not heavy needs nothing, unless there are too many people.
    return np.maximum(
        _lightened(above, surplus - inside, absent, units),
        _lightened(below, -surplus - inside, absent, units),
    )


def _lightened(side: IntArray, lacking: IntArray, absent: IntArray, units: IntArray) -> IntArray:
    """Add up the cheapest edits that make up what a bin lacks beside the people of one side.

    With too many people `absent` is negative.  Where a level then offers fewer edits than none,
    the others make up for that, too; so no person's coming or going changes more than one edit.
    """
    for heavy, others in zip(side, absent, strict=True):
        lacking = lacking + np.maximum(-(2 * heavy + others), 0)
    lacking = np.maximum(lacking, 0)
    distances = np.zeros(side.shape[1], dtype=np.int64)
    for heavy, others, price in zip(side, absent, units, strict=True):
        steps = np.minimum(lacking, np.maximum(2 * heavy + others, 0))
        distances += steps * price
        lacking = lacking - steps
    return distances


class Step(NamedTuple):
    """`people` edits of the same price."""

    price: float
    people: float


def count_error(cheap: list[Step], dear: list[Step], confidence: float = 0.95) -> float:
    """Bound how far a count is off, from public facts.

    An answer that is off by j costs at least the j cheapest edits, S(j), so it is at most
    e^(-S(j) / 2) times as likely as the truth; there are two of them.  All answers on the
    longer side of the truth add at least the odds of the dearest edits.

    >>> from math import inf
    >>> count_error([Step(0.1, inf)], [Step(0.1, inf)])
    73.0
    """
    odds = 1 + sum(_tails(dear)[:1])
    target = (1 - confidence) * odds / 2
    tails = [*_tails(cheap), 0.0]
    start = 0.0
    price_so_far = 0.0
    for step, tail, after in zip(cheap, tails, tails[1:], strict=True):
        if after <= target < tail:
            decay = -step.price / 2
            last = exp(decay * (step.people + 1))
            rest = (target - after) * -expm1(decay) * exp(price_so_far / 2) + last
            return start + max(ceil(log(rest) / decay) - 1, 0)
        if tail <= target:
            return start
        start += step.people
        price_so_far += step.people * step.price
    return start


def dearest(steps: list[Step], people: float) -> list[Step]:
    """Take the edits of highest price, for so many people.

    >>> dearest([Step(0.1, 5), Step(1.0, 3)], 4)
    [Step(price=1.0, people=3), Step(price=0.1, people=1)]
    """
    taken: list[Step] = []
    for price, available in reversed(steps):
        taken.append(Step(price, min(available, people)))
        people -= taken[-1].people
    return taken


def _tails(steps: list[Step]) -> list[float]:
    """For each step add up e^(-S(j) / 2) over all j from its first edit on."""
    tails: list[float] = []
    spent = 0.0
    for price, people in steps:
        decay = -price / 2
        first, last = exp(decay), exp(decay * (people + 1))
        tails.append(exp(-spent / 2) * (first - last) / -expm1(decay))
        spent += people * price
    for position in reversed(range(len(tails) - 1)):
        tails[position] += tails[position + 1]
    return tails


def median_error(steps: list[Step], bins: int, confidence: float = 0.95) -> float:
    """Bound by how many people the two sides of a chosen median differ, from public facts.

    All bins whose distance is more than 2 ln(bins / (1 - confidence)) together are less
    likely than 1 - confidence; a balance that is off by j costs at least the j cheapest edits.
    """
    affordable = 2 * log(bins / (1 - confidence))
    found = 0.0
    for price, people in steps:
        taken = min(people, affordable // price)
        found += taken
        affordable -= taken * price
        if taken < people:
            break
    return found
