"""What grouping people by level is worth: budget wasted, and precision gained.

A group holds the people of neighboring levels and spends the least of their numbers.  Levels
come sorted, with the number of people at each; both are public, or paid for.  Tables have one
entry per group that could be formed: row i, column j is the group of levels i to j.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter

Exact = Sequence[Fraction] | Sequence[float]
Starts = tuple[int, ...]
"""A grouping: the position of the first level of every group, in order; the first is 0."""


@dataclass(frozen=True)
class GroupVariance:
    """How the variance of a group's estimate depends on its size n and its epsilon.

    It is noise / (n epsilon)^2 + spread / n: the first term is perturb, the second is that the
    group is a sample.  For the share of people who satisfy something, noise = 2 and spread is
    at most 1/4.

    >>> round(float(GroupVariance().of(np.array(1000.0), np.array(0.1))), 6)
    0.00045
    """

    noise: float = 2.0
    spread: float = 0.25

    def __post_init__(self) -> None:
        if not (0 < self.noise < np.inf and 0 <= self.spread < np.inf):
            raise InvalidParameter("a group's noise must be positive, its spread at least 0")

    @property
    def probability(self) -> float:
        """What drawing at random adds to the spread of each person left to it.

        If a share q of people counts, so that spread = q (1 - q), drawing makes a coin toss of
        those who count: q = spread + q^2.
        """
        if self.spread > 1 / 4:
            return self.spread
        share = (1 - sqrt(1 - 4 * self.spread)) / 2
        return share * share

    def precision(
        self, sizes: NDArray[np.float64], epsilons: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Invert the variance; nobody and no epsilon tell nothing."""
        told = sizes * np.square(epsilons)
        precision: NDArray[np.float64] = sizes * told / (self.noise + self.spread * told)
        return precision

    def of(self, sizes: NDArray[np.float64], epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the variance of groups that hold somebody."""
        variance: NDArray[np.float64] = 1 / self.precision(sizes, epsilons)
        return variance


@dataclass(frozen=True)
class People:
    """Levels in rising order (as numbers, equal ones allowed) and how many people each has."""

    levels: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @classmethod
    def at(cls, levels: Exact, sizes: Exact) -> "People":
        """Take levels and sizes; a noisy size below 0 stands for nobody."""
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
    """Give the precision of every group that could be formed."""
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
