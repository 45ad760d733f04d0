"""The SQLite file under a stream's state: named facts, one transaction a change, plain advice.

It holds secrets: the noise of thresholds that are still in use.  So it is readable by its
owner only, what is replaced is overwritten, and no message repeats what it holds.  Like the
ledger it keeps a rollback journal and waits for the disk (see `privacy.ledger_file` for why).
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from dpublish.errors import BudgetError, CorruptRelease, InputError
from dpublish.storage.writing import sync

FORMAT = 1
APPLICATION = 0x6450_5331  # "dPS1" in the file's header: this database is a stream's state
_FACTS = "CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_ADVICE = {
    sqlite3.SQLITE_BUSY: "is busy: another process kept it locked; try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: you need to be allowed to write it and its folder",
    sqlite3.SQLITE_READONLY: "cannot be written: make the file and its folder writable",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; free some and repeat the command",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk is full or failing",
    sqlite3.SQLITE_NOTADB: "is not the state of a stream; `dpublish stream start` makes one",
}
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


class StreamDatabase:
    """An open database of facts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = identify(path)
        with self.explained():
            self._connection = _connect(path)
            try:
                self._require_stream()
            except BaseException:
                self._connection.close()
                raise

    @staticmethod
    def write_new(path: Path, tables: Iterable[str], metadata: Mapping[str, Any]) -> None:
        """Make a new file, whole or not at all; the caller holds the stream's lock."""
        draft = path.with_name(path.name + ".partial")
        try:
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(_connect(draft)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                for statement in (_FACTS, *tables):
                    connection.execute(statement)
                _put_metadata(connection, metadata)
                connection.execute("COMMIT")
            os.rename(draft, path)
            sync(path.parent)
        except (OSError, sqlite3.Error) as error:
            draft.unlink(missing_ok=True)
            raise InputError(f"the state file {path} cannot be made: {error}") from None

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def fact(self, name: str, default: Any = None) -> Any:
        """Read one of the facts."""
        with self.explained():
            row = self.query("SELECT value FROM metadata WHERE name = ?", name)
            return default if row is None else json.loads(row[0])

    def text(self, name: str) -> str:
        """Read a fact that is a text."""
        value = self.fact(name)
        if not isinstance(value, str):
            raise self.damaged()
        return value

    def put(self, **metadata: Any) -> None:
        """Write facts; on the disk when it returns."""
        with self.writing():
            self.put_within(metadata)

    def put_within(self, metadata: Mapping[str, Any]) -> None:
        """Write facts within a transaction that is open."""
        _put_metadata(self._connection, metadata)

    def query(self, statement: str, *values: object) -> Any:
        """Give the first row of an answer."""
        return self._connection.execute(statement, values).fetchone()

    def rows(self, statement: str) -> list[Any]:
        """Give all rows of an answer."""
        return self._connection.execute(statement).fetchall()

    def execute(self, statement: str, *values: object) -> None:
        """Change something within a transaction that is open."""
        self._connection.execute(statement, values)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the file, whatever is written meanwhile."""
        with self.explained():
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with self.explained():
                self._connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change the file, all or nothing; on the disk when it ends."""
        if identify(self.path) != self._identity:
            raise InputError(f"the state file {self.path} was replaced; open it again")
        with self.explained():
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn complaints about the file into advice; the original text could tell a secret."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise InputError(f"the state file {self.path} was closed; open it again") from None
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest are details of it
            raise InputError(
                f"the state file {self.path} {_ADVICE.get(code, 'is damaged')}"
            ) from None
        except _DAMAGE:
            raise self.damaged() from None

    def damaged(self) -> InputError:
        """Give the error for a file that does not hold what was written."""
        return InputError(f"the state file {self.path} is damaged")

    def _require_stream(self) -> None:
        (application,) = self.query("PRAGMA application_id")
        (version,) = self.query("PRAGMA user_version")
        if application != APPLICATION or version < 1:
            raise InputError(
                f"{self.path} is not the state of a stream; `dpublish stream start` makes one"
            )
        if version > FORMAT:
            raise InputError(f"{self.path} was written by a newer dpublish; upgrade to use it")


def identify(path: Path) -> tuple[int, int]:
    """Say which file stands at a place; refuse a place where none does."""
    try:
        status = path.stat()
    except OSError:
        raise InputError(
            f"there is no state file {path}; `dpublish stream start` makes one"
        ) from None
    if not path.is_file():
        raise InputError(f"{path} is no file; name the state file of a stream")
    return status.st_dev, status.st_ino


def _put_metadata(connection: sqlite3.Connection, metadata: Mapping[str, Any]) -> None:
    for name, value in metadata.items():
        text = json.dumps(value, ensure_ascii=False)
        connection.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, text))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=30, isolation_level=None
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS does not wait for the disk
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("SELECT count(*) FROM sqlite_master")  # the first look at the file
    except sqlite3.Error:
        connection.close()
        raise
    return connection
