"""Exact probabilities of what mechanisms return, from their definitions alone.

None of this is used to draw: an audit compares what was drawn with it, and neighbors with each
other.
"""

from collections.abc import Sequence
from itertools import pairwise, permutations
from math import exp

import numpy as np

from dpublish.accuracy.noise_distribution import noise_survival
from dpublish.mechanisms.sparse_vector.calibration import Calibration
from dpublish.types import FloatArray

Odds = dict[object, float]
_BINS = 40
_FAR = 44  # noise of rate r is beyond 44 / r once in 10^19 draws


# --- Noise ------------------------------------------------------------------------------------


def bin_width(rate: float) -> int:
    """Choose how many neighboring integers share a bin: about a quarter of the noise's scale."""
    return max(1, round(1 / (4 * rate)))


def noise_bins(values: Sequence[int] | np.ndarray, rate: float) -> list[object]:
    """Sort noisy values into bins; what is far out goes into the outermost."""
    found = np.floor_divide(np.asarray(values), bin_width(rate))
    return list(np.clip(found, -_BINS, _BINS).tolist())


def noise_odds(rate: float, width_rate: float, center: int = 0) -> Odds:
    """Compute the probability of every bin for noise around a count; bins as at `width_rate`."""
    width = bin_width(width_rate)
    edges = np.arange(-_BINS + 1, _BINS + 1) * width - center
    above = noise_survival(rate, edges)
    mass = np.concatenate([[1 - above[0]], above[:-1] - above[1:], [above[-1]]])
    # Of the lower half the differences lose digits; the noise is symmetric.
    below = noise_survival(rate, 1 - edges)
    lower = np.concatenate([[below[0]], below[1:] - below[:-1], [1 - below[-1]]])
    bins = range(-_BINS, _BINS + 1)
    found = np.where(np.concatenate([edges, [edges[-1] + width]]) <= 0, lower, mass)
    return dict(zip(bins, found.tolist(), strict=True))


# --- Choices ----------------------------------------------------------------------------------


def exponential_odds(scores: Sequence[int], rate: float) -> Odds:
    """Compute each candidate's probability under the exponential mechanism."""
    odds = np.exp(rate * (np.array(scores, dtype=float) - max(scores)))
    return dict(enumerate((odds / odds.sum()).tolist()))


def flip_odds(scores: Sequence[float], rate: float) -> Odds:
    """Compute each candidate's probability under permute-and-flip.

    Candidates are visited in a uniformly random order, and one is accepted with probability
    exp(-rate * distance from the best).
    """
    accepted = [exp(-rate * (max(scores) - score)) for score in scores]
    orders = list(permutations(range(len(scores))))
    found: Odds = dict.fromkeys(range(len(scores)), 0.0)
    for order in orders:
        unseen = 1 / len(orders)
        for candidate in order:
            found[candidate] = found[candidate] + unseen * accepted[candidate]
            unseen *= 1 - accepted[candidate]
    return {**found}


def ranked_odds(scores: Sequence[int], rate: float, count: int) -> Odds:
    """Compute the probability of every ranking by one-shot noise; a random order breaks ties."""
    orders = list(permutations(range(len(scores))))
    total: Odds = {}
    for order in orders:
        for winners, odds in _ranked_by(scores, rate, count, order).items():
            total[winners] = total.get(winners, 0.0) + odds / len(orders)
    return total


def _ranked_by(
    scores: Sequence[int], rate: float, count: int, priority: Sequence[int]
) -> dict[tuple[int, ...], float]:
    """Add up the sums of a score and geometric noise over all heights."""
    heights = np.arange(min(scores), max(scores) + int(50 / rate) + 2)
    above = [np.exp(-rate * np.maximum(heights - score, 0)) for score in scores]
    mass = [
        np.where(heights >= score, above[index] * -np.expm1(-rate), 0)
        for index, score in enumerate(scores)
    ]
    rank = {index: position for position, index in enumerate(priority)}

    def odds(winners: tuple[int, ...]) -> float:
        chain = mass[winners[0]]
        for before, winner in pairwise(winners):
            higher = chain[::-1].cumsum()[::-1] - (0 if rank[before] < rank[winner] else chain)
            chain = higher * mass[winner]
        for loser in set(range(len(scores))) - set(winners):
            ties = mass[loser] if rank[loser] > rank[winners[-1]] else 0
            chain = chain * (1 - (above[loser] - ties))
        return float(chain.sum())

    return {winners: odds(winners) for winners in permutations(range(len(scores)), count)}


def quantile_scores(values: Sequence[int], part: int, parts: int, cells: int) -> FloatArray:
    """Score each point of a lattice as the quantile part / parts, in units of 1 / parts record."""
    known, points = np.sort(np.array(values, dtype=int)), np.arange(cells + 1)
    below = parts * np.searchsorted(known, points, side="left")
    up_to = parts * np.searchsorted(known, points, side="right")
    target = part * known.size
    return np.asarray(-np.maximum(np.maximum(below - target, target - up_to), 0), dtype=float)


def weigh(scores: FloatArray, rate: float) -> Odds:
    """Compute probabilities in proportion to exp(rate * score)."""
    odds = np.exp(rate * (scores - scores.max()))
    return dict(enumerate((odds / odds.sum()).tolist()))


# --- Sparse vectors ---------------------------------------------------------------------------


def comparison_odds(found: Calibration, answers: Sequence[int], most: int) -> Odds:
    """Compute the probability of every list of outcomes, against a threshold of 0."""
    thresholds, weight = _thresholds(found)
    rate = float(found.answer_rate)
    finished: Odds = {}
    waiting: list[tuple[tuple[bool, ...], FloatArray]] = [((), weight)]
    while waiting:
        told, mass = waiting.pop()
        if len(told) == len(answers) or sum(told) == most:
            finished[told] = float(mass.sum())
            continue
        above = _at_least(found.noise, rate, thresholds - answers[len(told)])
        waiting += [((*told, True), mass * above), ((*told, False), mass * (1 - above))]
    return finished


def comparison_probability(
    found: Calibration, answers: Sequence[int], outcome: Sequence[bool]
) -> float:
    """Compute the probability of one list of outcomes, however long."""
    thresholds, mass = _thresholds(found)
    rate = float(found.answer_rate)
    for answer, is_above in zip(answers, outcome, strict=True):
        needed = thresholds - answer
        if is_above:
            mass = mass * _at_least(found.noise, rate, needed)
        else:
            mass = mass * _less_than(found.noise, rate, needed)
    return float(mass.sum())


def _thresholds(found: Calibration) -> tuple[FloatArray, FloatArray]:
    """Return the values of the noisy threshold, and their probabilities."""
    rate = float(found.threshold_rate)
    bound = int(_FAR / rate) + 1
    if found.noise == "exponential":
        values = np.arange(bound + 1)
        mass = -np.expm1(-rate) * np.exp(-rate * values)
    else:
        values = np.arange(-bound, bound + 1)
        mass = np.tanh(rate / 2) * np.exp(-rate * np.abs(values))
    return np.asarray(values + found.offset, dtype=float), np.asarray(mass)


def _at_least(noise: str, rate: float, needed: FloatArray) -> FloatArray:
    if noise == "exponential":
        return np.asarray(np.exp(-rate * np.maximum(needed, 0)))
    return noise_survival(rate, needed)


def _less_than(noise: str, rate: float, needed: FloatArray) -> FloatArray:
    """Compute P(noise < needed), accurately where it is small."""
    if noise == "exponential":
        return np.asarray(-np.expm1(-rate * np.maximum(needed, 0)))
    return noise_survival(rate, 1 - needed)
