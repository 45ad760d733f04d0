"""Does a table fit its schema?  For the owner alone: the answers are computed from rows.

A release never stops at a bad row, for that would tell that there is one.  So the owner asks
beforehand, and is told what becomes of the values, how many rows that concerns, and what to
write in the schema instead: never a value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Any

from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.engines.csv_reader import CsvPipe, CsvSource
from dpublish.data.engines.encoded import check_type
from dpublish.data.engines.prepared import prepare_source
from dpublish.data.engines.source import Source, column_problem, read_quietly, scan
from dpublish.data.engines.units import needed_columns, unit_type
from dpublish.data.fact_counts import FactCount, FactCounts
from dpublish.data.lookup import Lookup
from dpublish.data.schema import Schema
from dpublish.data.sources import find_source
from dpublish.data.statements import Combination, KnownTotal
from dpublish.data.steps import read_steps
from dpublish.data.table_counts import ColumnCounts, TableCounts, UnitCounts
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.privacy.neighbors import plural

TABLE = "table"
_NAMED = 10  # columns that a finding lists
_CLIPPED = "write wider bounds if they are publicly known, or measure them: dpublish schema bounds"
_ABSENT = 'write missing = "category" to count them apart, or "drop" to leave them out on purpose'
_NO_NUMBER = "numbers are written 1234.5, with a point and nothing between thousands"
_NO_DATE = 'say how dates are written, such as format = "%d.%m.%Y"; without it they are 2024-01-31'
_UNLISTED = 'write other = "other" to count them together, or list them from a code list'
_OTHER = "list the values as the table writes them (case counts), or take another public list"
_CONTRADICTED = "remove the statement unless it is publicly known to hold, or mend the table"
_TOTAL = "do not copy the number from the table; remove a total that is not that of these records"
_UNITS = "each {noun} keeps so many records, and noise grows with that number"


@dataclass(frozen=True)
class Finding:
    """What does not fit: in which column (or in the `table`), in what way, and what to write.

    A serious finding contradicts what the schema says; the others are worth knowing.
    """

    column: str
    problem: str
    is_serious: bool = False
    advice: str = ""


@dataclass(frozen=True)
class TableCheck:
    """How a table fits its schema.  NOT PRIVATE: all of it depends on rows.

    Attributes:
        rows: How many rows there are.
        left_out: Rows that a missing rule, or a missing unit, leaves out of a release that reads
            all columns.
        columns: What becomes of the values of each column.
        units: How many rows the units have, if rows have units.
        findings: What does not fit, in words.
        facts: How many rows meet what the schema states as public knowledge.
    """

    rows: int
    left_out: int
    columns: tuple[ColumnCounts, ...]
    units: UnitCounts | None
    findings: tuple[Finding, ...]
    facts: tuple[FactCount, ...] = ()


def check_table(
    schema: Schema,
    source: Any,
    *,
    table: str | None = None,
    sql: str | None = None,
    where: str | None = None,
    derive: str | Sequence[str] = (),
    lookups: Lookup | Sequence[Lookup] = (),
) -> list[Finding]:
    """List what does not fit.  NOT PRIVATE: the list depends on rows; it is for the owner only.

    With `where`, `derive` and `lookups` (as for `open_table`) the records are looked at as they
    are after these steps.

    >>> import pyarrow as pa
    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 120]),))
    >>> for finding in check_table(schema, pa.table({"age": [30, None, 130]})):
    ...     print(finding.column, finding.problem)
    age 1 value (33 %) is missing, which the schema rules out; the record is left out
    age 1 value (33 %) is above 120 and counts as 120
    table 1 record (33 %) is left out of a release that reads all columns
    """
    found = inspect_table(
        schema, source, table=table, sql=sql, where=where, derive=derive, lookups=lookups
    )
    return [*found.findings]


def inspect_table(
    schema: Schema,
    source: Any,
    *,
    table: str | None = None,
    sql: str | None = None,
    where: str | None = None,
    derive: str | Sequence[str] = (),
    lookups: Lookup | Sequence[Lookup] = (),
) -> TableCheck:
    """Count what becomes of all values, after the steps if there are any.

    NOT PRIVATE: the counts depend on rows; they are for the owner only.
    """
    found: dict[Finding, None] = {}  # in order, and each once
    counted, stated = TableCounts(schema), FactCounts(schema)
    steps = read_steps(where, derive, lookups)
    wanted = needed_columns(schema)
    for raw in find_source(source, steps.wanted(wanted), table=table, sql=sql):
        if isinstance(raw, CsvPipe):
            raise InvalidParameter("a CSV file is checked in two passes; give it by its path")
        found |= dict.fromkeys(_check_lines(raw))
        part = prepare_source(raw, schema, steps, wanted)
        found |= dict.fromkeys(_check_header(schema, part))
        absent = {finding.column for finding in found if finding.is_serious}
        there = set(part.header.names)
        sound = [name for name in wanted if name in there and name not in absent]
        stated.expect(sound)
        for batch in read_quietly(scan(part, sound), part.label) if sound else ():
            counted.add(batch, sound, part.label)
            stated.add(batch)
    counts, units = counted.columns(), counted.units()
    found |= dict.fromkeys(_tell(schema, counts, units, counted.rows))
    found |= dict.fromkeys(_tell_facts(stated.counts(), counted.rows))
    order = {name: index for index, name in enumerate((TABLE, *wanted))}
    ordered = sorted(found, key=lambda finding: order[finding.column])
    if counted.left_out:
        problem = f"{_share(counted.left_out, counted.rows, 'record')} left out of a release"
        ordered.append(Finding(TABLE, f"{problem} that reads all columns"))
    return TableCheck(
        counted.rows, counted.left_out, counts, units, tuple(ordered), stated.counts()
    )


def _check_header(schema: Schema, source: Source) -> Iterator[Finding]:
    wanted = needed_columns(schema)
    if others := sorted(set(source.header.names) - set(wanted)):
        # Without a header the first row would stand for one: then nothing of it is shown.
        has_header = set(wanted) <= set(source.header.names)
        named = f" ({', '.join(map(repr, others[:_NAMED]))})" if has_header else ""
        if has_header and len(others) > _NAMED:
            named = f"{named[:-1]} and {len(others) - _NAMED} more)"
        yield Finding(TABLE, f"has columns that the schema does not name{named}; they are not read")
    filled = {one.column for one in schema.functions}
    for name in wanted:
        if name in filled and name.lower() not in map(str.lower, source.header.names):
            yield Finding(
                name, "is not there; methods that keep to public knowledge (synth) fill it in"
            )
            continue
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


def _check_lines(source: Source) -> Iterator[Finding]:
    if isinstance(source, CsvSource) and source.has_odd_lines():
        problem = "has lines that do not fit its header, or whose quotes are not closed"
        yield Finding(TABLE, problem, is_serious=True)


def _tell(
    schema: Schema, counts: Sequence[ColumnCounts], units: UnitCounts | None, rows: int
) -> Iterator[Finding]:
    for each in counts:
        column = schema[each.column]
        if isinstance(column, NumberColumn):
            yield from _tell_numbers(column, each, rows)
        else:
            yield from _tell_categories(column, each, rows)
    if units is not None:
        yield from _tell_units(units, rows, schema.unit_noun)


def _tell_numbers(column: NumberColumn, counts: ColumnCounts, rows: int) -> Iterator[Finding]:
    if counts.missing:
        yield _missing(column, _share(counts.missing, rows), "missing")
    if counts.unreadable:
        what, how = _unreadable(column)
        found = _missing(column, _share(counts.unreadable, rows), what)
        yield replace(found, advice=f"{how}; or {found.advice}" if found.advice else how)
    low, high = map(column.show, column.bounds)
    for number, side, end in ((counts.below, "below", low), (counts.above, "above", high)):
        if number:
            verb = "counts" if number == 1 else "count"
            problem = f"{_share(number, rows)} {side} {end} and {verb} as {end}"
            yield Finding(column.name, problem, advice=_CLIPPED)
    if counts.not_whole:
        problem = f"{_share(counts.not_whole, rows)} not whole; such values are rounded down"
        yield Finding(column.name, problem, advice='write kind = "numeric" to keep decimals')


def _unreadable(column: NumberColumn) -> tuple[str, str]:
    """Say what a text is not, and how it would be."""
    if column.kind in ("numeric", "integer"):
        return "text that is no number", _NO_NUMBER
    given = getattr(column, "format", None)
    how = _NO_DATE if given is None else f"the schema says that dates are written as {given}"
    return "text that is no date", how


def _tell_categories(column: CategoryColumn, counts: ColumnCounts, rows: int) -> Iterator[Finding]:
    if counts.missing:
        yield _missing(column, _share(counts.missing, rows), "missing")
    if not counts.unlisted:
        return
    found = _share(counts.unlisted, rows)
    if column.other is None:
        yield _missing(column, found, "not listed", advice=_UNLISTED)
    else:
        verb = "counts" if counts.unlisted == 1 else "count"
        problem = f"{found} not listed and {verb} as {column.other!r}"
        advice = _OTHER if 2 * counts.unlisted > rows else ""
        yield Finding(column.name, problem, advice=advice)


def _tell_units(units: UnitCounts, rows: int, noun: str) -> Iterator[Finding]:
    if units.without:
        problem = f"{_share(units.without, rows, 'record')} of no known {noun}, and left out"
        yield Finding(units.column, problem, is_serious=True, advice="mend the table")
    if units.most > 1:
        kept = rows - units.without
        shares = ", ".join(f"{m} keeps {_percent(part, kept)}" for m, part in units.kept)
        problem = (
            f"records of one {noun}: {units.median:,} in the median, at most "
            f"{units.percentile_95:,} for 95 % of the {plural(noun)}, {units.most:,} at most; "
            f"--contribution {shares} of the records"
        )
        yield Finding(units.column, problem, advice=_UNITS.format(noun=noun))


def _tell_facts(facts: Sequence[FactCount], rows: int) -> Iterator[Finding]:
    for each in facts:
        if not each.is_contradicted:
            continue
        fact = each.fact
        if isinstance(fact, KnownTotal):
            problem = f"{fact.describe()}, but there are {each.rows:,}"
            yield Finding(TABLE, problem, is_serious=True, advice=_TOTAL)
            continue
        found = _share(each.rows, rows, "record").rpartition(" ")[0]
        verb = "contradicts" if each.rows == 1 else "contradict"
        name = TABLE if isinstance(fact, Combination) else fact.column
        problem = f"{found} {verb} what the schema states ({fact.describe()})"
        yield Finding(name, problem, is_serious=True, advice=_CONTRADICTED)


def _missing(column: Column, found: str, what: str, advice: str = _ABSENT) -> Finding:
    """Say what becomes of records whose value is missing to the schema."""
    one = found.endswith(" is")
    records = "the record is" if one else "their records are"
    if column.missing == "refuse":
        problem = f"{found} {what}, which the schema rules out; {records} left out"
        return Finding(column.name, problem, is_serious=True, advice=advice)
    fate = "counted as (missing)" if column.missing == "category" else "left out"
    return Finding(column.name, f"{found} {what}; {records} {fate}")


def _share(number: int, rows: int, what: str = "value") -> str:
    """Write how many, and which part of all rows.

    >>> _share(3, 200), _share(1, 1000, "record")
    ('3 values (1.5 %) are', '1 record (0.1 %) is')
    """
    ending, verb = ("", "is") if number == 1 else ("s", "are")
    return f"{number:,} {what}{ending} ({_percent(number, rows)}) {verb}"


def _percent(number: int, rows: int) -> str:
    """Write a part of all rows; only all of them are 100 %.

    >>> _percent(999, 1000), _percent(1, 1000), _percent(7, 7)
    ('99.9 %', '0.1 %', '100 %')
    """
    if number >= rows:
        return "100 %"
    part = 100 * number / rows
    return f"{part:.2g} %" if part < 99 else f"{floor(10 * part) / 10} %"
