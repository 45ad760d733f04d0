"""Tell where records are from where only noise is, and start the search for clusters there.

A noisy grid is mostly noise where the box is mostly empty: every empty cell pulls at the
centres.  A weighted mean over a cell's neighbours has much less noise than the cell itself, so
it shows whether there are records around.  Cells where it does not stand out count as empty.
All of this is computed from noisy counts alone.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from dpublish.errors import require_count

FloatArray = NDArray[np.float64]

REACH = 1.0
"""Standard deviation of the mean over neighbours, in cells."""
STANDING_OUT = 2.5
"""Standard deviations of its noise by which such a mean stands out."""
_CANDIDATES = 4


def dense_weights(sizes: tuple[int, ...], weights: FloatArray, deviation: float) -> FloatArray:
    """Set weights to 0 where a cell and its neighbours do not stand out from the noise.

    Args:
        sizes: Number of cells along each side.
        weights: Noisy counts, row by row.
        deviation: Standard deviation of the noise of one of them.
    """
    means = gaussian_filter(weights.reshape(sizes), REACH, mode="constant").ravel()
    least = STANDING_OUT * deviation * _noise_left() ** len(sizes)
    return np.where(means > least, weights, 0.0)


def _noise_left() -> float:
    """Say how much of the noise's deviation is left by the mean along one side."""
    impulse = np.zeros(41)
    impulse[20] = 1.0
    return float(np.sqrt(np.square(gaussian_filter(impulse, REACH)).sum()))


def likely_starts(
    points: FloatArray, weights: FloatArray, clusters: int, sets: int, rng: np.random.Generator
) -> FloatArray:
    """Draw sets of centres from weighted points, each far from those before (k-means++).

    Points are drawn in proportion to weight times squared distance from the nearest centre so
    far; of a few that are drawn, the one that leaves the least is taken.  Where no point is
    left, centres are drawn from the whole box.

    Args:
        points: Points, a row each.
        weights: Weights, none of them negative.
        clusters: Number of centres in a set.
        sets: Number of sets.
        rng: Public randomness.
    """
    require_count(clusters=clusters, sets=sets)
    kept = weights > 0
    return np.stack([_draw(points[kept], weights[kept], clusters, rng) for _ in range(sets)])


def _draw(
    points: FloatArray, weights: FloatArray, clusters: int, rng: np.random.Generator
) -> FloatArray:
    found = rng.uniform(-1.0, 1.0, (clusters, points.shape[1]))
    chances = weights
    apart = np.full(len(points), np.inf)
    for number in range(clusters):
        bounds = np.cumsum(chances)
        if not len(bounds) or bounds[-1] <= 0:
            break
        tries = 1 if number == 0 else _CANDIDATES
        drawn = np.searchsorted(bounds, rng.random(tries) * bounds[-1], side="right")
        drawn = np.minimum(drawn, len(points) - 1)
        left = [np.minimum(apart, _squares(points, points[place])) for place in drawn]
        best = int(np.argmin([distances @ weights for distances in left]))
        found[number], apart = points[drawn[best]], left[best]
        chances = weights * apart
    return found


def _squares(points: FloatArray, centre: FloatArray) -> FloatArray:
    found = np.zeros(len(points))
    for column, value in zip(points.T, centre, strict=True):
        found += np.square(column - value)
    return found
