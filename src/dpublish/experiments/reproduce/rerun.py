"""Run the items of documents again: all of them, side by side, resumable.

Every run keeps its results in a file of its own that is named after its settings, so that an
interrupted run goes on where it stopped, and items that need the same run share it.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from dpublish.core.method import Progress
from dpublish.errors import DPublishError, InputError
from dpublish.experiments.reproduce.item import Item, Outcome, Run
from dpublish.experiments.study import Plan, study_of
from dpublish.experiments.trials import read_seconds

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_USUAL_SECONDS = 1.0
"""What a trial is supposed to take as long as none of its kind was timed."""


@dataclass(frozen=True)
class Job:
    """A run in its short or full version, on the tables of a data folder."""

    run: Run
    is_full: bool
    data_folder: str | None

    @property
    def name(self) -> str:
        """The name of its files: the study, its figure, and a hash of all options.

        >>> Job(Run("kmeans", "blocks"), False, None).name
        'kmeans-blocks-3de732df'
        """
        given = json.dumps(self.run.given(is_full=self.is_full), sort_keys=True)
        digest = sha256(given.encode()).hexdigest()[:8]
        words = [self.run.study, *([self.run.figure] if self.run.figure else []), digest]
        return "-".join(words)

    def plan(self) -> Plan:
        """Plan the trials."""
        given = self.run.given(is_full=self.is_full)
        repeats = int(given.pop("repeats"))
        return study_of(self.run.study).plan(repeats, data_folder=self.data_folder, **given)


class Done(NamedTuple):
    """What came of a job: its results, or why there are none."""

    outcome: Outcome | None
    notes: tuple[str, ...]
    refused: str = ""


def jobs_of(items: Sequence[Item], *, is_full: bool, data_folder: str | None) -> list[Job]:
    """List the runs that items need, each once."""
    jobs = [Job(item.run, is_full, data_folder) for item in items if item.run is not None]
    return list({job.name: job for job in jobs}.values())


def run_jobs(
    jobs: Sequence[Job], output: Path, *, workers: int = 1, progress: Progress | None = None
) -> dict[str, Done]:
    """Run the jobs in `workers` processes, longest first, and return what came of each by name.

    A job whose tables are absent is refused with the reason; any other error stops the rest.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {output}: {error.strerror}") from error
    ordered = sorted(jobs, key=lambda job: -estimated_seconds([job], output))
    for count, name in enumerate(_finished(ordered, output, workers)):
        if progress is not None:
            progress(count + 1, len(ordered), name)
    return {job.name: _collect(job, output) for job in jobs}


def _finished(jobs: Sequence[Job], output: Path, workers: int) -> Iterator[str]:
    if workers == 1:
        for job in jobs:
            yield run_job(job, output)
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        try:
            waiting: list[Future[str]] = [pool.submit(run_job, job, output) for job in jobs]
            for future in as_completed(waiting):
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def run_job(job: Job, output: Path) -> str:
    """Run the trials of a job that are not in its file yet; return its name."""
    try:
        plan = job.plan()
    except DPublishError:
        return job.name  # `_collect` says why
    plan.run(output / f"{job.name}.jsonl")
    return job.name


def _collect(job: Job, output: Path) -> Done:
    try:
        plan = job.plan()
    except DPublishError as error:
        return Done(None, (), str(error))
    return Done(Outcome(plan.study, plan.run(output / f"{job.name}.jsonl")), plan.notes)


def estimated_seconds(jobs: Sequence[Job], output: Path) -> float:
    """Estimate the processor time that is left: trials to run times the seconds of one.

    The seconds come from trials of the same figure in the folder; failing that, from those that
    were recorded with this package.  Trials at the far end of an axis take longer than the mean.
    """
    return sum(_seconds_left(job, output) for job in jobs)


def _seconds_left(job: Job, output: Path) -> float:
    try:
        trials = len(job.plan().trials)
    except DPublishError:
        return 0.0
    timed = read_seconds(output / f"{job.name}.jsonl")
    return max(trials - len(timed), 0) * _seconds_each(job, timed, output)


def _seconds_each(job: Job, timed: Sequence[float], output: Path) -> float:
    if not timed:
        short = Job(job.run, False, job.data_folder)
        timed = read_seconds(output / f"{short.name}.jsonl")
        if not timed:
            return recorded_seconds().get(short.name, _USUAL_SECONDS)
    return fmean(timed)


@cache
def recorded_seconds() -> Mapping[str, float]:
    """Read the seconds of a trial by the name of its short run, as they were recorded."""
    path = files("dpublish.experiments.reproduce").joinpath("seconds.json")
    found: dict[str, float] = json.loads(path.read_text("utf-8"))
    return found


def measured_seconds(jobs: Sequence[Job], output: Path) -> dict[str, float]:
    """Average the seconds of a trial of each job that was run."""
    timed = {job.name: read_seconds(output / f"{job.name}.jsonl") for job in jobs}
    return {name: round(fmean(seconds), 3) for name, seconds in sorted(timed.items()) if seconds}


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started within use one thread of linear algebra each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
