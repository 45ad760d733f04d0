"""Add counts on fine levels up to coarser ones.

A level is a list of runs of neighboring leaves, and each level refines the one above.  So
counts on a coarser level are sums over runs of neighboring cells.  Short axes are added up by
multiplying with a matrix of zeros and ones.  Counts are held as floats for that, and stay
exact: they are whole and below 2^53, in whatever order they are added.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.taxonomy import Taxonomy
from dpublish.types import FloatArray, IntArray

LONGEST = 64
"""Along longer axes, adding up run by run is as fast as a product of matrices."""
_PRODUCT = 1 << 18  # larger products would be dealt out to threads, which wait more than work


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
