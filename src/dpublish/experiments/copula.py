"""How good are range counts from a synthetic table?

The evaluation of DPCopula (H. Li, L. Xiong and X. Jiang, EDBT 2014) on simulated tables with
Gaussian dependence and on four numbers of UCI Adult: the error of random range counts of every
method that publishes a table of many columns, against epsilon, the ratio of budgets, the number
of columns, the size of queries, the shape of marginals, other methods, and time.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.method import Method
from dpublish.core.prediction import encode_rows
from dpublish.core.registry import CATALOG, make_method
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
from dpublish.experiments.study import (
    CANNOT_RUN,
    EPSILON_AXIS,
    Figure,
    Plan,
    Request,
    RunTrial,
    Study,
)
from dpublish.experiments.trials import (
    REFUSED,
    SECONDS,
    Cells,
    Key,
    Result,
    Trial,
    how_often,
    means_by,
)
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.randomness import plain_generator
from dpublish.report.section import Listing
from dpublish.types import FloatArray, IntArray

NAME = "copula"
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
SIMULATED = ("simulated", "simulated-uniform", "simulated-zipf")


_BETWEEN = "between records"  # how queries are drawn where records are
_RANGES = (
    "The two ends of each range are drawn evenly from all values of the column.",
    "The two ends of each range are the values of two records drawn at random, so that "
    "queries are where the records are.",
)


class Competitor(NamedTuple):
    """A method with some of its settings."""

    method: str
    settings: Mapping[str, str] = {}


METHODS: Mapping[str, Competitor] = {
    "dpcopula": Competitor("dpcopula"),
    **{
        f"dpcopula-{name}": Competitor("dpcopula", {"correlation": name})
        for name in ("spearman", "kendall", "mle")
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
COMPARED = tuple(name for name, method in METHODS.items() if name == method.method)


_EPSILON_READING = (
    "From left to right privacy gets weaker, so there is less noise, and answers come nearer "
    "to the truth."
)
_NEARER = ("dpcopula", "marginals", "psd", "privbayes")
_figure = partial(Figure, datasets=("simulated",), measures=(RELATIVE,))
FIGURES = {
    "epsilon": _figure(
        title="How good are range counts from a synthetic table?",
        across=EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
        methods=_NEARER,
        datasets=("simulated", "adult-numbers"),
    ),
    "ratio": _figure(
        title="How should the budget be shared between marginals and correlations?",
        across="budget of the marginals as a multiple of that of the correlations",
        reading="From left to right more of the budget goes to the marginals, and less to what "
        "ties the columns to each other.",
        epsilons=("0.1", "1"),
        methods=("dpcopula",),
        key="ratio",
        values=("0.25", "1", "2", "4", "8", "16", "32"),
        datasets=("simulated", "adult-numbers"),
    ),
    "dimensions": _figure(
        title="How many columns can a synthetic table have?",
        across="number of columns",
        reading="From left to right the tables have more columns, each query is about all "
        "of them, and the budget is shared by more marginals.",
        epsilons=("1",),
        methods=COMPARED,
        key="columns",
        values=("2", "4", "6", "8", "10"),
        is_log=False,
    ),
    "query-size": _figure(
        title="How large must a query be to be answered well?",
        across="part of the domain that a query covers",
        reading="From left to right queries cover more of the domain, so there are more "
        "records in the answer.",
        epsilons=("1",),
        methods=_NEARER,
        key="coverage",
        values=("0.0001", "0.001", "0.01", "0.1", "0.5"),
        datasets=("simulated", "adult-numbers"),
    ),
    "marginals": _figure(
        title="Do the shapes of marginals matter?",
        across=EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.1", "1"),
        methods=COMPARED,
        datasets=SIMULATED,
        measures=(BETWEEN_RECORDS,),
    ),
    "comparators": _figure(
        title="Which method answers range counts best?",
        across=EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.1", "1"),
        methods=COMPARED,
        datasets=("simulated", "adult-numbers"),
    ),
    "correlation": _figure(
        title="Which correlation should tie the columns?",
        across=EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.05", "0.1", "0.5", "1", "2"),
        methods=("dpcopula-spearman", "dpcopula-kendall", "dpcopula-mle", "marginals"),
        datasets=("simulated", "adult-numbers"),
    ),
    "time": _figure(
        title="How long does it take?",
        across="number of rows",
        reading="From left to right the tables have more rows; the line of a method whose time "
        "is in proportion to the rows rises by ten where the rows do.",
        epsilons=("1",),
        methods=("dpcopula-spearman", "dpcopula-kendall", "dpcopula-mle", "psd", "privbayes"),
        key="records",
        values=("10000", "100000", "1000000"),
        measures=(SECONDS,),
    ),
}


def available_methods() -> tuple[str, ...]:
    """List the methods whose method is there."""
    return tuple(name for name, method in METHODS.items() if method.method in CATALOG)


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


class CopulaRunner:
    """Runs trials on the tables of a data folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.load = lru_cache(maxsize=1)(self._load)
        self.queries = lru_cache(maxsize=8)(self._draw_queries)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish, query, and measure the answers and the processor's seconds."""
        if refusal(trial) is not None:
            return {REFUSED: 1.0}
        size = _size(trial)
        coverage = str(trial.setting.get("coverage", ""))
        asked = [self.queries(size, trial.seed, how) for how in (coverage, _BETWEEN)]
        task = self.load(*size)
        if trial.method == ALWAYS_ZERO:
            return _errors(asked, [np.zeros(QUERIES)] * 2)
        if trial.method == EXACT_MARGINALS:
            return _errors(asked, [independent_counts(task.codes, x.workload) for x in asked])
        table = open_table(task.rows, task.schema)
        begin = process_time()
        release = method_of(trial).release(
            table, budget=Budget.seeded(trial.epsilon), rng=trial.rng()
        )
        published = process_time()
        given = [answers(release, x.workload, trial.seed) for x in asked]
        answered = process_time()
        measured = _errors(asked, given)
        if gives_rows(release):
            drawn = encode_rows(release.rows(seed=trial.seed), task.schema, task.schema.names)
            counted = true_counts(drawn, asked[0].workload).astype(np.float64)
            measured[FROM_ROWS] = asked[0].errors(counted).mean_relative
        measured[SECONDS] = round(published - begin, 3)
        measured[ANSWER_SECONDS] = round((answered - published) / len(asked), 3)
        return measured

    def _draw_queries(self, size: tuple[str, int, int], seed: int, how: str) -> Queries:
        task, rng = self.load(*size), plain_generator(seed)
        names = task.schema.names
        if how == _BETWEEN:
            workload = ranges_between_records(task.codes, names, QUERIES, rng)
        else:
            coverage = float(how) if how else None
            workload = random_ranges(task.schema, names, QUERIES, rng, coverage=coverage)
        truth = true_counts(task.codes, workload)
        return Queries(workload, truth, max(SANITY * task.rows.num_rows, 1.0))

    def _load(self, dataset: str, columns: int, records: int) -> Task:
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


