"""Write the tables of a release as an Excel workbook: a sheet to read first, then one a table.

Texts are stored as texts, whatever they begin with: nothing in the workbook is a formula.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from dpublish.core.coverage import coverage_of
from dpublish.core.folder.data_package import describe_table, package_head
from dpublish.core.released import Release
from dpublish.errors import InputError, InvalidParameter
from dpublish.privacy.epsilon import format_epsilon

MOST_ROWS = 1_048_576
"""Rows of a sheet, that of the names included."""
MOST_COLUMNS = 16_384
MOST_CHARACTERS = 32_767
"""Characters of a cell."""
_MOST_NAME = 31
_READ_ME = "read me"
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_RESERVED_NAMES = frozenset({"history"})
_EXACT = 1 << 53  # Excel keeps numbers as floats
_FIRST_DAY = date(1900, 3, 1)  # Excel takes 1900 for a leap year
_BATCH = 1 << 14


def write_workbook(release: Release, tables: Mapping[str, pa.Table], path: Path) -> None:
    """Write the workbook; refuse what a sheet cannot hold before anything is written."""
    writer = _library()
    for name, table in tables.items():
        _require_fits(name, table)
    options = {
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "constant_memory": True,
    }
    book = writer.Workbook(str(path), options)
    book.set_properties({"created": _created(release), "title": package_head(release)["title"]})
    styles = _Styles(book)
    first, *others = sheet_names([_READ_ME, *tables])
    named = dict(zip(others, tables.items(), strict=True))
    _write_read_me(book.add_worksheet(first), release, named, styles)
    for sheet, (_, table) in named.items():
        _write_table(book.add_worksheet(sheet), table, styles)
    try:
        book.close()
    except writer.exceptions.XlsxFileError as error:
        raise InputError(f"cannot write the workbook ({error})") from None


def sheet_names(names: list[str]) -> list[str]:
    """Shorten names to what a sheet may be called, and keep them apart.

    >>> sheet_names(["counts", "Counts", "a/b", "x" * 40, "x" * 40])[1:3]
    ['Counts 2', 'a b']
    """
    found: list[str] = []
    for name in names:
        plain = _NOT_IN_NAMES.sub(" ", name).strip(" '")[:_MOST_NAME] or "table"
        chosen, number = plain, 1
        while chosen.lower() in {*map(str.lower, found), *_RESERVED_NAMES}:
            number += 1
            ending = f" {number}"
            chosen = plain[: _MOST_NAME - len(ending)] + ending
        found.append(chosen)
    return found


class _Styles:
    """The formats that cells have."""

    def __init__(self, book: Any) -> None:
        self.heading = book.add_format({"bold": True})
        self.date = book.add_format({"num_format": "yyyy-mm-dd"})
        self.time = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})


def _library() -> ModuleType:
    try:
        import xlsxwriter
    except ImportError:
        raise InputError(
            "writing .xlsx needs XlsxWriter; install dpublish with the extra excel, or export to "
            "csv, which spreadsheets open, too"
        ) from None
    library: ModuleType = xlsxwriter
    return library


def _require_fits(name: str, table: pa.Table) -> None:
    if table.num_rows + 1 > MOST_ROWS or table.num_columns > MOST_COLUMNS:
        raise InvalidParameter(
            f"table {name!r} has {table.num_rows:,} rows and {table.num_columns:,} columns; a "
            f"sheet of Excel holds {MOST_ROWS - 1:,} and {MOST_COLUMNS:,}; export to csv or "
            "parquet, or name other tables with --table"
        )
    texts = [*table.column_names, *(text for column in table.columns for text in _texts(column))]
    if any(len(text) > MOST_CHARACTERS for text in texts):
        raise InvalidParameter(
            f"table {name!r} has a text of more than {MOST_CHARACTERS:,} characters, which a cell "
            "of Excel does not hold; export to csv or parquet"
        )


def _texts(column: pa.ChunkedArray) -> Iterator[str]:
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        yield from filter(None, column.unique().to_pylist())


def _created(release: Release) -> datetime:
    try:
        return datetime.fromisoformat(release.receipt.created).replace(tzinfo=None)
    except ValueError:
        return datetime(1970, 1, 1)


def _write_read_me(
    sheet: Any,
    release: Release,
    tables: Mapping[str, tuple[str, pa.Table]],
    styles: _Styles,
) -> None:
    """Say what it is, what was guaranteed, and what every field means."""
    sheet.set_column(0, 1, 24)
    sheet.set_column(2, 3, 12)
    sheet.set_column(4, 4, 90)
    row = 0
    for name, text in _facts(release):
        sheet.write_string(row, 0, name, styles.heading)
        sheet.write_string(row, 1, text[:MOST_CHARACTERS])
        row += 1
    row += 1
    for column, title in enumerate(("sheet", "column", "type", "unit", "description")):
        sheet.write_string(row, column, title, styles.heading)
    for shown, (name, table) in tables.items():
        for field in describe_table(release.schema, name, table)["fields"]:
            row += 1
            told = (shown, *(field.get(key, "") for key in ("name", "type", "unit")))
            for column, text in enumerate((*told, field.get("description", ""))):
                sheet.write_string(row, column, text[:MOST_CHARACTERS])


def _facts(release: Release) -> Iterator[tuple[str, str]]:
    receipt, head = release.receipt, package_head(release)
    stated = release.schema.publication
    yield "title", head["title"]
    for key, text in ({} if stated is None else stated.to_dict()).items():
        if key != "title":
            yield key, text
    for stamp in receipt.stamps:
        yield "stamp", stamp
    yield "guarantee", receipt.guarantee()
    for assumption in receipt.assumptions:
        yield "assumption", assumption
    for sentence in coverage_of(release).sentences():
        yield "records", sentence
    yield "method", receipt.method
    yield "epsilon", format_epsilon(receipt.epsilon)
    yield "release", receipt.release_id
    yield "created", receipt.created
    yield "dpublish", receipt.package_version
    if receipt.dataset is not None:
        yield "dataset", receipt.dataset
    if receipt.ledger_entry is not None:
        yield "ledger entry", f"{receipt.ledger_entry}, hash {receipt.ledger_hash}"


def _write_table(sheet: Any, table: pa.Table, styles: _Styles) -> None:
    for column, name in enumerate(table.column_names):
        sheet.write_string(0, column, name, styles.heading)
    sheet.freeze_panes(1, 0)
    row = 0
    for batch in table.to_batches(_BATCH):
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            row += 1
            for column, value in enumerate(values):
                _write_cell(sheet, row, column, value, styles)


def _write_cell(sheet: Any, row: int, column: int, value: Any, styles: _Styles) -> None:
    """Write a value by its own type, never by what its text looks like; a null stays empty."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return
    if isinstance(value, date) and _day(value) >= _FIRST_DAY:
        style = styles.time if isinstance(value, datetime) else styles.date
        sheet.write_datetime(row, column, value, style)
    elif isinstance(value, date):
        sheet.write_string(row, column, value.isoformat())
    elif isinstance(value, int | float) and abs(value) < _EXACT:
        sheet.write_number(row, column, value)
    else:
        sheet.write_string(row, column, str(value))


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value
