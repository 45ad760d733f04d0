"""An anchor: a second file, kept elsewhere, that knows how far a ledger goes.

Whoever may write a ledger can cut off its last entries and set its head back.  What is left is
in order, and the budget of the lost entries is there again.  The anchor lies where they cannot
write, or can only append, and every change of the ledger is written to it twice:

    dpublish-anchor-1 HASH-OF-THE-FIRST-ENTRY
    prepared 5 HASH TIME
    committed 5 HASH TIME

`prepared` is on its disk before the ledger commits the entry, `committed` after that and before
anything is done with it, such as handing out a budget.  So an entry that was prepared and is not
in the ledger was interrupted and never used; one that was committed and is not there was cut off.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dpublish.errors import LedgerTampered, LedgerUnavailable
from dpublish.ledger.chain import Entry, Head
from dpublish.storage.files import printable

_NAME = "dpublish-anchor-1"
_HEADER = re.compile(rf"{_NAME} ([0-9a-f]{{64}})", re.ASCII)
_LINE = re.compile(r"(prepared|committed) ([1-9]\d{0,17}) ([0-9a-f]{64}) \S+", re.ASCII)

HashOf = Callable[[int], str | None]
"""The hash of a ledger's entry by its number; None if there is no such entry."""


@dataclass(frozen=True)
class Trail:
    """What an anchor says: which ledger it is of, and what was prepared and committed."""

    origin: str
    prepared: frozenset[Head]
    committed: tuple[Head, ...]

    @property
    def last(self) -> Head:
        """The last entry that was committed."""
        return max(self.committed)

    def until(self, head: Head) -> "Trail":
        """Leave out what was committed after `head`, where the ledger goes on elsewhere."""
        known = tuple(each for each in self.committed if each.entries <= head.entries)
        return replace(self, committed=known or self.committed)

    def missing(self, head: Head, hash_of: HashOf, *, thorough: bool) -> str | None:
        """Return which entry that was committed the ledger lacks or has changed, if there is one.

        An entry's hash covers all before it, so the last one tells whether there is.
        """
        last = self.last.entries
        for number, known in sorted(self.committed):
            is_old = number < last and number <= head.entries
            if not (is_old and not thorough) and hash_of(number) != known:
                return self._tell(number, head)
        return None

    def _tell(self, number: int, head: Head) -> str:
        if number <= head.entries:
            return f"entry {number} is not the one that was committed: the ledger was rewritten"
        first, last = head.entries + 1, self.last.entries
        told = f"entry {last} is" if first == last else f"entries {first} to {last} are"
        return (
            f"{told} gone: the end of the ledger was cut off, or it was replaced by an "
            "older copy; put the newest back"
        )

    def is_behind(self, head: Head) -> bool:
        """Whether the ledger has entries that were never written here."""
        if head.entries == self.last.entries + 1:
            return head not in self.prepared  # if it is, committing it was interrupted
        return head.entries > self.last.entries


class Anchor:
    """The anchor of a ledger, at one path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """The anchor's path, for messages."""
        return f"the anchor {printable(self.path)}"

    def create(self, origin: str, entry: Entry) -> None:
        """Make the file for the ledger whose first entry has the hash `origin`."""
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        with self._explained("created"):
            file = os.open(self.path, flags, 0o600)
            try:
                _write(file, f"{_NAME} {origin}\n{_line('committed', entry)}")
            finally:
                os.close(file)
            _sync_folder(self.path.parent)

    def prepare(self, entry: Entry) -> None:
        """Announce an entry that is about to be committed."""
        self._append(_line("prepared", entry))

    def commit(self, entry: Entry) -> None:
        """Note that an entry was committed; only then may it be used."""
        self._append(_line("committed", entry))

    def read(self) -> Trail:
        """Read the file; lines that were torn by a power cut do not count."""
        with self._explained("read"):
            file = _open_plain(self.path, os.O_RDONLY)
            with os.fdopen(file, encoding="ascii", errors="replace") as lines:
                header, *others = lines.read().split("\n")
        known = _HEADER.fullmatch(header)
        found = [match.groups() for match in map(_LINE.fullmatch, others) if match]
        prepared = frozenset(Head(int(n), x) for kind, n, x in found if kind == "prepared")
        committed = tuple(Head(int(n), x) for kind, n, x in found if kind == "committed")
        if known is None or not committed:
            raise LedgerUnavailable(f"{self.name} is some other file, or was damaged")
        return Trail(known[1], prepared, committed)

    def check(
        self,
        origin: str,
        head: Head,
        hash_of: HashOf,
        *,
        thorough: bool = False,
        is_closed: bool = False,
    ) -> Trail:
        """Refuse a ledger that has lost or changed what was committed here.

        One that `is_closed` goes on elsewhere, so that this anchor may know of later entries.
        """
        trail = self.read().until(head) if is_closed else self.read()
        if trail.origin != origin:
            raise AnchorForeign(
                f"{self.name} belongs to another ledger: the wrong file was named, or the whole "
                "ledger was exchanged for another; compare it with the releases it paid for "
                "(dpublish ledger verify LEDGER --release FOLDER)"
            )
        if problem := trail.missing(head, hash_of, thorough=thorough):
            raise LedgerTampered(f"by {self.name}, {problem}")
        if trail.is_behind(head):
            raise AnchorBehind(
                f"{self.name} ends at entry {trail.last.entries}, and the ledger at entry "
                f"{head.entries}: it was set back, or is a copy; restore the newest, or "
                "set another anchor (dpublish ledger anchor LEDGER FILE --lost)"
            )
        return trail

    def _append(self, line: str) -> None:
        with self._explained("written"):
            file = _open_plain(self.path, os.O_RDWR | os.O_APPEND)
            try:
                size = os.fstat(file).st_size
                is_torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
                _write(file, "\n" + line if is_torn else line)
            finally:
                os.close(file)

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise LedgerUnavailable(f"{self.name} exists already; name another file") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no file can have this name"
            raise LedgerUnavailable(f"{self.name} cannot be {done}: {why}") from None


class AnchorBehind(LedgerTampered):
    """An anchor lacks entries that the ledger has."""


class AnchorForeign(LedgerTampered):
    """An anchor is of another ledger."""


def _line(kind: str, entry: Entry) -> str:
    return f"{kind} {entry.number} {entry.hash} {entry.time}\n"


def _open_plain(path: Path, flags: int) -> int:
    """Open a regular file; a pipe or a device could wait forever, or be anything."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(0, "it is no ordinary file")


def _write(file: int, text: str) -> None:
    content = text.encode("ascii")
    if os.write(file, content) != len(content):
        raise OSError(0, "the disk is full")
    os.fsync(file)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
