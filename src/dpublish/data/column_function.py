"""Columns that follow from other columns of the same record, by a public rule.

A formula of the language of derived columns, a table of values, or a part of a date.  A method
that makes synthetic rows need not measure such a column: it fills it in.  Rules are public, and
no row is looked at for them.  What a rule computes is brought into the column's declared domain
as every value is: numbers are clipped, and values that are not listed go where the column
sends them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from dpublish.data.column import MISSING_LABEL, Category, CategoryColumn, Column, NumberColumn
from dpublish.data.date_column import DateColumn, DatePartColumn
from dpublish.data.encoding import Encoded
from dpublish.data.expressions.compiler import Compiled, Field
from dpublish.data.expressions.functions import compile_expression
from dpublish.data.expressions.language import parse_expression
from dpublish.data.expressions.vectors import to_arrow
from dpublish.data.periods import DATE_KINDS
from dpublish.data.query.weights import is_partial
from dpublish.data.stamps import write_stamps
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import (
    InvalidParameter,
    InvalidSchema,
    UnreadableData,
    about,
    require_known,
)
from dpublish.types import BoolArray, IntArray

_NAMED = 5  # values that a message lists


class Bound(NamedTuple):
    """The columns of a schema that a function is about."""

    target: Column
    sources: tuple[Column, ...]


@dataclass(frozen=True)
class ColumnFunction(ABC):
    """A column that follows from others.

    Attributes:
        column: Name of the column that is filled in.
        bound: The columns meant; None until the function is part of a schema.
    """

    column: str
    bound: Bound | None = field(default=None, kw_only=True, compare=False, repr=False)

    @property
    def of(self) -> tuple[str, ...]:
        """Names of the columns from which it follows."""
        return tuple(each.name for each in self._bound.sources)

    @abstractmethod
    def describe(self) -> str:
        """Say what is stated, for people."""

    @abstractmethod
    def fill(self, rows: pa.Table) -> pa.Array:
        """Compute the column for rows that have the columns `of`, as synthetic rows have them."""

    @abstractmethod
    def bind(self, columns: Mapping[str, Column]) -> Self:
        """Find the columns of a schema that are meant; refuse what cannot be computed."""

    def keep(self, columns: Mapping[str, Column]) -> Self | None:
        """Return the same function for other columns; None if it does not fit them."""
        target, sources = self._bound
        if not {self.column, *self.of} <= columns.keys():
            return None
        if all(columns[each.name] == each for each in (target, *sources)):
            return self
        try:
            return self.bind({name: columns[name] for name in (self.column, *self.of)})
        except InvalidParameter:
            return None

    @property
    def _bound(self) -> Bound:
        if self.bound is None:
            raise InvalidParameter("what it needs is known once the function is part of a schema")
        return self.bound


@dataclass(frozen=True)
class Formula(ColumnFunction):
    """A column that is computed by an expression of the language of derived columns.

    Attributes:
        column: Name of the column that is filled in.
        expression: What it is computed by, such as `weight / (height / 100) ** 2`.

    >>> Formula("bmi", "weight / (height / 100) ** 2").describe()
    'bmi = weight / (height / 100) ** 2'
    """

    expression: str

    def __post_init__(self) -> None:
        with about(f"function of {self.column!r}:"):
            object.__setattr__(self, "expression", str(parse_expression(self.expression)))

    def describe(self) -> str:
        """Say what is stated, for people."""
        return f"{self.column} = {self.expression}"

    def bind(self, columns: Mapping[str, Column]) -> Self:
        """Find the columns of a schema that the expression uses, and check all types."""
        with about(f"function of {self.column!r}:"):
            target = _find_target(self.column, columns)
            uses = self._compile(columns.values()).uses
            _refuse_itself(self.column, uses)
            if not uses:
                raise InvalidSchema("uses no other column; name one that it follows from")
            found = replace(self, bound=Bound(target, tuple(columns[name] for name in uses)))
            found._try()
        return found

    def fill(self, rows: pa.Table) -> pa.Array:
        """Compute the column for rows that have the columns `of`, as synthetic rows have them.

        Where an operand is missing, or there is no result, the value is missing.
        """
        target, sources = self._bound
        compiled = self._compile(sources)
        computed = compiled.run(lambda name: whole_column(rows, name), rows.num_rows)
        return to_row_values(target, to_arrow(computed, compiled.form))

    def _compile(self, columns: Iterable[Column]) -> Compiled:
        fields = {each.name: Field(_row_type(each), _as_shown(each)) for each in columns}
        return compile_expression(parse_expression(self.expression), fields, tuple(fields))

    def _try(self) -> None:
        """Compute it for no rows: a type that the column cannot hold is refused by that."""
        sources = self._bound.sources
        header = pa.schema([pa.field(each.name, _row_type(each)) for each in sources])
        try:
            self.fill(header.empty_table())
        except UnreadableData as refusal:
            raise InvalidSchema(f"computes what the column cannot hold: {refusal}") from None


@dataclass(frozen=True)
class ValueMap(ColumnFunction):
    """A column that is read off a table of the values of another column.

    Attributes:
        column: Name of the column that is filled in.
        source: Name of the column that it follows from.
        values: For each value of the source, or group of values, that of the column.

    >>> ValueMap("education_num", "education", {"Bachelors": 13, "HS-grad": 9}).describe()
    'education_num by a table of the values of education'
    """

    source: str
    values: Mapping[Any, Category | float] | tuple[tuple[Any, Category | float], ...]

    def __post_init__(self) -> None:
        pairs = dict(self.values).items()
        for key, value in pairs:
            if not isinstance(value, str | int | float):
                raise InvalidSchema(
                    f"function of {self.column!r}: map must hold texts, numbers, true or false, "
                    f"and does not for {key!r}"
                )
        object.__setattr__(self, "values", tuple((_text(key), value) for key, value in pairs))

    @property
    def table(self) -> dict[str, Category | float]:
        """The table of values, as it is written in a file."""
        return dict(self.values)

    def describe(self) -> str:
        """Say what is stated, for people."""
        return f"{self.column} by a table of the values of {self.source}"

    def bind(self, columns: Mapping[str, Column]) -> Self:
        """Find both columns of a schema, and check that every value of the source is listed."""
        with about(f"function of {self.column!r}:"):
            target = _find_target(self.column, columns)
            require_known("column", self.source, columns)
            _refuse_itself(self.column, (self.source,))
            found = replace(self, bound=Bound(target, (columns[self.source],)))
            found._list_results()
        return found

    def fill(self, rows: pa.Table) -> pa.Array:
        """Look up the column for rows that have the column `source`."""
        codes, keep = self._bound.sources[0].encode(whole_column(rows, self.source))
        found = pa.array(codes.astype(np.int64), mask=None if keep is None else ~keep)
        return self._list_results().take(found)

    def _list_results(self) -> pa.Array:
        """List the column's value for each leaf code of the source."""
        target, (source,) = self._bound
        entries = self._find_entries(source)
        texts = [_text(value) for value in self.table.values()]
        values = to_row_values(target, pa.array(texts, pa.string()))
        results = values.take(pa.array(entries, mask=entries < 0))
        if results.null_count and target.missing != "category":
            self._refuse_gaps(source.axis().labels, entries, results)
        return results

    def _find_entries(self, source: Column) -> IntArray:
        """Find the entry of the table for each leaf code; -1 where there is none."""
        entries = np.full(source.size, -1, dtype=np.int64)
        for number, key in enumerate(self.table):
            leaves = _find_leaves(source, key)
            if np.any(entries[leaves] >= 0):
                raise InvalidSchema(f"map names {key!r}, or a part of it, twice")
            entries[leaves] = number
        return entries

    def _refuse_gaps(self, labels: tuple[str, ...], entries: IntArray, results: pa.Array) -> None:
        """Name the values for which the column would have none."""
        gaps = np.flatnonzero(results.is_null().to_numpy(zero_copy_only=False))
        listed = ", ".join(repr(labels[gap]) for gap in gaps[:_NAMED])
        more = f" and {gaps.size - _NAMED:,} more" if gaps.size > _NAMED else ""
        fault = (
            "map has no value for" if entries[gaps[0]] < 0 else "has no such value as map has for"
        )
        raise InvalidSchema(
            f"{fault} {listed}{more} of {self.source!r}; list every value, or write "
            f'missing = "category" for {self.column!r}'
        )


