"""The state of a stream: all that it needs to go on, changed by one transaction a step.

A step's line and its file of counts lie in the outbox, in the same transaction as the state
that the step led to, until they are in the release folder.  What is read back is checked: a
state that does not hold what was written is called damaged, and nothing of it is repeated.

It is kept in a file (here) or on a server (`server_state`).  It holds secrets: the noise of
thresholds that are still in use.  So a file is readable by its owner only, what is replaced is
overwritten, and no message repeats what it holds.
"""

import json
import os
import secrets
import socket
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from dpublish.data import schema_file
from dpublish.errors import InputError, InvalidParameter
from dpublish.methods.streams.listing import StepRecord
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.stream import Stream, StreamState
from dpublish.publishing.state_file import (
    METADATA,
    RUNNING,
    STARTING,
    STOPPED,
    StateFile,
    StoredState,
)
from dpublish.publishing.streams.lease import Claim
from dpublish.storage.files import printable
from dpublish.storage.lock import FileLock
from dpublish.storage.sqlite import FileKind

__all__ = [
    "RUNNING",
    "STARTING",
    "STOPPED",
    "StreamFile",
    "StreamStore",
    "TakenOver",
    "Undelivered",
    "hold",
]

_TABLES = (
    METADATA,
    "CREATE TABLE arrays (name TEXT PRIMARY KEY, type TEXT, shape TEXT, data BLOB)",
    """CREATE TABLE steps (number INTEGER PRIMARY KEY, time TEXT NOT NULL UNIQUE,
        line BLOB NOT NULL, stop INTEGER NOT NULL)""",
    "CREATE TABLE outbox (number INTEGER PRIMARY KEY, content BLOB NOT NULL)",
)
_STATE = FileKind(
    noun="the state file",
    content="the state of a stream",
    maker="dpublish stream start",
    application=0x6450_5331,  # "dPS1"
    format=3,  # 2 had one variance for all scales of an estimate, 1 was that of dpublish 0.1
    tables=_TABLES,
    error=InputError,
    is_secret=True,
    older=(
        "of an older dpublish, which this version does not read: go on with the version of "
        "dpublish that started the stream"
    ),
)


class Undelivered(NamedTuple):
    """A step that is done, but not known to be in the release folder."""

    number: int
    line: bytes
    start: int
    content: bytes
    file: str


class TakenOver(InputError):
    """Another operator has the stream now."""


class StreamStore(StoredState):
    """An open state of a stream, wherever it is kept; its statements are the same everywhere.

    An operator's store keeps the stream for it until it is closed.
    """

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders on this machine in which it grows."""
        return ()

    @abstractmethod
    def require_held(self) -> None:
        """Refuse to go on if another operator has taken the stream over."""

    @abstractmethod
    def settled(self, ledger: str) -> None:
        """Note that an operator goes on with this ledger."""

    @abstractmethod
    def holder(self) -> dict[str, Any] | None:
        """Return who is at work on the stream; None if no one is."""

    @abstractmethod
    def discard(self) -> None:
        """Remove the state of a stream that was not started after all."""

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change the state, all or nothing; refused if another operator has taken it over."""
        with self.writing():
            self.require_held()
            yield

    def confirm(self) -> None:
        """Make sure that all that was changed before is as durable as a change must be."""
        with self.changing():
            pass

    def put(self, **metadata: Any) -> None:
        """Write values under their names; durable when it returns."""
        with self.changing():
            self._put(metadata)

    def moved_on(self) -> TakenOver:
        """Build the error for an operator who no longer has the stream."""
        return TakenOver(
            f"another operator has moved {self.shown} on, and brings what is done to the folder; "
            "open it again"
        )

    def state(self) -> StreamState:
        """Read the state of the stream."""
        with self.checked():
            arrays = {
                name: np.frombuffer(data, dtype=kind).reshape(json.loads(shape)).copy()
                for name, kind, shape, data in self.rows("SELECT * FROM arrays")
            }
            return StreamState(self.metadata("public"), self.metadata("secret"), arrays)

    def stream(self) -> Stream:
        """Open the stream as the state has it."""
        with self.checked():
            method = make_stream_method(self.text("method"), self.metadata("settings"))
            schema = schema_file.from_dict(self.metadata("schema"))
            receipt = self.receipt()
            stream = method.resume(schema, self.state(), receipt)
            estimate = stream.estimate
            fits = estimate is None or estimate.shape == (stream.bins.size,)
        if not fits or stream.number != self.steps:
            raise self.damaged()
        return stream

    def begin(self, state: StreamState, **metadata: Any) -> None:
        """Write the state of a stream that is paid for and has no step yet."""
        with self.changing():
            self._put_state(state)
            self._put(metadata)

    def commit_step(
        self, state: StreamState, *, number: int, time: str, line: bytes, content: bytes
    ) -> None:
        """Write a step, the state it led to and what is to be published, all or nothing.

        Refused if another operator has taken the stream over, or has made this step.
        """
        with self.changing():
            if number != self.steps + 1:
                raise self.moved_on()
            self._put_state(state)
            stop = self.length + len(line)
            self.change("INSERT INTO steps VALUES (?, ?, ?, ?)", number, time, line, stop)
            self.change("INSERT INTO outbox VALUES (?, ?)", number, content)

    def mark_delivered(self, number: int) -> None:
        """Note that a step is in the release folder."""
        with self.changing():
            self.change("DELETE FROM outbox WHERE number = ?", number)

    def undelivered(self) -> Undelivered | None:
        """Find the step that may not have reached the release folder."""
        with self.checked():
            row = self.first(
                "SELECT number, line, stop - length(line), content FROM outbox JOIN steps "
                "USING (number) ORDER BY number"
            )
            if row is None:
                return None
            number, line, start, content = row
            _require_bytes(line, content)
            return Undelivered(number, line, start, content, StepRecord.from_line(line).file)

    @property
    def steps(self) -> int:
        """Number of steps that are done."""
        with self.checked():
            return int(self.first("SELECT coalesce(max(number), 0) FROM steps")[0])

    @property
    def length(self) -> int:
        """Length of the list of steps, when all are delivered."""
        with self.checked():
            return int(self.first("SELECT coalesce(max(stop), 0) FROM steps")[0])

    def lines(self) -> Iterator[bytes]:
        """Read the list of steps, in order."""
        with self.checked():
            for (line,) in self.rows("SELECT line FROM steps ORDER BY number"):
                _require_bytes(line)
                yield line

    def last_step(self) -> StepRecord | None:
        """Return what the list says of the last step."""
        with self.checked():
            row = self.first("SELECT line FROM steps ORDER BY number DESC LIMIT 1")
            return None if row is None else StepRecord.from_line(row[0])

    def has_time(self, time: str) -> bool:
        """Return whether there is a step of this label."""
        with self.checked():
            return self.first("SELECT 1 FROM steps WHERE time = ?", time) is not None

    def _put_state(self, state: StreamState) -> None:
        self._put({"public": state.public, "secret": state.secret})
        self.change("DELETE FROM arrays")
        for name, array in state.arrays.items():
            row = (name, array.dtype.str, json.dumps(array.shape), array.tobytes())
            self.change("INSERT INTO arrays VALUES (?, ?, ?, ?)", *row)


