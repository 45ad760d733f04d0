"""How far are counts from the truth when a changing histogram is published again and again?

After H. Li et al., Differentially Private Histogram Publication for Dynamic Datasets (CIKM
2015): the error of random range counts over all steps, for every method that publishes a
stream, on public streams and on streams that are simulated; against epsilon, update rate,
columns and size of the queries, and against the settings of the methods.  Methods are compared
with those that have the same guarantee.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from math import exp
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.pool_streams import pool_stream
from dpublish.datasets.stream_sets import STREAM_SETS, TABLE_KNOBS, StreamSet
from dpublish.datasets.streams import CountStream
from dpublish.errors import InvalidParameter, require_count
from dpublish.evaluation.metrics.streams import RangeQueries
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.streams_competitors import (
    LAVISH,
    LEVELS,
    METHOD_KNOBS,
    METHODS,
    PRIVATE,
    REFERENCES,
    RELEASES,
    TRUE,
    USUAL,
    WINDOW,
    of_level,
    shown_as,
)
from dpublish.experiments.streams_hindsight import HEADERS, look_back, table_rows, verdict
from dpublish.experiments.study import BEST, EPSILON_AXIS, Figure, Request, RunTrial, Study
from dpublish.experiments.trials import (
    FIGURE,
    SECONDS,
    Cells,
    Key,
    Result,
    Trial,
    how_often,
    means_by,
)
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.snapshot import Bins, exact_counts
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples
from dpublish.plots.style import plain_number
from dpublish.privacy.budget import Budget
from dpublish.report import section
from dpublish.report.section import Listing, Section

NAME = "streams"
ERROR, RELATIVE = "error", "relative error"
ANSWER, PUBLISHED = "true answer", "publications"
SLOT = "slot "  # and its number: the mean error within a part of the stream
SLOTS = 50
SUMMARY, HINDSIGHT = "summary", "hindsight"
QUERIES = 1_000
SANITY = 1
_FIRST_SEED = 2024
_MOST_OWN_BINS = 30_000  # of the columns that are taken from a user's table by default

STREAM_KNOBS = {
    "people": "people who take part at each step",
    "steps": "steps of the stream",
    "rate": "how many people change at each step, in % (r)",
    "columns": "number of columns; of a table of your own also their names: age,sex",
    "copies": "how often each row of a table is in the pool",
    "objects": "objects that travel",
    "cells": "squares along each side of a map",
}
"""Settings of streams that users may choose, each for the streams that have it."""
QUERY_KNOBS = {
    "queries": "how many random ranges are counted at each step",
    "share": "part of all bins that a query adds up, in 1,000",
    "sanity": "what relative errors are divided by at least (s)",
}

_COUNTS = ("people", "steps", "copies", "objects", "cells", "window", "queries", "share")
_ANY_STEPS = 1_000  # of a stream for which settings are tried out
_LARGE = ("census-pool", "oldenburg-long")
_STREAMS = tuple(name for name in STREAM_SETS if name not in _LARGE)
_figure = partial(Figure, methods=USUAL, datasets=_STREAMS, measures=(ERROR,))
_CONTROLLED = ("dsat", "dsat-schedule", "dsat-paper")
_THESIS = (*_CONTROLLED, "fixed-sampling", "per-snapshot", *TRUE)
FIGURES = {
    "epsilon": _figure(
        title="How well can a changing histogram be published again and again?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
        methods=(*USUAL, *TRUE),
    ),
    "static": _figure(
        title="Does a better method for one histogram help a stream?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise. Each method "
        "publishes its histograms in two ways: noise in every bin, and PSD, which publishes "
        "counts of boxes and divides them evenly over the bins in a box.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
        methods=(
            "fixed-sampling",
            "fixed-psd",
            "dsat",
            "dsat-psd",
            "dsat-paper",
            "dsat-paper-psd",
        ),
        datasets=("census-pool",),
        fixed={"columns": 3, "releases": "1%"},
    ),
    "update-rate": _figure(
        title="What if more people change at each step?",
        across="people who change at a step, in % (r)",
        reading="From left to right the histogram changes faster, so what was published "
        "gets old sooner.",
        key="rate",
        values=("0", "0.1", "0.5", "1", "5", "10", "25", "50", "75", "100"),
        methods=_THESIS,
        datasets=("census-pool", "census", "drift"),
        is_log=False,
        fixed={"releases": "1%"},
    ),
    "dimensions": _figure(
        title="What if the histogram has more columns?",
        across="number of columns",
        reading="From left to right there are more columns and so more bins: of `census-pool` "
        "2,304, 4,608, 9,216 and 27,648. Every bin has its own noise.",
        key="columns",
        values=(3, 4, 5, 6),
        methods=_THESIS,
        datasets=("census-pool",),
        is_log=False,
        fixed={"releases": "1%"},
    ),
    "query-size": _figure(
        title="What if queries are about more bins?",
        across="part of all bins that a query adds up, in 1,000",
        reading="From left to right each answer adds up more bins, and the noise of them all.",
        key="share",
        values=(10, 40, 90, 160, 250, 490, 810),
        methods=(*USUAL, *TRUE),
        datasets=("census-pool", "static", "drift", "bursts", "tdrive"),
        measures=(ERROR, RELATIVE),
        is_log=False,
        fixed={"releases": "1%"},
    ),
    "decision-share": _figure(
        title="How much of the budget should decisions have?",
        across="share of the budget for decisions (k)",
        reading="From left to right decisions have more of the budget and published counts have "
        "less. Methods that have no such share are the same everywhere.",
        key="decision_share",
        values=("0.001", "0.01", "0.05", "0.1", "0.3", "0.6", "0.9"),
        methods=(*_CONTROLLED, "dsft", "fixed-sampling"),
        datasets=("bursts", "census", "census-pool"),
    ),
    "threshold": _figure(
        title="How far should counts be away before they are published?",
        across="threshold (T), in parts of the first total",
        reading="From left to right DSFT waits for larger changes before it publishes; where "
        "DSAT's other controllers have the setting, their threshold begins there. Methods "
        "without a threshold of this kind are the same everywhere.",
        key="threshold",
        values=("0.005", "0.0125", "0.025", "0.05", "0.1", "0.2", "0.4", "0.8"),
        methods=("dsft", *_CONTROLLED, "fixed-sampling"),
        datasets=("bursts", "census", "census-pool"),
        fixed={"releases": "1%"},
    ),
    "window": _figure(
        title="How long should the window be within which people are hidden?",
        across="steps of a window (w)",
        reading="From left to right people are hidden within more steps, so each step has a "
        "smaller part of the budget.",
        key="window",
        values=(10, 20, 40, 80, 160),
        methods=of_level(USUAL, "window"),
        datasets=("static", "drift", "bursts", "nyc-taxi", "tdrive"),
    ),
    "releases": _figure(
        title="How often should a stream publish?",
        across="publications in a stream or window (C)",
        reading="From left to right more histograms are published, each with a smaller part "
        "of the budget. DSAT with its defaults finds out by itself how often to publish.",
        key="releases",
        values=(2, 5, 10, 20, 40),
        methods=(
            *_CONTROLLED,
            "dsft",
            "fixed-sampling",
            "dsat-w",
            "dsat-schedule-w",
            "dsat-paper-w",
            "fixed-sampling-w",
        ),
        datasets=("static", "drift", "bursts", "nyc-taxi", "tdrive"),
    ),
    "horizon": _figure(
        title="What if a stream goes on for longer?",
        across="steps of the stream",
        reading="From left to right there are more steps for the same budget.",
        key="steps",
        values=(50, 100, 200, 500, 1_000),
        methods=of_level(USUAL, "stream"),
        datasets=("static", "drift", "bursts", "nyc-taxi"),
    ),
    SUMMARY: _figure(
        title="Which method publishes which stream best?",
        across=EPSILON_AXIS,
        reading="Each stream has a second plot: its error over time.",
        epsilons=("0.1", "1"),
        methods=PRIVATE,
    ),
    HINDSIGHT: _figure(
        title="How much does DSAT's default lose to the best of its rivals in hindsight?",
        across=EPSILON_AXIS,
        reading="Rivals are fixed sampling with 5, 10 and 20 publications, BA, BD, and DSAT's "
        "other controllers. Which of them is best is known only afterward.",
        epsilons=("0.1", "1"),
        methods=tuple(
            name for name in PRIVATE if METHODS[name].method not in ("dsft", "per-snapshot")
        ),
        datasets=tuple(STREAM_SETS),
    ),
}


class Chosen(NamedTuple):
    """Which stream a trial runs on: its name, its seed, and settings of its maker."""

    dataset: str
    seed: int
    settings: tuple[tuple[str, float | str], ...]


class StreamRunner:
    """Publishes streams of a data folder and compares what comes out with the true counts."""

    def __init__(
        self, folder: Path | None, datasets: Mapping[str, StreamSet] = STREAM_SETS
    ) -> None:
        self._folder = folder
        self._datasets = datasets
        self._load = lru_cache(maxsize=1)(self._make)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish a whole stream; return the mean error of random ranges over all its steps."""
        given = trial.setting
        stream = self._load(self._chosen(trial))
        share = int(given["share"]) / 1_000 if "share" in given else None
        count = int(given.get("queries", QUERIES))
        queries = RangeQueries.draw(stream.shape, count, seed=trial.seed, share=share)
        competitor = METHODS[trial.method]
        changes = {"window": self._datasets[trial.dataset].window, **given}
        settings = {"columns": stream.columns, **competitor.settings(stream.steps, changes)}
        method = make_stream_method(competitor.method, settings)
        rng = trial.rng()
        begin = perf_counter()
        opened = method.start(stream.schema, budget=Budget.seeded(trial.epsilon), rng=rng)
        steps = [opened.next_counts(counts, rng=rng) for counts in stream.counts]
        seconds = perf_counter() - begin
        shown = list(zip((step.estimate for step in steps), stream.counts, strict=True))
        errors = [queries.mean_error(estimate, truth) for estimate, truth in shown]
        measured = {
            ERROR: fmean(errors),
            ANSWER: float(queries.answers(stream.counts.mean(axis=0)).mean()),
            PUBLISHED: float(sum(step.action == "published" for step in steps)),
            SECONDS: round(seconds, 3),
        }
        if RELATIVE in FIGURES[str(given[FIGURE])].measures:
            sanity = float(Fraction(given.get("sanity", SANITY)))
            measured[RELATIVE] = fmean(
                queries.mean_relative_error(estimate, truth, sanity) for estimate, truth in shown
            )
        return measured | (_slots(errors) if given[FIGURE] == SUMMARY else {})

    def _chosen(self, trial: Trial) -> Chosen:
        """Find the settings of the stream among those of the trial."""
        known = self._datasets[trial.dataset].knobs
        found = ((name, trial.setting[name]) for name in known if name in trial.setting)
        return Chosen(
            trial.dataset,
            trial.seed,
            tuple(
                (name, float(Fraction(value)) / 100 if name == "rate" else value)
                for name, value in found
            ),
        )

    def _make(self, asked: Chosen) -> CountStream:
        chosen = self._datasets[asked.dataset]
        seeds = {"seed": _FIRST_SEED + asked.seed} if chosen.is_drawn else {}
        return chosen.stream(self._folder, {**seeds, **dict(asked.settings)})


