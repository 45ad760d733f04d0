"""PrivLocal: a linear model found by a private local search.

Either one weight moves in a round, or all weights of one column.  The weights of a column touch
different records, as its values do, so their choices cost what one choice does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, log, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.genetic_search import (
    MOST_ROUNDS,
    Scores,
    Watcher,
    count_rounds,
    predict_rounds,
)
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT, WEIGHT_UNIT
from dpublish.methods.linear_models.model_scores import (
    BOX,
    BOX_HELP,
    COST_HELP,
    SVM_COST,
    publish_models,
    require_box,
    require_cost,
    require_rounds,
    require_search,
    score_models,
    search_shares,
    shortfall_figures,
    watch_rounds,
)
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import ClassifierMethod, ModelTask, count_records
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

Groups = Sequence[Sequence[int]]

FEWEST_GROUP_ROUNDS, MOST_GROUP_ROUNDS = 3, 100
SQUARE_RECORDS_PER_ROUND = 18  # at epsilon 1: a round for 18, two for 36 squared...


class _Steps(NamedTuple):
    first: int
    shrink: Fraction


_STEPS = {
    "group": _Steps(WEIGHT_UNIT, Fraction(9, 10)),
    "single": _Steps(WEIGHT_UNIT // 2, Fraction(95, 100)),
}


@dataclass(frozen=True, kw_only=True)
class PrivLocal(ClassifierMethod):
    """Publish a linear classifier that a local search finds by private choices.

    All weights start at 0; each round moves the weights of one column, or one weight, up or
    down by a step, or leaves them, and every choice is private.  Choose it for readable weights
    of columns with many categories; choose `LinearModel` for the most accurate model, and
    `PrivGene` for a support vector machine found by private choices.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/privlocal.md.

    Parameters:
        target: Column of the classes.
        predictors: Columns to predict it from; all others unless named.
        model: `"logistic"` for logistic regression, `"svm"` for a linear support vector machine.
        moves: `"group"` moves all weights of one column in a round; `"single"` moves one weight,
            as in the thesis.
        rounds: Number of rounds, at most 500.  Unless given, 2 % of epsilon pays for the noisy
            number of records, from which it follows.
        cost: C of a support vector machine.
        bound: Weights lie between minus this and this.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `predict_proba(rows)` (logistic regression),
        `coefficients()` and `save(folder)`.

    Example:
        >>> from dpublish import Budget, PrivLocal, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = PrivLocal(target="income", predictors=("age", "education"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> for row in release.coefficients().to_pylist():
        ...     print(f"{row['feature']:12} {row['weight']:6.2f}")
        age            0.00
        education      1.71
        (intercept)   -1.00

    Reference:
        D. Su, PhD thesis, Purdue University, 2016, section 2.6 (ExpSearch).  The candidate that
        stays and the moves of whole columns are additions of this package.
    """

    name: ClassVar[str] = "privlocal"
    proofs: ClassVar[tuple[str, ...]] = ("privlocal", "selection", "exact")
    publishes: ClassVar[str] = (
        "a logistic regression or support vector machine, found by private local search"
    )
    prefer_when: ClassVar[str] = "epsilon is small, and the model must be fitted directly"

    moves: Literal["group", "single"] = setting(
        "Whether all weights of a column move in a round, or one weight, as in the thesis.",
        default="group",
    )
    rounds: int | None = setting(
        "Number of rounds; by the noisy number of records unless given.", default=None
    )
    cost: Fraction = setting(COST_HELP, default=SVM_COST)
    bound: Fraction = setting(BOX_HELP, default=BOX)

    def __post_init__(self) -> None:
        require_known("way to move", self.moves, _STEPS)
        require_rounds(self.rounds)
        require_box(self.bound)
        require_cost(self.cost)

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish the weights of a model that fits the records.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: a
            share for the noisy number of records, which sets the number of rounds, and the
            rest for the searches, split over the classes if there are more than two.  A
            score is minus a sum of losses; its range sensitivity is taken over all records
            of the domain (`LinearLosses`).  A record has one feature of each column that is
            not 0, and moving other weights of the column leaves its loss as it is, which is
            what `climb_by_groups` requires.  No score is published.
        """
        task = self.model_task(run.schema)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(**search_shares(self.rounds))
        rounds = self.rounds
        if rounds is None:
            records = count_records(run, task, budget=budgets["size"])
            rounds = self._count_rounds(records, task.share(budgets["search"].epsilon))
        first, shrink = _STEPS[self.moves]
        bound = require_box(self.bound)
        plan = Climb(bound=bound, rounds=rounds, first_step=first, shrink=shrink)
        found = [
            self._search(run, task, plan, number, budget=share)
            for number, share in enumerate(task.split(budgets["search"]))
        ]
        return publish_models(run, task, found, note=f"{rounds:,} rounds")

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict by how much the last choice may miss the best step there is.

        Losses under two candidates of a round differ by at most two steps.  How near the
        search comes to the best model of all is not predicted.
        """
        task = self.model_task(schema)
        share = require_search(task, self.rounds, epsilon)
        most = self.rounds or (MOST_GROUP_ROUNDS if self.moves == "group" else MOST_ROUNDS)
        first, shrink = _STEPS[self.moves]
        choices = 2 if self.moves == "group" else 1
        selection_rate(share / (most * choices), 2 * first)
        rounds = float(self.rounds or self._predict_rounds(n_records or 0, float(share)))
        sensitivity = 2 * first / LOSS_UNIT * float(shrink) ** (rounds - 1)
        candidates = 3 if self.moves == "group" else 2 * task.features.size + 1
        shortfall = sensitivity * log(candidates / 0.05) * rounds * choices / float(share)
        figures = shortfall_figures(rounds, shortfall, n_records)
        summary = (
            f"about {rounds:,.0f} rounds; each step of the last one misses the best step by a sum "
            f"of losses of at most {shortfall:,.0f} (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95", is_of_goal=False)

    def _search(
        self, run: Run, task: ModelTask, plan: "Climb", problem: int, *, budget: Budget
    ) -> IntArray:
        """Search a model of one two-class problem.

        Privacy:
            That of `climb` or `climb_by_groups`.
        """
        score = score_models(run, task, task.problems[problem], cost=self.cost)
        start = np.zeros(task.features.size, dtype=np.int64)
        watcher = watch_rounds(run, problem, len(task.problems))
        if self.moves == "single":
            return climb(run, score, start, plan, budget=budget, watcher=watcher)
        groups = task.features.groups
        return climb_by_groups(run, score, start, groups, plan, budget=budget, watcher=watcher)

    def _count_rounds(self, records: int, epsilon: Fraction) -> int:
        if self.moves == "single":
            return count_rounds(records, epsilon, 1)
        return count_group_rounds(records, epsilon)

    def _predict_rounds(self, records: int, share: float) -> float:
        """Compute the number of rounds unrounded: more budget never predicts a larger error."""
        if self.moves == "single":
            return predict_rounds(records, share, 1)
        wanted = sqrt(records * share) / SQUARE_RECORDS_PER_ROUND
        return min(max(wanted, float(FEWEST_GROUP_ROUNDS)), float(MOST_GROUP_ROUNDS))


def count_group_rounds(records: int, epsilon: Fraction) -> int:
    """Choose the number of rounds from a public or noisy number of records.

    >>> [count_group_rounds(40_000, Fraction(1, part)) for part in (1, 5, 20)]
    [12, 5, 3]
    """
    wanted = isqrt(ceil(max(records, 0) * epsilon)) // SQUARE_RECORDS_PER_ROUND + 1
    return min(max(wanted, FEWEST_GROUP_ROUNDS), MOST_GROUP_ROUNDS)


# --- The search -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Climb:
    """Public settings of a search.

    Attributes:
        bound: Coordinates are integers from -bound to bound.
        rounds: Number of rounds (r).
        first_step: How far a coordinate moves in the first round (s).
        shrink: What is left of a step in the next round (beta).
    """

    bound: int
    rounds: int
    first_step: int
    shrink: Fraction

    def __post_init__(self) -> None:
        require_count(bound=self.bound, rounds=self.rounds, first_step=self.first_step)
        if not 0 < self.shrink <= 1:
            raise InvalidParameter(f"shrink ({self.shrink}) must be above 0 and at most 1")

    def step(self, number: int) -> int:
        """Return how far a coordinate moves in round `number` (from 1), at least 1.

        >>> plan = Climb(bound=9999, rounds=8, first_step=512, shrink=Fraction("0.95"))
        >>> plan.step(1), plan.step(2)
        (512, 486)
        """
        return max(round(self.first_step * self.shrink ** (number - 1)), 1)

    def moves(self, vector: IntArray, number: int) -> IntArray:
        """List the vectors of a round: staying, all steps up, all steps down, in the box."""
        steps = self.step(number) * np.eye(vector.size, dtype=np.int64)
        listed = np.concatenate([vector[None], vector + steps, vector - steps])
        return np.asarray(np.clip(listed, -self.bound, self.bound))


def climb(
    run: Run,
    score: Callable[[IntArray], Scores],
    start: IntArray,
    plan: Climb,
    *,
    budget: Budget,
    watcher: Watcher | None = None,
) -> IntArray:
    """Move one coordinate in each round, or none.

    Args:
        run: The release at work.
        score: Scores vectors by the data, a row each; higher is better.  Called once a round.
        start: Where to begin; chosen without looking at the data.
        plan: Public settings.
        budget: Budget to empty, in equal shares over the rounds.
        watcher: Called after every round.

    Privacy:
        `budget.epsilon`-differentially private if `score` states a range sensitivity that
        holds for all neighbors and depends on the candidates alone: they follow from the
        last choice, which is public, and each round's choice costs its share (`select`).
    """
    vector = start
    for number, share in enumerate(budget.split_evenly(plan.rounds), start=1):
        candidates = plan.moves(vector, number)
        values, sensitivity_range = score(candidates)
        chosen = run.select(values, sensitivity_range=sensitivity_range, budget=share)
        vector = candidates[chosen]
        _report(watcher, number, plan)
    return vector


def climb_by_groups(
    run: Run,
    score: Callable[[IntArray], Scores],
    start: IntArray,
    groups: Groups,
    plan: Climb,
    *,
    budget: Budget,
    watcher: Watcher | None = None,
) -> IntArray:
    """Choose a group of coordinates in each round; each of them then moves up, down or not.

    Args:
        run: The release at work.
        score: As for `climb`; minus a sum of losses of records, which see a vector only
            through the coordinates that touch them.
        start: Where to begin.
        groups: Indices of the coordinates of each group.  No record is touched by two
            coordinates of one group: moving one of them leaves its loss as it is.
        plan: Public settings.
        budget: Budget to empty, in equal shares over the rounds.
        watcher: Called after every round.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Let R be
        the range of its losses over the round's candidates.  It changes the merit of a group
        through one coordinate, by something between its least and its largest gain, so merits
        are pulled apart by at most R.  Given the group, a record changes the scores of one
        coordinate's three candidates, by amounts that differ by at most R; those of all
        others it leaves alone, so their choices run on disjoint parts (`share_disjoint`).
        Hurdles are public.  Proof: docs/proofs/privlocal.md.
    """
    vector = start
    for number, share in enumerate(budget.split_evenly(plan.rounds), start=1):
        candidates = plan.moves(vector, number)
        values, sensitivity_range = score(candidates)
        budgets = share.split(group=1, steps=1)
        noise = ceil(sensitivity_range / budgets["steps"].epsilon)
        gains = (values[1:] - values[0]).reshape(2, vector.size)
        merits = np.maximum(gains.max(axis=0) - noise, 0)  # what noise would hide is no merit
        chosen = run.select(
            np.array([merits[list(group)].sum() for group in groups], dtype=np.int64),
            sensitivity_range=sensitivity_range,
            budget=budgets["group"],
        )
        moved = np.array(groups[chosen])
        steps = _choose_steps(
            run, gains[:, moved] - noise // 2, sensitivity_range, budget=budgets["steps"]
        )
        vector = vector.copy()
        vector[moved] = candidates[steps_to_rows(steps, moved, vector.size), moved]
        _report(watcher, number, plan)
    return vector


def steps_to_rows(steps: IntArray, moved: IntArray, size: int) -> IntArray:
    """Find the candidate in which each moved coordinate made its step: 0 stay, 1 up, 2 down.

    >>> steps_to_rows(np.array([0, 1, 2]), np.array([4, 5, 6]), 10).tolist()
    [0, 6, 17]
    """
    return np.asarray(np.where(steps == 0, 0, 1 + moved + size * (steps - 1)))


def _choose_steps(run: Run, gains: IntArray, most: int, *, budget: Budget) -> IntArray:
    """Choose staying (0), up (1) or down (2) for every coordinate, a column each.

    Privacy:
        `budget.epsilon`-differentially private if a record changes one column only, by
        amounts that differ from each other and from 0 by at most `most`.
    """
    budgets = budget.share_disjoint(f"part-{part + 1}" for part in range(gains.shape[1]))
    return np.array(
        [
            run.select(np.concatenate([[0], column]), sensitivity_range=most, budget=share)
            for column, share in zip(gains.T, budgets.values(), strict=True)
        ],
        dtype=np.int64,
    )


def _report(watcher: Watcher | None, number: int, plan: Climb) -> None:
    if watcher is not None:
        watcher(number, plan.rounds)
