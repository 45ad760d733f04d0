"""Read what an owner says of a column in one line: `0..100 by 5`, `a, b, c`, `@codes.csv`, `skip`.

The keys of a schema come of it.  A line that cannot be read is refused with the forms there are.
"""

import csv
import os
import re
from pathlib import Path
from typing import Any, get_args

from dpublish.data.axis import Kind
from dpublish.data.code_list import distinct_codes, read_code_list
from dpublish.data.proposals import (
    DATES,
    NUMBERS,
    OTHER,
    Proposal,
    cells,
    list_settings,
    other_label,
)
from dpublish.data.schema import column
from dpublish.errors import InvalidParameter

FORMS = (
    "write bounds (0..100, 0..100 by 5), dates (2023-01-01..2024-12-31 by month, followed by as "
    "%d.%m.%Y if they are not written 2024-02-15), values (a, b, c, or low < high if they have an "
    "order), a file of codes (@codes.csv), or skip"
)
SKIP = "skip"
_MANY = 200  # integers that get a cell of their own
_BINS = 20
_RANGE = re.compile(
    r"(?P<low>[^<]+?)\s*\.\.\s*(?P<high>[^<]+?)(\s+by\s+(?P<step>\S+))?(\s+as\s+(?P<format>.+))?"
)
_NUMBER = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d[\d_]*)(\.\d+)?([eE][-+]?\d+)?")
_DATE = re.compile(r"\d{4}(-(\d{2}|Q\d|W\d{2}).*)?")
_SINGLE = re.compile(r"^(\d{4}(?:-(?:\d{2}|Q\d))?)(\s+(?:by|as)\s.*)?$")
_KINDS = {"number": "numeric", "numbers": "numeric", "whole": "integer", "text": "category"}


def read_answer(text: str, proposal: Proposal, folder: Path = Path()) -> dict[str, Any] | None:
    """Read what an owner says of a column as keys of a schema; None leaves it out.

    Args:
        text: One line, as `FORMS` says, or the name of one of the proposal's lists of values.
        proposal: What is known of the column.
        folder: The folder of the schema, in relation to which a file of codes is named.

    >>> read_answer("0..12 by 5", Proposal("visits"))
    {'kind': 'integer', 'cuts': [0, 5, 10, 12]}
    >>> read_answer("low < high", Proposal("risk"))
    {'kind': 'ordinal', 'values': ['low', 'high'], 'other': 'other'}
    """
    said = text.strip()
    if said.casefold() == SKIP:
        return None
    settings = _read(said, proposal, folder)
    if not isinstance(settings.get("values", []), str | dict):
        column(proposal.column, **settings)  # refuses what does not fit together
    return settings


def read_period(text: str, proposal: Proposal) -> dict[str, Any]:
    """Read the period of a table as the bounds of a column of dates, or of years.

    >>> read_period("2023-01-01..2024-12-31", Proposal("year", kind="integer", fact="year"))
    {'kind': 'integer', 'bounds': [2023, 2024]}
    >>> read_period("2024", Proposal("ordered", kind="date"))
    {'kind': 'date', 'bounds': ['2024', '2024']}
    """
    found = _period(text)
    if found is None or not all(_DATE.fullmatch(found[end]) for end in ("low", "high")):
        raise InvalidParameter(
            "a period is written as two dates, 2023-01-01..2024-12-31 (or 2023..2024, or 2024), "
            "followed by as %d.%m.%Y if the table does not write 2024-02-15"
        )
    if proposal.kind in DATES:
        settings = _dates(proposal.kind, found)
    else:
        settings = {"kind": "integer", "bounds": [int(found[end][:4]) for end in ("low", "high")]}
    column(proposal.column, **settings)
    return settings


def read_format(text: str) -> str | None:
    """Return how dates are written, if a period says so.

    >>> read_format("2023..2024 as %d.%m.%Y")
    '%d.%m.%Y'
    """
    found = _period(text)
    return None if found is None else found["format"]


def _period(text: str) -> re.Match[str] | None:
    """Match a period; one year, month or quarter is a period, too."""
    said = _SINGLE.sub(r"\1..\1\2", text.strip())
    return _RANGE.fullmatch(said)


def _read(said: str, proposal: Proposal, folder: Path) -> dict[str, Any]:
    for listed in proposal.lists:
        if listed.name == said:
            return {"kind": proposal.kind, **list_settings(listed)}
    kind, rest = _leading_kind(said)
    if rest.startswith("@"):
        return {"kind": kind or _listed_kind(proposal), **_codes(rest[1:].strip(), folder)}
    found = _RANGE.fullmatch(rest)
    if found is not None and _is_dated(kind, proposal, found):
        return _dates("datetime" if "datetime" in (kind, proposal.kind) else "date", found)
    if found is not None and all(_NUMBER.fullmatch(found[end]) for end in ("low", "high")):
        return _numbers(kind, proposal, found)
    return _values(rest, kind, proposal)


