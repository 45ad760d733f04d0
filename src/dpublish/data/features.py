"""From leaf codes to the features that a linear model weighs, by the public schema alone.

A number or an ordinal is one feature, scaled so that its public bounds lie at -1 and 1; a
category is one feature for each value.  Nothing is learned from the rows.  Features are whole
numbers of 1 / `FEATURE_UNIT`, found by look-up, so they are the same on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, nextafter, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.data.column import Column, NumberColumn
from dpublish.data.schema import Schema, refuse_unit
from dpublish.errors import InvalidParameter, InvalidQuery, require_known
from dpublish.types import FloatArray, IntArray

FEATURE_UNIT = 1 << 10
"""A feature of 1 as an integer."""

MOST_CELLS = 64
"""Most leaves of a column that is told by its cells."""

MAX_FEATURES = 2_048
"""More features than this would make tables of features too large for memory."""

INTERCEPT = "(intercept)"


class Scale(NamedTuple):
    """A straight line from the owner's units to features: `slope` * value + `offset`."""

    slope: float
    offset: float

    @classmethod
    def of(cls, column: Column) -> "Scale":
        """Find the line that takes the public bounds to -1 and 1; ordinals count positions from 0.

        A column that holds one value only is 0 throughout.

        >>> from dpublish.data.schema import column
        >>> Scale.of(column("age", "integer", bounds=[0, 100]))
        Scale(slope=0.02, offset=-1.0)
        """
        if isinstance(column, NumberColumn):
            low, high = column.bounds
        else:
            low, high = 0.0, float(column.axis().ordinary_leaves - 1)
        if low == high:
            return cls(0.0, 0.0)
        return cls(2 / (high - low), -(low + high) / (high - low))


def scaled_leaves(column: Column) -> IntArray:
    """Return the feature of each ordinary leaf of a number (its middle) or ordinal (its position).

    >>> from dpublish.data.schema import column
    >>> scaled_leaves(column("age", "integer", bounds=[0, 4])).tolist()
    [-1024, -512, 0, 512, 1024]
    """
    if isinstance(column, NumberColumn):
        edges = np.array(column.partition.edges)
        # The cell of the integers 30 to 34 ends at 35, which it does not hold.
        middles = edges[:-1] + (np.diff(edges) - column.partition.whole) / 2
    else:
        middles = np.arange(column.axis().ordinary_leaves, dtype=np.float64)
    slope, offset = Scale.of(column)
    scaled = np.floor((slope * middles + offset) * FEATURE_UNIT + 0.5)
    return np.clip(scaled, -FEATURE_UNIT, FEATURE_UNIT).astype(np.int64)


def choose_predictors(
    schema: Schema, target: str | None, predictors: tuple[str, ...]
) -> tuple[str, ...]:
    """Check the names of the predictors; all columns but the target, unless some are named."""
    refuse_unit(schema)
    if target is not None:
        require_known("column", target, schema.names)
    chosen = predictors or tuple(name for name in schema.names if name != target)
    for name in chosen:
        require_known("column", name, schema.names)
        if chosen.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is listed twice")
    if target in chosen:
        raise InvalidParameter(f"{target!r} cannot predict itself; leave it out of predictors")
    if not chosen:
        raise InvalidParameter("there is no column to predict the target from")
    return chosen


