"""Turn noisy counts into counts that could be real: not negative, adding up, whole.

Clamping at zero would add about 1/(2ε) to every empty cell, and rounding down would take
half a record from each.  The projection does neither: it is the nearest point, by squares,
among all non-negative counts with the wanted total.
"""

import numpy as np
from numpy.typing import NDArray


def project_nonnegative(
    counts: NDArray[np.int64] | NDArray[np.float64], total: float
) -> NDArray[np.float64]:
    """Find the nearest counts that are not negative and add up to `total`.

    A total of zero or less gives all zeros.

    >>> project_nonnegative(np.array([5, -2, 3]), 6).tolist()
    [4.0, 0.0, 2.0]
    """
    values = np.asarray(counts, dtype=np.float64)
    if total <= 0 or values.size == 0:
        return np.zeros(values.shape)
    # The answer is max(count - level, 0); the level is the only one at which the positive
    # part adds up.  With counts in falling order, k of them stay positive.
    falling = np.sort(values, axis=None)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    positive = np.flatnonzero(falling > levels)
    if not positive.size:  # so small a total cannot be told from nothing beside such counts
        return np.zeros(values.shape)
    level = levels[positive[-1]]
    return np.asarray(np.maximum(values - level, 0.0))


def round_to_total(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round to integers that keep the rounded total, by largest remainder.

    >>> round_to_total(np.array([0.4, 0.4, 0.2])).tolist()
    [1, 0, 0]
    """
    floors = np.floor(values)
    missing = round(float(values.sum())) - int(floors.sum())
    whole = floors.astype(np.int64)
    if missing > 0:
        # A stable sort gives equal remainders to the lower index: a public rule.
        order = np.argsort(-(values - floors), axis=None, kind="stable")
        np.put(whole, order[:missing], np.take(whole, order[:missing]) + 1)
    return whole


def plausible_counts(noisy: NDArray[np.int64], total: float | None = None) -> NDArray[np.int64]:
    """Project noisy counts onto whole, non-negative counts with the same total (or `total`)."""
    wanted = float(noisy.sum()) if total is None else total
    return round_to_total(project_nonnegative(noisy, wanted))
