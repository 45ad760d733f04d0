"""Merge neighboring noisy counts into runs and replace each by the mean of its run.

Known as: NoiseFirst.
Reference: J. Xu, Z. Zhang, X. Xiao, Y. Yang, G. Yu, M. Winslett, "Differentially Private
Histogram Publication", The VLDB Journal 22(6), 2013.
"""

import numpy as np
from numpy.typing import NDArray


def segment_means(noisy: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Replace counts by the means of the runs whose estimated error is the smallest.

    A run B of |B| counts, with noise of `variance` each, costs the spread of its true counts,
    estimated by max(0, SSE(B) - (|B| - 1) variance), plus the error of its mean, `variance`.
    The cheapest way to cut the column is found by dynamic programming, one row at a time; the
    time grows with the square of the number of counts.

    >>> segment_means(np.array([10.0, 12.0, 11.0, 90.0, 92.0]), variance=2.0).tolist()
    [11.0, 11.0, 11.0, 91.0, 91.0]
    """
    size = noisy.size
    centered = noisy - noisy.mean()  # keeps the squares small
    sums = np.concatenate([[0.0], np.cumsum(centered)])
    squares = np.concatenate([[0.0], np.cumsum(centered**2)])
    cheapest = np.zeros(size + 1)
    starts = np.zeros(size + 1, dtype=np.int64)
    lengths = np.arange(size, 0, -1.0)
    for stop in range(1, size + 1):
        length = lengths[size - stop :]
        spread = squares[stop] - squares[:stop] - (sums[stop] - sums[:stop]) ** 2 / length
        bias = np.maximum(spread - (length - 1) * variance, 0)
        costs = cheapest[:stop] + bias
        starts[stop] = int(np.argmin(costs))
        cheapest[stop] = costs[starts[stop]] + variance
    means = np.empty(size)
    stop = size
    while stop:
        start = int(starts[stop])
        means[start:stop] = noisy[start:stop].mean()
        stop = start
    return means
