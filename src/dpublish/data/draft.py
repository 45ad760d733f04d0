"""Draft a schema file from the names and types of a table's columns.

No row is looked at: a bound or a list of values taken from the rows would have to be paid
for.  What a public fact knows of a column's name is filled in, with a comment that names it.  What
only the owner can know is left as a comment, and the draft does not load until it is filled in.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dpublish.data.proposals import MISSING, Proposal, propose
from dpublish.data.schema_file import toml_key, toml_value
from dpublish.errors import InvalidParameter

_HEAD = """\
# A draft: only what the names and types of the columns say is filled in.
# Where it says "public fact", check that the fact holds for this table, or write what does.
# Bounds, values and taxonomies must come from public knowledge, never from the rows.
# Bounds that no one knows can be measured: dpublish schema bounds --help
# Remove the columns that you do not want to use.
# All columns of a CSV file are text: say which hold numbers (kind = "integer" or "numeric",
# with bounds) or dates (kind = "date", with bounds, and format = "%d.%m.%Y" if not 2024-02-15).
# missing = "refuse" (there are none), "category" (a cell of its own) or "drop" (leave out)

name = {name}
# unit = ""  # the column that all rows of one person share, if a person may have several rows

# Public knowledge that synthetic rows should keep to (all of it optional):
# [[impossible]]  # no record can have these values together
# where = "age < 16 and marital_status = Married"
# [[totals]]  # a published number of records; without where, that of all records
# where = "sex = Female"
# count = 12345
# source = "Census 2020, table P1"
# In a column that follows from others: function = "weight / (height / 100) ** 2"
"""
_TO_FILL_IN = {
    "numeric": """\
kind = "numeric"
# bounds = [ , ]  # fill in from public knowledge
# bins = 16
""",
    "integer": """\
kind = "integer"  # "category" if the numbers are codes
# bounds = [ , ]  # fill in from public knowledge
""",
    "category": """\
kind = "category"  # "ordinal" if in order; "integer", "numeric" or "date" if they are that
# values = [ , ]  # fill in from public knowledge
# other = "other"  # catches all values that are not listed
""",
    "date": """\
kind = "date"  # "category" if the dates are few and listed
# bounds = ["2023-01-01", "2024-12-31"]  # an example: fill in from public knowledge
# bins = "month"  # or "day", "week", "quarter", "year"
""",
    "datetime": """\
kind = "datetime"  # "date" if the time of day does not matter
# bounds = ["2023-01-01", "2024-12-31"]  # an example: fill in from public knowledge
# bins = "day"  # or "hour", "week", "month", "quarter", "year"
# time_zone = "Europe/Paris"  # whose wall clock is meant; UTC if absent
""",
    "ordinal": """\
kind = "ordinal"
# values = [ , ]  # fill in from public knowledge, in order
""",
}
_FEW = 12  # values that a comment lists


def draft_schema(columns: pa.Schema | Iterable[tuple[str, Any]], name: str = "table") -> str:
    """Write the text of a TOML schema that awaits what only the owner knows.

    Args:
        columns: Name and Arrow type of each column (None if it has no type, as in a CSV file), or
            an Arrow schema.
        name: What the table is to be called.

    >>> print(draft_schema([("size", pa.int32())]).split("[columns.size]")[1].strip())
    kind = "integer"  # "category" if the numbers are codes
    # bounds = [ , ]  # fill in from public knowledge
    """
    if isinstance(columns, pa.Schema):
        columns = zip(columns.names, columns.types, strict=True)
    blocks = [_HEAD.format(name=toml_value(name))]
    seen: set[str] = set()
    for column, kind in columns:
        if column in seen:
            raise InvalidParameter(f"two columns are called {column!r}; rename one of them")
        seen.add(column)
        blocks.append(draft_column(propose(column, kind)))
    return "\n".join(blocks)


def draft_column(proposal: Proposal) -> str:
    """Write what is proposed for a column, with comments on the rest."""
    if proposal.role != "publish":
        return _left_out(proposal)
    fact = "" if proposal.fact is None else f"public fact: {proposal.why}"
    if proposal.is_complete:
        settings = {"kind": proposal.kind, **proposal.settings, "missing": MISSING}
        return column_text(proposal.column, settings, fact, _other_lists(proposal))
    asked = [] if proposal.fact is None else [f"# fill in {proposal.ask}"]
    text = column_text(proposal.column, {}, f"{proposal.why}" if asked else "", asked)
    return text + _TO_FILL_IN[proposal.kind or "category"]


def column_text(
    column: str, settings: Mapping[str, Any], why: str = "", comments: Sequence[str] = ()
) -> str:
    """Write the keys of a column, with what they rest on, and comments behind them."""
    head = f"[columns.{toml_key(column)}]"
    lines = [head if not why else f"{head}  # {one_line(why)}"]
    lines += [f"{key} = {toml_value(value)}" for key, value in settings.items()]
    return "".join(f"{line}\n" for line in (*lines, *comments))


def one_line(text: str) -> str:
    """Write text so that it stays in one comment of a TOML file."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _left_out(proposal: Proposal) -> str:
    head = f"[columns.{toml_key(one_line(proposal.column))}]"
    why = proposal.why if proposal.role == "unusable" else f"left out: {proposal.why}"
    return f"# {head}  # {one_line(why)}\n"


def _other_lists(proposal: Proposal) -> list[str]:
    """List other ways to write the values, if they are short."""
    lines = []
    for listed in proposal.lists[1:]:
        shown = listed.codes or listed.values
        if len(shown) <= _FEW:
            codes = "" if listed.codes is None else f", codes = {toml_value([*listed.codes])}"
            lines.append(f"# or values = {toml_value([*listed.values])}{codes}")
    return lines
