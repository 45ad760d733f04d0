"""Group people by level: waste little of their numbers, or learn most from them.

Known as privacy-aware and utility-based partitioning.  A group holds the people of neighboring
levels and spends the least of their numbers, or more while it draws people below.  Levels come
sorted, with the number of people at each; both are public, or paid for.  Tables have one entry
per group that could be formed: row i, column j is the group of levels i to j.

Both are dynamic programs over the sorted levels, on tables of running sums; they see levels and
sizes only, never records.  Every level is in one group: a program that may stop before the last
level finds that discarding people wastes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count

# --- What a grouping is worth ---------------------------------------------------------------------


Exact = Sequence[Fraction] | Sequence[float]
Starts = tuple[int, ...]
"""A grouping: the position of the first level of every group, in order; the first is 0."""


@dataclass(frozen=True)
class GroupVariance:
    """How the variance of a group's estimate depends on its size n and its epsilon.

    It is noise / (n epsilon)^2 + person / n: the first term is that of the noise, the second
    is there because the group is a sample; `person` is the variance of one person's value.
    For the share of people who satisfy something, noise = 2 and person is at most 1/4.

    >>> round(float(GroupVariance().of(np.array(1000.0), np.array(0.1))), 6)
    0.00045
    """

    noise: float = 2.0
    person: float = 0.25

    def __post_init__(self) -> None:
        if not (0 < self.noise < np.inf and 0 <= self.person < np.inf):
            raise InvalidParameter(
                "a group's noise must be positive, its person_variance at least 0"
            )

    @property
    def drawn(self) -> float:
        """What drawing at random adds to the variance of each person drawn.

        If a share q of people counts, so that person = q (1 - q), drawing makes a coin toss of
        those who count: q = person + q^2.
        """
        if self.person > 1 / 4:
            return self.person
        share = (1 - sqrt(1 - 4 * self.person)) / 2
        return share * share

    def precision(
        self, sizes: NDArray[np.float64], epsilons: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Invert the variance; it is 0 without people or epsilon."""
        scaled = sizes * np.square(epsilons)
        precision: NDArray[np.float64] = sizes * scaled / (self.noise + self.person * scaled)
        return precision

    def of(self, sizes: NDArray[np.float64], epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of groups that hold people."""
        variance: NDArray[np.float64] = 1 / self.precision(sizes, epsilons)
        return variance


@dataclass(frozen=True)
class People:
    """Levels in rising order (as numbers, equal ones allowed) and how many people each has."""

    levels: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @classmethod
    def at(cls, levels: Exact, sizes: Exact) -> "People":
        """Build from levels and sizes; a noisy size below 0 stands for 0."""
        people = cls(np.array(levels, dtype=np.float64), np.array(sizes, dtype=np.float64))
        if people.levels.ndim != 1 or people.levels.shape != people.sizes.shape:
            raise InvalidParameter("every level has one size")
        if not len(people.levels):
            raise InvalidParameter("there must be at least one level")
        if not (np.isfinite(people.levels).all() and np.isfinite(people.sizes).all()):
            raise InvalidParameter("levels and sizes must be finite")
        if people.levels[0] < 0 or (np.diff(people.levels) < 0).any():
            raise InvalidParameter("levels must rise, from 0 or above")
        return cls(people.levels, np.maximum(people.sizes, 0.0))

    def group_sizes(self, starts: Starts) -> NDArray[np.float64]:
        """Count the people of each group."""
        return np.add.reduceat(self.sizes, starts)


def size_table(people: People) -> NDArray[np.float64]:
    """Count the people of every group that could be formed."""
    count = len(people.sizes)
    sums = np.concatenate([[0.0], np.cumsum(people.sizes)])
    table: NDArray[np.float64] = np.triu(sums[None, 1:] - sums[:-1, None])
    return table.reshape(count, count)


def waste_table(people: People) -> NDArray[np.float64]:
    """Sum n (level - least level)^2 over every group that could be formed.

    Running sums along each row: nothing is subtracted, so nothing cancels.
    """
    over = np.triu(people.levels[None, :] - people.levels[:, None])
    table: NDArray[np.float64] = np.cumsum(people.sizes * np.square(over), axis=1)
    return table


def precision_table(people: People, variance: GroupVariance) -> NDArray[np.float64]:
    """Compute the precision of every group that could be formed."""
    return variance.precision(size_table(people), people.levels[:, None])


def waste(people: People, starts: Starts) -> float:
    """Add up the waste of a grouping."""
    least = np.repeat(people.levels[list(starts)], _lengths(people, starts))
    return float(np.sum(people.sizes * np.square(people.levels - least)))


def precision(people: People, starts: Starts, variance: GroupVariance) -> float:
    """Add up the precision of a grouping: that of the mean weighted by inverse variance."""
    least = people.levels[list(starts)]
    return float(variance.precision(people.group_sizes(starts), least).sum())


def _lengths(people: People, starts: Starts) -> NDArray[np.int64]:
    ends = np.array([*starts[1:], len(people.levels)], dtype=np.int64)
    return ends - np.array(starts, dtype=np.int64)


# --- Groups that draw -----------------------------------------------------------------------------
#
# A group that spends the least of its members' numbers wastes what the others would give.
# Instead it may spend more, t, and draw a person of level a < t with probability
# (e^a - 1) / (e^t - 1), as the sampling mechanism does.  Then it publishes from fewer people
# with less noise.  Which t is best depends on levels and sizes only.


def drawing_rates(
    amounts: NDArray[np.float64], epsilon: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute the probability of being drawn, for planning; releases use exact ones."""
    return np.minimum(np.expm1(amounts) / np.expm1(epsilon), 1.0)


def drawn_precision(
    expected: NDArray[np.float64],
    uncertain: NDArray[np.float64],
    epsilon: float,
    variance: GroupVariance,
) -> NDArray[np.float64]:
    """Compute the precision of groups of which `expected` people are drawn.

    That is 1 / (noise / (m epsilon)^2 + (person m + drawn u) / m^2) with m people expected,
    and u = sum of rate (1 - rate) for those drawn at random: a count of them varies by itself,
    not only by who is in the group.
    """
    squared = expected * expected * epsilon**2
    sampled = (variance.person * expected + variance.drawn * uncertain) * epsilon**2
    precision: NDArray[np.float64] = squared / (variance.noise + sampled)
    return precision


def drawing_table(people: People, variance: GroupVariance) -> NDArray[np.float64]:
    """Compute the best precision of every group that could be formed, over what it may spend."""
    size = len(people.levels)
    table = np.zeros((size, size))
    for position, epsilon in enumerate(people.levels):
        if epsilon > 0:
            # Rows: groups that start here or before; columns: groups that end here or later.
            found = _at_limit(people, position, variance)
            block = table[: position + 1, position:]
            np.maximum(block, found, out=block)
    return table


def best_limit(people: People, first: int, last: int, variance: GroupVariance) -> int:
    """Find the level whose amount the group of levels `first` to `last` should spend."""
    group = People(people.levels[first : last + 1], people.sizes[first : last + 1])
    return first + int(
        np.argmax([_precision_at(group, epsilon, variance) for epsilon in group.levels])
    )


def _precision_at(group: People, epsilon: float, variance: GroupVariance) -> float:
    if epsilon <= 0:
        return -1.0
    rates = drawing_rates(group.levels, epsilon)
    drawn = group.sizes * rates
    expected, uncertain = drawn.sum(), (drawn * (1 - rates)).sum()
    return float(drawn_precision(expected, uncertain, epsilon, variance))


def _at_limit(people: People, position: int, variance: GroupVariance) -> NDArray[np.float64]:
    """Compute the precision of all groups around one level, which they spend."""
    epsilon = float(people.levels[position])
    rates = drawing_rates(people.levels[:position], epsilon)
    drawn = people.sizes[:position] * rates
    below = _sums_to_end(drawn)
    uncertain = _sums_to_end(drawn * (1 - rates))
    above = np.cumsum(people.sizes[position:])
    return drawn_precision(below[:, None] + above[None, :], uncertain[:, None], epsilon, variance)


def _sums_to_end(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up the values from each position to the end, and nothing after it."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


# --- The best grouping ----------------------------------------------------------------------------


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
    `table` computes the precision of a group; by default it spends the least of its levels.

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
    """Find the cheapest grouping into 1, 2, ... groups, where there is one."""
    size = len(cost)
    best = np.full(size + 1, np.inf)
    best[0] = 0.0  # no group covers no level, and nothing else
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
    """Find the cheapest grouping into any number of groups; else one group."""
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