@dataclass(frozen=True)
class PartOfDate(ColumnFunction):
    """A column that is a part of a date, such as its weekday; a schema knows these by itself."""

    def describe(self) -> str:
        """Say what is stated, for people."""
        target = self._bound.target
        part = target.part if isinstance(target, DatePartColumn) else "part"
        return f"{self.column} is the {part} of {', '.join(self.of)}"

    def bind(self, columns: Mapping[str, Column]) -> Self:
        """Find the column of dates."""
        target = columns[self.column]
        return replace(self, bound=Bound(target, (columns[target.source_name],)))

    def fill(self, rows: pa.Table) -> pa.Array:
        """Compute the part for rows that have the column of dates."""
        target = self._bound.target
        return _labels(target, target.encode_source(whole_column(rows, self.of[0])))


def settle_functions(
    columns: Mapping[str, Column], functions: Iterable[ColumnFunction]
) -> tuple[ColumnFunction, ...]:
    """Fit functions to the columns of a schema, sources first.

    New ones must fit.  Those that were part of a schema already are left out if their columns
    are no longer there.  Parts of dates are added.  The order depends on the columns alone, not
    on how functions were written down.
    """
    given = [each for each in functions if not isinstance(each, PartOfDate)]
    for each in given:
        if [other.column for other in given].count(each.column) > 1:
            raise InvalidSchema(f"column {each.column!r} has two functions; remove one")
    settled = (each.bind(columns) if each.bound is None else each.keep(columns) for each in given)
    found = {each.column: each for each in settled if each is not None}
    found |= {name: PartOfDate(name).bind(columns) for name in _parts(columns)}
    return _order([found[name] for name in columns if name in found])


