"""Into how many cells to cut: few enough for the noise, many enough for the shape.

A question that covers a given part of the domain touches cells in proportion to their number
M, so their noise grows like sqrt(M) / epsilon.  The cells that it cuts in part are those at
its surface; what is not even within them grows like N / M^(1/d).  The sum is least where M is
in proportion to (N epsilon)^(2d / (2 + d)).
"""

from fractions import Fraction

import numpy as np

from dpublish.types import FloatArray, IntArray

UNIFORM_CONSTANT = 10
_ROUNDING = 1e-9


def wanted_cells(sizes: IntArray, epsilon: Fraction, dimensions: int, constant: int) -> FloatArray:
    """Say into how many cells to cut boxes with these noisy numbers of records; 1 at least.

    >>> wanted_cells(np.array([-5, 40_000]), Fraction(1), 2, 10).tolist()
    [1.0, 4000.0]
    """
    filled = np.maximum(sizes, 0) * (float(epsilon) / constant)
    return np.maximum(filled ** (2 * dimensions / (2 + dimensions)), 1.0)


def side_lengths(wanted: FloatArray, extents: IntArray) -> IntArray:
    """Say into how many runs to cut each column of each box, for about as many cells as wanted.

    Columns are cut alike as far as they have leaves.  With one or two columns the number is
    rounded up; with more, that would double the cells many times over, so it is rounded down
    and then raised column by column, the longest first, while the cells are not too many.

    >>> side_lengths(np.array([10.0, 20.0]), np.array([[9, 9], [2, 100]])).tolist()
    [[4, 4], [2, 10]]
    >>> side_lengths(np.array([20.0]), np.array([[8, 9, 8]])).tolist()
    [[3, 3, 2]]
    """
    full = np.zeros(extents.shape, dtype=np.bool_)
    ideal = np.ones(wanted.shape)
    for _ in range(extents.shape[1]):
        free = np.maximum((~full).sum(axis=1), 1)
        rest = wanted / np.prod(np.where(full, extents, 1), axis=1)
        ideal = np.maximum(rest, 1.0) ** (1 / free)
        full |= extents <= ideal[:, None]
    few = extents.shape[1] <= 2
    rounded = np.ceil(ideal - _ROUNDING) if few else np.floor(ideal + _ROUNDING)
    sides = np.where(full, extents, rounded.astype(np.int64)[:, None])
    return _fill_up(np.minimum(sides, extents), wanted, extents)


def _fill_up(sides: IntArray, wanted: FloatArray, extents: IntArray) -> IntArray:
    """Raise sides one by one, the fewest runs first, of these the longest column."""
    while True:
        cells = np.prod(sides, axis=1)[:, None]
        may = (sides < extents) & (cells // sides * (sides + 1) <= wanted[:, None] + _ROUNDING)
        rows = np.flatnonzero(may.any(axis=1))
        if not rows.size:
            return sides
        order = np.where(may[rows], sides[rows] - extents[rows] / (extents[rows] + 1.0), np.inf)
        sides[rows, np.argmin(order, axis=1)] += 1
