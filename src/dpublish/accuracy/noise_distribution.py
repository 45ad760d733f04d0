"""The distribution of two-sided geometric noise in floats: for intervals, never for drawing noise.

P(N = k) = (1 - a) / (1 + a) * a^|k| with a = exp(-rate).
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, log, log1p, sinh

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpublish.errors import InvalidParameter, require_count, require_positive

LONGEST_LATTICE = 1 << 22
_NEGLIGIBLE = 1e-18  # mass that may wrap around the lattice
_ROUNDING = 1e-11  # sums of floats are not trusted further into the tail
_STEEPEST = 600.0  # beyond this rate noise is 0 but for 1 in e^600 draws, and sinh overflows
_SHARES = np.concatenate([np.geomspace(1e-6, 0.5, 500), 1 - np.geomspace(1e-6, 0.5, 500)])


def noise_pmf(rate: Fraction | float, values: ArrayLike) -> NDArray[np.float64]:
    """Compute P(N = k) for every k of `values`."""
    decay = float(rate)
    height = -expm1(-decay) / (1 + exp(-decay))
    return np.asarray(height * np.exp(-decay * np.abs(np.asarray(values, dtype=np.float64))))


def noise_survival(rate: Fraction | float, values: ArrayLike) -> NDArray[np.float64]:
    """Compute P(N >= k) for every k of `values`."""
    decay = float(rate)
    whole = np.asarray(values, dtype=np.float64)
    upper = np.exp(-decay * np.maximum(whole, 0)) / (1 + exp(-decay))
    lower = 1 - np.exp(-decay * np.maximum(1 - whole, 0)) / (1 + exp(-decay))
    return np.asarray(np.where(whole > 0, upper, lower))


def noise_variance(rate: Fraction | float) -> float:
    """Compute the variance of one draw, 2a / (1 - a)^2.

    >>> round(noise_variance(Fraction(1, 10)), 2)
    199.83
    """
    half = float(rate) / 2
    return 0.5 / sinh(half) ** 2 if half < 300 else 0.0


@lru_cache(maxsize=4096, typed=True)  # wide tables ask for the same one column after column
def sum_quantile(rate: Fraction | float, terms: int, confidence: float) -> int:
    """Find how far the sum of `terms` independent draws strays with probability `confidence`.

    It is the smallest q with P(|sum| <= q) >= confidence, up to float rounding: in closed form
    for one term, else from the characteristic function by a fast Fourier transform.  Where
    that would take more than 2**22 points, or the confidence is within 1e-11 of 1, it is a
    proven upper bound instead: the better of Chernoff's bound and of `_coarse_quantile`.

    >>> sum_quantile(Fraction(1, 10), 1, 0.95), sum_quantile(Fraction(1, 10), 100, 0.95)
    (30, 277)
    """
    require_positive(rate=rate)
    require_count(terms=terms)
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence ({confidence}) must lie between 0 and 1")
    decay = min(float(rate), _STEEPEST)
    if terms == 1:
        return _single_quantile(decay, confidence)
    bound = _chernoff_quantile(decay, terms, 1 - confidence)
    if 1 - confidence < _ROUNDING:
        return bound
    reach = _chernoff_quantile(decay, terms, _NEGLIGIBLE)
    if 2 * reach < LONGEST_LATTICE:
        return _lattice_quantile(decay, terms, confidence, reach)
    return min(bound, _coarse_quantile(decay, terms, confidence, reach))


def _single_quantile(decay: float, confidence: float) -> int:
    """Invert P(|N| > q) = 2 a^(q+1) / (1 + a)."""
    steps = (log(2) - log1p(exp(-decay)) - log1p(-confidence)) / decay
    # Forgive the last digit, so that a confidence that is met exactly counts as met.
    return max(ceil(steps * (1 - 1e-15)) - 1, 0)


def _chernoff_quantile(decay: float, terms: int, risk: float) -> int:
    """Bound the quantile by P(|sum| >= x) <= 2 E[exp(tN)]^terms exp(-tx), at the best t < rate.

    Every t gives a true bound, so it does no harm to try only some (`_SHARES` of the rate).
    """
    # E[exp(tN)] = 1 / (1 - sinh^2(t/2) / sinh^2(rate/2)).
    ratio = np.sinh(_SHARES * (decay / 2)) / sinh(decay / 2)
    reach = (log(2 / risk) - terms * np.log1p(-(ratio**2))) / (_SHARES * decay)
    return ceil(float(reach.min()))


def _lattice_quantile(decay: float, terms: int, confidence: float, reach: int) -> int:
    """Sum up the distribution of the sum on -reach..reach, whose complement is negligible."""
    points = 1 << (2 * reach + 1).bit_length()
    angles = np.arange(points // 2 + 1) * (np.pi / points)
    # The characteristic function is 1 / (1 + sin^2(angle / 2) / sinh^2(rate / 2)) per term.
    transform = np.exp(-terms * np.log1p((np.sin(angles) / sinh(decay / 2)) ** 2))
    distribution = np.maximum(np.fft.irfft(transform, points)[: reach + 1], 0)
    distribution[1:] *= 2
    # As above: a confidence met up to rounding counts as met.
    return int(np.searchsorted(np.cumsum(distribution), confidence - 1e-13))


def _coarse_quantile(decay: float, terms: int, confidence: float, reach: int) -> int:
    """Bound the quantile by that of noise on a lattice `factor` times coarser.

    A geometric number with a small rate is floor(E / rate) for an exponential E.  Let
    c = factor; then c floor(E / (c rate)) falls short of it by at most c - 1.  A two-sided
    number is the difference of two such, so it strays by at most c - 1 from c times the
    coarse one, and a sum of `terms` by at most terms (c - 1).
    """
    factor = ceil(4 * reach / LONGEST_LATTICE)
    coarse_reach = _chernoff_quantile(decay * factor, terms, _NEGLIGIBLE)
    coarse = _lattice_quantile(decay * factor, terms, confidence, coarse_reach)
    return factor * coarse + terms * (factor - 1)
