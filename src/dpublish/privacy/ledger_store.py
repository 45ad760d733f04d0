"""The file behind a ledger: one SQLite database that is only ever appended to.

Every change is one transaction that takes the write lock before it reads, and is on the disk
(write-ahead log, `synchronous=FULL`) before it returns.  Triggers refuse to edit or remove
what is there.  They are a guard rail for honest mistakes: the chain of hashes is what shows
the work of someone who removes the rail.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock

from dpublish.errors import LedgerTampered, LedgerUnavailable
from dpublish.privacy.ledger_chain import FORMAT, ORIGIN, Entry, Head

_APPLICATION = 0x6450_4C31  # "dPL1" in the file's header: this database is a ledger

TABLES = frozenset({"entries", "head", "fingerprints"})
_GUARDS = {
    "entry_follows_head": """BEFORE INSERT ON entries WHEN NOT EXISTS (
        SELECT 1 FROM head WHERE NEW.number = entries + 1 AND NEW.previous = hash)""",
    "entry_is_final": "BEFORE UPDATE ON entries",
    "entry_stays": "BEFORE DELETE ON entries",
    "head_is_one": "BEFORE INSERT ON head WHEN EXISTS (SELECT 1 FROM head)",
    "head_follows_entry": """BEFORE UPDATE ON head WHEN NEW.entries <> OLD.entries + 1
        OR NOT EXISTS (SELECT 1 FROM entries WHERE number = NEW.entries AND hash = NEW.hash)""",
    "head_stays": "BEFORE DELETE ON head",
    "fingerprint_is_new": """BEFORE INSERT ON fingerprints WHEN
        NEW.entry IS NOT (SELECT entries FROM head)
        OR EXISTS (SELECT 1 FROM fingerprints WHERE entry = NEW.entry)""",
    "fingerprint_is_final": "BEFORE UPDATE ON fingerprints",
    "fingerprint_stays": "BEFORE DELETE ON fingerprints",
}
_SCHEMA = {
    "entries": """CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL,
        kind TEXT NOT NULL, dataset TEXT NOT NULL, body TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    "entries_of": "CREATE INDEX entries_of ON entries (dataset, number)",
    "head": """CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1),
        entries INTEGER NOT NULL, hash TEXT NOT NULL)""",
    "fingerprints": """CREATE TABLE fingerprints (entry INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL, seal TEXT NOT NULL)""",
    "head_moves": """CREATE TRIGGER head_moves AFTER INSERT ON entries
        BEGIN UPDATE head SET entries = NEW.number, hash = NEW.hash; END""",
} | {
    name: f"CREATE TRIGGER {name} {event} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
    for name, event in _GUARDS.items()
}

_ADVICE = {
    sqlite3.SQLITE_BUSY: "is busy: another process kept it locked; try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: you need to be allowed to write it and its folder",
    sqlite3.SQLITE_READONLY: "cannot be written: make the file and its folder writable",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; nothing was granted",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk is full or failing",
    sqlite3.SQLITE_NOTADB: "is not a ledger; `dpublish ledger create` makes one",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore a copy and verify it against your receipts",
}


def seal_fingerprint(entry_hash: str, fingerprint: str) -> str:
    """Tie a fingerprint to its entry; unlike the entry's hash, this is never published."""
    return sha256(json.dumps([entry_hash, fingerprint]).encode("ascii")).hexdigest()


