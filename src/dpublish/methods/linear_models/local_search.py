"""Improve a vector step by step, choosing every step privately.

Either one coordinate moves in a round, or all coordinates of one group.  A group's coordinates
touch different records, like the values of one column, so their choices cost what one does.

Known as: PrivLocal, ExpSearch (moves of single coordinates, without the staying candidate).
Reference: D. Su, PhD thesis, Purdue, 2016, section 2.6.  Moves of groups are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt

import numpy as np

from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.genetic_search import Scores, Watcher
from dpublish.mechanisms.selection import select
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import IntArray

Groups = Sequence[Sequence[int]]

FEWEST_GROUP_ROUNDS, MOST_GROUP_ROUNDS = 3, 100
SQUARE_RECORDS_PER_ROUND = 18  # at epsilon 1: a round for 18, two for 36 squared...


@dataclass(frozen=True, kw_only=True)
class Climb:
    """Public settings of a search.

    Attributes:
        reach: Coordinates are integers from -reach to reach.
        rounds: Number of rounds (r).
        first_step: How far a coordinate moves in the first round (s).
        shrink: What is left of a step in the next round (beta).
    """

    reach: int
    rounds: int
    first_step: int
    shrink: Fraction

    def __post_init__(self) -> None:
        require_count(reach=self.reach, rounds=self.rounds, first_step=self.first_step)
        if not 0 < self.shrink <= 1:
            raise InvalidParameter(f"shrink ({self.shrink}) must be above 0 and at most 1")

    def step(self, number: int) -> int:
        """Say how far a coordinate moves in round `number` (from 1), at least 1.

        >>> plan = Climb(reach=9999, rounds=8, first_step=512, shrink=Fraction("0.95"))
        >>> plan.step(1), plan.step(2)
        (512, 486)
        """
        return max(round(self.first_step * self.shrink ** (number - 1)), 1)

    def moves(self, vector: IntArray, number: int) -> IntArray:
        """List the vectors of a round: staying, all steps up, all steps down, in the box."""
        steps = self.step(number) * np.eye(vector.size, dtype=np.int64)
        listed = np.concatenate([vector[None], vector + steps, vector - steps])
        return np.asarray(np.clip(listed, -self.reach, self.reach))


def count_group_rounds(records: int, epsilon: Fraction) -> int:
    """Choose the number of rounds from a public or noisy number of records.

    >>> [count_group_rounds(40_000, Fraction(1, part)) for part in (1, 5, 20)]
    [12, 5, 3]
    """
    wanted = isqrt(ceil(max(records, 0) * epsilon)) // SQUARE_RECORDS_PER_ROUND + 1
    return min(max(wanted, FEWEST_GROUP_ROUNDS), MOST_GROUP_ROUNDS)


def climb(
    score: Callable[[IntArray], Scores],
    start: IntArray,
    plan: Climb,
    *,
    budget: Budget,
    rng: RandomSource,
    watcher: Watcher | None = None,
) -> IntArray:
    """Move one coordinate in each round, or none.

    Args:
        score: Scores vectors by the data, a row each; higher is better.  Called once a round.
        start: Where to begin; chosen without looking at the data.
        plan: Public settings.
        budget: Budget to empty, in equal shares over the rounds.
        rng: Source of randomness.
        watcher: Told about progress.

    Privacy:
        `budget.epsilon`-differentially private if `score` states a range sensitivity that
        holds for all neighbors and depends on the candidates alone: they follow from the
        last choice, which is public, and each round's choice costs its share (`select`).
    """
    vector = start
    for number, share in enumerate(budget.split_evenly(plan.rounds), start=1):
        candidates = plan.moves(vector, number)
        values, reach = score(candidates)
        chosen = select(values, sensitivity_range=reach, budget=share, rng=rng)
        vector = candidates[chosen]
        _report(watcher, number, plan)
    return vector


def climb_by_groups(
    score: Callable[[IntArray], Scores],
    start: IntArray,
    groups: Groups,
    plan: Climb,
    *,
    budget: Budget,
    rng: RandomSource,
    watcher: Watcher | None = None,
) -> IntArray:
    """Choose a group of coordinates in each round; each of them then moves up, down or not.

    Args:
        score: As for `climb`; minus a sum of losses of records, which see a vector only
            through the coordinates that touch them.
        start: Where to begin.
        groups: Places of the coordinates of each group.  No record is touched by two
            coordinates of one group: moving one of them leaves its loss as it is.
        plan: Public settings.
        budget: Budget to empty, in equal shares over the rounds.
        rng: Source of randomness.
        watcher: Told about progress.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Let R be
        the range of its losses over the round's candidates.  It changes the merit of a group
        through one coordinate, by something between its least and its largest gain, so merits
        are pulled apart by at most R.  Given the group, a record changes the scores of one
        coordinate's three candidates, by amounts that differ by at most R; those of all
        others it leaves alone, so their choices run on disjoint parts (`share_disjoint`).
        Hurdles are public.  Proof: docs/proofs/local_search.md.
    """
    vector = start
    for number, share in enumerate(budget.split_evenly(plan.rounds), start=1):
        candidates = plan.moves(vector, number)
        values, reach = score(candidates)
        budgets = share.split(group=1, steps=1)
        noise = ceil(reach / budgets["steps"].epsilon)
        gains = (values[1:] - values[0]).reshape(2, vector.size)
        merits = np.maximum(gains.max(axis=0) - noise, 0)  # what noise would hide is no merit
        chosen = select(
            np.array([merits[list(group)].sum() for group in groups], dtype=np.int64),
            sensitivity_range=reach,
            budget=budgets["group"],
            rng=rng,
        )
        steps = _choose_steps(
            gains[:, list(groups[chosen])] - noise // 2,
            reach,
            budget=budgets["steps"],
            rng=rng,
        )
        places = np.array(groups[chosen])
        vector = vector.copy()
        vector[places] = candidates[steps_to_rows(steps, places, vector.size), places]
        _report(watcher, number, plan)
    return vector


def steps_to_rows(steps: IntArray, places: IntArray, size: int) -> IntArray:
    """Find the candidate in which each place has made its step: 0 stay, 1 up, 2 down.

    >>> steps_to_rows(np.array([0, 1, 2]), np.array([4, 5, 6]), 10).tolist()
    [0, 6, 17]
    """
    return np.asarray(np.where(steps == 0, 0, 1 + places + size * (steps - 1)))


def _choose_steps(gains: IntArray, reach: int, *, budget: Budget, rng: RandomSource) -> IntArray:
    """Choose staying (0), up (1) or down (2) for every coordinate, a column each.

    Privacy:
        `budget.epsilon`-differentially private if a record changes one column only, by
        amounts that differ from each other and from 0 by at most `reach`.
    """
    budgets = budget.share_disjoint(f"part-{part + 1}" for part in range(gains.shape[1]))
    return np.array(
        [
            select(np.concatenate([[0], column]), sensitivity_range=reach, budget=share, rng=rng)
            for column, share in zip(gains.T, budgets.values(), strict=True)
        ],
        dtype=np.int64,
    )


def _report(watcher: Watcher | None, number: int, plan: Climb) -> None:
    if watcher is not None:
        watcher(number, plan.rounds)
