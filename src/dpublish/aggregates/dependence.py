"""How strongly a column depends on others: scores in whole steps, with their range sensitivity.

Both scores are sums over records, not averages, for the number of records is private.  They
are computed without rounding errors, so that the range sensitivity is exactly that of the
proof (docs/proofs/bayes_network.md).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEPS = 1024
"""Steps of the distance score for one record."""
MOST_CELLS_TO_ASSIGN = 16
_EXACT_IN_64_BITS = 1 << 30


def distance_from_independence(counts: NDArray[np.int64]) -> int:
    """Measure how many records part a table from independence, rounded down, in 1024ths.

    `counts` has a row for each value of the child and a column for each cell of its parents.
    The score is n R = 1/2 * sum |n_xp - n_x n_p / n|, and 0 for no records.

    >>> distance_from_independence(np.array([[3, 0], [0, 3]])) / STEPS
    3.0
    """
    records = int(counts.sum())
    if records == 0:
        return 0
    # Products of counts stay below 2**62; of larger tables they are Python's own integers.
    wide = counts if records < _EXACT_IN_64_BITS else counts.astype(object)
    by_child = wide.sum(axis=1, keepdims=True)
    by_parents = wide.sum(axis=0, keepdims=True)
    gaps = int(np.abs(wide * records - by_child * by_parents).sum())
    return gaps * (STEPS // 2) // records


def distance_from_shares(counts: NDArray[np.int64], weights: NDArray[np.int64]) -> int:
    """Measure how many records part a child from public shares, the same in every parents' cell.

    `weights` are in proportion to the child's shares, as they were released before.  The score
    is sum max(0, n_xp - n_p w_x / w), rounded down, in 1024ths.

    >>> distance_from_shares(np.array([[3, 0], [0, 3]]), np.array([1, 1])) / STEPS
    3.0
    """
    whole = int(weights.sum())
    wide = counts if int(counts.sum()) < _EXACT_IN_64_BITS else counts.astype(object)
    gaps = wide * whole - wide.sum(axis=0) * weights[:, None]
    return int(np.maximum(gaps, 0).sum()) * STEPS // whole


def fit_of_assignment(counts: NDArray[np.int64]) -> int:
    """Measure how near a yes-or-no child is to a fair coin that its parents decide, in halves.

    The score is n F: of all ways to assign each cell of the parents to one value of the
    child, the best of min(a, n/2) + min(b, n/2) - n, where a and b count the records that
    lie where the assignment says.  It is 0 at best and -n at worst.

    >>> fit_of_assignment(np.array([[3, 0], [1, 2]])) / 2
    -1.0
    """
    records = int(counts.sum())
    half = counts.shape[1] // 2
    first, second = _assigned(counts[:, :half]), _assigned(counts[:, half:])
    # Every assignment of all cells is one of the first half with one of the second.
    on_zero = np.minimum(2 * np.add.outer(first[0], second[0]), records)
    on_one = np.minimum(2 * np.add.outer(first[1], second[1]), records)
    return int((on_zero + on_one).max()) - 2 * records


def _assigned(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count, for every assignment of the cells, the records that agree with it, by value."""
    cells = counts.shape[1]
    to_one = (np.arange(1 << cells)[:, None] >> np.arange(cells)) & 1
    return (1 - to_one) @ counts[0], to_one @ counts[1]


class Score(NamedTuple):
    """A score of dependence, and how far one record can move two scores apart, in its steps."""

    measure: Callable[[NDArray[np.int64]], int]
    sensitivity_range: int


DISTANCE = Score(distance_from_independence, 4 * STEPS)
"""Changes lie strictly between -2 and 2 records; rounding down keeps them within."""
MOST_WEIGHT = 1 << 20
"""Largest sum of the weights of `distance_from_shares`: products with counts fit 64 bits."""
SHARES_RANGE = 2 * STEPS
"""Range of `distance_from_shares`: changes are at most one record, up or down."""


def shares_score(probabilities: NDArray[np.float64]) -> Score:
    """Make the score of a child whose probabilities were released before."""
    weights = np.rint(probabilities * (MOST_WEIGHT // 2)).astype(np.int64)
    if not weights.sum() > 0:
        weights = np.ones_like(weights)
    return Score(partial(distance_from_shares, weights=weights), SHARES_RANGE)


ASSIGNMENT = Score(fit_of_assignment, 3)
"""Changes lie between -1 and 1/2 record."""
