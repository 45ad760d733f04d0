"""How far are counts from the truth when a changing histogram is published again and again?

After H. Li et al., Differentially Private Histogram Publication for Dynamic Datasets (CIKM
2015): the mean absolute error of random range counts over all steps, for every method that
publishes a stream, on public streams and on streams that are simulated; against epsilon, update
rate, dimensions and size of the queries, and against the settings of the methods.  Methods are
compared with those that have the same guarantee.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import exp
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, Literal

import numpy as np

from dpublish.datasets.stream_sets import STREAM_SETS
from dpublish.datasets.streams import CountStream
from dpublish.evaluation.metrics.streams import RangeQueries
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
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples
from dpublish.plots.style import plain_number
from dpublish.privacy.budget import Budget
from dpublish.report import section
from dpublish.report.section import Listing, Section

NAME = "streams"
ERROR, ANSWER, PUBLISHED = "error", "true answer", "publications"
SLOT = "slot "  # and its number: the mean error within a part of the stream
SLOTS = 50
SUMMARY = "summary"
QUERIES = 1_000
WINDOW, RELEASES = 40, 10
_FIRST_SEED = 2024

Level = Literal["stream", "window"]
LEVELS: dict[Level, str] = {
    "stream": "each person is hidden in the whole stream",
    "window": "each person is hidden within every window of steps",
}


@dataclass(frozen=True)
class Competitor:
    """A method with the settings it is run with.

    Attributes:
        method: Its name among the stream methods.
        level: What it guarantees.
        span: The setting for the number of steps; a window of all steps hides people in the
            whole stream.
        title: What it is, in words.
        releases: How often it publishes; None leaves that to the method.
        controller: What steers DSAT; None for its default.
    """

    method: str
    level: Level
    span: Literal["horizon", "window"]
    title: str
    releases: int | None = None
    controller: str | None = None

    def settings(self, steps: int, changes: Mapping[str, int | str]) -> dict[str, int | str]:
        """Set it for a stream of `steps`; `changes` hold what the figure varies."""
        window = int(changes.get("window", WINDOW))
        length = steps if self.level == "stream" else min(window, steps)
        found: dict[str, int | str] = {self.span: length}
        releases = changes.get("releases", self.releases)
        if releases is not None:
            found["releases"] = min(int(releases), length)
        if self.controller is not None:
            found["controller"] = self.controller
        return found


def _whole(method: str, title: str, **settings: Any) -> Competitor:
    return Competitor(method, "stream", "horizon", title, **settings)


def _windows(method: str, title: str, **settings: Any) -> Competitor:
    return Competitor(method, "window", "window", title, **settings)


METHODS: dict[str, Competitor] = {
    "dsat": _whole("dsat", "DSAT with its defaults"),
    "dsat-schedule": _whole("dsat", "DSAT that keeps to a schedule", controller="schedule"),
    "dsat-paper": _whole("dsat", "DSAT as printed, but private", controller="paper"),
    "dsft": _whole("dsft", "DSFT: a fixed threshold", releases=RELEASES),
    "fixed-sampling": _whole(
        "fixed-sampling", "10 publications at equal distances", releases=RELEASES
    ),
    "fixed-5": _whole("fixed-sampling", "5 publications at equal distances", releases=5),
    "fixed-20": _whole("fixed-sampling", "20 publications at equal distances", releases=20),
    "per-snapshot": _whole("per-snapshot", "a publication at each step"),
    "bd-user": Competitor("bd", "stream", "window", "BD with one window of all steps"),
    "ba-user": Competitor("ba", "stream", "window", "BA with one window of all steps"),
    "dsat-w": _windows("dsat-w", "DSAT for windows with its defaults"),
    "dsat-schedule-w": _windows("dsat-w", "DSAT on a schedule", controller="schedule"),
    "dsat-paper-w": _windows("dsat-w", "DSAT as printed, but private", controller="paper"),
    "fixed-sampling-w": _windows(
        "fixed-sampling", "10 publications in a window", releases=RELEASES
    ),
    "fixed-5-w": _windows("fixed-sampling", "5 publications in a window", releases=5),
    "fixed-20-w": _windows("fixed-sampling", "20 publications in a window", releases=20),
    "per-snapshot-w": _windows("per-snapshot", "a publication at each step"),
    "bd": _windows("bd", "BD: half of what is left at each publication"),
    "ba": _windows("ba", "BA: what earlier steps saved goes to the next publication"),
}
REFERENCES = ("fixed-5", "fixed-20", "per-snapshot")
"""Drawn in gray, for whatever they guarantee."""
_USUAL = tuple(name for name in METHODS if not name.startswith(("fixed-5", "fixed-20")))


def shown_as(method: str) -> str:
    """Name a method where its guarantee is clear, so that both forms look the same.

    >>> shown_as("fixed-5-w"), shown_as("bd-user")
    ('fixed-5', 'bd')
    """
    return method.removesuffix("-w").removesuffix("-user")


MAKERS = {"rate": 1_000, "columns": None, "steps": None}
"""Settings of a stream's maker, and the whole they are a part of; rates are per 1,000."""

