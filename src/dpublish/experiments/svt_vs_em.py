"""Sparse vectors against selection: who finds the c most frequent values?

Tables 5.3 to 5.6 and figures 5.8 to 5.16 of D. Su, PhD thesis, Purdue, 2016, with the real
mechanisms (on long lists some are drawn at once, see `svt_long_lists`), and beside the thesis's
methods this package's own: on Zipf's distribution, on counts
of public collections (`dpublish.datasets.item_counts`), and on a column of a user's own table.

The sparse vectors are given the mean of the true c-th and (c+1)-th count as their threshold,
as in the thesis.  That is not private and is kept to compare; only "ReTr, private threshold"
spends budget on its own.  Selection needs none.

The thesis raises thresholds by 1D to 5D and calls D one standard deviation of the noise.
Its figures are met if D is the scale of the noise (as in its section 5.4), which is
1 / sqrt(2) of a deviation; so that is what 1D to 5D are here.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import log10
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from dpublish.core.prediction import UNKNOWN
from dpublish.core.query.rows import ClearRows
from dpublish.datasets.item_counts import ITEM_COUNTS
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.selection import false_negative_rate, score_error_rate
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.study import Figure, Plan, Request, RunTrial, Study
from dpublish.experiments.svt_long_lists import LONG, choose_at_once, retraverse_at_once
from dpublish.experiments.trials import Cells, Key, Result, Trial, how_often
from dpublish.mechanisms.sparse_vector.calibration import NoiseKind
from dpublish.mechanisms.sparse_vector.retraversal import retraverse
from dpublish.mechanisms.sparse_vector.textbook import above_threshold_book
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.mechanisms.top_k import random_order, top_k
from dpublish.plots.comparisons import Layout, Line, Panel
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.report.section import Listing
from dpublish.types import BoolArray, IntArray

NAME = "svt-vs-em"
COUNTS = (25, 50, 100, 150, 200, 250, 300)
RANKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 250, 300)
EPSILONS = ("0.1", "0.5")
SCALE = Fraction(7071, 10_000)  # of a standard deviation of Laplace noise
TRUE_COUNTS = "true counts"
SLOW = ("permute-and-flip",)
"""Left out on long lists unless they are named."""


class Counted(Protocol):
    """A dataset of this study: counts of items, most frequent first."""

    @property
    def items(self) -> int:
        """How many items there are."""
        ...

    @property
    def source(self) -> str:
        """What was counted, in words."""
        ...

    def missing_file(self, folder: Path | None) -> str | None:
        """Return the file that is missing, or None if nothing is."""
        ...

    def counts(self, folder: Path | None) -> IntArray:
        """Read the counts, most frequent first."""
        ...


@dataclass(frozen=True, eq=False)
class OwnCounts:
    """The counts of the values of a column of a user's own table."""

    source: str
    values: IntArray

    @property
    def items(self) -> int:
        """How many values the schema lists."""
        return len(self.values)

    def missing_file(self, folder: Path | None) -> str | None:
        """Return nothing: the table was read."""
        return None

    def counts(self, folder: Path | None) -> IntArray:
        """Return the counts, most frequent first."""
        return self.values


