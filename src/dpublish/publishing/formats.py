"""The formats of files as JSON Schemas: for editors, and for programs that read releases."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dpublish.core.folder.folder import FORMAT
from dpublish.data import schema_file
from dpublish.errors import require_known
from dpublish.ledger import chain
from dpublish.privacy import receipt

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Format(NamedTuple):
    """A kind of file: what it is, and what describes it."""

    about: str
    describe: Callable[[], dict[str, Any]]


def _head(more: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """Describe what begins every release: guarantee, schema and the value's own metadata."""
    common = {
        "format": {"type": "integer", "minimum": 1, "maximum": FORMAT},
        "kind": {"type": "string", "description": "kind of released value"},
        "receipt": {**receipt.json_schema(), "description": "what is guaranteed, and its cost"},
        "schema": {
            "type": "object",
            "description": "the public part of the schema, as in a schema file with a list of "
            "columns",
            "properties": {"name": {"type": "string"}, "columns": {"type": "array"}},
            "required": ["columns"],
        },
        "metadata": {"type": "object", "description": "what the kind of value needs to be read"},
    }
    return {
        "type": "object",
        "properties": {**common, **more},
        "required": [*common, *required],
    }


def _release() -> dict[str, Any]:
    digest = {
        "type": "object",
        "properties": {
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "bytes": {"type": "integer", "minimum": 0},
        },
        "required": ["sha256", "bytes"],
    }
    more = {
        "expected_error": {
            "description": "predicted error by name; null where theory gives none",
            "anyOf": [{"type": "object"}, {"type": "null"}],
        },
        "files": {
            "type": "object",
            "description": "digest and size of every other file of the folder",
            "additionalProperties": digest,
        },
    }
    return _head(more, ("expected_error", "files"))


def _stream() -> dict[str, Any]:
    return _head({}, ())


FORMATS: Mapping[str, Format] = {
    "schema": Format("a schema file, as TOML or JSON", schema_file.json_schema),
    "release": Format("release.json of a release folder", _release),
    "stream": Format("stream.json of the folder of a stream", _stream),
    "ledger": Format("the body of an entry of a ledger", chain.json_schema),
}
"""The formats by name."""


def json_schema(name: str) -> dict[str, Any]:
    """Describe a format as a JSON Schema.

    >>> sorted(json_schema("release")["properties"])[:3]
    ['expected_error', 'files', 'format']
    """
    require_known("format", name, FORMATS)
    form = FORMATS[name]
    described = {"$schema": DIALECT, "title": form.about, **form.describe()}
    plain: dict[str, Any] = json.loads(json.dumps(described))  # lists, where defaults are tuples
    return plain
