"""WaveCluster: clusters of any shape in a grid of counts, found with a wavelet.

Counts are smoothed by the low-pass half of a wavelet transform.  Coefficients in the upper
part of the positive ones are significant, and neighboring significant coefficients form a
cluster.  Nothing here is private: the methods run it on noisy counts.  The last section bounds
how much one record can change what they read from the exact coefficients.

Weights are integers, so that a coefficient is exact: whether it is positive, and which of two is
larger, never depends on rounding.

Reference: G. Sheikholeslami, S. Chatterjee, A. Zhang, "WaveCluster: A Multi-Resolution
Clustering Approach for Very Large Spatial Databases", VLDB 1998.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import ceil, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.methods.wavecluster.filters import FILTERS, WAVELETS

Adjacency = Literal["full", "face"]
ADJACENCIES = ("full", "face")
MOST_PER_CELL = 1 << 40
"""A cell that holds more counts as holding this many, so that sums can be bounded beforehand."""
_INT64 = 1 << 62
NO_CLUSTER = -1
"""Label of what lies in no cluster, or not in the box."""

Coefficients = NDArray[Any]
"""Integers: int64 where they fit, Python's own where they might not."""


# --- The wavelet -----------------------------------------------------------------------------


@dataclass(frozen=True)
class AxisFilter:
    """Weights of the cells `step * r + offset` (around the axis) in coefficient r.

    It is the smoothing half of a wavelet transform along one axis.  A level halves the axis:
    each coefficient is a weighted sum of neighboring cells, and the axis wraps around
    (periodization).  So do several levels, with a longer list of weights.

    Attributes:
        size: Number of cells, a multiple of `step`.
        step: Cells that a coefficient stands for, 2 ** levels.
        offsets: Positions of the cells with weight, from 0 to `size` - 1, each once.
        weights: Their weights, integers other than 0.
        unit: What a weight of 1 is worth in the usual scale of the wavelet.

    >>> haar = AxisFilter.of(8, "haar")
    >>> haar.offsets, haar.weights, haar.unit == 0.5**0.5
    ((0, 1), (1, 1), True)
    >>> haar.apply(np.arange(8), 0).tolist()
    [1, 5, 9, 13]
    """

    size: int
    step: int
    offsets: tuple[int, ...]
    weights: tuple[int, ...]
    unit: float

    @classmethod
    def of(cls, size: int, wavelet: str, levels: int = 1) -> "AxisFilter":
        """Look the wavelet up and compose its levels; all of it is public."""
        require_known("wavelet", wavelet, WAVELETS)
        require_count(levels=levels)
        step = 1 << int(levels)
        if size < step or size % step:
            raise InvalidParameter(
                f"{size} cells along an axis cannot be halved {levels} times; take a multiple "
                f"of {step}"
            )
        return _compose(int(size), wavelet, int(levels))

    @property
    def coefficients(self) -> int:
        """Number of coefficients along the axis."""
        return self.size // self.step

    @property
    def norm(self) -> int:
        """Sum of the sizes of the weights."""
        return sum(map(abs, self.weights))

    @cached_property
    def signs(self) -> frozenset[tuple[int, int]]:
        """How many coefficients a cell raises and lowers, for all cells of the axis.

        Cells that are a step apart are alike, so `step` cells show all there is.
        """
        up, down = Counter[int](), Counter[int]()
        for offset, weight in zip(self.offsets, self.weights, strict=True):
            (up if weight > 0 else down)[offset % self.step] += 1
        return frozenset((up[cell], down[cell]) for cell in range(self.step))

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The coefficient to which each cell belongs: where it weighs most, the first of equals."""
        cells = np.arange(self.size)
        best = np.zeros(self.size, dtype=np.int64)
        heaviest = np.zeros(self.size, dtype=np.float64)
        for offset, weight in zip(self.offsets, self.weights, strict=True):
            index, rest = np.divmod((cells - offset) % self.size, self.step)
            size = np.where(rest == 0, float(abs(weight)), 0.0)
            wins = (size > heaviest) | ((size == heaviest) & (size > 0) & (index < best))
            best[wins], heaviest[wins] = index[wins], size[wins]
        return best

    def apply(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Transform along one axis by direct sums: a cell touches its own coefficients only."""
        starts = np.arange(self.coefficients) * self.step
        parts = (
            np.take(values, (starts + offset) % self.size, axis=axis) * weight
            for offset, weight in zip(self.offsets, self.weights, strict=True)
        )
        return sum(parts)  # type: ignore[return-value]


