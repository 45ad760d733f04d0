"""Where the trials of the comparison of streams are run, one at a time."""

from functools import lru_cache
from pathlib import Path
from statistics import fmean
from time import perf_counter

import numpy as np

from dpublish.datasets.stream_sets import STREAM_SETS
from dpublish.datasets.streams import CountStream
from dpublish.evaluation.metrics.streams import RangeQueries
from dpublish.experiments.experiment import Trial
from dpublish.experiments.streams_parts import (
    ANSWER,
    ERROR,
    MAKERS,
    METHODS,
    PUBLISHED,
    QUESTIONS,
    SECONDS,
    SLOT,
    SLOTS,
    SUMMARY,
)
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget

_FIRST_SEED = 2024


class Laboratory:
    """Publishes streams of a data folder and compares what comes out with the true counts."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._load = lru_cache(maxsize=1)(self._load_uncached)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish a whole stream; give the mean error of random ranges over all its steps."""
        given = trial.setting
        changes = tuple((key, int(given[key])) for key in MAKERS if key in given)
        stream = self._load(str(given["dataset"]), trial.seed, changes)
        share = int(given["share"]) / 1_000 if "share" in given else None
        queries = RangeQueries.draw(stream.shape, QUESTIONS, seed=trial.seed, share=share)
        contender = METHODS[trial.method]
        settings = {"columns": stream.columns, **contender.settings(stream.steps, given)}
        method = make_stream_method(contender.method, settings)
        rng = trial.rng()
        begin = perf_counter()
        opened = method.start(stream.schema, budget=Budget.seeded(trial.epsilon), rng=rng)
        steps = [opened.next_counts(counts, rng=rng) for counts in stream.counts]
        seconds = perf_counter() - begin
        errors = [
            queries.mean_error(step.estimate, truth)
            for step, truth in zip(steps, stream.counts, strict=True)
        ]
        figures = {
            ERROR: fmean(errors),
            ANSWER: float(queries.answers(stream.counts.mean(axis=0)).mean()),
            PUBLISHED: float(sum(step.action == "published" for step in steps)),
            SECONDS: round(seconds, 3),
        }
        return figures | (_slots(errors) if given["part"] == SUMMARY else {})

    def _load_uncached(
        self, dataset: str, seed: int, changes: tuple[tuple[str, int], ...]
    ) -> CountStream:
        chosen = STREAM_SETS[dataset]
        settings: dict[str, float] = {"seed": _FIRST_SEED + seed} if chosen.is_drawn else {}
        for key, value in changes:
            whole = MAKERS[key]
            settings[key] = value if whole is None else value / whole
        return chosen.stream(self._folder, settings)


def _slots(errors: list[float]) -> dict[str, float]:
    """Average the errors over parts of the stream of about equal length."""
    parts = np.array_split(np.array(errors), min(SLOTS, len(errors)))
    return {f"{SLOT}{number}": float(f"{part.mean():.4g}") for number, part in enumerate(parts)}
