"""SQLite files that lose nothing: durable, one writer at a time, errors as advice.

The ledger and the state of a stream are such files.  A file keeps a rollback journal
(`journal_mode=DELETE`) and waits for the disk and its folder (`synchronous=EXTRA`).  A
write-ahead log would be faster, but the newest entries would live in a second file that is
protected by locks alone; and a process that merely copies its own file drops those locks
(POSIX), after which another one may remove the log.

Every change is one transaction that takes the write lock before it reads, and is on the disk
before it returns.
"""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dpublish.errors import DPublishError
from dpublish.storage.database import OpenDatabase
from dpublish.storage.files import printable

_ADVICE = {
    sqlite3.SQLITE_BUSY: "is busy: another process kept it locked; try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: you need to be allowed to write it and its folder",
    sqlite3.SQLITE_READONLY: "cannot be written: make the file and its folder writable",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; free some space and repeat this",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk is full or failing",
    sqlite3.SQLITE_CORRUPT: "is damaged",
}


@dataclass(frozen=True)
class FileKind:
    """A kind of SQLite file: how it is recognized, and how messages speak of it.

    Attributes:
        noun: What messages call the file: `the ledger`.
        content: What the file is, where another file is not: `a ledger`.
        maker: The command that makes one.
        in_python: What does so in Python, in brackets, if anything does.
        application: The mark in the file's header.
        format: The version that this version of dpublish writes.
        tables: The statements that make its tables, indexes and triggers.
        error: The error for a file that cannot be used.
        newest: The newest version that this version of dpublish reads; `format` if None.
        tampered: The error for a change that the tables refuse; the file is damaged if None.
        advice: What to say, by SQLite's code, instead of the usual advice.
        older: What to say of a file in an older format.
        is_secret: Whether no message may repeat what SQLite says, which may quote the content.
    """

    noun: str
    content: str
    maker: str
    application: int
    format: int
    tables: tuple[str, ...]
    error: type[DPublishError]
    newest: int | None = None
    tampered: type[DPublishError] | None = None
    advice: Mapping[int, str] = field(default_factory=dict)
    older: str = "which this version does not read"
    in_python: str = ""
    is_secret: bool = False

    def unusable(self, path: Path, advice: str) -> DPublishError:
        """Build the error for a file that cannot be used, in one line."""
        return self.error(f"{self.noun} {printable(path)} {advice}")

    def explain(self, path: Path, error: sqlite3.Error | UnicodeDecodeError) -> DPublishError:
        """Turn what SQLite says into advice."""
        if isinstance(error, sqlite3.ProgrammingError):
            return self.unusable(path, "was closed; open it again")
        if isinstance(error, sqlite3.IntegrityError) and self.tampered is not None:
            return self.tampered(f"{self.noun} {printable(path)} refuses the entry: {error}")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest are details of it
        if isinstance(error, UnicodeDecodeError):  # SQLite quotes damaged names in its messages
            code = sqlite3.SQLITE_CORRUPT
        not_one = {sqlite3.SQLITE_NOTADB: f"is not {self.content}; `{self.maker}` makes one"}
        otherwise = "is damaged" if self.is_secret else f"cannot be used: {error}"
        return self.unusable(path, {**_ADVICE, **not_one, **self.advice}.get(code, otherwise))

    @contextmanager
    def explained(self, path: Path) -> Iterator[None]:
        """Turn SQLite's errors into advice."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self.explain(path, error) from (None if self.is_secret else error)

    def identify(self, path: Path, if_missing: str | None = None) -> tuple[int, int, int]:
        """Return which file this is, to this process; refuse what cannot be a database file."""
        try:
            status = path.stat()
        except FileNotFoundError:
            missing = f"does not exist; `{self.maker}`{self.in_python} makes one"
            raise self.unusable(path, if_missing or missing) from None
        except PermissionError:
            raise self.unusable(path, "cannot be reached: you may not enter its folder") from None
        except OSError as error:
            raise self.unusable(path, f"cannot be reached: {error.strerror}") from None
        except ValueError:
            raise self.unusable(path, "cannot be reached: no file can have this name") from None
        if not stat.S_ISREG(status.st_mode):
            found = "a folder" if stat.S_ISDIR(status.st_mode) else "no ordinary file"
            raise self.unusable(path, f"is {found}; `{self.maker}` makes {self.content}")
        if status.st_nlink > 1:
            # After a crash the journal lies beside one of the names only.
            raise self.unusable(path, "has a second name (a hard link); remove one of the two")
        return status.st_dev, status.st_ino, os.getpid()

    def create(self, path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
        """Make a new file whose tables hold what `fill` writes, at once or not at all."""
        try:
            # What it holds is the owner's alone, hence the mode.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            advice = f"exists already; {self.content} is never replaced"
            raise self.unusable(path, advice) from None
        except OSError as error:
            raise self.unusable(path, f"cannot be created: {error.strerror}") from None
        except ValueError:
            raise self.unusable(path, "cannot be created: no file can have this name") from None
        try:
            with closing(_connect(path, 0)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {self.application}")
                connection.execute(f"PRAGMA user_version = {self.format}")
                for statement in self.tables:
                    connection.execute(statement)
                fill(connection)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            remove(path)
            raise self.unusable(path, f"cannot be created: {error}") from None
        except BaseException:
            remove(path)
            raise

    def open(self, path: Path, wait_seconds: float) -> sqlite3.Connection:
        """Open a file of this kind; a file that is something else stays as it was."""
        with self.explained(path):
            connection = _connect(path, wait_seconds)
            try:
                self._require_kind(path, connection)
                # An earlier version, or some tool, may have given it a log: take that in.
                connection.execute("PRAGMA journal_mode = DELETE")
                self.require_one_file(path, connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def require_one_file(self, path: Path, connection: sqlite3.Connection) -> None:
        """Refuse a file whose newest entries would live in a write-ahead log."""
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "delete":
            advice = "has a write-ahead log: open it anew where it may be written"
            raise self.unusable(path, advice)

    def _require_kind(self, path: Path, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != self.application:
            why = "it is some other database, or its creation was interrupted"
            raise self.unusable(path, f"is not {self.content}: {why}")
        if version < 1:
            raise self.unusable(path, f"is not {self.content}: there is no format {version}")
        if version > (newest := self.newest or self.format):
            newer = f"newer than {newest}: upgrade dpublish"
            raise self.unusable(path, f"has format {version}, {newer}")
        if version < self.format:
            raise self.unusable(path, f"has format {version}, {self.older}")


class Database(OpenDatabase):
    """An open file of one kind; may be shared by threads, but not carried over a fork."""

    kind: ClassVar[FileKind]

    def __init__(self, path: Path, wait_seconds: float = 30) -> None:
        self.path = path.absolute()  # the process may go to another folder
        self._identity = self.kind.identify(self.path)
        self._connection = self.kind.open(self.path, wait_seconds)
        super().__init__()

    @property
    def shown(self) -> str:
        """The path, in one line."""
        return printable(self.path)

    def close(self) -> None:
        """Close the file; harmless if that was done before."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See the file as it is at one moment, whatever is written meanwhile."""
        with self._guarded(), self._transaction("BEGIN"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only right to change the file, all or nothing; on the disk when it ends."""
        with self._guarded(), self._transaction("BEGIN IMMEDIATE"):
            self.kind.require_one_file(self.path, self._connection)
            yield

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn SQLite's errors about this file into advice."""
        with self.kind.explained(self.path):
            yield

    def unusable(self, advice: str) -> DPublishError:
        """Build the error for this file, in one line."""
        return self.kind.unusable(self.path, advice)

    def first(self, statement: str, *values: object) -> Any:
        """Return the first row of an answer; None if there is none."""
        return self._connection.execute(statement, values).fetchone()

    def rows(self, statement: str, *values: object) -> Iterator[Any]:
        """Iterate over the rows of an answer."""
        return iter(self._connection.execute(statement, values))

    def change(self, statement: str, *values: object) -> int:
        """Change something within a transaction that is open; return how many rows changed."""
        return self._connection.execute(statement, values).rowcount

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock, self.explained():
            if self._is_in_use:  # a clock, say, that looks into the ledger
                raise self.unusable("is in use: it cannot be used while it is changed")
            gone = "is gone; put it back and open it again"
            if self.kind.identify(self.path, gone) != self._identity:
                # The old file would go on granting what the new one does not know of.
                raise self.unusable("was replaced, or this process was forked; open it again")
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        try:
            try:
                self._is_in_use = True
                if self._connection.in_transaction:  # an interrupt came between two lines of ours
                    self._connection.execute("ROLLBACK")
                self._connection.execute(begin)
                self._begun()
                yield
                self._connection.execute("COMMIT")
                self._committed()
            finally:
                self._is_in_use = False
        finally:
            self._is_in_use = False  # an interrupt may have come before the line above
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def remove(path: Path) -> None:
    """Remove a file that was not finished, with its journal."""
    for leftover in ("", "-journal"):
        path.with_name(path.name + leftover).unlink(missing_ok=True)


def _connect(path: Path, wait_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",  # reads only, where writing is not allowed
        uri=True,
        timeout=wait_seconds,
        isolation_level=None,  # transactions are begun by hand, with the lock they need
        check_same_thread=False,  # the database's own lock serves
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS does not wait for the disk
        connection.execute("PRAGMA secure_delete = ON")  # what is replaced is overwritten
        connection.execute("SELECT count(*) FROM sqlite_master")  # the first look at the file
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection
