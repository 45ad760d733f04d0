"""How far points lie from the centers of their clusters.

Measured on true points, so the figures are not private.
"""

from typing import NamedTuple

import numpy as np

from dpublish.errors import InvalidParameter
from dpublish.types import FloatArray, IntArray

_BLOCK = 1 << 20


class ClusterFit(NamedTuple):
    """How points lie around centers.

    Attributes:
        nicv: Mean squared distance from the nearest center.
        sizes: Points nearest to each center, the first of equals.
        distances: Mean squared distance of these points from it; 0 where there are none.
    """

    nicv: float
    sizes: IntArray
    distances: FloatArray


def cluster_fit(points: FloatArray, centers: FloatArray) -> ClusterFit:
    """Measure points around centers; both are rows of coordinates between -1 and 1.

    >>> cluster_fit(np.array([[0.0], [1.0]]), np.array([[0.5], [1.0]])).sizes.tolist()
    [1, 1]
    """
    if points.ndim != 2 or centers.ndim != 2 or points.shape[1] != centers.shape[1]:
        raise InvalidParameter("points and centers must have the same columns")
    if not len(points) or not len(centers):
        raise InvalidParameter("there must be points and centers to measure")
    sizes, sums = np.zeros(len(centers), dtype=np.int64), np.zeros(len(centers))
    rows = max(_BLOCK // centers.size, 1)
    for start in range(0, len(points), rows):
        apart = np.square(points[start : start + rows, None, :] - centers).sum(axis=2)
        nearest = apart.argmin(axis=1)
        sizes += np.bincount(nearest, minlength=len(centers))
        sums += np.bincount(nearest, weights=apart.min(axis=1), minlength=len(centers))
    return ClusterFit(float(sums.sum()) / len(points), sizes, sums / np.maximum(sizes, 1))


def normalized_intra_cluster_variance(points: FloatArray, centers: FloatArray) -> float:
    """Measure the mean squared distance from the nearest center (NICV): 0 is perfect.

    Both are rows of coordinates between -1 and 1, so that columns weigh the same.

    >>> normalized_intra_cluster_variance(np.array([[0.0], [1.0]]), np.array([[0.5], [1.0]]))
    0.125
    """
    return cluster_fit(points, centers).nicv
