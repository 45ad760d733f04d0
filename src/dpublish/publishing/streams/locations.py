"""Open the state of a stream where it is kept: in a file, or on a PostgreSQL server.

A location is the path of a file or an address (`storage/address.py`), as `whole_location` writes
it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpublish.publishing.streams.lease import Claim
from dpublish.publishing.streams.server_state import StreamSchema
from dpublish.publishing.streams.state import StreamFile, StreamStore, hold
from dpublish.storage.address import is_address, read_address


def open_state(location: str) -> StreamStore:
    """Open a state to look at it, whoever has the stream."""
    if is_address(location):
        return StreamSchema(read_address(location))
    return StreamFile(Path(location))


def take_state(location: str, claim: Claim) -> StreamStore:
    """Open a state for an operator, who has the stream until it is closed."""
    if is_address(location):
        return StreamSchema.take(read_address(location), claim)
    path = Path(location)
    StreamFile.kind.identify(path)  # before a lock is left beside what is not there
    return _take_file(path, claim, lambda: None)


def make_state(
    location: str, claim: Claim, describe: Callable[[], Mapping[str, Any]]
) -> tuple[StreamStore, bool]:
    """Open a state for an operator, or make one that holds what `describe` returns.

    Returns also whether it was made.
    """
    if is_address(location):
        address = read_address(location)
        is_new = not StreamSchema.exists(address)
        if is_new:
            StreamSchema.create(address, describe())
        return StreamSchema.take(address, claim), is_new
    path, made = Path(location), []

    def make() -> None:
        if not path.exists():
            StreamFile.create(path, describe()).close()
            made.append(path)

    return _take_file(path, claim, make), bool(made)


def _take_file(path: Path, claim: Claim, prepare: Callable[[], None]) -> StreamFile:
    lock = hold(path, claim)
    try:
        prepare()
        return StreamFile.take(path, lock)
    except BaseException:
        lock.close()
        raise
