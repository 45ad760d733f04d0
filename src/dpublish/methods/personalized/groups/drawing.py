"""Groups that draw: people below the group's epsilon are drawn, the others are all used.

A group that spends the least of its members' numbers wastes what the others would give.
Instead it may spend more, t, and draw a person of level a < t with probability
(e^a - 1) / (e^t - 1), as the sampling mechanism does.  Then it publishes from fewer people
with less noise.  Which t is best depends on levels and sizes only.
"""

import numpy as np
from numpy.typing import NDArray

from dpublish.methods.personalized.groups.objectives import GroupVariance, People


def drawing_rates(
    amounts: NDArray[np.float64], epsilon: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the probability of being drawn, for planning; releases use exact ones."""
    return np.minimum(np.expm1(amounts) / np.expm1(epsilon), 1.0)


def drawn_precision(
    expected: NDArray[np.float64],
    uncertain: NDArray[np.float64],
    epsilon: float,
    variance: GroupVariance,
) -> NDArray[np.float64]:
    """Give the precision of groups of which `expected` people are drawn.

    That is 1 / (noise / (m epsilon)^2 + (spread m + probability u) / m^2) with m people expected,
    and u = sum of rate (1 - rate) for those left to probability: a count of them varies by itself,
    not only by who is in the group.
    """
    told = expected * expected * epsilon**2
    spread = (variance.spread * expected + variance.probability * uncertain) * epsilon**2
    precision: NDArray[np.float64] = told / (variance.noise + spread)
    return precision


def drawing_table(people: People, variance: GroupVariance) -> NDArray[np.float64]:
    """Give the best precision of every group that could be formed, over what it may spend."""
    size = len(people.levels)
    table = np.zeros((size, size))
    for place, epsilon in enumerate(people.levels):
        if epsilon > 0:
            # Rows: groups that start here or before; columns: groups that end here or later.
            found = _at_limit(people, place, variance)
            block = table[: place + 1, place:]
            np.maximum(block, found, out=block)
    return table


def best_limit(people: People, first: int, last: int, variance: GroupVariance) -> int:
    """Find the level that the group of levels `first` to `last` had best spend."""
    group = People(people.levels[first : last + 1], people.sizes[first : last + 1])
    return first + int(np.argmax([_told(group, epsilon, variance) for epsilon in group.levels]))


def _told(group: People, epsilon: float, variance: GroupVariance) -> float:
    if epsilon <= 0:
        return -1.0
    rates = drawing_rates(group.levels, epsilon)
    drawn = group.sizes * rates
    expected, uncertain = drawn.sum(), (drawn * (1 - rates)).sum()
    return float(drawn_precision(expected, uncertain, epsilon, variance))


def _at_limit(people: People, place: int, variance: GroupVariance) -> NDArray[np.float64]:
    """Give the precision of all groups around one level, which they spend."""
    epsilon = float(people.levels[place])
    rates = drawing_rates(people.levels[:place], epsilon)
    drawn = people.sizes[:place] * rates
    below = _sums_to_end(drawn)
    uncertain = _sums_to_end(drawn * (1 - rates))
    above = np.cumsum(people.sizes[place:])
    return drawn_precision(below[:, None] + above[None, :], uncertain[:, None], epsilon, variance)


def _sums_to_end(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up the values from each place to the end, and nothing after it."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])