def own_bins(schema: Schema, columns: int | str | None) -> Bins:
    """Choose the columns of a user's table: by name, the first so many, or what is not too fine.

    >>> from dpublish import datasets
    >>> own_bins(datasets.schema("census"), None).names
    ('age', 'sex', 'education', 'work', 'hours')
    >>> own_bins(datasets.schema("census"), "sex,age@1").shape
    (2, 2)
    """
    if isinstance(columns, str):
        return Bins.of(schema, columns)
    names = [name for name in schema.names if name != schema.unit]
    if columns is not None:
        return Bins.of(schema, names[:columns])
    fitting = [
        names[:count]
        for count in range(2, len(names) + 1)
        if np.prod([float(schema[name].axis().size) for name in names[:count]]) <= _MOST_OWN_BINS
    ]
    return Bins.of(schema, fitting[-1] if fitting else names[:1])


def own_stream(table: OwnTable, columns: int | str | None = None, **settings: Any) -> CountStream:
    """Turn a user's table into a stream by exchanging its rows with a pool."""
    bins = own_bins(table.schema, columns)
    counts = exact_counts(open_table(table.rows, replace(table.schema, unit=None)), bins)
    return pool_stream(counts, bins.shape, name=table.name, **settings)


def _slots(errors: list[float]) -> dict[str, float]:
    """Average the errors over parts of the stream of about equal length."""
    parts = np.array_split(np.array(errors), min(SLOTS, len(errors)))
    return {f"{SLOT}{number}": float(f"{part.mean():.4g}") for number, part in enumerate(parts)}


