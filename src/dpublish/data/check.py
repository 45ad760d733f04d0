"""Does a table fit its schema?  For the owner alone: the answers are computed from rows.

A release never stops at a bad row, for that would tell that there is one.  So the owner asks
beforehand, and is told in words which columns have a problem: never a value, never a count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.encoding import MISSING, UNKNOWN, is_text, to_positions
from dpublish.data.engines.csv_reader import CsvPipe, CsvSource
from dpublish.data.engines.encoded import check_type
from dpublish.data.engines.source import Source, column_problem, read_quietly, scan
from dpublish.data.engines.units import needed_columns, to_units, unit_type
from dpublish.data.schema import Schema
from dpublish.data.sources import find_source
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidParameter, UnreadableData

TABLE = "table"
_NAMED = 10  # columns that a finding lists


@dataclass(frozen=True)
class Finding:
    """What does not fit: in which column (or in the `table`), and in what way.

    A serious finding contradicts what the schema says; the others are worth knowing.
    """

    column: str
    problem: str
    is_serious: bool = False


def check_table(
    schema: Schema, source: Any, *, table: str | None = None, sql: str | None = None
) -> list[Finding]:
    """List what does not fit.  NOT PRIVATE: the list depends on rows; it is for the owner only.

    >>> import pyarrow as pa
    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 120]),))
    >>> for finding in check_table(schema, pa.table({"age": [30, None, 130]})):
    ...     print(finding.column, finding.problem)
    age has missing values, which the schema rules out; their records are left out
    age has values outside the bounds; they are moved to the nearest bound
    """
    found: dict[Finding, None] = {}  # in order, and each once
    for part in find_source(source, needed_columns(schema), table=table, sql=sql):
        if isinstance(part, CsvPipe):
            raise InvalidParameter("a CSV file is checked in two passes; give it by its path")
        found |= dict.fromkeys(_check_header(schema, part))
        absent = {finding.column for finding in found if finding.is_serious}
        sound = [name for name in needed_columns(schema) if name not in absent]
        found |= dict.fromkeys(_check_rows(schema, part, sound))
    order = {name: index for index, name in enumerate((TABLE, *needed_columns(schema)))}
    return sorted(found, key=lambda finding: order[finding.column])


def _check_header(schema: Schema, source: Source) -> Iterator[Finding]:
    wanted = needed_columns(schema)
    if others := sorted(set(source.header.names) - set(wanted)):
        # Without a header the first row would stand for one: then nothing of it is shown.
        has_header = set(wanted) <= set(source.header.names)
        named = f" ({', '.join(map(repr, others[:_NAMED]))})" if has_header else ""
        if has_header and len(others) > _NAMED:
            named = f"{named[:-1]} and {len(others) - _NAMED} more)"
        yield Finding(TABLE, f"has columns that the schema does not name{named}; they are not read")
    for name in wanted:
        problem = column_problem(source.header, name)
        if problem is None:
            problem = _type_problem(schema, name, source)
        if problem is not None:
            yield Finding(name, problem, is_serious=True)


def _type_problem(schema: Schema, name: str, source: Source) -> str | None:
    try:
        for column in schema.columns:
            if column.source_name == name:
                check_type(schema, column.name, source)
        if name == schema.unit:
            unit_type(source.header.field(name).type, source.label)
    except UnreadableData:
        return f"has the type {source.header.field(name).type}, which cannot be used"
    return None


def _check_rows(schema: Schema, source: Source, names: Sequence[str]) -> Iterator[Finding]:
    if isinstance(source, CsvSource) and source.has_odd_lines():
        problem = "has lines that do not fit its header, or whose quotes are not closed"
        yield Finding(TABLE, problem, is_serious=True)
    if not names:
        return
    # A part of a date needs no look of its own: its column of dates has all that there is to say.
    own = [column.name for column in schema.columns if column.name == column.source_name]
    for raw in read_quietly(scan(source, names), source.label):
        for name in names:
            array = raw.column(name)
            if name in own:
                yield from _check_column(schema[name], array)
            if name == schema.unit and to_units(array, source.label).null_count:
                yield Finding(name, "is blank in some rows; they are left out", is_serious=True)


def _check_column(column: Column, array: Any) -> Iterator[Finding]:
    if isinstance(column, NumberColumn):
        numbers = column.read(array)
        low, high = column.bounds
        if np.isnan(numbers).any():
            written = column.holds.removesuffix("s")
            text = f", or text that is no {written}" if is_text(array.type) else ""
            yield _missing(column, f"missing values{text}")
        if ((numbers < low) | (numbers > high)).any():
            yield Finding(
                column.name, "has values outside the bounds; they are moved to the nearest bound"
            )
        if column.kind == "integer" and (numbers != np.floor(numbers))[~np.isnan(numbers)].any():
            yield Finding(column.name, "has values that are not whole; they are rounded down")
        return
    known = {canonical_text(label): code for code, label in enumerate(column.labels)}
    positions = to_positions(array, known, column.name)
    if (positions == MISSING).any():
        yield _missing(column, "missing values")
    if (positions == UNKNOWN).any():
        yield _unlisted(column)


def _missing(column: Column, what: str) -> Finding:
    if column.missing == "refuse":
        problem = f"has {what}, which the schema rules out; their records are left out"
        return Finding(column.name, problem, is_serious=True)
    fate = "counted as (missing)" if column.missing == "category" else "left out"
    return Finding(column.name, f"has {what}; their records are {fate}")


def _unlisted(column: CategoryColumn) -> Finding:
    if column.other is not None:
        problem = f"has values that are not listed; they count as {column.other!r}"
        return Finding(column.name, problem)
    return _missing(column, "values that are not listed")
