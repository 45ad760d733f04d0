"""Confidence intervals for sums of noisy counts.

Each published count carries independent two-sided geometric noise of a known rate, so the
error of any sum of them is known before and after the release.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, exp, inf, log, log1p

import numpy as np

from dpublish.accuracy.noise_distribution import Terms, quantile, sum_quantile
from dpublish.errors import InvalidParameter
from dpublish.types import FloatArray


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that is not strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence ({confidence}) must lie between 0 and 1, such as 0.95")


def half_width(
    rate: Fraction, weights: FloatArray, confidence: float, *, deviation: float = 0.0
) -> float:
    """Return the half-width of the confidence interval of a weighted sum of noisy counts.

    Counts of equal weight get the exact quantile of the noise, others that of the distribution
    of the weighted sum, rounded outwards by about 1 %.

    Args:
        rate: Rate of the noise of every count.
        weights: How much each count counts.
        confidence: Probability with which the interval holds the truth.
        deviation: Standard deviation of a normal error on top of the noise.

    >>> half_width(Fraction(1, 10), np.ones(100), 0.95)
    277.0
    >>> round(half_width(Fraction(1, 10), np.ones(100), 0.95, deviation=200), -1)
    490.0
    """
    return mixed_half_width([rate], [weights], confidence, deviation=deviation)


def mixed_half_width(
    rates: Sequence[Fraction],
    weights: Sequence[FloatArray],
    confidence: float,
    *,
    deviation: float = 0.0,
) -> float:
    """Return the half-width for a weighted sum of counts whose noise has different rates.

    Args:
        rates: The rates of the noise.
        weights: For each rate, how much each of its counts counts.
        confidence: Probability with which the interval holds the truth.
        deviation: Standard deviation of a normal error on top of the noise.
    """
    parts = [np.full(w.size, float(r)) for r, w in zip(rates, weights, strict=True)]
    flat = [np.ravel(w).astype(np.float64) for w in weights]
    nothing = np.empty(0)
    terms = Terms.gather(np.concatenate([nothing, *flat]), np.concatenate([nothing, *parts]))
    return terms_half_width(terms, confidence, deviation=deviation)


def terms_half_width(terms: Terms, confidence: float, *, deviation: float = 0.0) -> float:
    """Return the half-width for a sum whose terms are gathered by weight and rate."""
    require_confidence(confidence)
    return quantile(terms, confidence, deviation)


def one_cell_bound(rate: Fraction, cells: int, confidence: float) -> int:
    """Bound the noise on one side in all of `cells` cells at once.

    By the union bound, every cell's noise stays at or below the answer with probability
    `confidence`: P(N > q) = a^(q+1) / (1 + a).
    """
    require_confidence(confidence)
    a = exp(-float(rate))
    tail = (1 - confidence) / max(cells, 1)
    bound = -(log(tail) + log1p(a)) / float(rate) - 1
    return max(0, ceil(bound)) if bound < inf else 0


def count_errors(rate: Fraction, cells: int, threshold: int | None) -> dict[str, float]:
    """Predict the errors of a histogram's counts (95 %), dense or above a threshold.

    Cells above a threshold were picked by their noise, so of the published ones only the
    bound that holds for all cells of the domain at once applies.
    """
    every = {"all_cells_95": float(one_cell_bound(rate, 2 * cells, 0.95))}
    if threshold is None:
        one = {"one_cell_95": float(sum_quantile(rate, 1, 0.95))}
        return {**one, **every, "total_95": float(sum_quantile(rate, cells, 0.95))}
    decay = exp(-float(rate))
    expected_false = cells * exp(-float(rate) * threshold) / (1 + decay)
    return {**every, "threshold": float(threshold), "expected_false_cells": expected_false}
