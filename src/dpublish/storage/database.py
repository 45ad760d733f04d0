"""An open database, whatever keeps it: the verbs that a file and a server have in common.

Code that is written against `OpenDatabase` runs on `storage/sqlite.py` and on
`storage/postgres.py` alike.  Threads may share one; a process that was forked may not.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any
from weakref import WeakSet

from dpublish.errors import DPublishError


class OpenDatabase(ABC):
    """An open database: one thread uses it at a time, and no one while it is changed."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._is_in_use = False
        _OPEN.add(self)

    @property
    @abstractmethod
    def shown(self) -> str:
        """What messages call it: its path or its address, in one line and without secrets."""

    @abstractmethod
    def close(self) -> None:
        """Close it; harmless if that was done before."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """See everything as it is at one moment, whatever is written meanwhile."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Hold the only right to change it, all or nothing; durable when it ends."""

    @abstractmethod
    def explained(self) -> AbstractContextManager[None]:
        """Turn errors of the library that keeps it into advice."""

    @abstractmethod
    def unusable(self, advice: str) -> DPublishError:
        """Build the error for this database, in one line."""

    @abstractmethod
    def first(self, statement: str, *values: object) -> Any:
        """Return the first row of an answer; None if there is none."""

    @abstractmethod
    def rows(self, statement: str, *values: object) -> Iterator[Any]:
        """Iterate over the rows of an answer."""

    @abstractmethod
    def change(self, statement: str, *values: object) -> int:
        """Change something within a transaction that is open; return how many rows changed."""

    def hold(self) -> None:
        """Keep every thread from using it, until `let_go`."""
        self._lock.acquire()

    def let_go(self) -> None:
        """End `hold`."""
        self._lock.release()

    def abandon(self) -> None:  # noqa: B027 - a file has nothing to do
        """Let go of it in a child that was forked, so that the parent's use is not disturbed."""

    def _begun(self) -> None:  # noqa: B027 - for those who note it
        """Note that a transaction has begun."""

    def _committed(self) -> None:  # noqa: B027 - for those who note it
        """Note that a transaction has ended well."""


_OPEN: WeakSet[OpenDatabase] = WeakSet()
_HELD: list[OpenDatabase] = []


def _hold_all() -> None:
    # A child that is forked in the middle of a change, and closes the file when it ends, would
    # wait forever for the thread that was changing it, or take its change back.
    for database in list(_OPEN):
        database.hold()
        _HELD.append(database)


def _let_go_of_all() -> None:
    while _HELD:
        _HELD.pop().let_go()


def _abandon_all() -> None:
    for database in list(_HELD):
        database.abandon()
    _let_go_of_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_all, after_in_parent=_let_go_of_all, after_in_child=_abandon_all
    )
