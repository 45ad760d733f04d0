"""The history of a dataset: what was entered, when, and what was left after it.

`Status` says how a dataset stands.  Its history says how it came to that: caps that were set and
changed, every grant with its purpose and what became of it, and what was left after each.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpublish.ledger.account import Account, Books, GrantStatus
from dpublish.ledger.chain import (
    Added,
    CapChanged,
    Entry,
    Granted,
    Published,
    Statement,
    Totals,
    statement_in,
)
from dpublish.ledger.store import tampered
from dpublish.privacy.epsilon import format_epsilon, format_short, read_exact
from dpublish.privacy.levels import tell_list


@dataclass(frozen=True)
class Event:
    """One entry about a dataset, and how the account stood after it.

    With levels, epsilon, cap, spent and left are those of the highest level.

    Attributes:
        entry: The number of the entry.
        time: When it was entered, in UTC.
        kind: add, describe, cap, grant or publish.
        what: What was entered, in words: a purpose, a reason, the id of a release.
        cap: What could be spent in all.
        spent: What was spent by then, this entry included.
        grant: The grant that was made, and what has become of it since; None for other entries.
    """

    entry: int
    time: str
    kind: str
    what: str
    cap: Fraction
    spent: Fraction
    grant: GrantStatus | None = None

    @property
    def left(self) -> Fraction:
        """What was left after it."""
        return self.cap - self.spent

    def to_dict(self) -> dict[str, Any]:
        """Turn the event into plain values."""
        amounts = {"cap": self.cap, "spent": self.spent, "left": self.left}
        told: dict[str, Any] = {
            "entry": self.entry,
            "time": self.time,
            "kind": self.kind,
            "what": self.what,
            **{name: format_epsilon(amount) for name, amount in amounts.items()},
        }
        return told if self.grant is None else told | {"grant": self.grant.to_dict()}


def history_of(entries: Iterable[Entry]) -> tuple[Event, ...]:
    """Read the history of one dataset from all its entries, in their order."""
    books, known = Books(), []
    for entry in entries:
        for problem in books.enter(entry):
            raise tampered(f"entry {entry.number}: {problem}")
        known.append((entry, entry.content()))
    (account,) = books.accounts.values()
    return tuple(_events(known, account))


def _events(known: Iterable[tuple[Entry, Any]], account: Account) -> Iterator[Event]:
    for entry, content in known:
        if isinstance(content, Totals):
            yield Event(
                entry=entry.number,
                time=entry.time,
                kind=entry.kind,
                what=_told(content, account),
                cap=read_exact(content.cap),
                spent=read_exact(content.spent),
                grant=account.grants.get(entry.number),
            )


def _told(content: Totals, account: Account) -> str:
    if isinstance(content, Granted):
        return content.purpose
    if isinstance(content, Published):
        return f"published for entry {content.grant}: release {content.release_id}"
    cap = format_short(read_exact(content.cap))
    if isinstance(content, CapChanged):
        return f"cap changed to {cap}: {content.reason}"
    stated = statement_in(content) or Statement()
    words = [f"{name}: {text}" for name, text in stated._asdict().items() if text]
    if not isinstance(content, Added):
        return "; ".join(words) or "publisher and contact taken back"
    levels = [*map(format_short, account.levels)]
    added = f"added with levels {tell_list(levels)}" if levels else f"added with a cap of {cap}"
    return "; ".join([f"{added}: {content.note}" if content.note else added, *words])
