"""Confidence intervals of means, variances and quantiles, valid for groups of any size.

A mean is a ratio of two noisy sums.  It is not approximated: the interval holds every mean m for
which sum - m * count, whose noise has a known distribution, is not too large (Fieller's way).
The same for a variance, with the mean unknown: a small part of the risk is spent on an interval
of the mean, the rest on the deviation from each mean in it.

Noise is taken for continuous Laplace noise, and what is added up in steps of a lattice is
allowed one step more for each draw: a geometric number and an exponential one that is rounded
down to it differ by less than 1.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import Terms, quantile
from dpublish.types import FloatArray

BoolArray = NDArray[np.bool_]
SURE = 0.999
"""A group whose count may be 0, with this confidence, has no known mean."""
_ROUNDS = 3  # each narrows the interval, and with it the noise that must be allowed for
_RATIOS = 64
_APART = 1.005  # sizes of weights are moved apart by so much, upwards
_MEAN_RISK = 0.2  # part of the risk that an interval of the variance spends on the mean


class Estimates(NamedTuple):
    """Numbers of some groups and the ends of their intervals."""

    values: FloatArray
    lows: FloatArray
    highs: FloatArray
    known: BoolArray
    """Whether a group has a value; where not, the interval is all that is possible."""


class NoiseOf(Protocol):
    """The distribution of weighted sums of the noise of a group's numbers."""

    def __call__(self, weights: FloatArray, risk: float) -> FloatArray:
        """Bound |sum| for each row of weights; it is larger with probability at most `risk`."""
        ...


# --- The noise of one group, or of several that are added up ---------------------------------


def group_noise(epsilon: Fraction, scale: int) -> NoiseOf:
    """Return the noise of numbers that each have Laplace noise of rate epsilon.

    They are what was published divided by `scale`.
    """

    def bound(weights: FloatArray, risk: float) -> FloatArray:
        steps = np.abs(weights).sum(axis=1) / scale
        return np.asarray(laplace_bound(weights, risk) / float(epsilon) + steps)

    return bound


def total_noise(epsilon: Fraction, scale: int, groups: int) -> NoiseOf:
    """Return the noise of the sums of the numbers of several groups."""
    rate = float(epsilon) / scale

    def bound(weights: FloatArray, risk: float) -> FloatArray:
        found = []
        for row in np.abs(weights):
            largest = float(row.max())
            # Rounded up, so that many sums share a distribution that takes long to compute.
            ratios = np.ceil(_RATIOS * row / max(largest, 1e-300)) / _RATIOS
            found.append(_bound(tuple(np.sort(ratios).tolist()), rate, groups, risk) * largest)
        return np.array(found) / scale

    return bound


@lru_cache(maxsize=4096)
def _bound(ratios: tuple[float, ...], rate: float, groups: int, risk: float) -> float:
    draws = np.array([ratio for ratio in ratios if ratio > 0])
    if not draws.size:
        return 0.0
    terms = Terms(draws, np.full(draws.size, rate), np.full(draws.size, float(groups)))
    return quantile(terms.merged(), 1 - risk)


def laplace_bound(weights: FloatArray, risk: float) -> FloatArray:
    """Bound |sum of weighted standard Laplace numbers| for each row of weights.

    With distinct weights P(|sum| > x) is a sum of exponentials.  Weights that are (nearly) equal
    are moved apart: a larger weight only makes the sum larger (more dispersed).

    >>> laplace_bound(np.array([[1.0, 0.0], [0.5, 0.5]]), 0.05).round(2)
    array([3.  , 2.06])
    """
    sizes = -np.sort(-np.abs(weights), axis=1)
    for column in range(sizes.shape[1] - 2, -1, -1):
        sizes[:, column] = np.maximum(sizes[:, column], _APART * sizes[:, column + 1])
    largest = np.maximum(sizes[:, :1], 1e-300)
    ratios = sizes / largest
    heights = _heights(ratios)
    low = np.zeros(len(ratios))
    high = np.full(len(ratios), ratios.shape[1] * log(ratios.shape[1] / risk) + 1.0)
    for _ in range(50):
        middle = (low + high) / 2
        beyond = _tail(heights, ratios, middle) > risk
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.asarray(high * largest[:, 0])


def _heights(ratios: FloatArray) -> FloatArray:
    """Weights of the exponentials: the product of w^2 / (w^2 - v^2) over the other sizes v."""
    heights = np.ones_like(ratios)
    count = ratios.shape[1]
    for i in range(count):
        for j in range(count):
            if i != j:
                gap = ratios[:, i] ** 2 - ratios[:, j] ** 2
                heights[:, i] *= np.where(
                    ratios[:, i] > 0, ratios[:, i] ** 2 / np.where(gap == 0, 1, gap), 0
                )
    return heights


def _tail(heights: FloatArray, ratios: FloatArray, limits: FloatArray) -> FloatArray:
    rates = 1 / np.maximum(ratios, 1e-12)
    return np.asarray((heights * np.exp(-limits[:, None] * rates)).sum(axis=1))


