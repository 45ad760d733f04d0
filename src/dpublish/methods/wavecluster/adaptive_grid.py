"""A noisy grid that is finer where there are more records, and its best estimates.

Known as: AG, the adaptive grid; UG, the uniform one.
Reference: W. Qardaji, W. Yang, N. Li, "Differentially Private Grids for Geospatial Data",
ICDE 2013; the number of records is a noisy one here.
"""

from fractions import Fraction
from math import ceil, sqrt
from typing import Any

import numpy as np
from scipy import sparse

from dpublish.aggregates.box_grid import MOST_CELLS
from dpublish.types import FloatArray, IntArray

ALPHA = Fraction(1, 2)
_FIRST_CONSTANT, _SECOND_CONSTANT = 10, 5
_LEAST_FIRST = 10
_MOST_SPLIT = 64


def uniform_size(size: int, epsilon: Fraction, dimensions: int) -> int:
    """Say into how many cells to cut each column, for a noisy number of records.

    >>> uniform_size(40_000, Fraction(1), 3), uniform_size(-5, Fraction(1), 3)
    (28, 1)
    """
    filled = max(size, 0) * float(epsilon) / _FIRST_CONSTANT
    along = ceil(filled ** (2 / (2 + dimensions))) if filled > 0 else 1
    return max(min(along, _largest_side(dimensions)), 1)


def first_size(size: int, epsilon: Fraction) -> int:
    """Say into how many cells to cut each of two columns first, for a noisy number of records.

    >>> first_size(31_200, Fraction(98, 100)), first_size(-5, Fraction(1))
    (14, 10)
    """
    wanted = ceil(sqrt(max(size, 0) * float(epsilon) / _FIRST_CONSTANT) / 4)
    return min(max(wanted, _LEAST_FIRST), _largest_side(2))


def split_sizes(counts: IntArray, epsilon: Fraction) -> IntArray:
    """Say into how many parts to cut each side of each cell, from the noisy counts.

    >>> split_sizes(np.array([-3, 0, 100, 10**9]), Fraction(1)).tolist()
    [1, 1, 4, 64]
    """
    share = float((1 - ALPHA) * epsilon) / _SECOND_CONSTANT
    wanted = np.ceil(np.sqrt(np.maximum(counts, 0) * share))
    most = _MOST_SPLIT
    while True:  # one part each is never too many
        splits = np.clip(wanted, 1, most).astype(np.int64)
        if int((splits**2).sum()) <= MOST_CELLS:
            return splits
        most -= 1


def combine(first: IntArray, parts: IntArray, splits: IntArray) -> FloatArray:
    """Estimate the parts from both levels, so that the parts of a cell add up to its estimate.

    The count of a cell and the sum of its parts are weighed by each other's variance; what
    that changes is shared evenly among the parts.
    """
    parts_each = splits**2
    of_cell = np.repeat(np.arange(splits.size), parts_each)
    sums = np.bincount(of_cell, weights=parts, minlength=splits.size)
    alpha = float(ALPHA)
    weight = alpha**2 * parts_each / ((1 - alpha) ** 2 + alpha**2 * parts_each)
    surplus = (weight * (first - sums)) / parts_each
    return np.asarray(parts + surplus[of_cell], dtype=np.float64)


def spread_parts(
    estimates: FloatArray, splits: IntArray, size: int, sizes: tuple[int, ...]
) -> FloatArray:
    """Spread the parts of a grid of two columns over another grid, in proportion to the area.

    Args:
        estimates: Parts of all cells, cell by cell.
        splits: Parts along each side of each cell.
        size: First cells along each column.
        sizes: Cells of the other grid along each column.
    """
    starts = np.concatenate(([0], np.cumsum(splits**2)))
    found = np.zeros(sizes)
    for split in np.unique(splits).tolist():
        cells = np.flatnonzero(splits == split)
        inside = np.arange(split * split)
        rows = (cells // size * split)[:, None] + inside // split
        columns = (cells % size * split)[:, None] + inside % split
        fine = size * split
        values = estimates[starts[cells][:, None] + inside]
        part = sparse.csr_array(
            (values.ravel(), (rows.ravel(), columns.ravel())), shape=(fine, fine)
        )
        found += (overlaps(sizes[0], fine) @ part @ overlaps(sizes[1], fine).T).toarray()
    return found


def spread_cells(counts: FloatArray, sizes: tuple[int, ...]) -> FloatArray:
    """Spread a grid of cells over another grid, in proportion to the volume."""
    found = counts
    for axis, size in enumerate(sizes):
        along = np.moveaxis(found, axis, 0)
        flat = overlaps(size, along.shape[0]) @ along.reshape(along.shape[0], -1)
        found = np.moveaxis(flat.reshape(size, *along.shape[1:]), 0, axis)
    return found


def overlaps(coarse: int, fine: int) -> Any:
    """Give the part of each of `fine` equal intervals that lies in each of `coarse` ones.

    >>> overlaps(2, 3).toarray().tolist()
    [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
    """
    # Between two neighboring edges of either kind lies a piece of one interval of each kind.
    edges = np.unique(np.concatenate((np.arange(coarse + 1) * fine, np.arange(fine + 1) * coarse)))
    rows, columns = edges[:-1] // fine, edges[:-1] // coarse
    return sparse.csr_array((np.diff(edges) / coarse, (rows, columns)), shape=(coarse, fine))


def _largest_side(dimensions: int) -> int:
    side = int(MOST_CELLS ** (1 / dimensions))
    return side + 1 if (side + 1) ** dimensions <= MOST_CELLS else side
