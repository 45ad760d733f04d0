"""How many records of each class lie in the cells of several cuboids, in one pass.

A cuboid is a set of predictors, each on a level of its taxonomy.  Of two classes only the
difference is counted, which takes half the memory.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import (
    ColumnSet,
    Lookups,
    cell_keys,
    find_axes,
    look_up,
    make_lookups,
)
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.data.table import Batch


@dataclass(frozen=True)
class ClassCuboids:
    """Kernel: count the records of each class in every cell of every cuboid.

    It reads all predictors, whichever the cuboids use.  So a record that the missing rule of
    any of them leaves out is missing from all cuboids alike, in this pass and in others.
    The answer is not published; what a record changes in a score made from it is said there.

    Attributes:
        schema: What is publicly known about the records.
        target: Name of the class column.
        predictors: Names of all predictors.
        cuboids: Some of the predictors, each with its level.

    >>> from dpublish.data.schema import column
    >>> sex = column("sex", "category", values=["F", "M"])
    >>> income = column("income", "category", values=["low", "high"])
    >>> kernel = ClassCuboids(Schema((sex, income)), "income", ("sex",), ((("sex", 1),), ()))
    >>> answer = kernel.zero()
    >>> codes = {"sex": [0, 1, 1], "income": [1, 0, 0]}
    >>> kernel.add(Batch(3, {name: np.array(x, np.uint8) for name, x in codes.items()}), answer)
    >>> kernel.split(answer), kernel.count_records(answer)
    ([array([[-1,  2]]), array([1])], 3)
    """

    schema: Schema
    target: str
    predictors: tuple[str, ...]
    cuboids: tuple[ColumnSet, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return (*self.predictors, self.target)

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers: none."""
        return ()

    @cached_property
    def planes(self) -> int:
        """Number of counts kept for a cell: one per class, or the difference of two."""
        return count_planes(self.schema[self.target].size)

    @cached_property
    def axes(self) -> tuple[tuple[Axis, ...], ...]:
        """The axes of each cuboid."""
        return tuple(find_axes(self.schema, one) for one in self.cuboids)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each cuboid; its first axis runs over the planes."""
        return tuple((self.planes, *(axis.size for axis in axes)) for axes in self.axes)

    @cached_property
    def _lookups(self) -> Lookups:
        return make_lookups(axis for axes in self.axes for axis in axes)

    def zero(self) -> NDArray[np.int64]:
        """Make the answer for no records: all cuboids, then the number of records."""
        return np.zeros(sum(map(prod, self.shapes)) + 1, dtype=np.int64)

    def add(self, batch: Batch, out: NDArray[np.int64]) -> None:
        """Add the records of `batch` to `out`."""
        cells = look_up(batch, self._lookups)
        classes = batch.codes(self.target)
        is_difference = self.planes == 1
        steps = 1 - 2 * classes.astype(np.int64) if is_difference else np.int64(1)
        start = 0
        for axes, shape in zip(self.axes, self.shapes, strict=True):
            stop = start + prod(shape)
            found = [cells[axis.column, axis.level] for axis in axes]
            if is_difference:
                keys = cell_keys(found, shape[1:], len(batch))
            else:
                keys = cell_keys([classes, *found], shape, len(batch))
            np.add.at(out[start:stop], keys, steps)
            start = stop
        out[-1] += len(batch)

    def merge(self, out: NDArray[np.int64], other: NDArray[np.int64]) -> None:
        """Add another partial answer to `out`."""
        out += other

    def split(self, answer: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Cut an answer into one array per cuboid.

        The first axis of each runs over the classes; if there are two, it has one entry, the
        count of the first class less that of the second.
        """
        cuts = np.cumsum([prod(shape) for shape in self.shapes])
        parts = np.split(answer, cuts)[:-1]
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def count_records(self, answer: NDArray[np.int64]) -> int:
        """Find the number of records in an answer."""
        return int(answer[-1])


def count_planes(classes: int) -> int:
    """Say how many counts are kept for a cell: one per class, or the difference of two."""
    return 1 if classes == 2 else classes
