"""The state file of a stream: all that it needs to go on, changed by one transaction a step.

A step's line and its file of counts lie in the outbox, in the same transaction as the state
that the step led to, until they are in the release folder.  What is read back is checked: a
file that does not hold what was written is called damaged, and nothing of it is repeated.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpublish.core.stream_catalog import make_stream_method
from dpublish.data import schema_file
from dpublish.errors import InputError
from dpublish.methods.streams.contract import StreamState
from dpublish.methods.streams.steps import StepRecord
from dpublish.methods.streams.stream import Stream
from dpublish.privacy.receipt import Receipt
from dpublish.publishing.streams.database import StreamDatabase

STARTING, RUNNING, STOPPED = "starting", "running", "stopped"  # the phases of a stream
_TABLES = (
    "CREATE TABLE arrays (name TEXT PRIMARY KEY, type TEXT, shape TEXT, data BLOB)",
    """CREATE TABLE steps (number INTEGER PRIMARY KEY, time TEXT NOT NULL UNIQUE,
        line BLOB NOT NULL, stop INTEGER NOT NULL)""",
    "CREATE TABLE outbox (number INTEGER PRIMARY KEY, content BLOB NOT NULL)",
)


class Undelivered(NamedTuple):
    """A step that is done, but not known to be in the release folder."""

    number: int
    line: bytes
    start: int
    content: bytes
    file: str


class StreamFile(StreamDatabase):
    """An open state file."""

    @classmethod
    def create(cls, path: Path, metadata: Mapping[str, Any]) -> "StreamFile":
        """Make a new state file, whole or not at all; the caller holds the stream's lock."""
        cls.write_new(path, _TABLES, metadata)
        return cls(path)

    @property
    def phase(self) -> str:
        """Whether the stream is being started, runs, or was stopped for good."""
        phase = self.text("phase")
        if phase not in (STARTING, RUNNING, STOPPED):
            raise self.damaged()
        return phase

    def operator(self) -> dict[str, Any]:
        """Say who opened the stream last; empty if nobody did."""
        with self.explained():
            about = self.fact("operator", {})
            return {name: about[name] for name in ("pid", "host", "since", "token") if about}

    def state(self) -> StreamState:
        """Read the state of the stream."""
        with self.explained():
            arrays = {
                name: np.frombuffer(data, dtype=kind).reshape(json.loads(shape)).copy()
                for name, kind, shape, data in self.rows("SELECT * FROM arrays")
            }
            return StreamState(self.fact("public"), self.fact("secret"), arrays)

    def stream(self) -> Stream:
        """Open the stream as the file has it."""
        with self.explained():
            method = make_stream_method(self.text("method"), self.fact("settings"))
            schema = schema_file.from_dict(self.fact("schema"))
            receipt = self.receipt()
            stream = method.resume(schema, self.state(), receipt)
            estimate = stream.estimate
            fits = estimate is None or estimate.shape == (stream.bins.size,)
        if not fits or stream.number != self.steps:
            raise self.damaged()
        return stream

    def receipt(self) -> Receipt:
        """Read the receipt of the stream."""
        with self.explained():
            return Receipt.from_dict(self.fact("receipt"))

    def begin(self, state: StreamState, **metadata: Any) -> None:
        """Write the state of a stream that is paid for and has no step yet."""
        with self.writing():
            self._put_state(state)
            self.put_within(metadata)

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
            self.execute("INSERT INTO steps VALUES (?, ?, ?, ?)", number, time, line, stop)
            self.execute("INSERT INTO outbox VALUES (?, ?)", number, content)

    def mark_delivered(self, number: int) -> None:
        """Note that a step is in the release folder."""
        with self.writing():
            self.execute("DELETE FROM outbox WHERE number = ?", number)

    def undelivered(self) -> Undelivered | None:
        """Find the step that may not have reached the release folder."""
        with self.explained():
            row = self.query(
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
        with self.explained():
            return int(self.query("SELECT coalesce(max(number), 0) FROM steps")[0])

    @property
    def length(self) -> int:
        """Length of the list of steps, when all are delivered."""
        with self.explained():
            return int(self.query("SELECT coalesce(max(stop), 0) FROM steps")[0])

    def lines(self) -> Iterator[bytes]:
        """Read the list of steps, in order."""
        with self.explained():
            for (line,) in self.rows("SELECT line FROM steps ORDER BY number"):
                _require_bytes(line)
                yield line

    def last_step(self) -> StepRecord | None:
        """Give what the list says of the last step."""
        with self.explained():
            row = self.query("SELECT line FROM steps ORDER BY number DESC LIMIT 1")
            return None if row is None else StepRecord.from_line(row[0])

    def has_time(self, time: str) -> bool:
        """Say whether there is a step of this label."""
        with self.explained():
            return self.query("SELECT 1 FROM steps WHERE time = ?", time) is not None

    def _put_state(self, state: StreamState) -> None:
        self.put_within({"public": state.public, "secret": state.secret})
        self.execute("DELETE FROM arrays")
        for name, array in state.arrays.items():
            row = (name, array.dtype.str, json.dumps(array.shape), array.tobytes())
            self.execute("INSERT INTO arrays VALUES (?, ?, ?, ?)", *row)


def _require_bytes(*contents: object) -> None:
    if not all(isinstance(content, bytes) for content in contents):
        raise TypeError("a step is stored as bytes")
