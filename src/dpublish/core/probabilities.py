"""From joint counts to probabilities, and from probabilities to cells."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis


def add_up(
    counts: NDArray[np.float64], axes: Sequence[Axis], wanted: Sequence[Axis]
) -> NDArray[np.float64]:
    """Add counts over `axes` up to the coarser or fewer axes `wanted`, in that order."""
    names = [axis.column for axis in axes]
    for index, axis in enumerate(axes):
        coarse = next((w for w in wanted if w.column == axis.column), None)
        starts = np.zeros(1, np.int64) if coarse is None else coarsening(axis, coarse)
        counts = np.add.reduceat(counts, starts, axis=index)
    kept = [names.index(axis.column) for axis in wanted]
    dropped = [index for index in range(len(axes)) if index not in kept]
    return np.squeeze(counts.transpose(*kept, *dropped), axis=tuple(range(len(kept), len(axes))))


def coarsening(fine: Axis, coarse: Axis) -> NDArray[np.int64]:
    """Find the first of the fine cells in each coarse cell."""
    return fine.leaf_to_cell[coarse.leaf_starts[:-1]]


def conditional(joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn counts (child first, then parents) into probabilities of the child given its parents.

    A parents' cell without records has the child's overall probabilities; if there are no records
    at all, every value is as likely.

    >>> conditional(np.array([[3.0, 0.0], [1.0, 0.0]])).tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    flat = joint.reshape(joint.shape[0], -1).T
    overall = flat.sum(axis=0)
    fallback = overall if overall.sum() > 0 else np.ones(flat.shape[1])
    filled = np.where(flat.sum(axis=1, keepdims=True) > 0, flat, fallback)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))


def cell_numbers(
    cells: Sequence[NDArray[np.int64]], axes: Sequence[Axis], rows: int
) -> NDArray[np.int64]:
    """Number the combined cells of several axes, the last counting fastest."""
    start = np.zeros(rows, dtype=np.int64)
    return reduce(lambda key, x: key * x[1].size + x[0], zip(cells, axes, strict=True), start)


def draw_cells(
    probabilities: NDArray[np.float64], rows: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a cell by each of the `rows` of probabilities."""
    # Shifted by its number, every row's running sum is part of one rising sequence.
    sums = np.minimum(np.cumsum(probabilities, axis=1), 1.0)
    sums[:, -1] = 1.0
    rising = (sums + np.arange(len(probabilities))[:, None]).ravel()
    found = np.searchsorted(rising, rows + rng.random(rows.size), side="right")
    # The sum of a row's number and a part below 1 may round up to the next row.
    return np.asarray(np.minimum(found - rows * probabilities.shape[1], probabilities.shape[1] - 1))
