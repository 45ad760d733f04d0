"""Score candidate models by the records: what private searches for a model have in common."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np

from dpublish.core.method import Run
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.genetic_search import MOST_ROUNDS, Scores, Watcher
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT, WEIGHT_UNIT, LinearLosses
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import SIZE_SHARE, ModelTask
from dpublish.types import IntArray

Scorer = Callable[[IntArray], Scores]
LossName = Literal["logistic", "hinge"]

LARGEST_WEIGHT = 5 * WEIGHT_UNIT
"""Weights lie between -5 and 5 unless another public box is to be searched."""

BOX = Fraction(5)
SVM_COST = Fraction(10)
BOX_HELP = "Weights lie between minus this and this: the box that is searched."
COST_HELP = (
    "What a loss of 1 weighs against half the squared weights of a support vector machine (C)."
)
LOSSES: dict[str, LossName] = {"logistic": "logistic", "svm": "hinge"}


def score_models(
    run: Run,
    task: ModelTask,
    positive: tuple[int, ...],
    *,
    cost: Fraction = SVM_COST,
    by_candidates: bool = False,
) -> Scorer:
    """Make a function that scores models of one two-class problem; higher is better.

    The score is minus the sum of losses; for a support vector machine also minus the squared
    length of the weights over 2 C, which is public.  Its range sensitivity is that of the
    losses, over the whole domain (`LinearLosses.range_sensitivity`), or their largest under one
    of the candidates (`LinearLosses.largest_loss`).
    """

    def score(candidates: IntArray) -> Scores:
        kernel = LinearLosses(
            task.schema,
            task.features,
            task.target.name,
            positive,
            candidates,
            LOSSES[task.model],
        )
        bound = kernel.largest_loss if by_candidates else kernel.range_sensitivity
        most = bound(run.neighbors)
        return Scores(-run.sum(kernel) - _ridge(candidates, task.model, cost), most)

    return score


def largest_score(task: ModelTask, largest_weight: int = LARGEST_WEIGHT) -> int:
    """Bound a record's loss under any model of the box, in units of the scores (R1).

    Each column and the intercept add at most the largest weight to a margin.  A look-up rounds
    by half a unit.
    """
    farthest = largest_weight / WEIGHT_UNIT * len(task.features.groups)
    loss = np.logaddexp(0.0, farthest) if task.model == "logistic" else 1 + farthest
    return ceil(LOSS_UNIT * float(loss)) + 1


def search_shares(rounds: int | None) -> dict[str, Fraction]:
    """Return the shares of a search; a given number of rounds needs no noisy size."""
    if rounds is not None:
        return {"search": Fraction(1)}
    return {"size": SIZE_SHARE, "search": 1 - SIZE_SHARE}


def require_search(task: ModelTask, rounds: int | None, epsilon: Fraction) -> Fraction:
    """Return what one search gets of `epsilon`; refuse one for which no noise could be drawn."""
    shares = search_shares(rounds)
    if "size" in shares:
        require_rate(epsilon * shares["size"])
    return task.share(epsilon * shares["search"])


def shortfall_figures(rounds: float, shortfall: float, n_records: int | None) -> dict[str, float]:
    """Name the figures of a predicted error: by how much the last choice may miss the best."""
    figures = {"rounds": rounds, "choice_shortfall_95": shortfall}
    if n_records:
        figures["choice_shortfall_per_record"] = shortfall / n_records
    return figures


def publish_models(
    run: Run, task: ModelTask, found: Sequence[IntArray], *, note: str
) -> LinearModelRelease:
    """Publish the models that searches found, one for each two-class problem."""
    return LinearModelRelease(
        receipt=run.receipt(),
        schema=task.schema,
        model="svm" if task.model == "svm" else "logistic",
        target=task.target.name,
        weights=np.array(found) / WEIGHT_UNIT,
        expected=run.expected,
        notes=(note,),
    )


def require_rounds(rounds: int | None) -> None:
    """Refuse a number of rounds below 1 or above the largest."""
    if rounds is None:
        return
    require_count(rounds=rounds)
    if rounds > MOST_ROUNDS:
        raise InvalidParameter(f"rounds ({rounds:,}) must be at most {MOST_ROUNDS}")


def watch_rounds(run: Run, problem: int, problems: int) -> Watcher:
    """Report the rounds of one of several problems as progress of all of them."""

    def watch(done: int, total: int) -> None:
        run.step(problem * total + done, problems * total, "rounds")

    return watch


def require_box(bound: Fraction) -> int:
    """Return the largest weight of a box as an integer, or refuse the box."""
    if not isinstance(bound, Fraction) or not Fraction(1, 16) <= bound <= 64:
        raise InvalidParameter(f"bound ({bound}) must lie between 1/16 and 64")
    return int(bound * WEIGHT_UNIT)


def require_cost(cost: Fraction) -> None:
    """Refuse a cost that is not above 0, or absurdly large or small."""
    if not isinstance(cost, Fraction) or not Fraction(1, 1 << 10) <= cost <= 1 << 10:
        raise InvalidParameter(f"cost ({cost}) must lie between 1/1024 and 1024")


def _ridge(candidates: IntArray, model: str, cost: Fraction) -> IntArray:
    if model != "svm":
        return np.zeros(len(candidates), dtype=np.int64)
    squares = np.square(candidates[:, :-1]).sum(axis=1)
    unit = 2 * cost * WEIGHT_UNIT**2 / LOSS_UNIT
    wholes = [int(square * unit.denominator // unit.numerator) for square in squares.tolist()]
    return np.array(wholes, dtype=np.int64)
