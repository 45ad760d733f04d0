"""What sparse vector algorithms really cost: probabilities of outcomes, exact up to rounding.

The six algorithms of figure 5.7 of D. Su, PhD thesis, Purdue, 2016, on integers, for queries of
sensitivity 1.  Four of them are not private.  They are described here by the rates of their noise
and by what they tell, and their probabilities are summed over all noisy thresholds; there is
nothing here that could draw an answer, so none of them can be used for a release.

Thresholds are 0: an answer is its distance from the threshold.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, inf, log
from typing import Any, NamedTuple

import numpy as np

from dpublish.mechanisms.sparse_vector.calibration import calibrate
from dpublish.mechanisms.sparse_vector.textbook import calibrate_book
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray

_DEPTH = 60
"""Noise is followed until it is less likely than e^-60."""


@dataclass(frozen=True)
class Variant:
    """One sparse vector algorithm.

    Attributes:
        threshold_rate: Rate of the threshold's noise: P(z) is in proportion to exp(-rate |z|).
        answer_rate: Rate of each answer's noise; None if answers have none.
        max_positives: After how many positives it stops; None if it never does.
        is_one_sided: Whether noise is never negative.
        offset: A public number that is added to the threshold.
        redraws: Whether the threshold is perturbed anew after every positive.
        tells_value: Whether a positive tells the noisy answer that was compared.
    """

    threshold_rate: float
    answer_rate: float | None
    max_positives: int | None
    is_one_sided: bool = False
    offset: int = 0
    redraws: bool = False
    tells_value: bool = False


def _standard(epsilon: Fraction, positives: int, **settings: Any) -> Variant:
    terms = {"sensitivity": 1, "max_positives": positives, "monotonic": False} | settings
    found = calibrate(**terms, budget=Budget.seeded(epsilon))
    return Variant(
        float(found.threshold_rate),
        float(found.answer_rate),
        positives,
        is_one_sided=found.noise == "exponential",
        offset=found.offset,
    )


def _book(epsilon: Fraction, positives: int) -> Variant:
    found = calibrate_book(sensitivity=1, max_positives=positives, budget=Budget.seeded(epsilon))
    return Variant(float(found.threshold_rate), float(found.answer_rate), positives, redraws=True)


VARIANTS: dict[str, Callable[[Fraction, int], Variant]] = {
    "Alg. 17": lambda epsilon, c: _standard(epsilon, c, noise="laplace", ratio=1),
    "Alg. 18": _book,
    "Alg. 19": lambda epsilon, c: Variant(
        float(epsilon / 2), float(epsilon / 2 / c), c, tells_value=True
    ),
    "Alg. 20": lambda epsilon, c: Variant(float(epsilon / 4), float(3 * epsilon / 4), c),
    "Alg. 21": lambda epsilon, c: Variant(float(epsilon / 2), None, None),
    "Alg. 22": lambda epsilon, c: Variant(float(epsilon / 2), float(epsilon / 2), None),
    "dpublish": _standard,
}
"""The algorithms of the thesis, and ours, by the epsilon that they claim and c."""


class Outcome(NamedTuple):
    """Some queries that are told to be below, and some above; answers of each kind are equal."""

    low: int
    negatives: int
    high: int
    positives: int
    value: int | None = None


def log_probability(variant: Variant, outcome: Outcome) -> float:
    """Compute the logarithm of an outcome's probability; -inf if it cannot happen.

    An algorithm that redraws its threshold is asked in rounds, each of which ends with a positive.
    """
    if not (variant.redraws and outcome.positives):
        return _one_threshold(variant, outcome)
    rounds = outcome.positives
    share = outcome.negatives // rounds
    return rounds * _one_threshold(variant, outcome._replace(negatives=share, positives=1))


def loss(variant: Variant, *, negatives: int, positives: int, is_monotonic: bool = False) -> float:
    """Find the privacy loss on the worst of many pairs of neighbors; a lower bound of the cost.

    The answers that are told to be below rise by 1, which is free only if the noisy threshold is
    not known.  Those that are told to be above fall by 1, or stay if all must move one way.
    An algorithm that never stops is asked for as many positives as negatives.
    """
    wanted = negatives if variant.max_positives is None else positives
    found = 0.0
    for here in _pairs(variant, negatives, wanted):
        there = here._replace(low=here.low + 1, high=here.high - (not is_monotonic))
        first, second = log_probability(variant, here), log_probability(variant, there)
        if max(first, second) > -inf:
            found = max(found, abs(first - second))
    return found


def _pairs(variant: Variant, negatives: int, positives: int) -> Iterator[Outcome]:
    near = [round(depth / variant.threshold_rate) for depth in (0, 2, 6, 12)]
    rate = variant.answer_rate
    far = [1] if rate is None else [1, *(-round(depth / rate) for depth in (3, 12))]
    for low in near:
        for high in far:
            outcome = Outcome(low + variant.offset, negatives, high + variant.offset, positives)
            yield outcome._replace(value=outcome.low) if variant.tells_value else outcome


def _one_threshold(variant: Variant, outcome: Outcome) -> float:
    thresholds, weights = _lattice(variant, outcome)
    weights = weights + _times(outcome.negatives, _log_below(variant, thresholds - outcome.low))
    if outcome.value is None:
        above = _log_tail(variant, thresholds - outcome.high)
        return _log_sum(weights + _times(outcome.positives, above))
    told = log_mass(float(variant.answer_rate or inf), np.array([outcome.value - outcome.high]))
    below_value = np.where(thresholds <= outcome.value, weights, -inf)
    return _log_sum(below_value) + outcome.positives * float(told[0])


def _lattice(variant: Variant, outcome: Outcome) -> tuple[FloatArray, FloatArray]:
    """List the values of the noisy threshold that matter, and the logarithms of their mass."""
    width = ceil(_DEPTH / variant.threshold_rate)
    width += 0 if variant.answer_rate is None else ceil(_DEPTH / variant.answer_rate)
    width += max(abs(outcome.low), abs(outcome.high))
    values = np.arange(0 if variant.is_one_sided else -width, width + 1, dtype=np.float64)
    mass = log_mass(variant.threshold_rate, values, is_one_sided=variant.is_one_sided)
    return values + variant.offset, mass


def log_mass(rate: float, k: FloatArray, *, is_one_sided: bool = False) -> FloatArray:
    """Compute log P(noise = k)."""
    if is_one_sided:
        return np.asarray(np.where(k >= 0, np.log(-np.expm1(-rate)) - rate * k, -inf))
    return np.asarray(np.log(np.tanh(rate / 2)) - rate * np.abs(k))


def log_tail(rate: float, k: FloatArray, *, is_one_sided: bool = False) -> FloatArray:
    """Compute log P(noise >= k)."""
    if is_one_sided:
        return np.asarray(-rate * np.maximum(k, 0))
    far = -rate * np.maximum(k, 1 - k) - np.log1p(np.exp(-rate))
    return np.asarray(np.where(k >= 1, far, np.log1p(-np.exp(np.minimum(far, -1e-300)))))


def log_below(rate: float, k: FloatArray, *, is_one_sided: bool = False) -> FloatArray:
    """Compute log P(noise < k)."""
    if not is_one_sided:
        return log_tail(rate, 1 - k)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-rate * np.maximum(k, 0))))


def _log_tail(variant: Variant, needed: FloatArray) -> FloatArray:
    if variant.answer_rate is None:
        return np.where(needed <= 0, 0.0, -inf)
    return log_tail(variant.answer_rate, needed, is_one_sided=variant.is_one_sided)


def _log_below(variant: Variant, needed: FloatArray) -> FloatArray:
    if variant.answer_rate is None:
        return np.where(needed > 0, 0.0, -inf)
    return log_below(variant.answer_rate, needed, is_one_sided=variant.is_one_sided)


def _times(count: int, logs: FloatArray) -> FloatArray:
    return logs * count if count else np.zeros_like(logs)


def _log_sum(logs: FloatArray) -> float:
    highest = float(logs.max())
    return highest if highest == -inf else highest + log(float(np.exp(logs - highest).sum()))


# The argument about GPTT (section 5.2.3).


class Argument(NamedTuple):
    """What is true of a pair of neighbors, and what an argument concludes (all logarithms)."""

    true: float
    argued: float
    honest: float


def gptt_argument(name: str, epsilon: Fraction, queries: int) -> Argument:
    """Follow the argument against GPTT, for GPTT itself or for the private Alg. 17.

    GPTT is asked t queries whose answers rise from 0 to 1 and are told to be below, and t queries
    whose answers fall from 1 to 0 and are told to be above; Alg. 17 only the former.  The argument
    keeps the noisy threshold z within an interval [-d, d] that holds half of what matters; there
    the ratio k(z) of one round's probabilities is at least some k > 1, so that t rounds give at
    least k^t / 2.  `argued` takes k from the interval of one round, as if it did not depend on t.
    `honest` takes it from the interval of t rounds, which grows with t.
    """
    variant = VARIANTS["Alg. 22" if name == "GPTT" else name](epsilon, 1)
    positives = queries if name == "GPTT" else 0
    here = Outcome(0, queries, 1, positives)
    there = Outcome(1, queries, 0, positives)
    true = log_probability(variant, here) - log_probability(variant, there)
    least = [_least_ratio(variant, name, t) for t in (1, queries)]
    argued, honest = (queries * each - log(2) for each in least)
    return Argument(true, argued, honest)


def _least_ratio(variant: Variant, name: str, queries: int) -> float:
    """Find the least logarithm of k(z) in the interval that the argument takes for t rounds."""
    outcome = Outcome(1, queries, 0, queries if name == "GPTT" else 0)
    alpha = log_probability(variant, outcome)
    z = np.arange(-_half_width(variant, alpha), _half_width(variant, alpha) + 1, dtype=np.float64)
    ratio = _log_below(variant, z) - _log_below(variant, z - 1)
    if name == "GPTT":
        ratio += _log_tail(variant, z - 1) - _log_tail(variant, z)
    return float(ratio.min())


def _half_width(variant: Variant, log_alpha: float) -> int:
    """Return d with P(|threshold's noise| > d) at most alpha / 2."""
    return ceil((log(4) - log_alpha) / variant.threshold_rate)


# Noise inside an absolute value (section 5.2.4).


def absolute_loss(variant: Variant, *, threshold: int, is_inside: bool) -> float:
    """Find the privacy loss of comparing |error| with a threshold, over pairs of two queries.

    Outside: |error| + noise is compared; inside: |error + noise|.  Errors move by 1.
    """
    thresholds, weights = _lattice(variant, Outcome(threshold, 0, -threshold, 0))
    tests = {
        error: _absolute_test(variant, thresholds + threshold, error, is_inside)
        for error in range(-threshold - 3, threshold + 4)
    }
    found = 0.0
    errors = [error for error in tests if error + 1 in tests]
    for first in errors:
        for second in (first, -first, -threshold, threshold):
            for sign in (1, -1):
                moved = second + sign
                if second not in tests or moved not in tests:
                    continue
                for kinds in ((0, 1), (1, 1), (0, 0), (1, 0)):
                    here = tests[first][kinds[0]] + tests[second][kinds[1]]
                    there = tests[first + 1][kinds[0]] + tests[moved][kinds[1]]
                    logs = _log_sum(weights + here), _log_sum(weights + there)
                    if max(logs) > -inf:
                        found = max(found, abs(logs[0] - logs[1]))
    return found


def _absolute_test(
    variant: Variant, limits: FloatArray, error: int, is_inside: bool
) -> tuple[FloatArray, FloatArray]:
    """Compute the logarithms of being below and above, for every noisy threshold."""
    if not is_inside:
        needed = limits - abs(error)
        return _log_below(variant, needed), _log_tail(variant, needed)
    # |error + noise| >= limit: the noise is at least limit - error, or at most -limit - error.
    upper = np.exp(_log_tail(variant, limits - error))
    lower = np.exp(_log_below(variant, 1 - limits - error))
    above = np.where(limits <= 0, 1.0, np.minimum(upper + lower, 1.0))
    with np.errstate(divide="ignore"):
        return np.log1p(-above), np.log(above)


# How far apart answers must be (section 5.4).


def alpha_formula(name: str, queries: int, epsilon: float, beta: float) -> float:
    """Return the distance from the threshold at which the choice of one query is right.

    With probability 1 - beta, by theorem 3.24 of Dwork and Roth for SVT, and by the definition of
    the exponential mechanism for EM, in a list of so many queries.
    """
    if name == "EM":
        return (log(queries - 1) + log((1 - beta) / beta)) / epsilon
    return 8 * (log(queries) + log(2 / beta)) / epsilon


def alpha_exact(name: str, queries: int, epsilon: Fraction, beta: float) -> int:
    """Find the least such distance that is an integer, from exact probabilities."""
    low, high = 0, ceil(alpha_formula(name, queries, float(epsilon), beta)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _is_right(name, queries, epsilon, middle) >= 1 - beta:
            high = middle
        else:
            low = middle
    return high


def _is_right(name: str, queries: int, epsilon: Fraction, alpha: int) -> float:
    if name == "EM":
        return 1 / (1 + (queries - 1) * exp(-float(epsilon) * alpha))
    variant = VARIANTS["Alg. 17"](epsilon, 1)
    return exp(log_probability(variant, Outcome(-alpha, queries - 1, alpha, 1)))
