"""Notice that a file was changed while it was in use.

Columns are read in separate scans.  If the file changes in between, values of one person
would stand beside those of another.  When a file was written, and how long it is, are facts
about the file that whoever changed it knows; they are compared, never shown.
"""

import os
from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from dpublish.errors import UnreadableData

T = TypeVar("T")


def look_at(path: str) -> Hashable | None:
    """Return which file of this machine lies at a path, its length, and when it was written."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class FileState:
    """What `look` saw at a path when it was opened; for a file that is gone it sees None."""

    def __init__(self, path: str, look: Callable[[str], Hashable | None] = look_at) -> None:
        self._path = path
        self._look = look
        self._seen = look(path)

    def guard(self, rows: Iterator[T]) -> Iterator[T]:
        """Yield what is read from the file, unless the file is another now or at the end."""
        self.require_same()
        yield from rows
        self.require_same()

    def require_same(self) -> None:
        """Refuse a file that is another now."""
        if self._seen is None or self._look(self._path) != self._seen:
            raise UnreadableData(f"{self._path} was changed while it was being read; open it anew")
