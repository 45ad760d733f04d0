"""Check a ledger from its first entry to its head, and against what was noted elsewhere."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dpublish.errors import LedgerTampered, LedgerUnavailable
from dpublish.privacy.ledger_account import Books
from dpublish.privacy.ledger_anchor import Anchor, AnchorBehind
from dpublish.privacy.ledger_chain import ORIGIN, Created, Entry, Granted, Head
from dpublish.privacy.ledger_file import others_may_write
from dpublish.privacy.ledger_lookup import find_anchor
from dpublish.privacy.ledger_schema import TABLES
from dpublish.privacy.ledger_store import LedgerStore, seal_fingerprint

_REWRITTEN = "the ledger was rewritten, or set back to an older copy"


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found."""

    entries: int
    head: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

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
    problems += _anchor_problems(entries, expected_head, anchors)
    problems += _file_problems(store, entries, last, anchor_file)
    problems += _fingerprint_problems(entries, store.fingerprints())
    warnings = others_may_write(store.path)
    return Verification(last.entries, last.hash, tuple(problems), tuple(warnings))


def _link_problems(entry: Entry, last: Head) -> Iterator[str]:
    if entry.number != last.entries + 1:
        yield f"it should be number {last.entries + 1}: an entry was removed, inserted or moved"
    if (entry.number == 1) is not (entry.kind == Created.kind):
        yield "a ledger is created in its first entry, and only there"
    if entry.previous != last.hash:
        yield "it does not follow the entry before it"
    if not entry.is_sealed:
        yield "it was edited: its hash does not fit"


def _anchor_problems(
    entries: list[Entry], expected_head: str | None, anchors: Iterable[tuple[int, str]]
) -> Iterator[str]:
    hashes = {entry.number: entry.hash for entry in entries}
    if expected_head is not None and expected_head not in hashes.values():
        yield f"no entry has the expected hash: {_REWRITTEN}"
    for number, receipt_hash in anchors:
        if hashes.get(number) != receipt_hash:
            yield f"entry {number} does not have the hash that its receipt shows: {_REWRITTEN}"


def _file_problems(
    store: LedgerStore, entries: list[Entry], last: Head, named: Path | None
) -> Iterator[str]:
    """Compare with the ledger's anchor, or with one that was named: maybe an old copy of it."""
    own = None
    with suppress(LedgerTampered):  # an entry that was edited, which is reported by itself
        own = find_anchor(store)
    path = own if named is None else named
    if path is None:
        return
    hashes = {entry.number: entry.hash for entry in entries}
    try:
        Anchor(path).check(hashes.get(1, ""), last, hashes.get, thorough=True)
    except AnchorBehind as problem:
        if path == own:
            yield str(problem)
    except (LedgerTampered, LedgerUnavailable) as problem:
        yield str(problem)


def _fingerprint_problems(
    entries: list[Entry], fingerprints: dict[int, tuple[str, str]]
) -> Iterator[str]:
    hashes = {entry.number: entry.hash for entry in entries if _has_fingerprint(entry)}
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
