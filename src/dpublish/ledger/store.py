"""The store behind a ledger: entries that are only ever appended, and the lookups on them.

`sqlite_store.py` keeps them in a file, `postgres_store.py` on a server.  Triggers are a guard rail
for honest mistakes: the chain of hashes is what shows the work of someone who removes the rail.
Below the store stand the lookups that every grant needs: they read the end of the ledger, or one
entry, without adding all of it up.
"""

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from dpublish.errors import InvalidParameter, LedgerTampered, require_known
from dpublish.ledger.account import Account, Books, GrantStatus, closed, granted
from dpublish.ledger.chain import (
    Anchored,
    Body,
    Created,
    Entry,
    Granted,
    Head,
    Moved,
    Published,
    Statement,
    Totals,
    read_levels,
    read_notion,
    statement_in,
)
from dpublish.privacy.budget import Grant
from dpublish.privacy.epsilon import read_exact
from dpublish.storage.database import OpenDatabase

TABLES = frozenset({"entries", "head", "fingerprints"})
INSERT_ENTRY = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)"
INSERT_FINGERPRINT = "INSERT INTO fingerprints VALUES (?, ?, ?)"
CONTINUED = "complete"
"""What a closed ledger keeps with its last entry once it goes on elsewhere."""

_ENTRIES = (
    "SELECT number, time, kind, dataset, body, previous, hash FROM {table} "
    "WHERE {where} ORDER BY number"
)

Copied = tuple[Entry, tuple[str, str] | None]
"""An entry to be copied, with its fingerprint and seal if it has one."""


def seal_fingerprint(entry_hash: str, fingerprint: str) -> str:
    """Tie a fingerprint to its entry; unlike the entry's hash, this is never published."""
    return sha256(json.dumps([entry_hash, fingerprint]).encode("ascii")).hexdigest()


