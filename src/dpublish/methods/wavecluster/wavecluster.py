"""Find clusters of any shape in a grid of counts, with a wavelet (the plain algorithm).

Counts are smoothed by the low-pass half of a wavelet transform.  Coefficients in the upper
part of the positive ones are significant, and neighboring significant coefficients form a
cluster.  Nothing here is private: the methods run it on noisy counts.

Known as: WaveCluster.
Reference: G. Sheikholeslami, S. Chatterjee, A. Zhang, "WaveCluster: A Multi-Resolution
Clustering Approach for Very Large Spatial Databases", VLDB 1998.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.methods.wavecluster.filters import AxisFilter

Adjacency = Literal["full", "face"]
ADJACENCIES = ("full", "face")
MOST_PER_CELL = 1 << 40
"""A cell that holds more counts as holding this many, so that sums can be bounded beforehand."""
_INT64 = 1 << 62
NO_CLUSTER = -1

Coefficients = NDArray[Any]
"""Integers: int64 where they fit, Python's own where they might not."""


@dataclass(frozen=True)
class WaveTransform:
    """A wavelet on a grid of `sizes` cells; all of it is public.

    >>> transform = WaveTransform((4, 4))
    >>> counts = np.zeros((4, 4), dtype=np.int64)
    >>> counts[0, 0], counts[1, 1] = 5, 2
    >>> transform.apply(counts).tolist(), transform.unit
    ([[7, 0], [0, 0]], 0.5000000000000001)
    """

    sizes: tuple[int, ...]
    wavelet: str = "haar"
    levels: int = 1

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InvalidParameter("a grid has at least one axis")
        _ = self.filters  # refuses what cannot be transformed

    @cached_property
    def filters(self) -> tuple[AxisFilter, ...]:
        """The filter of each axis."""
        return tuple(AxisFilter.of(size, self.wavelet, self.levels) for size in self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of coefficients along each axis."""
        return tuple(one.coefficients for one in self.filters)

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return prod(self.shape)

    @property
    def unit(self) -> float:
        """What a coefficient of 1 is worth in the usual scale of the wavelet."""
        return prod(one.unit for one in self.filters)

    @property
    def norm(self) -> int:
        """Most by which one coefficient can exceed the largest count in size."""
        return prod(one.norm for one in self.filters)

    def apply(self, counts: NDArray[np.int64]) -> Coefficients:
        """Give the exact coefficients of whole counts, shaped by the axes."""
        clipped = np.clip(counts, -MOST_PER_CELL, MOST_PER_CELL).reshape(self.sizes)
        fits = self.norm * MOST_PER_CELL < _INT64  # public: it does not depend on the counts
        values: Coefficients = clipped.astype(np.int64 if fits else object)
        for axis, one in enumerate(self.filters):
            values = one.apply(values, axis)
        return values


def significant_count(positive: int, percentile: Fraction) -> int:
    """Say how many of the positive coefficients are significant (k), rounded up.

    >>> significant_count(159, Fraction(1, 10))
    144
    """
    return ceil((1 - percentile) * positive)


def significant_cells(coefficients: Coefficients, percentile: Fraction) -> NDArray[np.bool_]:
    """Mark the coefficients that reach the k-th largest of the positive ones."""
    positive = np.sort(coefficients[coefficients > 0])
    if not positive.size:
        return np.zeros(coefficients.shape, dtype=np.bool_)
    least = positive[positive.size - significant_count(positive.size, percentile)]
    return np.asarray(coefficients >= least, dtype=np.bool_)


def largest_cells(coefficients: Coefficients, count: int) -> NDArray[np.bool_]:
    """Mark the `count` largest coefficients, the first of equals; none if it is 0 or less."""
    marked = np.zeros(coefficients.size, dtype=np.bool_)
    marked[np.argsort(-coefficients.ravel(), kind="stable")[: max(count, 0)]] = True
    return marked.reshape(coefficients.shape)


def connect(
    significant: NDArray[np.bool_], adjacency: str = "full", min_cells: int = 1
) -> NDArray[np.int64]:
    """Number the clusters from 0 in the order of their first cells; -1 where there is none.

    Two cells are neighbors if they share a face, or with `full` also a corner or an edge.
    Clusters of fewer than `min_cells` cells are dropped.
    """
    require_known("adjacency", adjacency, ADJACENCIES)
    require_count(min_cells=min_cells)
    reach = 1 if adjacency == "face" else significant.ndim
    structure = ndimage.generate_binary_structure(significant.ndim, reach)
    parts, found = ndimage.label(significant, structure)
    sizes = np.bincount(parts.ravel(), minlength=found + 1)
    kept = sizes >= min_cells
    kept[0] = False
    numbers = np.where(kept, np.cumsum(kept) - 1, NO_CLUSTER)
    return np.asarray(numbers[parts], dtype=np.int64)


def wave_clusters(
    counts: NDArray[np.int64],
    transform: WaveTransform,
    percentile: Fraction = Fraction(1, 10),
    adjacency: str = "full",
) -> NDArray[np.int64]:
    """Run the whole algorithm on exact counts: a cluster number for each coefficient.

    >>> counts = np.zeros((8, 8), dtype=np.int64)
    >>> counts[:2, :2] = counts[6:, 4:] = 9
    >>> wave_clusters(counts, WaveTransform((8, 8))).tolist()
    [[0, -1, -1, -1], [-1, -1, -1, -1], [-1, -1, -1, -1], [-1, -1, 1, 1]]
    """
    require_percentile(percentile)
    return connect(significant_cells(transform.apply(counts), percentile), adjacency)


def require_percentile(percentile: Fraction) -> None:
    """Refuse a percentile that is not an exact number strictly between 0 and 1."""
    if not isinstance(percentile, Fraction) or not 0 < percentile < 1:
        raise InvalidParameter(f"percentile ({percentile}) must be a Fraction between 0 and 1")
