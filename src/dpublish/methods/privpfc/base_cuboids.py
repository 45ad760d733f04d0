"""Plan how to count many grids from few cuboids; a plan knows public sizes only.

A grid is a level for each column, 0 being the root.  The counts of a grid can be added up from
those of any cuboid that is nowhere coarser.  So grids are put into groups that use the same
columns, and groups into cuboids as large as a cap allows.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.types import IntArray

Levels = NDArray[np.int8]
_EQUAL = 1e-9  # logarithms that differ by less stand for the same number of cells


class Group(NamedTuple):
    """Grids, or groups of grids, that are counted together."""

    levels: Levels
    """The finest level that a member needs, for each column."""
    members: IntArray


class Sizes:
    """How many cells grids have, in logarithms: a product of many sizes may be too large."""

    def __init__(self, sizes: Sequence[Sequence[int]]) -> None:
        deepest = max(map(len, sizes), default=1)
        self._logs = np.zeros((len(sizes), deepest))
        for column, one in enumerate(sizes):
            self._logs[column, : len(one)] = np.log(one)
        self._columns = np.arange(len(sizes))

    def logs(self, levels: Levels) -> NDArray[np.float64]:
        """Look up the logarithm of the number of cells along each column."""
        found: NDArray[np.float64] = self._logs[self._columns, levels]
        return found


def group_grids(grids: Levels, sizes: Sizes, cap: int) -> list[Group]:
    """Put grids with the same columns together, as far as one cuboid of `cap` cells has all.

    >>> sizes = Sizes([[1, 2, 8], [1, 4]])
    >>> grids = np.array([[0, 0], [1, 1], [2, 1], [0, 1]], dtype=np.int8)
    >>> [group.members.tolist() for group in group_grids(grids, sizes, 32)]
    [[0], [3], [1, 2]]
    >>> [group.members.tolist() for group in group_grids(grids, sizes, 31)]
    [[0], [3], [1], [2]]
    """
    packed = np.packbits(grids > 0, axis=1)
    rows = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
    _, numbers = np.unique(rows, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    return [
        group
        for members in np.split(order, cuts)
        for group in _split_members(grids, members, sizes, np.log(cap) + _EQUAL)
    ]


def pack_groups(wanted: Levels, sizes: Sizes, cap: int) -> list[Group]:
    """Find cuboids that have all wanted level vectors between them, in few.

    A cuboid starts with the largest vector left, and takes in those that enlarge it least as
    long as it has at most `cap` cells; one that is larger by itself stays alone, but for
    vectors that it has anyway.

    >>> sizes = Sizes([[1, 4], [1, 4], [1, 4]])
    >>> pairs = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=np.int8)
    >>> [(g.levels.tolist(), g.members.tolist()) for g in pack_groups(pairs, sizes, 64)]
    [([1, 1, 1], [0, 1, 2])]
    """
    logs = sizes.logs(wanted)
    left = np.argsort(-logs.sum(axis=1), kind="stable")
    packed = []
    while left.size:
        covered = _grow(logs[left], np.log(cap) + _EQUAL)
        members = left[covered]
        packed.append(Group(wanted[members].max(axis=0), members))
        left = left[~covered]
    return packed


def _grow(logs: NDArray[np.float64], most: float) -> NDArray[np.bool_]:
    """Enlarge the first vector as far as it may; say which vectors it has then."""
    cuboid = logs[0].copy()
    growth = np.maximum(logs - cuboid, 0).sum(axis=1)
    while True:
        fitting = np.flatnonzero((growth > _EQUAL) & (growth <= most - cuboid.sum()))
        if not fitting.size:
            return np.asarray(growth <= _EQUAL)
        least = fitting[np.argmin(growth[fitting])]
        grown = np.flatnonzero(logs[least] > cuboid)
        before = np.maximum(logs[:, grown] - cuboid[grown], 0).sum(axis=1)
        cuboid[grown] = logs[least, grown]
        growth += np.maximum(logs[:, grown] - cuboid[grown], 0).sum(axis=1) - before


def _split_members(grids: Levels, members: IntArray, sizes: Sizes, most: float) -> Iterator[Group]:
    """Split grids until the finest levels of each part make a cuboid that is small enough.

    The grids on a column's finest level are parted from the others, for the column where
    that leaves the fewest cells.
    """
    waiting = [members]
    while waiting:
        part = waiting.pop()
        levels = grids[part]
        finest = levels.max(axis=0)
        if (levels == finest).all() or sizes.logs(finest).sum() <= most:
            yield Group(finest, part)
            continue
        top = min(_cuts(levels, finest), key=lambda cut: _cells_after(levels, cut, sizes))
        waiting += [part[top], part[~top]]


def _cuts(levels: Levels, finest: Levels) -> Iterator[NDArray[np.bool_]]:
    for column in np.flatnonzero(levels.min(axis=0) < finest):
        yield levels[:, column] == finest[column]


def _cells_after(levels: Levels, top: NDArray[np.bool_], sizes: Sizes) -> float:
    parts = np.stack([levels[top].max(axis=0), levels[~top].max(axis=0)])
    return float(np.exp(sizes.logs(parts).sum(axis=1)).sum())
