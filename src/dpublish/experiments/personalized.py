"""How much do counts and models gain when each person has their own epsilon?

After chapter 5 of "Differentially private data release and analytics": people accept different
epsilons, drawn independently of their records, and all of each person's epsilon is spent on one
release.  How many people there are at each level is public (the mode `frame`).  The figures show
the error of counts, of logistic regression and of support vector machines, over the threshold
that `threshold` and `sampling` need and partitioning does without.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import exp
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.method import Method
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, Benchmark, GivenBenchmark
from dpublish.errors import InvalidParameter, InvalidQuery, require_known
from dpublish.experiments.folds import FOLDS, Folds, Split, own_benchmark
from dpublish.experiments.models import class_scores, score_rows
from dpublish.experiments.models_baselines import fit_plain_model
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.personalized_population import (
    DISTRIBUTIONS,
    PREFERENCE,
    RANGES,
    Population,
    chosen_columns,
    draw_queries,
)
from dpublish.experiments.study import NOISE_FREE, Figure, Request, RunTrial, Setting, Study
from dpublish.experiments.trials import FIGURE, SECONDS, Cell, Cells, Key, Result, Trial, how_often
from dpublish.methods.personalized.exponential import PersonalizedEM
from dpublish.methods.personalized.groups.method import GroupMethod
from dpublish.methods.personalized.groups.plan import left_over, left_over_bound
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.personalized.minimum import Minimum
from dpublish.methods.personalized.partitioning import Partitioning
from dpublish.methods.personalized.preferences import Preferences
from dpublish.methods.personalized.released import PersonalizedAnswer, PersonalizedRelease
from dpublish.methods.personalized.sampling import Sampling
from dpublish.methods.personalized.t_round import TRound
from dpublish.methods.personalized.threshold import Threshold
from dpublish.methods.personalized.weighting import Weighting
from dpublish.plots.comparisons import Layout, Line
from dpublish.randomness import RandomSource, plain_generator
from dpublish.report.section import Listing
from dpublish.types import FloatArray

NAME = "personalized"
ERROR, WRONG, CURVE = "error", "misclassification", "auc"
LEFT, LEFT_BOUND = "left_over", "left_over_bound"
MEASURES = {
    ERROR: "relative frequency error",
    WRONG: "wrong predictions",
    CURVE: "area under the curve",
    LEFT: "what is left of people's numbers (part of their squares)",
    LEFT_BOUND: "the bound on what is left",
}
REFERENCES = {NOISE_FREE: "noise-free"}
OWN = "own"
"""The epsilon of a trial: each person's own, all of it."""
QUERIES = 20
LEVELS = 20
ASKED = "asked"
QUERY = f"{ASKED} = yes"
INNERS = ("model", "private-erm")
MINIMUM = "minimum"
ANY = "any"
"""The preferences of a figure that has them on its axis."""
_OF_PEOPLE = ("levels", "rows", "columns")
_OF_METHODS = ("threshold", "groups", "person_variance", "rounds")
_ASKED = Schema((column(ASKED, "category", values=["yes", "no"]),))
Group = dict[float, Cell]


@dataclass(frozen=True)
class Competitor:
    """A personalized method with the settings it is run with.

    Attributes:
        method: The method.
        title: What it is, in words.
        settings: Its settings.
        has_threshold: Whether it needs a threshold.
        forms_groups: Whether it plans groups, by a formula that differs for models.
        counts_only: Whether it counts by itself, without an inner method.
    """

    method: type[PersonalSettings]
    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_threshold: bool = False
    forms_groups: bool = False
    counts_only: bool = False

    def make(
        self,
        people: Population,
        inner: Method[Any],
        given: Mapping[str, int | str],
        *,
        fits_model: bool,
    ) -> PersonalSettings:
        """Build the method for people; `given` holds the threshold or number of groups."""
        made: dict[str, Any] = {
            "preference": PREFERENCE,
            "levels": people.levels,
            "sizes": people.sizes,
            **self.settings,
        }
        if not self.counts_only:
            made["inner"] = inner
        if self.has_threshold:
            made["threshold"] = people.levels[int(given["threshold"])]
        if self.forms_groups:
            made |= self._grouping(given, fits_model=fits_model)
        return self.method(**made)

    def _grouping(self, given: Mapping[str, int | str], *, fits_model: bool) -> dict[str, Any]:
        """Return how groups are formed; a model's risk has a term 1/n only if it is given."""
        made: dict[str, Any] = {}
        if fits_model:
            made |= {"noise": Fraction(1), "person_variance": Fraction(0)}
        if "person_variance" in given:
            made["person_variance"] = Fraction(str(given["person_variance"]))
        if "groups" in given:
            made["groups"] = int(given["groups"])
        if "rounds" in given and self.method is TRound:
            made["rounds"] = int(given["rounds"])
        return made


