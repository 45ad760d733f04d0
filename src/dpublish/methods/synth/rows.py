"""Synthetic rows from a model: clique by clique, each conditional distribution walked evenly.

Rows are drawn in blocks.  Within a block the rows of each class share the next classes out
evenly (systematic sampling, in random order), which is nearer to the model than coins are.
Conditions on columns are part of the distribution that is walked, so that no row is rejected.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa

from dpublish.core.axis_rows import draw_column, whole_array
from dpublish.core.even_draws import draw_evenly, share_out
from dpublish.data.axis import Axis
from dpublish.data.column import MISSING_LABEL, CategoryColumn, Column
from dpublish.data.query.language import Condition, Query
from dpublish.data.query.weights import RANGES, axis_weights, query_range
from dpublish.data.schema import Schema
from dpublish.errors import InvalidQuery
from dpublish.methods.synth.junction_tree import Beliefs, JunctionTree
from dpublish.methods.synth.model import Known
from dpublish.types import BoolArray, FloatArray, IntArray

BLOCK = 1 << 18
"""Rows that are drawn together."""
_TRIES = 100


@dataclass(frozen=True, eq=False)
class RowSource:
    """A distribution of rows: that of a model, or of those of its rows that satisfy conditions.

    Attributes:
        schema: The columns, those that are filled in by rule included.
        known: The classes of the columns, and how records lie within each.
        tree: The cliques.
        tables: The distribution of each clique.
        query: Conditions that all rows satisfy.
    """

    schema: Schema
    known: Known
    tree: JunctionTree
    tables: tuple[FloatArray, ...]
    query: Query = field(default_factory=lambda: Query(()))

    def satisfying(self, query: Query) -> "tuple[RowSource, float]":
        """Return the rows that satisfy conditions, and their part of all rows.

        The part is 0 if there are none.
        """
        filled = {one.column for one in self.schema.functions}
        for name in query.columns:
            if name in filled:
                raise InvalidQuery(
                    f"column {name!r} is filled in by a rule of the schema; draw rows by "
                    "conditions on the columns that it is a function of, or filter the rows"
                )
        potentials = self._potentials
        for column, name in enumerate(self.known.names):
            conditions = query.about(name)
            if conditions:
                weights = axis_weights(self.schema[name].axis(), conditions)
                inside = self._class_weights(column, weights)
                home = self.tree.find((column,))
                with np.errstate(divide="ignore"):
                    more = self.tree.shaped(home, (column,), np.log(inside))
                potentials[home] = potentials[home] + more
        beliefs = _beliefs(self.tree, potentials)
        if beliefs is None:
            return self, 0.0
        return replace(self, tables=beliefs.tables, query=query), float(np.exp(beliefs.log_sum))

    def _class_weights(self, column: int, weights: FloatArray) -> FloatArray:
        """Weigh each class of the model by the part of its records that is wanted."""
        classes = self._classes(column)
        counts = self.known.values[column] + 1e-9
        wanted = np.bincount(classes, weights=counts * weights)
        return np.asarray(wanted / np.bincount(classes, weights=counts))

    def _classes(self, column: int) -> IntArray:
        return self.known.classes[column].levels[self.known.levels[column]]

    @property
    def _potentials(self) -> list[FloatArray]:
        """Logarithms of potentials whose product is the distribution."""
        found = []
        with np.errstate(divide="ignore"):
            for clique, shared in enumerate(self.tree.separators):
                found.append(np.log(self.tree.conditional(self.tables, clique, shared)))
        return found

    def codes(self, rows: int, rng: np.random.Generator) -> dict[str, IntArray]:
        """Draw rows as the codes of their values."""
        classes: dict[int, IntArray] = {}
        for clique, members in enumerate(self.tree.cliques):
            given = self.tree.separators[clique]
            new = tuple(i for i in members if i not in given)
            if not new:
                continue
            shape = tuple(self.tree.sizes[i] for i in new)
            above = _number_cells([classes[i] for i in given], [self.tree.sizes[i] for i in given])
            if above is None:
                above = np.zeros(rows, dtype=np.int64)
            cells = draw_evenly(self._steps[clique], above, rng)
            for column, along in zip(new, np.unravel_index(cells, shape), strict=True):
                classes[column] = along
        return {
            name: self._values[column].draw(classes[column], rng)
            for column, name in enumerate(self.known.names)
        }

    @cached_property
    def _steps(self) -> tuple[FloatArray, ...]:
        """For each clique the distribution of its new columns, a row for each of the others'."""
        found = []
        for clique, members in enumerate(self.tree.cliques):
            given = self.tree.separators[clique]
            table = self.tables[clique]
            order = [*map(members.index, given), *self.tree.others(clique, given)]
            rows = prod(self.tree.sizes[i] for i in given)
            flat = np.transpose(table, order).reshape(rows, -1)
            totals = flat.sum(axis=1, keepdims=True)
            # Classes that no row has need some distribution: that of all rows.
            flat = np.where(totals > 0, flat, flat.sum(axis=0, keepdims=True))
            found.append(flat / flat.sum(axis=1, keepdims=True))
        return tuple(found)

    @cached_property
    def _values(self) -> "tuple[_ValuesOfClass, ...]":
        found = []
        for column, name in enumerate(self.known.names):
            counts = self.known.values[column]
            weights = axis_weights(self.schema[name].axis(), self.query.about(name))
            found.append(_ValuesOfClass.of(self._classes(column), counts, weights))
        return tuple(found)

    def table(self, rows: int, rng: np.random.Generator) -> pa.Table:
        """Draw rows as values, in the order and with the types of the owner's table."""
        from dpublish.data.column_function import fill_functions

        codes = self.codes(rows, rng)
        drawn = {}
        for name, along in codes.items():
            axis = self.schema[name].axis()
            drawn[name] = _draw(axis, along, self.query, rng)
        table = pa.table(drawn)
        if self.schema.functions:
            needed = {name for one in self.schema.functions for name in one.of}
            for name in needed & set(drawn):
                table = table.set_column(table.column_names.index(name), name, _plain(table[name]))
            table = fill_functions(table, self.schema.functions)
        return pa.table({name: owned(self.schema[name], table[name]) for name in self.schema.names})

    def blocks(self, rows: int, rng: np.random.Generator) -> Iterator[pa.Table]:
        """Draw many rows, a block at a time."""
        yield self.table(min(rows, BLOCK), rng)
        for start in range(BLOCK, rows, BLOCK):
            yield self.table(min(rows - start, BLOCK), rng)


