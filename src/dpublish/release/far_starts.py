"""Starting centres drawn from published points, each far from those before it (k-means++).

Reference: D. Arthur and S. Vassilvitskii, "k-means++: The Advantages of Careful Seeding", 2007.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def far_starts(
    points: FloatArray, weights: FloatArray, clusters: int, sets: int, rng: np.random.Generator
) -> FloatArray:
    """Draw sets of starting centres (sets, centres, dimensions) among weighted points.

    Weights are not negative.  Where no point with a weight is left, any will do.
    """
    return np.stack([_draw(points, weights, clusters, rng) for _ in range(sets)])


def _draw(
    points: FloatArray, weights: FloatArray, clusters: int, rng: np.random.Generator
) -> FloatArray:
    chances = weights
    nearest = np.full(len(points), np.inf)
    chosen = []
    for _ in range(clusters):
        limits = np.cumsum(chances)
        picked = int(np.searchsorted(limits, rng.random() * limits[-1], side="right"))
        if not limits[-1] > 0 or picked == len(points):
            picked = int(rng.integers(len(points)))
        chosen.append(picked)
        nearest = np.minimum(nearest, np.square(points - points[picked]).sum(axis=1))
        chances = weights * nearest
    return points[chosen]
