"""Which grids a choice is made from: a level for each predictor, from public facts alone.

A predictor on level 0, the root, is left out of a grid; one on a deeper level is *raised*.
Grids come in stages, by how many predictors they raise.  A stage that is too large for the
room left is represented by a sample of it.  Nothing here looks at the rows.

Reference: D. Su, J. Cao, N. Li and M. Lyu, "PrivPfC: differentially private data publication
for classification", VLDB Journal, 2018; the published listing makes some grids several times
and prefers the first predictors, this one does neither.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count
from dpublish.types import IntArray

MOST_LEVELS = 128
_MOST_CELLS = 1 << 62  # integers beyond would not fit 64 bits

Levels = NDArray[np.int8]
Uniform = Callable[[int, int], IntArray]
"""Draws integers below a bound, so many of them, uniformly: `Run.uniform_integers`."""


class _Stage(NamedTuple):
    """Grids that raise equally many predictors."""

    levels: Levels
    last: NDArray[np.int64]
    """The last predictor that each grid raises; -1 if none."""
    room: NDArray[np.int64]
    """By how much the cells of each grid may still be multiplied."""


class _Ladder(NamedTuple):
    """The levels to which a predictor can be raised: their numbers, and their cells."""

    levels: Levels
    sizes: NDArray[np.int64]


def enumerate_grids(
    sizes: Sequence[Sequence[int]], *, max_cells: int | Fraction, limit: int, uniform: Uniform
) -> Levels:
    """List grids of at most `max_cells` cells, each once, those with few predictors first.

    The grid of one cell, with every predictor on its root, always comes first, whatever
    `max_cells` is.  If a stage has more grids than are still wanted, every subset of it that
    has that number is equally likely, and it is the last stage.

    A grid is made from the one without its last predictor.  So the grids of a stage are
    numbered without being made, and a sample of them is a sample of integers.

    Args:
        sizes: Number of cells of each predictor on each of its levels, from the root's 1 on.
            A level with as many cells as the one above is the same level, and is not used.
        max_cells: Most cells of a grid, classes not counted.
        limit: Most grids to list.
        uniform: Draws the sample; it decides nothing about records, and costs no budget.

    Returns:
        A row per grid, with the level of each predictor.

    >>> from functools import partial
    >>> from dpublish.mechanisms.exact.sampler import uniform_below
    >>> from dpublish.randomness import seeded
    >>> uniform = partial(uniform_below, rng=seeded(1))
    >>> enumerate_grids([[1, 2, 6], [1, 3]], max_cells=6, limit=10, uniform=uniform).tolist()
    [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1]]
    """
    require_count(limit=limit)
    ladders = [_find_ladder(one) for one in sizes]
    most = min(floor(max_cells), _MOST_CELLS)
    root = np.zeros((1, len(ladders)), dtype=np.int8)
    stage = _Stage(root, np.array([-1]), np.array([most]))
    listed, wanted = [root], limit - 1
    while wanted:
        total = sum(int(_count_raised(stage, j, x).sum()) for j, x in enumerate(ladders))
        if not total:
            break
        ranks = np.arange(total) if total <= wanted else draw_subset(total, wanted, uniform)
        stage = _raise_one(stage, ladders, ranks)
        listed.append(stage.levels)
        wanted -= len(ranks)
    return np.concatenate(listed)


def draw_subset(total: int, size: int, uniform: Uniform) -> NDArray[np.int64]:
    """Draw a subset of `0 .. total - 1`, all of the same size equally likely, in order.

    The first different numbers of a uniform sequence are such a subset.  A subset of more
    than half is drawn as what it leaves out.

    >>> from functools import partial
    >>> from dpublish.mechanisms.exact.sampler import uniform_below
    >>> from dpublish.randomness import seeded
    >>> uniform = partial(uniform_below, rng=seeded(1))
    >>> draw_subset(5, 5, uniform).tolist(), len(draw_subset(10**15, 3, uniform))
    ([0, 1, 2, 3, 4], 3)
    """
    if 2 * size > total:
        rest = draw_subset(total, total - size, uniform)
        return np.delete(np.arange(total), rest)
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < size:
        more = uniform(total, size)
        sequence = np.concatenate([drawn, more])
        _, first = np.unique(sequence, return_index=True)
        drawn = sequence[np.sort(first)][:size]
    return np.sort(drawn)


def _find_ladder(sizes: Sequence[int]) -> _Ladder:
    if not 1 <= len(sizes) <= MOST_LEVELS:
        raise InvalidParameter(f"a predictor must have 1 to {MOST_LEVELS} levels")
    counts = np.array(sizes, dtype=np.int64)
    steps = np.diff(counts)
    if counts[0] != 1 or (steps < 0).any():
        raise InvalidParameter("a predictor's levels must start with 1 cell, and never lose cells")
    levels = 1 + np.flatnonzero(steps)
    return _Ladder(levels.astype(np.int8), counts[levels])


def _count_raised(stage: _Stage, predictor: int, ladder: _Ladder) -> NDArray[np.int64]:
    """Count to how many levels each grid can raise a predictor that comes after its last."""
    fitting = np.searchsorted(ladder.sizes, stage.room, side="right")
    return np.where(stage.last < predictor, fitting, 0)


def _raise_one(stage: _Stage, ladders: Sequence[_Ladder], ranks: NDArray[np.int64]) -> _Stage:
    """Make the grids of the next stage that have the given ranks, in ascending order.

    They are numbered by the predictor raised last, then by the grid it is raised in, then
    by its level.
    """
    parts: list[_Stage] = []
    start = 0
    for predictor, ladder in enumerate(ladders):
        ends = start + np.cumsum(_count_raised(stage, predictor, ladder))
        low, high = np.searchsorted(ranks, [start, ends[-1]])
        wanted = ranks[low:high]
        parents = np.searchsorted(ends, wanted, side="right")
        steps = wanted - np.concatenate([[start], ends])[parents]
        levels = stage.levels[parents]
        levels[:, predictor] = ladder.levels[steps]
        # Dividing down step by step is dividing down by the product, so pruning is exact.
        room = stage.room[parents] // ladder.sizes[steps]
        parts.append(_Stage(levels, np.full(len(wanted), predictor), room))
        start = int(ends[-1])
    return _Stage(*(np.concatenate(column) for column in zip(*parts, strict=True)))
