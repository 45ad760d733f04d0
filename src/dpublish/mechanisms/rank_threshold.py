"""Choose a threshold that a given part of private values reach, by the exponential mechanism."""

from fractions import Fraction

import numpy as np

from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.mechanisms.selection import EXPONENTIAL, select
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

_MOST_BITS = 50  # of the number of candidates, so that the odds stay integers of 64 bits


def rank_scale(sensitivity: Fraction, percentile: Fraction) -> Fraction:
    """Return R of the scores, which are ranks in parts of the percentile's denominator."""
    return 2 * sensitivity * percentile.denominator


def choose_threshold(
    exact: IntArray,
    *,
    highest: int,
    percentile: Fraction,
    sensitivity: Fraction,
    budget: Budget,
    rng: RandomSource,
) -> int:
    """Choose an integer from 1 to `highest` that about (1 - p) of the positive ones reach.

    Privacy:
        `budget.epsilon`-differentially private if one record moves the quality of each
        threshold by at most `sensitivity` (Δ_q) and `highest` is public: it is the
        exponential mechanism over multiples of a power of two from 1 step to `highest`.  The
        quality of x is minus the distance between the number of positive coefficients that
        reach x and 1 - p times the number of all.  Scores move by at most Δ_q up or down, so
        R is twice that.  Thresholds between two coefficients share a score and are weighed as
        one candidate that stands for many, which leaves the odds of each as they were
        (docs/proofs/selection.md).

    >>> from dpublish.randomness import seeded
    >>> half = {"percentile": Fraction(1, 2), "sensitivity": Fraction(1)}
    >>> exact = np.array([0, 8, 9, 40, 41])
    >>> choose_threshold(exact, highest=50, **half, budget=Budget.seeded(20), rng=seeded(1))
    13
    """
    shift = max(highest.bit_length() - _MOST_BITS, 0)
    top = highest >> shift
    positive = np.minimum(exact[exact > 0] >> shift, top).astype(np.int64)
    # Candidates in (edges[i + 1], edges[i]] are reached by i coefficients.
    edges = np.concatenate(([top], np.sort(positive)[::-1], [0]))
    lengths = edges[:-1] - edges[1:]
    rest, parts = (1 - percentile).numerator, percentile.denominator
    scores = -np.abs(parts * np.arange(lengths.size) - rest * positive.size)
    chosen = select(
        scores,
        sensitivity_range=rank_scale(sensitivity, percentile),
        method=EXPONENTIAL,
        weights=lengths,
        budget=budget,
        rng=rng,
    )
    inside = uniform_below(int(lengths[chosen]), 1, rng)[0]
    return int(edges[chosen + 1] + 1 + inside) << shift
