"""Sparse vectors against selection: who finds the c most frequent values?

Tables 5.4 and 5.6 (rows "Zipf") of D. Su, PhD thesis, Purdue, 2016, with the real mechanisms,
and beside the thesis's methods this package's own.  10,000 values share 1,000,000 records,
the i-th most frequent in proportion to 1/i.

The sparse vectors are given the mean of the true c-th and (c+1)-th count as their threshold,
as in the thesis.  That is not private and is kept to compare; only "ReTr, private threshold"
spends budget on its own.  Selection needs none.

The thesis raises thresholds by 1D, 2D, 3D and calls D one standard deviation of the noise.
Its figures are met if D is the scale of the noise (as in its section 5.4), which is
1 / sqrt(2) of a deviation; so that is what 1D, 2D and 3D are here.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpublish.evaluation.metrics.selection import false_negative_rate, score_error_rate
from dpublish.experiments.study import Figure, Request, RunTrial, Study
from dpublish.experiments.trials import Cells, Key, Result, Trial, how_often
from dpublish.mechanisms.sparse_vector.calibration import NoiseKind
from dpublish.mechanisms.sparse_vector.retraversal import retraverse
from dpublish.mechanisms.sparse_vector.textbook import above_threshold_book
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.mechanisms.top_k import random_order, top_k
from dpublish.plots.comparisons import Layout, Panel
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.report.section import Listing

NAME = "svt-vs-em"
COUNTS = (25, 50, 100, 150, 200, 250, 300)
EPSILONS = ("0.1", "0.5")
ITEMS, RECORDS = 10_000, 1_000_000
SCALE = Fraction(7071, 10_000)  # of a standard deviation of Laplace noise


@dataclass(frozen=True, eq=False)
class Task:
    """Counts of all values, most frequent first, how many to find, and the means to do it."""

    scores: NDArray[np.int64]
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
    return retraverse(
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


def _selection(task: Task, *, method: str) -> list[int]:
    return top_k(
        task.scores,
        count=task.count,
        sensitivity_range=1,
        method=method,
        budget=Budget.seeded(task.epsilon),
        rng=task.rng,
    )


def _chosen(order: NDArray[np.intp], flags: NDArray[np.bool_]) -> list[int]:
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
    "EM": partial(_selection, method="peel-exponential"),
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


@cache
def zipf_counts(items: int = ITEMS, records: int = RECORDS) -> NDArray[np.int64]:
    """Share `records` over `items` values, the i-th most frequent in proportion to 1/i."""
    weights = 1 / np.arange(1, items + 1)
    counts: NDArray[np.int64] = np.rint(records * weights / weights.sum()).astype(np.int64)
    counts.flags.writeable = False
    return counts


SER, FNR = "ser", "fnr"
MEASURES = {SER: "score error rate", FNR: "false negative rate"}
FIGURES = {
    "counts": Figure(
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
}


def run_trial(trial: Trial) -> dict[str, float]:
    """Select once and measure what was missed."""
    scores, count = zipf_counts(), int(trial.setting["count"])
    chosen = METHODS[trial.method](Task(scores, count, trial.epsilon, trial.rng()))
    return {
        SER: score_error_rate(chosen, scores, count),
        FNR: false_negative_rate(chosen, scores, count),
    }


class SelectionStudy(Study[Figure]):
    """Sparse vectors against selection."""

    name = NAME
    options = ("counts", "epsilons", "methods")
    figures = FIGURES
    digits = 3
    unit = "record"

    def trials(
        self, asked: Request[Figure], *, counts: Sequence[int] = COUNTS, **_: object
    ) -> Iterator[Trial]:
        """List the trials, all methods once before any of them twice."""
        for seed in range(asked.repeats):
            for epsilon in asked.figure.epsilons:
                for count in counts:
                    for name in asked.figure.methods:
                        yield Trial(NAME, name, epsilon, seed, {"count": count})

    def runner(self, folder: Path | None) -> RunTrial:
        """Return what runs a trial; the counts are simulated."""
        return run_trial

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return MEASURES[measure]

    def is_ours(self, method: str) -> bool:
        """Whether a method is this package's own; those of the thesis are gray."""
        return method in OUR_INTERACTIVE or method in OUR_LISTED

    def table(self, results: Sequence[Result]) -> Listing:
        """Lay the results out as the thesis does: a row for each c, a column for each method."""
        cells = self.summarize(results)
        names = list(dict.fromkeys(key.method for key in cells))
        rows = [
            [
                measure.upper(),
                epsilon,
                f"{point:.0f}",
                *(self.cell_text(cells, Key("", measure, name, epsilon), point) for name in names),
            ]
            for measure in MEASURES
            for epsilon in dict.fromkeys(key.epsilon for key in cells)
            for point in self.points(results)
        ]
        return Listing(["measure", "epsilon", "c", *names], rows, self.table_caption)

    def dataset_table(self, results: Sequence[Result]) -> Listing:
        """Lay the results out; there is but one dataset."""
        return self.table(results)

    def panels(self, results: Sequence[Result], dataset: str | None) -> list[Panel]:
        """Draw SER over c: what can answer queries as they come, and what needs the whole list."""
        cells = self.summarize(results)
        panels = []
        for kind, known in (("Queries one by one", INTERACTIVE), ("The whole list", LISTED)):
            for epsilon in dict.fromkeys(key.epsilon for key in cells):
                own: Cells = {
                    key: line
                    for key, line in cells.items()
                    if key.measure == SER and key.epsilon == epsilon and key.method in known
                }
                lines = [self.line(key, line) for key, line in own.items()]
                if lines:
                    panels.append(Panel(f"{kind}, ε = {epsilon}", lines))
        return panels

    def label(self, key: Key) -> str:
        """Label a line; its budget is in the title of its panel."""
        return key.method

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Draw all panels to one scale, under a note that they are not private."""
        return (
            super()
            .layout(results, dataset)
            ._replace(
                up=MEASURES[SER],
                has_one_scale=True,
                note="Zipf, mean and standard deviation.  "
                "Not private: seeded, thresholds from true counts.",
            )
        )

    def explanation(self, figure: Figure) -> list[str]:
        """Explain the task and the measures."""
        return [
            f"{ITEMS:,} values share {RECORDS:,} records; the i-th most frequent has a count in "
            "proportion to 1/i (Zipf). The c most frequent values are selected without giving "
            "away whether any one record is in the data. How much is missed?",
            "The score error rate (SER) is the part of the true best values' counts that the "
            "selected ones lack: 0 is perfect, 1 is worthless. The false negative rate (FNR) is "
            "the part of the true best values that was not selected.",
        ]

    def reading_points(self, figure: Figure) -> list[str]:
        """List what panels and lines mean."""
        return [
            "Colored lines are this package's own methods, gray ones those of the thesis.",
            "Sparse vectors answer queries one by one, without knowing those that follow; "
            "selection and retraversal need the whole list.",
        ]

    def heading(self, dataset: str) -> str:
        """Write the heading of the only section of results."""
        return "What each method misses"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Say where thresholds come from."""
        return (
            "Sparse vectors are given the mean of the true c-th and next count as their "
            "threshold, which is not private; only one spends budget on its own."
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
        return [f"Every method is run {how_often(results)} with fresh noise."]


STUDY = SelectionStudy()
