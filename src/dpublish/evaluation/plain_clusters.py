"""K-means without privacy: what private centers are measured against."""

import numpy as np

from dpublish.errors import require_count
from dpublish.methods.kmeans.clustering import weighted_lloyd
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray


def plain_centers(
    points: FloatArray, clusters: int, *, starts: int = 10, seed: int = 0
) -> FloatArray:
    """Find centers of points (rows between -1 and 1), the best of several starts.

    Each start takes points as centers, far ones sooner than near ones (k-means++).
    """
    require_count(clusters=clusters, starts=starts, points=len(points))
    rng = plain_generator(seed)
    begun = np.stack([_far_points(points, clusters, rng) for _ in range(starts)])
    return weighted_lloyd(points, np.ones(len(points)), begun).centers


def _far_points(points: FloatArray, clusters: int, rng: np.random.Generator) -> FloatArray:
    chosen = [points[rng.integers(len(points))]]
    apart = np.square(points - chosen[0]).sum(axis=1)
    while len(chosen) < clusters:
        total = apart.sum()
        probabilities = apart / total if total > 0 else None  # all points are centers already
        chosen.append(points[rng.choice(len(points), p=probabilities)])
        np.minimum(apart, np.square(points - chosen[-1]).sum(axis=1), out=apart)
    return np.stack(chosen)
