"""What a grid classifier publishes of single columns, beside its grid.

A `Refinement` is what a column adds to the score card, from noisy sums of what the card missed.
`ValueCounts` are noisy counts of a column's values, by which rows are drawn within the cells of
the grid.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.core.beside_labels import (
    Piece,
    cell_width,
    every_cell,
    with_interval,
    with_listed_bins,
)
from dpublish.core.probabilities import draw_cells
from dpublish.core.released import whole_column
from dpublish.data.axis import Axis
from dpublish.data.cut import cut_axis
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.privpfc.kernels import sensitivity_of, sums_shape
from dpublish.methods.privpfc.score_card import STEP, ScoreTerm
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.types import IntArray

_LARGEST = 1 << 50  # sums beyond are moved here, so that a step's arithmetic fits 64 bits
_LONGEST_STEP = 2 * STEP
_DOUBT = 3  # deviations of noise that a cell's variance has to outweigh
_SUMS = ("noisy_residual", "noisy_variance", "noisy_remainder", "noisy_remainder_of_second")
"""Columns of the published table; the last one is there for two classes only."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """Noisy sums of residuals, variances and remainders in the cells of an axis.

    Attributes:
        axis: The cells of a predictor.
        classes: Number of classes.
        sums: Residuals (first), variances and remainders, by class and cell, in multiples of
            1 / UNIT; of two classes only the second has residuals and variances, and the
            remainders of both classes follow one another.
        rate: Rate of the two-sided geometric noise in each sum.
    """

    axis: Axis
    classes: int
    sums: IntArray
    rate: Fraction

    def __post_init__(self) -> None:
        require_rate(self.rate)
        shape = sums_shape(self.classes, self.axis.size)
        if self.sums.dtype != np.int64 or self.sums.shape != shape:
            raise InvalidParameter("a refinement needs whole sums for each class and cell")

    @property
    def term(self) -> ScoreTerm:
        """The scores that follow: for each cell a Newton step, shortened where noise is large.

        Only integers are used, so that it is the same wherever it is computed.
        """
        residuals, variances = np.clip(self.sums[:2], -_LARGEST, _LARGEST)
        doubt = min(round(_DOUBT / self.rate), _LARGEST)
        steps = residuals * STEP // (np.maximum(variances, 0) + max(doubt, 1))
        steps = np.clip(steps, -_LONGEST_STEP, _LONGEST_STEP).T
        if self.classes == 2:
            steps = np.column_stack([np.zeros(len(steps), dtype=np.int64), steps])
        return ScoreTerm((self.axis,), np.ascontiguousarray(steps), np.zeros_like(steps[0]))

    @property
    def published_use(self) -> NDArray[np.float64]:
        """Variances of all classes, then remainders by class, by cell; one record adds up to 1.

        What is missing to the number of records are the absolute residuals.
        """
        remainders = self.sums[2:].reshape(self.classes, self.axis.size)
        found = np.vstack([self.sums[1].sum(axis=0), remainders])
        return np.asarray(found / sensitivity_of(self.classes))

    def metadata(self) -> dict[str, Any]:
        """Return axis and noise rate as plain values."""
        return {
            "column": self.axis.column,
            "starts": self.axis.leaf_starts[:-1].tolist(),
            "rate": format_epsilon(self.rate),
        }

    @classmethod
    def from_parts(
        cls, schema: Schema, metadata: Mapping[str, Any], classes: int, table: pa.Table
    ) -> Self:
        """Read back what `metadata` and `table_of` gave."""
        axis = cut_axis(schema[metadata["column"]], metadata["starts"])
        kinds, planes, cells = sums_shape(classes, axis.size)
        sums = [whole_column(table, name) for name in _SUMS[:kinds]]
        shaped = np.stack([column.reshape(planes, cells) for column in sums])
        return cls(axis, classes, shaped, parse_epsilon(metadata["rate"]))


def table_of(refinements: tuple[Refinement, ...], class_labels: tuple[str, ...]) -> pa.Table:
    """List the sums of all refinements, one after the other, by class and cell."""
    columns: dict[str, list[Any]] = {name: [] for name in ("refinement", "column", "cell", "class")}
    sums: dict[str, list[IntArray]] = {name: [] for name in _SUMS}
    for number, one in enumerate(refinements):
        planes = class_labels[1:] if one.classes == 2 else class_labels
        cells = one.axis.labels
        columns["refinement"] += [number] * len(planes) * len(cells)
        columns["column"] += [one.axis.column] * len(planes) * len(cells)
        columns["cell"] += list(cells) * len(planes)
        columns["class"] += [label for label in planes for _ in cells]
        for name, row in zip(_SUMS, one.sums, strict=False):
            sums[name].append(row.ravel())
    kinds = _SUMS if len(class_labels) == 2 else _SUMS[:-1]
    nothing = np.empty(0, dtype=np.int64)
    table = pa.table(
        {
            "refinement": pa.array(columns["refinement"], pa.int64()),
            **{name: pa.array(columns[name], pa.string()) for name in ("column", "cell", "class")},
            **{name: np.concatenate([nothing, *sums[name]]) for name in kinds},
        }
    )
    pieces = []
    for one in refinements:
        numbers = np.tile(np.arange(one.axis.size), one.sums.shape[1])
        pieces.append(Piece(one.axis, numbers, numbers))
    return with_listed_bins(table, "cell", pieces)


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Noisy counts of all values (or bins) of a column.

    Attributes:
        axis: The values, one cell each.
        counts: How many records have each value, with noise.
        rate: Rate of the two-sided geometric noise in each count.
    """

    axis: Axis
    counts: IntArray
    rate: Fraction

    def __post_init__(self) -> None:
        require_rate(self.rate)
        if self.axis.size != len(self.axis.leaf_to_cell):
            raise InvalidParameter("value counts are about single values, not groups of them")
        if self.counts.dtype != np.int64 or self.counts.shape != (self.axis.size,):
            raise InvalidParameter("value counts need an integer for each value")

    def shares(self, axis: Axis) -> NDArray[np.float64]:
        """Compute which part of each cell's records has each value: cells by values.

        No count is taken to be below one standard unit of its noise, so every value occurs.
        """
        weights = np.maximum(self.counts.astype(np.float64), 1 / float(self.rate))
        inside = axis.leaf_to_cell == np.arange(axis.size)[:, None]
        shares = np.where(inside, weights, 0.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def draw(self, axis: Axis, cells: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a value for each of the `cells` of a coarser axis of the same column."""
        return draw_cells(self.shares(axis), cells, rng)

    def metadata(self) -> dict[str, Any]:
        """Return column and noise rate as plain values."""
        return {"column": self.axis.column, "rate": format_epsilon(self.rate)}

    @classmethod
    def from_parts(cls, schema: Schema, metadata: Mapping[str, Any], table: pa.Table) -> Self:
        """Read back what `metadata` and `values_table` gave."""
        axis = schema[metadata["column"]].axis()
        own = table.filter(pc.equal(table["column"], axis.column))
        return cls(axis, whole_column(own, "noisy_count"), parse_epsilon(metadata["rate"]))


def values_table(values: tuple[ValueCounts, ...]) -> pa.Table:
    """List the counts of all columns, one after the other."""
    nothing = np.empty(0, dtype=np.int64)
    labels = [(one.axis.column, label) for one in values for label in one.axis.labels]
    table = pa.table(
        {
            "column": pa.array([column for column, _ in labels], pa.string()),
            "value": pa.array([label for _, label in labels], pa.string()),
            "noisy_count": np.concatenate([nothing, *(one.counts for one in values)]),
        }
    )
    widths = [np.full(one.axis.size, cell_width(one.rate)) for one in values]
    table = with_listed_bins(table, "value", every_cell([one.axis for one in values]))
    return with_interval(table, np.concatenate([np.empty(0), *widths]))


def read_values(
    schema: Schema, metadata: list[Mapping[str, Any]], table: pa.Table
) -> tuple[ValueCounts, ...]:
    """Read the value counts of a release folder; refuse counts of columns that it does not name."""
    found = tuple(ValueCounts.from_parts(schema, one, table) for one in metadata)
    if sum(one.axis.size for one in found) != table.num_rows:
        raise CorruptRelease("the release lists counts of values that it does not name")
    return found
