"""PPH: a projected histogram of the few predictors that separate the classes best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, prod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.cut_counts import CutCounts
from dpublish.aggregates.sparse_counts import MAX_DOMAIN, OccupiedCells
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.core.task import Task
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.selection import selection_rate
from dpublish.mechanisms.sparse_counts import auto_threshold
from dpublish.methods.histogram.published_cells import (
    LabeledHistogramMethod,
    add_noise_to_cells,
    require_free_names,
)
from dpublish.methods.histogram.released import LabeledHistogramRelease
from dpublish.methods.pph.plan import AUTO, Plan
from dpublish.privacy.budget import Budget

MOST_FALSE_CELLS = 1_000_000
MOST_TALLIED = 1 << 25
"""Occupied cells that one pass over the rows may find, judged by the noisy size."""
STEPS = 2**20
"""Scores are integers of steps; so many make up 1."""
SCORE_RANGE = STEPS + 1
"""R of the rounded scores, in steps; proof: docs/proofs/pph.md."""
_HALF = 31


@dataclass(frozen=True, kw_only=True)
class PPH(LabeledHistogramMethod):
    """Publish noisy class counts over the few predictors that separate the classes best.

    A noisy number of records decides how many predictors to take and how finely numbers are
    cut.  Private selection then chooses the predictors one by one, each together with those
    before it, by how few pairs of records of different classes they leave in the same cell.
    Choose it when a few of many columns decide the class and the counts of their cells are to
    be published.  Choose `PrivPfC` for fewer wrong predictions.

    Guarantee:
        Pure epsilon-differential privacy when one record is added or removed.  Number of
        records, choices and counts each spend a share of epsilon.  Proof: docs/proofs/pph.md.

    Parameters:
        target: Column with the classes, of kind category or ordinal.
        predictors: Columns that may predict the class; all others, if none is named.
        attributes: How many predictors to choose; `"auto"` takes as many as leave the cells
            well filled, judged by the noisy number of records.
        size_share: Part of epsilon for the number of records.
        selection_share: Part of epsilon for the choices; the counts get the rest.

    Returns:
        A `LabeledHistogramRelease` with `predict(rows)`, `count(query)`, `rows(n)` and
        `tables()`.

    Example:
        >>> from dpublish import Budget, PPH, datasets, seeded
        >>> people = datasets.table("census", 4_000)
        >>> method = PPH(target="income", predictors=("sex", "education"), attributes=1)
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["from"]
        'education (6); 6 cells'
        >>> some = {"education": ["Primary", "Secondary", "Doctorate"]}
        >>> release.predict(some).to_pylist()
        ['<=50K', '<=50K', '>50K']

    Reference:
        S. Vinterbo, "Differentially Private Projected Histograms: Construction and Use for
        Prediction", ECML PKDD 2012.  The score is normalized by the private number of records
        here, and its range sensitivity is proved with that number varying.
    """

    name: ClassVar[str] = "pph"
    proofs: ClassVar[tuple[str, ...]] = ("pph", "selection", "exact")
    publishes: ClassVar[str] = (
        "noisy class counts over a few chosen columns; predictions and rows to train on follow for"
        " free"
    )
    prefer_when: ClassVar[str] = (
        "a few columns together separate the classes, and columns have no taxonomies"
    )
    standing: ClassVar[Standing] = "baseline"

    attributes: int | Literal["auto"] = setting(
        "How many predictors to choose (j); auto takes as many as leave the cells well filled, "
        "judged by the noisy number of records.",
        default=AUTO,
    )
    size_share: Fraction = setting(
        "Part of epsilon that pays for the number of records.", default=Fraction(3, 100)
    )
    selection_share: Fraction = setting(
        "Part of epsilon that pays for the choices; counts get the rest.",
        default=Fraction(37, 100),
    )

    def __post_init__(self) -> None:
        if self.attributes != AUTO:
            require_count(attributes=self.attributes)
            object.__setattr__(self, "attributes", int(self.attributes))  # a NumPy integer, too
        for name in ("size_share", "selection_share"):
            share = getattr(self, name)
            if not isinstance(share, Fraction) or not 0 < share < 1:
                raise InvalidParameter(f"{name} ({share}) must lie between 0 and 1")
        if self.size_share + self.selection_share >= 1:
            raise InvalidParameter("size_share and selection_share must leave some for the counts")

    def _release(self, run: Run) -> LabeledHistogramRelease:
        """Publish counts of `table` by chosen predictors and class.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for all that depends on it: cells, number of
            choices, threshold, shares.  The score of a set, minus its undiscerned pairs per
            record, has range sensitivity below 1 with the number of records varying, and
            1 + one step when it is rounded (docs/proofs/pph.md); `select` costs its
            share.  Counts get noise of rate their share, for a record lies in one cell; those
            below a threshold are dropped, which is post-processing.  If nothing has to be
            chosen, the share for choices goes to the counts.
        """
        task = self.class_task(run.schema)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = run.split(size=self.size_share, rest=1 - self.size_share)
        all_records = CompleteCounts(run.schema, ((),), _names(task))
        size_rate = budgets["size"].epsilon
        size = run.noisy_size(int(run.sum(all_records)[0]), budget=budgets["size"])
        plan = Plan.of(task, self.attributes, size)
        rest = self._split_rest(budgets["rest"], plan.rounds)
        axes = plan.axes
        if plan.rounds:
            axes = choose_axes(run, task, plan, size, budget=rest["selection"])
        axes = (*axes, task.classes)
        rate = rest["counts"].epsilon
        domain = prod(axis.size for axis in axes)
        threshold = find_threshold(size, domain, rate)
        exact = run.sum(CutCounts((axes,), _names(task)))[0].compact()
        cells, counts = add_noise_to_cells(run, exact, domain, threshold, budget=rest["counts"])
        run.step(plan.rounds + 1, plan.rounds + 1, "counts")
        return LabeledHistogramRelease(
            receipt=run.receipt(),
            schema=task.schema_of(run.schema),
            axes=axes,
            cells=cells,
            counts=counts,
            noise_rate=rate,
            threshold=threshold,
            records=NoisySize(size, size_rate),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of one count; which columns are counted depends on the choices."""
        task = self.class_task(schema)
        require_free_names(task)
        self._require_cells(task)
        most_rounds = len(task.predictors) - 1
        if isinstance(self.attributes, int):
            most_rounds = min(most_rounds, self.attributes)
        if most_rounds:
            selection_rate(epsilon * self.selection_share / most_rounds, SCORE_RANGE)
        size_rate = epsilon * self.size_share
        rate = epsilon * (1 - self.size_share - self.selection_share)
        require_rate(size_rate)
        require_rate(rate)
        figures = {
            "one_cell_95": half_width(rate, np.ones(1), 0.95),
            "number_of_records_95": half_width(size_rate, np.ones(1), 0.95),
        }
        summary = f"each count within {figures['one_cell_95']:,.0f} of the truth (95 %)"
        if n_records:
            plan = Plan.of(task, self.attributes, n_records)
            sizes = sorted((axis.size for axis in plan.axes), reverse=True)[: plan.chosen]
            cells = prod(sizes) * task.target.size
            figures["attributes"] = float(plan.chosen)
            figures["cells_at_most"] = float(cells)
            figures["threshold"] = float(find_threshold(n_records, cells, rate))
            summary = f"{plan.chosen} predictors, at most {cells:,} cells; {summary}"
        return ExpectedError(summary, figures, target="one_cell_95", is_of_goal=False)

    def _split_rest(self, budget: Budget, rounds: int) -> dict[str, Budget]:
        if not rounds:  # nothing to choose: known from the noisy size alone
            return budget.split(counts=1)
        counts = 1 - self.size_share - self.selection_share
        return budget.split(selection=self.selection_share, counts=counts)

    def _require_cells(self, task: Task) -> None:
        """Refuse more cells than can be numbered, however many records there turn out to be."""
        count = self.attributes if isinstance(self.attributes, int) else 1
        largest = sorted((column.size for column in task.predictors), reverse=True)[:count]
        if prod(largest) * task.target.size >= MAX_DOMAIN:
            raise InvalidParameter(
                f"{count} predictors may have 2**62 cells or more; take fewer attributes"
            )


