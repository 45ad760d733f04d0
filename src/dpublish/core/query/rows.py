"""Evaluate the same queries on rows in the clear: synthetic rows, or the owner's own.

Nothing here is private.  Values are read as the schema encodes them: numbers are clipped to
the bounds, unlisted values go where the schema sends them, and a row whose value the schema
leaves out satisfies no condition on that column.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.prediction import UNKNOWN, encode_rows, find_column
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.query.language import Condition, Query, parse_query, require_columns
from dpublish.data.query.weights import RANGES, axis_weights, query_number, range_ends
from dpublish.data.schema import Schema

Mask = NDArray[np.bool_]


def matches(rows: Any, query: Query | str, schema: Schema) -> Mask:
    """Mark the rows that satisfy all conditions of `query`.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 99], bins=10),))
    >>> matches(pa.table({"age": [33, 35, None, 150]}), "age >= 35", schema)
    array([False,  True, False,  True])
    """
    return ClearRows(rows, schema).matches(query)


class ClearRows:
    """Rows of which each column is read at most once, for many queries."""

    def __init__(self, rows: Any, schema: Schema) -> None:
        self._table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        self._schema = schema
        self._axes = {name: schema[name].axis() for name in schema.names}
        self._codes: dict[str, NDArray[np.int64]] = {}
        self._numbers: dict[str, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def matches(self, query: Query | str) -> Mask:
        """Mark the rows that satisfy all conditions."""
        parsed = parse_query(query) if isinstance(query, str) else query
        there = self._table.column_names
        names = [x.name for x in self._schema.columns if find_column(self._table, x) in there]
        require_columns(parsed, names, "these rows tell")
        found = np.ones(len(self), dtype=np.bool_)
        for name in parsed.columns:
            found &= self._satisfy(name, parsed.about(name))
        return found

    def codes(self, name: str) -> NDArray[np.int64]:
        """Find the code of each row's value; `UNKNOWN` where there is none."""
        if name not in self._codes:
            self._codes[name] = encode_rows(self._table, self._schema, [name])[name]
        return self._codes[name]

    def numbers(self, column: NumberColumn) -> NDArray[np.float64]:
        """Read a column of numbers, clipped to its bounds; NaN where there is none."""
        if column.name not in self._numbers:
            self.codes(column.name)  # refuses rows that lack the column
            values, keep = column.values(self._table[column.name])
            known = values if keep is None else np.where(keep, values, np.nan)
            self._numbers[column.name] = known
        return self._numbers[column.name]

    def _satisfy(self, name: str, conditions: tuple[Condition, ...]) -> Mask:
        column, codes = self._schema[name], self.codes(name)
        axis = self._axes[name]
        found: Mask = codes != UNKNOWN
        if not isinstance(column, NumberColumn):
            found &= (axis_weights(axis, conditions) > 0)[codes]
            return found
        for condition in conditions:
            axis_weights(axis, (condition,))  # refuses what a release would refuse
            if condition.operator in RANGES:
                found &= self._in_range(column, axis, condition)
            else:
                among = self._among(column, axis, condition.operands)
                found &= ~among if condition.operator == "!=" else among
        return found

    def _in_range(self, column: NumberColumn, axis: Axis, condition: Condition) -> Mask:
        numbers = self.numbers(column)
        found = ~np.isnan(numbers)
        for text, operator in range_ends(condition):
            limit = query_number(axis, text, operator)
            compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
            found &= compare[operator](numbers, limit)
        return found

    def _among(self, column: NumberColumn, axis: Axis, values: tuple[str, ...]) -> Mask:
        """Mark the rows with one of the values, or within one of the groups named."""
        codes = self.codes(column.name)
        found = np.zeros(len(self), dtype=np.bool_)
        for value in values:
            run = axis.find_run(value)
            if run is not None:
                found |= (codes >= run[0]) & (codes < run[1])
            elif (period := axis.read_period(value)) is not None:
                numbers = self.numbers(column)
                found |= (numbers >= period.start) & (numbers < period.stop)
            else:
                found |= self.numbers(column) == query_number(axis, value)
        return found
