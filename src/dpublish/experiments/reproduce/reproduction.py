"""`dpublish experiment all`: every item of every document, its pages, and how long it will take."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpublish.core.method import Progress
from dpublish.datasets.benchmarks import find_data_folder
from dpublish.errors import InputError, InvalidParameter, require_known
from dpublish.experiments import EXPERIMENTS
from dpublish.experiments.reproduce.documents import DOCUMENTS, all_items
from dpublish.experiments.reproduce.item import Item
from dpublish.experiments.reproduce.pages import Judged, count_words, write_pages
from dpublish.experiments.reproduce.rerun import (
    Job,
    estimated_seconds,
    jobs_of,
    measured_seconds,
    run_jobs,
)
from dpublish.storage.files import write_text


@dataclass(frozen=True)
class Reproduction:
    """The items to run again, in which version, and where their results are kept."""

    items: tuple[Item, ...]
    jobs: tuple[Job, ...]
    output: Path
    is_full: bool
    data_folder: str | None

    @classmethod
    def plan(
        cls,
        output: Path,
        *,
        is_full: bool = False,
        data_folder: str | None = None,
        studies: Sequence[str] | None = None,
    ) -> "Reproduction":
        """List what is to be run: all items, or those of some experiments."""
        for name in studies or ():
            require_known("experiment", name, EXPERIMENTS)
        items = tuple(
            item
            for item in all_items()
            if studies is None or (item.run is not None and item.run.study in studies)
        )
        if not items:
            raise InvalidParameter(f"no item of any document is run by {', '.join(studies or ())}")
        folder = find_data_folder(data_folder)
        named = None if folder is None else str(folder)
        jobs = jobs_of(items, is_full=is_full, data_folder=named)
        return cls(items, tuple(jobs), output, is_full, named)

    def estimate_words(self, workers: int) -> str:
        """Write how long the runs will take, before any of them is begun."""
        seconds = estimated_seconds(self.jobs, self.output) / workers
        return (
            f"{len(self.items)} items, {len(self.jobs)} runs, "
            f"about {format_duration(seconds)} on {workers} core{'s' if workers > 1 else ''} "
            "(from the seconds of earlier trials; longer where axes are longer). "
            "Interrupt it at will: it goes on where it stopped."
        )

    def run(
        self, pages: Path, workers: int = 1, progress: Progress | None = None
    ) -> dict[str, list[Judged]]:
        """Run what is not yet done, and write the pages; return the verdicts by document."""
        done = run_jobs(self.jobs, self.output, workers=workers, progress=progress)
        try:
            verdicts = write_pages(
                self.items, done, pages, is_full=self.is_full, data=self.data_folder
            )
            seconds = measured_seconds(self.jobs, self.output)
            text = json.dumps(seconds, indent=1) + "\n"
            write_text(self.output / "seconds.json", text, replaces=True)
        except OSError as error:
            raise InputError(f"cannot write to {pages}: {error.strerror}") from error
        return verdicts

    def summary(self, verdicts: dict[str, list[Judged]]) -> tuple[list[str], list[list[str]]]:
        """Lay out how each document came out."""
        rows = [
            [name, DOCUMENTS[name].title, count_words(judged)]
            for name, judged in verdicts.items()
            if judged
        ]
        return ["document", "title", "verdicts"], rows


def format_duration(seconds: float) -> str:
    """Write a duration for people.

    >>> [format_duration(each) for each in (20, 90, 1_500, 40_000)]
    ['1 minute', '2 minutes', '25 minutes', '11 hours']
    """
    minutes = max(round(seconds / 60), 1)
    if minutes < 90:
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    return f"{round(minutes / 60)} hours"
