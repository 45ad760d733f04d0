"""Plan which levels form groups, what each group spends, and how much each counts.

A plan sees what every level may spend and how many people it has, both public or paid for.
It may have several rounds: what a level has left after one is grouped again in the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.methods.personalized.groups.optimizer import (
    GroupVariance,
    People,
    Starts,
    best_limit,
    best_privacy_aware,
    drawing_rates,
    drawing_table,
    precision_table,
    privacy_aware,
    utility_based,
)

Objective = Literal["utility", "privacy"]
LEAST_LEFT = Fraction(1, 10)
"""A level takes part in a further round if it has this share of its own number left."""
LEAST_GAIN = 0.01
"""A further round must lower the variance by this share."""
LIGHT = 0.05
"""Groups that weigh less than this share of the heaviest, and whose absence raises the variance
by no more than this share, are not worth their budget."""


@dataclass(frozen=True)
class PlannedGroup:
    """Levels (by position) that are published together with one epsilon, and their weight.

    `pays` is what each member pays: epsilon, or what it has, if that is less and its people
    are drawn.  `size` is the number of people of the members, `drawn` of those expected to be
    used.
    """

    members: tuple[int, ...]
    pays: tuple[Fraction, ...]
    epsilon: Fraction
    size: float
    drawn: float
    weight: float = 1.0


class Weights(NamedTuple):
    """How much each group counts, and the variance of the weighted mean."""

    values: NDArray[np.float64]
    variance: float


@dataclass(frozen=True)
class Grouping:
    """How groups are formed: what is optimized, and within which limits.

    With `summed`, what groups publish is added up: then all levels are in, and one group is best
    unless a number of groups is set, since noise adds up too.  With `drawing`, groups
    draw people below what they spend instead of spending the least.
    """

    objective: Objective = "utility"
    groups: int | None = None
    least_size: int = 0
    variance: GroupVariance = field(default_factory=GroupVariance)
    summed: bool = False
    drawing: bool = False

    def starts(self, people: People) -> Starts:
        """Find where groups start among levels in rising order."""
        if self.summed and (self.objective == "utility" or self.groups is None):
            return (0,)
        least, levels, sizes = self.least_size, people.levels.tolist(), people.sizes.tolist()
        if self.objective == "utility":
            table = drawing_table if self.drawing else precision_table
            return utility_based(levels, sizes, self.variance, least, self.groups, table)
        if self.groups is not None:
            return privacy_aware(levels, sizes, self.groups, least)
        return best_privacy_aware(levels, sizes, self.variance, least)


@lru_cache(maxsize=32)
def plan_rounds(
    amounts: tuple[Fraction, ...],
    sizes: tuple[float, ...],
    grouping: Grouping,
    rounds: int = 1,
) -> tuple[PlannedGroup, ...]:
    """Form groups of levels; in each, no level pays more than it has left.

    Levels whose amount is 0 are in no group.  Levels that are left out of the first round, as
    too light, stay out: they would be no heavier later.

    >>> plan = plan_rounds((Fraction(1, 10), Fraction(1)), (900, 900), Grouping(), rounds=3)
    >>> [(group.members, str(group.epsilon)) for group in plan]
    [((0,), '1/10'), ((1,), '1')]
    """
    left = list(amounts)
    candidates = [position for position, amount in enumerate(amounts) if amount > 0]
    planned: list[PlannedGroup] = []
    for _ in range(rounds):
        candidates = [b for b in candidates if left[b] > 0 and left[b] >= LEAST_LEFT * amounts[b]]
        kept = _round(planned, candidates, left, sizes, grouping) if candidates else []
        if not kept:
            break
        planned += kept
        candidates = [position for group in kept for position in group.members]
        for group in kept:
            for position, paid in zip(group.members, group.pays, strict=True):
                left[position] -= paid
    if grouping.summed:
        return tuple(planned)
    weights = weigh(planned, sizes, grouping.variance).values
    return tuple(
        replace(group, weight=float(weight)) for group, weight in zip(planned, weights, strict=True)
    )


def left_over(
    groups: Sequence[PlannedGroup], amounts: Sequence[Fraction], sizes: Sequence[float]
) -> float:
    """Compute what is left of people's numbers after all groups: the part of their squares.

    >>> plan = plan_rounds((Fraction(1), Fraction(2)), (9, 9), Grouping(summed=True))
    >>> left_over(plan, (Fraction(1), Fraction(2)), (9, 9))
    0.2
    """
    left = list(amounts)
    for group in groups:
        for position, paid in zip(group.members, group.pays, strict=True):
            left[position] -= paid
    people = np.maximum(np.array(sizes, dtype=np.float64), 0)
    before = float(people @ np.square(np.array(amounts, dtype=np.float64)))
    after = float(people @ np.square(np.array(left, dtype=np.float64)))
    return after / before if before > 0 else 0.0


def left_over_bound(people: float, groups: int, rounds: int) -> float:
    """Bound that part after `rounds` rounds of `groups` privacy-aware groups each.

    Cutting the range of numbers into equal parts leaves each person at most a part of the
    largest number; groups that waste least leave no more.  For many people and few groups it
    is close to 1, and far above what is left.

    >>> round(left_over_bound(200, 3, 1), 2), round(left_over_bound(10, 10, 2), 4)
    (0.96, 0.0084)
    """
    return float(people / (people - 1 + groups**2)) ** rounds


def weigh(
    groups: Sequence[PlannedGroup], sizes: Sequence[float], variance: GroupVariance
) -> Weights:
    """Weigh groups so that the weighted mean of their estimates varies least.

    Groups that share no people are weighed by inverse variance.  Groups of several rounds share
    people: their noise is independent, but who these people are shows in both.  The variance is
    about the share among all people, so that a mean over all of them has noise only.
    """
    count = len(groups)
    rates = np.zeros((count, len(sizes)))
    for row, group in zip(rates, groups, strict=True):
        paid = np.array([float(amount) for amount in group.pays])
        row[list(group.members)] = drawing_rates(paid, float(group.epsilon))
    people = np.maximum(np.array(sizes, dtype=np.float64), 0)
    drawn = np.array([group.drawn for group in groups])
    epsilons = np.array([float(group.epsilon) for group in groups])
    covariance = variance.person * ((rates * people) @ rates.T) / np.outer(drawn, drawn)
    # Drawing adds its own variance: that of a coin toss for each person drawn at random.
    tossed = (variance.person + variance.drawn) * ((rates * (1 - rates)) @ people)
    covariance[np.diag_indices(count)] += tossed / np.square(drawn) + variance.noise / np.square(
        drawn * epsilons
    )
    deviations = np.sqrt(np.diag(covariance))
    # Scaled to correlations: the variances of groups may be many powers of ten apart.
    solution = np.linalg.solve(covariance / np.outer(deviations, deviations), 1 / deviations)
    inverse = np.maximum(solution / deviations, 0.0)
    weights = inverse / inverse.sum()
    of_all = variance.person / max(float(people.sum()), 1.0)
    noise = float(np.sum(np.square(weights / (drawn * epsilons)))) * variance.noise
    return Weights(weights, max(float(weights @ covariance @ weights) - of_all, noise))


def _round(
    planned: list[PlannedGroup],
    candidates: Sequence[int],
    left: Sequence[Fraction],
    sizes: Sequence[float],
    grouping: Grouping,
) -> list[PlannedGroup]:
    """Form the groups of one round that are worth it."""
    order = sorted(candidates, key=lambda position: left[position])
    people = People.at(
        [left[position] for position in order], [sizes[position] for position in order]
    )
    starts = grouping.starts(people)
    formed = []
    for start, end in zip(starts, (*starts[1:], len(order)), strict=True):
        drawing = grouping.drawing and not grouping.summed
        limit = best_limit(people, start, end - 1, grouping.variance) if drawing else start
        formed.append(_group(order[start:end], left[order[limit]], left, sizes))
    if grouping.summed:
        return formed
    kept = _heavy(planned, formed, sizes, grouping.variance)
    if planned and kept:
        before = weigh(planned, sizes, grouping.variance).variance
        after = weigh([*planned, *kept], sizes, grouping.variance).variance
        return kept if before > (1 + LEAST_GAIN) * after else []
    return kept


def _group(
    positions: Sequence[int], epsilon: Fraction, left: Sequence[Fraction], sizes: Sequence[float]
) -> PlannedGroup:
    members = tuple(sorted(positions))
    pays = tuple(min(left[position], epsilon) for position in members)
    people = np.array([sizes[position] for position in members])
    rates = drawing_rates(np.array([float(paid) for paid in pays]), float(epsilon))
    return PlannedGroup(
        members=members,
        pays=pays,
        epsilon=epsilon,
        size=max(float(people.sum()), 1.0),  # noisy sizes may add up to less
        drawn=max(float((people * rates).sum()), 1.0),
    )


def _heavy(
    planned: list[PlannedGroup],
    formed: list[PlannedGroup],
    sizes: Sequence[float],
    variance: GroupVariance,
) -> list[PlannedGroup]:
    """Leave out new groups that hardly count beside the others, the lightest first."""
    kept = list(formed)
    weighed = weigh([*planned, *kept], sizes, variance)
    limit = (1 + LIGHT) * weighed.variance
    while kept and len(planned) + len(kept) > 1:
        lightest = int(weighed.values[len(planned) :].argmin())
        others = kept[:lightest] + kept[lightest + 1 :]
        without = weigh([*planned, *others], sizes, variance)
        is_light = weighed.values[len(planned) + lightest] < LIGHT * weighed.values.max()
        if not is_light or without.variance > limit:
            break
        kept, weighed = others, without
    return kept
