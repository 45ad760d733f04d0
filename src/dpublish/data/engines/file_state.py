"""Notice that a file was changed while it was in use.

Columns are read in separate scans.  If the file changes in between, values of one person
would stand beside those of another.  When a file was written, and how long it is, are facts
about the file that whoever changed it knows; they are compared, never shown.
"""

import os
from collections.abc import Iterator
from typing import TypeVar

from dpublish.errors import UnreadableData

T = TypeVar("T")


class FileState:
    """Which file lies at a path, its length, and when it was written last."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = _look(path)

    def guard(self, rows: Iterator[T]) -> Iterator[T]:
        """Yield what is read from the file, unless the file is another now or at the end."""
        self.require_same()
        yield from rows
        self.require_same()

    def require_same(self) -> None:
        """Refuse a file that is another now."""
        if self._seen is None or _look(self._path) != self._seen:
            raise UnreadableData(f"{self._path} was changed while it was being read; open it anew")


def _look(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
