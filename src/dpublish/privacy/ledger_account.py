"""How a dataset stands: the last of its entries states it, and all of them add up to it.

Every entry about a dataset states its cap and what is spent.  Granting reads the last one,
verifying adds all of them up again from the first.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpublish.errors import LedgerTampered
from dpublish.privacy.budget import Grant
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.ledger_chain import (
    Added,
    Body,
    CapChanged,
    Entry,
    Granted,
    Head,
    Published,
    Totals,
    read_exact,
)
from dpublish.privacy.ledger_store import LedgerStore
from dpublish.privacy.ledger_text import is_one_line


@dataclass(frozen=True)
class GrantStatus:
    """A grant and what became of it."""

    entry: int
    time: str
    epsilon: Fraction
    purpose: str
    fingerprinted: bool = False
    fingerprint: str | None = None
    release_id: str | None = None
    release_hash: str | None = None

    @property
    def state(self) -> str:
        """Say whether its release was published; if not, the grant stays debited all the same."""
        return "interrupted or running" if self.release_id is None else "published"

    def to_plain(self) -> dict[str, Any]:
        """Turn the grant into plain values, without its fingerprint."""
        plain = asdict(self) | {"epsilon": format_epsilon(self.epsilon), "state": self.state}
        del plain["fingerprint"]
        return plain


@dataclass
class Account:
    """What one dataset may spend and has spent, added up from its entries."""

    cap: Fraction
    spent: Fraction = Fraction(0)
    grants: dict[int, GrantStatus] = field(default_factory=dict)

    @property
    def left(self) -> Fraction:
        """How much may still be granted."""
        return self.cap - self.spent


@dataclass(frozen=True)
class Status:
    """How a dataset stands: what it may spend, what is debited, and for what."""

    dataset: str
    cap: Fraction
    spent: Fraction
    grants: tuple[GrantStatus, ...]

    @property
    def left(self) -> Fraction:
        """How much may still be granted."""
        return self.cap - self.spent

    def to_plain(self) -> dict[str, Any]:
        """Turn the status into plain values; fingerprints stay behind, being made from rows."""
        amounts = {"cap": self.cap, "spent": self.spent, "left": self.left}
        return {
            "dataset": self.dataset,
            **{name: format_epsilon(amount) for name, amount in amounts.items()},
            "grants": [grant.to_plain() for grant in self.grants],
        }


@dataclass
class Books:
    """Every dataset's account, kept by entering one entry after the other."""

    accounts: dict[str, Account] = field(default_factory=dict)
    release_ids: set[str] = field(default_factory=set)

    def enter(self, entry: Entry) -> Iterator[str]:
        """Enter the next entry and say what is wrong with it."""
        try:
            content = entry.content()
            if isinstance(content, Totals):
                yield from _text_problems(entry, content)
                yield from self._changed(entry, content)
        except ValueError as error:
            yield f"its contents cannot be read ({error})"

    def _changed(self, entry: Entry, content: Totals) -> Iterator[str]:
        cap, spent = read_exact(content.cap), read_exact(content.spent)
        known = self.accounts.get(entry.dataset)
        if (known is None) is not isinstance(content, Added):
            yield f"{entry.dataset!r} must be added before it is used, and once"
        account = self.accounts.setdefault(entry.dataset, Account(cap))
        if isinstance(content, CapChanged):
            account.cap = cap
        elif isinstance(content, Granted):
            grant = _granted(entry, content)
            account.spent += grant.epsilon
            account.grants[entry.number] = grant
        elif isinstance(content, Published):
            yield from self._published(account, content)
        if (cap, spent) != (account.cap, account.spent):
            yield "its totals are not what the entries before it add up to"
        if account.spent > account.cap:
            yield f"{entry.dataset!r} has spent more than its cap"

    def _published(self, account: Account, content: Published) -> Iterator[str]:
        if content.release_id in self.release_ids:
            yield "it records a release whose id was recorded before"
        self.release_ids.add(content.release_id)
        grant = account.grants.get(content.grant)
        if grant is None or grant.release_id is not None:
            yield f"entry {content.grant} is no grant of this dataset that waits for its release"
            return
        account.grants[content.grant] = _close(grant, content)


def _text_problems(entry: Entry, content: Totals) -> Iterator[str]:
    texts = {"time": entry.time, "dataset": entry.dataset}
    for name in ("note", "reason", "purpose", "release_id", "release_hash"):
        texts[name] = getattr(content, name, "none")
    texts["note"] = texts["note"] or "none"  # the one that may be empty
    for name, text in texts.items():
        if not is_one_line(text):
            yield f"its {name} is not one line of text"


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
            return Account(read_exact(content.cap), read_exact(content.spent))
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
    status = _granted(entry, content)
    for published in _published(store, f'"grant":{grant.entry},', after=grant.entry):
        if published.grant == grant.entry:
            return _close(status, published)
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


def _granted(entry: Entry, content: Granted) -> GrantStatus:
    epsilon = read_exact(content.epsilon)
    return GrantStatus(entry.number, entry.time, epsilon, content.purpose, content.fingerprinted)


def _close(grant: GrantStatus, content: Published) -> GrantStatus:
    return replace(grant, release_id=content.release_id, release_hash=content.release_hash)


def tampered(what: str) -> LedgerTampered:
    """Make the error for a ledger whose entries contradict each other."""
    return LedgerTampered(f"the ledger was tampered with: {what}; run `dpublish ledger verify`")