class StreamStudy(Study[Figure]):
    """Streams of histograms, by methods with two kinds of guarantees."""

    name = NAME
    figures = FIGURES
    datasets: Mapping[str, StreamSet] = STREAM_SETS
    knobs: ClassVar[Mapping[str, str]] = {**STREAM_KNOBS, **METHOD_KNOBS, **QUERY_KNOBS}
    references: ClassVar[Mapping[str, str]] = {name: METHODS[name].title for name in TRUE}
    headers = ("stream", "hidden in", "measure", "method")
    cap = 5.0
    lead = "An experiment on public and simulated streams with seeded noise."
    drawing_caption = (
        "Lower is better. Lines are means, bands one standard deviation; methods that are "
        "nowhere within 5 times the best are in the table only."
    )
    table_caption = (
        "Mean absolute error: mean ± standard deviation over the repeats. A star marks the "
        "lowest among methods with the same guarantee."
    )

    def trials(self, asked: Request[Figure], **_: Any) -> Iterator[Trial]:
        """List the trials; those on the same stream come together, so that it is made once."""
        figure = asked.figure
        self._check(asked)
        for dataset in figure.datasets:
            for seed in range(asked.repeats):
                for number, moved in enumerate(asked.axis()):
                    for method, epsilon in _lines(figure):
                        setting = asked.setting(dataset, **moved)
                        if is_moved(method, figure):
                            yield Trial(NAME, method, epsilon, seed, setting)
                        elif not number:
                            setting.pop(str(figure.key))
                            yield Trial(NAME, method, epsilon, seed, setting)

    def _check(self, asked: Request[Figure]) -> None:
        """Refuse settings that a stream or a method does not have, before anything is run."""
        figure, usual = asked.figure, self.figures[asked.name].fixed
        if not any(is_moved(method, figure) for method in figure.methods):
            raise InvalidParameter(f"none of these methods has a {figure.key}: name one that does")
        for moved in asked.axis():
            _check_values({**figure.fixed, **moved})
            for method in figure.methods:
                chosen = METHODS[method]
                settings = chosen.settings(_ANY_STEPS, {**figure.fixed, **moved})
                make_stream_method(chosen.method, {"columns": ("x1",), **settings})
        given = [n for n, value in figure.fixed.items() if usual.get(n) != value]
        for dataset in figure.datasets:
            known = self.datasets[dataset].knobs
            for name in given:
                if name in STREAM_KNOBS and name not in known:
                    raise InvalidParameter(
                        f"the stream {dataset} has no setting {name!r}; it has {', '.join(known)}"
                    )

    def own_dataset(self, table: OwnTable) -> StreamSet:
        """Make a stream of a user's table: its rows are exchanged with a pool."""
        return StreamSet(
            name=table.name,
            kind="exchange",
            title="rows of a table, half of them at a time unless said otherwise, which are "
            "exchanged with the others",
            make=partial(own_stream, table),
            knobs=TABLE_KNOBS,
        )

    def known_datasets(self, figure: Figure) -> Collection[str]:
        """List the streams that have what is on the axis."""
        return [
            name
            for name, chosen in self.datasets.items()
            if figure.key not in STREAM_KNOBS or figure.key in chosen.knobs
        ]

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List the methods with the guarantees that a figure compares."""
        levels = {METHODS[name].level for name in figure.methods}
        return [name for name, method in METHODS.items() if method.level in levels]

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the streams of a data folder."""
        return StreamRunner(folder, self.datasets).run_trial

    def key(self, trial: Trial, figure: Figure, measure: str) -> Key:
        """Return which line a trial belongs to; guarantees are kept apart."""
        usual = super().key(trial, figure, measure)
        return usual._replace(variant=(METHODS[trial.method].level,))

    def names(self, key: Key) -> list[str]:
        """Name a line by stream, guarantee, measure and method."""
        return [key.dataset, *key.variant, key.measure, key.short_name]

    def table(self, results: Sequence[Result]) -> Listing:
        """Lay the errors out; in hindsight, the default beside the best rival."""
        if results[0].trial.setting.get(FIGURE) != HINDSIGHT:
            return super().table(results)
        return Listing(HEADERS, table_rows(look_back(self.summarize(results))))

    def drawn(self, group: Cells) -> list[Key]:
        """Choose the lines that come near the best private one, and those without noise."""
        private = {key: line for key, line in group.items() if key.method not in TRUE}
        near = super().drawn(private)
        return [key for key in group if key in near or key.method in TRUE]

    def decimals(self, mean: float) -> int:
        """Write small errors with more decimals."""
        return 4 if mean < 0.1 else 2 if mean < 10 else 1 if mean < 1_000 else 0

    def cell_text(self, cells: Cells, key: Key, point: float) -> str:
        """Write a cell, with a star if it is the best of its guarantee and budget."""
        text = super().cell_text(cells, key, point)
        rivals = {
            other: line
            for other, line in cells.items()
            if other._replace(method="") == key._replace(method="")
        }
        is_best = len(rivals) > 1 and key.method not in TRUE and self.best_at(rivals, point) == key
        return f"{text}{BEST}" if text and is_best else text

    def measure_title(self, measure: str) -> str:
        """Name a measure of range counts."""
        kind = "relative" if measure == RELATIVE else "absolute"
        return f"mean {kind} error of range counts"

    def panel_title(self, key: Key, dataset: str | None) -> str:
        """Name a panel by stream and guarantee, and by its measure if that is relative."""
        title = f"{key.dataset}: hidden in the {key.variant[0]}"
        return f"{title}, relative" if key.measure == RELATIVE else title

    def label(self, key: Key) -> str:
        """Label a line the same for both guarantees."""
        return key._replace(method=shown_as(key.method)).short_name

    def is_ours(self, method: str) -> bool:
        """Whether a method is drawn in color, whatever it guarantees."""
        return shown_as(method) not in REFERENCES

    def explanation(self, figure: Figure) -> list[str]:
        """Explain streams and the measure."""
        return [
            "People are counted in bins (squares of a map, groups of age) again and again: every "
            "hour, or every day. A histogram is published at each step without giving away where "
            "any one person was. A method may publish fresh counts, or repeat the last ones when "
            "little has changed, and so save its budget. How far is what it shows from the truth?",
            f"At each step random ranges of bins ({QUERIES:,} unless set otherwise) are counted "
            "in what was published and in the truth. The error is how many people too many or "
            "too few are found, on average over all queries and all steps. Lower is better. It "
            "is measured on the true counts, which is why this page is not private.",
            *([_RELATIVE_WORDS] if RELATIVE in figure.measures else []),
        ]

    def epsilon_words(self, results: Sequence[Result]) -> str:
        """Explain epsilon for two kinds of guarantees."""
        example = min(_epsilons(results), key=float)
        return (
            "ε (epsilon) measures how strong the privacy is; smaller is stronger. At "
            f"ε = {example}, what one person did changes the probability of whatever is "
            f"published by a factor of at most {exp(float(example)):.3g}. That holds for all that "
            "the person did in the whole stream, or for all within any window of consecutive "
            "steps, which is a weaker guarantee: the two are compared apart. "
            f"{self.figure_of(results).reading}"
        )

    def sections(self, results: Sequence[Result], dataset: str) -> list[Section]:
        """Show the errors, and how they go over time where that was kept."""
        usual = super().sections(results, dataset)
        timed = self.time_plot(results, dataset)
        if timed is None:
            return usual
        caption = "Mean over the repeats. Where a line rises, what is shown has got old."
        drawn = section.Figure(caption, timed)
        return [*usual, Section(f"{dataset}: the error over time", figures=[drawn])]

    def heading(self, dataset: str) -> str:
        """Write the heading of a stream's section."""
        return f"{dataset}: how far counts are from the truth"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a stream."""
        answer = fmean(measured[ANSWER] for _, measured in results)
        title = self.datasets[dataset].title
        varied, setting = self.figure_of(results).key, results[0].trial.setting
        known = (*self.datasets[dataset].knobs, *METHOD_KNOBS, *QUERY_KNOBS)
        given = [f"{n} = {setting[n]}" for n in known if n in setting and n != varied]
        chosen = f" Set here: {', '.join(given)}." if given else ""
        return f"The stream: {title}.{chosen} A range holds {answer:,.0f} people on average."

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Name the best method of each guarantee at both ends of the axis, at the largest ε."""
        figure, cells = self.figure_of(results), self.summarize(results)
        if results[0].trial.setting.get(FIGURE) == HINDSIGHT:
            return [verdict(look_back(cells))]
        said = _inside(cells)
        for group in self.groups(cells):
            most = max((key.epsilon for key in group), key=lambda text: float(text or 0))
            own = {key: line for key, line in group.items() if key.epsilon == most}
            for point in self.ends(results):
                best = self.best_at(own, point)
                if best is not None:
                    mean = own[best][point].mean
                    said.append(
                        f"Where {LEVELS[METHODS[best.method].level]}, at {figure.axis} = "
                        f"{plain_number(point)} the lowest {best.measure} is that of "
                        f"{best.short_name}: {mean:,.{self.decimals(mean)}f}."
                    )
        return said

    def time_plot(self, results: Sequence[Result], dataset: str) -> str | None:
        """Draw the error over time at the largest budget, a panel for each guarantee."""
        epsilon = max(_epsilons(results), key=float)
        lines = {m: means for m, means in over_time(results, dataset, epsilon).items() if means}
        panels = []
        for level in LEVELS:
            own = {m: means for m, means in lines.items() if METHODS[m].level == level}
            lowest = min((fmean(means) for means in own.values()), default=0.0)
            shown = [
                Line(
                    shown_as(method),
                    [100 * (number + 0.5) / len(means) for number in range(len(means))],
                    means,
                    [0.0] * len(means),
                    self.is_ours(method),
                )
                for method, means in own.items()
                if fmean(means) <= self.cap * lowest
            ]
            if shown:
                title = f"{dataset}, ε = {epsilon}: hidden in the {level}"
                panels.append(Panel(title, shown))
        layout = Layout(
            across="part of the stream that is over, in %",
            up=self.measure_title(ERROR),
            ticks=(0, 25, 50, 75, 100),
            has_one_scale=False,
        )
        return small_multiples(panels, layout)

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe the methods and their guarantees."""
        return [f"{name}: {METHODS[name].title}; {LEVELS[METHODS[name].level]}." for name in used]

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe repeats and usual settings."""
        return [
            f"Every method is run {how_often(results)} with fresh noise and fresh "
            "queries at every point; simulated streams are simulated afresh each time. Unless "
            f"the page says otherwise windows have {WINDOW} steps (800 on `oldenburg-long`), and "
            f"methods that need to know how often to publish do so {RELEASES} times in the stream "
            "or in a window. Every person counts once a step. Lines without noise are the same "
            "methods with a budget of 1,000,000: they are not private.",
        ]

    def costs(self, results: Sequence[Result]) -> list[Listing]:
        """List the mean number of publications and the mean time by stream and method."""
        measures = (PUBLISHED, SECONDS)
        rows = means_by(results, measures, lambda trial: (trial.dataset, trial.method))
        caption = "Mean number of publications and seconds for the whole stream."
        return [Listing(["stream", "method", *measures], rows, caption)]


