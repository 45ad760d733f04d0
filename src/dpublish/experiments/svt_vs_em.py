"""Sparse vectors against selection: who finds the c most frequent values?

Tables 5.4 and 5.6 (rows "Zipf") of D. Su, PhD thesis, Purdue, 2016, with the real mechanisms,
and beside the thesis's methods this package's own.  10,000 values share 1,000,000 records,
the i-th most frequent in proportion to 1/i.

The sparse vectors are given the mean of the true c-th and (c+1)-th count as their threshold,
as in the thesis.  That is not private and is kept to compare; only "ReTr, bought threshold"
pays for its own.  Selection needs none.

The thesis raises thresholds by 1D, 2D, 3D and calls D one standard deviation of the noise.
Its figures are met if D is the scale of the noise (as in its section 5.4), which is
1 / sqrt(2) of a deviation; so that is what 1D, 2D and 3D are here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import require_known
from dpublish.evaluation.metrics.selection import false_negative_rate, score_error_rate
from dpublish.experiments.experiment import Result, ResultTable, Trial
from dpublish.experiments.options import write_figure
from dpublish.mechanisms.sparse_vector.calibration import NoiseKind
from dpublish.mechanisms.sparse_vector.retraversal import retraverse
from dpublish.mechanisms.sparse_vector.textbook import above_threshold_book
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.mechanisms.top_k import random_order, top_k
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

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
    buys_threshold: bool = False,
) -> list[int]:
    return retraverse(
        task.scores,
        count=task.count,
        threshold=None if buys_threshold else task.threshold,
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
    "ReTr, bought threshold": partial(_retraversal, buys_threshold=True),
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


def trials(
    repeats: int,
    *,
    counts: Sequence[int] = COUNTS,
    epsilons: Sequence[str] = EPSILONS,
    methods: Iterable[str] = tuple(METHODS),
) -> Iterator[Trial]:
    """List the trials, all methods once before any of them twice."""
    names = list(methods)
    for name in names:
        require_known("method", name, METHODS)
    for seed in range(repeats):
        for epsilon in epsilons:
            for count in counts:
                for name in names:
                    yield Trial(NAME, name, epsilon, seed, {"count": count})


def run_trial(trial: Trial) -> dict[str, float]:
    """Choose once and measure what was missed."""
    scores, count = zipf_counts(), int(trial.setting["count"])
    chosen = METHODS[trial.method](Task(scores, count, trial.epsilon, trial.rng()))
    return {
        "ser": score_error_rate(chosen, scores, count),
        "fnr": false_negative_rate(chosen, scores, count),
    }


class Cell(NamedTuple):
    """Mean and standard deviation over the repeats."""

    mean: float
    spread: float


def summarize(results: Sequence[Result], figure: str) -> dict[tuple[str, int, str], Cell]:
    """Average a figure over the repeats, by epsilon, count and method."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for trial, figures in results:
        place = (trial.epsilon, int(trial.setting["count"]), trial.method)
        found.setdefault(place, []).append(figures[figure])
    return {
        place: Cell(fmean(values), stdev(values) if len(values) > 1 else 0.0)
        for place, values in found.items()
    }


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the results out as the thesis does: a row for each c, mean and deviation in cells."""
    names = _present(results, METHODS)
    rows = []
    for figure in ("ser", "fnr"):
        cells = summarize(results, figure)
        for epsilon, count in dict.fromkeys((place[0], place[1]) for place in cells):
            row = (cells[epsilon, count, name] for name in names)
            numbers = [f"{cell.mean:.3f} ±{cell.spread:.3f}" for cell in row]
            rows.append([figure.upper(), epsilon, str(count), *numbers])
    return ResultTable(["figure", "epsilon", "c", *names], rows)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw SER over c: what can answer questions as they come, and what needs the whole list."""
    cells = summarize(results, "ser")
    panels = []
    for kind, known in (("Questions one by one", INTERACTIVE), ("The whole list", LISTED)):
        names = _present(results, known)
        epsilons = dict.fromkeys(place[0] for place in cells)
        if names:
            panels += [
                Panel(f"{kind}, ε = {epsilon}", [_line(cells, epsilon, name) for name in names])
                for epsilon in epsilons
            ]
    note = "Zipf, mean and standard deviation.  Not private: seeded, thresholds from true counts."
    ticks = sorted({float(place[1]) for place in cells})
    layout = Layout("values to find (c)", "score error rate", ticks, note=note)
    return write_figure(small_multiples(panels, layout), path)


def _present(results: Sequence[Result], known: Iterable[str]) -> list[str]:
    seen = {trial.method for trial, _ in results}
    return [name for name in known if name in seen]


def _line(cells: dict[tuple[str, int, str], Cell], epsilon: str, name: str) -> Line:
    counts = sorted({place[1] for place in cells})
    means, spreads = zip(*(cells[epsilon, count, name] for count in counts), strict=True)
    is_ours = name in OUR_INTERACTIVE or name in OUR_LISTED
    return Line(name, counts, means, spreads, is_ours)
