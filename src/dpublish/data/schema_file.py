"""Read and write schemas: TOML for owners, plain values for releases.

```toml
name = "census"

[columns.age]
kind = "integer"
bounds = [17, 90]

[columns.work]
kind = "category"
taxonomy = { Paid = ["Private", "State"], Unpaid = ["Family"] }
```

Every column is checked before anything is said, so that one reading lists all that is
still to be done, one line for a column.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from dpublish.data.code_list import CODE_ENDINGS, code_tree, distinct_codes, read_code_list
from dpublish.data.column import Column, NumberColumn
from dpublish.data.column_function import ColumnFunction
from dpublish.data.date_column import DateColumn, DatePartColumn
from dpublish.data.fact_file import (
    FUNCTION_KEYS,
    impossible_schema,
    plain_facts,
    plain_function,
    read_function,
    read_impossible,
    read_totals,
    total_schema,
)
from dpublish.data.file_keys import convert_keys, describe_keys
from dpublish.data.interval import Partition, whole_bins
from dpublish.data.periods import write_bounds
from dpublish.data.publication import publication_schema, read_publication
from dpublish.data.schema import Schema, column
from dpublish.data.stamps import UTC_NAME
from dpublish.data.taxonomy import write_tree
from dpublish.errors import (
    InputError,
    InvalidSchema,
    InvalidType,
    about,
    plain_refusals,
    require_known,
)


class _CodeFile(msgspec.Struct, forbid_unknown_fields=True):
    """Where values are listed: a CSV file, its column of codes, and its column of names."""

    file: str
    column: str | None = None
    label: str | None = None


class _ColumnFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a column, with their types."""

    kind: Literal["numeric", "integer", "date", "datetime", "category", "ordinal"] | None = None
    bounds: list[Any] | None = None
    bins: int | str | None = None
    cuts: list[int | float] | None = None
    values: list[str | int | bool] | str | dict[str, Any] | None = None
    codes: list[str | int | bool] | None = None
    other: str | None = None
    taxonomy: Any = None
    taxonomy_key: str | None = None
    branching: int | None = None
    missing: Literal["refuse", "category", "drop"] | None = None
    time_zone: str | None = None
    format: str | None = None
    source: str | dict[str, Any] | None = msgspec.field(default=None, name="from")
    part: Literal["weekday", "hour", "month", "day", "quarter", "year"] | None = None
    function: str | None = None
    function_of: str | None = None
    map: dict[str, str | int | float | bool] | str | None = None
    description: str | None = None
    measured_in: str | None = None


