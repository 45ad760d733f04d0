"""Weigh the cells of a noisy grid so that their sums are as near to the published ones as can be.

Clipping noisy counts at zero moves records from large cells to the many that are nearly empty.
Sums over slices of the grid average the noise out: the weights are scaled until they meet the
sums along each axis and each pair of axes (iterative proportional fitting).
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.projection import project_nonnegative, round_to_total
from dpublish.types import FloatArray

_PASSES = 20
_EVEN = 0.02  # part of the weights that come from the sums along single axes


def grid_weights(noisy: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Compute an integer weight for each cell of a grid; all of them add up to an integer `total`.

    >>> grid_weights(np.array([[60, -4], [3, 41]]), 100).tolist()
    [[56, 0], [7, 37]]
    """
    weights = project_nonnegative(noisy, total)
    if noisy.ndim < 2 or not weights.any():
        return round_to_total(np.atleast_1d(weights))
    single = [_projected_sums(noisy, (axis,), total) for axis in range(noisy.ndim)]
    product = np.full((1,) * noisy.ndim, float(total))
    for sums in single:
        product = product * (sums / total)
    pairs = combinations(range(noisy.ndim), 2) if noisy.ndim > 2 else ()
    wanted = [*single, *(_projected_sums(noisy, pair, total) for pair in pairs)]
    weights = (1 - _EVEN) * weights + _EVEN * product
    for _ in range(_PASSES):
        for sums in wanted:
            weights = _scaled(weights, sums)
    return round_to_total(weights * (total / weights.sum()))


def _projected_sums(noisy: NDArray[np.int64], kept: tuple[int, ...], total: float) -> FloatArray:
    others = tuple(axis for axis in range(noisy.ndim) if axis not in kept)
    return project_nonnegative(noisy.sum(axis=others, keepdims=True), total)


def _scaled(weights: FloatArray, wanted: FloatArray) -> FloatArray:
    others = tuple(axis for axis, size in enumerate(wanted.shape) if size != weights.shape[axis])
    sums = weights.sum(axis=others, keepdims=True)
    return np.asarray(weights * np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0))