@dataclass(frozen=True)
class Features:
    """The features of a record: those of its columns, one after the other, and the intercept.

    A leaf for unlisted or missing values has a feature of its own, 1 for such records; the
    column's number is then 0.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 4], missing="category")
    >>> sex = column("sex", "category", values=["F", "M"])
    >>> features = Features((age, sex))
    >>> features.names
    ('age', 'age=(missing)', 'sex=F', 'sex=M', '(intercept)')
    >>> features.matrix({"age": np.array([3, 5]), "sex": np.array([1, 0])}).astype(int)
    array([[ 512,    0,    0, 1024, 1024],
           [   0, 1024, 1024,    0, 1024]])
    """

    predictors: tuple[Column, ...]
    by_cell: bool = False
    """Whether numbers and ordinals of few leaves are told by their cells, as categories are."""

    def __post_init__(self) -> None:
        if self.size > MAX_FEATURES:
            raise InvalidParameter(
                f"these columns have {self.size:,} features, more than {MAX_FEATURES:,}; "
                "name fewer predictors, or declare long lists of values coarser"
            )

    @classmethod
    def of(
        cls,
        schema: Schema,
        target: str | None,
        predictors: tuple[str, ...] = (),
        *,
        by_cell: bool = False,
    ) -> "Features":
        """Find the columns: all but the target, unless some are named."""
        chosen = choose_predictors(schema, target, predictors)
        return cls(tuple(schema[name] for name in chosen), by_cell)

    def is_listed(self, column: Column) -> bool:
        """Check whether a column has a feature for each leaf."""
        return column.kind == "category" or (self.by_cell and column.size <= MOST_CELLS)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the predictors."""
        return tuple(column.name for column in self.predictors)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        found: list[str] = []
        for column in self.predictors:
            axis = column.axis()
            first = 0
            if not self.is_listed(column):
                found.append(column.name)
                first = axis.ordinary_leaves
            found.extend(f"{column.name}={label}" for label in axis.leaf_labels[first:])
        return (*found, INTERCEPT)

    @property
    def size(self) -> int:
        """Number of features (p)."""
        return len(self.names)

    @cached_property
    def tables(self) -> tuple[IntArray, ...]:
        """The features that each leaf of each column gives: a row for each leaf."""
        return tuple(
            FEATURE_UNIT * np.eye(column.size, dtype=np.int64)
            if self.is_listed(column)
            else _line_features(column)
            for column in self.predictors
        )

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The indices of the features of each column, and last that of the intercept."""
        return tuple(tuple(range(start, stop)) for start, stop in pairwise(self._starts))

    @property
    def norms(self) -> float:
        """Bound of the L2 norm of a record's features: a column adds at most 1 to its square."""
        return nextafter(sqrt(len(self.predictors) + 1), inf)  # rounded up, to stay a bound

    def matrix(self, codes: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Look up the features of records, in whole units, a row each.

        An unknown value (-1) gives zeros for its column.
        """
        rows = len(self._codes(codes, self.columns[0]))
        found = np.empty((rows, self.size))
        for name, table, (start, stop) in zip(
            self.columns, self._padded, pairwise(self._starts), strict=False
        ):
            found[:, start:stop] = table[self._codes(codes, name)]
        found[:, -1] = FEATURE_UNIT
        return found

    def products(self, weights: FloatArray) -> tuple[FloatArray, ...]:
        """Weigh the leaves of each column, last the intercept: (leaves, ...) in units of 1."""
        blocks = [
            table @ weights[..., start:stop].T / FEATURE_UNIT
            for table, (start, stop) in zip(self.tables, pairwise(self._starts), strict=False)
        ]
        return (*blocks, weights[..., -1:].T)

    def largest_sum(self, weights: NDArray[Any]) -> FloatArray:
        """Find the largest |sum of feature * weight| over all records of the domain.

        Columns are free of each other, so their largest and least parts add up.  Weights that
        are integers below 2^40 give an exact answer.
        """
        high = np.zeros(weights.shape[:-1])
        low = np.zeros(weights.shape[:-1])
        for corners, group in zip(self._corners, self.groups, strict=True):
            parts = weights[..., group[0] : group[-1] + 1] @ corners.T
            high += parts.max(axis=-1)
            low += parts.min(axis=-1)
        return np.asarray(np.maximum(high, -low) / FEATURE_UNIT)

    def distance(self, weights: NDArray[Any], others: NDArray[Any]) -> FloatArray:
        """Find how far two models' sums can lie apart at one record of the domain."""
        return self.largest_sum(np.subtract(weights, others))

    def distances(self, candidates: NDArray[Any]) -> FloatArray:
        """Find the distance of every two of some models: a square table."""
        size = len(candidates)
        low, high = np.zeros((2, size, size))
        apart = np.empty((size, size))
        for corners, group in zip(self._corners, self.groups, strict=True):
            parts = corners @ candidates[:, group[0] : group[-1] + 1].T
            most = np.full((size, size), -np.inf)
            for part in parts:  # a corner of the column at a time, so that memory is bounded
                np.subtract.outer(part, part, out=apart)
                np.maximum(most, apart, out=most)
            high += most
            low -= most.T  # the least of a - b is minus the most of b - a
        return np.maximum(high, -low) / FEATURE_UNIT

    def explain(self, weights: FloatArray) -> list[tuple[str, float]]:
        """Write a model's weights in the owner's units: what one unit more of a column adds.

        An ordinal's unit is one position further.  The intercept takes what scaling added; a
        special value, which has no number, gives it back.
        """
        own = weights.astype(np.float64)
        for column, (start, stop) in zip(self.predictors, pairwise(self._starts), strict=False):
            if self.is_listed(column):
                continue
            slope, offset = Scale.of(column)
            own[start + 1 : stop] -= weights[start] * offset
            own[-1] += weights[start] * offset
            own[start] *= slope
        return list(zip(self.names, own.tolist(), strict=True))

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        widths = [table.shape[1] for table in self.tables]
        return tuple(np.cumsum([0, *widths, 1]).tolist())

    @cached_property
    def _padded(self) -> tuple[FloatArray, ...]:
        """The tables with a last row of zeros, which the code -1 finds."""
        return tuple(np.pad(table, ((0, 1), (0, 0))).astype(np.float64) for table in self.tables)

    @cached_property
    def _corners(self) -> tuple[FloatArray, ...]:
        """Leaves that can give a column's largest or least sum, for any weights."""
        found = []
        for column, table in zip(self.predictors, self.tables, strict=True):
            axis = column.axis()
            if self.is_listed(column):
                kept = table
            else:  # ordinary leaves lie on one line: its ends are enough
                ends = (0, axis.ordinary_leaves - 1)
                kept = np.vstack([table[ends, :], table[axis.ordinary_leaves :]])
            found.append(kept.astype(np.float64))
        return (*found, np.full((1, 1), float(FEATURE_UNIT)))

    @staticmethod
    def _codes(codes: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
        if name not in codes:
            raise InvalidQuery(f"the codes of column {name!r} are missing")
        return codes[name]


def _line_features(column: Column) -> IntArray:
    """Assign a column's number to its ordinary leaves, and to each special leaf its own feature."""
    axis = column.axis()
    leaves, ordinary = axis.taxonomy.size, axis.ordinary_leaves
    found = np.zeros((leaves, 1 + axis.special), dtype=np.int64)
    found[:ordinary, 0] = scaled_leaves(column)
    found[ordinary:, 1:] = FEATURE_UNIT * np.eye(axis.special, dtype=np.int64)
    return found