def method_of(trial: Trial) -> Method[Any]:
    """Build the method of a trial."""
    competitor = METHODS[trial.method]
    settings: dict[str, Any] = dict(competitor.settings)
    if "ratio" in trial.setting:
        settings["ratio"] = str(trial.setting["ratio"])
    return make_method(competitor.method, settings)


def refusal(trial: Trial) -> str | None:
    """Return why a method cannot run, if it refuses from public facts."""
    if trial.method in REFERENCES:
        return None
    dataset, columns, records = _size(trial)
    try:
        method_of(trial).expected_error(
            table_schema(dataset, columns),
            records or NUMBER_TABLES[dataset].records,
            parse_epsilon(trial.epsilon),
        )
    except InvalidParameter as reason:
        return str(reason)
    return None


def _size(trial: Trial) -> tuple[str, int, int]:
    given = trial.setting
    return trial.dataset, int(given.get("columns", 0)), int(given.get("records", 0))


def _errors(asked: Sequence[Queries], given: Sequence[FloatArray]) -> dict[str, float]:
    evenly, near = (x.errors(found) for x, found in zip(asked, given, strict=True))
    return {
        RELATIVE: evenly.mean_relative,
        MEDIAN: evenly.median_relative,
        ABSOLUTE: evenly.mean_absolute,
        BETWEEN_RECORDS: near.mean_relative,
        ABSOLUTE_BETWEEN_RECORDS: near.mean_absolute,
    }