class LedgerStore(OpenDatabase):
    """An open ledger, wherever it is kept; its statements are the same text everywhere."""

    entries_table: ClassVar[str]
    """How statements name the table of entries."""
    body_contains: ClassVar[str]
    """The condition that an entry's body has a text within it."""

    _seen: Head | None = None  # the last head that was found in order, or written
    _noted: Head | None = None  # the same, as of the transaction that is under way
    _written: Entry | None = None  # what this transaction has appended
    intact: Head | None = None  # the head that this transaction has found in order

    @abstractmethod
    def raise_format(self, to: int) -> None:
        """Let programs that do not know of this format refuse the ledger; never lower it."""

    @abstractmethod
    def changed_parts(self) -> set[str]:
        """Name the tables and triggers that are not those of a ledger."""

    @abstractmethod
    def damage(self) -> list[str]:
        """Let the database check itself."""

    @abstractmethod
    def exposed(self) -> list[str]:
        """List how others could write the ledger past its guards."""

    def append(self, entry: Entry, fingerprint: str | None = None) -> None:
        """Add `entry` at the end, and look whether it is there."""
        self._written, self.intact = entry, None
        self._insert(INSERT_ENTRY, tuple(vars(entry).values()))
        if fingerprint is not None:
            self.attach(entry, fingerprint)
        if self.head() != (entry.number, entry.hash) or self.last_entry() != entry:
            raise LedgerTampered(f"the ledger {self.shown} does not keep what is written to it")
        self.note(Head(entry.number, entry.hash))

    def attach(self, entry: Entry, fingerprint: str) -> None:
        """Keep a text with the last entry, sealed to it, that no receipt's hash is made from."""
        sealed = seal_fingerprint(entry.hash, fingerprint)
        self._insert(INSERT_FINGERPRINT, (entry.number, fingerprint, sealed))

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

    def entries(self, where: str = "1 = 1", *values: object) -> Iterator[Entry]:
        """Read the entries that fulfill an SQL condition, in order."""
        for row in self.rows(self._select(where), *values):
            yield _read_entry(row)

    def last_entry(self, dataset: str | None = None) -> Entry | None:
        """Read the last entry, of one dataset or of all, from the end."""
        where, values = ("1 = 1", ()) if dataset is None else ("dataset = ?", (dataset,))
        query = self._select(where) + " DESC LIMIT 1"
        row = self.first(query, *values)
        return row and _read_entry(row)

    def fingerprints(self) -> dict[int, tuple[str, str]]:
        """Read the fingerprints and their seals by entry."""
        rows = self.rows("SELECT entry, fingerprint, seal FROM fingerprints")
        return {
            entry: (text, sealed) if isinstance(text, str) and isinstance(sealed, str) else ("", "")
            for entry, text, sealed in rows
        }

    def _select(self, where: str) -> str:
        return _ENTRIES.format(table=self.entries_table, where=where)

    def _insert(self, statement: str, row: tuple[object, ...]) -> None:
        if self.change(statement, *row) != 1:
            raise LedgerTampered(f"the ledger {self.shown} does not keep what is written to it")

    def _begun(self) -> None:
        self._noted, self._written, self.intact = self._seen, None, None

    def _committed(self) -> None:
        self._seen = self._noted


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

    This much can be checked at every grant without reading the whole ledger.  Within one
    transaction it is done once, and again when something was appended.
    """
    if store.intact is not None:
        return store.intact
    if changed := store.changed_parts():
        raise tampered(f"{sorted(changed)[0]!r} of its database was changed")
    if store.has_forgotten():
        raise tampered("entries that were there are gone, or are others now")
    head, last = store.head(), store.last_entry()
    if head is None or last is None or head != (last.number, last.hash) or not last.is_sealed:
        raise tampered("its last entry was edited or removed")
    store.note(head)
    store.intact = head
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


def find_move(store: LedgerStore) -> tuple[Entry, Moved] | None:
    """Find the entry by which the ledger was closed, if it was: it is the last one then."""
    last = store.last_entry()
    if last is None or last.kind != Moved.kind:
        return None
    content = _read(last)
    return (last, content) if isinstance(content, Moved) else None


def is_continued(store: LedgerStore) -> bool:
    """Return whether the ledger is closed, and known to have been complete where it goes on."""
    move = find_move(store)
    return move is not None and move[0].number in store.fingerprints()


def note_continued(store: LedgerStore) -> None:
    """Note for good, beside the chain, that the ledger is complete where it goes on.

    It is kept with the fingerprints: guarded as they are, and in no hash that the other ledger
    begins with.
    """
    move = find_move(store)
    if move is not None and not is_continued(store):
        store.attach(move[0], CONTINUED)


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


def find_statement(store: LedgerStore, dataset: str) -> Statement:
    """Read who publishes a dataset and whom to ask, as the last entry about that says."""
    found = Statement()
    for entry in store.entries("kind IN ('add', 'describe') AND dataset = ?", dataset):
        found = statement_in(_read(entry)) or found
    return found


def find_grant(store: LedgerStore, grant: Grant) -> GrantStatus | None:
    """Look a grant up, and what became of it; None if it is not one of this ledger's."""
    if type(grant.entry) is not int or not 1 <= grant.entry < 2**63:  # what databases can hold
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


def find_grants(store: LedgerStore, dataset: str, purpose: str) -> Iterator[GrantStatus]:
    """Look up the grants of a dataset that were made for exactly this purpose."""
    where = f"kind = 'grant' AND dataset = ? AND {store.body_contains}"
    for entry in store.entries(where, dataset, f'"purpose":{json.dumps(purpose)}'):
        status = find_grant(store, Grant(dataset, entry.number, entry.hash, entry.time))
        if status is not None and status.purpose == purpose:
            yield status


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
    where = f"kind = 'publish' AND number > ? AND {store.body_contains}"
    contents = map(_read, store.entries(where, after, part))  # the database leaves others out
    return (each for each in contents if isinstance(each, Published))


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