def _grouped(method: type[PersonalSettings], title: str, **settings: Any) -> Competitor:
    return Competitor(method, title, {"exchangeable": True, **settings}, forms_groups=True)


METHODS: dict[str, Competitor] = {
    "minimum": Competitor(Minimum, "all people, with the smallest epsilon that any accepts"),
    "threshold": Competitor(
        Threshold,
        "those who accept the threshold, with its epsilon; scaled up to all",
        {"exchangeable": True},
        has_threshold=True,
    ),
    "sampling": Competitor(
        Sampling,
        "a sample that those below the threshold enter at random, with its epsilon; scaled up",
        {"exchangeable": True},
        has_threshold=True,
    ),
    "sampling-mean": Competitor(
        Sampling,
        "sampling, with the mean of the levels for a threshold",
        {"exchangeable": True, "threshold": "mean"},
    ),
    "sampling-max": Competitor(
        Sampling,
        "sampling, with the largest level for a threshold",
        {"exchangeable": True, "threshold": "max"},
    ),
    "personalized-em": Competitor(
        PersonalizedEM,
        "an answer chosen by how little people's records would have to change for it",
        {"statistic": "count", "query": QUERY},
        counts_only=True,
    ),
    "weighting": Competitor(
        Weighting,
        "one histogram in which people count by what they accept; scaled up to all",
        {"columns": (ASKED,), "exchangeable": True},
        counts_only=True,
    ),
    "partitioning": _grouped(
        Partitioning,
        "utility-based: groups weighted by inverse variance; of counts, one group that weighs",
        combine="weighted",
    ),
    "partitioning-draw": _grouped(
        Partitioning,
        "utility-based groups that draw people below what they spend",
        combine="weighted",
        within="draw",
    ),
    "partitioning-least": _grouped(
        Partitioning,
        "utility-based groups that spend the least of their levels",
        combine="weighted",
        within="least",
    ),
    "partitioning-privacy": _grouped(
        Partitioning,
        "privacy-aware groups, weighted by inverse variance",
        combine="weighted",
        objective="privacy",
    ),
    "t-round": _grouped(TRound, "utility-based groups in up to three rounds"),
    "t-round-privacy": _grouped(
        TRound, "privacy-aware groups in up to three rounds", objective="privacy", groups=4
    ),
}
_FURTHER = ("t-round-privacy",)
"""Run for figures that name them only."""
GRAY = (MINIMUM, "personalized-em", NOISE_FREE)
"""Drawn in gray: they do not assume that people who are used represent others."""
COUNTING = tuple(  # sampling ends with sampling-max
    name for name in METHODS if name not in ("sampling-max", *_FURTHER)
)
FITTING = (
    "minimum",
    "threshold",
    "sampling",
    "sampling-mean",
    "partitioning",
    "partitioning-privacy",
    "t-round",
)
_PLAIN = tuple(
    name for name, method in METHODS.items() if not method.has_threshold and name not in _FURTHER
)
KNOBS = {
    "rows": "how many people there are; all of the table if absent",
    "columns": "queries and models about so many columns, or those named (age,sex)",
    "preferences": "what people accept: uniform-0.1, uniform-1, normal, truncated-normal",
    "levels": f"number of levels ({LEVELS} if absent)",
    "groups": "most groups of methods that form them",
    "person_variance": "b of the variance a/(nε)² + b/n by which groups are planned",
    "rounds": "most rounds of t-round",
}


