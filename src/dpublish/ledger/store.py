"""The store behind a ledger: one SQLite database that is only ever appended to.

Triggers are a guard rail for honest mistakes: the chain of hashes is what shows the work of
someone who removes the rail.  Below the store stand the lookups that every grant needs: they
read the end of the ledger, or one entry, without adding all of it up.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from dpublish.errors import InvalidParameter, LedgerTampered, LedgerUnavailable, require_known
from dpublish.ledger.account import Account, Books, GrantStatus, closed, granted
from dpublish.ledger.chain import (
    FORMAT,
    ORIGIN,
    Anchored,
    Body,
    Created,
    Entry,
    Granted,
    Head,
    Published,
    Totals,
    read_levels,
    read_notion,
)
from dpublish.privacy.budget import Grant
from dpublish.privacy.epsilon import read_exact
from dpublish.storage.sqlite import Database, FileKind

TABLES = frozenset({"entries", "head", "fingerprints"})

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
# Tables are read in the order of their own rows: an index could be made to leave some out.
_ENTRIES = (
    "SELECT number, time, kind, dataset, body, previous, hash FROM entries NOT INDEXED "
    "WHERE {where} ORDER BY number"
)
_LEDGER = FileKind(
    noun="the ledger",
    content="a ledger",
    maker="dpublish ledger create",
    application=0x6450_4C31,  # "dPL1"
    format=FORMAT,
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


def seal_fingerprint(entry_hash: str, fingerprint: str) -> str:
    """Tie a fingerprint to its entry; unlike the entry's hash, this is never published."""
    return sha256(json.dumps([entry_hash, fingerprint]).encode("ascii")).hexdigest()


class LedgerStore(Database):
    """An open ledger file; may be shared by threads, but not carried over a fork."""

    kind = _LEDGER

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._seen: Head | None = None  # the last head that was found in order, or written
        self._noted: Head | None = None  # the same, as of the transaction that is under way
        super().__init__(path, wait_seconds)
        # Bytes that are not text must still be readable, to be found wanting.
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")

    @staticmethod
    def create(path: Path, first: Entry) -> None:
        """Make a new file that holds its `first` entry."""

        def fill(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO head VALUES (1, 0, ?)", (ORIGIN,))
            row = tuple(vars(first).values())
            connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)

        _LEDGER.create(path.absolute(), fill)

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
        rows = list(self.rows("SELECT entries, hash FROM head"))
        if len(rows) != 1 or not isinstance(rows[0][0], int) or not isinstance(rows[0][1], str):
            return None
        return Head(*rows[0])

    def has_forgotten(self) -> bool:
        """Return whether an entry that was the last one earlier is gone, or is another now."""
        if self._seen is None:
            return False
        entry = next(self.entries("number = ?", self._seen.entries), None)
        return entry is None or entry.hash != self._seen.hash

    def entries(self, where: str = "1", *values: object) -> Iterator[Entry]:
        """Read the entries that fulfill an SQL condition, in order."""
        for row in self.rows(_ENTRIES.format(where=where), *values):
            yield _read_entry(row)

    def last_entry(self, dataset: str | None = None) -> Entry | None:
        """Read the last entry, of one dataset or of all, from the end."""
        where, values = ("1", ()) if dataset is None else ("dataset = ?", (dataset,))
        query = _ENTRIES.format(where=where) + " DESC LIMIT 1"
        row = self.first(query, *values)
        return row and _read_entry(row)

    def fingerprints(self) -> dict[int, tuple[str, str]]:
        """Read the fingerprints and their seals by entry."""
        rows = self.rows("SELECT entry, fingerprint, seal FROM fingerprints")
        return {
            entry: (text, sealed) if isinstance(text, str) and isinstance(sealed, str) else ("", "")
            for entry, text, sealed in rows
        }

    def changed_parts(self) -> set[str]:
        """Name the tables and triggers that are not those of a ledger.

        Whole rows are counted: a trigger may have a table's name, and must not hide behind it.
        """
        found, expected = Counter(self.rows(_PARTS)), Counter(_expected_parts())
        return {str(name) for _, name, *_ in (found - expected) + (expected - found)}

    def damage(self) -> list[str]:
        """Let SQLite check the whole file."""
        rows = self.rows("PRAGMA integrity_check")
        return [f"the file is damaged: {text}" for (text,) in rows if text != "ok"]

    def _insert(self, statement: str, row: tuple[object, ...]) -> None:
        if self.change(statement, *row) != 1:
            raise LedgerTampered(f"the ledger {self.path} does not keep what is written to it")

    def _begun(self) -> None:
        self._noted = self._seen

    def _committed(self) -> None:
        self._seen = self._noted


@cache
def _expected_parts() -> tuple[tuple[object, ...], ...]:
    connection = sqlite3.connect(":memory:")
    try:
        for statement in _STATEMENTS:
            connection.execute(statement)
        return tuple(connection.execute(_PARTS))
    finally:
        connection.close()


def _read_entry(row: tuple[int, str, str, str, str, str, str]) -> Entry:
    number, *cells = row
    time, kind, dataset, body, previous, sealed = (
        cell if isinstance(cell, str) else None for cell in cells
    )
    texts = (time or "", kind or "", dataset or "", body or "", previous or "")
    # What is no text was put there by force.  Whatever it looks like, it carries no hash.
    is_text = None not in (time, kind, dataset, body, previous)
    return Entry(number, *texts, hash=sealed or "" if is_text else "")


