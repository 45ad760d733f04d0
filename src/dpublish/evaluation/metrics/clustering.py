"""How far points lie from the centres of their clusters.

Measured on true points, so the figure is not private.
"""

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter

FloatArray = NDArray[np.float64]
_BLOCK = 1 << 20


def normalised_intra_cluster_variance(points: FloatArray, centres: FloatArray) -> float:
    """Measure the mean squared distance from the nearest centre (NICV): 0 is perfect.

    Both are rows of coordinates between -1 and 1, so that columns weigh the same.

    >>> normalised_intra_cluster_variance(np.array([[0.0], [1.0]]), np.array([[0.5], [1.0]]))
    0.125
    """
    if points.ndim != 2 or centres.ndim != 2 or points.shape[1] != centres.shape[1]:
        raise InvalidParameter("points and centres must have the same columns")
    if not len(points) or not len(centres):
        raise InvalidParameter("there must be points and centres to measure")
    total = 0.0
    rows = max(_BLOCK // centres.size, 1)
    for start in range(0, len(points), rows):
        apart = points[start : start + rows, None, :] - centres
        total += float(np.square(apart).sum(axis=2).min(axis=1).sum())
    return total / len(points)