class _SchemaFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a schema, with their types."""

    columns: dict[str, dict[str, Any]] | list[dict[str, Any]]
    name: str = "table"
    unit: str | None = None
    unit_name: str | None = None
    impossible: list[Any] = []
    totals: list[Any] = []
    publication: dict[str, Any] | None = None


_COLUMN_KEYS = {
    "kind": '"numeric", "integer", "date", "datetime", "category" or "ordinal"',
    "bounds": "a list of two numbers or dates, [low, high]",
    "bins": 'an integer, or a period such as "month" for dates',
    "cuts": "a list of numbers that increase",
    "values": "a list of texts, integers, true or false, or a CSV file of codes",
    "codes": "a list of texts, integers, true or false, one for each value",
    "other": "text, the label of all values not listed",
    "taxonomy": "a tree, or the name of a file of trees or of codes and their groups",
    "taxonomy_key": "text, the name of a tree in the taxonomy file, or columns of groups",
    "branching": "an integer, at least 2",
    "missing": '"refuse", "category" or "drop"',
    "time_zone": 'text, such as "Europe/Paris"',
    "format": 'text, such as "%d.%m.%Y"',
    "from": "text, the name of a column of dates",
    "part": '"weekday", "hour", "month", "day", "quarter" or "year"',
    "function": "text, an expression of other columns, such as weight / height ** 2",
    "function_of": "text, the name of the column that map is about",
    "map": "a table of values, { from = to }, or the name of a CSV file of them",
    "description": "text, what the column holds, for readers of releases",
    "measured_in": 'text, the unit of measurement, such as "cm"',
}
_CODE_KEYS = {
    "file": "text, the name of a CSV file",
    "column": "text, the column of codes; the first one if absent",
    "label": "text, a column of names to publish instead of the codes",
}
_SCHEMA_KEYS = {
    "columns": "a table for each column, [columns.NAME]",
    "name": "text",
    "unit": "text, the name of a column",
    "unit_name": "text, what one unit is if it is no person: basket, household",
    "impossible": "tables [[impossible]], each with where",
    "totals": "tables [[totals]], each with count, where and source",
    "publication": "a table [publication] with title, license, contact, source ...",
}


@plain_refusals
def load_schema(path: str | PathLike[str]) -> Schema:
    """Read a schema from a TOML file, or from JSON if it is called so."""
    if not isinstance(path, (str, PathLike)):
        raise InvalidType(
            f'a schema is read from its path, such as "people.toml", not from {_kind_of(path)}'
        )
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        plain = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as failure:
        raise InputError(
            f"cannot read the schema {path}: {failure.strerror}{_how_to_draft(failure)}"
        ) from None
    except (ValueError, RecursionError) as failure:
        kind = "JSON" if path.suffix.lower() == ".json" else "TOML"
        raise InvalidSchema(
            f"{path} is not a schema file in {kind} ({failure}); dpublish schema draft writes one "
            "from the names of columns"
        ) from None
    with about(f"{path}:"):
        return _read_schema(plain, path.parent)


def parse_schema(text: str, folder: str | PathLike[str]) -> Schema:
    """Read a schema from the text of a TOML file that is, or will be, in `folder`."""
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise InvalidSchema(f"schema: {failure}") from None
    with about("schema:"):
        return _read_schema(plain, Path(folder))


def to_schema(given: Any) -> Schema:
    """Return a schema as it is given: itself, read from its file, or from a dict of its keys.

    >>> to_schema({"columns": {"age": {"kind": "integer", "bounds": [17, 90]}}}).names
    ('age',)
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, (str, PathLike)):
        return load_schema(given)
    if isinstance(given, Mapping):
        return from_dict(given)
    raise InvalidType(
        'schema must be the path of a schema file ("people.toml"), a Schema, or a dict with the '
        f"keys of such a file, not {_kind_of(given)}; `dpublish schema draft` writes a first one"
    )


def _how_to_draft(failure: OSError) -> str:
    is_missing = isinstance(failure, FileNotFoundError)
    return "; write one, or draft it with: dpublish schema draft DATA" if is_missing else ""


def _kind_of(given: object) -> str:
    return "None" if given is None else f"an object of type {type(given).__name__}"


def to_dict(schema: Schema) -> dict[str, Any]:
    """Turn a schema into plain values that fit a JSON file.

    >>> to_dict(Schema((column("age", "integer", bounds=[17, 90]),)))
    {'name': 'table', 'columns': [{'name': 'age', 'kind': 'integer', 'bounds': [17, 90]}]}
    """
    columns = [{"name": each.name, **_plain_column(each, schema)} for each in schema.columns]
    return {
        "name": schema.name,
        **_plain_unit(schema),
        "columns": columns,
        **plain_facts(schema),
        **_plain_publication(schema),
    }


def from_dict(plain: Mapping[str, Any]) -> Schema:
    """Read back what `to_dict` wrote."""
    with about("schema:"):
        return _read_schema(plain, None)


def dumps_toml(schema: Schema) -> str:
    """Write a schema as the text of a TOML file.

    >>> print(dumps_toml(Schema((column("age", "integer", bounds=[17, 90]),), name="census")))
    name = "census"
    <BLANKLINE>
    [columns.age]
    kind = "integer"
    bounds = [17, 90]
    <BLANKLINE>
    """
    head = {"name": schema.name, **_plain_unit(schema)}
    blocks = ["".join(f"{key} = {toml_value(value)}\n" for key, value in head.items())]
    for key, stated in _plain_publication(schema).items():
        lines = [f"{name} = {toml_value(text)}\n" for name, text in stated.items()]
        blocks.append(f"[{key}]\n" + "".join(lines))
    for each in schema.columns:
        lines = [
            f"{key} = {toml_value(value)}\n" for key, value in _plain_column(each, schema).items()
        ]
        blocks.append(f"[columns.{toml_key(each.name)}]\n" + "".join(lines))
    for kind, tables in plain_facts(schema).items():
        for table in tables:
            lines = [f"{key} = {toml_value(value)}\n" for key, value in table.items()]
            blocks.append(f"[[{kind}]]\n" + "".join(lines))
    return "\n".join(blocks)


