"""Exact probabilities of sparse vector algorithms, summed over the noisy threshold's lattice.

A `Variant` describes one algorithm by what it draws and what it tells; proved and broken ones
differ in nothing else.  Thresholds are 0 throughout: an answer is its gap to the threshold.
An outcome is a tuple of None (below), True (above) or, if the compared value itself is
published, that number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np

from dpublish.mechanisms.sparse_vector.calibration import Calibration
from dpublish.testing import privacy_loss

Outcome = tuple[int | bool | None, ...]
VALUES = range(-80, 81)  # published values that an enumeration tells apart


@dataclass(frozen=True)
class Variant:
    """One sparse vector algorithm."""

    threshold_rate: Fraction
    answer_rate: Fraction | None  # None: answers are compared as they are
    max_positives: int | None  # None: never stops
    noise: str = "laplace"
    offset: int = 0
    redraws: bool = False  # perturbs the threshold anew after every positive
    publishes: bool = False  # tells the compared value of a positive


def variant_of(calibration: Calibration, max_positives: int, **changes: object) -> Variant:
    """Describe the algorithm that a calibration is for."""
    settings = {
        "threshold_rate": calibration.threshold_rate,
        "answer_rate": calibration.answer_rate,
        "max_positives": max_positives,
        "noise": calibration.noise,
        "offset": calibration.offset,
    }
    return Variant(**(settings | changes))


def distribution(variant: Variant, ask: Callable[[Outcome], int | None]) -> dict[Outcome, float]:
    """Probability of every outcome; `ask` gives the answer that follows the outcomes so far."""
    thresholds, prior = threshold_lattice(variant)
    finished, open_outcomes = {}, {(): prior}
    while open_outcomes:
        outcome, weight = open_outcomes.popitem()
        answer = ask(outcome)
        if answer is None or is_over(variant, outcome):
            finished[outcome] = float(weight.sum())
            continue
        for told in [None, *(VALUES if variant.publishes else [True])]:
            open_outcomes[(*outcome, told)] = step(variant, thresholds, prior, weight, answer, told)
    return finished


def probability(variant: Variant, answers: list[int], outcome: Outcome) -> float:
    """Probability of one outcome, however long."""
    thresholds, weight = threshold_lattice(variant)
    prior = weight
    for answer, told in zip(answers, outcome, strict=True):
        weight = step(variant, thresholds, prior, weight, answer, told)
    return float(weight.sum())


def in_turn(answers: list[int]) -> Callable[[Outcome], int | None]:
    """Answer a fixed list of queries."""
    return lambda outcome: answers[len(outcome)] if len(outcome) < len(answers) else None


def loss(variant: Variant, here: list[int], there: list[int]) -> float:
    """Privacy loss between two neighboring lists of answers, over all outcomes."""
    return privacy_loss(distribution(variant, in_turn(here)), distribution(variant, in_turn(there)))


def retraversal_distribution(
    variant: Variant, scores: list[int], passes: int
) -> dict[Outcome, float]:
    """Probability of every list of positions that passing again and again can choose."""
    total: dict[Outcome, float] = {}
    orders = list(permutations(range(len(scores))))
    for order in orders:
        walk = Walk(order, passes)
        for outcome, share in distribution(
            variant, lambda told, walk=walk: walk.next_score(told, scores)
        ).items():
            chosen = walk.follow(outcome)[0]
            total[chosen] = total.get(chosen, 0.0) + share / len(orders)
    return total


@dataclass(frozen=True)
class Walk:
    """Which position is tested next, by the outcomes so far."""

    order: tuple[int, ...]
    passes: int

    def follow(self, outcome: Outcome) -> tuple[tuple[int, ...], int | None]:
        """Say which positions were chosen and which is next, None at the end."""
        chosen: tuple[int, ...] = ()
        waiting = iter([])
        left = self.passes
        position = None
        for told in (*outcome, None):  # one more step than outcomes: it finds the next one
            position = next(waiting, None)
            if position is None:
                remaining = [p for p in self.order if p not in chosen]
                if not (left and remaining):
                    return chosen, None
                left -= 1
                waiting = iter(remaining)
                position = next(waiting)
            chosen = (*chosen, position) if told else chosen
        return chosen, position

    def next_score(self, outcome: Outcome, scores: list[int]) -> int | None:
        position = self.follow(outcome)[1]
        return None if position is None else scores[position]


def is_over(variant: Variant, outcome: Outcome) -> bool:
    positives = sum(told is not None for told in outcome)
    return variant.max_positives is not None and positives >= variant.max_positives


def threshold_lattice(variant: Variant) -> tuple[np.ndarray, np.ndarray]:
    """Values of the noisy threshold, and their probabilities; the rest has mass below 1e-19."""
    rate = float(variant.threshold_rate)
    bound = int(44 / rate) + 1
    values = np.arange(0 if variant.noise == "exponential" else -bound, bound + 1)
    return values + variant.offset, mass(variant.noise, rate, values)


def step(variant, thresholds, prior, weight, answer, told) -> np.ndarray:
    """Weigh the noisy thresholds with the probability of one more outcome."""
    noise = variant.noise
    rate = None if variant.answer_rate is None else float(variant.answer_rate)
    needed = thresholds - answer  # positive if and only if the answer's noise is at least this
    if told is None:
        return weight * below(noise, rate, needed)
    if variant.publishes:
        weight = weight * mass(noise, rate, np.array([told - answer])) * (thresholds <= told)
    else:
        weight = weight * tail(noise, rate, needed)
    return weight.sum() * prior if variant.redraws else weight


def mass(noise, rate, k):
    if noise == "exponential":
        return np.where(k >= 0, -np.expm1(-rate) * np.exp(-rate * np.maximum(k, 0)), 0.0)
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(k))


def tail(noise, rate, k):
    """P(noise >= k)."""
    if rate is None:
        return (k <= 0).astype(float)
    if noise == "exponential":
        return np.exp(-rate * np.maximum(k, 0))
    far = np.exp(-rate * np.abs(k - 0.5)) * np.exp(rate / 2) / (1 + np.exp(rate))
    return np.where(k >= 1, far, 1 - far)


def below(noise, rate, k):
    """P(noise < k), accurate where it is small."""
    if rate is None:
        return (k > 0).astype(float)
    if noise == "exponential":
        return -np.expm1(-rate * np.maximum(k, 0))
    return tail(noise, rate, 1 - k)
