"""Where the trials of the comparison of synthetic tables are run, one at a time."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.method import Method
from dpublish.core.prediction import encode_rows
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.gaussian_copula import gaussian_copula, gaussian_copula_schema
from dpublish.datasets.number_tables import MADE_UP_COLUMNS, NUMBER_TABLES
from dpublish.errors import InvalidParameter
from dpublish.evaluation.classification import gives_rows
from dpublish.evaluation.metrics.queries import SANITY, QueryErrors, summarize_errors
from dpublish.evaluation.workload import (
    Workload,
    answers,
    independent_counts,
    random_ranges,
    ranges_between_records,
    true_counts,
)
from dpublish.experiments.copula_parts import (
    ABSOLUTE,
    ABSOLUTE_BETWEEN_RECORDS,
    ALWAYS_ZERO,
    ANSWER_SECONDS,
    BETWEEN_RECORDS,
    EXACT_MARGINALS,
    FROM_ROWS,
    MEDIAN,
    METHODS,
    QUESTIONS,
    REFERENCES,
    REFUSED,
    RELATIVE,
    SECONDS,
)
from dpublish.experiments.experiment import Trial
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.randomness import plain_generator

Estimates = NDArray[np.float64]
_FOLLOWING = "between records"


class Task(NamedTuple):
    """Rows, what is known about them, and their codes."""

    schema: Schema
    rows: pa.Table
    codes: dict[str, NDArray[np.int64]]


class Questions(NamedTuple):
    """Range counts and their true answers."""

    workload: Workload
    truth: NDArray[np.int64]
    sanity: float

    def errors(self, estimates: Estimates) -> QueryErrors:
        """Measure answers."""
        return summarize_errors(estimates, self.truth, self.sanity)


class Laboratory:
    """Runs trials on the tables of a data folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._load = lru_cache(maxsize=1)(self._load_uncached)
        self._ask = lru_cache(maxsize=8)(self._ask_uncached)

    def refusal(self, trial: Trial) -> str | None:
        """Say why a method cannot run, if it refuses from public facts."""
        if trial.method in REFERENCES:
            return None
        dataset, columns, records = _place(trial)
        try:
            method(trial).expected_error(
                table_schema(dataset, columns),
                records or NUMBER_TABLES[dataset].records,
                parse_epsilon(trial.epsilon),
            )
        except InvalidParameter as reason:
            return str(reason)
        return None

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish, ask, and measure the answers; and tell the processor's seconds."""
        if self.refusal(trial) is not None:
            return {REFUSED: 1.0}
        place = _place(trial)
        coverage = str(trial.setting.get("coverage", ""))
        asked = [self._ask(place, trial.seed, how) for how in (coverage, _FOLLOWING)]
        task = self._load(*place)
        if trial.method == ALWAYS_ZERO:
            return _figures(asked, [np.zeros(QUESTIONS)] * 2)
        if trial.method == EXACT_MARGINALS:
            return _figures(asked, [independent_counts(task.codes, x.workload) for x in asked])
        table = open_table(task.rows, task.schema)
        begin = process_time()
        release = method(trial).release(table, budget=Budget.seeded(trial.epsilon), rng=trial.rng())
        published = process_time()
        given = [answers(release, x.workload, trial.seed) for x in asked]
        answered = process_time()
        figures = _figures(asked, given)
        if gives_rows(release):
            drawn = encode_rows(release.rows(seed=trial.seed), task.schema, task.schema.names)
            counted = true_counts(drawn, asked[0].workload).astype(np.float64)
            figures[FROM_ROWS] = asked[0].errors(counted).mean_relative
        figures[SECONDS] = round(published - begin, 3)
        figures[ANSWER_SECONDS] = round((answered - published) / len(asked), 3)
        return figures

    def _ask_uncached(self, place: tuple[str, int, int], seed: int, how: str) -> Questions:
        task, rng = self._load(*place), plain_generator(seed)
        names = task.schema.names
        if how == _FOLLOWING:
            workload = ranges_between_records(task.codes, names, QUESTIONS, rng)
        else:
            coverage = float(how) if how else None
            workload = random_ranges(task.schema, names, QUESTIONS, rng, coverage=coverage)
        truth = true_counts(task.codes, workload)
        return Questions(workload, truth, max(SANITY * task.rows.num_rows, 1.0))

    def _load_uncached(self, dataset: str, columns: int, records: int) -> Task:
        schema = table_schema(dataset, columns)
        known = NUMBER_TABLES[dataset]
        if columns or records:
            rows = gaussian_copula(records or known.records, columns or MADE_UP_COLUMNS)
        else:
            rows = known.rows(self._folder)
        return Task(schema, rows, encode_rows(rows, schema, schema.names))


def table_schema(dataset: str, columns: int) -> Schema:
    """Describe a table, or one that is simulated with so many columns."""
    return gaussian_copula_schema(columns) if columns else NUMBER_TABLES[dataset].schema


def method(trial: Trial) -> Method[Any]:
    """Build the method of a trial."""
    method = METHODS[trial.method]
    settings: dict[str, Any] = dict(method.settings)
    if "ratio" in trial.setting:
        settings["ratio"] = str(trial.setting["ratio"])
    return make_method(method.method, settings)


def _place(trial: Trial) -> tuple[str, int, int]:
    given = trial.setting
    return str(given["dataset"]), int(given.get("columns", 0)), int(given.get("records", 0))


def _figures(asked: Sequence[Questions], given: Sequence[Estimates]) -> dict[str, float]:
    evenly, following = (x.errors(found) for x, found in zip(asked, given, strict=True))
    return {
        RELATIVE: evenly.mean_relative,
        MEDIAN: evenly.median_relative,
        ABSOLUTE: evenly.mean_absolute,
        BETWEEN_RECORDS: following.mean_relative,
        ABSOLUTE_BETWEEN_RECORDS: following.mean_absolute,
    }
