"""How well a set of predictors tells the classes apart: pairs of records that it does not."""

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.sparse_counts import OccupiedCells

STEPS = 2**20
"""Scores are integers of steps; so many make up 1."""
SCORE_RANGE = STEPS + 1
"""R of the rounded scores, in steps; proof: docs/proofs/pph.md."""
_HALF = 31


def score_projection(occupied: OccupiedCells, classes: int) -> int:
    """Score a grid by minus its undiscerned pairs per record, rounded down to a step.

    A pair is undiscerned if its records lie in the same cell and have different classes.
    Cells are numbered with the class fastest.  Integers throughout, whatever the counts.

    >>> score_projection(OccupiedCells(np.array([0, 1, 3]), np.array([2, 1, 5])), 2) * 8 / STEPS
    -2.0
    """
    keys, counts = occupied
    records = int(counts.sum())
    if not records:
        return 0
    starts = np.flatnonzero(np.diff(keys // classes, prepend=-1))
    cells = np.add.reduceat(counts, starts)
    pairs = (_sum_of_squares(cells) - _sum_of_squares(counts)) // 2
    return -pairs * STEPS // records


def _sum_of_squares(counts: NDArray[np.int64]) -> int:
    """Add up squares that need not fit 64 bits: high and low halves are multiplied apart."""
    wide = counts.astype(np.uint64)
    high, low = wide >> np.uint64(_HALF), wide & np.uint64(2**_HALF - 1)
    squares = _exact_sum(high * high) << 2 * _HALF
    return squares + (_exact_sum(high * low) << _HALF + 1) + _exact_sum(low * low)


def _exact_sum(values: NDArray[np.uint64]) -> int:
    upper, lower = values >> np.uint64(32), values & np.uint64(2**32 - 1)
    return (int(upper.sum()) << 32) + int(lower.sum())
