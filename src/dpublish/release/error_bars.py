"""Error bars for sums of noisy counts.

Each published count carries independent two-sided geometric noise of a known rate, so the
error of any sum of them is known before and after the release.
"""

from fractions import Fraction
from math import ceil, exp, expm1, inf, log, log1p, log2

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.noise_law import sum_quantile

_GRID = 1 << 12
_MAX_GROUPS = 256
_MAX_LATTICE = 1 << 18
_ROUNDING = 1e-9  # what the transforms may lose by rounding and by wrapping around


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that is not strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence ({confidence}) must lie between 0 and 1, such as 0.95")


def half_width(rate: Fraction, weights: NDArray[np.float64], confidence: float) -> float:
    """Bound the error of a weighted sum of noisy counts with probability `confidence`.

    Cells that all count alike get the exact quantile of the noise.  Otherwise the law of the
    sum is computed on a grid and rounded outwards, or bounded after Chernoff where that grid
    would be too fine; both always hold, the second being up to twice as wide.
    """
    require_confidence(confidence)
    values, repeats = np.unique(np.abs(weights[weights != 0]), return_counts=True)
    if values.size == 0:
        return 0.0
    if values.size == 1:
        return float(values[0]) * sum_quantile(rate, int(repeats[0]), confidence)
    bound = _chernoff(float(rate), values, repeats, confidence)
    if values.size <= _MAX_GROUPS and bound / float(values[0]) < _MAX_LATTICE:
        return min(bound, _on_grid(float(rate), values, repeats, confidence, bound))
    return bound


def _chernoff(
    rate: float, values: NDArray[np.float64], repeats: NDArray[np.intp], confidence: float
) -> float:
    """Minimise (log M(s) + log(2 / α)) / s over s, M being the moment generating function."""
    limit = rate / float(values.max())
    target = log(2 / (1 - confidence))
    # log of E exp(tN) = (1-a)² / ((1 - a e^t)(1 - a e^-t)) with a = e^-rate
    log_one_minus_a = log(-expm1(-rate))

    def bound(share: float) -> float:
        t = share * limit * values
        moments = np.log(-np.expm1(t - rate)) + np.log(-np.expm1(-t - rate))
        log_moment = float(repeats @ (2 * log_one_minus_a - moments))
        return (log_moment + target) / (share * limit)

    best = minimize_scalar(bound, bounds=(1e-9, 1 - 1e-9), method="bounded")
    return float(best.fun)


def _on_grid(
    rate: float,
    values: NDArray[np.float64],
    repeats: NDArray[np.intp],
    confidence: float,
    bound: float,
) -> float:
    """Find the quantile of the weighted sum from its law on a grid of step `bound` / 4096.

    The cells of one weight add up to a law on whole numbers, known from its characteristic
    function.  Scaled by the weight it is rounded to the grid, which moves the sum by at most
    half a step for each weight; the answer is widened by that.
    """
    step = bound / _GRID
    size = 8 * _GRID  # four bounds either way: what wraps around is less than the rounding
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    decay = exp(-rate)
    for value, repeat in zip(values, repeats, strict=True):
        length = 1 << max(6, ceil(log2(8 * bound / value)))
        angles = 2 * np.pi * np.arange(length // 2 + 1) / length
        ratio = (1 - decay) ** 2 / (1 - 2 * decay * np.cos(angles) + decay * decay)
        law = np.fft.irfft(ratio**repeat, length)
        places = np.rint(np.fft.fftfreq(length, 1 / length) * value / step).astype(np.int64)
        transform *= np.fft.rfft(np.bincount(places % size, weights=law, minlength=size))
    law = np.fft.irfft(transform, size)
    both_sides = law[1 : size // 2] + law[: size // 2 : -1]
    outside = 1 - law[0] - np.concatenate([[0.0], np.cumsum(both_sides)]) + _ROUNDING
    first = int(np.argmax(outside <= 1 - confidence))
    if outside[first] > 1 - confidence:
        return inf  # too close to certainty to be decided here; the caller has another bound
    return (first + values.size / 2) * step


def one_cell_bound(rate: Fraction, cells: int, confidence: float) -> int:
    """Find how far noise may reach on one side in any of `cells` cells at once.

    By the union bound, every cell's noise stays at or below the answer with probability
    `confidence`: P(N > q) = a^(q+1) / (1 + a).
    """
    require_confidence(confidence)
    a = exp(-float(rate))
    tail = (1 - confidence) / max(cells, 1)
    reach = -(log(tail) + log1p(a)) / float(rate) - 1
    return max(0, ceil(reach)) if reach < inf else 0


def count_errors(rate: Fraction, cells: int, threshold: int | None) -> dict[str, float]:
    """Foretell the errors of a histogram's counts (95 %), dense or above a threshold.

    Cells above a threshold were picked by their noise, so of the published ones only the
    bound that holds for all cells of the domain at once says anything.
    """
    every = {"all_cells_95": float(one_cell_bound(rate, 2 * cells, 0.95))}
    if threshold is None:
        one = {"one_cell_95": float(sum_quantile(rate, 1, 0.95))}
        return {**one, **every, "total_95": float(sum_quantile(rate, cells, 0.95))}
    decay = exp(-float(rate))
    expected_false = cells * exp(-float(rate) * threshold) / (1 + decay)
    return {**every, "threshold": float(threshold), "expected_false_cells": expected_false}
