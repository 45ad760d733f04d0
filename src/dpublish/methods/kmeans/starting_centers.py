"""Where a search for clusters starts: centers that know the box and nothing of the records."""

from math import sqrt

import numpy as np
from scipy.spatial.distance import cdist

from dpublish.errors import require_count
from dpublish.randomness import RandomSource, plain_generator
from dpublish.types import FloatArray

_STEPS = 20
_TRIES_EACH = 100
_BLOCK = 256  # points that are drawn at once


def public_generator(rng: RandomSource) -> np.random.Generator:
    """Make a generator for draws that have nothing to do with any record.

    Its seed is a word of `rng`, so that a seeded release can be repeated.  The noise comes
    from later words: who guesses the seed learns nothing of it.
    """
    return plain_generator(int(rng.words(1)[0]))


def uniform_centers(clusters: int, dimensions: int, rng: np.random.Generator) -> FloatArray:
    """Draw centers uniformly from the box, a row for each.

    `rng` is public randomness: the draws tell nothing of any record.
    """
    require_count(clusters=clusters, dimensions=dimensions)
    return rng.uniform(-1.0, 1.0, (clusters, dimensions))


def spread_centers(clusters: int, dimensions: int, rng: np.random.Generator) -> FloatArray:
    """Draw centers that keep far from each other and from the corners (sphere packing).

    For a radius, points are drawn one at a time and kept if they are two radii from all kept
    before and one from every corner.  The radius is bisected; the last success counts.

    >>> spread_centers(3, 2, np.random.Generator(np.random.Philox(key=1))).shape
    (3, 2)
    """
    found = uniform_centers(clusters, dimensions, rng)  # the radius 0 always succeeds
    low, high = 0.0, sqrt(dimensions)
    for _ in range(_STEPS):
        radius = (low + high) / 2
        placed = _place(radius, clusters, dimensions, rng)
        if placed is None:
            high = radius
        else:
            low, found = radius, placed
    return found


def _place(
    radius: float, clusters: int, dimensions: int, rng: np.random.Generator
) -> FloatArray | None:
    """Place all centers within 100 tries for each, or give up."""
    kept = np.empty((clusters, dimensions))
    count, tries = 0, _TRIES_EACH * clusters
    for start in range(0, tries, _BLOCK):
        points = uniform_centers(min(_BLOCK, tries - start), dimensions, rng)
        to_corner = _square(1 - np.abs(points))
        left = points[to_corner >= radius * radius]
        if count:
            nearest = cdist(left, kept[:count], "sqeuclidean").min(axis=1)
            left = left[nearest >= 4 * radius * radius]
        # Each point in turn is kept if it is far enough from all kept before, so the first
        # that is left is always kept, and strikes out the later ones that are too near to it.
        while len(left):
            kept[count] = left[0]
            count += 1
            if count == clusters:
                return kept
            apart = _square(left[1:] - left[0])
            left = left[1:][apart >= 4 * radius * radius]
    return None


def _square(vectors: FloatArray) -> FloatArray:
    """Give the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors))