def _plain_unit(schema: Schema) -> dict[str, str]:
    if schema.unit is None:
        return {}
    named = {} if schema.unit_name is None else {"unit_name": schema.unit_name}
    return {"unit": schema.unit, **named}


def _plain_publication(schema: Schema) -> dict[str, dict[str, str]]:
    stated = {} if schema.publication is None else schema.publication.to_dict()
    return {"publication": stated} if stated else {}


def _plain_words(each: Column) -> dict[str, str]:
    stated = {
        "description": each.description,
        "measured_in": getattr(each, "measured_in", None),  # a category is not measured
    }
    return {key: words for key, words in stated.items() if words is not None}


def _plain_column(each: Column, schema: Schema) -> dict[str, Any]:
    if isinstance(each, DatePartColumn):
        return _plain_part(each, schema) | _plain_words(each)
    settings: dict[str, Any] = {"kind": each.kind, **_plain_domain(each)}
    if each.tree is not None:
        settings["taxonomy"] = write_tree(each.tree)
    if each.branching is not None:
        settings["branching"] = each.branching
    if each.missing != "refuse":
        settings["missing"] = each.missing
    return settings | plain_function(each.name, schema) | _plain_words(each)


def _plain_domain(each: Column) -> dict[str, Any]:
    if isinstance(each, DateColumn):
        return _plain_dates(each)
    if isinstance(each, NumberColumn):
        return _plain_partition(each.partition) if each.tree is None else {}
    codes = {} if each.codes is None else {"codes": [*each.codes]}
    other = {} if each.other is None else {"other": each.other}
    return {"values": [*each.categories], **codes, **other}


def _plain_part(each: DatePartColumn, schema: Schema) -> dict[str, Any]:
    """Write a part of a date; the column of dates itself only if the schema lacks it."""
    dates: Any = each.source.name
    if each.source not in schema.columns:
        dates = {"name": each.source.name, **_plain_column(each.source, schema)}
    return {"kind": each.kind, "from": dates, "part": each.part}


def _plain_dates(each: DateColumn) -> dict[str, Any]:
    cells = each.partition
    low, high = (int(bound) for bound in each.bounds)
    settings: dict[str, Any] = {
        "bounds": write_bounds(low, high, each.kind),
        "bins": cells.period or cells.size,
    }
    if each.time_zone != UTC_NAME:
        settings["time_zone"] = each.time_zone
    if each.format is not None:
        settings["format"] = each.format
    return settings


def _plain_partition(cells: Partition) -> dict[str, Any]:
    if not cells.whole:
        if cells.bins is None:
            return {"cuts": [*cells.edges]}
        return {"bounds": [cells.low, cells.high], "bins": cells.bins}
    low, high = int(cells.low), int(cells.high)
    if cells == whole_bins(low, high, cells.size):
        bins = {} if cells.size == high - low + 1 else {"bins": cells.size}
        return {"bounds": [low, high], **bins}
    return {"cuts": [*map(int, cells.edges[:-1]), high]}


class SchemaColumns(NamedTuple):
    """The columns of a schema that could be read, and what is wrong with the others.

    Attributes:
        found: The columns that could be read.
        functions: By which rules some of them follow from others.
        faults: What is wrong with the others, by their names.
        told: The faults, but for those that follow from another one.
    """

    found: tuple[Column, ...]
    functions: tuple[ColumnFunction, ...]
    faults: dict[str, str]
    told: tuple[str, ...]


def read_columns(text: str, folder: str | PathLike[str]) -> SchemaColumns:
    """Read those columns of a schema's text that can be read, such as of a draft.

    What is wrong with the text as a whole is refused, as by `parse_schema`.
    """
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise InvalidSchema(f"schema: {failure}") from None
    with about("schema:"):
        return _read_columns(convert_keys(plain, _SchemaFile, _SCHEMA_KEYS), Path(folder))


