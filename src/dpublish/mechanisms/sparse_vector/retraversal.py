"""Find about the `count` highest of many scores by passing a raised threshold again and again.

A threshold at the level of the last wanted score lets through as many bad scores as good
ones, for there are many more of the bad.  Raised, it lets few through at a time; so the list
is passed again, without those chosen, until enough are.  Further passes cost nothing: they ask
more queries to one `SparseVector`, which pays by the positive.  For a fixed list `top_k`
needs no threshold and is at least as good.

Known as: SVT-ReTr.
Reference: D. Su, PhD thesis, Purdue, 2016, section 5.4.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import discrete_laplace, require_rate
from dpublish.mechanisms.sparse_vector.calibration import NoiseKind, Settings, plan, require_share
from dpublish.mechanisms.sparse_vector.vector import MAX_THRESHOLD, SparseVector, integer_gaps
from dpublish.mechanisms.top_k import random_order
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource


def retraverse(
    scores: NDArray[np.integer],
    *,
    count: int,
    threshold: int | None = None,
    threshold_share: Fraction = Fraction(1, 10),
    deviations: int | Fraction = 3,
    max_passes: int = 100,
    sensitivity: int,
    monotonic: bool = False,
    noise: NoiseKind = "exponential",
    ratio: int | Fraction | None = None,
    budget: Budget,
    rng: RandomSource,
) -> list[int]:
    """Choose up to `count` of the `scores`, by position, in the order in which they were found.

    Args:
        scores: True scores; how many there are is public.
        count: How many to choose (c).
        threshold: Public level of the last wanted score; measured with a share of the budget if
            not given.
        threshold_share: Part of the budget that buys the threshold, if it is not given.
        deviations: How far to raise the threshold, in standard deviations of a score's noise.
        max_passes: Passes after which to be content with fewer.
        sensitivity: Most that one record can change any single score.
        monotonic: Whether one record moves all scores one way (counts under add-or-remove).
        noise: As for `calibrate`.
        ratio: As for `calibrate`.
        budget: Budget to empty.
        rng: Source of the noise, and of the order of the scores, which is public.

    Privacy:
        `budget.epsilon`-differentially private: one `SparseVector` run whose stream of
        queries is chosen by the outcomes so far (the scores not yet chosen, in public
        random order), with one noisy threshold throughout, fresh noise for every test and
        one count of positives over all passes.  A measured threshold is
        `noisy_order_statistic`, composed in sequence with the run, which may depend on it.

    >>> from dpublish.randomness import seeded
    >>> scores = np.array([2, 900, 7, 4, 1000, 0])
    >>> settings = {"sensitivity": 1, "monotonic": True, "rng": seeded(3)}
    >>> sorted(retraverse(scores, count=2, budget=Budget.seeded(1), **settings))
    [1, 4]
    """
    require_count(count=count, max_passes=max_passes)
    if not isinstance(deviations, (int, Fraction)) or deviations < 0:
        raise InvalidParameter(f"deviations ({deviations}) must be an integer or Fraction")
    pool = len(integer_gaps(scores, threshold or 0))
    require_count(scores=pool)
    count = min(count, pool)
    settings: Settings = {
        "sensitivity": sensitivity,
        "max_positives": count,
        "monotonic": monotonic,
        "noise": noise,
        "ratio": ratio,
    }
    if threshold is None:
        require_share(threshold_share=threshold_share)
        plan(**settings, epsilon=budget.epsilon * (1 - threshold_share))
        require_rate(budget.epsilon * threshold_share / sensitivity)
        shares = budget.split(level=threshold_share, search=1 - threshold_share)
        budget = shares["search"]
        threshold = noisy_order_statistic(
            scores, rank=count, sensitivity=sensitivity, budget=shares["level"], rng=rng
        )
    vector = SparseVector(**settings, budget=budget, rng=rng)
    rise = round(deviations * Fraction(vector.calibration.answer_deviation))
    raised = max(-MAX_THRESHOLD, min(threshold + rise, MAX_THRESHOLD))
    waiting = random_order(pool, rng)
    chosen: list[int] = []
    for _ in range(max_passes):
        found = np.flatnonzero(vector.above_each(scores[waiting], raised))
        chosen.extend(waiting[found].tolist())
        waiting = np.delete(waiting, found)
        if not vector.positives_left:
            break
    return chosen


def noisy_order_statistic(
    scores: NDArray[np.integer],
    *,
    rank: int,
    sensitivity: int,
    budget: Budget,
    rng: RandomSource,
) -> int:
    """Publish the score that is `rank`-th from the top, with noise.

    Privacy:
        `budget.epsilon`-differentially private: if no score moves by more than `sensitivity`,
        neither does any order statistic (at least `rank` scores stay at or above the old one
        less the sensitivity, and likewise from below), so two-sided noise of rate epsilon /
        sensitivity hides it.
    """
    require_count(rank=rank, sensitivity=sensitivity)
    clipped = integer_gaps(scores, 0)
    if rank > len(clipped):
        raise InvalidParameter(f"rank ({rank}) must be at most the number of scores")
    require_rate(budget.epsilon / sensitivity)
    rate = budget.spend() / sensitivity
    position = len(clipped) - rank
    return int(np.partition(clipped, position)[position]) + int(discrete_laplace(rate, 1, rng)[0])
