"""What processes that share a table say to each other, through a pair of sockets.

A message is a pickled value.  Arrays travel beside it, so that a large answer is not copied
more often than it must be.
"""

import io
import os
import pickle
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dpublish.data.batch import Summable
from dpublish.randomness import is_secure

_TOKEN = 4  # bytes of a piece's number


def send(connection: "Connection[Any, Any]", message: Any) -> None:
    """Send a message; waits until the other side takes it."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    raws = [buffer.raw() for buffer in buffers]
    connection.send_bytes(pickle.dumps((body, [raw.nbytes for raw in raws])))
    for raw in raws:
        if raw.nbytes:
            connection.send_bytes(raw)


def receive(connection: "Connection[Any, Any]") -> Any:
    """Wait for a message; raises EOFError or OSError if the other side is gone."""
    body, sizes = pickle.loads(connection.recv_bytes())
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        if buffer:
            connection.recv_bytes_into(buffer)
    return pickle.loads(body, buffers=buffers)


def pack_kernel(kernel: Summable[Any]) -> bytes | None:
    """Pickle a kernel for another process; None if it must stay in this one.

    A kernel that draws from a stream of random words must: copies would draw the same words,
    and the answer would depend on the number of processes.  One that asks the operating system
    for every word may go.
    """
    packed = io.BytesIO()
    try:
        _KernelPickler(packed, protocol=5).dump(kernel)
    except Exception:  # noqa: BLE001 - whatever the kernel holds that cannot be copied
        return None
    found = packed.getvalue()
    return None if b"__main__" in found else found  # other processes have another main module


class _KernelPickler(pickle.Pickler):
    def reducer_override(self, item: Any) -> Any:
        if _draws(item):
            raise pickle.PicklingError("a stream of random words cannot be in two processes")
        return NotImplemented


def _draws(item: Any) -> bool:
    if isinstance(item, np.random.Generator | np.random.BitGenerator | np.random.RandomState):
        return True
    if type(item).__module__ == "random":
        return True
    return callable(getattr(type(item), "words", None)) and not is_secure(item)


class Queues:
    """Numbers of pieces that wait to be summed up: a queue for each process, open to all.

    A queue is a pipe.  Whoever reads a number from it has taken the piece, and no one else can.
    """

    def __init__(self, readers: Sequence[int], writers: Sequence[int] = ()) -> None:
        self.readers = tuple(readers)
        self._writers = tuple(writers)

    @classmethod
    def make(cls, count: int) -> "Queues":
        """Make empty queues."""
        pipes: list[tuple[int, int]] = []
        try:
            for _ in range(count):
                pipes.append(os.pipe())
                os.set_blocking(pipes[-1][0], False)
        except OSError:
            for descriptor in chain(*pipes):
                os.close(descriptor)
            raise
        return cls(*zip(*pipes, strict=True))

    def put(self, owner: int, piece: int) -> None:
        """Let a piece wait for its owner."""
        os.write(self._writers[owner], piece.to_bytes(_TOKEN, "little"))

    def take(self, owner: int, *, others: bool) -> tuple[int, bool] | None:
        """Take the next piece, and tell if it is the owner's own; of `others` if there is none."""
        count = len(self.readers)
        for queue in range(owner, owner + (count if others else 1)):
            with suppress(BlockingIOError):
                found = os.read(self.readers[queue % count], _TOKEN)
                if found:
                    return int.from_bytes(found, "little"), queue == owner
        return None

    def close(self) -> None:
        """Close this process's ends."""
        for descriptor in (*self.readers, *self._writers):
            os.close(descriptor)
