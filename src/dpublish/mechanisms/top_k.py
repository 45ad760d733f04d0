"""Choose the best few of many candidates, in order.

Choosing one after another with a share of the budget each is the classical way (peeling).
The default perturbs all scores once with one-sided noise and reads off the highest: one pass,
the same price, and less noise than the Gumbel noise that would mimic the exponential mechanism.

Known as: top-k or top-k selection, one-shot report-noisy-max.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import require_count, require_known
from dpublish.mechanisms.exact.sampler import LARGEST_NOISE, geometric
from dpublish.mechanisms.selection import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    distances_below_best,
    require_scores,
    select,
    selection_rate,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

ONE_SHOT = "one-shot"
PEELING = {"peel-permute-and-flip": PERMUTE_AND_FLIP, "peel-exponential": EXPONENTIAL}


def top_k(
    scores: NDArray[np.integer[Any]],
    *,
    count: int,
    sensitivity_range: int | Fraction,
    method: str = ONE_SHOT,
    budget: Budget,
    rng: RandomSource,
) -> list[int]:
    """Choose the indices of `count` candidates with high scores, highest first.

    Args:
        scores: An integer for each of a public list of candidates.
        count: How many to choose (c); all of them are ranked if there are no more.
        sensitivity_range: R, the most by which one record can change the difference between
            two scores (for counts 1).
        method: "one-shot", "peel-permute-and-flip" or "peel-exponential".
        budget: Budget to empty.
        rng: Source of randomness.

    Privacy:
        `budget.epsilon`-differentially private for neighbors whose changes of score d_o differ
        by at most R.  Peeling: c choices at epsilon / c each.  One-shot: fix an outcome and
        pair the noise z of each winner i on D with z + (max d - d_i) on D'.  All winners rise
        by max d and no loser by more, so the outcome stays, ties included, for they are broken
        by a random order that no score enters.  The pairing is one to one, and geometric noise
        of rate epsilon / (c R) makes each winner's at most exp(epsilon / c) less likely.
        If all are ranked, the winner with the largest change pays nothing: c is one less.
        Proof: docs/proofs/top_k.md.

    >>> from dpublish.randomness import seeded
    >>> supports = np.array([310, 24, 870, 11, 522])
    >>> top_k(supports, count=2, sensitivity_range=1, budget=Budget.seeded("0.5"), rng=seeded(1))
    [2, 4]
    """
    require_scores(scores)
    require_count(count=count)
    require_known("method of selection", method, (ONE_SHOT, *PEELING))
    paying = max(1, min(int(count), scores.size - 1))
    rate = selection_rate(budget.epsilon / paying, sensitivity_range)
    if method == ONE_SHOT:
        budget.spend()
        return _highest(_perturb(rate, distances_below_best(scores), rng), int(count), rng)
    chosen = []
    remaining = np.arange(scores.size)
    for share in budget.split_evenly(paying, "winner"):
        winner = select(
            scores[remaining],
            sensitivity_range=sensitivity_range,
            method=PEELING[method],
            budget=share,
            rng=rng,
        )
        chosen.append(int(remaining[winner]))
        remaining = np.delete(remaining, winner)
    # If everything is ranked, what is left over is the last one (none, if there was only one).
    return [*chosen, *remaining.tolist()] if count >= scores.size else chosen


def _perturb(rate: Fraction, distances: NDArray[np.int64], rng: RandomSource) -> NDArray[Any]:
    """Take the distances from geometric noise, exactly, however large the noise.

    Noise has no memory: what lies beyond `LARGEST_NOISE`, if anything does, has the distribution of
    the noise itself.  It is then added in Python's integers, where it fits.
    """
    noise = geometric(rate, distances.size, rng)
    keys: NDArray[Any] = noise - distances
    positions = np.arange(keys.size)
    while (is_more := noise == LARGEST_NOISE).any():
        positions = positions[is_more]
        noise = geometric(rate, positions.size, rng)
        keys = keys.astype(object)
        keys[positions] += noise.astype(object)
    return keys


def _highest(keys: NDArray[Any], count: int, rng: RandomSource) -> list[int]:
    """List the positions of the `count` highest keys, equal ones in random order."""
    finalists = np.arange(keys.size)
    if count < keys.size:
        finalists = np.flatnonzero(keys >= np.partition(keys, -count)[-count])
    # A random order of all candidates would order the finalists just as evenly.
    finalists = finalists[random_order(finalists.size, rng)]
    ranking = np.argsort(-keys[finalists], kind="stable")[:count]
    return [int(index) for index in finalists[ranking]]


def random_order(size: int, rng: RandomSource) -> NDArray[np.intp]:
    """Draw a permutation of `size` things, all of them equally likely.

    Things are sorted by random words.  Given that no two words are equal every order is as
    likely as any other, so on equal words, one probability in millions, all are drawn afresh.
    """
    while True:
        words = rng.words(size)
        order = np.argsort(words)
        ranked = words[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order