def _read_columns(top: _SchemaFile, folder: Path | None) -> SchemaColumns:
    pairs = [*(top.columns.items() if isinstance(top.columns, dict) else map(_named, top.columns))]
    found: dict[int, Column] = {}
    functions: list[ColumnFunction] = []
    refusals: dict[int, str] = {}
    told: dict[int, str] = {}
    # Parts of dates come last: each needs the column that it is taken from.
    for number in sorted(range(len(pairs)), key=lambda at: "from" in pairs[at][1]):
        name, keys = pairs[number]
        try:
            found[number] = _read_column(name, keys, folder, tuple(found.values()))
            functions += read_function(name, keys, folder)
        except InvalidSchema as refusal:
            is_faulty = any(pairs[at][0] == keys.get("from") for at in refusals)
            refusals[number] = str(refusal)
            if not is_faulty:  # else it is said of the column that the part is taken from
                told[number] = str(refusal)
    return SchemaColumns(
        tuple(found[number] for number in sorted(found)),
        tuple(functions),
        {pairs[number][0]: refusals[number] for number in sorted(refusals)},
        tuple(told[number] for number in sorted(told)),
    )


def _read_schema(plain: object, folder: Path | None) -> Schema:
    top = convert_keys(plain, _SchemaFile, _SCHEMA_KEYS)
    columns, functions, _, told = _read_columns(top, folder)
    if len(told) > 1:
        raise InvalidSchema("\n  ".join([f"{len(told)} columns need attention", *told]))
    if told:
        raise InvalidSchema(told[0])
    if top.unit_name is not None and top.unit is None:
        raise InvalidSchema("unit_name says what a unit is, and there is none; name it in unit")
    return Schema(
        columns,
        unit=top.unit,
        name=top.name,
        unit_name=top.unit_name,
        impossible=read_impossible(top.impossible),
        totals=read_totals(top.totals),
        functions=functions,
        publication=read_publication(top.publication),
    )


def _named(keys: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    name = keys.get("name")
    if not isinstance(name, str):
        raise InvalidSchema("a column has no name; give each one a name")
    return name, {key: value for key, value in keys.items() if key != "name"}


def _read_column(
    name: str, keys: dict[str, Any], folder: Path | None, known: Sequence[Column] = ()
) -> Column:
    with about(f"column {name!r}:"):
        found = convert_keys(keys, _ColumnFile, _COLUMN_KEYS)
        listed = _read_values(found, folder)
        if isinstance(found.taxonomy, str) and found.taxonomy.lower().endswith(CODE_ENDINGS):
            found.taxonomy = _read_groups(found, listed, folder)
        elif isinstance(found.taxonomy, str):
            found.taxonomy = _read_taxonomy(name, found, folder)
        elif found.taxonomy_key is not None:
            raise InvalidSchema("taxonomy_key needs a taxonomy file; write its name in taxonomy")
        settings = msgspec.structs.asdict(found)
        settings["source"] = _find_dates(found.source, folder, known)
        if found.kind is None and found.source is None:
            raise InvalidSchema(f"kind is missing; it must be {_COLUMN_KEYS['kind']}")
        if found.bounds is not None and found.kind in ("numeric", "integer"):
            _require_numbers(found.bounds)
    for key in ("taxonomy_key", *FUNCTION_KEYS):
        del settings[key]
    return column(name, **settings)


def _read_values(found: _ColumnFile, folder: Path | None) -> _CodeFile | None:
    """Replace the name of a file of codes by what it lists."""
    if not isinstance(found.values, str | dict):
        return None
    with about("values:"):
        keys = {"file": found.values} if isinstance(found.values, str) else found.values
        listed = convert_keys(keys, _CodeFile, _CODE_KEYS)
    if folder is None:
        raise InvalidSchema("values must be a list here, not the name of a file")
    if found.codes is not None:
        raise InvalidSchema("codes go with a list of values; a file has a column of them")
    known = read_code_list(folder / listed.file)
    codes = distinct_codes(known, listed.column)
    if listed.label is None:
        found.values = [*codes]
    else:
        found.values, found.codes = [*distinct_codes(known, listed.label)], [*codes]
    return listed


def _read_groups(found: _ColumnFile, listed: _CodeFile | None, folder: Path | None) -> object:
    """Build a taxonomy from a file of codes: its other columns are groups, finest first."""
    if folder is None:
        raise InvalidSchema("taxonomy must be a tree here, not the name of a file")
    known = read_code_list(folder / found.taxonomy)
    same = listed if listed is not None and listed.file == found.taxonomy else _CodeFile("")
    names = (same.column,) if same.label is None else (same.column, same.label)
    groups = [*known.others(*names)]
    if found.taxonomy_key is not None:
        groups = [part.strip() for part in found.taxonomy_key.split(",")]
        for group in groups:
            require_known("column of groups in taxonomy_key", group, known.others(*names))
        found.taxonomy_key = None
    if not groups:
        raise InvalidSchema(f"code list {known.path} has no column of groups beside the codes")
    return code_tree(known, distinct_codes(known, names[-1]), groups)


def _require_numbers(bounds: list[Any]) -> None:
    if not all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in bounds):
        raise InvalidSchema("bounds must be a list of two numbers, [low, high]")