@dataclass(frozen=True)
class PersonalFigure(Figure):
    """A figure with the distributions of what people accept, and what is fitted.

    Attributes:
        preferences: The distributions of what people accept.
        model: The model that is fitted; None for counts.
        inners: The methods that fit it.
    """

    methods: tuple[str, ...] = COUNTING
    datasets: tuple[str, ...] = ("simulated", "adult", "census")
    measures: tuple[str, ...] = (ERROR,)
    key: str | None = "threshold"
    values: tuple[int | str, ...] = tuple(range(LEVELS))
    is_log: bool = False
    preferences: tuple[str, ...] = ("uniform-0.1", "uniform-1", "normal", "truncated-normal")
    model: str | None = None
    inners: tuple[str, ...] = ()

    def moves(self, method: str) -> bool:
        """Whether what is on the axis changes anything for a method."""
        if self.key == "threshold":
            return method in METHODS and METHODS[method].has_threshold
        if self.key == "person_variance":
            return method in METHODS and METHODS[method].forms_groups
        if self.key == "rounds":
            return method in METHODS and METHODS[method].method is TRound
        return self.key != "groups" or method == "partitioning-privacy"


_THRESHOLD = "threshold, as a part of the largest level"
_THRESHOLD_READING = (
    "From left to right the threshold rises: fewer people are used, with less noise. Methods "
    "that need no threshold are level lines."
)


def _fit(model: str, words: str) -> PersonalFigure:
    return PersonalFigure(
        title=f"How good is {words} when each person has their own ε?",
        across=_THRESHOLD,
        reading=_THRESHOLD_READING,
        values=(1, 3, 7, 11, 15, 19),
        methods=FITTING,
        datasets=("simulated", "adult"),
        measures=(WRONG, CURVE),
        model=model,
        inners=INNERS[:1],
    )


FIGURES = {
    "count": PersonalFigure(
        title="How far are counts from the truth when each person has their own ε?",
        across=_THRESHOLD,
        reading=_THRESHOLD_READING,
    ),
    "count-range": PersonalFigure(
        title="What if people differ more in what they accept?",
        across="upper end of the range (lower end: 0.01)",
        reading="From left to right the range of what people accept gets wider.",
        key="preferences",
        values=RANGES,
        methods=_PLAIN,
        is_log=True,
    ),
    "count-levels": PersonalFigure(
        title="How many levels should there be?",
        across="number of levels",
        reading="From left to right there are more levels, so that less is lost when people's "
        "numbers are rounded down.",
        key="levels",
        values=(2, 5, 10, 20, 50, 100),
        methods=_PLAIN,
        is_log=True,
    ),
    "count-rows": PersonalFigure(
        title="What if there are more people?",
        across="number of people",
        reading="From left to right there are more people. Noise then matters less, and that "
        "some stand for others matters more.",
        key="rows",
        values=(1_000, 2_000, 5_000, 10_000, 20_000, 45_000),
        methods=_PLAIN,
        datasets=("adult", "census"),
        is_log=True,
    ),
    "groups": PersonalFigure(
        title="How many groups should there be?",
        across="most groups (privacy-aware)",
        reading="From left to right privacy-aware partitioning may form more groups: less of "
        "people's numbers is wasted, but each group has fewer people. The other methods are "
        "level lines.",
        key="groups",
        values=(1, 2, 3, 4, 6, 8, 12, 16, 20),
        methods=("minimum", "partitioning", "partitioning-privacy"),
    ),
    "count-columns": PersonalFigure(
        title="What if queries are about more columns?",
        across="number of columns",
        reading="From left to right every query limits more columns, so that fewer people "
        "satisfy it.",
        key="columns",
        values=(1, 2, 4, 8),
        methods=_PLAIN,
        is_log=True,
    ),
    "rounds": PersonalFigure(
        title="How much of people's numbers is left after T rounds?",
        across="number of rounds (T)",
        reading="From left to right what people have left is grouped and spent again. The bound "
        "is that of the thesis for as many people and groups.",
        key="rounds",
        values=(1, 2, 3),
        methods=("partitioning-privacy", "t-round", "t-round-privacy"),
        measures=(ERROR, LEFT, LEFT_BOUND),
    ),
    "risk": PersonalFigure(
        title="Does it help to plan groups with the second term of a model's risk?",
        across="weight of the term 1/n (b of a/(nε)² + b/n)",
        reading="From left to right groups are planned as if more of a model's risk came from "
        "few records, and less from noise. Methods without groups are level lines.",
        key="person_variance",
        values=("0", "0.0001", "0.01", "1"),
        methods=("minimum", "sampling-mean", "partitioning", "t-round"),
        datasets=("simulated", "adult"),
        measures=(WRONG, CURVE),
        model="logistic",
        inners=INNERS[:1],
    ),
    "logistic": _fit("logistic", "logistic regression"),
    "svm": _fit("svm", "a support vector machine"),
}