def _leading_kind(said: str) -> tuple[Kind | None, str]:
    """Split a kind off the beginning of a line, if it begins with one."""
    word, _, rest = said.partition(" ")
    kind: Any = _KINDS.get(word, word)
    return (kind, rest.strip()) if rest.strip() and kind in get_args(Kind) else (None, said)


def _is_dated(kind: Kind | None, proposal: Proposal, found: re.Match[str]) -> bool:
    if not all(_DATE.fullmatch(found[end]) for end in ("low", "high")):
        return False
    if kind is not None:
        return kind in DATES
    return proposal.kind in DATES or "-" in found["low"]


def _dates(kind: Kind, found: re.Match[str]) -> dict[str, Any]:
    written = {} if found["format"] is None else {"format": found["format"].strip()}
    bins = {} if found["step"] is None else {"bins": found["step"]}
    return {"kind": kind, "bounds": [found["low"], found["high"]], **bins, **written}


def _numbers(kind: Kind | None, proposal: Proposal, found: re.Match[str]) -> dict[str, Any]:
    low, high = _number(found["low"]), _number(found["high"])
    step = None if found["step"] is None else _number(found["step"])
    if found["format"] is not None:
        raise InvalidParameter("as says how dates are written; leave it out for numbers")
    if low >= high or (step is not None and not 0 < step <= high - low):
        raise InvalidParameter(
            f"{found[0]} is no range; write the least number, two dots and the greatest one, and "
            "a width of bins that is smaller: 0..100 by 5"
        )
    if kind is None:
        kind = proposal.kind if proposal.kind in NUMBERS else _number_kind(low, high, step)
    if kind not in NUMBERS:
        return _numbered(kind, low, high, step)
    if kind == "integer" and not all(isinstance(n, int) for n in (low, high, step or 1)):
        kind = "numeric"
    needs_bins = step is None and (kind == "numeric" or high - low >= _MANY)
    return {"kind": kind, **cells(kind, low, high, step, bins=_BINS if needs_bins else None)}


def _numbered(kind: Kind, low: float, high: float, step: float | None) -> dict[str, Any]:
    """List integers as the values of a category, as in `category 1..5`."""
    are_few = isinstance(low, int) and isinstance(high, int) and high - low < _MANY
    if kind in DATES or not are_few or step is not None:
        raise InvalidParameter(f"numbers from {low} to {high} are no {kind}; {FORMS}")
    return {"kind": kind, "values": [*range(int(low), int(high) + 1)], "other": OTHER}


def _number_kind(low: float, high: float, step: float | None) -> Kind:
    are_whole = all(isinstance(number, int) for number in (low, high, step or 1))
    return "integer" if are_whole else "numeric"


def _number(text: str) -> int | float:
    """Read a number; one with a point or an exponent is not taken for an integer."""
    if _NUMBER.fullmatch(text) is None:
        raise InvalidParameter(f"{text!r} is no number; numbers are written 1234.5")
    plain = text.replace(",", "").replace("_", "")
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def _values(rest: str, kind: Kind | None, proposal: Proposal) -> dict[str, Any]:
    if "<" in rest:
        values, found = [part.strip() for part in rest.split("<")], "ordinal"
    else:
        values = [part.strip() for part in next(csv.reader([rest], skipinitialspace=True), [])]
        found = _listed_kind(proposal)
    chosen = kind or found
    if len(values) < 2 or ".." in rest or chosen not in ("category", "ordinal"):
        known = ", ".join(listed.name for listed in proposal.lists)
        lists = f" (known lists: {known})" if known else ""
        raise InvalidParameter(f"{rest!r} cannot be read{lists}; {FORMS}")
    return {"kind": chosen, "values": values, "other": other_label(values)}


def _listed_kind(proposal: Proposal) -> str:
    return "ordinal" if proposal.kind == "ordinal" else "category"


def codes_file(text: str) -> str | None:
    """Return the file of codes that an answer names; None if it names none.

    >>> codes_file("category @wards.csv:ward"), codes_file("a, b, c")
    ('wards.csv', None)
    """
    _, rest = _leading_kind(text.strip())
    return _codes_at(rest[1:].strip())[0] if rest.startswith("@") else None


def _codes_at(said: str) -> tuple[str, str]:
    """Split the name of a column off the path of a file of codes, if there is one behind it."""
    path, _, named = said.rpartition(":")
    return (said, "") if not path or Path(said).exists() else (path, named)


def _codes(said: str, folder: Path) -> dict[str, Any]:
    """Name a file of codes in relation to the schema; its codes are read to check them."""
    path, named = _codes_at(said)
    codes = distinct_codes(read_code_list(path), named or None)
    file = Path(os.path.relpath(path, folder)).as_posix()
    values: str | dict[str, str] = {"file": file, "column": named} if named else file
    return {"values": values, "other": other_label(codes)}
