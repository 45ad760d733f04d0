"""Work that takes long, in threads: how far it is, how it ended, and how to stop it.

Progress is what methods report: public units such as candidates and rounds, never rows.  Work
can be stopped where it reports progress; what was debited by then stays debited.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock, Thread
from typing import Any

from dpublish.core.run import Progress
from dpublish.errors import DPublishError, InputError

_AT_ONCE = 2
_KEPT = 200
"""Ended work is forgotten, the oldest first, when there is more."""

Work = Callable[[Progress], Any]
"""Takes what it reports its progress to; returns its result."""


class Cancelled(KeyboardInterrupt):
    """Someone stopped the work; libraries treat it as Ctrl-C."""


@dataclass
class Job:
    """Work that runs, or has ended.

    Attributes:
        key: Its name in addresses.
        title: What it does, in words.
        back: Where its page leads back to.
        can_cancel: Whether stopping it is offered.
        is_look: Whether it is about what rows hold, so that only its own stamped page shows it.
        state: `running`, `done`, `failed` or `cancelled`.
        done: How far it is.
        total: How far it goes; 0 if that is not known.
        label: What it is doing.
        result: What it returned.
        problem: Why it failed.
        notes: What stands nevertheless.
    """

    key: str
    title: str
    back: str = "/"
    can_cancel: bool = True
    is_look: bool = False
    state: str = "running"
    done: int = 0
    total: int = 0
    label: str = "waiting"
    result: Any = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    _is_stopped: bool = field(default=False, repr=False)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state != "running"

    @property
    def version(self) -> tuple[Any, ...]:
        """What changes when there is something new to show."""
        return self.state, self.done, self.total, self.label

    def report(self, done: int, total: int, label: str) -> None:
        """Note how far it is; the work stops here if someone asked for that."""
        if self._is_stopped:
            raise Cancelled
        self.done, self.total, self.label = done, total, label

    def cancel(self) -> None:
        """Ask the work to stop."""
        self._is_stopped = True


class Jobs:
    """The work of one studio.

    >>> jobs = Jobs()
    >>> job = jobs.start("add", lambda report: 1 + 1)
    >>> jobs.wait(job); job.state, job.result
    ('done', 2)
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._threads: dict[str, Thread] = {}
        self._lock = Lock()
        self._starting = Lock()
        self._slots = BoundedSemaphore(_AT_ONCE)
        self._aside = BoundedSemaphore(1)

    def start(
        self,
        title: str,
        work: Work,
        *,
        key: str | None = None,
        back: str = "/",
        can_cancel: bool = True,
        is_look: bool = False,
        ended: Callable[[Job, str], None] | None = None,
        is_aside: bool = False,
    ) -> Job:
        """Begin work in a thread of its own; `ended` is told how it ended.

        What is done aside is done one after the other, and keeps no other work waiting.
        """
        job = Job(key or secrets.token_urlsafe(16), title, back, can_cancel, is_look)
        slots = self._aside if is_aside else self._slots
        thread = Thread(target=self._run, args=(job, work, ended, slots), name=f"studio {title}")
        thread.daemon = True  # a studio that is stopped does not wait: the ledger tells what stands
        with self._lock:
            self._forget()
            self._jobs[job.key] = job
            self._threads[job.key] = thread
        thread.start()
        return job

    def start_once(self, key: str, title: str, work: Work, **options: Any) -> Job:
        """Begin work by a key that says all it depends on, unless that is done or under way.

        >>> jobs = Jobs()
        >>> first = jobs.start_once("1 + 1", "add", lambda report: 1 + 1)
        >>> jobs.start_once("1 + 1", "add", lambda report: 1 + 1) is first
        True
        """
        with self._starting:
            job = self.get(key)
            if job is not None and job.state in ("running", "done"):
                return job
            return self.start(title, work, key=key, **options)

    def find(self, key: str) -> Job:
        """Find work by its key."""
        job = self._jobs.get(key)
        if job is None:
            raise InputError("this work is not known; the studio may have been started anew since")
        return job

    def get(self, key: str) -> Job | None:
        """Find work by its key, if it is known."""
        return self._jobs.get(key)

    def running(self) -> list[Job]:
        """List the work that has not ended."""
        return [job for job in list(self._jobs.values()) if not job.is_over]

    def wait(self, job: Job, seconds: float | None = None) -> None:
        """Wait until work has ended."""
        self._threads[job.key].join(seconds)

    def _run(
        self,
        job: Job,
        work: Work,
        ended: Callable[[Job, str], None] | None,
        slots: BoundedSemaphore,
    ) -> None:
        with slots:
            state = "done"
            try:
                job.report(0, 0, "starting")
                job.result = work(job.report)
            except Cancelled as stop:
                state, job.problem, job.notes = "cancelled", "stopped", _notes(stop)
            except DPublishError as error:
                state, job.problem, job.notes = "failed", str(error), _notes(error)
            except BaseException as fault:  # noqa: BLE001 - a thread has no one else to tell
                state, job.problem = "failed", fault_words(fault)
            if ended is not None:
                try:
                    ended(job, state)
                except Exception:  # noqa: BLE001 - whatever it was, the work has ended
                    job.notes += ("how it ended could not be written down",)
            job.state = state  # last: whoever waits for it finds all the rest in place

    def _forget(self) -> None:
        over = [key for key, job in self._jobs.items() if job.is_over]
        for key in over[: max(0, len(self._jobs) - _KEPT)]:
            del self._jobs[key], self._threads[key]


def fault_words(fault: BaseException) -> str:
    """Describe what is no refusal; its own text is not shown, for it may quote a row."""
    if isinstance(fault, OSError):
        return f"the system says: {fault.strerror or 'input/output error'}"
    return (
        f"a fault of dpublish itself ({type(fault).__name__}); its text is not shown, because it "
        "might quote a row. The same on the command line with DPUBLISH_TRACEBACK=1 shows where"
    )


def _notes(error: BaseException) -> tuple[str, ...]:
    return tuple(getattr(error, "__notes__", ()))
