"""State files of what runs for long: metadata, a phase and a receipt, made whole or not at all.

A state file holds secrets, such as the noise of a threshold that is still in use.  So it is
readable by its owner only, what is replaced is overwritten, and no message repeats what it holds.
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
from dpublish.storage.files import PARTIAL, sync
from dpublish.storage.sqlite import Database, remove

STARTING, RUNNING, STOPPED = "starting", "running", "stopped"  # the phases
METADATA = "CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
"""The table that every state file has."""
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


class StateFile(Database):
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
        """Write values under their names; on the disk when it returns."""
        with self.writing():
            put_metadata(self._connection, metadata)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Turn errors while the file is read into advice; the original text may hold a secret."""
        with self.explained():
            try:
                yield
            except _DAMAGE:
                raise self.damaged() from None

    def damaged(self) -> DPublishError:
        """Build the error for a file that does not hold what was written."""
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


def put_metadata(connection: sqlite3.Connection, metadata: Mapping[str, Any]) -> None:
    """Write values under their names, within a transaction that is open."""
    for name, value in metadata.items():
        text = json.dumps(value, ensure_ascii=False)
        connection.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, text))
