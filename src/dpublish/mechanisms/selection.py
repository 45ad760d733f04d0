"""Choose one of many candidates by its score, without giving any record away.

Scores are integers, so that the odds are exact; `quantize` makes integers of real
ones.  The only thing to know about a score is its range sensitivity R: how far one record can
pull two candidates' scores apart.  If it moves them all the same way, nothing is given away.

Known as: permute-and-flip (report-noisy-max with exponential noise), exponential mechanism;
with R it covers the monotonic and the enhanced exponential mechanism (EEM) too.
References: R. McKenna and D. Sheldon, "Permute-and-Flip", NeurIPS 2020; Z. Ding et al., "The
Permute-and-Flip Mechanism Is Identical to Report-Noisy-Max with Exponential Noise", 2021.
"""

from fractions import Fraction
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_known, require_positive
from dpublish.mechanisms.exact.sampler import (
    LARGEST_BOUND,
    LARGEST_NOISE,
    bernoulli_exp,
    require_rate,
    uniform_below,
)
from dpublish.mechanisms.weighted_choice import weighted_choice
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

PERMUTE_AND_FLIP = "permute-and-flip"
EXPONENTIAL = "exponential"
FARTHEST = LARGEST_NOISE  # a candidate farther than this below the best counts as this far below
FINEST = -200
"""Least exponent of a lattice of scores."""
_LARGEST = 2.0**800  # times 2**200 is still a float; infinity counts as this much


def select(
    scores: NDArray[np.integer[Any]],
    *,
    sensitivity_range: int | Fraction,
    method: str = PERMUTE_AND_FLIP,
    weights: NDArray[np.integer[Any]] | None = None,
    budget: Budget,
    rng: RandomSource,
) -> int:
    """Choose the index of a candidate with a high score.

    Args:
        scores: An integer for each of a public list of candidates; higher is better.
        sensitivity_range: R, the most by which one record can change the difference between
            two scores (for counts 1, since a record adds 0 or 1 to each).
        method: "permute-and-flip", whose expected score is never the lower one, or
            "exponential", which takes weights.
        weights: Public integers: how many equal candidates each one stands for.
        budget: Budget to empty, even if there is only one candidate: what a choice costs must
            not depend on how it was reached.
        rng: Source of randomness.

    Privacy:
        `budget.epsilon`-differentially private for neighbors whose changes of score differ by
        at most R between candidates; scores are exact, and so are the odds.  With rate =
        epsilon / R and changes d_o, an exponential weight over the sum of weights changes by at
        most exp(rate * (max d - min d)) <= exp(epsilon).  Permute-and-flip is the argmax of
        score plus exponential noise of that rate: if o wins when its noise exceeds t, a
        neighbor moves t by at most R, and a tail beyond t + R holds exp(-epsilon) of the tail
        beyond t.  Raising scores to the highest - 2^62 + 1 at least leaves R as it is.
        Proof: docs/proofs/selection.md.

    >>> from dpublish.randomness import seeded
    >>> counts = np.array([12, 90, 31])
    >>> select(counts, sensitivity_range=1, budget=Budget.seeded("0.5"), rng=seeded(1))
    1
    """
    require_scores(scores)
    require_known("method of selection", method, (PERMUTE_AND_FLIP, EXPONENTIAL))
    if weights is not None:
        _require_weights(weights, scores.size, method)
    rate = selection_rate(budget.epsilon, sensitivity_range)
    budget.spend()
    if method == PERMUTE_AND_FLIP:
        return permute_and_flip(rate, distances_below_best(scores), rng)
    if weights is None:
        return weighted_choice(rate, distances_below_best(scores), None, rng)
    eligible = np.flatnonzero(weights)
    distances = distances_below_best(scores[eligible])
    chosen = weighted_choice(rate, distances, weights[eligible].astype(np.int64), rng)
    return int(eligible[chosen])


