"""One operator at a time: a lock that ends with its holder, however that ends.

The system drops the lock when the process dies, so nothing has to be cleaned up after a kill.
It is not one of SQLite's: those are lost as soon as the process closes any other handle to the
file.  Where locks do not work at all (some network disks), the state file still refuses the
step of an operator who is no longer the last one that opened it.
"""

import fcntl
import os
import time
from contextlib import closing
from pathlib import Path

from dpublish.errors import InputError
from dpublish.publishing.streams.state import StreamFile

_LOOKS, _PAUSE = 5, 0.05  # whoever asks who holds the lock has it for a moment


class StreamLock:
    """The right to move a stream on; held until `close`."""

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
            raise InputError(f"{self._path} was let go of; open the stream again")
        for look in range(_LOOKS):
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE if look < _LOOKS - 1 else 0)
            except OSError:
                raise InputError(
                    f"{self._path} cannot be locked; keep it on a local disk"
                ) from None
            else:
                return True
        return False

    def close(self) -> None:
        """Let go; harmless if that was done before."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def hold(path: Path) -> StreamLock:
    """Take the lock of a stream, or say who has it."""
    lock = StreamLock(path)
    try:
        if not lock.take():
            raise InputError(f"another operator is at work on {path}{_holder(path)}")
    except BaseException:
        lock.close()
        raise
    return lock


def _holder(path: Path) -> str:
    try:
        with closing(StreamFile(path)) as file:
            about = file.operator()
    except InputError:
        return ""
    return ": process {pid} on {host}, since {since}".format(**about) if about else ""
