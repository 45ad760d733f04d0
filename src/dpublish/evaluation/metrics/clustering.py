"""How far points lie from the centers of their clusters.

Measured on true points, so the figure is not private.
"""

import numpy as np

from dpublish.errors import InvalidParameter
from dpublish.types import FloatArray

_BLOCK = 1 << 20


def normalized_intra_cluster_variance(points: FloatArray, centers: FloatArray) -> float:
    """Measure the mean squared distance from the nearest center (NICV): 0 is perfect.

    Both are rows of coordinates between -1 and 1, so that columns weigh the same.

    >>> normalized_intra_cluster_variance(np.array([[0.0], [1.0]]), np.array([[0.5], [1.0]]))
    0.125
    """
    if points.ndim != 2 or centers.ndim != 2 or points.shape[1] != centers.shape[1]:
        raise InvalidParameter("points and centers must have the same columns")
    if not len(points) or not len(centers):
        raise InvalidParameter("there must be points and centers to measure")
    total = 0.0
    rows = max(_BLOCK // centers.size, 1)
    for start in range(0, len(points), rows):
        apart = points[start : start + rows, None, :] - centers
        total += float(np.square(apart).sum(axis=2).min(axis=1).sum())
    return total / len(points)
