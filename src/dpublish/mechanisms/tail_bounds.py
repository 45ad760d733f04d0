"""Choose bounds that few private values lie beyond, among public points.

Every point of a public grid may become the upper bound, or the lower one.  It is scored by how
far the number of records beyond it is from the number that is aimed at: a part of all records,
but never so few that the choice could not tell them from none.  Points that are too far out
lose twice as much for every record as points too far in, because nothing else keeps a bound
from running off to where there are no values.

Both bounds are chosen at little more than the price of one: a record lies on one side.

Proof: docs/proofs/tail_bounds.md.
"""

from fractions import Fraction
from math import ceil, log
from typing import Literal, NamedTuple

import numpy as np

from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.selection import distances_below_best, permute_and_flip, selection_rate
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

Sides = Literal["both", "upper", "lower"]
SIDES = ("both", "upper", "lower")
MOST_PARTS = 1 << 16  # times the number of records stays within 64 bits
MOST_LEAST = 1 << 40
_RANGE = {"both": 4, "upper": 3, "lower": 3}
"""Range sensitivity, in records, of all scores from which bounds are chosen."""
_OFF = 0.05
"""Probability with which a bound may be farther off than is stated."""


class TailBounds(NamedTuple):
    """Numbers of the points that were chosen; None on a side on which nothing is chosen."""

    lower: int | None
    upper: int | None


def choose_bounds(
    counts: IntArray,
    *,
    tail: Fraction,
    least: int,
    sides: Sides = "both",
    budget: Budget,
    rng: RandomSource,
) -> TailBounds:
    """Choose points with about a part `tail` of the records beyond each, and at least `least`.

    Args:
        counts: Private numbers of records at and between k public points, 2 k - 1 in all: at
            the first point, between it and the second, at the second, and so on.
        tail: Part of the records that may lie beyond a bound, from 0 to 1/2; its denominator is
            at most 2**16.
        least: Public number of records that are left beyond a bound even if `tail` is fewer;
            half of all records if there are not twice as many.
        sides: Which bounds to choose.
        budget: Budget to empty, for both bounds together.
        rng: Source of randomness.

    Privacy:
        `budget.epsilon`-differentially private for one record added or removed.  A choice by
        permute-and-flip costs its rate times the range by which the record moves the scores
        (`docs/proofs/selection.md`).  `docs/proofs/tail_bounds.md` shows that this range is at
        most 3 records for one bound, and that the ranges of both bounds for the same record
        add up to at most 4: what moves the scores of one bound by much lies beyond it, and so
        not beyond the other, since at most half of the records are aimed at.  The points are
        public, and scores are integers.

    >>> from dpublish.randomness import seeded
    >>> counts = np.array([0, 0, 300, 5_000, 4_000, 500, 0, 0, 0])
    >>> public = {"tail": Fraction(1, 100), "least": 30}
    >>> choose_bounds(counts, **public, budget=Budget.seeded(1), rng=seeded(1))
    TailBounds(lower=1, upper=3)
    """
    _require_settings(counts, tail, least, sides)
    rate = bounds_rate(budget.epsilon, tail, sides)
    budget.spend()
    lower = upper = None
    if sides != "upper":
        mirrored = tail_scores(counts[::-1], tail=tail, least=least)
        lower = mirrored.size - 1 - permute_and_flip(rate, distances_below_best(mirrored), rng)
    if sides != "lower":
        scores = tail_scores(counts, tail=tail, least=least)
        upper = permute_and_flip(rate, distances_below_best(scores), rng)
    return TailBounds(lower, upper)


def bounds_rate(epsilon: Fraction, tail: Fraction, sides: Sides) -> Fraction:
    """Calibrate: how much of the odds each unit of score is worth."""
    return selection_rate(epsilon, _RANGE[sides] * _unit(tail))


def tail_scores(counts: IntArray, *, tail: Fraction, least: int) -> IntArray:
    """Score every point as an upper bound, in parts of a record.

    With U records above a point and L above the point before it, the score is
    -max(0, 2 (t - L), U - t): 0 if the record that is the t-th from above lies between the two.
    """
    from_here_up = np.cumsum(counts[::-1], dtype=np.int64)[::-1]
    total = from_here_up[0]
    beyond = np.append(from_here_up[1::2], 0)
    before = np.append(total, beyond[:-1])
    unit = _unit(tail)
    wanted = np.maximum(2 * tail.numerator * total, unit * least)
    target = np.minimum(wanted, tail.denominator * total)
    too_far_out = 2 * (target - unit * before)
    too_far_in = unit * beyond - target
    scores: IntArray = -np.maximum(np.maximum(too_far_out, too_far_in), 0)
    return scores


def least_tail(points: int, epsilon: Fraction, sides: Sides) -> int:
    """Find how many records must lie beyond a bound for the choice to tell them from none.

    With probability 95 % no bound (of one or two) is then chosen beyond all values, if there
    are twice as many records.  With k points and R the range, a point beyond all values lies
    2 `least` records below the best, and is chosen with probability at most
    exp(-2 least epsilon / R) / 2.

    >>> least_tail(145, Fraction(1, 20), "upper"), least_tail(145, Fraction(1), "both")
    (219, 16)
    """
    bounds = 2 if sides == "both" else 1
    odds = max(log(max(points - 1, 1) * bounds / (2 * _OFF)), 0.0)
    return min(max(1, ceil(Fraction(odds) * _RANGE[sides] / (2 * epsilon))), MOST_LEAST)


def _unit(tail: Fraction) -> int:
    """Return the score of one record, so that all scores are integers."""
    return 2 * tail.denominator


def _require_settings(counts: IntArray, tail: Fraction, least: int, sides: Sides) -> None:
    if type(counts) is not np.ndarray or counts.dtype.kind not in "iu" or counts.ndim != 1:
        raise InvalidParameter("counts must be a one-dimensional array of integers")
    if counts.size % 2 == 0:
        raise InvalidParameter("counts must be of k points and the k - 1 spaces between them")
    if not isinstance(tail, Fraction) or not 0 <= tail <= Fraction(1, 2):
        raise InvalidParameter(f"tail ({tail}) must be a Fraction from 0 to 1/2")
    if tail.denominator > MOST_PARTS:
        raise InvalidParameter(f"tail ({tail}) needs a denominator up to 2^16")
    require_count(least=least)
    if least > MOST_LEAST:
        raise InvalidParameter("least must be at most 2^40")
    require_known("choice of sides", sides, SIDES)
