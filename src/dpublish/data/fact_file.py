"""Read and write the public facts of a schema file: functions, impossible combinations, totals.

```toml
[columns.education_num]
kind = "integer"
bounds = [1, 16]
function_of = "education"
map = { HS-grad = 9, Bachelors = 13 }

[[impossible]]
where = "age < 16 and marital_status = Married"

[[totals]]
where = "sex = Female"
count = 12345
source = "Census 2020, table P1"
```
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dpublish.data.code_list import CODE_ENDINGS, CodeList, distinct_codes, read_code_list
from dpublish.data.column_function import ColumnFunction, Formula, ValueMap
from dpublish.data.file_keys import convert_keys, describe_keys
from dpublish.data.schema import Schema
from dpublish.data.statements import Combination, KnownTotal
from dpublish.errors import InvalidSchema, about

FUNCTION_KEYS = ("function", "function_of", "map")
"""Keys of a column that say by which rule it follows from others."""


class _ImpossibleFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of an impossible combination, with their types."""

    where: str


class _TotalFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a known total, with their types."""

    count: int
    where: str = ""
    source: str | None = None


_IMPOSSIBLE_KEYS = {"where": 'text, such as "age < 16 and marital_status = Married"'}
_TOTAL_KEYS = {
    "count": "an integer, the number of records",
    "where": 'text, such as "sex = Female"; absent for all records',
    "source": "text, where the number was published",
}


def impossible_schema() -> dict[str, Any]:
    """Describe a table of an impossible combination as a JSON Schema."""
    return describe_keys(_ImpossibleFile, _IMPOSSIBLE_KEYS)


def total_schema() -> dict[str, Any]:
    """Describe a table of a known total as a JSON Schema."""
    return describe_keys(_TotalFile, _TOTAL_KEYS)


def read_impossible(plain: Sequence[object]) -> tuple[Combination, ...]:
    """Read tables of impossible combinations."""
    found = []
    for number, table in enumerate(plain, 1):
        with about(f"[[impossible]] number {number}:"):
            found.append(Combination(convert_keys(table, _ImpossibleFile, _IMPOSSIBLE_KEYS).where))
    return tuple(found)


def read_totals(plain: Sequence[object]) -> tuple[KnownTotal, ...]:
    """Read tables of known totals."""
    found = []
    for number, table in enumerate(plain, 1):
        with about(f"[[totals]] number {number}:"):
            keys = convert_keys(table, _TotalFile, _TOTAL_KEYS)
            found.append(KnownTotal(keys.where, count=keys.count, source=keys.source))
    return tuple(found)


def read_function(
    name: str, keys: Mapping[str, Any], folder: Path | None
) -> tuple[ColumnFunction, ...]:
    """Read the rule by which a column follows from others, if its keys state one."""
    formula, source, values = (keys.get(key) for key in FUNCTION_KEYS)
    with about(f"column {name!r}:"):
        if formula is not None and (source is not None or values is not None):
            raise InvalidSchema("function and function_of exclude each other; remove one")
        if formula is not None:
            return (Formula(name, formula),)
        if source is None and values is None:
            return ()
        if source is None or values is None:
            raise InvalidSchema(
                'a table of values needs both: function_of = "a column" and map = { from = to }'
            )
        if isinstance(values, str):
            values = _read_map(name, source, values, folder)
    return (ValueMap(name, source, values),)


def plain_function(name: str, schema: Schema) -> dict[str, Any]:
    """Write the rule by which a column follows from others, if there is one."""
    for function in schema.functions:
        if function.column == name and isinstance(function, Formula):
            return {"function": function.expression}
        if function.column == name and isinstance(function, ValueMap):
            return {"function_of": function.source, "map": function.table}
    return {}


def plain_facts(schema: Schema) -> dict[str, list[dict[str, Any]]]:
    """Write what is stated of several columns; a kind of which nothing is stated is left out."""
    impossible = [{"where": each.where} for each in schema.impossible]
    totals = [_plain_total(each) for each in schema.totals]
    return {
        **({"impossible": impossible} if impossible else {}),
        **({"totals": totals} if totals else {}),
    }


def _plain_total(total: KnownTotal) -> dict[str, Any]:
    where = {"where": total.where} if total.where else {}
    source = {} if total.source is None else {"source": total.source}
    return {**where, "count": total.count, **source}


def _read_map(name: str, source: str, file: str, folder: Path | None) -> dict[str, Any]:
    """Read a table of values from a code list: the source's column and this column's."""
    if folder is None:
        raise InvalidSchema("map must be a table of values here, not the name of a file")
    if not file.lower().endswith(CODE_ENDINGS):
        raise InvalidSchema(f"map ({file}) must be a table of values, or a CSV file of them")
    codes = read_code_list(folder / file)
    key = source if source in codes.header else codes.header[0]
    return dict(zip(distinct_codes(codes, key), _results(codes, key, name), strict=True))


def _results(codes: CodeList, key: str, name: str) -> list[str]:
    others = codes.others(key)
    if name not in others and len(others) != 1:
        raise InvalidSchema(
            f"code list {codes.path} must have one column beside {key!r}, or one called {name!r}"
        )
    return codes.column(name if name in others else others[0])