_RELATIVE_WORDS = (
    "The relative error of a query is its error divided by its true answer, but at least by the "
    f"sanity bound s ({SANITY} unless it was set), so that queries without people do not count "
    "without limit."
)


def is_moved(method: str, figure: Figure) -> bool:
    """Whether what is on the axis makes a difference to a method."""
    key = figure.key
    return key not in METHOD_KNOBS or METHODS[method].is_moved_by(key)


def _inside(cells: Cells) -> list[str]:
    """Compare PSD for each histogram with noise in every bin, at each budget."""
    said = []
    for key, line in cells.items():
        usual = cells.get(key._replace(method=_WITH_NOISE.get(key.method, "")))
        if usual is not None:
            times = ", ".join(
                f"{cell.mean / usual[point].mean:.2f} at {plain_number(point)}"
                for point, cell in line.items()
            )
            said.append(f"{key.method} has so many times the error of noise in each bin: {times}.")
    return [*said, _INSIDE_WORDS] if said else []


_WITH_NOISE = {
    "fixed-psd": "fixed-sampling",
    "dsat-psd": "dsat",
    "dsat-paper-psd": "dsat-paper",
}
"""What publishes as often as a method with PSD inside, with noise in every bin."""
_INSIDE_WORDS = (
    "PSD helps where a bin holds less than its noise (a small ε, or many bins), because a box "
    "adds up many bins. Elsewhere it loses: it divides ε among medians and all levels of its "
    "tree, and takes people to be even within a box."
)


