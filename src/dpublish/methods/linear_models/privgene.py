"""Publish a linear model found by a private genetic search.

Known as: PrivGene, with the enhanced exponential mechanism (EEM), or without it (EM).
Reference: J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: Differentially Private
Model Fitting Using Genetic Algorithms", SIGMOD 2013.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar, Literal

import numpy as np

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.exact.sampler import require_rate, uniform_below
from dpublish.mechanisms.genetic_search import (
    FEWEST_ROUNDS,
    MOST_ROUNDS,
    RECORDS_PER_ROUND,
    SHRINK,
    Breeding,
    Scores,
    count_rounds,
    draw_uniform,
    search,
)
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT, WEIGHT_UNIT
from dpublish.methods.linear_models.model_scores import (
    REACH,
    Scorer,
    count_complete,
    largest_score,
    require_rounds,
    score_models,
    search_shares,
    watch_rounds,
)
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import ModelTask
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

PARENTS = {"range": 1, "plain": 10}
LARGEST_POPULATION = 2_000
_BARE = 10  # models of zero weights and a positive intercept; as many of a negative one


@dataclass(frozen=True, kw_only=True)
class PrivGene(Method[LinearModelRelease]):
    """Method: breed models, choosing the best of each generation privately."""

    name: ClassVar[str] = "privgene"

    target: str = setting("Column of the classes.")
    predictors: tuple[str, ...] = setting(
        "Columns to predict it from; all others unless named.", default=()
    )
    model: Literal["logistic", "svm"] = setting(
        "Logistic regression, or a linear support vector machine.", default="logistic"
    )
    choice: Literal["range", "plain"] = setting(
        "Perturb choices by how far one record can pull the candidates apart (range), or by the "
        "largest loss in the whole box and with ten parents, as the paper's baseline (plain).",
        default="range",
    )
    rounds: int | None = setting(
        "Number of generations; 1 for every 800 records, parent and epsilon of 1, and from 8 to "
        "500, unless given.",
        default=None,
    )
    population: int = setting("Models in a generation.", default=200)

    def __post_init__(self) -> None:
        require_known("way to choose", self.choice, PARENTS)
        require_rounds(self.rounds)
        self._breeding(self.rounds or 1)
        if self.population > LARGEST_POPULATION:
            raise InvalidParameter(
                f"population ({self.population}) must be at most {LARGEST_POPULATION:,}"
            )
        object.__setattr__(self, "population", int(self.population))  # a NumPy integer, too

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish the weights of a model that fits the records.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: a
            share for the noisy number of records, which sets the number of generations, and
            the rest for `search`, split over the classes if there are more than two.  A
            model's score is minus a sum of losses; its range sensitivity is taken over all
            records of the domain and the models of the generation (`LinearLosses`), or is
            the largest loss of the box, which is as good for losses that are not negative.
            No score is published.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        task = ModelTask.of(table.schema, self.target, self.predictors, self.model)
        # Opened before any row is read: a portion that is already used stops here.
        budgets = budget.split(**search_shares(self.rounds))
        rounds = self.rounds
        if rounds is None:
            records = count_complete(table, task, budget=budgets["size"], rng=rng)
            share = task.share(budgets["search"].epsilon)
            rounds = count_rounds(records, share, PARENTS[self.choice])
        plan = self._breeding(rounds)
        found = [
            search(
                self._scorer(table, task, positive),
                first_models(self.population, task.features.size, rng),
                plan,
                budget=portion,
                rng=rng,
                watcher=watch_rounds(progress, number, len(task.problems)),
            )
            for number, (positive, portion) in enumerate(
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
            notes=(f"{rounds:,} generations",),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict by how much the last choice may miss the best model of its generation.

        With one parent, losses under two models of a late generation differ by at most twice
        the step of the mutation.  How near the search comes to the best model of all is not
        predicted.
        """
        task = ModelTask.of(schema, self.target, self.predictors, self.model)
        shares = search_shares(self.rounds)
        share = task.share(epsilon * shares["search"])
        if "size" in shares:
            require_rate(epsilon * shares["size"])
        parents = PARENTS[self.choice]
        farthest = largest_score(task)
        selection_rate(share / ((self.rounds or MOST_ROUNDS) * parents), farthest)
        rounds = float(self.rounds or _predicted_rounds(n_records or 0, share, parents))
        reach = farthest / LOSS_UNIT
        if parents == 1 and rounds > 1:
            first = 2 * 0.1 * REACH / WEIGHT_UNIT
            reach = min(reach, first * float(SHRINK) ** (rounds - 2))
        shortfall = reach * log(self.population / 0.05) * rounds / float(share)
        figures = {"rounds": rounds, "choice_shortfall_95": shortfall}
        if n_records:
            figures["choice_shortfall_per_record"] = shortfall / n_records
        summary = (
            f"about {rounds:,.0f} generations; the last choice misses the best of its generation "
            f"by a sum of losses of at most {shortfall:,.0f} (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95")

    def _scorer(self, table: Table, task: ModelTask, positive: tuple[int, ...]) -> Scorer:
        score = score_models(table, task, positive)
        if self.choice == "range":
            return score
        farthest = largest_score(task)
        return lambda generation: Scores(score(generation).values, farthest)

    def _breeding(self, rounds: int) -> Breeding:
        return Breeding(
            reach=REACH,
            rounds=rounds,
            population=self.population,
            parents=PARENTS[self.choice],
        )


def first_models(count: int, size: int, rng: RandomSource) -> IntArray:
    """Draw models uniformly from the box; the first twenty only tell the classes' shares.

    Those have zero weights and an intercept that is positive, or negative.
    """
    models = draw_uniform(count, size, REACH, rng)
    signs = np.repeat([1, -1], _BARE)[:count]
    models[: len(signs)] = 0
    models[: len(signs), -1] = signs * (1 + uniform_below(REACH, len(signs), rng))
    return models


def _predicted_rounds(records: int, share: Fraction, parents: int) -> float:
    """Give the number of rounds without rounding, so that more budget never predicts worse."""
    wanted = records * float(share) / (RECORDS_PER_ROUND * parents)
    return min(max(wanted, float(FEWEST_ROUNDS)), float(MOST_ROUNDS))
