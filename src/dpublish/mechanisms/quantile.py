"""Find a quantile of private values between public bounds.

Every point of a public lattice is a candidate, scored by how many records would have to come
or go to make it the quantile.  All points between two neighboring values share a score, so
they are weighed as one candidate that stands for many, and the choice takes time for the
values only, however fine the lattice.

Reference: A. Smith, "Privacy-preserving Statistical Estimation with Optimal Convergence Rates",
STOC 2011, whose interval is a lattice here.
"""

from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.mechanisms.selection import distances_below_best, selection_rate
from dpublish.mechanisms.weighted_choice import weighted_choice
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

MOST_CELLS = 1 << 50
MOST_PARTS = 1 << 20  # times the number of values stays within 64 bits


class Stretches(NamedTuple):
    """Runs of lattice points that share a score."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    scores: NDArray[np.int64]


def quantile(
    values: NDArray[Any],
    *,
    probability: Fraction | int,
    lower: float,
    upper: float,
    cells: int,
    budget: Budget,
    rng: RandomSource,
) -> float:
    """Publish a point that about `probability` of the values do not exceed.

    Args:
        values: Private numbers, none or many.  Each is moved to the nearest lattice point; those
            outside the bounds to the nearer bound, those that are not a number to `lower`.
        probability: Exact, from 0 (the minimum) to 1 (the maximum); its denominator is at
            most 2**20.
        lower: Public bound.
        upper: Public bound.
        cells: Public number of steps between the bounds; `cells` + 1 points may come out.
        budget: Budget to empty.
        rng: Source of randomness.

    Privacy:
        `budget.epsilon`-differentially private for one record added or removed.  It is the
        exponential mechanism over the fixed, public lattice; `docs/proofs/selection.md` shows
        that weighing equal points together draws each with the same odds.  The score of a
        point v is minus the distance of p * n from the interval [values < v, values <= v].
        One record moves either end, measured from p * n, by -p or 1 - p, so scores move by at
        most max(p, 1 - p) up or down, and R is twice that; or 1 if p is 0 or 1, where they
        all move down.  Moving values to the lattice looks at one record at a time.

    >>> from dpublish.randomness import seeded
    >>> ages = np.array([23, 35, 31, 64, 40, 38, 29, 51, 33] * 40)
    >>> median = {"probability": Fraction(1, 2), "lower": 0, "upper": 100, "cells": 100}
    >>> quantile(ages, **median, budget=Budget.seeded("0.5"), rng=seeded(1))
    35.0
    """
    _require_settings(values, probability, cells)
    lower, upper = _require_bounds(lower, upper)
    cells = int(cells)
    exact = Fraction(probability)
    rate = selection_rate(budget.epsilon, rank_range(exact))
    budget.spend()
    positions = _positions(values, lower, upper, cells)
    starts, lengths, scores = equal_stretches(positions, probability=exact, cells=cells)
    chosen = weighted_choice(rate, distances_below_best(scores), lengths, rng)
    inside = uniform_below(int(lengths[chosen]), 1, rng)[0]
    step = (Fraction(upper) - Fraction(lower)) / cells
    return float(Fraction(lower) + step * int(starts[chosen] + inside))


def rank_range(probability: Fraction) -> int:
    """Return R for scores in units of one record divided by the denominator of `probability`."""
    part, parts = probability.numerator, probability.denominator
    return 2 * max(part, parts - part) if 0 < part < parts else parts


def equal_stretches(
    positions: NDArray[np.int64], *, probability: Fraction, cells: int
) -> Stretches:
    """Split the lattice 0..cells at the occupied points, and score every stretch."""
    occupied, counts = np.unique(positions, return_counts=True)
    up_to = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    starts = np.concatenate((occupied, [0], occupied + 1))
    ends = np.concatenate((occupied + 1, occupied, [cells + 1]))
    fewer = np.concatenate((up_to[:-1], up_to))  # values below the stretch
    no_more = np.concatenate((up_to[1:], up_to))  # values below it or in it
    target = probability.numerator * positions.size
    too_high = probability.denominator * fewer - target
    too_low = target - probability.denominator * no_more
    scores = -np.maximum(np.maximum(too_high, too_low), 0)
    kept = np.flatnonzero(ends > starts)
    return Stretches(starts[kept], (ends - starts)[kept], scores[kept])


def _positions(values: NDArray[Any], lower: float, upper: float, cells: int) -> NDArray[np.int64]:
    # Rounding errors here move single values to a nearby point, which is harmless.
    with np.errstate(all="ignore"):  # a warning would give a value away
        inside = np.nan_to_num(values.astype(np.float64), nan=lower).clip(lower, upper)
        fractions = (inside - lower) / (upper - lower)
        return np.rint(fractions * cells).clip(0, cells).astype(np.int64)


def _require_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Turn the bounds into floats, which alone are used from then on."""
    try:
        low, high = float(lower), float(upper)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("lower and upper must be numbers that fit a float") from None
    if not (low < high and isfinite(high - low)):
        raise InvalidParameter(f"lower ({lower}) must be less than upper ({upper}), both finite")
    return low, high


def _require_settings(values: NDArray[Any], probability: Fraction | int, cells: int) -> None:
    if type(values) is not np.ndarray or values.ndim != 1:
        raise InvalidParameter("values must be a one-dimensional array of numbers")
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        raise InvalidParameter("values must be integers or floats of at most 64 bits")
    if not isinstance(probability, (int, Fraction)) or not 0 <= probability <= 1:
        raise InvalidParameter(f"probability ({probability}) must be a Fraction from 0 to 1")
    if Fraction(probability).denominator > MOST_PARTS:
        raise InvalidParameter(f"probability ({probability}) needs a denominator up to 2^20")
    require_count(cells=cells)
    if cells > MOST_CELLS:
        raise InvalidParameter(f"cells ({cells}) must be at most 2^50")
