"""Apply mutants one at a time, each to a copy of the source, and see whether its tests fail."""

import compileall
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Literal, NamedTuple

from mutants.mutant import Mutant, NotApplicable, mutated_files

Verdict = Literal["killed", "SURVIVED", "BROKEN", "TIMED OUT", "NOT APPLICABLE"]

TIME_LIMIT = 900
"""Seconds for the tests of one mutant; one that hangs is not noticed by an assertion.

The tests of a row take seconds, but minutes on a machine that is busy with other work.
"""

_TESTS_FAILED = 1  # pytest's exit code; others are errors of collection, usage or pytest itself
_BLUNDERS = ("NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError", "SyntaxError")
_MISUSES = ("AttributeError", "TypeError", "IndentationError")


class Outcome(NamedTuple):
    """What became of a mutant, and by which test or why."""

    mutant: Mutant
    verdict: Verdict
    detail: str
    seconds: float


class Run(NamedTuple):
    """How pytest ended; None if it did not within the time limit."""

    code: int | None
    output: str


@dataclass
class Runner:
    """Copies of the source, one for each worker; the work tree itself is never changed."""

    root: Path
    jobs: int = 2
    time_limit: float = TIME_LIMIT
    _free: "queue.Queue[Path]" = field(default_factory=queue.Queue)
    _running: set[subprocess.Popen[str]] = field(default_factory=set)

    def check_unchanged(self, mutants: Iterable[Mutant]) -> Run:
        """Run all tests that the mutants name on the unchanged source, which must pass."""
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        with self._workspaces(1):
            source = self._free.get()
            return self._run_tests(source, tests, time_limit=None)

    def run(self, mutants: Iterable[Mutant]) -> Iterator[Outcome]:
        """Give the outcome of each mutant as soon as it is known."""
        with self._workspaces(self.jobs), ThreadPoolExecutor(self.jobs) as pool:
            try:
                tasks = [pool.submit(self._judge, mutant) for mutant in mutants]
                for task in as_completed(tasks):
                    yield task.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self._stop()

    def _workspaces(self, count: int) -> "Workspaces":
        return Workspaces(self.root / "src", count, self._free)

    def _judge(self, mutant: Mutant) -> Outcome:
        began = time.monotonic()
        source = self._free.get()
        try:
            verdict, detail = self._test(mutant, source)
        finally:
            self._free.put(source)
        return Outcome(mutant, verdict, detail, time.monotonic() - began)

    def _test(self, mutant: Mutant, source: Path) -> tuple[Verdict, str]:
        try:
            changed = mutated_files(mutant, source)
        except NotApplicable as error:
            return "NOT APPLICABLE", str(error)
        original = {path: (source / path).read_text(encoding="utf-8") for path in changed}
        try:
            for path, text in changed.items():
                (source / path).write_text(text, encoding="utf-8")
            return judge_run(self._run_tests(source, mutant.tests, self.time_limit))
        finally:
            for path, text in original.items():
                (source / path).write_text(text, encoding="utf-8")

    def _run_tests(self, source: Path, tests: Iterable[str], time_limit: float | None) -> Run:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        paths = [str(source), os.environ.get("PYTHONPATH", "")]
        settings = {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "400",
        }
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            output, _ = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return Run(None, "")
        finally:
            self._running.discard(process)
        return Run(process.returncode, output)

    def _stop(self) -> None:
        for process in tuple(self._running):
            _end(process)


@dataclass
class Workspaces:
    """Temporary copies of the source for as long as the block lasts.

    Compiled files are found by the digest of the source, so that a mutated module is always
    compiled anew and all others are not.
    """

    source: Path
    count: int
    free: "queue.Queue[Path]"

    def __enter__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        first = Path(self._folder.name) / "0"
        shutil.copytree(self.source, first, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(
            first, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH, stripdir=first
        )
        self.free.put(first)
        for number in range(1, self.count):
            self.free.put(Path(shutil.copytree(first, first.with_name(str(number)))))

    def __exit__(self, *_: object) -> None:
        while not self.free.empty():
            self.free.get()
        self._folder.cleanup()


def judge_run(run: Run) -> tuple[Verdict, str]:
    """Tell a test that noticed the mutant from a mutant that does not even run.

    A name that does not exist fails any test and shows nothing about it.
    """
    if run.code is None:
        return "TIMED OUT", "its tests did not end in time"
    if run.code == 0:
        return "SURVIVED", "all of its tests pass"
    failure = re.search(r"^(?:FAILED|ERROR) (\S+.*)$", run.output, re.MULTILINE)
    detail = failure.group(1) if failure else run.output.strip()[-300:]
    if run.code != _TESTS_FAILED or failure is None:
        return "BROKEN", detail
    reason = detail.partition(" - ")[2]
    is_broken = reason.startswith(tuple(f"{name}:" for name in (*_BLUNDERS, *_MISUSES)))
    return ("BROKEN" if is_broken else "killed"), detail


def processor_minutes() -> float:
    """Minutes of processor time that ended child processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def _end(process: "subprocess.Popen[str]") -> None:
    """End the tests and what they started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.communicate()
