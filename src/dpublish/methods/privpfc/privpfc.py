"""PrivPfC: the grid from which a class is predicted best, with noisy counts and refinements."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, log
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width
from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.core.noisy_size import NoisySize, estimate_total
from dpublish.core.task import Task, task_names
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.published_cells import require_free_names
from dpublish.methods.privpfc.candidate_grids import Levels, enumerate_grids
from dpublish.methods.privpfc.grid_quality import GridQuality
from dpublish.methods.privpfc.grid_scores import MOST_COUNTS, score_grids
from dpublish.methods.privpfc.kernels import require_sums
from dpublish.methods.privpfc.refine import CHOICE, SUMS, refine
from dpublish.methods.privpfc.released import SCORES, PrivPfCRelease, grid_scores, grid_term
from dpublish.methods.privpfc.released_columns import Refinement, ValueCounts
from dpublish.methods.privpfc.score_card import UNIT, ScoreCard
from dpublish.privacy.budget import Budget

MAX_CELLS = 1_000_000
"""Most cells of a grid, classes not counted."""
MAX_POOL = 1_000_000
MAX_ROUNDS = 6
RECORDS_PER_ROUND = 4_000
"""Records times epsilon that make a refinement worth its budget; one alone is never worth it."""
VALUES_SHARE = Fraction(1, 20)
"""Part of the counts' budget for single values of grouped columns, where there are refinements."""
SHARES = (Fraction(3, 100), Fraction(37, 100), Fraction(60, 100))