# --- Means and variances ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """Noisy sums of the parts of t and of their noise; a row for each group.

    `sums` divided by what one record adds: (1 - t, t) or ((1 - t)^2, 2 t (1 - t), t^2).
    """

    sums: FloatArray
    noise: NoiseOf

    @property
    def positions(self) -> FloatArray:
        """What t each of the sums stands for: their weighted sum is the sum of t."""
        return np.linspace(0.0, 1.0, self.sums.shape[1])

    @property
    def count(self) -> FloatArray:
        """Noisy number of records with a value."""
        return np.asarray(self.sums.sum(axis=1))

    @property
    def first(self) -> FloatArray:
        """Noisy sum of t."""
        return np.asarray(self.sums @ self.positions)

    def only(self, kept: BoolArray) -> "Moments":
        """Return some of the groups."""
        return Moments(self.sums[kept], self.noise)

    @property
    def known(self) -> BoolArray:
        """Which groups surely have a record with a value."""
        if not len(self.sums):
            return np.zeros(0, dtype=np.bool_)
        weights = np.ones((1, self.sums.shape[1]))
        return np.asarray(self.count > self.noise(weights, 1 - SURE)[0])


def mean_intervals(moments: Moments, confidence: float) -> Estimates:
    """Estimate the mean of t in each group."""
    known = moments.known
    values, lows, highs = np.full(known.size, np.nan), np.zeros(known.size), np.ones(known.size)
    some = moments.only(known)
    if known.any():
        values[known] = np.clip(some.first / some.count, 0, 1)
        lows[known], highs[known] = _mean_ends(some, 1 - confidence)
    return Estimates(values, lows, highs, known)


def _mean_ends(moments: Moments, risk: float) -> tuple[FloatArray, FloatArray]:
    """Find all means m with |sum of t - m * count| within its noise.

    The noise is bounded over an interval that holds all such m: each round narrows it.  If no
    mean is left, the sums are further off than the risk allows for; any interval will do.
    """
    count, first = moments.count, moments.first
    low, high = np.zeros(count.size), np.ones(count.size)
    for _ in range(_ROUNDS):
        apart = moments.positions[None, :]
        weights = np.maximum(np.abs(apart - low[:, None]), np.abs(apart - high[:, None]))
        noise = moments.noise(weights, risk)
        low, high = _narrow(low, high, (first - noise) / count, (first + noise) / count)
    return low, high


def _narrow(
    low: FloatArray, high: FloatArray, start: FloatArray, stop: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Keep what two intervals share; where that is nothing, the nearest point of the first."""
    return np.clip(start, low, high), np.clip(stop, low, high)


def variance_intervals(moments: Moments, confidence: float) -> Estimates:
    """Estimate the variance of t (of all values, not of a sample) in each group."""
    known = moments.known
    size = known.size
    values, lows, highs = np.full(size, np.nan), np.zeros(size), np.full(size, 0.25)
    some = moments.only(known)
    if known.any():
        mean = np.clip(some.first / some.count, 0, 1)
        values[known] = np.clip(_squares(some, mean) / some.count, 0, mean * (1 - mean))
        lows[known], highs[known] = _variance_ends(some, 1 - confidence)
    return Estimates(values, lows, highs, known)


def _squares(moments: Moments, mean: FloatArray) -> FloatArray:
    """Noisy sum of (t - mean)^2."""
    return np.asarray((moments.sums * _square_weights(mean)).sum(axis=1))


def _square_weights(mean: FloatArray) -> FloatArray:
    """Write (t - m)^2 in the three parts: m^2, -m (1 - m) and (1 - m)^2 of them."""
    return np.stack([mean**2, -mean * (1 - mean), (1 - mean) ** 2], axis=1)


def _variance_ends(moments: Moments, risk: float) -> tuple[FloatArray, FloatArray]:
    """Find all variances v with |sum of (t - m)^2 - v * count| within its noise, for some mean m.

    The mean lies between `first` and `last`, but for a part of the risk.  The sum of squares is
    least at the noisy mean and largest at an end; the noise is bounded as for the mean.
    """
    first, last = _mean_ends(moments, risk * _MEAN_RISK)
    count = moments.count
    nearest = np.clip(moments.first / count, first, last)
    least = _squares(moments, nearest)
    most = np.maximum(_squares(moments, first), _squares(moments, last))
    middle = np.clip(0.5, first, last)
    low, high = np.zeros(count.size), middle * (1 - middle)
    for _ in range(_ROUNDS):
        noise = moments.noise(_largest_weights(first, last, low, high), risk * (1 - _MEAN_RISK))
        low, high = _narrow(low, high, (least - noise) / count, (most + noise) / count)
    return low, high


def _largest_weights(
    first: FloatArray, last: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Bound the sizes of the weights of squares - v * count over means and variances."""
    middle = np.clip(0.5, first, last)
    candidates = [_square_weights(mean) for mean in (first, last, middle)]
    smallest, largest = np.minimum.reduce(candidates), np.maximum.reduce(candidates)
    sizes = np.maximum(np.abs(largest - low[:, None]), np.abs(smallest - high[:, None]))
    return np.asarray(sizes)


# --- Quantiles -------------------------------------------------------------------------------


def rank_distance(cells: int, rate: Fraction, risk: float) -> int:
    """Return how far from the wanted rank the ends of an interval aim, in steps of a score.

    A cell that lies beyond the quantile is at least so far below the best.  It shows heads with
    probability exp(-rate * distance) at most, and is then chosen with one half at most, since the
    best shows heads, too; all such cells together are chosen with probability `risk` at most.

    >>> rank_distance(4096, Fraction(1, 10), 0.025)
    114
    """
    return max(1, ceil(log(max(cells - 1, 2) / (2 * risk)) / float(rate)))
