"""How a dataset stands: the last of its entries states it, and all of them add up to it.

Every entry about a dataset states its cap and what is spent.  Granting reads the last one,
verifying adds all of them up again from the first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpublish.errors import LedgerTampered
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.ledger_chain import (
    Added,
    CapChanged,
    Entry,
    Granted,
    Head,
    Published,
    Totals,
    read_exact,
)
from dpublish.privacy.ledger_store import LedgerStore


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

    def enter(self, entry: Entry) -> Iterator[str]:
        """Enter the next entry and say what is wrong with it."""
        try:
            content = entry.content()
            if isinstance(content, Totals):
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
            epsilon = read_exact(content.epsilon)
            account.spent += epsilon
            account.grants[entry.number] = GrantStatus(
                entry.number, entry.time, epsilon, content.purpose, content.fingerprinted
            )
        elif isinstance(content, Published):
            yield from self._published(account, content)
        if (cap, spent) != (account.cap, account.spent):
            yield "its totals are not what the entries before it add up to"
        if account.spent > account.cap:
            yield f"{entry.dataset!r} has spent more than its cap"

    def _published(self, account: Account, content: Published) -> Iterator[str]:
        grant = account.grants.get(content.grant)
        if grant is None or grant.release_id is not None:
            yield f"entry {content.grant} is no grant of this dataset that waits for its release"
            return
        account.grants[content.grant] = replace(
            grant, release_id=content.release_id, release_hash=content.release_hash
        )


def intact_head(store: LedgerStore) -> Head:
    """Read the head; refuse a ledger that is visibly broken at its end.

    This much can be checked at every grant without reading the whole ledger.
    """
    if changed := store.changed_parts():
        raise tampered(f"{sorted(changed)[0]!r} of its database was changed")
    head, last = store.head(), store.last_entry()
    if head is None or last is None or head != (last.number, last.hash) or not last.is_sealed:
        raise tampered("its last entry was edited or removed")
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


def is_published(store: LedgerStore, dataset: str, grant: int) -> bool:
    """Look for the publication of a grant among the entries after it."""
    later = store.entries("dataset = ? AND kind = 'publish' AND number > ?", dataset, grant)
    return any(content.grant == grant for content in _published(later))


def publications(store: LedgerStore) -> dict[str, str]:
    """Collect the hashes of published releases by the releases' ids."""
    entries = store.entries("kind = 'publish'")
    return {content.release_id: content.release_hash for content in _published(entries)}


def add_up(entries: Iterable[Entry]) -> Account:
    """Add up the account of one dataset from all its entries."""
    books = Books()
    for entry in entries:
        for problem in books.enter(entry):
            raise tampered(f"entry {entry.number}: {problem}")
    (account,) = books.accounts.values()
    return account


def _published(entries: Iterable[Entry]) -> Iterator[Published]:
    for entry in entries:
        try:
            content = entry.content()
        except ValueError:
            raise tampered(f"entry {entry.number} cannot be read") from None
        if isinstance(content, Published):
            yield content


def tampered(what: str) -> LedgerTampered:
    """Make the error for a ledger whose entries contradict each other."""
    return LedgerTampered(f"the ledger was tampered with: {what}; run `dpublish ledger verify`")