_figure = partial(Figure, methods=_USUAL, datasets=tuple(STREAM_SETS), measures=(ERROR,))
FIGURES = {
    "epsilon": _figure(
        title="How well can a changing histogram be published again and again?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
    ),
    "update-rate": _figure(
        title="What if more people change at each step?",
        across="people who change at a step, in 1,000",
        reading="From left to right the histogram changes faster, so what was published "
        "gets old sooner.",
        key="rate",
        values=(0, 1, 2, 5, 10, 20, 50, 100),
        datasets=("census", "drift"),
        is_log=False,
    ),
    "dimensions": _figure(
        title="What if the histogram has more columns?",
        across="number of columns",
        reading="From left to right there are more columns and so more bins: 16, 160, 960, "
        "3,840 and 7,680. Every bin has its own noise.",
        key="columns",
        values=(1, 2, 3, 4, 5),
        datasets=("census",),
        is_log=False,
    ),
    "query-size": _figure(
        title="What if queries are about more bins?",
        across="part of all bins that a query adds up, in 1,000",
        reading="From left to right each answer adds up more bins, and the noise of them all.",
        key="share",
        values=(10, 40, 90, 160, 250, 490, 810),
        datasets=("static", "drift", "bursts", "tdrive"),
        is_log=False,
    ),
    "window": _figure(
        title="How long should the window be within which people are hidden?",
        across="steps of a window (w)",
        reading="From left to right people are hidden within more steps, so each step has a "
        "smaller part of the budget.",
        key="window",
        values=(10, 20, 40, 80, 160),
        methods=tuple(name for name in _USUAL if METHODS[name].level == "window"),
        datasets=("static", "drift", "bursts", "nyc-taxi", "tdrive"),
    ),
    "releases": _figure(
        title="How often should a stream publish?",
        across="publications in a stream or window (C)",
        reading="From left to right more histograms are published, each with a smaller part "
        "of the budget. DSAT with its defaults takes it as the most publications ahead of time.",
        key="releases",
        values=(2, 5, 10, 20, 40),
        methods=(
            "dsat",
            "dsat-schedule",
            "dsat-paper",
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
        methods=tuple(name for name in _USUAL if METHODS[name].level == "stream"),
        datasets=("static", "drift", "bursts", "nyc-taxi"),
    ),
    SUMMARY: _figure(
        title="Which method publishes which stream best?",
        across=EPSILON_AXIS,
        reading="Each stream has a second plot: its error over time.",
        epsilons=("0.1", "1"),
        methods=tuple(METHODS),
    ),
}


class StreamRunner:
    """Publishes streams of a data folder and compares what comes out with the true counts."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._load = lru_cache(maxsize=1)(self._make)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish a whole stream; return the mean error of random ranges over all its steps."""
        given = trial.setting
        changes = tuple((key, int(given[key])) for key in MAKERS if key in given)
        stream = self._load(trial.dataset, trial.seed, changes)
        share = int(given["share"]) / 1_000 if "share" in given else None
        queries = RangeQueries.draw(stream.shape, QUERIES, seed=trial.seed, share=share)
        competitor = METHODS[trial.method]
        settings = {"columns": stream.columns, **competitor.settings(stream.steps, given)}
        method = make_stream_method(competitor.method, settings)
        rng = trial.rng()
        begin = perf_counter()
        opened = method.start(stream.schema, budget=Budget.seeded(trial.epsilon), rng=rng)
        steps = [opened.next_counts(counts, rng=rng) for counts in stream.counts]
        seconds = perf_counter() - begin
        errors = [
            queries.mean_error(step.estimate, truth)
            for step, truth in zip(steps, stream.counts, strict=True)
        ]
        measured = {
            ERROR: fmean(errors),
            ANSWER: float(queries.answers(stream.counts.mean(axis=0)).mean()),
            PUBLISHED: float(sum(step.action == "published" for step in steps)),
            SECONDS: round(seconds, 3),
        }
        return measured | (_slots(errors) if given[FIGURE] == SUMMARY else {})

    def _make(self, dataset: str, seed: int, changes: tuple[tuple[str, int], ...]) -> CountStream:
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


class StreamStudy(Study[Figure]):
    """Streams of histograms, by methods with two kinds of guarantees."""

    name = NAME
    figures = FIGURES
    datasets = STREAM_SETS
    headers = ("stream", "hidden in", "method")
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
        for dataset in figure.datasets:
            for moved in asked.axis():
                setting = asked.setting(dataset, **moved)
                for seed in range(asked.repeats):
                    for epsilon in figure.epsilons:
                        for method in figure.methods:
                            yield Trial(NAME, method, epsilon, seed, setting)

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the streams of a data folder."""
        return StreamRunner(folder).run_trial

    def key(self, trial: Trial, figure: Figure, measure: str) -> Key:
        """Return which line a trial belongs to; guarantees are kept apart."""
        usual = super().key(trial, figure, measure)
        return usual._replace(variant=(METHODS[trial.method].level,))

    def names(self, key: Key) -> list[str]:
        """Name a line by stream, guarantee and method."""
        return [key.dataset, *key.variant, key.short_name]

    def decimals(self, mean: float) -> int:
        """Write small errors with more decimals."""
        return 2 if mean < 10 else 1 if mean < 1_000 else 0

    def cell_text(self, cells: Cells, key: Key, point: float) -> str:
        """Write a cell, with a star if it is the best of its guarantee and budget."""
        text = super().cell_text(cells, key, point)
        rivals = {
            other: line
            for other, line in cells.items()
            if (other.dataset, other.variant, other.epsilon)
            == (key.dataset, key.variant, key.epsilon)
        }
        is_best = len(rivals) > 1 and self.best_at(rivals, point) == key
        return f"{text}{BEST}" if text and is_best else text

    def measure_title(self, measure: str) -> str:
        """Name the only measure."""
        return "mean absolute error of range counts"

    def panel_title(self, key: Key, dataset: str | None) -> str:
        """Name a panel by stream and guarantee."""
        return f"{key.dataset}: hidden in the {key.variant[0]}"

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
            f"At each step {QUERIES:,} random ranges of bins are counted in what was "
            "published and in the truth. The error is how many people too many or too few are "
            "found, on average over all queries and all steps. Lower is better. It is measured "
            "on the true counts, which is why this page is not private.",
        ]

    def epsilon_words(self, results: Sequence[Result]) -> str:
        """Explain epsilon for two kinds of guarantees."""
        example = min((trial.epsilon for trial, _ in results), key=float)
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
        title = STREAM_SETS[dataset].title
        return f"The stream: {title}. A range holds {answer:,.0f} people on average."

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Name the best method of each guarantee at both ends of the axis, at the largest ε."""
        figure = self.figure_of(results)
        said = []
        for group in self.groups(self.summarize(results)):
            most = max((key.epsilon for key in group), key=lambda text: float(text or 0))
            own = {key: line for key, line in group.items() if key.epsilon == most}
            for point in self.ends(results):
                best = self.best_at(own, point)
                if best is not None:
                    said.append(
                        f"Where {LEVELS[METHODS[best.method].level]}, at {figure.axis} = "
                        f"{plain_number(point)} the lowest error is that of {best.short_name}: "
                        f"{own[best][point].mean:,.1f}."
                    )
        return said

    def time_plot(self, results: Sequence[Result], dataset: str) -> str | None:
        """Draw the error over time at the largest budget, a panel for each guarantee."""
        epsilon = max((trial.epsilon for trial, _ in results), key=float)
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
            f"the page says otherwise windows have {WINDOW} steps, and methods that need to know "
            f"how often to publish do so {RELEASES} times in the stream or in a window. Every "
            "person counts once a step.",
        ]

    def costs(self, results: Sequence[Result]) -> list[Listing]:
        """List the mean number of publications and the mean time by stream and method."""
        measures = (PUBLISHED, SECONDS)
        rows = means_by(results, measures, lambda trial: (trial.dataset, trial.method))
        caption = "Mean number of publications and seconds for the whole stream."
        return [Listing(["stream", "method", *measures], rows, caption)]


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