def _find_dates(
    named: str | dict[str, Any] | None, folder: Path | None, known: Sequence[Column]
) -> DateColumn | None:
    """Find the column of dates that a part is taken from, by its name or written out."""
    if named is None:
        return None
    if isinstance(named, dict):
        found: Column | None = _read_column(*_named(named), folder)
    else:
        found = next((each for each in known if each.name == named), None)
    if not isinstance(found, DateColumn):
        raise InvalidSchema(
            f"from ({named if isinstance(named, str) else 'a column'}) must be the name of a "
            "column of kind date or datetime in this schema"
        )
    return found


def _read_taxonomy(name: str, found: _ColumnFile, folder: Path | None) -> object:
    """Look up a column's tree in a file of trees, in which hyphens may replace underscores."""
    if folder is None:
        raise InvalidSchema("taxonomy must be a tree here, not the name of a file")
    path = folder / found.taxonomy
    try:
        trees = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InvalidSchema(f"taxonomy file {path} cannot be read: {failure.strerror}") from None
    except (ValueError, RecursionError) as failure:
        raise InvalidSchema(f"taxonomy file {path} is not JSON: {failure}") from None
    if not isinstance(trees, dict):
        raise InvalidSchema(f"taxonomy file {path} must hold one object, with a tree per column")
    if found.taxonomy_key is not None:
        require_known("taxonomy_key", found.taxonomy_key, trees)
        return trees[found.taxonomy_key]
    for key in (name, name.replace("_", "-"), name.replace("-", "_")):
        if key in trees:
            return trees[key]
    raise InvalidSchema(f"taxonomy file {path} has no tree for it; name one in taxonomy_key")


def toml_value(value: Any, indent: str = "") -> str:
    """Write a plain value as TOML; lists of lists or tables take several lines."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # TOML's quoted strings are JSON's, but for one character that must be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        pairs = (f"{toml_key(key)} = {toml_value(inner, indent)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if not any(isinstance(item, list | dict) for item in value):
        return f"[{', '.join(map(toml_value, value))}]"
    deeper = indent + "  "
    lines = "".join(f"{deeper}{toml_value(item, deeper)},\n" for item in value)
    return f"[\n{lines}{indent}]"


def toml_key(key: str) -> str:
    """Write a key as TOML, quoted if need be."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def json_schema() -> dict[str, Any]:
    """Describe the keys of a schema file as a JSON Schema, for editors and other programs.

    What depends on several keys at once, such as bounds that must increase, is checked by
    `load_schema` alone.

    >>> json_schema()["properties"]["name"]
    {'type': 'string', 'default': 'table', 'description': 'text'}
    """
    top, column = describe_keys(_SchemaFile, _SCHEMA_KEYS), describe_keys(_ColumnFile, _COLUMN_KEYS)
    named = {**column["properties"], "name": {"type": "string", "description": "its name"}}
    listed = {**column, "properties": named, "required": ["name"]}
    parts: dict[str, dict[str, Any]] = {
        "columns": {
            "anyOf": [
                {"type": "object", "additionalProperties": column},
                {"type": "array", "items": listed},
            ]
        },
        "impossible": {"type": "array", "items": impossible_schema()},
        "totals": {"type": "array", "items": total_schema()},
        "publication": {"anyOf": [publication_schema(), {"type": "null"}]},
    }
    for key, part in parts.items():
        top["properties"][key] = {**part, "description": _SCHEMA_KEYS[key]}
    return top
