"""Refine a published score card: in each round, one more column mends what the card gets wrong.

A round sums up, for every value of every predictor, how far the card's probabilities are from the
true classes.  It chooses the predictor and level where these residuals are largest and
publishes its sums with noise; the scores that follow are added to the card.  This is one step
of Newton's method per round, along one column at a time (backfitting, boosting).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.axis import Axis
from dpublish.data.cut import cut_axis
from dpublish.methods.privpfc.kernels import ResidualSums
from dpublish.methods.privpfc.released_columns import Refinement
from dpublish.methods.privpfc.score_card import ScoreCard
from dpublish.privacy.budget import Budget

CHOICE, SUMS = 1, 4
"""Weights of the choice and of the sums in a round's budget."""


class _Candidate(NamedTuple):
    predictor: int
    axis: Axis


def refine(
    run: Run, task: Task, card: ScoreCard, *, rounds: int, budget: Budget
) -> tuple[Refinement, ...]:
    """Publish `rounds` refinements of `card`, each on top of those before it.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The card
        is public at the start of each round, and what it says of a record depends on that
        record alone.  Scores of candidates are sums of absolute residuals, less a public
        penalty; a record moves each by at most its own residuals, up or down, so the range
        sensitivity is twice that (`ResidualSums.range_sensitivity`).  The chosen column's
        residuals, variances and remainders change by `ResidualSums.sensitivity` in L1, for a
        record lies in one cell, and get geometric noise for it.  Rounds compose sequentially.
        Proof: docs/proofs/refinement.md.
    """
    candidates = _list_candidates(task)
    found: list[Refinement] = []
    for number, share in enumerate(budget.split_evenly(rounds)):
        budgets = share.split(choice=CHOICE, sums=SUMS)
        names = tuple(column.name for column in task.predictors)
        kernel = ResidualSums(run.schema, task.target.name, names, card)
        rate = budgets["sums"].epsilon / kernel.sensitivity(run.neighbors)
        sums = kernel.split(run.sum(kernel))
        # Noise alone would look like this much residual, on average, in each sum.
        penalty = round(1 / rate) * len(kernel.planes)
        scores = [
            int(np.abs(_roll_up(sums[c.predictor][0], c.axis)).sum()) - penalty * c.axis.size
            for c in candidates
        ]
        best = run.select(np.array(scores, dtype=np.int64), of=kernel, budget=budgets["choice"])
        chosen = candidates[best]
        exact = _roll_up(sums[chosen.predictor], chosen.axis)
        noisy = run.add_noise(exact, of=kernel, budget=budgets["sums"])
        found.append(Refinement(chosen.axis, card.classes, noisy, rate))
        card = ScoreCard((*card.terms, found[-1].term))
        run.step(number + 1, rounds, "refinements")
    return tuple(found)


def _list_candidates(task: Task) -> list[_Candidate]:
    """List all levels that tell more values apart than the one above; public facts alone."""
    found = [
        _Candidate(number, cut_axis(column, level.starts))
        for number, column in enumerate(task.predictors)
        for above, level in pairwise(column.taxonomy.levels)
        if len(level.starts) > len(above.starts)
    ]
    # Where no column tells anything apart, a refinement is about all records together.
    return found or [_Candidate(0, cut_axis(task.predictors[0], (0,)))]


def _roll_up(sums: NDArray[np.int64], axis: Axis) -> NDArray[np.int64]:
    """Add up the leaves of each cell, along the last axis of `sums`."""
    return np.add.reduceat(sums, axis.leaf_starts[:-1], axis=-1)
