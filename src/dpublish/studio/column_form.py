"""The form of one column of a schema: its keys as texts of fields, and texts as keys again.

A field that still says what the file says gives back the file's own value, so that what was not
changed is not written anew.  What the keys mean is for the library to judge.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpublish.data.proposals import DATES, NUMBERS
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidSchema

TEXTS = ("kind", "other", "missing", "time_zone", "format", "description", "measured_in", "part")
_COUNTS = ("bins", "branching")
_LONGEST = 18  # digits of an integer
_ALIKE = (("category", "ordinal"), NUMBERS)
"""Kinds between which a column may change and keep its tree."""
_FIELDS = {
    **{name: name for name in (*TEXTS, *_COUNTS, "cuts", "values", "codes", "from")},
    **{"taxonomy": "taxonomy", "taxonomy_key": "taxonomy", "bounds": "low"},
}
"""In which field a key of the schema is written."""
_ORDER = (
    *("kind", "from", "part", "bounds", "bins", "cuts", "values", "codes", "other", "taxonomy"),
    *("taxonomy_key", "branching", "missing", "time_zone", "format", "function", "function_of"),
    *("map", "description", "measured_in"),
)


def write_fields(keys: Mapping[str, Any]) -> dict[str, str]:
    """Write the keys of a column as the texts of fields.

    >>> fields = write_fields({"kind": "integer", "bounds": [0, 99]})
    >>> fields["kind"], fields["low"], fields["high"], fields["bins"]
    ('integer', '0', '99', '')
    """
    fields = {name: _text(keys.get(name)) for name in (*TEXTS, *_COUNTS)}
    bounds = keys.get("bounds")
    low, high = bounds if isinstance(bounds, list) and len(bounds) == 2 else ("", "")
    fields |= {"low": _text(low), "high": _text(high), "cuts": _listed(keys.get("cuts"), ", ")}
    values, source = keys.get("values"), keys.get("from")
    listed = values if isinstance(values, dict) else {"file": values}
    fields |= {f"list_{name}": _text(listed.get(name)) for name in ("file", "column", "label")}
    if not isinstance(values, str | dict):
        fields["list_file"] = ""
    fields |= {"values": _listed(values, "\n"), "codes": _listed(keys.get("codes"), "\n")}
    taxonomy = keys.get("taxonomy")
    fields["groups"] = taxonomy if isinstance(taxonomy, str) else ""
    fields["from"] = source if isinstance(source, str) else ""
    return fields


def read_fields(form: Mapping[str, str], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields of a form as the keys of a column; keys without a field stay.

    >>> form = {"kind": "integer", "low": "0", "high": "120", "bins": "24"}
    >>> read_fields(form, {"kind": "integer", "bounds": [0, 99], "map": {"a": 1}})
    {'kind': 'integer', 'bounds': [0, 120], 'bins': 24, 'map': {'a': 1}}
    """
    before = write_fields(declared)
    fields = {name: form.get(name, "").replace("\r\n", "\n").strip() for name in before}
    keys = {
        name: value
        for name, value in declared.items()
        if name in ("function", "function_of", "map")
        or (name in ("taxonomy", "taxonomy_key") and _keeps_tree(fields, declared))
    }
    keys |= {name: fields[name] for name in TEXTS if fields[name]}
    keys |= {name: _count(name, fields[name]) for name in _COUNTS if fields[name]}
    if fields["from"]:
        keys["from"] = fields["from"]
    if keys.get("missing") == "refuse" and "missing" not in declared:
        del keys["missing"]  # which it is anyway
    is_date = fields["kind"] in DATES
    if fields["low"] or fields["high"]:
        keys["bounds"] = [_bound(fields[end], end, is_date=is_date) for end in ("low", "high")]
    if fields["cuts"]:
        keys["cuts"] = [_number(text, "cuts") for text in re.split(r"[,;\s]+", fields["cuts"])]
    keys |= _lists(fields, declared)
    for name, field in (("bounds", "low"), ("cuts", "cuts"), ("values", "values")):
        ends = ("low", "high") if field == "low" else (field,)
        same = all(fields[end] == before[end].strip() for end in ends)
        if name in keys and name in declared and same and not fields["list_file"]:
            keys[name] = declared[name]
    return {name: keys[name] for name in _ORDER if name in keys}


def field_of(fault: str) -> tuple[str, str]:
    """Return which field a fault is about, if that can be told, and the fault without a preface.

    >>> field_of("schema: column 'age': bounds are missing; write bounds")
    ('low', 'bounds are missing; write bounds')
    """
    told = re.sub(r"^.*?column (?:'[^']*'|\"[^\"]*\"): ", "", fault, count=1, flags=re.DOTALL)
    word = told.partition(" ")[0].rstrip(":")
    return _FIELDS.get(word, ""), told


def _text(value: Any) -> str:
    return "" if value is None else canonical_text(value) if isinstance(value, bool) else str(value)


def _listed(values: Any, joined: str) -> str:
    return joined.join(map(_text, values)) if isinstance(values, list) else ""


def _keeps_tree(fields: Mapping[str, str], declared: Mapping[str, Any]) -> bool:
    """Whether the tree of the file stays: it is no file, or still the same one."""
    taxonomy = declared.get("taxonomy")
    kinds = {fields["kind"], declared.get("kind")}
    if not any(kinds <= set(alike) for alike in _ALIKE):
        return False
    return fields["groups"] == taxonomy if isinstance(taxonomy, str) else not fields["groups"]


def _lists(fields: Mapping[str, str], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Read what lists values: a file of codes, or one value a line."""
    found: dict[str, Any] = {}
    if fields["list_file"]:
        named = {name: fields[f"list_{name}"] for name in ("file", "column", "label")}
        given = {name: text for name, text in named.items() if text}
        found["values"] = given if len(given) > 1 else given["file"]
    elif fields["values"]:
        found["values"] = _values(fields["values"], declared.get("values"))
    if fields["codes"]:
        found["codes"] = _values(fields["codes"], declared.get("codes"))
    if fields["groups"]:
        found["taxonomy"] = fields["groups"]
    return found


def _values(text: str, before: Any) -> list[Any]:
    """Read one value a line; those that the file has already keep their type."""
    known = {canonical_text(value): value for value in before} if isinstance(before, list) else {}
    lines: Sequence[str] = [line.strip() for line in text.splitlines() if line.strip()]
    return [known.get(canonical_text(line), line) for line in lines]


def _bound(text: str, end: str, *, is_date: bool) -> Any:
    if not text:
        missing = "lower" if end == "low" else "upper"
        raise InvalidSchema(f"bounds: the {missing} bound is missing; fill in both")
    return text if is_date else _number(text, "bounds")


def _number(text: str, name: str) -> int | float:
    plain = text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text) else text
    for read in (int, float):
        try:
            return read(plain)
        except ValueError:
            continue
    raise InvalidSchema(f"{name}: {text!r} is no number; numbers are written 1234.5")


def _count(name: str, text: str) -> int | str:
    if text.isdecimal() and text.isascii() and len(text) < _LONGEST:
        return int(text)
    if name == "bins":
        return text
    raise InvalidSchema(f"{name}: {text!r} is no integer")
