"""How good are range counts from a synthetic table?

The evaluation of DPCopula (H. Li, L. Xiong and X. Jiang, EDBT 2014; chapter 3 of H. Li's thesis)
on simulated tables with Gaussian dependence and on public tables of people: the error of random
range counts of every method that publishes a table of many columns, against epsilon, the ratio
of budgets, the number of columns and of rows, the size of queries, the shape of marginals, other
methods, and time.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, cast

from dpublish.core.registry import CATALOG
from dpublish.datasets.number_tables import NUMBER_TABLES
from dpublish.experiments.copula_runner import (
    ABSOLUTE,
    BETWEEN_RECORDS,
    FROM_ROWS,
    KNOBS,
    METHODS,
    QUERIES,
    REFERENCES,
    RELATIVE,
    CopulaRunner,
    GivenTable,
    Size,
    Tables,
    refusal,
    table_schema,
)
from dpublish.experiments.own_table import OwnTable
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
    SECONDS,
    Cells,
    Key,
    Result,
    Trial,
    how_often,
    means_by,
)
from dpublish.report.section import Listing

NAME = "copula"
SIMULATED = ("simulated", "simulated-uniform", "simulated-zipf")
PEOPLE = ("us-census", "acs-people")
COMPARED = (
    "dpcopula",
    "marginals",
    "psd",
    "privelet",
    "p-hp",
    "filter-priority",
    "ug",
    "ag",
    "privbayes",
)
_RANGES = (
    "The two ends of each range are drawn evenly from all values of the column.",
    "The two ends of each range are the values of two records drawn at random, so that "
    "queries are where the records are.",
)
_MEASURES = {
    RELATIVE: "mean relative error",
    BETWEEN_RECORDS: "mean relative error",
    ABSOLUTE: "mean absolute error",
    SECONDS: "seconds",
}


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
        methods=("dpcopula", "dpcopula-paper"),
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
        measures=(RELATIVE, ABSOLUTE),
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
        measures=(RELATIVE, ABSOLUTE),
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
    "mixed": _figure(
        title="How good are range counts from a table of numbers and categories?",
        across=EPSILON_AXIS,
        reading=_EPSILON_READING,
        epsilons=("0.1", "0.25", "0.5", "1"),
        methods=(
            "dpcopula-hybrid",
            "dpcopula-hybrid-paper",
            "dpcopula",
            "psd",
            "p-hp",
            "privelet",
            "filter-priority",
        ),
        datasets=PEOPLE,
    ),
    "rows": _figure(
        title="How many records does a synthetic table need?",
        across="number of rows",
        reading="From left to right the tables have more rows, against which the noise is "
        "smaller and smaller.",
        epsilons=("1",),
        methods=("dpcopula", "dpcopula-paper", "dpcopula-mle", "psd"),
        key="rows",
        values=("1000", "10000", "100000", "1000000"),
    ),
    "time": _figure(
        title="How long does it take?",
        across="number of rows",
        reading="From left to right the tables have more rows; the line of a method whose time "
        "is in proportion to the rows rises by ten where the rows do.",
        epsilons=("1",),
        methods=(
            "dpcopula-spearman",
            "dpcopula-kendall",
            "dpcopula-mle",
            "psd",
            "privelet",
            "privbayes",
        ),
        datasets=("simulated", "us-census"),
        key="rows",
        values=("10000", "100000", "1000000"),
        measures=(SECONDS,),
        fixed={"queries": 0},
    ),
    "time-columns": _figure(
        title="How long do many columns take?",
        across="number of columns",
        reading="From left to right the tables have more columns; pairs of columns grow with "
        "their square.",
        epsilons=("1",),
        methods=("dpcopula-spearman", "dpcopula-kendall", "dpcopula-mle", "psd", "privelet"),
        key="columns",
        values=("2", "4", "6", "8", "10", "20"),
        is_log=False,
        measures=(SECONDS,),
        fixed={"queries": 0},
    ),
}


def available_methods() -> tuple[str, ...]:
    """List the methods whose method is there."""
    return tuple(name for name, method in METHODS.items() if method.method in CATALOG)


class CopulaStudy(Study[Figure]):
    """Range counts from tables of many columns."""

    name = NAME
    figures = FIGURES
    datasets: Tables = NUMBER_TABLES
    knobs = KNOBS
    references = REFERENCES
    headers = ("dataset", "measure", "method")
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
        reasons = dict.fromkeys(planned.notes)
        tables = cast("Tables", planned.study.datasets)
        for trial in planned.trials:
            reason = refusal(trial, tables) if trial.seed == 0 else None
            if reason is not None:
                reasons[f"{trial.method} cannot run on {_table_name(trial)}: {reason}"] = None
        return replace(planned, notes=tuple(reasons))

    def own_dataset(self, table: OwnTable) -> GivenTable:
        """Query a user's own table; every column is queried, in the order of its values."""
        return GivenTable(table)

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List the methods that this version has."""
        return available_methods()

    def usual_methods(self, figure: Figure) -> Collection[str]:
        """List those of the figure that this version has."""
        return [name for name in figure.methods if name in available_methods()]

    def known_datasets(self, figure: Figure) -> Collection[str]:
        """List all tables; one that is too narrow for a figure is refused by the plan."""
        return self.datasets

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
        return CopulaRunner(folder, self.datasets).run_trial

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return _MEASURES[measure]

    def names(self, key: Key) -> list[str]:
        """Name a line by its dataset, measure and method."""
        return [key.dataset, self.measure_title(key.measure), key.short_name]

    def drawn(self, group: Cells) -> list[Key]:
        """Draw all times, and of errors those that come near the best somewhere."""
        is_time = next(iter(group)).measure == SECONDS
        return [key for key, line in group.items() if line] if is_time else super().drawn(group)

    def explanation(self, figure: Figure) -> list[str]:
        """Explain the queries and the measure."""
        said = [
            "A table with many columns is published without giving away whether any one record "
            "is in it. Others then count how many records lie in certain ranges, for example of "
            "age and income together. How far are the answers from the truth?"
        ]
        if SECONDS in figure.measures:
            return [*said, "Here the processor's time of one release is measured, not its answers."]
        return [
            *said,
            f"Each method answers {QUERIES:,} such queries, drawn at random, about all columns "
            f"at once. {_RANGES[BETWEEN_RECORDS in figure.measures]} The relative error is that "
            "part of the true count by which an answer is off; where the true count is below "
            "0.05 % of the rows (the sanity bound, unless another is stated below), that number is "
            "taken instead. The absolute error is a number of records. Lower is better; to "
            "answer 0 to everything is no better than publishing nothing.",
        ]

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a table."""
        title = self.datasets[dataset].title
        sizes = dict.fromkeys(self._domain(result.trial) for result in results)
        return f"{title[0].upper()}{title[1:]}. {' '.join(sizes)}"

    def _domain(self, trial: Trial) -> str:
        """Write how many values the columns have, and all together."""
        columns = table_schema(Size.of(trial), self.datasets).columns
        sizes = [column.axis().ordinary_leaves for column in columns]
        each = " × ".join(f"{size:,}" for size in sizes)
        return f"{len(sizes)} columns: {each} = {prod(sizes):,} cells."

    def finding(self, best: Key, point: float, cells: Cells) -> str:
        """Name the nearest or fastest method."""
        what = "fastest" if best.measure == SECONDS else "nearest"
        title = self.measure_title(best.measure)
        return f"{best.short_name} is {what}: {title} {cells[best][point].mean:.3f}"

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
        chosen = {name: results[0].trial.setting.get(name) for name in KNOBS}
        moved = self.figure_of(results).key
        given = [f"{name} = {x}" for name, x in chosen.items() if x is not None and name != moved]
        said = [f"Settings of all trials: {', '.join(given)}."] if given else []
        return [
            *said,
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
            ABSOLUTE: "absolute error",
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
