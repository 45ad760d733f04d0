"""A count asked of marginals joined by correlated normal variables: its mean, and what moves it.

A condition on a column weighs its leaves.  Seen from the normal variable behind the column
this is a step function, and the share of records that is asked for is the mean of a product
of such functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpublish.methods.dpcopula.normal_boxes import (
    POINTS,
    Steps,
    box_probabilities,
    condition,
    expected_products,
)
from dpublish.methods.dpcopula.rows import LeafDistribution
from dpublish.types import FloatArray, IntArray

_FEWER_POINTS = 512  # for what only serves confidence intervals


class Runs(NamedTuple):
    """A step function of one normal variable: neighboring runs of constant weight."""

    lower: FloatArray
    upper: FloatArray
    weights: FloatArray


class Cuts(NamedTuple):
    """Where a column's weights change: after which leaves, and by how much they fall there."""

    leaves: NDArray[np.intp]
    falls: FloatArray


@dataclass(frozen=True, eq=False)
class Question:
    """Weights of the leaves of several columns, of which every record counts the product.

    Attributes:
        matrix: Correlations of the normal variables behind the columns.
        distributions: Probabilities of each column's leaves.
        weights: Weight of each leaf of each column, special ones last.
    """

    matrix: FloatArray
    distributions: Sequence[LeafDistribution]
    weights: Sequence[FloatArray]

    @cached_property
    def steps(self) -> Steps:
        """The product of step functions whose mean is asked for."""
        pairs = zip(self.distributions, self.weights, strict=True)
        return join_runs([weight_runs(distribution, weights) for distribution, weights in pairs])

    @cached_property
    def share(self) -> float:
        """Mean of the product: the share of all records, each counted by its weight."""
        return float(expected_products(self.matrix, self.steps, POINTS)[0])

    def influence(self, which: int, least: float) -> FloatArray:
        """Say how the share moves with the part of records in each leaf of one column.

        The answer is centered: its mean over the column's probabilities is 0.  Moving a cut of the
        column moves the share by how likely the other columns are in the box, given that
        the normal variable is at the cut.  `least` is a probability below which no end of a leaf
        is taken to be: published probabilities of 0 are not quite so.
        """
        distribution, weights = self.distributions[which], self.weights[which]
        cuts = _cuts(distribution, weights)
        places = ndtri(np.clip(distribution.reached[cuts.leaves], least, 1 - least))
        moved = np.zeros(distribution.ordinary)
        moved[cuts.leaves] = cuts.falls * self._given(which, places)
        inside, anywhere = self._with_and_without(which)
        found = np.empty(distribution.probabilities.size)
        found[: distribution.ordinary] = (
            inside - moved @ distribution.reached + np.cumsum(moved[::-1])[::-1]
        )
        found[distribution.ordinary :] = weights[distribution.ordinary :] * anywhere
        return found - self.share

    def share_under(self, matrix: FloatArray) -> float:
        """Find the share under other correlations, as accurately as intervals need."""
        return float(expected_products(matrix, self.steps, _FEWER_POINTS)[0])

    def _given(self, fixed: int, places: FloatArray) -> FloatArray:
        """Find the mean product over the other columns, given one normal variable."""
        if len(places) == 0:
            return np.empty(0)
        matrix, steps = condition(self.matrix, self.steps.repeat(len(places)), fixed, places)
        return expected_products(matrix, steps, _FEWER_POINTS)

    def _with_and_without(self, which: int) -> tuple[float, float]:
        """Find the share among records with an ordinary leaf in a column, and without it."""
        distribution = self.distributions[which]
        if distribution.special == 0 and distribution.probabilities.size == distribution.ordinary:
            return self.share, self.share
        listed = LeafDistribution(distribution.ordinary_probabilities, distribution.ordinary)
        distributions, weights = list(self.distributions), list(self.weights)
        distributions[which], weights[which] = listed, weights[which][: distribution.ordinary]
        inside = Question(self.matrix, distributions, weights).share
        weights[which] = np.ones(distribution.ordinary)
        return inside, Question(self.matrix, distributions, weights).share


def weight_runs(distribution: LeafDistribution, weights: FloatArray) -> Runs:
    """Turn the weights of a column's leaves into a step function of its normal variable.

    A special leaf may take the place of any other, so it adds its weight everywhere.
    """
    seen = (1 - distribution.special) * weights[: distribution.ordinary]
    seen = seen + float(
        weights[distribution.ordinary :] @ distribution.probabilities[distribution.ordinary :]
    )
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(seen)) + 1])
    lasts = np.append(firsts[1:], distribution.ordinary) - 1
    lower, upper = distribution.starts[firsts], distribution.ends[lasts]
    kept = (seen[firsts] != 0) & (lower < upper)
    return Runs(lower[kept], upper[kept], seen[firsts][kept])


def join_runs(functions: Sequence[Runs]) -> Steps:
    """Put the step functions of one product into arrays of one shape."""
    most = max(1, *(len(runs.weights) for runs in functions))
    shape = (1, len(functions), most)
    steps = Steps(np.full(shape, inf), np.full(shape, inf), np.zeros(shape))
    for which, runs in enumerate(functions):
        for part, values in zip(steps, runs, strict=True):
            part[0, which, : len(values)] = values
    return steps


def box_shares(
    matrix: FloatArray, distributions: Sequence[LeafDistribution], lows: IntArray, highs: IntArray
) -> FloatArray:
    """Find the share of records in each of many boxes of leaves, `low <= leaf < high`."""
    lower, upper = (
        np.stack(
            [_end(distribution, sides[:, j]) for j, distribution in enumerate(distributions)],
            axis=1,
        )
        for sides in (lows, highs)
    )
    if not any(distribution.special for distribution in distributions):
        return box_probabilities(matrix, lower, upper)
    aside = np.stack(
        [
            _special_between(distribution, lows[:, j], highs[:, j])
            for j, distribution in enumerate(distributions)
        ],
        axis=1,
    )
    inside = aside + [1 - distribution.special for distribution in distributions]
    far = np.full_like(lower, inf)
    # Below, within and above the box: a special leaf counts wherever the normal variable is.
    steps = Steps(
        np.stack([-far, lower, upper], axis=2),
        np.stack([lower, upper, far], axis=2),
        np.stack([aside, inside, aside], axis=2),
    )
    return expected_products(matrix, steps)


def _end(distribution: LeafDistribution, leaves: IntArray) -> FloatArray:
    """Find where the normal variable leaves the leaves before each of `leaves`."""
    return np.concatenate([[-inf], distribution.ends])[np.minimum(leaves, distribution.ordinary)]


def _special_between(distribution: LeafDistribution, lows: IntArray, highs: IntArray) -> FloatArray:
    sums = np.concatenate([[0.0], np.cumsum(distribution.probabilities[distribution.ordinary :])])
    first, last = (np.maximum(sides - distribution.ordinary, 0) for sides in (lows, highs))
    return np.asarray(sums[last] - sums[first])


def _cuts(distribution: LeafDistribution, weights: FloatArray) -> Cuts:
    falls = -np.diff(weights[: distribution.ordinary])
    leaves = np.flatnonzero(falls)
    return Cuts(leaves, falls[leaves])
