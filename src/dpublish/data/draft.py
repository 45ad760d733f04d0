"""Draft a schema file from the names and types of a table's columns.

No row is looked at: a bound or a list of values taken from the rows would have to be paid
for.  What only the owner can know is left as a comment, and the draft does not load until
it is filled in.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from dpublish.data.encoding import is_text
from dpublish.data.schema_file import toml_key, toml_value
from dpublish.errors import InvalidParameter

_HEAD = """\
# A draft: only the names and types of the columns are filled in.
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
_NUMERIC = """\
kind = "numeric"
# bounds = [ , ]  # fill in from public knowledge
# bins = 16
"""
_INTEGER = """\
kind = "integer"  # "category" if the numbers are codes
# bounds = [ , ]  # fill in from public knowledge
"""
_BOOLEAN = """\
kind = "category"
values = [false, true]
"""
_CATEGORY = """\
kind = "category"  # "ordinal" if in order; "integer", "numeric" or "date" if they are that
# values = [ , ]  # fill in from public knowledge
# other = "other"  # catches all values that are not listed
"""
_DATE = """\
kind = "date"  # "category" if the dates are few and listed
# bounds = ["2023-01-01", "2024-12-31"]  # an example: fill in from public knowledge
# bins = "month"  # or "day", "week", "quarter", "year"
"""
_DATETIME = """\
kind = "datetime"  # "date" if the time of day does not matter
# bounds = ["2023-01-01", "2024-12-31"]  # an example: fill in from public knowledge
# bins = "day"  # or "hour", "week", "month", "quarter", "year"
# time_zone = "Europe/Paris"  # whose wall clock is meant; UTC if absent
"""
_ORDINAL = """\
kind = "ordinal"
# values = [ , ]  # fill in from public knowledge, in order
"""


def draft_schema(columns: pa.Schema | Iterable[tuple[str, Any]], name: str = "table") -> str:
    """Write the text of a TOML schema that awaits what only the owner knows.

    Args:
        columns: Name and Arrow type of each column, or an Arrow schema.
        name: What the table is to be called.

    >>> print(draft_schema([("age", pa.int32())]).split("[columns.age]")[1].strip())
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
        blocks.append(_draft_column(column, kind))
    return "\n".join(blocks)


def _draft_column(column: str, kind: Any) -> str:
    block = _guess(kind)
    head = f"[columns.{toml_key(column)}]\n"
    if block is not None:
        return head + block
    return f"# {head.strip()}  # left out: values of type {kind} cannot be used\n"


def _guess(kind: Any) -> str | None:
    """Guess the kind of a column from its Arrow type."""
    types = pa.types
    if types.is_dictionary(kind):
        usable = _guess(kind.value_type) is not None
        return (_ORDINAL if kind.ordered else _CATEGORY) if usable else None
    guesses = (
        (types.is_boolean, _BOOLEAN),
        (types.is_integer, _INTEGER),
        (types.is_floating, _NUMERIC),
        (types.is_decimal, _NUMERIC),
        (is_text, _CATEGORY),
        (types.is_date, _DATE),
        (types.is_timestamp, _DATETIME),
        (types.is_null, _CATEGORY),
    )
    return next((block for fits, block in guesses if fits(kind)), None)
