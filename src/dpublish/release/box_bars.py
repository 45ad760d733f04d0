"""Error bars for sums of many noisy counts with noise of several rates."""

from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.mechanisms.noise_law import noise_variance
from dpublish.release.error_bars import half_width

FloatArray = NDArray[np.float64]

_WIDEST = Fraction(1, 4)  # noise of a smaller rate is all but continuous
_MOST_GROUPS = 200
_NEGLIGIBLE = 1e-3


def mixed_half_width(
    rates: tuple[Fraction, ...], weights: tuple[FloatArray, ...], confidence: float
) -> float:
    """Bound the error of a weighted sum of noisy counts of several rates.

    The bar of counts of one rate with equal weights is that of `half_width`.  Otherwise each
    noise is replaced by wider noise of one rate, the smallest (but 1/4 at least), which
    docs/proofs/boxes.md justifies; weights are rounded upwards to 200 sizes, and the smallest,
    which hold a thousandth of the variance, are made up for by the others.

    Args:
        rates: The rates of the noise, in any order.
        weights: For each rate, the weights of its counts.
        confidence: Probability with which the bar holds.

    >>> mixed_half_width((Fraction(1, 10),), (np.ones(1),), 0.95)
    30.0
    """
    parts = [(r, w[w != 0]) for r, w in zip(rates, weights, strict=True) if np.any(w != 0)]
    if not parts:
        return 0.0
    if len(parts) == 1 and np.unique(np.abs(parts[0][1])).size == 1:
        return half_width(*parts[0], confidence)
    smallest = min(r for r, _ in parts)
    rate = max(smallest, _WIDEST)
    # Noise of rate q times q gets wider as q gets smaller, and in the end has variance 2.
    stretch = 1.0 if rate == smallest else sqrt(2 / (float(rate) ** 2 * noise_variance(rate)))
    scaled = [np.abs(w) * (float(rate / r) * stretch) for r, w in parts]
    return half_width(rate, _grouped(np.concatenate(scaled)), confidence)


def _grouped(weights: FloatArray) -> FloatArray:
    """Round weights upwards to a few sizes, the smallest taken care of by the others."""
    if np.unique(weights).size <= _MOST_GROUPS:
        return weights
    rising = np.sort(weights)
    squares = np.cumsum(rising**2)
    first = int(np.searchsorted(squares, _NEGLIGIBLE * squares[-1]))
    kept = rising[first:] * sqrt(squares[-1] / (squares[-1] - (squares[first - 1] if first else 0)))
    sizes = np.geomspace(kept[0], kept[-1], _MOST_GROUPS)
    sizes[-1] = kept[-1]  # whatever rounding did to it
    return np.asarray(sizes[np.searchsorted(sizes, kept)], dtype=np.float64)
