"""A ledger in a file: one SQLite database that is only ever appended to."""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dpublish.errors import LedgerTampered, LedgerUnavailable
from dpublish.ledger.chain import (
    FORMAT,
    MOVED_FORMAT,
    NEWEST,
    ORIGIN,
    Continued,
    Entry,
    Moved,
    format_of,
)
from dpublish.ledger.store import INSERT_ENTRY, INSERT_FINGERPRINT, Copied, LedgerStore
from dpublish.storage.files import PARTIAL, others_may_write, require_writable, sync
from dpublish.storage.sqlite import Database, FileKind, remove

_PARTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"
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
_STATEMENTS = (
    """CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL,
        kind TEXT NOT NULL, dataset TEXT NOT NULL, body TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    "CREATE INDEX entries_of ON entries (dataset, number)",
    """CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1),
        entries INTEGER NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE fingerprints (entry INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL, seal TEXT NOT NULL)""",
    """CREATE TRIGGER head_moves AFTER INSERT ON entries
        BEGIN UPDATE head SET entries = NEW.number, hash = NEW.hash; END""",
    *(
        f"CREATE TRIGGER {name} {event} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        for name, event in _GUARDS.items()
    ),
)
# Files of format 4 are without it, later ones have it, moved or not; a program of an older version
# may still have one open when it is moved.
_CLOSE_MOVED = f"""CREATE TRIGGER IF NOT EXISTS moved_is_closed BEFORE INSERT ON entries
    WHEN NEW.kind <> '{Continued.kind}' AND EXISTS (SELECT 1 FROM entries
        WHERE number = NEW.number - 1 AND kind = '{Moved.kind}')
    BEGIN SELECT RAISE(ABORT, 'the ledger was moved'); END"""
_LEDGER = FileKind(
    noun="the ledger",
    content="a ledger",
    maker="dpublish ledger create",
    in_python=" (in Python: dpublish.Ledger.create)",
    application=0x6450_4C31,  # "dPL1"
    format=FORMAT,
    newest=NEWEST,
    tables=_STATEMENTS,
    error=LedgerUnavailable,
    tampered=LedgerTampered,
    advice={
        sqlite3.SQLITE_FULL: "cannot be written: the disk is full, so this entry was not made",
        sqlite3.SQLITE_IOERR: (
            "cannot be read or written: the disk is full or failing; "
            "`dpublish ledger show` shows what stands"
        ),
        sqlite3.SQLITE_CORRUPT: ("is damaged; restore a copy and verify it against your receipts"),
    },
    older=(
        "whose grants do not say what they hide: keep it, and make a new one whose caps are what "
        "is left here"
    ),
)


class SqliteStore(LedgerStore, Database):
    """An open ledger file; may be shared by threads, but not carried over a fork."""

    kind = _LEDGER
    # Tables are read in the order of their own rows: an index could be made to leave some out.
    entries_table = "entries NOT INDEXED"
    body_contains = "instr(body, ?) > 0"

    def __init__(self, path: Path, wait_seconds: float) -> None:
        super().__init__(path, wait_seconds)
        # Bytes that are not text must still be readable, to be found wanting.
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")

    @staticmethod
    def create(path: Path, first: Entry) -> None:
        """Make a new file that holds its `first` entry."""
        _LEDGER.create(path.absolute(), lambda connection: _fill(connection, [(first, None)]))

    def raise_format(self, to: int) -> None:
        """Let programs that do not know of this format refuse the file, and it refuse theirs."""
        (version,) = self.first("PRAGMA user_version")
        self.change(f"PRAGMA user_version = {max(version, to)}")
        self.change(_CLOSE_MOVED)

    def changed_parts(self) -> set[str]:
        """Name the tables and triggers that are not those of a ledger.

        Whole rows are counted: a trigger may have a table's name, and must not hide behind it.
        """
        (version,) = self.first("PRAGMA user_version")
        found, expected = Counter(self.rows(_PARTS)), Counter(_expected_parts(version))
        return {str(name) for _, name, *_ in (found - expected) + (expected - found)}

    def damage(self) -> list[str]:
        """Let SQLite check the whole file."""
        rows = self.rows("PRAGMA integrity_check")
        return [f"the file is damaged: {text}" for (text,) in rows if text != "ok"]

    def exposed(self) -> list[str]:
        """List how other users of the machine could write the file, or replace it."""
        return others_may_write(self.path, "the ledger")


class SqliteDraft:
    """A ledger file that is being made."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        if os.path.lexists(self._path):
            raise _LEDGER.unusable(self._path, "exists already; a ledger is never replaced")
        require_writable(self._path)

    def fill(self, entries: Iterable[Copied]) -> None:
        """Make the file, with the entries of a ledger that goes on here, at once or not at all."""
        draft = self._path.with_name(self._path.name + PARTIAL)
        remove(draft)  # left by a copy that was killed

        copied = tuple(entries)

        def write(connection: sqlite3.Connection) -> None:
            version = format_of(entry.kind for entry, _ in copied)
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute(_CLOSE_MOVED)
            _fill(connection, copied)

        _LEDGER.create(draft, write)
        try:
            os.link(draft, self._path)  # unlike a new name, a second one replaces nothing
        except FileExistsError:
            advice = "exists already; a ledger is never replaced"
            raise _LEDGER.unusable(self._path, advice) from None
        except OSError as error:
            raise _LEDGER.unusable(self._path, f"cannot be created: {error.strerror}") from None
        finally:
            remove(draft)
        sync(self._path.parent)


def _fill(connection: sqlite3.Connection, entries: Iterable[Copied]) -> None:
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (ORIGIN,))
    for entry, fingerprint in entries:
        connection.execute(INSERT_ENTRY, tuple(vars(entry).values()))
        if fingerprint is not None:
            connection.execute(INSERT_FINGERPRINT, (entry.number, *fingerprint))


@cache
def _expected_parts(version: int) -> tuple[tuple[object, ...], ...]:
    statements = _STATEMENTS if version < MOVED_FORMAT else (*_STATEMENTS, _CLOSE_MOVED)
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements:
            connection.execute(statement)
        return tuple(connection.execute(_PARTS))
    finally:
        connection.close()