@dataclass(frozen=True, eq=False)
class Task:
    """Counts of all values, most frequent first, how many to find, and the means to do it."""

    scores: IntArray
    count: int
    epsilon: str
    rng: RandomSource

    @property
    def threshold(self) -> int:
        """The mean of the last wanted count and the first unwanted one; not private."""
        return -(-int(self.scores[self.count - 1] + self.scores[self.count]) // 2)


Method = Callable[[Task], list[int]]


def _textbook(task: Task) -> list[int]:
    order = random_order(len(task.scores), task.rng)
    flags = above_threshold_book(
        task.scores[order],
        threshold=task.threshold,
        sensitivity=1,
        max_positives=task.count,
        budget=Budget.seeded(task.epsilon),
        rng=task.rng,
    )
    return _chosen(order, flags)


def _standard(
    task: Task, *, ratio: Callable[[int], int] | None = None, noise: NoiseKind = "laplace"
) -> list[int]:
    order = random_order(len(task.scores), task.rng)
    vector = SparseVector(
        sensitivity=1,
        max_positives=task.count,
        monotonic=True,
        noise=noise,
        ratio=None if ratio is None else ratio(task.count),
        budget=Budget.seeded(task.epsilon),
        rng=task.rng,
    )
    return _chosen(order, vector.above_each(task.scores[order], task.threshold))


def _retraversal(
    task: Task,
    *,
    noise: NoiseKind = "exponential",
    deviations: int | Fraction = 3,
    has_private_threshold: bool = False,
) -> list[int]:
    run = retraverse if len(task.scores) <= LONG else retraverse_at_once
    return run(
        task.scores,
        count=task.count,
        threshold=None if has_private_threshold else task.threshold,
        deviations=deviations,
        sensitivity=1,
        monotonic=True,
        noise=noise,
        budget=Budget.seeded(task.epsilon),
        rng=task.rng,
    )


def _exponential(task: Task) -> list[int]:
    if len(task.scores) <= LONG:
        return _selection(task, method="peel-exponential")
    return choose_at_once(task.scores, task.count, float(task.epsilon), task.rng)


def _selection(task: Task, *, method: str) -> list[int]:
    return top_k(
        task.scores,
        count=task.count,
        sensitivity_range=1,
        method=method,
        budget=Budget.seeded(task.epsilon),
        rng=task.rng,
    )


def _chosen(order: IntArray, flags: BoolArray) -> list[int]:
    found: list[int] = order[: len(flags)][flags].tolist()
    return found


THESIS_INTERACTIVE: dict[str, Method] = {
    "SVT-DPBook": _textbook,
    "SVT-S 1:1": partial(_standard, ratio=lambda count: 1),
    "SVT-S 1:3": partial(_standard, ratio=lambda count: 3),
    "SVT-S 1:c": partial(_standard, ratio=lambda count: count),
    "SVT-S 1:c^(2/3)": _standard,
}
THESIS_LISTED: dict[str, Method] = {
    "SVT-ReTr 1D": partial(_retraversal, noise="laplace", deviations=SCALE),
    "SVT-ReTr 2D": partial(_retraversal, noise="laplace", deviations=2 * SCALE),
    "SVT-ReTr 3D": partial(_retraversal, noise="laplace", deviations=3 * SCALE),
    "SVT-ReTr 4D": partial(_retraversal, noise="laplace", deviations=4 * SCALE),
    "SVT-ReTr 5D": partial(_retraversal, noise="laplace", deviations=5 * SCALE),
    "EM": _exponential,
}
OUR_INTERACTIVE: dict[str, Method] = {"one-sided SVT": partial(_standard, noise="exponential")}
OUR_LISTED: dict[str, Method] = {
    "one-sided ReTr": _retraversal,
    "ReTr, private threshold": partial(_retraversal, has_private_threshold=True),
    "permute-and-flip": partial(_selection, method="peel-permute-and-flip"),
    "one-shot": partial(_selection, method="one-shot"),
}
INTERACTIVE = THESIS_INTERACTIVE | OUR_INTERACTIVE
LISTED = THESIS_LISTED | OUR_LISTED
METHODS = THESIS_INTERACTIVE | THESIS_LISTED | OUR_INTERACTIVE | OUR_LISTED


SER, FNR, SCORE = "ser", "fnr", "score"
MEASURES = {SER: "score error rate", FNR: "false negative rate"}
COUNTS_FIGURE, SCORES_FIGURE = "counts", "scores"
FIGURES = {
    COUNTS_FIGURE: Figure(
        title="Which private selection of the most frequent values misses least?",
        across="values to find (c)",
        reading="From left to right there are more values to find, and less of ε for each.",
        methods=tuple(METHODS),
        epsilons=EPSILONS,
        measures=tuple(MEASURES),
        key="count",
        values=COUNTS,
        is_log=False,
    ),
    SCORES_FIGURE: Figure(
        title="How frequent are the most frequent values?",
        across="rank of the value",
        reading="From left to right values are less frequent.",
        methods=(TRUE_COUNTS,),
        measures=(SCORE,),
        key="rank",
        values=RANKS,
    ),
}


class Runner:
    """Selects once on a dataset and measures what was missed; reads each dataset once."""

    def __init__(self, datasets: Mapping[str, Counted], folder: Path | None) -> None:
        self._datasets, self._folder = datasets, folder
        self._counts: dict[str, IntArray] = {}

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Run one trial, or look up one count."""
        if trial.dataset not in self._counts:
            self._counts[trial.dataset] = self._datasets[trial.dataset].counts(self._folder)
        scores = self._counts[trial.dataset]
        if trial.method == TRUE_COUNTS:
            return {SCORE: float(scores[int(trial.setting["rank"]) - 1])}
        count = int(trial.setting["count"])
        chosen = METHODS[trial.method](Task(scores, count, trial.epsilon, trial.rng()))
        return {
            SER: score_error_rate(chosen, scores, count),
            FNR: false_negative_rate(chosen, scores, count),
        }


class SelectionStudy(Study[Figure]):
    """Sparse vectors against selection."""

    name = NAME
    figures = FIGURES
    datasets: Mapping[str, Counted] = ITEM_COUNTS
    references: ClassVar[Mapping[str, str]] = {TRUE_COUNTS: TRUE_COUNTS}
    digits = 3
    unit = "record"
    lead = "An experiment on public counts with seeded noise."

    def plan(self, repeats: int, *, methods: Sequence[str] | None = None, **options: Any) -> Plan:
        """List the trials; slow methods are left out on long lists unless they are named."""
        planned = super().plan(repeats, methods=methods, **options)
        if methods is not None:
            return planned
        datasets: Any = planned.study.datasets  # of a copy, for a table of the user's own
        long = {name for name, counts in datasets.items() if counts.items > LONG}
        kept, notes = [], dict[str, None]()
        for trial in planned.trials:
            if trial.method in SLOW and trial.dataset in long:
                left = f"{trial.method} was left out on {trial.dataset}, a long list"
                notes[f"{left}; name it to run it"] = None
            else:
                kept.append(trial)
        return replace(planned, trials=tuple(kept), notes=(*planned.notes, *notes))

    def own_dataset(self, table: OwnTable) -> OwnCounts:
        """Count the values of the target column, as the schema lists them."""
        target = table.require_target()
        codes = ClearRows(table.rows, table.schema).codes(target)
        size = table.schema[target].axis().size
        counts = np.bincount(codes[codes != UNKNOWN], minlength=size).astype(np.int64)
        if size < 2:
            raise InvalidParameter(f"{target} has one value; this study ranks the values of it")
        source = f"The {size:,} values of the column {target} of a table of your own"
        return OwnCounts(source, np.ascontiguousarray(np.sort(counts)[::-1]))

    def trials(self, asked: Request[Figure], **_: object) -> Iterator[Trial]:
        """List the trials, all methods once before any of them twice.

        More values than there are in a list cannot be found; such points are left out.
        """
        figure = asked.figure
        for dataset in figure.datasets:
            most = self.datasets[dataset].items - (figure.key == "count")
            for moved in asked.axis():
                if not 1 <= int(moved[str(figure.key)]) <= most:
                    continue
                setting = asked.setting(dataset, **moved)
                if asked.name == SCORES_FIGURE:
                    yield Trial(NAME, TRUE_COUNTS, "none", 0, setting)
                    continue
                for seed in range(asked.repeats):
                    for epsilon in figure.epsilons:
                        for name in figure.methods:
                            yield Trial(NAME, name, epsilon, seed, setting)

    def runner(self, folder: Path | None) -> RunTrial:
        """Return what runs a trial on the counts of a data folder."""
        return Runner(self.datasets, folder).run_trial

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return MEASURES.get(measure, measure)

    def is_ours(self, method: str) -> bool:
        """Whether a method is this package's own; those of the thesis are gray."""
        return method in OUR_INTERACTIVE or method in OUR_LISTED

    def table(self, results: Sequence[Result]) -> Listing:
        """Lay the results out as the thesis does: a row for each c, a column for each method."""
        if self._is_of_scores(results):
            return super().table(results)
        cells = self.summarize(results)
        names = list(dict.fromkeys(key.method for key in cells))
        rows = [
            [
                dataset,
                measure.upper(),
                epsilon,
                f"{point:.0f}",
                *(
                    self.cell_text(cells, Key(dataset, measure, name, epsilon), point)
                    for name in names
                ),
            ]
            for dataset in dict.fromkeys(key.dataset for key in cells)
            for measure in MEASURES
            for epsilon in dict.fromkeys(key.epsilon for key in cells)
            for point in self.points([one for one in results if one.trial.dataset == dataset])
        ]
        return Listing(["dataset", "measure", "epsilon", "c", *names], rows, self.table_caption)

    def cell_text(self, cells: Cells, key: Key, point: float) -> str:
        """Write a cell; a method that was left out on a dataset has none, a count no deviation."""
        if key not in cells:
            return ""
        if key.measure == SCORE and point in cells[key]:
            return f"{cells[key][point].mean:,.0f}"
        return super().cell_text(cells, key, point)

    def panels(self, results: Sequence[Result], dataset: str | None) -> list[Panel]:
        """Draw SER and FNR over c: what answers queries as they come, and what needs the list."""
        cells = self.summarize(results)
        if self._is_of_scores(results):
            lines = [_score_line(key.dataset, line) for key, line in cells.items()]
            return [Panel("The highest counts", lines)]
        panels = []
        for name in dict.fromkeys(key.dataset for key in cells):
            for kind, known in (("Queries one by one", INTERACTIVE), ("The whole list", LISTED)):
                for epsilon in dict.fromkeys(key.epsilon for key in cells):
                    for measure in MEASURES:
                        lines = [
                            self.line(key, line)
                            for key, line in cells.items()
                            if key[:2] == (name, measure)
                            and key.epsilon == epsilon
                            and key.method in known
                        ]
                        if lines and dataset in (None, name):
                            title = f"{measure.upper()}: {kind.lower()}, ε = {epsilon}"
                            panels.append(Panel(title if dataset else f"{name}, {title}", lines))
        return panels

    def label(self, key: Key) -> str:
        """Label a line; its budget is in the title of its panel."""
        return key.method

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Draw all panels to one scale, under a note that they are not private."""
        usual = super().layout(results, dataset)
        if self._is_of_scores(results):
            return usual._replace(up="log10 of the count", note="Not private: true counts.")
        return usual._replace(
            up="score error rate (SER) or false negative rate (FNR)",
            has_one_scale=True,
            note="Mean and standard deviation.  Not private: seeded, thresholds from true counts.",
        )

    def _is_of_scores(self, results: Sequence[Result]) -> bool:
        return results[0].trial.method == TRUE_COUNTS

    def epsilon_words(self, results: Sequence[Result]) -> str:
        """Explain epsilon and the axis; true counts have no epsilon."""
        if self._is_of_scores(results):
            return f"These are true counts, without privacy. {self.figure_of(results).reading}"
        return super().epsilon_words(results)

    def explanation(self, figure: Figure) -> list[str]:
        """Explain the task and the measures."""
        if figure.measures == (SCORE,):
            return [
                "How hard it is to find the most frequent values hangs on how fast counts fall."
            ]
        return [
            "The c most frequent values of a list are selected without giving away whether any "
            "one record is in the data. How much is missed?",
            "The score error rate (SER) is the part of the true best values' counts that the "
            "selected ones lack: 0 is perfect, 1 is worthless. The false negative rate (FNR) is "
            "the part of the true best values that was not selected.",
        ]

    def reading_points(self, figure: Figure) -> list[str]:
        """List what panels and lines mean."""
        if figure.measures == (SCORE,):
            return []
        return [
            "Colored lines are this package's own methods, gray ones those of the thesis.",
            "Sparse vectors answer queries one by one, without knowing those that follow; "
            "selection and retraversal need the whole list.",
        ]

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Say what was counted, and where thresholds come from."""
        counted = f"{self.datasets[dataset].source}."
        if self._is_of_scores(results):
            return counted
        return (
            f"{counted} Sparse vectors are given the mean of the true c-th and next count as "
            "their threshold, which is not private; only one spends budget on its own."
        )

    def method_points(self, used: Collection[str]) -> list[str]:
        """Say who answers how."""
        kinds = {"queries one by one": INTERACTIVE, "the whole list": LISTED}
        return [
            f"{name}: {'ours' if self.is_ours(name) else 'of the thesis'}, {kind}."
            for kind, known in kinds.items()
            for name in used
            if name in known
        ]

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Say how often."""
        if self._is_of_scores(results):
            return ["Nothing was drawn at random."]
        return [f"Every method is run {how_often(results)} with fresh noise."]


def _score_line(dataset: str, line: Mapping[float, Any]) -> Line:
    heights = [log10(max(cell.mean, 1)) for cell in line.values()]
    return Line(dataset, list(line), heights, [0.0] * len(heights), is_ours=True)


STUDY = SelectionStudy()
