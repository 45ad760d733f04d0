"""Count many grids from few cuboids: plan the cuboids, then add them up to the grids.

A grid is a level for each column, 0 being the root.  The counts of a grid can be added up from
those of any cuboid that is nowhere coarser.  So grids are put into groups that use the same
columns, and groups into cuboids as large as a cap allows; that plan knows public sizes only.

A level is a list of runs of neighboring leaves, and each level refines the one above.  So
counts on a coarser level are sums over runs of neighboring cells.  Short axes are added up by
multiplying with a matrix of zeros and ones.  Counts are held as floats for that, and stay
exact: they are integers below 2^53, in whatever order they are added.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.taxonomy import Taxonomy
from dpublish.types import FloatArray, IntArray

Levels = NDArray[np.int8]
_EQUAL = 1e-9  # logarithms that differ by less stand for the same number of cells
LONGEST = 64
"""Along longer axes, adding up run by run is as fast as a product of matrices."""
_PRODUCT = 1 << 18  # larger products would be dealt out to threads, which wait more than work


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


class Cube(NamedTuple):
    """Counts on some levels of some columns."""

    counts: FloatArray
    """The first axis runs over planes, such as classes; then there is an axis per column."""
    columns: tuple[int, ...]
    levels: tuple[int, ...]


class RollUp:
    """Adds up counts along the taxonomies of given columns.

    >>> tree = Taxonomy.merging("abcd", 2, lambda start, stop: f"{start}-{stop}")
    >>> counts = np.array([[[1.0], [2], [3], [4]]])  # one plane, four cells, one of the rest
    >>> [part.ravel().tolist() for part in RollUp([tree]).stack(counts, 0, 2, (2, 1))]
    [[1.0, 2.0, 3.0, 4.0, 3.0, 7.0]]
    """

    def __init__(self, taxonomies: Sequence[Taxonomy]) -> None:
        self._starts = [
            [taxonomy.cell_starts(level)[:-1] for level in range(taxonomy.height + 1)]
            for taxonomy in taxonomies
        ]
        self._runs: dict[tuple[int, int, int], IntArray] = {}
        self._matrices: dict[tuple[int, int, tuple[int, ...]], FloatArray] = {}

    def size(self, column: int, level: int) -> int:
        """Count the cells of a column on a level."""
        return len(self._starts[column][level])

    def project(self, cube: Cube, levels: NDArray[np.int8]) -> Cube:
        """Add up to a level for each column, none finer; a column on level 0 goes away."""
        counts, kept = cube.counts, []
        for column, fine in zip(cube.columns, cube.levels, strict=True):
            if levels[column]:
                kept.append((column, fine))
            else:
                counts = counts.sum(axis=1 + len(kept))
        for axis, (column, fine) in enumerate(kept, start=1):
            if fine != levels[column]:
                runs = self._find_runs(column, fine, int(levels[column]))
                counts = np.add.reduceat(counts, runs, axis=axis)
        columns = tuple(column for column, _ in kept)
        return Cube(counts, columns, tuple(int(levels[column]) for column in columns))

    def stack(
        self, counts: FloatArray, column: int, fine: int, coarse: tuple[int, ...]
    ) -> Iterator[FloatArray]:
        """Add up to several levels, side by side, along the second of three axes.

        The last axis is cut into parts, which are handed out one after the other.
        """
        if self.size(column, fine) > LONGEST:
            runs = [self._find_runs(column, fine, level) for level in coarse]
            yield np.concatenate([np.add.reduceat(counts, x, axis=1) for x in runs], axis=1)
            return
        matrix = self._find_matrix(column, fine, coarse)
        for part in _cut(counts, matrix):
            yield matrix @ counts[:, :, part]

    def turn(self, counts: FloatArray, column: int, fine: int, coarse: int) -> FloatArray:
        """Add up to a level along the second of three axes, and make it the last."""
        if self.size(column, fine) > LONGEST:
            runs = self._find_runs(column, fine, coarse)
            summed = np.add.reduceat(counts, runs, axis=1)
            return np.ascontiguousarray(summed.swapaxes(1, 2))
        matrix = self._find_matrix(column, fine, (coarse,))
        turned = np.empty((counts.shape[0], counts.shape[2], len(matrix)))
        for part in _cut(counts, matrix):
            np.matmul(counts[:, :, part].swapaxes(1, 2), matrix.T, out=turned[:, part])
        return turned

    def _find_runs(self, column: int, fine: int, coarse: int) -> IntArray:
        """Find the first fine cell of each coarse one."""
        runs = self._runs.get((column, fine, coarse))
        if runs is None:
            starts = self._starts[column]
            runs = np.searchsorted(starts[fine], starts[coarse])
            self._runs[column, fine, coarse] = runs
        return runs

    def _find_matrix(self, column: int, fine: int, coarse: tuple[int, ...]) -> FloatArray:
        """Mark which fine cells (columns) lie in which coarse ones (rows)."""
        matrix = self._matrices.get((column, fine, coarse))
        if matrix is None:
            cells = np.arange(self.size(column, fine))
            matrix = np.zeros((sum(self.size(column, x) for x in coarse), len(cells)))
            first = 0
            for level in coarse:
                runs = self._find_runs(column, fine, level)
                matrix[first + np.searchsorted(runs, cells, side="right") - 1, cells] = 1
                first += len(runs)
            self._matrices[column, fine, coarse] = matrix
        return matrix


def _cut(counts: FloatArray, matrix: FloatArray) -> Iterator[slice]:
    """Cut the last axis so that its product with the matrix is done in one go."""
    step = max(_PRODUCT // matrix.size, 1)
    for start in range(0, counts.shape[2], step):
        yield slice(start, start + step)
