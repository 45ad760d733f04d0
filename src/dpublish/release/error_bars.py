"""Error bars for sums of noisy counts.

Each published count carries independent two-sided geometric noise of a known rate, so the
error of any sum of them is known before and after the release.
"""

from fractions import Fraction
from math import ceil, exp, expm1, inf, log, log1p

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.noise_law import sum_quantile


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that is not strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence ({confidence}) must lie between 0 and 1, such as 0.95")


def half_width(rate: Fraction, weights: NDArray[np.float64], confidence: float) -> float:
    """Bound the error of a weighted sum of noisy counts with probability `confidence`.

    Whole cells (weights 0 and 1) get the exact quantile of the noise.  A sum with cells
    counted in part gets a Chernoff bound, which is a little wide but always holds.
    """
    require_confidence(confidence)
    used = weights[weights != 0]
    if used.size == 0:
        return 0.0
    if np.all(used == 1):
        return float(sum_quantile(rate, int(used.size), confidence))
    return _chernoff(float(rate), used, confidence)


def _chernoff(rate: float, weights: NDArray[np.float64], confidence: float) -> float:
    """Minimise (log M(s) + log(2 / α)) / s over s, M being the moment generating function."""
    values, repeats = np.unique(np.abs(weights), return_counts=True)
    limit = rate / float(values.max())
    target = log(2 / (1 - confidence))
    # log of E exp(tN) = (1-a)² / ((1 - a e^t)(1 - a e^-t)) with a = e^-rate
    log_one_minus_a = log(-expm1(-rate))

    def bound(share: float) -> float:
        t = share * limit * values
        log_moment = (
            2 * log_one_minus_a - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
        )
        return (float(repeats @ log_moment) + target) / (share * limit)

    best = minimize_scalar(bound, bounds=(1e-9, 1 - 1e-9), method="bounded")
    return float(best.fun)


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
