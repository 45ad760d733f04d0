"""The state file of a stream: all that it needs to go on, changed by one transaction a step.

It holds secrets: the noise of thresholds that are still in use.  So it is readable by its
owner only, and what is replaced is overwritten.  Like the ledger it keeps a rollback journal
and waits for the disk (see `privacy.ledger_file` for why).

A step's line and its file of counts lie in the outbox, in the same transaction as the state
that the step led to, until they are in the release folder.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpublish.data import schema_file
from dpublish.errors import InputError
from dpublish.privacy.receipt import Receipt
from dpublish.recipes.streams import make_stream_recipe
from dpublish.release.stream_folder import sync
from dpublish.streams.stream import Stream, StreamState

FORMAT = 1
STARTING, RUNNING, STOPPED = "starting", "running", "stopped"  # the phases of a stream
APPLICATION = 0x6450_5331  # "dPS1" in the file's header: this database is a stream's state
_TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE arrays (name TEXT PRIMARY KEY, type TEXT, shape TEXT, data BLOB)",
    """CREATE TABLE steps (number INTEGER PRIMARY KEY, time TEXT NOT NULL UNIQUE,
        line BLOB NOT NULL, stop INTEGER NOT NULL)""",
    "CREATE TABLE outbox (number INTEGER PRIMARY KEY, content BLOB NOT NULL)",
)
_ADVICE = {
    sqlite3.SQLITE_BUSY: "is busy: another process kept it locked; try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: you need to be allowed to write it and its folder",
    sqlite3.SQLITE_READONLY: "cannot be written: make the file and its folder writable",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; the step was not done",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk is full or failing",
    sqlite3.SQLITE_NOTADB: "is not the state of a stream; `dpublish stream start` makes one",
    sqlite3.SQLITE_CORRUPT: "is damaged",
}


class Undelivered(NamedTuple):
    """A step that is done, but not known to be in the release folder."""

    number: int
    line: bytes
    start: int
    content: bytes


class StreamFile:
    """An open state file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = _identify(path)
        with self._explained():
            self._connection = _connect(path)
            try:
                self._require_stream()
            except BaseException:
                self._connection.close()
                raise

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, Any]) -> "StreamFile":
        """Make a new state file, whole or not at all; the caller holds the stream's lock."""
        draft = path.with_name(path.name + ".partial")
        try:
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(_connect(draft)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                for statement in _TABLES:
                    connection.execute(statement)
                _put_facts(connection, facts)
                connection.execute("COMMIT")
            os.rename(draft, path)
            sync(path.parent)
        except (OSError, sqlite3.Error) as error:
            draft.unlink(missing_ok=True)
            raise InputError(f"the state file {path} cannot be made: {error}") from None
        return cls(path)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def fact(self, name: str, default: Any = None) -> Any:
        """Read one of the facts."""
        with self._explained():
            row = self._query("SELECT value FROM facts WHERE name = ?", name)
            return default if row is None else json.loads(row[0])

    def put(self, **facts: Any) -> None:
        """Write facts; on the disk when it returns."""
        with self._writing():
            _put_facts(self._connection, facts)

    def state(self) -> StreamState:
        """Read the state of the stream."""
        with self._explained():
            rows = self._connection.execute("SELECT name, type, shape, data FROM arrays")
            arrays = {
                name: np.frombuffer(data, dtype=kind).reshape(json.loads(shape)).copy()
                for name, kind, shape, data in rows
            }
            return StreamState(self.fact("public"), self.fact("secret"), arrays)

    def stream(self) -> Stream:
        """Open the stream as the file has it."""
        recipe = make_stream_recipe(self.fact("method"), self.fact("settings"))
        schema = schema_file.from_plain(self.fact("schema"))
        return recipe.resume(schema, self.state(), Receipt.from_plain(self.fact("receipt")))

    def begin(self, state: StreamState, **facts: Any) -> None:
        """Write the state of a stream that is paid for and has no step yet."""
        with self._writing():
            self._put_state(state)
            _put_facts(self._connection, facts)

    def commit_step(
        self, state: StreamState, *, number: int, time: str, line: bytes, content: bytes, owner: str
    ) -> None:
        """Write a step, the state it led to and what is to be published, all or nothing.

        Refused if another operator has taken the stream over, or has made this step.
        """
        with self._writing():
            if self.fact("operator", {}).get("token") != owner or number != self.steps + 1:
                raise InputError(f"another operator has moved {self.path} on; open it again")
            self._put_state(state)
            stop = self.length + len(line)
            insert = "INSERT INTO steps VALUES (?, ?, ?, ?)"
            self._connection.execute(insert, (number, time, line, stop))
            self._connection.execute("INSERT INTO outbox VALUES (?, ?)", (number, content))

    def mark_delivered(self, number: int) -> None:
        """Note that a step is in the release folder."""
        with self._writing():
            self._connection.execute("DELETE FROM outbox WHERE number = ?", (number,))

    def undelivered(self) -> Undelivered | None:
        """Find the step that may not have reached the release folder."""
        with self._explained():
            row = self._query(
                "SELECT number, line, stop - length(line), content FROM outbox JOIN steps "
                "USING (number) ORDER BY number"
            )
            return None if row is None else Undelivered(*row)

    @property
    def steps(self) -> int:
        """Number of steps that are done."""
        with self._explained():
            return int(self._query("SELECT coalesce(max(number), 0) FROM steps")[0])

    @property
    def length(self) -> int:
        """Length of the list of steps, when all are delivered."""
        with self._explained():
            return int(self._query("SELECT coalesce(max(stop), 0) FROM steps")[0])

    def lines(self) -> Iterator[bytes]:
        """Read the list of steps, in order."""
        with self._explained():
            for (line,) in self._connection.execute("SELECT line FROM steps ORDER BY number"):
                yield line

    def last_time(self) -> str | None:
        """Give the label of the last step."""
        with self._explained():
            row = self._query("SELECT time FROM steps ORDER BY number DESC LIMIT 1")
            return None if row is None else str(row[0])

    def last_line(self) -> bytes | None:
        """Give the last line of the list of steps."""
        with self._explained():
            row = self._query("SELECT line FROM steps ORDER BY number DESC LIMIT 1")
            return None if row is None else bytes(row[0])

    def has_time(self, time: str) -> bool:
        """Say whether there is a step of this label."""
        with self._explained():
            return self._query("SELECT 1 FROM steps WHERE time = ?", time) is not None

    def _query(self, statement: str, *values: object) -> Any:
        return self._connection.execute(statement, values).fetchone()

    def _put_state(self, state: StreamState) -> None:
        _put_facts(self._connection, {"public": state.public, "secret": state.secret})
        self._connection.execute("DELETE FROM arrays")
        for name, array in state.arrays.items():
            row = (name, array.dtype.str, json.dumps(array.shape), array.tobytes())
            self._connection.execute("INSERT INTO arrays VALUES (?, ?, ?, ?)", row)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if _identify(self.path) != self._identity:
            raise InputError(f"the state file {self.path} was replaced; open it again")
        with self._explained():
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's complaints into advice."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest are details of it
            advice = _ADVICE.get(code, f"cannot be used: {error}")
            raise InputError(f"the state file {self.path} {advice}") from None
        except (ValueError, TypeError, RecursionError):
            raise InputError(f"the state file {self.path} is damaged") from None

    def _require_stream(self) -> None:
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION or version < 1:
            raise InputError(
                f"{self.path} is not the state of a stream; `dpublish stream start` makes one"
            )
        if version > FORMAT:
            raise InputError(f"{self.path} was written by a newer dpublish; upgrade to use it")


def _put_facts(connection: sqlite3.Connection, facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        text = json.dumps(value, ensure_ascii=False)
        connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, text))


def _identify(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        raise InputError(
            f"there is no state file {path}; `dpublish stream start` makes one"
        ) from None
    if not path.is_file():
        raise InputError(f"{path} is no file; name the state file of a stream")
    return status.st_dev, status.st_ino


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
