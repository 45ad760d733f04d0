"""What a worker process does: read and keep its shard of a table, and sum up kernels over it.

It gets all it works on through one socket, ends as soon as that is closed, and writes nothing
anywhere else.  What goes wrong is reported by a few fixed words: an error of a reader or of a
kernel may quote a row.
"""

import os
import pickle
import queue
import signal
import sys
from importlib.abc import MetaPathFinder
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, NamedTuple

import pyarrow as pa

from dpublish.data.engines.encoded import Reading, readings
from dpublish.data.engines.messages import Queues, receive, send
from dpublish.data.engines.shard import Picks, Shard
from dpublish.data.engines.source import Source
from dpublish.data.schema import Schema
from dpublish.errors import DPublishError

BOOT = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from multiprocessing.connection import Connection; "
    "connection = Connection(int(sys.argv[1])); "
    "sys.path[:] = connection.recv(); "
    "from dpublish.data.engines.worker import serve; "
    "serve(connection)"
)
"""The program of a worker; only the number of its socket is an argument, which others can see."""

_WAITING = 4  # messages that are received while one is worked on; they may hold rows
_LOOK = 5.0  # seconds after which a worker looks whether its parent is still there


class Setup(NamedTuple):
    """What a worker has to know of a table: which worker it is, and where rows are."""

    number: int
    parent: int
    readers: tuple[int, ...]
    schema: Schema
    pieces: tuple[Source, ...]
    cache: bool


class SumPieces(NamedTuple):
    """Sum up a kernel over the pieces in the own queue, and over those of `others`."""

    kernel: bytes
    picks: Picks
    others: bool
    forgotten: tuple[int, ...]


class OpenSum(NamedTuple):
    """Begin to sum up a kernel over pieces that are handed over, or over all that were."""

    kernel: bytes
    picks: Picks
    held: bool
    forgotten: tuple[int, ...]


class HoldPiece(NamedTuple):
    """Columns of a piece: to be summed up now, and kept if they are for more than this sum."""

    piece: int
    rows: int
    columns: dict[Reading, Any]
    keep: bool


class CloseSum(NamedTuple):
    """Send the answer."""


class Answer(NamedTuple):
    """What a worker found, or why it found nothing; `pieces` are those it has summed up."""

    kind: str
    pieces: int = 0
    answer: Any = None
    error: str = ""
    message: str = ""


def serve(connection: "Connection[Any, Any]") -> None:
    """Answer requests until the socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _spare_pandas()
    send(connection, Answer("ready"))
    setup: Setup = receive(connection)
    inbox: queue.Queue[Any] = queue.Queue(_WAITING)
    Thread(target=_receive_all, args=(connection, inbox, setup.parent), daemon=True).start()
    worker = _Worker(setup)
    try:
        while True:
            answer = worker.handle(inbox.get())
            if answer is not None:
                send(connection, answer)
                del answer
    except OSError:  # no one waits for the answer
        os._exit(1)


def _spare_pandas() -> None:
    """Keep Arrow from importing pandas, which it does once at first use, if it is installed.

    That takes longer than all else that a worker does to start, and nothing here is of pandas.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


class _NoPandas(MetaPathFinder):
    """Says that pandas is not installed."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        """Refuse to find pandas; let others look for the rest."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def _receive_all(connection: "Connection[Any, Any]", inbox: Any, parent: int) -> None:
    """Put all messages into the inbox; end the process when no more can come.

    A copy of the parent may hold the socket open that it left behind.
    """
    try:
        while True:
            while not connection.poll(_LOOK):
                if os.getppid() != parent:
                    os._exit(1)
            inbox.put(receive(connection))
    except BaseException:  # noqa: BLE001 - whatever it is, there is no one to tell
        os._exit(1)


class _Worker:
    """One table's shard, and the sum that is being worked on."""

    def __init__(self, setup: Setup) -> None:
        self._number = setup.number
        self._queues = Queues(setup.readers)
        self._shard = Shard(setup.schema, setup.pieces, cache=setup.cache)
        self._sum: _Sum | None = None

    def handle(self, message: Any) -> Answer | None:
        """Do what a message asks for; return what to answer, if it asks for an answer."""
        if isinstance(message, SumPieces):
            self._begin(message)
            self._try(lambda one: self._sum_queued(one, others=message.others))
            return self._finish()
        if isinstance(message, OpenSum):
            self._begin(message)
            if message.held:
                self._try(self._sum_held)
            return None
        if isinstance(message, HoldPiece):
            self._try(lambda one: self._sum_handed(one, message))
            return None
        return self._finish()

    def _begin(self, message: SumPieces | OpenSum) -> None:
        self._shard.forget(message.forgotten)
        self._sum = _Sum(message.picks)
        self._try(lambda one: one.begin(message.kernel))

    def _try(self, action: Any) -> None:
        """Go on with the sum, unless it has failed; note that it did, but not why."""
        one = self._sum
        if one is None or one.failure is not None:
            return
        try:
            action(one)
        except MemoryError:
            one.fail(Answer("memory"))
        except DPublishError as error:  # these quote no row
            one.fail(Answer("refused", error=type(error).__name__, message=str(error)))
        except BaseException:  # noqa: BLE001 - it may quote a row
            one.fail(Answer("failed"))

    def _finish(self) -> Answer:
        one, self._sum = self._sum, None
        if one is None:
            return Answer("failed")
        if one.failure is not None:
            return one.failure
        return Answer("unknown") if one.is_unknown else Answer("done", one.pieces, one.out)

    def _sum_queued(self, one: "_Sum", *, others: bool) -> None:
        while not one.is_unknown:
            found = self._queues.take(self._number, others=others)
            if found is None:
                return
            one.add(self._shard, *found)

    def _sum_held(self, one: "_Sum") -> None:
        if not one.is_unknown:
            for piece in self._shard.held:
                one.add(self._shard, piece, own=True)

    def _sum_handed(self, one: "_Sum", message: HoldPiece) -> None:
        """Keep what was handed over even if the kernel is unknown: others will need it."""
        self._shard.hold(message.piece, message.rows, message.columns)
        if not one.is_unknown:
            one.add(self._shard, message.piece, own=True)
        if not message.keep:
            self._shard.drop(message.piece)


class _Sum:
    """A kernel and what was summed up of it."""

    def __init__(self, picks: Picks) -> None:
        self.pieces = 0
        self.out: Any = None
        self.failure: Answer | None = None
        self._picks = picks
        self._kernel: Any = None
        self._wanted: tuple[Reading, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether the kernel's class cannot be found in this process."""
        return self._kernel is None

    def begin(self, packed: bytes) -> None:
        """Unpack the kernel."""
        try:
            self._kernel = pickle.loads(packed)
        except Exception:  # noqa: BLE001 - a class that only the parent has
            return
        self._wanted = readings(self._kernel, by_unit=False)
        self.out = self._kernel.zero()

    def fail(self, answer: Answer) -> None:
        """Note why there will be no answer, and let go of what was summed up."""
        self.failure, self.out = answer, None

    def add(self, shard: Shard, piece: int, own: bool) -> None:
        """Add a piece."""
        shard.add(self._kernel, self.out, piece, picks=self._picks, own=own, wanted=self._wanted)
        self.pieces += 1
