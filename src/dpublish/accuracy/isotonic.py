"""Isotonic regression: probabilities from noisy counts along a column, and monotone curves.

Clamping negative counts to zero adds up to far too many records where most values are empty.
Noise changes cumulative counts little, so these are made plausible instead.
"""

import numpy as np
from scipy.optimize import isotonic_regression

from dpublish.types import FloatArray


def isotonic_probabilities(bins: FloatArray) -> FloatArray:
    """Compute probabilities from unclamped counts; they are not negative and add up to 1.

    The nearest rising sequence to the cumulative counts (least squares) is cut off at 0 and at
    the total; the probabilities are its steps.  Without a positive total all values get the same.

    >>> isotonic_probabilities(np.array([6.0, -1.0, 1.0, 2.0])).tolist()
    [0.6875, 0.0, 0.0625, 0.25]
    """
    total = float(bins.sum())
    if not total > 0:
        return np.full(bins.size, 1 / bins.size)
    rising = isotonic_regression(np.cumsum(bins)).x
    steps = np.diff(np.clip(rising, 0, total), prepend=0.0)
    probabilities = np.maximum(steps, 0)
    mass = float(probabilities.sum())
    # Next to a total of 0, rounding may leave nothing.
    return np.asarray(probabilities / mass if mass > 0 else np.full(bins.size, 1 / bins.size))


def monotone_fit(values: FloatArray, *, is_falling: bool) -> FloatArray:
    """Compute the nearest sequence (least squares) that never rises, or never falls.

    >>> monotone_fit(np.array([3.0, 1.0, 2.0]), is_falling=True).tolist()
    [3.0, 1.5, 1.5]
    """
    return np.asarray(isotonic_regression(values, increasing=not is_falling).x)