@dataclass(frozen=True, kw_only=True)
class PrivPfC(Method[PrivPfCRelease]):
    """Publish a grid of noisy counts by class, chosen so that it predicts the class well.

    A grid takes some of the predictors, each on one level of its taxonomy.  The grid is chosen
    from thousands by private selection; where there are enough records, further columns then
    refine its predictions.  Choose it when others will train classifiers on synthetic rows, or
    for the fewest wrong predictions.  Choose `DiffPID3` when people will read the model,
    `LinearModel` for weights of a logistic regression or a support vector machine.

    Guarantee:
        Pure epsilon-differential privacy when one record is added or removed.  Number of
        records, choice, counts and refinements each spend a share of epsilon.  Proofs:
        docs/proofs/grid_quality.md and docs/proofs/refinement.md.

    Parameters:
        target: Column with the classes, of kind category or ordinal.
        predictors: Columns from which the class is predicted; all others, if none is named.
        pool: Most candidate grids to choose from.
        cells_per_record: Most cells of a grid, for each record and each unit of epsilon that
            its counts get.
        size_share: Part of epsilon for the number of records.
        selection_share: Part of epsilon for the choice of the grid.
        counts_share: Part of epsilon for the counts; the three parts add up to 1.
        rounds: How many further columns refine the predictions, from a part of what choice and
            counts would get; `"auto"` decides by the noisy number of records, 0 means none.

    Returns:
        A `PrivPfCRelease` with `predict(rows)`, `predict_proba(rows)`, `rows(n)`,
        `count(query)` and `tables()`.

    Example:
        >>> from dpublish import Budget, PrivPfC, datasets, seeded
        >>> people = datasets.table("census", 4_000)
        >>> method = PrivPfC(target="income", predictors=("age", "education", "hours"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["from"]
        'age (2) x education (6) x hours (17); 204 cells'
        >>> some = {"age": [30, 30], "education": ["Primary", "Master"], "hours": [20, 45]}
        >>> release.predict(some).to_pylist()
        ['<=50K', '>50K']

    Reference:
        D. Su, J. Cao, N. Li, M. Lyu, "PrivPfC: Differentially Private Data Publication for
        Classification", VLDB Journal, 2018.  With `rounds=0`, `cells_per_record=1/5` and
        `predict(rows, rule="counts")` this is the paper's method; the rest is our own
        (docs/methods/privpfc.md).
    """

    name: ClassVar[str] = "privpfc"
    proofs: ClassVar[tuple[str, ...]] = ("grid_quality", "refinement", "selection", "exact")
    task: ClassVar[str] = "classification"
    publishes: ClassVar[str] = (
        "a noisy grid of the columns that predict a class best; predictions and rows to train on "
        "follow for free"
    )
    prefer_when: ClassVar[str] = (
        "you want an accurate classifier, or rows on which others train their own"
    )
    standing: ClassVar[Standing] = "default"

    target: str = setting("Column with the classes, of kind category or ordinal.")
    predictors: tuple[str, ...] = setting(
        "Columns from which the class is predicted; all others, if none is named.", default=()
    )
    pool: int = setting("How many candidate grids to choose from, at most (Θ).", default=10_000)
    cells_per_record: Fraction = setting(
        "A grid may have this many cells for each record, times the epsilon of its counts; "
        "the paper's 0.2 keeps noise below a fifth of an average cell.",
        default=Fraction(1),
    )
    size_share: Fraction = setting("Part of epsilon for the number of records.", default=SHARES[0])
    selection_share: Fraction = setting("Part for choosing the grid.", default=SHARES[1])
    counts_share: Fraction = setting("Part for the grid's counts.", default=SHARES[2])
    rounds: int | Literal["auto"] = setting(
        "How many further columns refine the grid's scores, from a part of what choice and "
        "counts would get; 0 leaves it at the grid, auto decides by the noisy number of records.",
        default="auto",
    )

    def __post_init__(self) -> None:
        require_count(pool=self.pool)
        if self.pool > MAX_POOL:
            raise InvalidParameter(f"pool ({self.pool}) must be at most {MAX_POOL:,}")
        if self.rounds != "auto":
            require_count(rounds=self.rounds, at_least=0)
        for name in ("cells_per_record", "size_share", "selection_share", "counts_share"):
            value = getattr(self, name)
            if not isinstance(value, Fraction) or value <= 0:
                raise InvalidParameter(f"{name} ({value}) must be an exact number above 0")
        if self.size_share + self.selection_share + self.counts_share != 1:
            raise InvalidParameter("size_share, selection_share and counts_share must add up to 1")

    def _release(self, run: Run) -> PrivPfCRelease:
        """Publish a grid of `table`, with refinements if they are worth it.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for all that depends on it: candidates, cell limit,
            rounds, shares.  The grid is chosen by `select` with the range sensitivity that
            `GridQuality` has by construction, its counts (a record lies in one of them) get
            geometric noise, so do counts of single values of its grouped columns (a record has
            one of each), and `refine` pays for its rounds itself.  Shares add up to
            epsilon by sequential composition.  Scores, estimates and rows are computed from
            what was published.  If there is one grid only, its share goes to the counts.
        """
        task = self._task(run.schema)
        budgets = run.split(size=self.size_share, rest=1 - self.size_share)
        all_records = Counts(run.schema, ((),))
        size_rate = budgets["size"].epsilon
        size = run.noisy_size(int(run.sum(all_records)[0]), budget=budgets["size"])
        rounds = self._rounds(task, size, run.epsilon)
        parts = _split_rest(budgets["rest"], rounds)
        grids = self._candidates(run, task, size, parts["grid"].epsilon)
        axes, left = self._choose_grid(run, task, grids, size, budget=parts["grid"])
        shares = _split_counts(left, axes[:-1], rounds)
        counts, rate = _count_cells(run, axes, budget=shares["cells"])
        values: tuple[ValueCounts, ...] = ()
        if "values" in shares:
            values = _count_values(run, _grouped(axes[:-1]), budget=shares["values"])
        records = NoisySize(size, size_rate)
        scores = grid_scores(
            counts.reshape(-1, axes[-1].size),
            tuple(axis.size for axis in axes[:-1]),
            estimate_total(counts, rate, records),
            float(rate),
        ).ravel()
        refinements: tuple[Refinement, ...] = ()
        if rounds:
            card = ScoreCard((grid_term(axes[:-1], counts, scores),))
            refinements = refine(run, task, card, rounds=rounds, budget=parts["refinements"])
        return PrivPfCRelease(
            receipt=run.receipt(),
            schema=task.schema_of(run.schema),
            axes=axes,
            cells=np.arange(counts.size, dtype=np.int64),
            counts=counts,
            noise_rate=rate,
            records=records,
            scores=scores,
            refinements=refinements,
            values=values,
        )

    def _choose_grid(
        self, run: Run, task: Task, grids: Levels, size: int, *, budget: Budget
    ) -> tuple[tuple[Axis, ...], Budget]:
        """Choose one of the grids; return its axes, and what is left of the budget for counts.

        Privacy:
            That of `select`, with the range sensitivity of the quality.
        """
        budgets = self._split_grid(budget, len(grids))
        chosen = 0
        if len(grids) > 1:
            quality = GridQuality(budgets["counts"].epsilon)
            scores = score_grids(run, task, grids, quality, rows_hint=max(size, 0))
            chosen = run.select(
                scores, sensitivity_range=quality.range_sensitivity, budget=budgets["selection"]
            )
        levels = zip(task.predictors, grids[chosen].tolist(), strict=True)
        axes = (*(column.axis(level) for column, level in levels if level), task.classes)
        return axes, budgets["counts"]

    def _split_grid(self, budget: Budget, grids: int) -> dict[str, Budget]:
        if grids == 1:  # there is nothing to choose: known from the noisy size alone
            return budget.split(counts=1)
        return budget.split(selection=self.selection_share, counts=self.counts_share)

    def _candidates(self, run: Run, task: Task, size: int, epsilon: Fraction) -> Levels:
        counts = epsilon * self.counts_share / (self.selection_share + self.counts_share)
        most = floor(self.cells_per_record * max(size, 0) * counts)
        most = min(most, MAX_CELLS, MOST_COUNTS // task.target.size)
        sizes = [[len(level.starts) for level in c.taxonomy.levels] for c in task.predictors]
        return enumerate_grids(sizes, max_cells=most, limit=self.pool, uniform=run.uniform_integers)

    def _rounds(self, task: Task, size: int, epsilon: Fraction) -> int:
        if self.rounds != "auto":
            return self.rounds
        # Sums over more than two classes have three times the sensitivity.
        dearness = 1 if task.target.size == 2 else 3
        worth = floor(size * epsilon / (RECORDS_PER_ROUND * dearness))
        return min(worth, MAX_ROUNDS) if worth > 1 else 0

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return task_names(schema, self.target, self.predictors)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a count, and how far the chosen grid may be from the best.

        How often a class is predicted wrongly depends on the records, and is not predicted.
        """
        task = self._task(schema)
        self._require_rates(epsilon)
        rounds = self._rounds(task, n_records or 0, epsilon)
        part = (1 - self.size_share) * _grid_share(rounds) * epsilon
        whole = self.selection_share + self.counts_share
        counts = part * self.counts_share / whole
        if rounds:
            counts *= 1 - VALUES_SHARE
        quality = GridQuality(counts)
        scale = (
            quality.range_sensitivity / quality.unit / float(part * self.selection_share / whole)
        )
        figures = {
            "one_cell_95": half_width(counts, np.ones(1), 0.95),
            "records_behind_best_grid_95": scale * log(self.pool / 0.05),
            "classes": float(task.target.size),
            "rounds": float(rounds),
        }
        if n_records:
            figures["most_cells"] = min(
                float(self.cells_per_record * n_records * counts), MAX_CELLS
            )
        summary = (
            f"{task.target.name} from up to {len(task.predictors)} columns; each count within "
            f"{figures['one_cell_95']:,.0f} of the truth (95 %); of up to {self.pool:,} grids the "
            "chosen one classifies at most "
            f"{figures['records_behind_best_grid_95']:,.0f} records fewer correctly than the best"
        )
        return ExpectedError(summary, figures, target="one_cell_95", is_of_goal=False)

    def _task(self, schema: Schema) -> Task:
        """Find the columns, and refuse what could not be published of them."""
        task = Task.of(schema, target=self.target, predictors=self.predictors)
        names = tuple(column.name for column in task.predictors)
        require_free_names(task)
        if SCORES in (*names, task.target.name):
            raise InvalidParameter(f"rename the column {SCORES} first")
        if self.rounds:
            require_sums(schema, task.target.name, names)
        return task

    def _require_rates(self, epsilon: Fraction) -> None:
        """Refuse an epsilon for whose smallest share no noise could be drawn.

        Which share that is depends on the noisy size, so all possible ones are checked.
        """
        rounds = MAX_ROUNDS if self.rounds == "auto" else self.rounds
        require_rate(self.size_share * epsilon)
        rest = (1 - self.size_share) * epsilon
        least = min(self.selection_share, self.counts_share)
        # No sensitivity of a choice or of sums is more than 4 UNIT.
        require_rate(rest * _grid_share(rounds) * least / (4 * UNIT))
        if rounds:
            each = rest * (1 - _grid_share(rounds)) / rounds
            require_rate(each * min(CHOICE, SUMS) / (CHOICE + SUMS) / (4 * UNIT))


def _grid_share(rounds: int) -> Fraction:
    """Return the part of the budget that the grid keeps; each round takes a quarter as much."""
    return Fraction(4, 4 + rounds)


def _split_rest(budget: Budget, rounds: int) -> dict[str, Budget]:
    if not rounds:
        return budget.split(grid=1)
    return budget.split(grid=_grid_share(rounds), refinements=1 - _grid_share(rounds))


def _split_counts(budget: Budget, predictors: tuple[Axis, ...], rounds: int) -> dict[str, Budget]:
    """Set aside what single values are counted with; settings and the chosen grid decide."""
    if not rounds or not _grouped(predictors):
        return {"cells": budget}
    return budget.split(cells=1 - VALUES_SHARE, values=VALUES_SHARE)


def _grouped(predictors: tuple[Axis, ...]) -> tuple[str, ...]:
    """List the columns of a grid that have cells of more than one value."""
    return tuple(a.column for a in predictors if a.size < len(a.leaf_to_cell))


def _count_cells(
    run: Run, axes: tuple[Axis, ...], *, budget: Budget
) -> tuple[NDArray[np.int64], Fraction]:
    """Count the cells of a grid; return noisy counts and their noise rate.

    Privacy:
        That of `run.add_noise`, with the sensitivity of the counts.
    """
    kernel = Counts(run.schema, (tuple((axis.column, axis.level) for axis in axes),))
    rate = budget.epsilon / kernel.sensitivity(run.neighbors)
    return run.add_noise(run.sum(kernel), of=kernel, budget=budget), rate


def _count_values(run: Run, columns: tuple[str, ...], *, budget: Budget) -> tuple[ValueCounts, ...]:
    """Count the single values of some columns.

    Privacy:
        That of `run.add_noise`: a record changes one count of each column by one, and the
        sensitivity of the kernel is the number of columns.
    """
    kernel = Counts(run.schema, tuple(((name, None),) for name in columns))
    rate = budget.epsilon / kernel.sensitivity(run.neighbors)
    noisy = run.add_noise(run.sum(kernel), of=kernel, budget=budget)
    return tuple(
        ValueCounts(run.schema[name].axis(), counts, rate)
        for name, counts in zip(columns, kernel.split(noisy), strict=True)
    )