def _check_values(given: Mapping[str, int | str]) -> None:
    """Refuse values that are not numbers of their kind."""
    counts: dict[str, Any] = {name: given[name] for name in _COUNTS if name in given}
    require_count(**counts)
    for name in ("rate", "sanity"):
        try:
            Fraction(given.get(name, 1))
        except ValueError:
            raise InvalidParameter(f"{name} ({given[name]}) must be a number") from None


def _lines(figure: Figure) -> Iterator[tuple[str, str]]:
    """List methods with their budgets; lines without noise have one of their own."""
    for number, epsilon in enumerate(figure.epsilons):
        for method in figure.methods:
            if method not in TRUE:
                yield method, epsilon
            elif not number:
                yield method, LAVISH


def _epsilons(results: Sequence[Result]) -> list[str]:
    private = [trial.epsilon for trial, _ in results if trial.method not in TRUE]
    return private or [LAVISH]


def over_time(results: Sequence[Result], dataset: str, epsilon: str) -> dict[str, list[float]]:
    """Average the errors of each method within each part of a stream, over the repeats."""
    found: dict[str, list[list[float]]] = {}
    for trial, measured in results:
        if (trial.dataset, trial.epsilon) == (dataset, epsilon):
            slots = [value for name, value in measured.items() if name.startswith(SLOT)]
            found.setdefault(trial.method, []).append(slots)
    return {
        method: [fmean(column) for column in zip(*lines, strict=True)]
        for method, lines in found.items()
    }


STUDY = StreamStudy()
