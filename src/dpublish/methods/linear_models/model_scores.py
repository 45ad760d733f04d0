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
"""Weights lie between -5 and 5: the public box that is searched."""

LOSSES: dict[str, LossName] = {"logistic": "logistic", "svm": "hinge"}
_SVM_COST = 10  # what a loss of 1 weighs against half the squared length of the weights (C)


def score_models(run: Run, task: ModelTask, positive: tuple[int, ...]) -> Scorer:
    """Make a function that scores models of one two-class problem; higher is better.

    The score is minus the sum of losses; for a support vector machine also minus the squared
    length of the weights over 2 C, which is public.  Its range sensitivity is that of the
    losses, over the whole domain (`LinearLosses.range_sensitivity`).
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
        most = kernel.range_sensitivity(run.neighbors)
        return Scores(-run.sum(kernel) - _ridge(candidates, task.model), most)

    return score


def largest_score(task: ModelTask) -> int:
    """Bound a record's loss under any model of the box, in units of the scores (R1).

    Each column and the intercept add at most 5 to a margin.  A look-up rounds by half a unit.
    """
    farthest = LARGEST_WEIGHT / WEIGHT_UNIT * len(task.features.groups)
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


def _ridge(candidates: IntArray, model: str) -> IntArray:
    if model != "svm":
        return np.zeros(len(candidates), dtype=np.int64)
    squares = np.square(candidates[:, :-1]).sum(axis=1)
    return np.asarray(squares // (2 * _SVM_COST * WEIGHT_UNIT**2 // LOSS_UNIT))
