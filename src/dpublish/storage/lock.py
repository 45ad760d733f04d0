"""A lock that ends with its holder, however that ends.

The system drops the lock when the process dies, so nothing has to be cleaned up after a kill.
It is not one of SQLite's: those are lost as soon as the process closes any other handle to the
file.
"""

import fcntl
import os
import time
from pathlib import Path

from dpublish.errors import InputError

_TRIES, _PAUSE = 5, 0.05  # whoever looks who holds the lock has it for a moment


class FileLock:
    """The right to change what a file holds; the lock is a file beside it, held until `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        try:
            self._handle: int | None = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError:
            raise InputError(
                f"{self._path} cannot be opened: you need to be allowed to write its folder"
            ) from None

    def take(self) -> bool:
        """Take the lock; False if another process, or this one, has it already."""
        if self._handle is None:
            raise InputError(f"{self._path} was closed; open the file again")
        for attempt in range(_TRIES):
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE if attempt < _TRIES - 1 else 0)
            except OSError:
                raise InputError(
                    f"{self._path} cannot be locked; keep it on a local disk"
                ) from None
            else:
                return True
        return False

    def close(self) -> None:
        """Release the lock; harmless if that was done before."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
