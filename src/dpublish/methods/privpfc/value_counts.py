"""Noisy counts of a column's values, by which rows are drawn within the cells of a grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.core.probabilities import draw_cells
from dpublish.core.released import whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.types import IntArray


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
    return pa.table(
        {
            "column": pa.array([column for column, _ in labels], pa.string()),
            "value": pa.array([label for _, label in labels], pa.string()),
            "noisy_count": np.concatenate([nothing, *(one.counts for one in values)]),
        }
    )


def read_values(
    schema: Schema, metadata: list[Mapping[str, Any]], table: pa.Table
) -> tuple[ValueCounts, ...]:
    """Read the value counts of a release folder; refuse counts of columns that it does not name."""
    found = tuple(ValueCounts.from_parts(schema, one, table) for one in metadata)
    if sum(one.axis.size for one in found) != table.num_rows:
        raise CorruptRelease("the release lists counts of values that it does not name")
    return found
