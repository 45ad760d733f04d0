"""PrivGene: a linear model found by a private genetic search."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar, Literal

import numpy as np

from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.genetic_search import (
    MOST_ROUNDS,
    RECORDS_PER_ROUND,
    SHRINK,
    Breeding,
    Scores,
    count_rounds,
    predict_rounds,
)
from dpublish.mechanisms.selection import EXPONENTIAL, PERMUTE_AND_FLIP, selection_rate
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT, WEIGHT_UNIT
from dpublish.methods.linear_models.model_scores import (
    BOX,
    BOX_HELP,
    COST_HELP,
    LARGEST_WEIGHT,
    SVM_COST,
    Scorer,
    largest_score,
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
from dpublish.types import IntArray

PARENTS = {"range": 1, "candidates": 10, "plain": 10}
LARGEST_POPULATION = 2_000
_BARE = 10  # models of zero weights and a positive intercept; as many of a negative one


@dataclass(frozen=True, kw_only=True)
class PrivGene(ClassifierMethod):
    """Publish a linear classifier that a genetic search finds by private choices.

    A generation of 200 models is scored by the records, one of them is chosen privately, and
    its mutated copies are the next generation.  Choose it to compare with PrivGene, or for a
    linear support vector machine; choose `PrivLocal` for a logistic regression found by private
    choices, and `LinearModel` for the most accurate model.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proofs: docs/proofs/linear_losses.md (the range), docs/proofs/center_losses.md (the
        search).

    Parameters:
        target: Column of the classes.
        predictors: Columns to predict it from; all others unless named.
        model: `"logistic"` for logistic regression, `"svm"` for a linear support vector machine.
        choice: `"range"` scales the noise of a choice to how far one record can move two models
            of the generation apart; `"candidates"` to the largest loss under a model of the
            generation, with the exponential mechanism, as the paper's baseline (EM);
            `"plain"` to the largest loss in the whole box.
        rounds: Number of generations, at most 500.  Unless given, 2 % of epsilon pays for the
            noisy number of records, from which it follows.
        population: Models in a generation, at most 2,000.
        parents: How many models of a generation are chosen (m').  Unless given, one by range,
            otherwise ten.
        records_per_round: How many records, at epsilon 1, a generation is made for (1 / c).
        cost: C of a support vector machine.
        bound: Weights lie between minus this and this.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `predict_proba(rows)` (logistic regression),
        `coefficients()` and `save(folder)`.

    Example:
        >>> from dpublish import Budget, PrivGene, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = PrivGene(target="income", predictors=("age", "education"), rounds=20)
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.predict({"age": [30, 30], "education": ["Primary", "Master"]}).to_pylist()
        ['<=50K', '>50K']

    Reference:
        J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: Differentially Private
        Model Fitting Using Genetic Algorithms", SIGMOD 2013; here with the enhanced exponential
        mechanism (EEM).
    """

    name: ClassVar[str] = "privgene"
    proofs: ClassVar[tuple[str, ...]] = (
        "linear_losses",
        "center_losses",
        "top_k",
        "selection",
        "exact",
    )
    publishes: ClassVar[str] = (
        "a logistic regression or support vector machine, found by a genetic algorithm"
    )
    prefer_when: ClassVar[str] = "you compare with PrivGene"
    standing: ClassVar[Standing] = "baseline"

    choice: Literal["range", "candidates", "plain"] = setting(
        "Scale the noise of a choice to how far one record can move two candidates apart (range), "
        "to the largest loss under one of them, as the paper's baseline (candidates), or to the "
        "largest loss in the whole box (plain).",
        default="range",
    )
    rounds: int | None = setting(
        "Number of generations; 1 for every 800 records, parent and epsilon of 1, and from 8 to "
        "500, unless given.",
        default=None,
    )
    population: int = setting("Models in a generation.", default=200)
    parents: int | None = setting(
        "Models that are chosen of a generation; one by range, otherwise ten, unless given.",
        default=None,
    )
    records_per_round: int = setting(
        "Records, at epsilon 1 and one parent, for which a generation is made (1/c).",
        default=RECORDS_PER_ROUND,
    )
    cost: Fraction = setting(COST_HELP, default=SVM_COST)
    bound: Fraction = setting(BOX_HELP, default=BOX)

    def __post_init__(self) -> None:
        require_known("way to choose", self.choice, PARENTS)
        require_rounds(self.rounds)
        require_box(self.bound)
        require_cost(self.cost)
        require_count(records_per_round=self.records_per_round)
        self.breeding(self.rounds or 1)
        if self.population > LARGEST_POPULATION:
            raise InvalidParameter(
                f"population ({self.population:,}) must be at most {LARGEST_POPULATION:,}"
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
            the largest loss of these models or of the box, which is as good for losses that
            are not negative.
            No score is published.
        """
        task = self.model_task(run.schema)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(**search_shares(self.rounds))
        rounds = self.rounds
        if rounds is None:
            records = count_records(run, task, budget=budgets["size"])
            share = task.share(budgets["search"].epsilon)
            rounds = count_rounds(records, share, self._parents, self.records_per_round)
        plan = self.breeding(rounds)
        found = [
            run.genetic_search(
                self._scorer(run, task, positive),
                first_models(run, self.population, task.features.size, plan.bound),
                plan,
                budget=share,
                watcher=watch_rounds(run, number, len(task.problems)),
            )
            for number, (positive, share) in enumerate(
                zip(task.problems, task.split(budgets["search"]), strict=True)
            )
        ]
        return publish_models(run, task, found, note=f"{rounds:,} generations")

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict by how much the last choice may miss the best model of its generation.

        With one parent, losses under two models of a late generation differ by at most twice
        the step of the mutation.  How near the search comes to the best model of all is not
        predicted.
        """
        task = self.model_task(schema)
        share = require_search(task, self.rounds, epsilon)
        parents = self._parents
        box = require_box(self.bound)
        largest = largest_score(task, box)
        selection_rate(share / ((self.rounds or MOST_ROUNDS) * parents), largest)
        wanted = predict_rounds(n_records or 0, share, parents, self.records_per_round)
        rounds = float(self.rounds or wanted)
        sensitivity = largest / LOSS_UNIT
        if self.choice == "range" and parents == 1 and rounds > 1:
            first = 2 * 0.1 * box / WEIGHT_UNIT
            sensitivity = min(sensitivity, first * float(SHRINK) ** (rounds - 2))
        shortfall = sensitivity * log(self.population / 0.05) * rounds / float(share)
        figures = shortfall_figures(rounds, shortfall, n_records)
        summary = (
            f"about {rounds:,.0f} generations; the last choice misses the best of its generation "
            f"by a sum of losses of at most {shortfall:,.0f} (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95", is_of_goal=False)

    def _scorer(self, run: Run, task: ModelTask, positive: tuple[int, ...]) -> Scorer:
        score = score_models(
            run, task, positive, cost=self.cost, by_candidates=self.choice == "candidates"
        )
        if self.choice != "plain":
            return score
        largest = largest_score(task, require_box(self.bound))
        return lambda generation: Scores(score(generation).values, largest)

    def breeding(self, rounds: int) -> Breeding:
        """Return the public settings of a search of so many rounds."""
        return Breeding(
            bound=require_box(self.bound),
            rounds=rounds,
            population=self.population,
            parents=self._parents,
            mechanism=EXPONENTIAL if self.choice == "candidates" else PERMUTE_AND_FLIP,
        )

    @property
    def _parents(self) -> int:
        return PARENTS[self.choice] if self.parents is None else self.parents


def first_models(run: Run, count: int, size: int, bound: int = LARGEST_WEIGHT) -> IntArray:
    """Draw models uniformly from the box; the first twenty only predict the classes' shares.

    Those have zero weights and an intercept that is positive, or negative.
    """
    models = run.draw_uniform(count, size, bound)
    signs = np.repeat([1, -1], _BARE)[:count]
    models[: len(signs)] = 0
    models[: len(signs), -1] = signs * (1 + run.uniform_integers(bound, len(signs)))
    return models
