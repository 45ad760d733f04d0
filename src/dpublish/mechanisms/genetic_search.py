"""Search for good parameters by private choice, crossing and mutation.

A generation of candidate vectors is scored by the data, a few of them are chosen privately,
and their offspring are the next generation.  Crossing and mutation never see the data.

Known as: PrivGene, here with the enhanced exponential mechanism: the noise of a choice follows
how far one record can pull two candidates of this generation apart, which shrinks with the
mutations.
Reference: J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: Differentially Private
Model Fitting Using Genetic Algorithms", SIGMOD 2013.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.mechanisms.selection import EXPONENTIAL, PERMUTE_AND_FLIP, select
from dpublish.mechanisms.top_k import ONE_SHOT, top_k
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

Watcher = Callable[[int, int], None]
"""Called with the number of rounds done and the number of all rounds; both are public."""

FEWEST_ROUNDS, MOST_ROUNDS = 8, 500
RECORDS_PER_ROUND = 800  # at epsilon 1: the paper's constant c = 1 / 800
SHRINK = Fraction(95, 100)
_FIRST_STEP = Fraction(1, 20)
_SEVERAL = {PERMUTE_AND_FLIP: ONE_SHOT, EXPONENTIAL: "peel-exponential"}
"""How several are chosen, by how one is."""


class Scores(NamedTuple):
    """Exact scores of a generation, higher is better, and their range sensitivity (R)."""

    values: IntArray
    sensitivity_range: int


@dataclass(frozen=True, kw_only=True)
class Breeding:
    """Public settings of a search.

    Attributes:
        bound: Coordinates are integers from -bound to bound.
        rounds: Number of private choices (r).
        population: Candidates in a generation (m).
        parents: How many are chosen of each but the last (m').
        mechanism: How each is chosen: "permute-and-flip", several in one shot, or
            "exponential", one after the other, as in the paper.
    """

    bound: int
    rounds: int
    population: int = 200
    parents: int = 1
    mechanism: str = PERMUTE_AND_FLIP

    def __post_init__(self) -> None:
        require_count(
            bound=self.bound, rounds=self.rounds, population=self.population, parents=self.parents
        )
        if self.parents > self.population:
            raise InvalidParameter("there cannot be more parents than candidates")
        require_known("mechanism", self.mechanism, _SEVERAL)

    def step(self, number: int) -> int:
        """Return how far a coordinate is moved after round `number` (from 1), at least 1.

        >>> Breeding(bound=1000, rounds=8).step(1), Breeding(bound=1000, rounds=8).step(2)
        (100, 95)
        """
        return max(round(2 * self.bound * _FIRST_STEP * SHRINK ** (number - 1)), 1)


def count_rounds(
    records: int, epsilon: Fraction, parents: int, per_round: int = RECORDS_PER_ROUND
) -> int:
    """Choose the number of rounds from a public or noisy number of records.

    At epsilon 1, `per_round` records pay for a round of one parent.

    >>> count_rounds(-3, Fraction(1), 1), count_rounds(48_842, Fraction(1), 1)
    (8, 62)
    """
    wanted = ceil(Fraction(max(records, 0)) * epsilon / (per_round * parents))
    return min(max(wanted, FEWEST_ROUNDS), MOST_ROUNDS)


def predict_rounds(
    records: int,
    epsilon: Fraction | float,
    parents: int,
    per_round: int = RECORDS_PER_ROUND,
) -> float:
    """Compute the number of rounds unrounded, so that more budget never predicts a larger error."""
    wanted = records * float(epsilon) / (per_round * parents)
    return min(max(wanted, float(FEWEST_ROUNDS)), float(MOST_ROUNDS))


def draw_uniform(count: int, size: int, bound: int, rng: RandomSource) -> IntArray:
    """Draw `count` vectors of `size` coordinates, uniform on the lattice."""
    drawn = uniform_below(2 * bound + 1, count * size, rng) - bound
    return drawn.reshape(count, size)


def search(
    score: Callable[[IntArray], Scores],
    first: IntArray,
    plan: Breeding,
    *,
    budget: Budget,
    rng: RandomSource,
    watcher: Watcher | None = None,
) -> IntArray:
    """Improve a generation round by round, and return one vector of the last.

    Args:
        score: Scores the rows of a generation by the data.  It is called once a round.
        first: The first generation, a row each; drawn without looking at the data.
        plan: Public settings.
        budget: Budget to empty, in equal shares over the rounds.
        rng: Source of randomness.
        watcher: Told about progress.

    Privacy:
        `budget.epsilon`-differentially private if `score` states a range sensitivity that
        holds for all neighbors and depends on the generation alone.  Each generation is
        made from the last choice and fresh randomness, so it is public once that choice is,
        and each round's choice costs its share (`select`, `top_k`): sequential, adaptive
        composition over as many rounds as the plan has.
    """
    generation = first
    *earlier, share = budget.split_evenly(plan.rounds)
    for number, part in enumerate(earlier, start=1):
        scores = score(generation)
        chosen = top_k(
            scores.values,
            count=plan.parents,
            sensitivity_range=scores.sensitivity_range,
            budget=part,
            rng=rng,
            method=_SEVERAL[plan.mechanism],
        )
        generation = breed(generation[chosen], plan, number, rng)
        if watcher is not None:
            watcher(number, plan.rounds)
    scores = score(generation)
    best = select(
        scores.values,
        sensitivity_range=scores.sensitivity_range,
        budget=share,
        rng=rng,
        method=plan.mechanism,
    )
    return np.asarray(generation[best])


def breed(parents: IntArray, plan: Breeding, number: int, rng: RandomSource) -> IntArray:
    """Make a generation: cross two parents at one position, then move one coordinate."""
    count, size = plan.population, parents.shape[1]
    left, right = uniform_below(len(parents), 2 * count, rng).reshape(2, count)
    cuts = 1 + uniform_below(size - 1, count, rng) if size > 1 else np.ones(count, dtype=np.int64)
    is_left = np.arange(size) < cuts[:, None]
    children = np.where(is_left, parents[left], parents[right])
    positions = uniform_below(size, count, rng)
    signs = 2 * uniform_below(2, count, rng) - 1
    children[np.arange(count), positions] += signs * plan.step(number)
    return np.asarray(np.clip(children, -plan.bound, plan.bound))