@cache
def _compose(size: int, wavelet: str, levels: int) -> AxisFilter:
    low_pass = FILTERS[wavelet]
    taps = low_pass.taps
    found = {0: 1}
    for level in range(levels):
        # Coefficient k of a level is the sum of h[j] * x[2 k + L / 2 - j], x being a level below.
        longer = Counter[int]()
        for offset, weight in found.items():
            for tap, value in enumerate(taps):
                below = 2 * offset + len(taps) // 2 - tap
                longer[below % (size >> (levels - 1 - level))] += weight * value
        found = dict(longer)
    kept = {offset: weight for offset, weight in sorted(found.items()) if weight}
    return AxisFilter(
        size=size,
        step=1 << levels,
        offsets=tuple(kept),
        weights=tuple(kept.values()),
        unit=low_pass.unit**levels,
    )


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
        """Compute the exact coefficients of integer counts, shaped by the axes."""
        clipped = np.clip(counts, -MOST_PER_CELL, MOST_PER_CELL).reshape(self.sizes)
        fits = self.norm * MOST_PER_CELL < _INT64  # public: it does not depend on the counts
        values: Coefficients = clipped.astype(np.int64 if fits else object)
        for axis, one in enumerate(self.filters):
            values = one.apply(values, axis)
        return values


# --- The algorithm ---------------------------------------------------------------------------


def significant_count(positive: int, percentile: Fraction) -> int:
    """Compute how many of the positive coefficients are significant (k), rounded up.

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
    connectivity = 1 if adjacency == "face" else significant.ndim
    structure = ndimage.generate_binary_structure(significant.ndim, connectivity)
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


# --- What one record can change --------------------------------------------------------------


# A record adds 1 to one cell.  That raises some coefficients (where the cell weighs more than 0)
# and lowers others, and leaves all the rest as they are.  How many is counted from the filters
# in use, for every cell of the grid.  Proofs: docs/proofs/wavecluster.md.


def touched(transform: WaveTransform) -> frozenset[tuple[int, int]]:
    """List how many coefficients a record may raise and lower at once, over all cells.

    >>> sorted(touched(WaveTransform((8, 8)))), max(touched(WaveTransform((8, 8), "db2")))
    ([(1, 0)], (4, 0))
    """
    found = {(1, 0)}
    for one in transform.filters:
        found = {(up * p + down * q, up * q + down * p) for up, down in found for p, q in one.signs}
    return frozenset(found)


def positive_sensitivity(transform: WaveTransform) -> int:
    """Bound how far one record moves the number of positive coefficients (Δ_Z).

    What it raises may become positive, what it lowers may cease to be; never both ways at
    once for one coefficient.  The number of the others changes by as much.

    >>> [positive_sensitivity(WaveTransform((16, 16), name)) for name in ("haar", "db2", "db4")]
    [1, 4, 10]
    """
    return max(max(up, down) for up, down in touched(transform))


def rank_sensitivity(transform: WaveTransform, percentile: Fraction) -> Fraction:
    """Bound how far one record moves the quality of a threshold (Δ_q).

    The quality of x is minus the distance between the number of positive coefficients that
    reach x and 1 - p times the number of all positive ones.  A coefficient v counts there as
    [v >= x] - (1 - p) [v > 0].  As v grows this is 0, then p - 1, then p: a rise changes it by
    p - 1 at least and 1 at most, a fall by the opposite.

    >>> rank_sensitivity(WaveTransform((8, 8)), Fraction(1, 10))
    Fraction(1, 1)
    """
    rest = 1 - percentile
    return max(max(up + rest * down, rest * up + down) for up, down in touched(transform))
