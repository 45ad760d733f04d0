"""Worker processes of one table: how they are started, asked, and ended.

They are programs of their own, and no copies of this process: a copy would inherit locks that
other threads hold, and every open file.  They get rows, or the paths of files, through a socket
each.  They end with this process, however that ends, and their output goes nowhere.

A worker that cannot be started is done without.  One that ends before it has answered makes the
sum fail: there is a right answer or none.
"""

import os
import subprocess
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from time import monotonic
from typing import Any, NoReturn

from dpublish import errors
from dpublish.data.batch import S, Summable, refuse_copy
from dpublish.data.engines.messages import Queues, receive, send
from dpublish.data.engines.source import NO_MEMORY, Source
from dpublish.data.engines.worker import BOOT, Answer, Setup
from dpublish.data.schema import Schema
from dpublish.errors import DPublishError, InvalidParameter, UnreadableData

LOST = (
    "a worker process ended before it had summed up its rows; there may be too little memory: "
    "use threads=1, cache=False or fewer columns"
)
_FAILED = "a worker process could not sum up its rows; use threads=1"
_KINDS: dict[str, type[DPublishError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, DPublishError)
}
_START = 2.0  # seconds that a process takes to start, at most
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def count_threads(threads: int | None) -> int:
    """Return how many processes may sum up rows: as many as there are cores for this one.

    >>> count_threads(3)
    3
    """
    if threads is None:
        return _count_cores()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidParameter(
            f"threads ({threads!r}) must be an integer from 1, or None for all cores"
        )
    return threads


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def can_start() -> bool:
    """Check whether this system has what workers need."""
    return os.name == "posix" and bool(sys.executable)


class UnknownKernel(Exception):
    """A kernel that workers cannot make out: its class is known to this process alone."""


class Worker:
    """One worker process, as its parent sees it."""

    def __init__(self, queues: Queues, setup: Setup) -> None:
        self.number = setup.number
        self.is_ready = False
        self.is_gone = False
        self._setup = setup
        here, there = Pipe()
        self.connection: Connection[Any, Any] = here
        with there:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOT, str(there.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a traceback could quote a row
                pass_fds=(there.fileno(), *queues.readers),
                env=os.environ | dict.fromkeys(_ONE_THREAD, "1"),
            )
        with self._if_there():
            self.connection.send(list(sys.path))

    def look(self) -> bool:
        """Look whether it has started; if it has just now, tell it what it works on."""
        if self.is_ready or self.is_gone or not self.connection.poll():
            return False
        with self._if_there():
            receive(self.connection)
            send(self.connection, self._setup)
            self.is_ready = True
        return self.is_ready

    def end(self) -> None:
        """End it, whatever it does: all it knows can be read again."""
        with suppress(OSError):
            self.connection.close()
        self.process.kill()
        self.process.wait()

    @contextmanager
    def _if_there(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError):
            self.is_gone = True


class Workers:
    """The worker processes of one table; they end with it."""

    def __init__(
        self, count: int, schema: Schema, pieces: Sequence[Source], *, cache: bool
    ) -> None:
        self._process = os.getpid()
        self._all: list[Worker] = []
        self.queues = Queues((), ())
        with suppress(OSError):  # no further process or open file is allowed: there are fewer
            self.queues = Queues.make(count + 1)
            for number in range(1, count + 1):
                setup = Setup(
                    number, self._process, self.queues.readers, schema, tuple(pieces), cache
                )
                self._all.append(Worker(self.queues, setup))
        self.close = weakref.finalize(self, _end_all, self._all, self.queues, self._process)

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    @property
    def are_ours(self) -> bool:
        """Whether this process started them; a copy of it may not talk to them."""
        return self.close.alive and os.getpid() == self._process

    @property
    def ready(self) -> list[Worker]:
        """The workers that have started."""
        return [worker for worker in self._all if worker.is_ready]

    @property
    def are_all_ready(self) -> bool:
        """Whether all workers have started."""
        return all(worker.is_ready for worker in self._all)

    @property
    def are_all_gone(self) -> bool:
        """Whether none has started, and none will."""
        return all(worker.is_gone for worker in self._all)

    def wait_until_ready(self) -> None:
        """Give the workers some time to start; those that do not are done without."""
        until = monotonic() + _START
        starting = [x.connection for x in self._all if not x.is_ready and not x.is_gone]
        while starting and (left := until - monotonic()) > 0:
            for connection in wait(starting, left):
                starting.remove(connection)  # type: ignore[arg-type]

    def look(self) -> list[Worker]:
        """List the workers that have become ready since the last look."""
        return [worker for worker in self._all if worker.look()]

    def send(self, worker: Worker, message: Any) -> None:
        """Send a message; fails if the worker is gone."""
        is_sent = False
        with suppress(OSError):
            send(worker.connection, message)
            is_sent = True
        if not is_sent:
            raise UnreadableData(LOST)

    def merge(self, asked: Sequence[Worker], kernel: Summable[S], out: S) -> int:
        """Add the answer of each worker that was asked, as they come; count their pieces.

        The order does not matter: answers are integers that add up.
        """
        waiting: dict[Any, Worker] = {worker.connection: worker for worker in asked}
        pieces, is_known = 0, True
        while waiting:
            for connection in wait(list(waiting)):
                answer = _require_done(_receive(waiting.pop(connection)))
                if answer.kind == "done":
                    kernel.merge(out, answer.answer)
                    pieces += answer.pieces
                else:
                    is_known = False
        if not is_known:
            raise UnknownKernel
        return pieces


def _receive(worker: Worker) -> Answer | None:
    with suppress(OSError, EOFError):
        answer = receive(worker.connection)
        return answer if isinstance(answer, Answer) else None
    return None


def _require_done(answer: Answer | None) -> Answer:
    """Raise the error that a worker reports; it is one of a few fixed ones, or one of ours."""
    if answer is None:
        raise UnreadableData(LOST)
    if answer.kind == "memory":
        raise UnreadableData(NO_MEMORY)
    if answer.kind == "refused":
        raise _KINDS.get(answer.error, UnreadableData)(answer.message)
    if answer.kind not in ("done", "unknown"):
        raise UnreadableData(_FAILED)
    return answer


def _end_all(workers: list[Worker], queues: Queues, process: int) -> None:
    """End all workers, unless this process is a copy of the one that started them."""
    if os.getpid() != process:
        for worker in workers:
            worker.process.returncode = 0  # they are no children of a copy
        return
    for worker in workers:
        worker.end()
    queues.close()