def fill_functions(rows: pa.Table, functions: Iterable[ColumnFunction]) -> pa.Table:
    """Add to rows the columns that follow from those that are there, or replace them.

    >>> from dpublish.data.schema import Schema, column
    >>> columns = (column("age", "integer", bounds=[0, 99]),
    ...            column("adult", "category", values=["yes", "no"]))
    >>> schema = Schema(columns, functions=(Formula("adult", "if(age >= 18, 'yes', 'no')"),))
    >>> fill_functions(pa.table({"age": [30, 3]}), schema.functions)["adult"].to_pylist()
    ['yes', 'no']
    """
    for function in functions:
        filled = function.fill(rows)
        if function.column in rows.column_names:
            at = rows.column_names.index(function.column)
            rows = rows.set_column(at, function.column, filled)
        else:
            rows = rows.append_column(function.column, filled)
    return rows


def to_row_values(column: Column, array: Any) -> pa.Array:
    """Read an Arrow array by a column's rules, and return values as synthetic rows have them.

    Numbers are clipped, listed values are written by their names, and what is missing to the
    schema is null.

    >>> from dpublish.data.schema import column
    >>> to_row_values(column("age", "integer", bounds=[0, 99]), pa.array([33.5, 120])).to_pylist()
    [33, 99]
    """
    if not isinstance(column, NumberColumn):
        return _labels(column, column.encode(array))
    values, keep = column.values(array)
    absent = None if keep is None else ~keep
    for kind in DATE_KINDS:
        if kind == column.kind:
            return write_stamps(kind, values, absent)
    return pa.array(values.astype(np.int64) if column.partition.whole else values, mask=absent)


def whole_column(rows: pa.Table, name: str) -> Any:
    """Return a column of rows as one Arrow array."""
    if rows.column_names.count(name) != 1:
        raise InvalidParameter(f"the rows must have a column {name!r}, once")
    return rows.column(name).combine_chunks()


def _order(functions: list[ColumnFunction]) -> tuple[ColumnFunction, ...]:
    """Put functions after those that they need; refuse a circle."""
    by_column = {each.column: each for each in functions}
    needs = {each.column: each.of for each in functions}
    try:
        order = [*TopologicalSorter(needs).static_order()]
    except CycleError as failure:
        circle = " -> ".join(reversed(failure.args[1]))
        raise InvalidSchema(
            f"functions go in a circle ({circle}); remove the function of one of these columns"
        ) from None
    return tuple(by_column[name] for name in order if name in by_column)


def _parts(columns: Mapping[str, Column]) -> list[str]:
    """Name the parts of dates whose column of dates is there."""
    return [
        each.name
        for each in columns.values()
        if isinstance(each, DatePartColumn)
        if isinstance(columns.get(each.source_name), DateColumn)
    ]


def _find_target(name: str, columns: Mapping[str, Column]) -> Column:
    require_known("column", name, columns)
    if isinstance(columns[name], DatePartColumn):
        raise InvalidSchema("a part of a date follows from its date already; remove the function")
    return columns[name]


def _refuse_itself(name: str, uses: Iterable[str]) -> None:
    if name in uses:
        raise InvalidSchema("a column cannot follow from itself; name other columns")


def _find_leaves(source: Column, key: str) -> BoolArray:
    """Mark the leaf codes of a value, or group of values, of the source."""
    if isinstance(source, CategoryColumn):
        found = int(source.find(pa.array([key], pa.string()))[0])
        if found >= 0:
            return np.asarray(np.arange(source.size) == found)
    with about("map:"):
        weights = source.axis().match(key)
        if np.any(is_partial(weights)):
            raise InvalidSchema(
                f"names {key!r}, a part of a bin of {source.name!r}; use whole bins"
            )
    return np.asarray(weights > 0)


def _labels(column: Column, encoded: Encoded) -> pa.Array:
    names = [None if label == MISSING_LABEL else label for label in column.axis().labels]
    codes = encoded.codes.astype(np.int64)
    absent = None if encoded.keep is None else ~encoded.keep
    return pa.array(names, pa.string()).take(pa.array(codes, mask=absent))


def _row_type(column: Column) -> Any:
    """Return the Arrow type that synthetic rows have for a column."""
    types = {
        "numeric": pa.float64(),
        "integer": pa.int64(),
        "date": pa.date32(),
        "datetime": pa.timestamp("s"),
    }
    return types.get(column.kind, pa.string())


def _as_shown(column: Column) -> Column:
    """Describe a column as rows show it: values by their names, and parts of dates as such."""
    if not isinstance(column, CategoryColumn):
        return column
    return CategoryColumn(
        name=column.name,
        kind=column.kind,
        categories=column.categories,
        other=column.other,
        tree=column.tree,
        branching=column.branching,
        missing=column.missing,
    )


def _text(value: Category | float) -> str:
    return value if isinstance(value, str) else canonical_text(value)
