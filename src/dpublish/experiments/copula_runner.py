"""Run a trial of the copula study: publish a table, query it, measure answers and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from dpublish.core.method import Method
from dpublish.core.prediction import encode_rows
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.gaussian_copula import gaussian_copula_schema
from dpublish.datasets.number_tables import MADE_UP_COLUMNS
from dpublish.errors import InvalidParameter, require_count
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
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.trials import REFUSED, SECONDS, Trial
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

EXACT_MARGINALS = "exact-marginals"
"""A reference: true marginals, as if columns were independent.  Not private."""
ALWAYS_ZERO = "always-zero"
"""A reference: every answer is 0.  Whatever is not better than this says nothing."""
REFERENCES = {
    EXACT_MARGINALS: "No privacy: true marginals, as if columns were independent",
    ALWAYS_ZERO: "Nothing published: every answer is 0",
}
RELATIVE, MEDIAN, ABSOLUTE = "relative", "median", "absolute"
BETWEEN_RECORDS, FROM_ROWS = "relative_between_records", "relative_from_rows"
ABSOLUTE_BETWEEN_RECORDS = "absolute_between_records"
ANSWER_SECONDS = "answer_seconds"
QUERIES = 1_000
KNOBS = {
    "columns": "how many columns the table has (of a public table, its first ones)",
    "rows": "how many rows it has (of a public table, drawn at random)",
    "sanity": "the sanity bound: a number of rows, or a part of them such as 0.05%",
    "queries": "how many queries each method answers; 0 measures the time of a release alone",
}

_BETWEEN = "between records"  # how queries are drawn where records are
_ORDERED_ONLY = ("psd", "privelet", "p-hp", "filter-priority", "ug", "ag")
"""Methods that leave categories out unless they are named."""


class Competitor(NamedTuple):
    """A method with some of its settings."""

    method: str
    settings: Mapping[str, str] = {}


_PAPER = {
    "marginal": "efpa",
    "correlation": "kendall",
    "ratio": "8",
    "shrink": "false",
    "sample": "paper",
}
METHODS: Mapping[str, Competitor] = {
    "dpcopula": Competitor("dpcopula"),
    "dpcopula-paper": Competitor("dpcopula", _PAPER),
    "dpcopula-paper-all": Competitor("dpcopula", {**_PAPER, "sample": "auto"}),
    **{
        f"dpcopula-{name}": Competitor("dpcopula", {"correlation": name})
        for name in ("spearman", "kendall", "mle")
    },
    "dpcopula-hybrid": Competitor("dpcopula-hybrid"),
    "dpcopula-hybrid-paper": Competitor(
        "dpcopula-hybrid", {"design": "cells", "marginal": "efpa", "copulas": "per-cell"}
    ),
    **{
        f"dpcopula-hybrid-{name}": Competitor("dpcopula-hybrid", {"design": name})
        for name in ("cells", "network", "numbers-first")
    },
    **{
        name: Competitor(name)
        for name in (
            "marginals",
            "psd",
            "privelet",
            "p-hp",
            "filter-priority",
            "ug",
            "ag",
            "privbayes",
        )
    },
}


class RangeTable(Protocol):
    """A table to query: public rows of columns whose values have an order."""

    @property
    def title(self) -> str:
        """What it holds, in words."""
        ...

    @property
    def records(self) -> int:
        """How many rows it has."""
        ...

    @property
    def is_simulated(self) -> bool:
        """Whether rows and columns can be as many as one likes."""
        ...

    @property
    def schema(self) -> Schema:
        """The columns and their bounds."""
        ...

    def missing_file(self, folder: Path | None) -> str | None:
        """Name the file that the folder lacks, if any."""
        ...

    def rows(self, folder: Path | None) -> pa.Table:
        """Read the rows, or simulate them."""
        ...

    def simulate(self, records: int, columns: int) -> pa.Table:
        """Simulate rows."""
        ...


Tables = Mapping[str, RangeTable]


@dataclass(frozen=True)
class GivenTable:
    """A table of the user's own."""

    given: OwnTable

    is_simulated = False

    @property
    def title(self) -> str:
        """What it holds."""
        return f"the table {self.given.name}"

    @property
    def records(self) -> int:
        """How many rows it has."""
        return int(self.given.rows.num_rows)

    @property
    def schema(self) -> Schema:
        """The columns and their bounds."""
        return self.given.schema

    def missing_file(self, folder: Path | None) -> str | None:
        """It is here."""
        return None

    def rows(self, folder: Path | None) -> pa.Table:
        """Return the rows."""
        return self.given.rows

    def simulate(self, records: int, columns: int) -> pa.Table:
        """Refuse: nothing is known but the rows."""
        raise InvalidParameter(f"{self.title} cannot be simulated")


