"""Look things up at the end of a ledger, or in one entry, without adding all of it up."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from dpublish.errors import InvalidParameter, LedgerTampered, require_known
from dpublish.ledger.account import (
    Account,
    Books,
    GrantStatus,
    closed,
    granted,
)
from dpublish.ledger.chain import (
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
from dpublish.ledger.store import LedgerStore
from dpublish.privacy.budget import Grant
from dpublish.privacy.epsilon import read_exact


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
    """Say whether some release was recorded under this id."""
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
