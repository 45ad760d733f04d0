"""Check a ledger from its first entry to its head, and against what was noted elsewhere."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dpublish.errors import InvalidParameter, LedgerTampered, LedgerUnavailable
from dpublish.ledger.account import Books
from dpublish.ledger.anchor import Anchor, AnchorBehind, AnchorForeign
from dpublish.ledger.chain import ORIGIN, Created, Entry, Granted, Head, Moved
from dpublish.ledger.store import (
    TABLES,
    LedgerStore,
    find_anchor,
    find_move,
    lost_anchors,
    seal_fingerprint,
)
from dpublish.privacy.epsilon import quoted

_REWRITTEN = "the ledger was rewritten, or set back to an older copy"
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found."""

    entries: int
    head: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    """What was kept elsewhere and agrees; without any, a cut-off end would not show."""
    anchor_problem: str | None = None
    """The problem that is the anchor's: it cannot be read, lacks entries or is foreign."""

    @property
    def is_intact(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


def verify_store(
    store: LedgerStore,
    expected_head: str | None,
    anchors: Iterable[tuple[int, str]],
    anchor_file: Path | None,
) -> Verification:
    """Follow the chain from its origin to its head and add its accounts up again."""
    _require_hash(expected_head)
    changed = store.changed_parts()
    problems = [
        f"{name!r} of the database was added, removed or changed" for name in sorted(changed)
    ]
    if changed & TABLES:
        return Verification(0, ORIGIN, tuple(problems))
    problems += store.damage()
    entries = list(store.entries())
    last = Head(0, ORIGIN)
    books = Books()
    for entry in entries:
        found = [*_link_problems(entry, last), *books.enter(entry)]
        problems += [f"entry {entry.number}: {problem}" for problem in found]
        last = Head(last.entries + 1, entry.hash)
    if store.has_forgotten():
        problems.append("entries that were there are gone, or are others now")
    if not entries or store.head() != last:
        problems.append("the head does not match the last entry: entries were removed or edited")
    noted = _compare_notes(entries, expected_head, anchors)
    anchored = _compare_anchor(store, entries, last, anchor_file)
    problems += noted.problems
    problems += anchored.problems
    problems += _fingerprint_problems(entries, store.fingerprints())
    return Verification(
        entries=last.entries,
        head=last.hash,
        problems=tuple(problems),
        warnings=(*store.exposed(), *_lost_warnings(store), *_move_warnings(store)),
        compared=(*noted.agrees, *anchored.agrees),
        anchor_problem=anchored.of_anchor,
    )


@dataclass
class _Compared:
    """What a comparison with something kept elsewhere has shown."""

    problems: list[str] = field(default_factory=list)
    agrees: list[str] = field(default_factory=list)
    of_anchor: str | None = None


def _require_hash(head: str | None) -> None:
    if head is not None and not _HASH.fullmatch(head):
        raise InvalidParameter(
            f"the head ({quoted(head)}) is not a hash: give the 64 characters (0-9, a-f) that "
            "`dpublish ledger verify` printed when it was noted down"
        )


def _lost_warnings(store: LedgerStore) -> list[str]:
    with suppress(LedgerTampered):  # an entry that was edited, which is reported by itself
        return [tell_lost(number) for number in lost_anchors(store)]
    return []


def _move_warnings(store: LedgerStore) -> list[str]:
    with suppress(LedgerTampered):  # an entry that was edited, which is reported by itself
        return [] if (move := find_move(store)) is None else [tell_move(*move)]
    return []


def tell_move(entry: Entry, move: Moved) -> str:
    """Report that a ledger was closed, and where it goes on."""
    return f"by entry {entry.number} it was moved to {move.to}, where all its entries are"


def tell_lost(number: int) -> str:
    """Report that an anchor could not be compared any more when another one was set."""
    return (
        f"by entry {number} the anchor until then was declared lost (--lost): no anchor shows "
        "whether entries before that one were cut off"
    )


def _link_problems(entry: Entry, last: Head) -> Iterator[str]:
    if entry.number != last.entries + 1:
        yield f"it should be number {last.entries + 1}: an entry was removed, inserted or moved"
    if (entry.number == 1) is not (entry.kind == Created.kind):
        yield "a ledger is created in its first entry, and only there"
    if entry.previous != last.hash:
        yield "it does not follow the entry before it"
    if not entry.is_sealed:
        yield "it was edited: its hash does not fit"


def _compare_notes(
    entries: list[Entry], expected_head: str | None, anchors: Iterable[tuple[int, str]]
) -> _Compared:
    """Compare with hashes that were noted down, and with those that receipts show."""
    found = _Compared()
    hashes = {entry.number: entry.hash for entry in entries}
    numbers = {entry.hash: entry.number for entry in entries}
    if expected_head in numbers:
        found.agrees.append(f"the noted head, which is entry {numbers[expected_head]}")
    elif expected_head is not None:
        found.problems.append(f"no entry has the expected hash: {_REWRITTEN}")
    for number, receipt_hash in anchors:
        if hashes.get(number) == receipt_hash:
            found.agrees.append(f"a receipt, which shows entry {number}")
        else:
            found.problems.append(
                f"entry {number} does not have the hash that its receipt shows: {_REWRITTEN}"
            )
    return found


def _compare_anchor(
    store: LedgerStore, entries: list[Entry], last: Head, named: Path | None
) -> _Compared:
    """Compare with the ledger's anchor, or with one that was named: maybe an old copy of it."""
    own = None
    with suppress(LedgerTampered):  # an entry that was edited, which is reported by itself
        own = find_anchor(store)
    path = own if named is None else named
    if path is None:
        return _Compared()
    anchor = Anchor(path)
    hashes = {entry.number: entry.hash for entry in entries}
    try:
        is_closed = bool(_move_warnings(store))
        origin = hashes.get(1, "")
        trail = anchor.check(origin, last, hashes.get, thorough=True, is_closed=is_closed)
    except AnchorBehind as problem:
        if path == own:
            return _Compared([str(problem)], of_anchor=str(problem))
        trail = anchor.read()
    except (AnchorForeign, LedgerUnavailable) as problem:
        return _Compared([str(problem)], of_anchor=str(problem))
    except LedgerTampered as problem:
        return _Compared([str(problem)])
    return _Compared(agrees=[f"{anchor.name}, up to entry {trail.last.entries}"])


def _fingerprint_problems(
    entries: list[Entry], fingerprints: dict[int, tuple[str, str]]
) -> Iterator[str]:
    hashes = {
        entry.number: entry.hash
        for entry in entries
        if _has_fingerprint(entry) or (entry.kind == Moved.kind and entry.number in fingerprints)
    }
    for number in sorted(hashes.keys() | fingerprints.keys()):
        fingerprint, sealed = fingerprints.get(number, ("", ""))
        if number not in hashes or sealed != seal_fingerprint(hashes[number], fingerprint):
            yield f"entry {number}: its fingerprint was added, removed or edited"


def _has_fingerprint(entry: Entry) -> bool:
    try:
        content = entry.content()
    except ValueError:
        return False
    return isinstance(content, Granted) and content.fingerprinted
