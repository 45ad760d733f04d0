"""Group people by level: waste little of their numbers, or learn most from them.

Known as: privacy-aware and utility-based partitioning.  Both are dynamic programmes over the
sorted levels, on tables of running sums; they see levels and sizes only, never records.
Every level is in one group: a program that may stop before it has placed everybody finds
that discarding them wastes nothing.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import require_count
from dpublish.methods.personalized.groups.objectives import (
    Exact,
    GroupVariance,
    People,
    Starts,
    precision,
    precision_table,
    size_table,
    waste_table,
)

Table = Callable[[People, GroupVariance], NDArray[np.float64]]
MOST_GROUPS = 64
"""Groups tried when their number is to be chosen; more hardly ever pay."""


def privacy_aware(levels: Exact, sizes: Exact, groups: int, least_size: float = 0) -> Starts:
    """Form at most `groups` groups of at least `least_size` people that waste least.

    Waste is the sum of n (level - what its group spends)^2.  More groups never waste more, so
    as many are formed as the least size allows.  One group is always allowed.

    >>> privacy_aware([0.01, 0.02, 0.9, 1.0], [10, 10, 10, 10], groups=2)
    (0, 2)
    """
    people = People.at(levels, sizes)
    require_count(groups=groups)
    best: Starts = (0,)
    for starts in _groupings(_allowed(waste_table(people), people, least_size), groups):
        best = starts
    return best


def best_privacy_aware(
    levels: Exact,
    sizes: Exact,
    variance: GroupVariance,
    least_size: float = 0,
    most_groups: int = MOST_GROUPS,
) -> Starts:
    """Form as many groups of least waste as give the best precision.

    Waste cannot choose the number itself: one group per level wastes nothing.
    """
    people = People.at(levels, sizes)
    require_count(most_groups=most_groups)
    table = _allowed(waste_table(people), people, least_size)
    candidates = [(0,), *_groupings(table, most_groups)]
    return max(candidates, key=lambda starts: precision(people, starts, variance))


def utility_based(
    levels: Exact,
    sizes: Exact,
    variance: GroupVariance,
    least_size: float = 0,
    groups: int | None = None,
    table: Table = precision_table,
) -> Starts:
    """Form the groups whose estimates, weighted by inverse variance, are most precise.

    The number of groups follows, or is at most `groups`.  One group is always allowed.
    `table` gives the precision of a group; by default it spends the least of its levels.

    >>> utility_based([0.01, 0.2, 1.0], [500, 3500, 6000], GroupVariance())
    (0, 1)
    """
    people = People.at(levels, sizes)
    cost = _allowed(-table(people, variance), people, least_size)
    if groups is None:
        return _cheapest(cost)
    require_count(groups=groups)
    candidates = [(0,), *_groupings(cost, groups)]
    return min(candidates, key=lambda starts: _total(cost, starts))


def _allowed(cost: NDArray[np.float64], people: People, least_size: float) -> NDArray[np.float64]:
    """Put an infinite cost on groups that end before they start or are too small."""
    size = len(people.levels)
    allowed = np.triu(np.ones((size, size), dtype=np.bool_))
    allowed &= size_table(people) >= least_size
    return np.where(allowed, cost, np.inf)


def _total(cost: NDArray[np.float64], starts: Starts) -> float:
    lasts = np.array([*starts[1:], len(cost)]) - 1
    return float(cost[list(starts), lasts].sum())


def _groupings(cost: NDArray[np.float64], groups: int) -> Iterator[Starts]:
    """Give the cheapest grouping into 1, 2, ... groups, where there is one."""
    size = len(cost)
    best = np.full(size + 1, np.inf)
    best[0] = 0.0  # no group covers nobody, and nothing else
    choices: list[NDArray[np.intp]] = []
    for _ in range(min(groups, size)):
        totals = best[:-1, None] + cost  # the last group starts at the row, ends at the column
        choices.append(totals.argmin(axis=0))
        best = np.concatenate([[np.inf], totals.min(axis=0)])
        if best[-1] < np.inf:
            yield _trace(choices, size)


def _trace(choices: list[NDArray[np.intp]], size: int) -> Starts:
    starts: list[int] = []
    end = size
    for choice in reversed(choices):
        end = int(choice[end - 1])
        starts.append(end)
    return tuple(reversed(starts))


def _cheapest(cost: NDArray[np.float64]) -> Starts:
    """Give the cheapest grouping into any number of groups; else one group."""
    size = len(cost)
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    start_of = np.zeros(size, dtype=np.intp)
    for last in range(size):
        totals = best[: last + 1] + cost[: last + 1, last]
        start_of[last] = totals.argmin()  # of equals the longest last group
        best[last + 1] = totals[start_of[last]]
    if best[-1] == np.inf:
        return (0,)
    starts = [int(start_of[-1])]
    while starts[-1] > 0:
        starts.append(int(start_of[starts[-1] - 1]))
    return tuple(reversed(starts))