def choose_axes(run: Run, task: Task, plan: Plan, size: int, *, budget: Budget) -> tuple[Axis, ...]:
    """Choose predictors one by one, each judged together with those chosen before it.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: each
        round is a `select` with the range sensitivity of the rounded scores, at an equal
        share.  Candidates depend on the schema, the noisy `size` and earlier choices only.
    """
    chosen: tuple[Axis, ...] = ()
    for number, share in enumerate(budget.split_evenly(plan.rounds)):
        left = [axis for axis in plan.axes if axis not in chosen]
        grids = [(*chosen, axis, task.classes) for axis in left]
        scores = np.array(list(_score_grids(run, task, grids, size)), dtype=np.int64)
        winner = run.select(scores, sensitivity_range=SCORE_RANGE, budget=share)
        chosen = (*chosen, left[winner])
        run.step(number + 1, plan.rounds + 1, "columns")
    return tuple(axis for axis in plan.axes if axis in chosen)  # in the schema's order


def find_threshold(size: int, cells: int, rate: Fraction) -> int:
    """Find the least count that is published: ln N / rate, or more if the domain is huge.

    >>> find_threshold(40_000, 1000, Fraction(6, 10))
    18
    """
    least = ceil(log(max(size, 2)) / float(rate))
    return max(least, auto_threshold(cells, rate, MOST_FALSE_CELLS))