class StreamFile(StreamStore, StateFile):
    """An open state file."""

    kind = _STATE

    _held: FileLock | None = None
    _token: str | None = None  # none before the operator is written into the file

    @classmethod
    def take(cls, path: Path, lock: FileLock) -> Self:
        """Open a state file for the operator who holds its lock; closing it lets go of both."""
        file = cls(path)
        file._held = lock
        return file

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folder of the file, where its journal is, too."""
        return (self.path.parent,)

    def close(self) -> None:
        """Close the file and let go of the stream; harmless if that was done before."""
        super().close()
        if self._held is not None:
            self._held.close()

    def require_held(self) -> None:
        """Refuse to go on if another operator has opened the file since.

        Where locks work no one has.  Where they do not (some network disks), this refuses the
        step of an operator who is no longer the last that opened it.
        """
        if self._token is not None and self.operator().get("token") != self._token:
            raise self.moved_on()

    def settled(self, ledger: str) -> None:
        """Write this operator into the file, which refuses all changes of earlier ones."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"pid": os.getpid(), "host": socket.gethostname(), "since": now}
        token = secrets.token_hex(16)
        self.put(operator=about | {"token": token}, ledger=ledger)
        self._token = token

    def operator(self) -> dict[str, Any]:
        """Return who opened the stream last; empty if no one did."""
        with self.checked():
            about = self.metadata("operator", {})
            return {name: about[name] for name in ("pid", "host", "since", "token") if about}

    def holder(self) -> dict[str, Any] | None:
        """Return who is at work on the stream; None if no one is."""
        lock = FileLock(self.path)
        try:
            if lock.take():
                return None
            about = self.operator()
            about.pop("token", None)
            return about or None
        finally:
            lock.close()

    def discard(self) -> None:
        """Remove the file of a stream that was not started after all."""
        self.path.unlink()


def hold(path: Path, claim: Claim) -> FileLock:
    """Take the lock of a state file, or say who has it."""
    if claim.take_over:
        raise InvalidParameter(
            f"{printable(path)} is a file: its lock ends with the process that has it, so there "
            "is nothing to take over; that is for a state on a server"
        )
    lock = FileLock(path)

    def take() -> str | None:
        return None if lock.take() else f"another operator is at work on {path}{_holder(path)}"

    try:
        claim.until_free(take)
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


def _require_bytes(*contents: object) -> None:
    if not all(isinstance(content, bytes) for content in contents):
        raise TypeError("a step is stored as bytes")
