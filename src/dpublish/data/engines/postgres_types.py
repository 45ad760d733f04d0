"""How values of PostgreSQL's types are read, so that none depends on another or on a setting.

The server writes some types in a form that the driver can hand on: NUMERIC as text, because
Arrow has no decimals of any length; identifiers (UUID, INET, ...) as text; money as a number.
Dates and times without an end (`infinity`), and times that Arrow cannot count, are missing.
All other types stay what the driver makes of them; those that no schema can use are refused by
their type.
"""

from typing import Any, NamedTuple

import pyarrow as pa

_NO_DIGITS_LIMIT = -1
_LONGEST_INTEGER, _LONGEST_DECIMAL = 18, 38  # digits of Arrow's int64 and decimal128
_AS_TEXT = ("uuid", "cidr", "macaddr", "macaddr8", "bit", "varbit", "citext")
# Arrow counts microseconds from 1970 on, PostgreSQL from 2000; the last years do not fit.
_TIME = "CASE WHEN {0} > '-infinity' AND {0} < '290000-01-01' THEN {0} END"


class Mapping(NamedTuple):
    """How a column is written in a SELECT, and the Arrow type that it is read as."""

    template: str
    kind: Any

    def read(self, column: str) -> str:
        """Write the expression for a column, whose name is quoted already."""
        return self.template.replace("{0}", column)


def map_column(field: Any) -> Mapping:
    """Choose how a column is read, by its type in PostgreSQL as the driver names it."""
    facts = field.metadata or {}
    name = facts.get(b"POSTGRESQL:type", b"").decode()
    if name == "numeric":
        return _map_numeric(int(facts.get(b"POSTGRESQL:typmod", _NO_DIGITS_LIMIT)))
    if name in _AS_TEXT:
        return Mapping("{0}::text", pa.string())
    known = {
        "money": Mapping("{0}::numeric::text", pa.string()),
        "inet": Mapping("abbrev({0})", pa.string()),  # as text, it would show the mask of one host
        "oid": Mapping("{0}::int8", pa.int64()),
        "date": Mapping("CASE WHEN isfinite({0}) THEN {0} END", field.type),
        "timestamp": Mapping(_TIME, field.type),
        "timestamptz": Mapping(_TIME, field.type),
    }
    return known.get(name, Mapping("{0}", field.type))


def _map_numeric(modifier: int) -> Mapping:
    """Read declared digits as integers or decimals, all else as text without closing zeros."""
    number = "NULLIF({0}, 'NaN')"  # elsewhere, too, NaN is a missing value
    precision, scale = ((modifier - 4) >> 16) & 0xFFFF, (((modifier - 4) & 0x7FF) ^ 1024) - 1024
    if modifier >= 4 and scale == 0 and precision <= _LONGEST_INTEGER:
        return Mapping(f"{number}::int8", pa.int64())
    if modifier >= 4 and 0 <= scale <= precision <= _LONGEST_DECIMAL:
        return Mapping(f"{number}::text", pa.decimal128(precision, scale))
    return Mapping(f"trim_scale({number})::text", pa.string())
