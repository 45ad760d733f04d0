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
from dpublish.types import IntArray


@dataclass(frozen=True, eq=False)
class ClassCounts(ArrayKernel):
    """Kernel: count the records in every cell of every set of columns.

    The cells of a column are classes of its codes.  A record that the missing rule of one of
    the columns leaves out is in no cell of any set: all sets count the same records.

    Attributes:
        classes: For each column the class of every code; all columns that a record must have.
        sets: The sets of columns.

    >>> kernel = ClassCounts({"a": np.array([0, 0, 1]), "b": np.array([0, 1])}, (("a", "b"),))
    >>> answer = kernel.zero()
    >>> kernel.add(Batch(2, codes={"a": np.array([1, 2]), "b": np.array([0, 1])}), answer)
    >>> kernel.split(answer)[0].tolist()
    [[1, 0], [0, 1]]
    """

    classes: Mapping[str, IntArray]
    sets: tuple[tuple[str, ...], ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(self.classes)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The number of classes along each axis of each set."""
        sizes = {name: int(classes.max()) + 1 for name, classes in self.classes.items()}
        return tuple(tuple(sizes[name] for name in one) for one in self.sets)

    @cached_property
    def size(self) -> int:
        """Number of cells of all sets together; the answer lists them one set after the other."""
        return sum(map(prod, self.shapes))

    @cached_property
    def _lookups(self) -> dict[str, IntArray]:
        return {
            name: classes.astype(code_type(int(classes.max()) + 1))
            for name, classes in self.classes.items()
        }

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        cells = {name: table.take(batch.codes(name)) for name, table in self._lookups.items()}
        start = 0
        for one, shape in zip(self.sets, self.shapes, strict=True):
            stop = start + prod(shape)
            keys = cell_keys([cells[name] for name in one], shape, len(batch))
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
