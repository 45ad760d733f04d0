"""Measure how far the model is from the true counts, and publish it with noise."""

from itertools import combinations
from math import comb

import numpy as np

from dpublish.core.run import Run
from dpublish.methods.synth.choice import ExactTables, whole_scores
from dpublish.methods.synth.model import Model
from dpublish.methods.synth.quality import STEPS, Quality
from dpublish.privacy.budget import Budget


def measure_quality(run: Run, model: Model, exact: ExactTables, *, budget: Budget) -> Quality:
    """Publish the mean and the largest distance over all pairs of columns, with noise.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  What the
        model expects is rounded to steps once, and does not depend on the number of records.
        A record moves one count of every pair by 1, so each pair's L1 distance by at most 1
        (STEPS steps), their sum by the number of pairs, and the largest of them by 1.  Both
        get geometric noise for that, from half of the budget each.
        Proof: docs/proofs/synth.md.
    """
    known = model.known
    number = len(known.names)
    pairs = comb(number, 2)
    budgets = budget.split(mean=1, worst=1)
    distances, rounding = [], 0.0
    for pair in combinations(range(number), 2):
        levels = tuple(len(known.classes[i].levels) - 1 for i in pair)
        expected = STEPS * model.expected(pair, levels)
        rounded = np.rint(expected).astype(np.int64)
        gap = float(np.abs(rounded - expected).sum()) / (2 * STEPS * known.total)
        rounding = max(rounding, gap)
        distances.append(int(np.abs(STEPS * exact.last(pair) - rounded).sum()))
    rates = [budgets["mean"].epsilon / (STEPS * pairs), budgets["worst"].epsilon / STEPS]
    summed = run.add_noise(
        whole_scores([sum(distances)]), sensitivity=STEPS * pairs, budget=budgets["mean"]
    )
    worst = run.add_noise(
        whole_scores([max(distances)]), sensitivity=STEPS, budget=budgets["worst"]
    )
    return Quality(
        pairs=pairs,
        summed=int(summed[0]),
        worst=int(worst[0]),
        summed_rate=rates[0],
        worst_rate=rates[1],
        rounding=min(rounding, 1.0),
    )