class Queries(NamedTuple):
    """People with levels, a table of who satisfies each query, and how many do."""

    people: Population
    tables: list[Table]
    truths: list[int]


class PersonalRunner(Folds):
    """Publishes from people with levels of their own, and compares with the truth."""

    def __init__(
        self, folder: Path | None, benchmarks: Mapping[str, Benchmark] = ALL_BENCHMARKS
    ) -> None:
        super().__init__(folder, benchmarks)
        self._table = lru_cache(maxsize=1)(self._read)
        self._queries = lru_cache(maxsize=1)(self._draw)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Answer queries, or fit a model; return the errors and the seconds of a release."""
        model = FIGURES[str(trial.setting[FIGURE])].model
        return self._count(trial) if model is None else self._fit(trial, model)

    def _count(self, trial: Trial) -> dict[str, float]:
        given = trial.setting
        asked = self._queries(
            trial.dataset,
            str(given["preferences"]),
            int(given.get("levels", LEVELS)),
            int(given.get("rows", 0)),
            trial.seed,
            given.get("columns", 0),
        )
        people = asked.people
        inner = make_method("histogram", {"columns": (ASKED,)})
        method = METHODS[trial.method].make(people, inner, given, fits_model=False)
        rng = trial.rng()
        begin = perf_counter()
        answers = [_answer(method, table, rng) for table in asked.tables]
        seconds = (perf_counter() - begin) / len(answers)
        errors = [abs(a - truth) for a, truth in zip(answers, asked.truths, strict=True)]
        measured = {ERROR: fmean(errors) / len(people.numbers), SECONDS: round(seconds, 3)}
        return measured | _left_over(method)

    def _fit(self, trial: Trial, model: str) -> dict[str, float]:
        given = trial.setting
        split = self._narrowed(
            trial.dataset, trial.seed, int(given.get("rows", 0)), given.get("columns", 0)
        )
        begin = perf_counter()
        if trial.method == NOISE_FREE:
            plain = fit_plain_model(split.train, split.schema, split.target, model)
            seconds = perf_counter() - begin
            measured = score_rows(plain.scores(split.held_out.rows), split.held_out)
            return measured | {SECONDS: round(seconds, 3)}
        preferences, count = str(given["preferences"]), split.train.num_rows
        levels = int(given.get("levels", LEVELS))
        people = Population.draw(preferences, levels, count, trial.seed)
        inner = make_method(str(given["inner"]), {"target": split.target, "model": model})
        method = METHODS[trial.method].make(people, inner, given, fits_model=True)
        table = open_table(people.join(split.train), method.prepare(split.schema))
        release = _publish(method, table, trial.rng())
        seconds = perf_counter() - begin
        scores = combined_scores(release, split.held_out.rows, split.target)
        return score_rows(scores, split.held_out) | {SECONDS: round(seconds, 3)}

    def _narrowed(self, dataset: str, seed: int, limit: int, columns: int | str) -> Split:
        """Take some of the rows to learn from, and some of the columns."""
        split = self.split(dataset, seed % FOLDS, limit)
        if not columns:
            return split
        names = [n for n in chosen_columns(dataset, split.schema, columns) if n != split.target]
        kept = [*names, split.target]
        if not names:
            raise InvalidParameter("a model needs a column to predict the class from")
        schema = replace(split.schema, columns=tuple(split.schema[name] for name in kept))
        return Split(schema, split.target, split.train.select(kept), split.held_out)

    def _read(self, dataset: str) -> tuple[Schema, pa.Table]:
        benchmark = self._benchmarks[dataset]
        return benchmark.schema(self._folder), benchmark.rows(self._folder)

    def _draw(
        self,
        dataset: str,
        preferences: str,
        levels: int,
        limit: int,
        seed: int,
        columns: int | str = 0,
    ) -> Queries:
        schema, rows = self._table(dataset)
        if limit:
            order = plain_generator(seed).permutation(rows.num_rows)
            rows = rows.take(pa.array(order[:limit]))
        every = chosen_columns(dataset, schema, columns) if columns else ()
        people = Population.draw(preferences, levels, rows.num_rows, seed)
        grid = Preferences(column=PREFERENCE, levels=people.levels)
        tables, truths = [], []
        for satisfied in draw_queries(rows, schema, QUERIES, seed, every):
            listed = people.join(pa.table({ASKED: np.where(satisfied, "yes", "no")}))
            tables.append(open_table(listed, grid.schema(_ASKED)))
            truths.append(int(satisfied.sum()))
        return Queries(people, tables, truths)


def _left_over(method: PersonalSettings) -> dict[str, float]:
    """Compute what a method that forms groups leaves of people's numbers, and its bound."""
    if not isinstance(method, GroupMethod) or method.runs is not method:
        return {}
    sizes = method.public_sizes()
    plan = method.plan(method.levels[-1], sizes)
    amounts = method.available(method.levels[-1])
    each = method.groups or max(len(plan) // method.round_limit, 1)
    return {
        LEFT: left_over(plan, amounts, sizes),
        LEFT_BOUND: left_over_bound(sum(sizes), each, method.round_limit),
    }


def _answer(method: PersonalSettings, table: Table, rng: RandomSource) -> float:
    release = method.release(table, budget=method.budget(method.levels[-1]), rng=rng)
    return release.value if isinstance(release, PersonalizedAnswer) else release.count(QUERY).value


def combined_scores(release: PersonalizedRelease, rows: pa.Table, target: str) -> FloatArray:
    """Score every class for every row by the mean of the parts' models.

    Where these are not of one kind, as a group had too little for a fit, the parts vote.
    """
    try:
        return class_scores(release.model, rows, target)
    except InvalidQuery:
        return class_scores(release, rows, target)


def _publish(method: PersonalSettings, table: Table, rng: RandomSource) -> PersonalizedRelease:
    release = method.release(table, budget=method.budget(method.levels[-1]), rng=rng)
    if not isinstance(release, PersonalizedRelease):
        raise TypeError(f"{method.name} fits no model")
    return release


class PersonalStudy(Study[PersonalFigure]):
    """Counts and models for people with epsilons of their own."""

    name = NAME
    options = (*(name for name in Study.options if name != "epsilons"), "classifiers")
    figures = FIGURES
    datasets: Mapping[str, Benchmark] = ALL_BENCHMARKS
    knobs = KNOBS
    references = REFERENCES
    headers = ("dataset", "preferences", "method")
    digits = 5
    cap = 6.0
    lead = "An experiment on public and simulated tables with seeded noise."
    drawing_caption = (
        "Lines are means, bands one standard deviation; lines that are nowhere within 6 times "
        "the best are in the table only."
    )
    table_caption = (
        "Mean ± standard deviation over the repeats. The best threshold is the best in "
        "hindsight: no one could have known it."
    )

    def known_datasets(self, figure: PersonalFigure) -> Collection[str]:
        """List all benchmarks: each can be used for each figure."""
        return self.datasets

    def known_methods(self, figure: PersonalFigure) -> Collection[str]:
        """List all methods of counts, and of models those that fit them."""
        return METHODS if figure.model is None else (*FITTING, "sampling-max", *_FURTHER)

    def trials(
        self,
        asked: Request[PersonalFigure],
        *,
        classifiers: Sequence[str] | None = None,
        **_: Any,
    ) -> Iterator[Trial]:
        """List the trials; those on the same people come together, so that they are drawn once.

        `classifiers` are the methods that fit models within the personalized ones.
        """
        figure = asked.figure
        inners = _inners(figure, classifiers)
        for dataset in figure.datasets:
            if figure.model is not None and not self.datasets[dataset].target:
                raise InvalidParameter("name the class column with --target COLUMN")
            for preferences in _preferences(figure):
                for moved in asked.axis() if figure.key in _OF_PEOPLE else [{}]:
                    setting = asked.setting(dataset, preferences=preferences, **moved)
                    for seed in range(asked.repeats):
                        yield from _round(asked, inners, setting, seed)

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the benchmarks of a data folder."""
        return PersonalRunner(folder, self.datasets).run_trial

    def own_dataset(self, table: OwnTable) -> Benchmark:
        """Take a user's own table; counts need no class column."""
        if table.target is not None:
            return own_benchmark(table)
        return GivenBenchmark(
            name=table.name,
            predicts="",
            source="A table of the user",
            target="",
            records=table.rows.num_rows,
            given_schema=table.schema,
            given_rows=table.rows,
        )

    def point(self, trial: Trial, figure: PersonalFigure) -> float | None:
        """Return where on the axis a trial is; None if it is the same everywhere."""
        if not figure.moves(trial.method) or figure.key is None:
            return None
        chosen = DISTRIBUTIONS[str(trial.setting["preferences"])]
        if figure.key == "preferences":
            return float(chosen.high)
        if figure.key == "threshold":
            levels = chosen.levels(int(trial.setting.get("levels", LEVELS)))
            return round(float(levels[int(trial.setting["threshold"])] / levels[-1]), 4)
        return float(Fraction(str(trial.setting[figure.key])))

    def points(self, results: Sequence[Result]) -> list[float]:
        """List the points on the axis; if nothing moves along it, one."""
        return super().points(results) or [1.0]

    def key(self, trial: Trial, figure: PersonalFigure, measure: str) -> Key:
        """Return which line a trial belongs to; preferences and inner methods are kept apart."""
        given = trial.setting
        preferences = ANY if figure.key == "preferences" else str(given["preferences"])
        variant = (preferences, str(given.get("inner", "")))
        return Key(trial.dataset, measure, trial.method, variant=variant)

    def is_higher_better(self, measure: str) -> bool:
        """Whether larger values are better: of the area under the curve."""
        return measure == CURVE

    def groups(self, cells: Cells) -> list[Cells]:
        """Put lines together that are compared, and the model without privacy with each."""
        private = {key: line for key, line in cells.items() if key.method != NOISE_FREE}
        groups = super().groups(private)
        for group in groups:
            first = next(iter(group))
            free = first._replace(method=NOISE_FREE, variant=(first.variant[0], ""))
            if free in cells:
                group[free] = cells[free]
        return groups

    def table(self, results: Sequence[Result]) -> Listing:
        """Lay the results out; of thresholds the best and the worst in hindsight are listed."""
        is_scan = self.figure_of(results).key == "threshold"
        return self._scan_table(results) if is_scan else super().table(results)

    def names(self, key: Key) -> list[str]:
        """Name a line by dataset, preferences and method."""
        return [key.dataset, key.variant[0], _name(key)]

    def axis_name(self, figure: PersonalFigure) -> str:
        """Name the axis in the headers of the table."""
        return "up to" if figure.key == "preferences" else super().axis_name(figure)

    def _scan_table(self, results: Sequence[Result]) -> Listing:
        rows = []
        for group in self.groups(self.summarize(results)):
            for key, line in group.items():
                for point, words in self._shown_thresholds(key, line):
                    ratio = times_better(group, key, point)
                    rows.append(
                        [
                            key.dataset,
                            key.variant[0],
                            MEASURES[key.measure],
                            _name(key) + words,
                            line[point].text(self.digits),
                            "" if ratio is None else f"{ratio:.2f}",
                        ]
                    )
        headers = ["dataset", "preferences", "measure", "method", "mean", "times below minimum"]
        return Listing(headers, rows)

    def _shown_thresholds(self, key: Key, line: Group) -> Iterator[tuple[float, str]]:
        best = best_point(line, key.measure)
        if key.method not in METHODS or not METHODS[key.method].has_threshold:
            yield best, ""
            return
        yield best, f", best: {named_level(key.variant[0], best)}"
        if len(line) > 1:
            worst = best_point(line, key.measure, worst=True)
            yield worst, f", worst: {named_level(key.variant[0], worst)}"

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Mark quarters on an axis of thresholds."""
        usual = super().layout(results, dataset)
        is_scan = self.figure_of(results).key == "threshold"
        return usual._replace(ticks=(0, 0.25, 0.5, 0.75, 1)) if is_scan else usual

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return MEASURES[measure]

    def drawn(self, group: Cells) -> list[Key]:
        """Draw all areas under the curve, and of errors those that come near the best."""
        is_curve = next(iter(group)).measure == CURVE
        return list(group) if is_curve else super().drawn(group)

    def panel_title(self, key: Key, dataset: str | None) -> str:
        """Name a panel by dataset, preferences, measure and inner method."""
        preferences, inner = key.variant
        who = "" if preferences == ANY else f", {preferences}"
        fitted = f" ({inner})" if inner else ""
        return f"{key.dataset}{who}: {MEASURES[key.measure]}{fitted}"

    def line(self, key: Key, cells: Mapping[float, Cell]) -> Line:
        """Draw a line; of level lines the ends are enough."""
        is_level = len(set(cells.values())) == 1
        ends = {point: cells[point] for point in (min(cells), max(cells))}
        return super().line(key, ends if is_level else cells)

    def is_ours(self, method: str) -> bool:
        """Whether a method is drawn in color."""
        return method not in GRAY

    def explanation(self, figure: PersonalFigure) -> list[str]:
        """Explain epsilons of one's own and the measures."""
        if figure.model is None:
            measured = (
                f"{QUERIES} random queries are drawn, each about one or two columns, and each is "
                "answered by a release of its own, on which each person's whole ε is spent. The "
                "relative frequency error is how many people too many or too few are counted, "
                "divided by the number of all people. Lower is better."
            )
        else:
            measured = (
                "A model is fitted to nine tenths of the people and predicts the class of the "
                "others. Of wrong predictions fewer are better; of the area under the curve (how "
                "often the right one of two people is ranked first) more is better."
            )
        return [
            "People differ in how much privacy they want. ε (epsilon) measures how strong it is; "
            "smaller is stronger: whatever is published is at most e^ε times as likely with "
            f"a person's record as without it, {exp(0.01):.2f} times at ε = 0.01 and "
            f"{exp(1):.2f} times at ε = 1. Each person names the largest ε that they accept, "
            "and no method on this page spends more on them. How much is gained if "
            "not all are treated like the most careful person?",
            measured + " It is measured on the true records, which is why this page is not "
            "private.",
        ]

    def epsilon_words(self, results: Sequence[Result]) -> str:
        """Explain what methods assume about people, and then the axis."""
        return (
            "What people accept is drawn independently of their records, and how many people "
            "there are at each level is public. All methods but minimum and personalized-em "
            "assume that people who are used represent the others; where levels depend on "
            "records, they are off by more than is shown here. "
            f"{self.figure_of(results).reading}"
        )

    def heading(self, dataset: str) -> str:
        """Write the heading of a dataset's section."""
        return f"{dataset}: what is gained"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Name the source of a benchmark."""
        return f"{self.datasets[dataset].source}."

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Write what partitioning gains, beside minimum and the best threshold."""
        return [
            _gain(group, key)
            for group in self.groups(self.summarize(results))
            for key in group
            if key.method == "partitioning"
        ]

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe the methods."""
        points = [f"{name}: {METHODS[name].title}." for name in used if name in METHODS]
        if NOISE_FREE in used:
            points.append(f"{NOISE_FREE}: the model of all records, which is not private.")
        return points

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe repeats, preferences and folds."""
        figure = self.figure_of(results)
        drawn = dict.fromkeys(str(trial.setting["preferences"]) for trial, _ in results)
        said = [
            f"Every method is run {how_often(results)} at every point, with fresh noise "
            "and fresh preferences, the same for all methods.",
            *(f"{name}: {DISTRIBUTIONS[name].title}." for name in drawn),
        ]
        if figure.key != "levels":
            said.append(f"Numbers are rounded down to {LEVELS} levels at equal distances.")
        if figure.model is not None:
            said.append(f"Each repeat leaves out another of {FOLDS} folds to measure on.")
        return said


def best_point(line: Group, measure: str, *, worst: bool = False) -> float:
    """Return where a line is best: highest for the area under the curve, else lowest."""
    sign = -1 if (measure == CURVE) is not worst else 1
    return min(line, key=lambda point: sign * line[point].mean)


def times_better(group: Cells, key: Key, point: float) -> float | None:
    """Divide the error of `minimum` by that of a method, if both were run."""
    floor = group.get(key._replace(method=MINIMUM))
    if floor is None or key.measure == CURVE or key.method == NOISE_FREE:
        return None
    mean = group[key][point].mean
    return floor[point].mean / mean if mean > 0 and point in floor else None


def named_level(preferences: str, point: float) -> str:
    """Write the threshold at a point of the axis as the level that it is."""
    levels = [float(level) for level in DISTRIBUTIONS[preferences].levels(LEVELS)]
    nearest = min(levels, key=lambda level: abs(level - point * levels[-1]))
    return f"{nearest:.4g}"


def _gain(group: Cells, key: Key) -> str:
    preferences = key.variant[0]
    point = best_point(group[key], key.measure)
    who = "" if preferences == ANY else f"Preferences {preferences}: "
    text = f"{who}{MEASURES[key.measure]} of partitioning {group[key][point].mean:.5f}"
    ratio = times_better(group, key, point)
    text += "" if ratio is None else f", {ratio:.1f} times below minimum"
    scan = group.get(key._replace(method="sampling"))
    if scan is not None:
        best = best_point(scan, key.measure)
        level = named_level(preferences, best)
        text += f"; sampling with its best threshold ({level}) {scan[best].mean:.5f}"
    return f"{text}."


def _preferences(figure: PersonalFigure) -> tuple[str, ...]:
    """Return the distributions of what people accept: those of the figure, or those given."""
    given = figure.fixed.get("preferences")
    if figure.key == "preferences":
        names = tuple(f"uniform-{high}" for high in figure.values)
    elif given is None:
        return figure.preferences
    else:
        names = tuple(name.strip() for name in str(given).split(","))
    for name in names:
        require_known("preferences", name, DISTRIBUTIONS)
    return names


def _name(key: Key) -> str:
    inner = key.variant[1]
    return f"{key.method} ({inner})" if inner else key.method


def _inners(figure: PersonalFigure, asked: Sequence[str] | None) -> tuple[str, ...]:
    if asked is None:
        return figure.inners
    if figure.model is None:
        raise InvalidParameter("counts have no classifiers")
    for name in asked:
        require_known("classifier", name, INNERS)
    if not asked:
        raise InvalidParameter("name at least one classifier")
    return tuple(asked)


def _round(
    asked: Request[PersonalFigure], inners: Sequence[str], setting: Setting, seed: int
) -> Iterator[Trial]:
    """List the trials on the same people: every method, at every threshold if it has one."""
    figure = asked.figure
    if figure.model is not None:
        yield Trial(NAME, NOISE_FREE, OWN, seed, setting)
    for inner in inners or ("",):
        fitted: Setting = {"inner": inner} if inner else {}
        for method in figure.methods:
            is_moved = figure.key in _OF_METHODS and figure.moves(method)
            for moved in asked.axis() if is_moved else [{}]:
                yield Trial(NAME, method, OWN, seed, {**setting, **fitted, **moved})


STUDY = PersonalStudy()
