"""Who may move a stream on: one operator at a time, and how another one comes to take over.

With a state file that is a lock of the system, which ends with its process.  On a server it is a
lease: a row that says who has the stream and until when, by the server's clock, and that its
holder renews for as long as it lives.  A lease and not a lock of the server's session: a session
ends with a short cut of the network, hangs on for hours when a machine is gone, outlives a
process that stands still, and belongs to someone else behind a pool of connections.

An expired lease only allows another operator to take over.  That two never publish the same step
does not hang on clocks: every takeover raises the lease's number (the fence), and every change of
the state is refused to whoever does not hold the newest.
"""

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from dpublish.errors import DPublishError, InputError, InvalidParameter
from dpublish.storage.address import Address
from dpublish.storage.postgres import begin_changing, connect, load_driver

if TYPE_CHECKING:
    import psycopg

LEASE_SECONDS = 60.0
"""For how long a lease is taken if no one says otherwise."""
_MOST_SECONDS = 86_400.0
_BEATS = 3  # renewals within the time of a lease
_PAUSE = 0.25  # seconds between two looks whether a stream is free
ON_THE_PRIMARY = "SET LOCAL synchronous_commit = local"
"""For what may be lost with the server: how long a lease runs, and that it was given back."""
_RENEW = (
    "UPDATE lease SET expires = clock_timestamp() + make_interval(secs => %s) "
    "WHERE fence = %s AND token = %s"
)


@dataclass(frozen=True)
class Claim:
    """How an operator asks for a stream.

    Attributes:
        lease_seconds: How long the stream is kept for an operator of which nothing is heard;
            for a state on a server.
        wait_seconds: How long to wait for an operator who has the stream.
        take_over: Whether to take a stream on a server from whoever has it.
    """

    lease_seconds: float = LEASE_SECONDS
    wait_seconds: float = 0
    take_over: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.lease_seconds <= _MOST_SECONDS:
            raise InvalidParameter("a lease lasts for 1 second to 86,400 (a day)")
        if not 0 <= self.wait_seconds < float("inf"):
            raise InvalidParameter("the seconds to wait are a number, and not negative")

    def until_free(self, take: Callable[[], str | None]) -> None:
        """Repeat `take` for as long as it answers who has the stream, then give up with that."""
        deadline = time.monotonic() + self.wait_seconds
        while (refusal := take()) is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise InputError(refusal)
            time.sleep(min(_PAUSE, left))


@dataclass(frozen=True)
class Process:
    """Which process this is, as the lease names it."""

    host: str
    pid: int
    machine: str

    @classmethod
    def current(cls) -> "Process":
        """Return this process."""
        host = socket.gethostname()
        return cls(host, os.getpid(), _machine(host))

    @property
    def is_gone(self) -> bool:
        """Whether it is known to have ended: it ran here, and no longer does."""
        if self.machine == "" or self.machine != _machine(socket.gethostname()):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


class Heartbeat:
    """Renews a lease, on a connection of its own, for as long as this process runs.

    What fails is tried again at the next beat.  Whether the lease still stands is found out by
    the operator, at every change.
    """

    def __init__(self, address: Address, fence: int, token: str, seconds: float) -> None:
        self._address = address
        self._values = (seconds, fence, token)
        self._pause = seconds / _BEATS
        self._ended = Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = Thread(target=self._run, name="dpublish lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it; harmless if that was done before."""
        self._ended.set()
        self._thread.join(self._pause)

    def _run(self) -> None:
        while not self._ended.wait(self._pause):
            try:
                stands = self._beat()
            except (load_driver().Error, DPublishError, OSError):
                self._hang_up()
            else:
                if not stands:
                    break  # another operator has the stream
        self._hang_up()

    def _beat(self) -> bool:
        if self._connection is None:
            self._connection = connect(self._address, self._pause)
        self._connection.execute(begin_changing(self._address, self._pause))
        self._connection.execute(ON_THE_PRIMARY)
        stands = self._connection.execute(_RENEW, self._values).rowcount == 1
        self._connection.execute("COMMIT")
        return stands

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(load_driver().Error):
                connection.close()


def _machine(host: str) -> str:
    """Tell this machine, since it was switched on, from others; "" where that cannot be told.

    Within containers, process numbers mean something within the same container only.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        numbers = str(Path("/proc/self/ns/pid").readlink())
    except (OSError, ValueError):
        return ""
    return sha256(f"{host} {boot} {numbers}".encode()).hexdigest()[:32]