class LedgerStore:
    """An open ledger file; may be shared by threads, but not carried over a fork."""

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self.path = path
        self._wait = wait_seconds
        self._lock = RLock()
        if not path.is_file():
            raise self._unavailable("does not exist; `dpublish ledger create` makes one")
        self._identity = self._identify()
        self.is_writable = True
        self._connection = self._open_file()

    @staticmethod
    def create(path: Path, first: Entry) -> None:
        """Make a new file that holds its `first` entry."""
        try:
            # Fingerprints and purposes are the owner's alone, hence the mode.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise LedgerUnavailable(f"{path} exists already; a ledger is never replaced") from None
        except OSError as error:
            raise LedgerUnavailable(f"{path} cannot be created: {error.strerror}") from None
        try:
            _lay_out(path, first)
        except (sqlite3.Error, LedgerUnavailable) as error:
            for leftover in ("", "-wal", "-shm"):
                path.with_name(path.name + leftover).unlink(missing_ok=True)
            raise LedgerUnavailable(f"{path} cannot be created: {error}") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See the ledger as it is at one moment."""
        with self._guarded(), self._transaction("BEGIN"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only right to change the ledger; what was appended is then on the disk."""
        if not self.is_writable:
            raise self._unavailable(_ADVICE[sqlite3.SQLITE_READONLY])
        with self._guarded():
            _keep_log(self._connection)
            with self._transaction("BEGIN IMMEDIATE"):
                yield

    def append(self, entry: Entry, fingerprint: str | None = None) -> None:
        """Add `entry` at the end."""
        row = tuple(vars(entry).values())
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        if fingerprint is not None:
            sealed = seal_fingerprint(entry.hash, fingerprint)
            row = (entry.number, fingerprint, sealed)
            self._connection.execute("INSERT INTO fingerprints VALUES (?, ?, ?)", row)

    def head(self) -> Head | None:
        """Read the head record, if there is one that makes sense."""
        rows = self._connection.execute("SELECT entries, hash FROM head").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], int) or not isinstance(rows[0][1], str):
            return None
        return Head(*rows[0])

    def entries(self, where: str = "1", *values: object) -> Iterator[Entry]:
        """Read the entries that fulfil an SQL condition, in order."""
        for number, *cells in self._connection.execute(
            "SELECT number, time, kind, dataset, body, previous, hash "
            f"FROM entries WHERE {where} ORDER BY number",
            values,
        ):
            # A cell that is not text was put there by force; its repr fits no hash.
            yield Entry(number, *(cell if isinstance(cell, str) else repr(cell) for cell in cells))

    def last_entry(self, dataset: str | None = None) -> Entry | None:
        """Read the last entry, of one dataset or of all, without reading the others."""
        of_dataset = "WHERE dataset = ?" if dataset is not None else ""
        where = f"number = (SELECT max(number) FROM entries {of_dataset})"
        return next(self.entries(where, *([] if dataset is None else [dataset])), None)

    def fingerprints(self) -> dict[int, tuple[str, str]]:
        """Read the fingerprints and their seals by entry."""
        rows = self._connection.execute("SELECT entry, fingerprint, seal FROM fingerprints")
        return {entry: (str(fingerprint), str(sealed)) for entry, fingerprint, sealed in rows}

    def changed_parts(self) -> set[str]:
        """Name the tables and triggers that are not those of a ledger."""
        found = dict(self._connection.execute("SELECT name, sql FROM sqlite_master"))
        return {name for name, _ in found.items() ^ _SCHEMA.items()}

    def damage(self) -> list[str]:
        """Let SQLite check the whole file."""
        rows = self._connection.execute("PRAGMA integrity_check").fetchall()
        return [f"the file is damaged: {text}" for (text,) in rows if text != "ok"]

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock, self._explained():
            if self._identify() != self._identity:
                # The old file would go on granting what the new one does not know of.
                raise self._unavailable("was replaced, or this process was forked; open it again")
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:  # SQLite quotes damaged names in its own messages
            raise self._unavailable(_ADVICE[sqlite3.SQLITE_CORRUPT]) from error
        except sqlite3.IntegrityError as error:
            raise LedgerTampered(f"the ledger {self.path} refuses the entry: {error}") from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest are details of it
            raise self._unavailable(_ADVICE.get(code, f"cannot be used: {error}")) from error

    def _unavailable(self, advice: str) -> LedgerUnavailable:
        return LedgerUnavailable(f"the ledger {self.path} {advice}")

    def _identify(self) -> tuple[int, int, int]:
        try:
            status = self.path.stat()
        except OSError:
            raise self._unavailable("is gone; put it back and open it again") from None
        return status.st_dev, status.st_ino, os.getpid()

    def _open_file(self) -> sqlite3.Connection:
        with self._explained():
            try:
                connection = _connect(self.path, "mode=rw", self._wait)
            except sqlite3.OperationalError as error:
                self._require_copy_to_read(error)
                connection = _connect(self.path, "mode=ro&immutable=1", self._wait)
                self.is_writable = False
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application == _APPLICATION and 1 <= version <= FORMAT:
            return connection
        connection.close()
        if application != _APPLICATION:
            raise self._unavailable("is some other database, or its creation was interrupted")
        raise self._unavailable(f"has format {version}, newer than {FORMAT}: upgrade dpublish")

    def _require_copy_to_read(self, error: sqlite3.OperationalError) -> None:
        # SQLite wants to write next to the file even to read it.  Reading the bare file instead
        # is right only if no later entries wait in the log beside it.
        log = self.path.with_name(self.path.name + "-wal")
        denied = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if not denied or (log.exists() and log.stat().st_size > 0):
            raise error


def _connect(path: Path, mode: str, wait_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=wait_seconds,
        isolation_level=None,  # transactions are begun by hand, with the lock they need
        check_same_thread=False,  # our own lock serves
    )
    # Bytes that are not text must still be readable, to be found wanting.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # without it macOS does not wait for the disk
        connection.execute("SELECT count(*) FROM sqlite_master")  # the first look at the file
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection


def _keep_log(connection: sqlite3.Connection) -> None:
    # The file remembers the mode, but a copy made by some tools has lost it.
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise LedgerUnavailable("a ledger needs a write-ahead log: keep it on a local disk")


def _lay_out(path: Path, first: Entry) -> None:
    connection = _connect(path, "mode=rw", 0)
    try:
        _keep_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        for statement in _SCHEMA.values():
            connection.execute(statement)
        connection.execute("INSERT INTO head VALUES (1, 0, ?)", (ORIGIN,))
        row = tuple(vars(first).values())
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")
    finally:
        connection.close()
