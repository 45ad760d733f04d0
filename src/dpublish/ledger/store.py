"""The store behind a ledger: one SQLite database that is only ever appended to.

Every change is one transaction that takes the write lock before it reads, and is on the disk
before it returns.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock
from weakref import WeakSet

from dpublish.errors import LedgerTampered
from dpublish.ledger.chain import Entry, Head
from dpublish.ledger.file import (
    create_file,
    explained,
    identify,
    open_file,
    require_one_file,
    unavailable,
)
from dpublish.ledger.tables import changed_parts

# Tables are read in the order of their own rows: an index could be made to leave some out.
_ENTRIES = (
    "SELECT number, time, kind, dataset, body, previous, hash FROM entries NOT INDEXED "
    "WHERE {where} ORDER BY number"
)


def seal_fingerprint(entry_hash: str, fingerprint: str) -> str:
    """Tie a fingerprint to its entry; unlike the entry's hash, this is never published."""
    return sha256(json.dumps([entry_hash, fingerprint]).encode("ascii")).hexdigest()


class LedgerStore:
    """An open ledger file; may be shared by threads, but not carried over a fork."""

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self.path = path.absolute()  # the process may go to another folder
        self._lock = RLock()
        self._is_in_use = False
        self._seen: Head | None = None  # the last head that was found in order, or written
        self._noted: Head | None = None  # the same, as of the transaction that is under way
        self._identity = identify(self.path)
        self._connection = open_file(self.path, wait_seconds)
        _STORES.add(self)

    @staticmethod
    def create(path: Path, first: Entry) -> None:
        """Make a new file that holds its `first` entry."""
        create_file(path.absolute(), first)

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
        with self._guarded(), self._transaction("BEGIN IMMEDIATE"):
            require_one_file(self.path, self._connection)
            yield

    def append(self, entry: Entry, fingerprint: str | None = None) -> None:
        """Add `entry` at the end, and look whether it is there."""
        row = tuple(vars(entry).values())
        self._insert("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        if fingerprint is not None:
            sealed = seal_fingerprint(entry.hash, fingerprint)
            row = (entry.number, fingerprint, sealed)
            self._insert("INSERT INTO fingerprints VALUES (?, ?, ?)", row)
        if self.head() != (entry.number, entry.hash) or self.last_entry() != entry:
            raise LedgerTampered(f"the ledger {self.path} does not keep what is written to it")
        self.note(Head(entry.number, entry.hash))

    def note(self, head: Head) -> None:
        """Remember, if this transaction ends well, that the ledger had this head."""
        self._noted = head

    def head(self) -> Head | None:
        """Read the head record, if there is one that makes sense."""
        rows = self._connection.execute("SELECT entries, hash FROM head").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], int) or not isinstance(rows[0][1], str):
            return None
        return Head(*rows[0])

    def has_forgotten(self) -> bool:
        """Say whether an entry that was the last one earlier is gone, or is another now."""
        if self._seen is None:
            return False
        entry = next(self.entries("number = ?", self._seen.entries), None)
        return entry is None or entry.hash != self._seen.hash

    def entries(self, where: str = "1", *values: object) -> Iterator[Entry]:
        """Read the entries that fulfill an SQL condition, in order."""
        for row in self._connection.execute(_ENTRIES.format(where=where), values):
            yield _read_entry(row)

    def last_entry(self, dataset: str | None = None) -> Entry | None:
        """Read the last entry, of one dataset or of all, from the end."""
        where, values = ("1", ()) if dataset is None else ("dataset = ?", (dataset,))
        query = _ENTRIES.format(where=where) + " DESC LIMIT 1"
        row = self._connection.execute(query, values).fetchone()
        return row and _read_entry(row)

    def fingerprints(self) -> dict[int, tuple[str, str]]:
        """Read the fingerprints and their seals by entry."""
        rows = self._connection.execute("SELECT entry, fingerprint, seal FROM fingerprints")
        return {
            entry: (text, sealed) if isinstance(text, str) and isinstance(sealed, str) else ("", "")
            for entry, text, sealed in rows
        }

    def changed_parts(self) -> set[str]:
        """Name the tables and triggers that are not those of a ledger."""
        return changed_parts(self._connection)

    def damage(self) -> list[str]:
        """Let SQLite check the whole file."""
        rows = self._connection.execute("PRAGMA integrity_check").fetchall()
        return [f"the file is damaged: {text}" for (text,) in rows if text != "ok"]

    def _insert(self, statement: str, row: tuple[object, ...]) -> None:
        if self._connection.execute(statement, row).rowcount != 1:
            raise LedgerTampered(f"the ledger {self.path} does not keep what is written to it")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock, explained(self.path):
            if self._is_in_use:  # a clock, say, that looks into the ledger
                raise unavailable(self.path, "is in use: it cannot be used while it is changed")
            if identify(self.path, "is gone; put it back and open it again") != self._identity:
                # The old file would go on granting what the new one does not know of.
                raise unavailable(
                    self.path, "was replaced, or this process was forked; open it again"
                )
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        try:
            self._is_in_use = True
            if self._connection.in_transaction:  # an interrupt came between two lines of ours
                self._connection.execute("ROLLBACK")
            self._connection.execute(begin)
            self._noted = self._seen
            yield
            self._connection.execute("COMMIT")
            self._seen = self._noted
        finally:
            self._is_in_use = False
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def hold(self) -> None:
        """Keep every thread from using the ledger, until `let_go`."""
        self._lock.acquire()

    def let_go(self) -> None:
        """End `hold`."""
        self._lock.release()


_STORES: WeakSet[LedgerStore] = WeakSet()
_HELD: list[LedgerStore] = []


def _hold_all() -> None:
    # A child that is forked in the middle of a change, and closes the file when it ends, would
    # wait forever for the thread that was changing it, or take its change back.
    for store in list(_STORES):
        store.hold()
        _HELD.append(store)


def _let_go_of_all() -> None:
    while _HELD:
        _HELD.pop().let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_all, after_in_parent=_let_go_of_all, after_in_child=_let_go_of_all
    )


def _read_entry(row: tuple[int, str, str, str, str, str, str]) -> Entry:
    number, *cells = row
    time, kind, dataset, body, previous, sealed = (
        cell if isinstance(cell, str) else None for cell in cells
    )
    texts = (time or "", kind or "", dataset or "", body or "", previous or "")
    # What is no text was put there by force.  Whatever it looks like, it carries no hash.
    is_text = None not in (time, kind, dataset, body, previous)
    return Entry(number, *texts, hash=sealed or "" if is_text else "")