class Size(NamedTuple):
    """Which table, and how many columns and rows of it; 0 for all."""

    dataset: str
    columns: int
    rows: int

    @classmethod
    def of(cls, trial: Trial) -> "Size":
        """Read the size from a trial's setting."""
        columns, rows = (_count(trial, name) for name in ("columns", "rows"))
        return cls(trial.dataset, columns, rows)


def _count(trial: Trial, name: str) -> int:
    text = trial.setting.get(name, 0)
    try:
        number = int(text)
    except ValueError:
        raise InvalidParameter(f"{name} ({text}) must be an integer") from None
    require_count(at_least=0, **{name: number})
    return number


def query_count(trial: Trial) -> int:
    """Return how many queries a trial asks."""
    return _count(trial, "queries") if "queries" in trial.setting else QUERIES


def sanity_bound(text: str, records: int) -> float:
    """Read the sanity bound: a number of rows, or a part of them.

    >>> sanity_bound("10", 50_000), sanity_bound("0.05%", 50_000)
    (10.0, 25.0)
    """
    try:
        amount = Fraction(text.removesuffix("%"))
    except ValueError:
        amount = Fraction(0)
    if amount <= 0:
        raise InvalidParameter(f"sanity ({text}) must be a positive number of rows, or a part in %")
    return float(amount * records / 100) if text.endswith("%") else float(amount)


class Task(NamedTuple):
    """Rows, what is known about them, and their codes."""

    schema: Schema
    rows: pa.Table
    codes: dict[str, IntArray]


class Queries(NamedTuple):
    """Range counts and their true answers."""

    workload: Workload
    truth: IntArray
    sanity: float

    def errors(self, estimates: FloatArray) -> QueryErrors:
        """Measure answers."""
        return summarize_errors(estimates, self.truth, self.sanity)


class Asked(NamedTuple):
    """How queries are drawn: how many, of what size, with which sanity bound."""

    queries: int
    sanity: str
    how: str


class CopulaRunner:
    """Runs trials on tables, some of them in a data folder."""

    def __init__(self, folder: Path | None, tables: Tables) -> None:
        self._folder = folder
        self._tables = tables
        self.load = lru_cache(maxsize=1)(self._load)
        self.queries = lru_cache(maxsize=8)(self._draw_queries)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish, query, and measure the answers and the processor's seconds."""
        if refusal(trial, self._tables) is not None:
            return {REFUSED: 1.0}
        size = Size.of(trial)
        task = self.load(size)
        asked = self._asked(trial, size)
        if trial.method in REFERENCES:
            return _errors(asked, [_without_privacy(trial.method, task, x) for x in asked])
        table = open_table(task.rows, task.schema)
        begin = process_time()
        release = method_of(trial, task.schema).release(
            table, budget=Budget.seeded(trial.epsilon), rng=trial.rng()
        )
        published = process_time()
        measured = {SECONDS: round(published - begin, 3)}
        if not asked:
            return measured
        given = [answers(release, x.workload, trial.seed) for x in asked]
        answered = process_time()
        measured = {**_errors(asked, given), **measured}
        if gives_rows(release):
            drawn = encode_rows(release.rows(seed=trial.seed), task.schema, task.schema.names)
            counted = true_counts(drawn, asked[0].workload).astype(np.float64)
            measured[FROM_ROWS] = asked[0].errors(counted).mean_relative
        measured[ANSWER_SECONDS] = round((answered - published) / len(asked), 3)
        return measured

    def _asked(self, trial: Trial, size: Size) -> list[Queries]:
        """Draw the queries of a trial: evenly, and where records are; none if time is all."""
        queries = query_count(trial)
        sanity = str(trial.setting.get("sanity", ""))
        coverage = str(trial.setting.get("coverage", ""))
        ways = (coverage, _BETWEEN) if queries else ()
        return [self.queries(size, trial.seed, Asked(queries, sanity, how)) for how in ways]

    def _draw_queries(self, size: Size, seed: int, asked: Asked) -> Queries:
        task, rng = self.load(size), plain_generator(seed)
        names, how = task.schema.names, asked.how
        if how == _BETWEEN:
            workload = ranges_between_records(task.codes, names, asked.queries, rng)
        else:
            coverage = float(how) if how else None
            workload = random_ranges(task.schema, names, asked.queries, rng, coverage=coverage)
        truth = true_counts(task.codes, workload)
        records = task.rows.num_rows
        usual = max(SANITY * records, 1.0)
        return Queries(
            workload, truth, sanity_bound(asked.sanity, records) if asked.sanity else usual
        )

    def _load(self, size: Size) -> Task:
        schema = table_schema(size, self._tables)
        known = self._tables[size.dataset]
        if known.is_simulated and (size.columns or size.rows):
            rows = known.simulate(size.rows or known.records, size.columns or MADE_UP_COLUMNS)
        else:
            rows = known.rows(self._folder).select(schema.names)
            if size.rows and not known.is_simulated:
                rows = _draw_rows(rows, size.rows)
        return Task(schema, rows, encode_rows(rows, schema, schema.names))


