"""Signals that ask the command to end: it ends as at Ctrl-C, and leaves nothing half done.

Without this, SIGTERM and SIGHUP end a process on the spot, and what it would have removed (an
unfinished release folder, temporary files of the database engine) stays behind.
"""

import os
import signal
import threading
import time
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")  # not every system has both
_CLEANING_SECONDS = 10.0
_NUDGE_SECONDS = 0.05


class Stopped(KeyboardInterrupt):
    """A signal has asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class StopSignals:
    """What the command does on SIGTERM and SIGHUP, from `watch` to `ignore`."""

    def __init__(self) -> None:
        self._watched: list[int] = []
        self._raised: float | None = None

    def watch(self) -> None:
        """Raise `Stopped` in the main thread from now on; what is ignored (nohup) stays ignored."""
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._stop)
                self._watched.append(number)
        if self._watched and hasattr(signal, "pthread_kill"):
            reading, writing = os.pipe()
            os.set_blocking(writing, False)
            signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
            threading.Thread(target=self._nudge, args=(reading,), daemon=True).start()

    def ignore(self) -> None:
        """Let nothing come between the end of the work and the end of the process."""
        for number in self._watched:
            signal.signal(number, signal.SIG_IGN)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        # Supervisors send several in a row; those that follow must not cut off the cleaning.
        now = time.monotonic()
        if self._raised is None or now - self._raised >= _CLEANING_SECONDS:
            self._raised = now
            raise Stopped(number)

    def _nudge(self, reading: int) -> None:
        """Send the first signal on to the main thread until it has noticed.

        The system may hand a signal to another thread, of a native library, or just before the
        main thread begins to wait for a pipe: Python then notes it, and the main thread waits on.
        """
        main = threading.main_thread().ident
        while (number := os.read(reading, 1)[0]) not in self._watched:
            pass
        while self._raised is None and main is not None:
            signal.pthread_kill(main, number)
            time.sleep(_NUDGE_SECONDS)