def intact_head(store: LedgerStore) -> Head:
    """Read the head; refuse a ledger that is visibly broken at its end.

    This much can be checked at every grant without reading the whole ledger.
    """
    if changed := store.changed_parts():
        raise tampered(f"{sorted(changed)[0]!r} of its database was changed")
    if store.has_forgotten():
        raise tampered("entries that were there are gone, or are others now")
    head, last = store.head(), store.last_entry()
    if head is None or last is None or head != (last.number, last.hash) or not last.is_sealed:
        raise tampered("its last entry was edited or removed")
    store.note(head)
    return head


def origin_of(store: LedgerStore) -> str:
    """Read the hash of the first entry, by which a ledger is known."""
    first = next(store.entries("number = 1"), None)
    if first is None:
        raise tampered("its first entry is gone")
    return first.hash


def hash_in(store: LedgerStore, number: int) -> str | None:
    """Read the hash of an entry; None if there is no such entry."""
    entry = next(store.entries("number = ?", number), None)
    return None if entry is None else entry.hash


def find_anchor(store: LedgerStore, after: int = 0) -> Path | None:
    """Find where the ledger has its anchor, as the last entry after `after` that sets one says."""
    found = None
    for entry in store.entries("kind IN ('create', 'anchor') AND number > ?", after):
        content = _read(entry)
        if isinstance(content, Created | Anchored) and isinstance(content.anchor, str):
            found = Path(content.anchor)
    return found


def lost_anchors(store: LedgerStore) -> list[int]:
    """List the entries by which an anchor was declared lost."""
    contents = [(entry.number, _read(entry)) for entry in store.entries("kind = 'anchor'")]
    return [number for number, body in contents if isinstance(body, Anchored) and body.lost]


def dataset_names(store: LedgerStore) -> tuple[str, ...]:
    """List the datasets in the order in which they were added."""
    return tuple(entry.dataset for entry in store.entries("kind = 'add'"))


def require_account(store: LedgerStore, dataset: str) -> Account:
    """Read how `dataset` stands; refuse one that the ledger does not have."""
    account = last_account(store, dataset)
    if account is None:
        if not (names := dataset_names(store)):
            raise InvalidParameter("the ledger has no dataset yet; add one with its cap first")
        require_known("dataset", dataset, names)
        raise tampered(f"the entries of {dataset!r} are not where they should be")
    return account


def last_account(store: LedgerStore, dataset: str) -> Account | None:
    """Read how `dataset` stands from its last entry, if it has one."""
    intact_head(store)
    last = store.last_entry(dataset)
    if last is None:
        return None
    follower = next(store.entries("number = ?", last.number + 1), None)
    if not last.is_sealed or (follower is not None and follower.previous != last.hash):
        raise tampered(f"entry {last.number} was edited")
    try:
        content = last.content()
        if isinstance(content, Totals):
            cap, spent = read_exact(content.cap), read_exact(content.spent)
            levels, hides = dict(read_levels(content.levels)), read_notion(content.hides)
            return Account(cap, spent, levels, hides)
    except ValueError:
        pass
    raise tampered(f"entry {last.number} cannot be read")


def find_grant(store: LedgerStore, grant: Grant) -> GrantStatus | None:
    """Look a grant up, and what became of it; None if it is not one of this ledger's."""
    if type(grant.entry) is not int or not 1 <= grant.entry < 2**63:  # what SQLite can hold
        return None
    entry = next(store.entries("number = ?", grant.entry), None)
    if entry is None or (entry.dataset, entry.hash) != (grant.dataset, grant.entry_hash):
        return None
    content = _read(entry)
    if not isinstance(content, Granted):
        return None
    status = granted(entry, content)
    for published in _published(store, f'"grant":{grant.entry},', after=grant.entry):
        if published.grant == grant.entry:
            return closed(status, published)
    return status


def is_release_known(store: LedgerStore, release_id: str) -> bool:
    """Return whether some release was recorded under this id."""
    found = _published(store, f'"release_id":{json.dumps(release_id)},')
    return any(published.release_id == release_id for published in found)


def add_up(entries: Iterable[Entry]) -> Account:
    """Add up the account of one dataset from all its entries."""
    books = Books()
    for entry in entries:
        for problem in books.enter(entry):
            raise tampered(f"entry {entry.number}: {problem}")
    (account,) = books.accounts.values()
    return account


def _published(store: LedgerStore, part: str, after: int = 0) -> Iterator[Published]:
    """Read the publications whose body, as `seal` writes it, has this part."""
    where = "kind = 'publish' AND number > ? AND instr(body, ?) > 0"
    for entry in store.entries(where, after, part):  # SQLite leaves the others out quickly
        content = _read(entry)
        if isinstance(content, Published):
            yield content


def _read(entry: Entry) -> Body:
    try:
        if entry.is_sealed:
            return entry.content()
    except ValueError:
        pass
    raise tampered(f"entry {entry.number} was edited")


def tampered(what: str) -> LedgerTampered:
    """Make the error for a ledger whose entries contradict each other."""
    return LedgerTampered(f"the ledger was tampered with: {what}; run `dpublish ledger verify`")