def _draw_rows(rows: pa.Table, wanted: int) -> pa.Table:
    """Draw rows at random, with replacement if there are fewer than wanted."""
    rng = plain_generator(2024)
    return rows.take(rng.choice(rows.num_rows, wanted, replace=wanted > rows.num_rows))


def _without_privacy(reference: str, task: Task, asked: Queries) -> FloatArray:
    if reference == ALWAYS_ZERO:
        return np.zeros(len(asked.workload))
    return independent_counts(task.codes, asked.workload)


def table_schema(size: Size, tables: Tables) -> Schema:
    """Describe a table with so many columns."""
    known = tables[size.dataset]
    if not size.columns:
        return known.schema
    if known.is_simulated:
        return gaussian_copula_schema(size.columns)
    names = known.schema.names
    if size.columns > len(names):
        raise InvalidParameter(
            f"{size.dataset} has {len(names)} columns, not {size.columns}; only simulated tables "
            "have as many as you like (--values, --set columns=...)"
        )
    columns = tuple(known.schema[name] for name in names[: size.columns])
    return Schema(columns, name=known.schema.name)


def method_of(trial: Trial, schema: Schema) -> Method[Any]:
    """Build the method of a trial."""
    competitor = METHODS[trial.method]
    settings: dict[str, Any] = dict(competitor.settings)
    if "ratio" in trial.setting and competitor.method == "dpcopula":
        settings["ratio"] = str(trial.setting["ratio"])
    if competitor.method in _ORDERED_ONLY and any(c.kind == "category" for c in schema.columns):
        settings["columns"] = schema.names
    return make_method(competitor.method, settings)


def refusal(trial: Trial, tables: Tables) -> str | None:
    """Return why a method cannot run, if it refuses from public facts."""
    size = Size.of(trial)
    schema = table_schema(size, tables)
    if trial.method in REFERENCES:
        return None
    try:
        method_of(trial, schema).expected_error(
            schema, size.rows or tables[size.dataset].records, parse_epsilon(trial.epsilon)
        )
    except InvalidParameter as reason:
        return str(reason)
    return None


def _errors(asked: Sequence[Queries], given: Sequence[FloatArray]) -> dict[str, float]:
    evenly, near = (x.errors(found) for x, found in zip(asked, given, strict=True))
    return {
        RELATIVE: evenly.mean_relative,
        MEDIAN: evenly.median_relative,
        ABSOLUTE: evenly.mean_absolute,
        BETWEEN_RECORDS: near.mean_relative,
        ABSOLUTE_BETWEEN_RECORDS: near.mean_absolute,
    }
