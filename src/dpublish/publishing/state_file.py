"""The state of what runs for long: metadata, a phase and a receipt, in a file or on a server.

A state holds secrets, such as the noise of a threshold that is still in use.  So a state file is
readable by its owner only, what is replaced in it is overwritten, and no message repeats what a
state holds.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from dpublish.errors import BudgetError, CorruptRelease, DPublishError
from dpublish.privacy.receipt import Receipt
from dpublish.storage.database import OpenDatabase
from dpublish.storage.files import PARTIAL, sync
from dpublish.storage.sqlite import Database, remove

STARTING, RUNNING, STOPPED = "starting", "running", "stopped"  # the phases
METADATA = "CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
"""The table that every state has."""
PUT = "INSERT INTO metadata VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
"""The statement that writes a value under its name."""
_DAMAGE = (
    BudgetError,
    CorruptRelease,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What reading back raises if the file does not hold what was written; refusals are among it."""


class StoredState(OpenDatabase):
    """An open state, wherever it is kept."""

    def metadata(self, name: str, default: Any = None) -> Any:
        """Read what was written under a name."""
        with self.checked():
            row = self.first("SELECT value FROM metadata WHERE name = ?", name)
            return default if row is None else json.loads(row[0])

    def text(self, name: str) -> str:
        """Read a text that was written under a name."""
        value = self.metadata(name)
        if not isinstance(value, str):
            raise self.damaged()
        return value

    def put(self, **metadata: Any) -> None:
        """Write values under their names; durable when it returns."""
        with self.writing():
            self._put(metadata)

    def _put(self, metadata: Mapping[str, Any]) -> None:
        """Write values under their names, within a transaction that is open."""
        for row in metadata_rows(metadata):
            self.change(PUT, *row)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Turn errors while the state is read into advice; the original text may hold a secret."""
        with self.explained():
            try:
                yield
            except _DAMAGE:
                raise self.damaged() from None

    def damaged(self) -> DPublishError:
        """Build the error for a state that does not hold what was written."""
        return self.unusable("is damaged")

    @property
    def phase(self) -> str:
        """Whether it is being started, runs, or was stopped for good."""
        phase = self.text("phase")
        if phase not in (STARTING, RUNNING, STOPPED):
            raise self.damaged()
        return phase

    def receipt(self) -> Receipt:
        """Read the receipt of what was paid for."""
        with self.checked():
            return Receipt.from_dict(self.metadata("receipt"))


class StateFile(StoredState, Database):
    """An open state file; subclasses name their kind and what else they keep."""

    @classmethod
    def create(cls, path: Path, metadata: Mapping[str, Any]) -> Self:
        """Make a new state file, whole or not at all; the caller holds its lock."""
        draft = path.with_name(path.name + PARTIAL)
        try:
            remove(draft)  # left by a start that was killed
            cls.kind.create(draft, lambda connection: put_metadata(connection, metadata))
            os.rename(draft, path)
            sync(path.parent)
        except OSError as error:
            remove(draft)
            raise cls.kind.unusable(path, f"cannot be created: {error.strerror}") from None
        return cls(path)


def metadata_rows(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Write values as they are kept, with their names."""
    for name, value in metadata.items():
        yield name, json.dumps(value, ensure_ascii=False)


def put_metadata(connection: sqlite3.Connection, metadata: Mapping[str, Any]) -> None:
    """Write values under their names into a file, within a transaction that is open."""
    connection.executemany(PUT, metadata_rows(metadata))
