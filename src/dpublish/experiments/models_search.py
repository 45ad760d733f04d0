"""A genetic search looked into: how good its model is after every round, and how wide its noise.

Looks at what a search chose in every round, and at how it does on rows in the clear: only
experiments on public data may.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpublish.core.method import Run
from dpublish.core.prediction import encode_rows
from dpublish.data.features import FEATURE_UNIT
from dpublish.data.sources import open_table
from dpublish.evaluation.classification import HeldOut
from dpublish.experiments.folds import Split
from dpublish.mechanisms.genetic_search import Scores
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT
from dpublish.methods.linear_models.model_scores import score_models
from dpublish.methods.linear_models.privgene import PrivGene, first_models
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray, IntArray


class Step(NamedTuple):
    """A round of a search.

    Attributes:
        wrong: Part of the fresh rows that the model chosen in this round misclassifies.
        largest_loss: Largest loss of a record under a candidate of the round (Δ1).
        range: How far a record can move two candidates of the round apart (Δ2).
    """

    wrong: float
    largest_loss: float
    range: float


@dataclass
class _Look:
    """Notes the candidates of every round, and both bounds of what one record does to them."""

    scores: Callable[[IntArray], Scores]
    others: Callable[[IntArray], Scores]

    def __post_init__(self) -> None:
        self.generations: list[IntArray] = []
        self.bounds: list[tuple[int, int]] = []

    def __call__(self, generation: IntArray) -> Scores:
        """Score a generation, and note it."""
        found = self.scores(generation)
        self.generations.append(generation)
        self.bounds.append((found.sensitivity_range, self.others(generation).sensitivity_range))
        return found


def trace_search(
    split: Split, method: PrivGene, *, rounds: int, epsilon: str, rng: RandomSource
) -> list[Step]:
    """Run a search with one parent, and measure the model that each round chose.

    A generation's models are copies of the one that was chosen, each moved in one weight: the
    middle of each weight is the chosen one's.
    """
    run = Run(open_table(split.train, split.schema), rng=rng)
    task = ModelTask.of(split.schema, split.target, (), method.model)
    by_candidates = method.choice == "candidates"
    look = _Look(
        score_models(run, task, (1,), cost=method.cost, by_candidates=by_candidates),
        score_models(
            Run(open_table(split.train.slice(0, 0), split.schema), rng=rng),
            task,
            (1,),
            cost=method.cost,
            by_candidates=not by_candidates,
        ),
    )
    plan = method.breeding(rounds)
    first = first_models(run, method.population, task.features.size, plan.bound)
    budget = Budget.seeded(Fraction(epsilon))
    last = run.genetic_search(look, first, plan, budget=budget)
    chosen = [np.median(one, axis=0) for one in look.generations[1:]]
    wrongs = [wrong_share(weights, split.held_out, task) for weights in [*chosen, last]]
    ordered = [pair if by_candidates else pair[::-1] for pair in look.bounds]
    return [
        Step(wrong, largest / LOSS_UNIT, apart / LOSS_UNIT)
        for wrong, (largest, apart) in zip(wrongs, ordered, strict=True)
    ]


def wrong_share(weights: FloatArray, held_out: HeldOut, task: ModelTask) -> float:
    """Measure the part of fresh rows that a model of two classes misclassifies."""
    codes = encode_rows(held_out.rows, task.schema, task.features.columns)
    scores = task.features.matrix(codes) @ weights / FEATURE_UNIT
    return float(np.mean((scores > 0) != (held_out.classes == 1)))