@dataclass(frozen=True, eq=False)
class _ValuesOfClass:
    """How the rows of each class of a column are shared out among its values.

    Attributes:
        values: The values, class by class.
        classes: The class of each.
        parts: The part of its class's rows that each value and those before it get; None if
            every class is one value.
    """

    values: IntArray
    classes: IntArray
    parts: FloatArray | None

    @classmethod
    def of(cls, classes: IntArray, counts: FloatArray, weights: FloatArray) -> "_ValuesOfClass":
        order = np.argsort(classes, kind="stable")
        found = classes[order]
        if found[-1] + 1 == classes.size:
            return cls(order, found, None)
        shares = (counts * weights)[order]
        # A class without any record gives each of its wanted values the same part.
        empty = np.bincount(found, weights=shares)[found] <= 0
        shares = np.where(empty, weights[order], shares)
        totals = np.bincount(found, weights=shares)
        starts = np.concatenate([[0.0], np.cumsum(totals)[:-1]])
        ends = np.cumsum(shares) - starts[found]
        parts = np.divide(ends, totals[found], out=np.ones(ends.size), where=totals[found] > 0)
        # Values without any part at the end of a class must not get what rounding leaves.
        last = np.zeros(totals.size, dtype=np.int64)
        np.maximum.at(last, found[shares > 0], np.flatnonzero(shares > 0))
        parts = np.where(np.arange(parts.size) >= last[found], 1.0, np.clip(parts, 0.0, 1.0))
        return cls(order, found, parts)

    def draw(self, classes: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a value of each class, evenly."""
        if self.parts is None:
            return self.values[classes]
        return self.values[share_out(classes, self.parts, self.classes, rng)]


def _beliefs(tree: JunctionTree, potentials: list[FloatArray]) -> Beliefs | None:
    """Compute the distribution of potentials; None if they exclude everything."""
    if any(np.all(np.isneginf(table)) for table in potentials):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        found = tree.beliefs(potentials)
    return found if np.isfinite(found.log_sum) else None


def _number_cells(cells: list[IntArray], sizes: list[int]) -> IntArray | None:
    """Number the combinations of several classes, the last counting fastest."""
    found: IntArray | None = None
    for along, size in zip(cells, sizes, strict=True):
        found = along if found is None else found * size + along
    return found


# --- From codes to values ----------------------------------------------------------------------


def _draw(axis: Axis, codes: IntArray, query: Query, rng: np.random.Generator) -> pa.Array:
    """Draw a value for each code; texts by dictionary, which is quick."""
    if axis.edges is None:
        return _labels(axis, codes)
    conditions = query.about(axis.column)
    if not conditions:
        return draw_column(axis, codes, rng)
    return _draw_within(axis, codes, query, rng)


def _labels(axis: Axis, codes: IntArray) -> pa.Array:
    labels = list(axis.leaf_labels)
    missing = labels.index(MISSING_LABEL) if MISSING_LABEL in labels[-1:] else -1
    mask = codes == missing if missing >= 0 else None
    indices = pa.array(codes.astype(np.int32), mask=mask)
    kept = labels[:missing] if missing >= 0 else labels
    return pa.DictionaryArray.from_arrays(indices, pa.array(kept, pa.string()))


def _draw_within(axis: Axis, codes: IntArray, query: Query, rng: np.random.Generator) -> pa.Array:
    """Draw numbers within the part of each cell that satisfies conditions."""
    conditions = query.about(axis.column)
    ranges = [one for one in conditions if one.operator in RANGES]
    edges = np.asarray(axis.edges, dtype=np.float64)
    missing = codes >= edges.size - 1
    inside = np.minimum(codes, edges.size - 2)
    low, high = edges[inside], edges[inside + 1]
    if ranges:
        first, stop = query_range(axis, ranges)
        low, high = np.maximum(low, first), np.minimum(high, stop)
    numbers = _within(axis, low, high, rng)
    others = [one for one in conditions if one.operator not in RANGES]
    numbers = _listed(axis, numbers, low, high, others, rng)
    if axis.holds_integers:
        return whole_array(axis.kind, numbers.astype(np.int64), missing)
    return pa.array(numbers, mask=missing)


def _within(axis: Axis, low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
    part = rng.random(low.size)
    if axis.holds_integers:
        return np.minimum(low + np.floor(part * (high - low)), high - 1)
    return low + part * (high - low) if axis.closed == "left" else high - part * (high - low)


def _listed(
    axis: Axis,
    numbers: FloatArray,
    low: FloatArray,
    high: FloatArray,
    conditions: Sequence[Condition],
    rng: np.random.Generator,
) -> FloatArray:
    """Satisfy conditions that list single values or periods, within each cell."""
    for one in conditions:
        spans = [axis.value_span(operand) for operand in one.operands]
        if one.operator == "!=":
            for _ in range(_TRIES):
                again = _is_in(numbers, spans)
                if not again.any():
                    break
                numbers[again] = _within(axis, low[again], high[again], rng)
            continue
        # Of the listed values, those that lie in the cell, each by its length.
        starts = np.array([start for start, _ in spans])
        stops = np.array([stop for _, stop in spans])
        first = np.maximum(low[:, None], starts)
        lengths = np.maximum(np.minimum(high[:, None], stops) - first, 0.0)
        sums = np.cumsum(lengths, axis=1)
        wanted = rng.random(numbers.size) * sums[:, -1]
        which = np.minimum((sums <= wanted[:, None]).sum(axis=1), len(spans) - 1)
        rows = np.arange(numbers.size)
        able = sums[:, -1] > 0
        stop = first[rows, which] + lengths[rows, which]
        numbers = np.where(able, _within(axis, first[rows, which], stop, rng), numbers)
    return numbers


def _is_in(numbers: FloatArray, spans: list[tuple[float, float]]) -> BoolArray:
    found = np.zeros(numbers.size, dtype=np.bool_)
    for start, stop in spans:
        found |= (numbers >= start) & (numbers < stop)
    return found


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Write texts of a dictionary out."""
    whole = column.combine_chunks()
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


def owned(column: Column, values: pa.ChunkedArray) -> pa.Array:
    """Give values the type that they have in the owner's table: listed integers are integers."""
    whole = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if not isinstance(column, CategoryColumn) or column.other is not None:
        return whole
    listed = column.codes or column.categories
    if not all(type(value) is int for value in listed) or column.codes is not None:
        return whole
    if pa.types.is_dictionary(whole.type):
        lookup = whole.dictionary.cast(pa.int64())
        return lookup.take(whole.indices)
    return whole.cast(pa.int64())


def as_texts(table: pa.Table) -> pa.Table:
    """Write the texts of all dictionaries out."""
    return pa.table({name: _plain(table[name]) for name in table.column_names})
