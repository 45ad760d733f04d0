"""A schema's file as pages show and change it: opened, checked by the library, and saved."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.data.schema_edit import read_text
from dpublish.data.schema_file import SchemaColumns, parse_schema, read_columns
from dpublish.data.schema_text import digest, replace_schema, require_sound
from dpublish.errors import DPublishError, InvalidParameter, InvalidSchema, require_known
from dpublish.planning.start_files import ANSWERS
from dpublish.studio.code_files import find_codes
from dpublish.studio.desk import SCHEMAS, Desk

_SAVING = Lock()


def list_schemas(desk: Desk) -> list[str]:
    """List the schema files of the folder."""
    return [name for name in desk.list_files(SCHEMAS) if not name.endswith(ANSWERS)]


@dataclass(frozen=True)
class OpenedSchema:
    """A schema's file, and its text.

    Attributes:
        desk: The studio's desk.
        name: Its path within the studio's folder.
        path: Where it lies.
        text: What it says.
    """

    desk: Desk
    name: str
    path: Path
    text: str

    @classmethod
    def open(cls, desk: Desk, name: str) -> "OpenedSchema":
        """Open a schema's file; refuse files of other kinds."""
        path = desk.schema(name)
        if path.name.endswith(ANSWERS):
            raise InvalidParameter(f"{name!r} holds answers of a start; it is no schema file")
        return cls(desk, name, path, read_text(path))

    @property
    def digest(self) -> str:
        """What tells its text from others."""
        return digest(self.text)

    @cached_property
    def plain(self) -> Mapping[str, Any]:
        """What it says, as plain values."""
        return _plain(self.text)

    @cached_property
    def columns(self) -> SchemaColumns:
        """The columns that can be read, and the faults of the others."""
        return read_columns(self.text, self.path.parent)

    @property
    def problem(self) -> str:
        """What is wrong with it as a whole; empty if all is well."""
        try:
            self.read()
        except DPublishError as error:
            return str(error)
        return ""

    def read(self) -> Schema:
        """Read the schema; refuse one with faults."""
        return parse_schema(self.text, self.path.parent)

    def declared(self, column: str) -> Mapping[str, Any]:
        """Return the keys of a column as they are written."""
        known = self.plain.get("columns", {})
        require_known("column", column, known)
        return dict(known[column])

    def column(self, name: str) -> Column:
        """Return a column; refuse one with faults."""
        if name in self.columns.faults:
            raise InvalidSchema(self.columns.faults[name])
        found = {each.name: each for each in self.columns.found}
        require_known("column", name, found)
        return found[name]

    def changed(self, text: str, column: str | None = None) -> "OpenedSchema":
        """Return the same file with another text; refuse one that is worse, without writing it."""
        self._require_inside(text)
        require_sound(text, self.text, self.path.parent, column)
        return OpenedSchema(self.desk, self.name, self.path, text)

    def save(self, text: str, *, seen: str, column: str | None = None) -> None:
        """Write another text, if the file is still the one that was `seen`."""
        self._require_inside(text)
        with _SAVING:
            replace_schema(self.path, text, seen=seen, column=column)

    def _require_inside(self, text: str) -> None:
        """Refuse a text that names files elsewhere, unless it was written so by hand."""
        known = set(_files(self.text))
        for name in _files(text):
            if name not in known:
                within = os.path.relpath(self.path.parent / name, self.desk.files.resolve())
                find_codes(self.desk, within)


def _plain(text: str) -> dict[str, Any]:
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise InvalidSchema(f"schema: {failure}") from None
    columns = plain.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(x, dict) for x in columns.values()):
        raise InvalidSchema("columns must be a table for each column, [columns.NAME]")
    return plain


def _files(text: str) -> Iterator[str]:
    """Iterate over the files that a schema names: code lists, trees and maps."""
    try:
        columns = _plain(text).get("columns", {})
    except InvalidSchema:
        return  # said when it is read
    for keys in columns.values():
        values = keys.get("values")
        found = values.get("file") if isinstance(values, dict) else values
        named = (found, keys.get("taxonomy"), keys.get("map"))
        yield from (name for name in named if isinstance(name, str))