def _score_grids(
    run: Run, task: Task, grids: Sequence[tuple[Axis, ...]], size: int
) -> Iterator[int]:
    """Score grids in one pass over the rows, or in as many as memory takes."""
    for part in _passes(grids, size):
        for tally in run.sum(CutCounts(part, _names(task))):
            yield score_projection(tally.compact(), task.target.size)


def _passes(grids: Sequence[tuple[Axis, ...]], size: int) -> Iterator[tuple[tuple[Axis, ...], ...]]:
    """Group grids so that the occupied cells of a group, by the noisy size, fit in memory."""
    group: list[tuple[Axis, ...]] = []
    tallied = 0
    for grid in grids:
        cells = min(prod(axis.size for axis in grid), max(size, 1))
        if group and tallied + cells > MOST_TALLIED:
            yield tuple(group)
            group, tallied = [], 0
        group.append(grid)
        tallied += cells
    yield tuple(group)


def _names(task: Task) -> tuple[str, ...]:
    return (*(column.name for column in task.predictors), task.target.name)


def score_projection(occupied: OccupiedCells, classes: int) -> int:
    """Score a grid by minus its undiscerned pairs per record, rounded down to a step.

    A pair is undiscerned if its records lie in the same cell and have different classes.
    Cells are numbered with the class fastest.  Integers throughout, whatever the counts.

    >>> score_projection(OccupiedCells(np.array([0, 1, 3]), np.array([2, 1, 5])), 2) * 8 / STEPS
    -2.0
    """
    keys, counts = occupied
    records = int(counts.sum())
    if not records:
        return 0
    starts = np.flatnonzero(np.diff(keys // classes, prepend=-1))
    cells = np.add.reduceat(counts, starts)
    pairs = (_sum_of_squares(cells) - _sum_of_squares(counts)) // 2
    return -pairs * STEPS // records


def _sum_of_squares(counts: NDArray[np.int64]) -> int:
    """Add up squares that need not fit 64 bits: high and low halves are multiplied separately."""
    wide = counts.astype(np.uint64)
    high, low = wide >> np.uint64(_HALF), wide & np.uint64(2**_HALF - 1)
    squares = _exact_sum(high * high) << 2 * _HALF
    return squares + (_exact_sum(high * low) << _HALF + 1) + _exact_sum(low * low)


def _exact_sum(values: NDArray[np.uint64]) -> int:
    upper, lower = values >> np.uint64(32), values & np.uint64(2**32 - 1)
    return (int(upper.sum()) << 32) + int(lower.sum())
