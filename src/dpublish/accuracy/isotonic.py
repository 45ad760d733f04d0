"""From noisy counts along a column to probabilities, by way of a cumulative count that only rises.

Clamping negative counts to zero adds up to far too many records where most leaves are empty.
The cumulative count hardly suffers from noise, so it is what is made plausible instead.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression


def isotonic_probabilities(bins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn unclamped counts into probabilities that are not negative and add up to 1.

    The nearest rising sequence to the cumulative counts (least squares) is cut off at 0 and at
    the total; the probabilities are its steps.  Without a positive total all leaves get the same.

    >>> isotonic_probabilities(np.array([6.0, -1.0, 1.0, 2.0])).tolist()
    [0.6875, 0.0, 0.0625, 0.25]
    """
    total = float(bins.sum())
    if not total > 0:
        return np.full(bins.size, 1 / bins.size)
    rising = isotonic_regression(np.cumsum(bins)).x
    steps = np.diff(np.clip(rising, 0, total), prepend=0.0)
    probabilities = np.maximum(steps, 0)
    reached = float(probabilities.sum())
    # Next to a total of 0, rounding may leave nothing.
    return np.asarray(probabilities / reached if reached > 0 else np.full(bins.size, 1 / bins.size))
