"""How many complete records lie in each cell of many sets of columns, by classes of values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from dpublish.aggregates.cells import cell_keys
from dpublish.aggregates.kernel import ArrayKernel
from dpublish.data.encoding import code_type
from dpublish.data.table import Batch
from dpublish.types import IntArray, WholeArray

ClassSet = tuple[tuple[str, int], ...]
"""Columns, each on a level of its classes."""


@dataclass(frozen=True, eq=False)
class ClassCounts(ArrayKernel):
    """Kernel: count the records in every cell of every set of columns.

    The cells of a column are classes of its codes.  A record that the missing rule of one of
    the columns leaves out is in no cell of any set: all sets count the same records.

    Attributes:
        columns: All columns that a record must have.
        classes: For each column and level that is used, the class of every code.
        sets: The sets of columns, each on a level.

    >>> classes = {("a", 0): np.array([0, 0, 1]), ("b", 0): np.array([0, 1])}
    >>> kernel = ClassCounts(("a", "b"), classes, ((("a", 0), ("b", 0)),))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(2, codes={"a": np.array([1, 2]), "b": np.array([0, 1])}), answer)
    >>> kernel.split(answer)[0].tolist()
    [[1, 0], [0, 1]]
    """

    columns: tuple[str, ...]
    classes: Mapping[tuple[str, int], IntArray]
    sets: tuple[ClassSet, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return self.columns

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The number of classes along each axis of each set."""
        sizes = {key: int(classes.max()) + 1 for key, classes in self.classes.items()}
        return tuple(tuple(sizes[key] for key in one) for one in self.sets)

    @cached_property
    def size(self) -> int:
        """Number of cells of all sets together; the answer lists them one set after the other."""
        return sum(map(prod, self.shapes))

    @cached_property
    def _lookups(self) -> dict[tuple[str, int], WholeArray]:
        return {
            key: classes.astype(code_type(int(classes.max()) + 1))
            for key, classes in self.classes.items()
        }

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        cells = {
            (name, level): table.take(batch.codes(name))
            for (name, level), table in self._lookups.items()
        }
        start = 0
        for one, shape in zip(self.sets, self.shapes, strict=True):
            stop = start + prod(shape)
            keys = cell_keys([cells[key] for key in one], shape, len(batch))
            if stop - start <= _FEW_CELLS:
                out[start:stop] += np.bincount(keys, minlength=stop - start)
            else:
                np.add.at(out[start:stop], keys, 1)
            start = stop

    def split(self, answer: IntArray) -> list[IntArray]:
        """Cut an answer into one array per set, shaped by its columns."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        parts: Sequence[IntArray] = np.split(answer, ends)
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    @property
    def record_change(self) -> int:
        """The number of sets: a record lies in one cell of each, and adds one to it."""
        return len(self.sets)


_FEW_CELLS = 1 << 16  # above, a second array for each batch costs more than it saves
