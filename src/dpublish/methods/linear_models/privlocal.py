"""Publish a linear model found by a private local search.

Known as: PrivLocal.
Reference: D. Su, PhD thesis, Purdue, 2016, section 2.6; moves of whole columns are ours.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from dpublish.core.method import ExpectedError, Method, Progress, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.genetic_search import (
    FEWEST_ROUNDS,
    MOST_ROUNDS,
    RECORDS_PER_ROUND,
    count_rounds,
)
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT, WEIGHT_UNIT
from dpublish.methods.linear_models.local_search import (
    FEWEST_GROUP_ROUNDS,
    MOST_GROUP_ROUNDS,
    SQUARE_RECORDS_PER_ROUND,
    Climb,
    climb,
    climb_by_groups,
    count_group_rounds,
)
from dpublish.methods.linear_models.model_scores import (
    REACH,
    Scorer,
    count_complete,
    require_rounds,
    score_models,
    search_shares,
    watch_rounds,
)
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray


class _Steps(NamedTuple):
    first: int
    shrink: Fraction


_STEPS = {
    "group": _Steps(WEIGHT_UNIT, Fraction(9, 10)),
    "single": _Steps(WEIGHT_UNIT // 2, Fraction(95, 100)),
}


@dataclass(frozen=True, kw_only=True)
class PrivLocal(Method[LinearModelRelease]):
    """Method: move the weights of a model uphill, choosing every step privately."""

    name: ClassVar[str] = "privlocal"

    target: str = setting("Column of the classes.")
    predictors: tuple[str, ...] = setting(
        "Columns to predict it from; all others unless named.", default=()
    )
    model: Literal["logistic", "svm"] = setting(
        "Logistic regression, or a linear support vector machine.", default="logistic"
    )
    moves: Literal["group", "single"] = setting(
        "Whether all weights of a column move in a round, or one weight, as in the thesis.",
        default="group",
    )
    rounds: int | None = setting(
        "Number of rounds; by the noisy number of records unless given.", default=None
    )

    def __post_init__(self) -> None:
        require_known("way to move", self.moves, _STEPS)
        require_rounds(self.rounds)

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish the weights of a model that fits the records.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: a
            share for the noisy number of records, which sets the number of rounds, and the
            rest for the searches, split over the classes if there are more than two.  A
            score is minus a sum of losses; its range sensitivity is taken over all records
            of the domain (`LinearLosses`).  A record has one feature of each column that is
            not 0, and moving other weights of the column leaves its loss as it is, which is
            what `climb_by_groups` asks for.  No score is published.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        task = ModelTask.of(table.schema, self.target, self.predictors, self.model)
        # Opened before any row is read: a share that is already used stops here.
        budgets = budget.split(**search_shares(self.rounds))
        rounds = self.rounds
        if rounds is None:
            records = count_complete(table, task, budget=budgets["size"], rng=rng)
            rounds = self._count_rounds(records, task.share(budgets["search"].epsilon))
        first, shrink = _STEPS[self.moves]
        plan = Climb(reach=REACH, rounds=rounds, first_step=first, shrink=shrink)
        found = [
            self._search(
                score_models(table, task, positive),
                task,
                plan,
                budget=share,
                rng=rng,
                progress=progress,
                problem=number,
            )
            for number, (positive, share) in enumerate(
                zip(task.problems, task.split(budgets["search"]), strict=True)
            )
        ]
        return LinearModelRelease(
            receipt=run.receipt(),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=np.array(found) / WEIGHT_UNIT,
            expected=dict(expected.figures),
            notes=(f"{rounds:,} rounds",),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict by how much the last choice may miss the best step there is.

        Losses under two candidates of a round differ by at most two steps.  How near the
        search comes to the best model of all is not predicted.
        """
        task = ModelTask.of(schema, self.target, self.predictors, self.model)
        shares = search_shares(self.rounds)
        share = task.share(epsilon * shares["search"])
        if "size" in shares:
            require_rate(epsilon * shares["size"])
        most = self.rounds or (MOST_GROUP_ROUNDS if self.moves == "group" else MOST_ROUNDS)
        first, shrink = _STEPS[self.moves]
        choices = 2 if self.moves == "group" else 1
        selection_rate(share / (most * choices), 2 * first)
        rounds = float(self.rounds or self._predict_rounds(n_records or 0, float(share)))
        reach = 2 * first / LOSS_UNIT * float(shrink) ** (rounds - 1)
        candidates = 3 if self.moves == "group" else 2 * task.features.size + 1
        shortfall = reach * log(candidates / 0.05) * rounds * choices / float(share)
        figures = {"rounds": rounds, "choice_shortfall_95": shortfall}
        if n_records:
            figures["choice_shortfall_per_record"] = shortfall / n_records
        summary = (
            f"about {rounds:,.0f} rounds; each step of the last one misses the best step by a sum "
            f"of losses of at most {shortfall:,.0f} (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95")

    def _search(
        self,
        score: Scorer,
        task: ModelTask,
        plan: Climb,
        *,
        budget: Budget,
        rng: RandomSource,
        progress: Progress | None,
        problem: int,
    ) -> IntArray:
        """Search a model of one two-class problem.

        Privacy:
            That of `climb` or `climb_by_groups`.
        """
        start = np.zeros(task.features.size, dtype=np.int64)
        watcher = watch_rounds(progress, problem, len(task.problems))
        if self.moves == "single":
            return climb(score, start, plan, budget=budget, rng=rng, watcher=watcher)
        return climb_by_groups(
            score, start, task.features.groups, plan, budget=budget, rng=rng, watcher=watcher
        )

    def _count_rounds(self, records: int, epsilon: Fraction) -> int:
        if self.moves == "single":
            return count_rounds(records, epsilon, 1)
        return count_group_rounds(records, epsilon)

    def _predict_rounds(self, records: int, share: float) -> float:
        """Give the number of rounds without rounding, so that more budget never predicts worse."""
        if self.moves == "single":
            wanted = records * share / RECORDS_PER_ROUND
            return min(max(wanted, float(FEWEST_ROUNDS)), float(MOST_ROUNDS))
        wanted = sqrt(records * share) / SQUARE_RECORDS_PER_ROUND
        return min(max(wanted, float(FEWEST_GROUP_ROUNDS)), float(MOST_GROUP_ROUNDS))
