"""The state file of a stream: all that it needs to go on, changed by one transaction a step.

A step's line and its file of counts lie in the outbox, in the same transaction as the state
that the step led to, until they are in the release folder.  What is read back is checked: a
file that does not hold what was written is called damaged, and nothing of it is repeated.

It holds secrets: the noise of thresholds that are still in use.  So it is readable by its owner
only, what is replaced is overwritten, and no message repeats what it holds.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpublish.data import schema_file
from dpublish.errors import InputError
from dpublish.methods.streams.listing import StepRecord
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.stream import Stream, StreamState
from dpublish.publishing.state_file import (
    METADATA,
    RUNNING,
    STARTING,
    STOPPED,
    StateFile,
    put_metadata,
)
from dpublish.storage.lock import FileLock
from dpublish.storage.sqlite import FileKind

__all__ = ["RUNNING", "STARTING", "STOPPED", "StreamFile", "Undelivered", "hold"]

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


class StreamFile(StateFile):
    """An open state file."""

    kind = _STATE

    def operator(self) -> dict[str, Any]:
        """Return who opened the stream last; empty if no one did."""
        with self.checked():
            about = self.metadata("operator", {})
            return {name: about[name] for name in ("pid", "host", "since", "token") if about}

    def state(self) -> StreamState:
        """Read the state of the stream."""
        with self.checked():
            arrays = {
                name: np.frombuffer(data, dtype=kind).reshape(json.loads(shape)).copy()
                for name, kind, shape, data in self.rows("SELECT * FROM arrays")
            }
            return StreamState(self.metadata("public"), self.metadata("secret"), arrays)

    def stream(self) -> Stream:
        """Open the stream as the file has it."""
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
        with self.writing():
            self._put_state(state)
            put_metadata(self._connection, metadata)

    def commit_step(
        self, state: StreamState, *, number: int, time: str, line: bytes, content: bytes, owner: str
    ) -> None:
        """Write a step, the state it led to and what is to be published, all or nothing.

        Refused if another operator has taken the stream over, or has made this step.
        """
        with self.writing():
            if self.operator().get("token") != owner or number != self.steps + 1:
                raise InputError(f"another operator has moved {self.path} on; open it again")
            self._put_state(state)
            stop = self.length + len(line)
            self.change("INSERT INTO steps VALUES (?, ?, ?, ?)", number, time, line, stop)
            self.change("INSERT INTO outbox VALUES (?, ?)", number, content)

    def mark_delivered(self, number: int) -> None:
        """Note that a step is in the release folder."""
        with self.writing():
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
        put_metadata(self._connection, {"public": state.public, "secret": state.secret})
        self.change("DELETE FROM arrays")
        for name, array in state.arrays.items():
            row = (name, array.dtype.str, json.dumps(array.shape), array.tobytes())
            self.change("INSERT INTO arrays VALUES (?, ?, ?, ?)", *row)


def hold(path: Path) -> FileLock:
    """Take the lock of a stream, or say who has it.

    One operator is at work at a time.  Where locks do not work at all (some network disks), the
    state file still refuses the step of an operator who is no longer the last that opened it.
    """
    lock = FileLock(path)
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


def _require_bytes(*contents: object) -> None:
    if not all(isinstance(content, bytes) for content in contents):
        raise TypeError("a step is stored as bytes")