def permute_and_flip(rate: Fraction, distances: NDArray[np.int64], rng: RandomSource) -> int:
    """Flip a coin of probability exp(-rate * distance) for each; choose evenly among the heads.

    The published algorithm visits the candidates in random order and stops at the first head.
    The order is independent of the coins, so the first head is any of the heads with equal
    probabilities, and the coins that it leaves unflipped change nothing.  The best always shows
    heads.
    """
    heads = np.flatnonzero(bernoulli_exp(rate, distances, rng))
    return int(heads[uniform_below(len(heads), 1, rng)[0]])


def distances_below_best(scores: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Measure how far each score lies below the highest, up to 2^62 - 1.

    >>> distances_below_best(np.array([3, 9, -(2**63)])).tolist() == [6, 0, 2**62 - 1]
    True
    """
    highest = scores.max().astype(np.uint64)
    # Modulo 2^64 the difference is right even where the scores span more than an int64 holds.
    gaps: NDArray[np.uint64] = highest - scores.astype(np.uint64)
    return np.minimum(gaps, np.uint64(FARTHEST)).astype(np.int64)


def selection_rate(epsilon: Fraction, sensitivity_range: int | Fraction) -> Fraction:
    """Calibrate a choice: how much of the odds each unit of score is worth."""
    if not isinstance(sensitivity_range, (int, Fraction)):
        raise InvalidParameter("sensitivity_range must be an integer or a Fraction")
    require_positive(sensitivity_range=sensitivity_range)
    rate = epsilon / sensitivity_range
    require_rate(rate)
    return rate


def require_scores(scores: NDArray[np.integer[Any]]) -> None:
    """Refuse anything but a list of at least one integer, judging by type and size only.

    A plain list is refused, since its type would depend on the (private) values in it, and so
    is a masked array, whose mask would be private too.
    """
    if type(scores) is not np.ndarray or scores.dtype.kind not in "iu" or scores.ndim != 1:
        raise InvalidParameter(
            "scores must be a one-dimensional array of integers; quantize() makes one of reals"
        )
    if scores.size == 0:
        raise InvalidParameter("there must be at least one candidate to choose from")


def _require_weights(weights: NDArray[np.integer[Any]], size: int, method: str) -> None:
    if method != EXPONENTIAL:
        raise InvalidParameter('weights need method="exponential"')
    if type(weights) is not np.ndarray or weights.dtype.kind not in "iu":
        raise InvalidParameter("weights must be an array of integers")
    if weights.shape != (size,):
        raise InvalidParameter("weights must be as many as the scores")
    if weights.min() < 0 or not 0 < sum(weights.tolist()) < LARGEST_BOUND:
        raise InvalidParameter("weights must not be negative, and add up to 1 or more, below 2^62")


def shortfall_95(candidates: int, rate: Fraction) -> int:
    """Bound how far a choice by permute-and-flip falls behind the best, with probability 95 %.

    A candidate more than t below the best shows heads with probability at most
    exp(-rate (t + 1)), and is then chosen with at most one half, for the best shows heads too.

    >>> shortfall_95(2, Fraction(1, 10))
    23
    """
    probability = 2 * 0.05 / max(candidates - 1, 1)
    return max(0, ceil(-log(probability) / float(rate)) - 1)


class LatticeScores(NamedTuple):
    """Whole scores, in steps below the highest, and their range sensitivity in steps."""

    scores: NDArray[np.int64]
    sensitivity_range: int


def quantize(
    scores: NDArray[np.floating[Any]],
    *,
    sensitivity_range: int | Fraction,
    numeric_error: int | Fraction = 0,
    exponent: int,
    aligned: bool = False,
) -> LatticeScores:
    """Round scores down to multiples of 2**exponent and count them in steps from the highest.

    The result goes to `select` or `top_k`, scores and range together.  No score raises an
    error, for an error would give it away: NaN counts as lower than all, and a score `FARTHEST`
    or more steps below the highest counts as that many below.  Scores are assumed to be at
    most 2**800 in size; what is larger counts as 2**800, and then R must hold of that.

    Args:
        scores: Real scores, one for each of a public list of candidates.
        sensitivity_range: R of the ideal scores: the most by which one record can change the
            difference between two of them.
        numeric_error: Bound on how far a computed score is from its ideal value.
        exponent: Public fineness of the lattice, from -200 to 0.
        aligned: Guarantee that for any two neighbors all changes of score lie between two
            multiples of 2**exponent that are R apart (counts: between 0 and 1), and that
            the scores are computed without error.  Then rounding costs nothing.

    >>> quantize(np.array([0.4, 2.6]), sensitivity_range=1, exponent=-1)
    LatticeScores(scores=array([-5,  0]), sensitivity_range=3)
    >>> quantize(np.array([0.4, 2.6]), sensitivity_range=1, exponent=-1, aligned=True)
    LatticeScores(scores=array([-5,  0]), sensitivity_range=2)
    """
    steps = lattice_range(
        sensitivity_range=sensitivity_range,
        numeric_error=numeric_error,
        exponent=exponent,
        aligned=aligned,
    )
    if type(scores) is not np.ndarray or scores.dtype.kind != "f" or scores.ndim != 1:
        raise InvalidParameter("scores must be a one-dimensional array of floats")
    if scores.dtype.itemsize > 8 or scores.size == 0:
        raise InvalidParameter("scores must be at least one float of at most 64 bits")
    with np.errstate(all="ignore"):  # a warning would give a score away, too
        finite = np.nan_to_num(scores.astype(np.float64), nan=-_LARGEST)
        # Scaling up by a power of two and rounding down are both exact.
        floors = np.floor(np.ldexp(finite.clip(-_LARGEST, _LARGEST), -exponent))
    return LatticeScores(-_steps_below_highest(floors), steps)


def lattice_range(
    *,
    sensitivity_range: int | Fraction,
    numeric_error: int | Fraction = 0,
    exponent: int,
    aligned: bool = False,
) -> int:
    """Bound the range sensitivity of scores rounded down to multiples of 2**exponent, in steps.

    If all changes lie in [a, b] with b - a <= R, the computed ones lie in [a - 2e, b + 2e] for
    an error e.  Rounded down, they lie between floor(a - 2e) and ceil(b + 2e), in steps: at
    most one more than R + 4e, rounded up.  (Bounds for a symmetric interval, such as
    2 * ceil(sensitivity), would be too small here: the ends need not be multiples of a step.)
    """
    for value in (sensitivity_range, numeric_error):
        if not isinstance(value, (int, Fraction)):
            raise InvalidParameter(
                "sensitivity_range and numeric_error must be integers or Fractions"
            )
    require_positive(sensitivity_range=sensitivity_range)
    if numeric_error < 0:
        raise InvalidParameter(f"numeric_error ({numeric_error}) must not be negative")
    if not isinstance(exponent, int) or not FINEST <= exponent <= 0:
        raise InvalidParameter(f"exponent ({exponent}) must be an integer from {FINEST} to 0")
    steps = (sensitivity_range + 4 * Fraction(numeric_error)) * (1 << -exponent)
    if not aligned:
        return ceil(steps) + 1
    if numeric_error or steps.denominator != 1:
        raise InvalidParameter(
            "aligned scores have no numeric_error, and a sensitivity_range of whole steps"
        )
    return steps.numerator


def _steps_below_highest(floors: NDArray[np.float64]) -> NDArray[np.int64]:
    highest = int(floors.max())
    if abs(highest) < FARTHEST:
        inside = floors.clip(min=-(2.0**63)).astype(np.int64)
        return np.asarray(highest - np.maximum(inside, highest - FARTHEST))
    steps = (min(highest - int(floor), FARTHEST) for floor in floors.tolist())
    return np.fromiter(steps, dtype=np.int64, count=floors.size)
