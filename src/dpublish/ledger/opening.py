"""Where a ledger is kept: in a file, or on a PostgreSQL server that a team shares."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dpublish.errors import InvalidParameter, InvalidType
from dpublish.ledger.chain import Entry
from dpublish.ledger.sqlite_store import SqliteDraft, SqliteStore
from dpublish.ledger.store import Copied, LedgerStore
from dpublish.storage.address import is_address, read_address

Location = str | os.PathLike[str]
"""A path, or an address such as `postgresql://db.example.org/books`."""


def open_store(location: Location, wait_seconds: float) -> LedgerStore:
    """Open the ledger at a path or an address."""
    require_location(location)
    if isinstance(location, str) and is_address(location):
        from dpublish.ledger.postgres_store import PostgresStore

        return PostgresStore(read_address(location), wait_seconds)
    return SqliteStore(Path(location), wait_seconds)


def require_location(location: object) -> None:
    """Refuse what is neither a path nor an address."""
    if not isinstance(location, (str, os.PathLike)):
        given = "None" if location is None else f"an object of type {type(location).__name__}"
        raise InvalidType(
            'a ledger is a file, such as "books.db", or an address, such as '
            f'"postgresql://db.example.org/books", not {given}'
        )


def create_store(
    location: Location, first: Entry, *, writers: Sequence[str], readers: Sequence[str]
) -> None:
    """Make a new ledger at a path or an address."""
    if isinstance(location, str) and is_address(location):
        from dpublish.ledger.postgres_store import PostgresStore

        PostgresStore.create(read_address(location), first, writers, readers)
        return
    _require_no_roles(writers, readers)
    SqliteStore.create(Path(location), first)


class Draft(Protocol):
    """A ledger that is being made."""

    def fill(self, entries: Iterable[Copied]) -> None:
        """Write the entries of a ledger that goes on here."""


@contextmanager
def drafting(
    location: Location, *, writers: Sequence[str], readers: Sequence[str]
) -> Iterator[Draft]:
    """Make a ledger for entries of another one; it is there, whole, if the block ends well.

    What can be refused is refused at the beginning, before anything is done to the other one.
    """
    if isinstance(location, str) and is_address(location):
        from dpublish.ledger.postgres_store import PostgresStore

        with PostgresStore.drafting(read_address(location), writers, readers) as draft:
            yield draft
        return
    _require_no_roles(writers, readers)
    yield SqliteDraft(Path(location))


def _require_no_roles(writers: Sequence[str], readers: Sequence[str]) -> None:
    """Refuse roles for a ledger in a file."""
    if writers or readers:
        raise InvalidParameter(
            "writers and readers are roles of a PostgreSQL server; a ledger in a file belongs to "
            "whoever may write the file"
        )
