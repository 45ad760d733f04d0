"""Predict the error of a count by each personalized method, from levels and sizes alone.

People of each level are taken to satisfy the query independently with one probability, the
`share`: what levels say about records is not known beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.personalized.groups.optimizer import GroupVariance, drawing_rates
from dpublish.methods.personalized.groups.plan import Grouping, PlannedGroup, plan_rounds
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.levels import parse_levels
from dpublish.types import FloatArray

LEAST_SIZE = 500
MOST_ROUNDS = 3
_MOST_ROWS = 5  # thresholds that are compared, if there are many levels
_FAR = 80.0  # answers whose odds have fallen by this exponent do not matter


@dataclass(frozen=True)
class ExpectedCount:
    """What a method makes of a count.

    Attributes:
        method: Name of the method, and its choice.
        groups: Number of groups that publish.
        error: Root mean square error of the count.
        paid: What each level pays.
        is_scaled: Whether people stand for others, so that levels must say nothing about
            records.
    """

    method: str
    groups: int
    error: float
    paid: tuple[Fraction, ...]
    is_scaled: bool


@dataclass(frozen=True)
class Population:
    """Levels, what each may spend, how many people each has, and who is counted.

    >>> population = Population.of(["0.01", "0.2", "1"], [500, 3500, 6000])
    >>> [(each.method, round(each.error)) for each in population.compare()[:3]]
    [('minimum', 141), ('threshold 0.2', 14), ('threshold 1', 41)]
    """

    levels: tuple[Fraction, ...]
    amounts: tuple[Fraction, ...]
    sizes: tuple[int, ...]
    share: float

    @classmethod
    def of(
        cls,
        levels: Sequence[Fraction | str],
        sizes: Sequence[int],
        epsilon: Fraction | None = None,
        share: float = 0.5,
    ) -> "Population":
        """Let each level spend its part of `epsilon`, all it has if that is not given."""
        exact = parse_levels(levels)
        if len(sizes) != len(exact) or not sum(sizes):
            raise InvalidParameter("every level has a size, and some size must be above 0")
        for size in sizes:
            require_count(at_least=0, sizes=size)
        if not 0 <= share <= 1:
            raise InvalidParameter(f"share ({share}) must lie between 0 and 1")
        part = Fraction(1) if epsilon is None else epsilon / exact[-1]
        if not 0 < part <= 1:
            raise InvalidParameter("epsilon must be above 0, and no more than the largest level")
        return cls(exact, tuple(level * part for level in exact), tuple(sizes), share)

    @property
    def people(self) -> int:
        """Number of all people."""
        return sum(self.sizes)

    def compare(self, least_size: int = LEAST_SIZE) -> list[ExpectedCount]:
        """Predict the error of a count by every method.

        Of thresholds there is one for each level; of many levels, for some of them.
        """
        present = [level for level, size in zip(self.levels, self.sizes, strict=True) if size]
        chosen = present[:: max(1, ceil(len(present) / _MOST_ROWS))]
        upper = sorted({*chosen[1:], present[-1]} - {present[0]})
        sums = (level * size for level, size in zip(self.levels, self.sizes, strict=True))
        limits = {format_short(level): level for level in upper}
        mean = {"mean": sum(sums, Fraction(0)) / self.people}
        return [
            self._one_group("minimum", present[0]),
            *(self._one_group(f"threshold {t}", level) for t, level in limits.items()),
            *(
                self._one_group(f"sampling {t}", level, drawing=True)
                for t, level in (mean | limits).items()
            ),
            self._choice(),
            self._weighing(),
            self._one_group("partitioning, sum", present[0]),
            *self._weighted(least_size),
        ]

    def error(self, groups: Sequence[PlannedGroup]) -> float:
        """Predict the error of groups of which each stands for all people, by its weight.

        A person of level b then counts c = sum over groups of (N weight / drawn) if drawn, less
        the 1 that they should count.  With the share q, their part of the variance is
        q Var(c) + q (1 - q) E(c)^2; noise adds (N weight / drawn)^2 times its own variance.
        """
        sizes = np.array(self.sizes, dtype=np.float64)
        mean, drawn, noise = -np.ones(len(sizes)), np.zeros(len(sizes)), 0.0
        for group in groups:
            factor = self.people * group.weight / group.drawn
            positions, paid = list(group.members), np.array(group.pays, dtype=np.float64)
            rates = drawing_rates(paid, float(group.epsilon))
            mean[positions] += factor * rates
            drawn[positions] += factor**2 * rates * (1 - rates)
            noise += factor**2 * noise_variance(group.epsilon)
        by_person = self.share * drawn + self.share * (1 - self.share) * mean**2
        return sqrt(noise + float(sizes @ by_person))

    def _one_group(self, name: str, limit: Fraction, *, drawing: bool = False) -> ExpectedCount:
        """Predict the error of one group that spends what the level `limit` may.

        People below it are drawn, or left out.
        """
        epsilon = self.amounts[-1] / self.levels[-1] * limit
        members = tuple(b for b, level in enumerate(self.levels) if drawing or level >= limit)
        pays = tuple(min(self.amounts[member], epsilon) for member in members)
        sizes = np.array([self.sizes[member] for member in members], dtype=np.float64)
        rates = drawing_rates(np.array(pays, dtype=np.float64), float(epsilon))
        group = PlannedGroup(members, pays, epsilon, float(sizes.sum()), float(sizes @ rates))
        return self._expected(name, [group], is_scaled=group.drawn < self.people)

    def _weighted(self, least_size: int) -> list[ExpectedCount]:
        variance = GroupVariance(2.0, max(self.share * (1 - self.share), 1e-6))
        utility = Grouping(least_size=least_size, variance=variance, drawing=True)
        privacy = Grouping(objective="privacy", least_size=least_size, variance=variance)
        plans = {
            "partitioning, weighted": self._plan(utility, 1),
            "partitioning, weighted, privacy": self._plan(privacy, 1),
            "t-round": self._plan(utility, MOST_ROUNDS),
        }
        return [self._expected(name, plan, is_scaled=True) for name, plan in plans.items()]

    def _weighing(self) -> ExpectedCount:
        """Predict the error if each person counts by what they accept, up to the best limit."""
        sizes = np.array(self.sizes, dtype=np.float64)
        amounts = np.array(self.amounts, dtype=np.float64)
        of_one = self.share * (1 - self.share)
        errors = []
        for limit in amounts:
            weights = np.minimum(amounts, limit)
            whole = float(sizes @ weights)
            uneven = float(sizes @ np.square(weights)) / whole**2 - 1 / self.people
            errors.append(2 / whole**2 + of_one * max(uneven, 0.0))
        best = int(np.argmin(errors))
        paid = tuple(min(amount, self.amounts[best]) for amount in self.amounts)
        return ExpectedCount("weighting", 1, self.people * sqrt(errors[best]), paid, True)

    def _plan(self, grouping: Grouping, rounds: int) -> tuple[PlannedGroup, ...]:
        pairs = zip(self.amounts, self.sizes, strict=True)
        amounts = tuple(amount if size else Fraction(0) for amount, size in pairs)
        return plan_rounds(amounts, self.sizes, grouping, rounds)

    def _expected(
        self, name: str, groups: Sequence[PlannedGroup], *, is_scaled: bool
    ) -> ExpectedCount:
        paid = [Fraction(0)] * len(self.levels)
        for group in groups:
            for position, amount in zip(group.members, group.pays, strict=True):
                paid[position] += amount
        return ExpectedCount(name, len(groups), self.error(groups), tuple(paid), is_scaled)

    def _choice(self) -> ExpectedCount:
        """Predict the error of the personalized exponential mechanism.

        An answer that is off by j has odds of e^(-S(j) / 2), where S(j) adds up the j lowest
        amounts of people who would have to leave the count, or to join it.
        """
        weight, square = 1.0, 0.0
        for part in (self.share, 1 - self.share):
            odds = self._odds([round(part * size) for size in self.sizes])
            steps = np.arange(1, odds.size + 1, dtype=np.float64)
            weight += float(odds.sum())
            square += float(odds @ steps**2)
        return ExpectedCount("personalized-em", 1, sqrt(square / weight), self.amounts, False)

    def _odds(self, people: Sequence[int]) -> FloatArray:
        found = [np.empty(0)]
        exponent = 0.0
        for amount, size in zip(self.amounts, people, strict=True):
            if exponent > _FAR:
                break
            price = float(amount) / 2
            steps = min(size, ceil(_FAR / price))
            found.append(np.exp(-exponent - price * np.arange(1, steps + 1)))
            exponent += price * size
        return np.concatenate(found)