class CopulaStudy(Study[Figure]):
    """Range counts from tables of many columns."""

    name = NAME
    figures = FIGURES
    datasets = NUMBER_TABLES
    references = REFERENCES
    cap = 4.0
    unit = "record"
    drawing_caption = (
        "Lower is better. Lines are means, bands one standard deviation; methods that are far "
        "behind everywhere are in the table alone."
    )

    def plan(self, repeats: int, **options: Any) -> Plan:
        """List the trials of one figure, with a note on each method that cannot run.

        A method that refuses a table from public facts is planned all the same, so that the
        page shows which method cannot run where.
        """
        planned = super().plan(repeats, **options)
        reasons: dict[str, None] = {}
        for trial in planned.trials:
            reason = refusal(trial) if trial.seed == 0 else None
            if reason is not None:
                reasons[f"{trial.method} cannot run on {_table_name(trial)}: {reason}"] = None
        return replace(planned, notes=(*planned.notes, *reasons))

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List the methods that this version has."""
        return available_methods()

    def usual_methods(self, figure: Figure) -> Collection[str]:
        """List those of the figure that this version has."""
        return [name for name in figure.methods if name in available_methods()]

    def known_datasets(self, figure: Figure) -> Collection[str]:
        """List the tables; only a simulated one can have other columns and rows."""
        is_simulated = figure.key in ("columns", "records")
        return figure.datasets if is_simulated else NUMBER_TABLES

    def trials(self, asked: Request[Figure], **_: Any) -> Iterator[Trial]:
        """List point by point the references, then all methods once before any of them twice.

        References have the same queries as the methods; each repeat has others.
        """
        figure = asked.figure
        for dataset in figure.datasets:
            for moved in asked.axis():
                setting = asked.setting(dataset, **moved)
                for seed in range(asked.repeats):
                    for reference in () if SECONDS in figure.measures else REFERENCES:
                        yield Trial(NAME, reference, "none", seed, setting)
                    for epsilon in figure.epsilons:
                        for method in figure.methods:
                            yield Trial(NAME, method, epsilon, seed, setting)

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the tables of a data folder."""
        return CopulaRunner(folder).run_trial

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return "seconds" if measure == SECONDS else "mean relative error"

    def panel_title(self, key: Key, dataset: str | None) -> str:
        """Name a panel by its dataset: there is one measure."""
        return key.dataset

    def drawn(self, group: Cells) -> list[Key]:
        """Draw all times, and of errors those that come near the best somewhere."""
        is_time = next(iter(group)).measure == SECONDS
        return [key for key, line in group.items() if line] if is_time else super().drawn(group)

    def explanation(self, figure: Figure) -> list[str]:
        """Explain the queries and the measure."""
        return [
            "A table with many columns is published without giving away whether any one record "
            "is in it. Others then count how many records lie in certain ranges, for example of "
            "age and income together. How far are the answers from the truth?",
            f"Each method answers {QUERIES:,} such queries, drawn at random, about all columns "
            f"at once. {_RANGES[BETWEEN_RECORDS in figure.measures]} The relative error is that "
            "part of the true count by which an answer is off; where the true count is below "
            "0.05 % of the rows, that number is taken instead. Lower is better; to answer 0 to "
            "everything is no better than publishing nothing.",
        ]

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a table."""
        title = NUMBER_TABLES[dataset].title
        return f"{title[0].upper()}{title[1:]}."

    def finding(self, best: Key, point: float, cells: Cells) -> str:
        """Name the nearest or fastest method."""
        what = "fastest" if best.measure == SECONDS else "nearest"
        return f"{best.short_name} is {what}: {cells[best][point].mean:.3f}"

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe what each method publishes."""
        points = []
        for name in used:
            if name in METHODS:
                method, settings = METHODS[name]
                given = ", ".join(f"{key} = {value}" for key, value in settings.items())
                how = f"{method} with {given}; it" if given else name
                points.append(f"{name}: {how} publishes {CATALOG[method].publishes}.")
        return points

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe repeats and answers."""
        return [
            f"Every method is run {how_often(results)} with fresh noise and fresh "
            "queries at every point, with its default settings. Answers are the release's own "
            "estimates where it offers them, and counts of its synthetic rows otherwise. A "
            "method that refuses a table from what is publicly known of it is marked "
            f'"{CANNOT_RUN}".',
        ]

    def costs(self, results: Sequence[Result]) -> list[Listing]:
        """List all mean errors and the mean time by dataset, method and budget."""
        measures = {
            RELATIVE: "relative error",
            FROM_ROWS: "from synthetic rows",
            BETWEEN_RECORDS: "ranges between records",
            SECONDS: "seconds",
        }
        rows = means_by(
            results, list(measures), lambda trial: (trial.dataset, trial.method, trial.epsilon)
        )
        caption = "Means over the whole axis; seconds are of the processor, for one release."
        return [Listing(["dataset", "method", "ε", *measures.values()], rows, caption)]


def _table_name(trial: Trial) -> str:
    given = trial.setting
    size = f" with {given['columns']} columns" if "columns" in given else ""
    return f"{trial.dataset}{size}"


STUDY = CopulaStudy()
