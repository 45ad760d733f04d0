"""Read plain values of a schema file as keys of known names and types, or say which is wrong."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from dpublish.errors import InvalidSchema, require_known

_File = TypeVar("_File", bound=msgspec.Struct)


def convert_keys(plain: object, target: type[_File], keys: Mapping[str, str]) -> _File:
    """Check keys and types; say which key is wrong and what to write instead."""
    try:
        return msgspec.convert(plain, target)
    except msgspec.ValidationError as failure:
        fault = str(failure)
    if unknown := re.search(r"unknown field `(.*)`", fault, re.DOTALL):
        require_known("key", unknown[1], keys)
    if absent := re.search(r"required field `(\w+)`", fault):
        raise InvalidSchema(f"{absent[1]} is missing; it must be {keys[absent[1]]}")
    if wrong := re.search(r"`\$\.(\w+)", fault):
        raise InvalidSchema(f"{wrong[1]} must be {keys[wrong[1]]}")
    raise InvalidSchema("must be a table of keys and values")


def describe_keys(target: type[msgspec.Struct], keys: Mapping[str, str]) -> dict[str, Any]:
    """Describe keys and their types as a JSON Schema of one object."""
    (found,) = msgspec.json.schema_components((target,))[1].values()
    for name, part in found["properties"].items():
        part["description"] = keys[name]
    return {key: part for key, part in found.items() if key not in ("title", "description")}
