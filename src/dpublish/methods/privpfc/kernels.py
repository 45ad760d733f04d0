"""What is added up over the records: class counts of cuboids, and residuals of a score card.

`ClassCuboids` counts the records of each class in the cells of several cuboids, in one pass.  A
cuboid is a set of predictors, each on a level of its taxonomy.  Of two classes only the
difference is counted, which takes half the memory.

`ResidualSums` adds up class - prediction by value: what a score card still gets wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import ColumnSet, Lookups, cell_keys, find_axes, look_up, tabulate
from dpublish.aggregates.kernel import CodeSums
from dpublish.data.axis import Axis
from dpublish.data.batch import Batch
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.privpfc.score_card import UNIT, ScoreCard, to_probabilities
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import IntArray

MOST_SUMS = 1 << 24
"""Most sums: residuals, variances and remainders by leaf of all predictors and by class."""

_PART = 1 << 19  # probabilities that are computed at once; a part's sums stay far below 2^53


@dataclass(frozen=True)
class ClassCuboids(CodeSums):
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
        return tabulate(axis for axes in self.axes for axis in axes)

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
    """Return how many counts are kept for a cell: one per class, or the difference of two."""
    return 1 if classes == 2 else classes


@dataclass(frozen=True, eq=False)
class ResidualSums(CodeSums):
    """Kernel: add up residuals and variances of the card's probabilities, by leaf.

    A record of class y with predicted probability p of class k has residual 1[y = k] - p and
    variance p (1 - p), both in integer multiples of 1 / UNIT.  Of two classes only the
    second is looked at, for the first has the opposite residual and the same variance.  What a
    record leaves of the sensitivity is its remainder; it is added up by the record's own class.
    """

    schema: Schema
    target: str
    predictors: tuple[str, ...]
    card: ScoreCard

    def __post_init__(self) -> None:
        if self.card.classes != self.schema[self.target].size:
            raise InvalidParameter("the score card must know the classes of the target")
        require_sums(self.schema, self.target, self.predictors)

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes: always all predictors, whatever the card looks at."""
        return (*self.predictors, self.target)

    @cached_property
    def planes(self) -> tuple[int, ...]:
        """Classes that are looked at."""
        return _planes(self.card.classes)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        sizes = [self.schema[name].size for name in self.predictors]
        return tuple(np.cumsum([0, *sizes]).tolist())

    def zero(self) -> IntArray:
        """Make the answer for no records: [kind of sum, class, leaf of some predictor].

        Residuals come first, then variances, then remainders.  Of two classes, remainders have
        two rows of one plane, else one row with a plane for each class.
        """
        shape = sums_shape(self.card.classes, self._starts[-1])
        return np.zeros(shape, dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        for part in batch.cut(max(_PART // self.card.classes, 1)):
            self._add(part, out)

    def _add(self, batch: Batch, out: IntArray) -> None:
        codes = {name: batch.codes(name) for name in self.predictors}
        probabilities = to_probabilities(self.card.score(codes, len(batch)))
        classes = batch.codes(self.target).astype(np.int64)
        remainder = np.full(len(batch), sensitivity_of(self.card.classes), dtype=np.int64)
        for plane, number in enumerate(self.planes):
            probability = probabilities[:, number]
            residual = np.where(classes == number, UNIT - probability, -probability)
            variance = probability * (UNIT - probability) // UNIT
            remainder -= np.abs(residual) + variance
            for row, amounts in enumerate((residual, variance)):
                self._tally(out[row, plane], codes, amounts)
        remainders = out[2:].reshape(self.card.classes, -1)
        for number in range(self.card.classes):
            self._tally(remainders[number], codes, np.where(classes == number, remainder, 0))

    def _tally(
        self, out: IntArray, codes: Mapping[str, NDArray[Any]], amounts: NDArray[np.int64]
    ) -> None:
        # A part adds up to less than 2^53, so these floats are exact integers.
        weights = amounts.astype(np.float64)
        for name, start in zip(self.predictors, self._starts, strict=False):
            sums = np.bincount(codes[name], weights=weights)
            out[start : start + len(sums)] += sums.astype(np.int64)

    def split(self, answer: IntArray) -> Sequence[IntArray]:
        """Cut an answer into one array [kind of sum, class, leaf] per predictor."""
        return np.split(answer, self._starts[1:-1], axis=2)

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return how much all sums by one predictor change at most, together (L1).

        A record lies in one leaf.  With x = p / UNIT and two classes it adds 1 - x + x (1 - x)
        = 1 - x^2 if it is of the second class, else x + x (1 - x) = 1 - (1 - x)^2: at most 1.
        With more classes it adds 1 - x_y^2 for its own and 2 x_k - x_k^2 for each of the
        others.  The x_k add up to at most 1, so this is largest if x_y is 0 and the others
        are equal: 3 - 1 / (K - 1).  The remainder is what is missing to this bound, so every
        record moves the sums by exactly that much.
        """
        self._require_records(neighbors)
        return sensitivity_of(self.card.classes)

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return by how much the changes of two sums of absolute residuals differ at most (R).

        By the triangle inequality a record moves each such sum, up or down, by at most its
        own residuals: 1 of two classes, 2 of more.
        """
        self._require_records(neighbors)
        return 2 * UNIT if len(self.planes) == 1 else 4 * UNIT

    def _require_records(self, neighbors: Neighbors) -> None:
        if not isinstance(neighbors, AddRemoveRecord):
            raise InvalidParameter("residuals are summed for single records added or removed")


def require_sums(schema: Schema, target: str, predictors: Sequence[str]) -> None:
    """Refuse columns with more leaves than sums are kept for; call it before budget is spent."""
    leaves = sum(schema[name].size for name in predictors)
    kinds, planes, _ = sums_shape(schema[target].size, leaves)
    sums = kinds * planes * leaves
    if sums > MOST_SUMS:
        raise InvalidParameter(
            f"{sums:,} sums of residuals are too many (at most {MOST_SUMS:,}); "
            "name fewer predictors, cut them into fewer cells, or ask for no refinements"
        )


def sums_shape(classes: int, cells: int) -> tuple[int, int, int]:
    """Return the shape of the sums: kinds (remainders in as many rows as they need), planes, cells.

    >>> sums_shape(2, 5), sums_shape(3, 5)
    ((4, 1, 5), (3, 3, 5))
    """
    planes = len(_planes(classes))
    return 2 + classes // planes, planes, cells


def sensitivity_of(classes: int) -> int:
    """Bound the absolute residuals and variances of one record (see `ResidualSums.sensitivity`)."""
    return UNIT if classes == 2 else 3 * UNIT - -(-UNIT // (classes - 1))


def _planes(classes: int) -> tuple[int, ...]:
    return (1,) if classes == 2 else tuple(range(classes))
