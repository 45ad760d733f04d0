"""A Gaussian copula: marginals joined by correlated normal variables.

Behind each column is a normal variable that chooses among its values by the marginal.  Rows are
drawn from these variables.  A condition on a column weights its values, which is a step function
of the normal variable; the share of records that a query counts is the mean of a product of such
functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpublish.methods.dpcopula.multivariate_normal import (
    POINTS,
    Steps,
    box_probabilities,
    condition,
    expected_products,
)
from dpublish.types import FloatArray, IntArray

_FEWER_POINTS = 512  # for what only serves confidence intervals


@dataclass(frozen=True, eq=False)
class ValueDistribution:
    """The probabilities of a column's values, of which the first `listed` have an order.

    A normal variable behind the column chooses among the listed values.  Whether a special
    value (unlisted, missing) replaces its choice is independent of everything else.
    """

    probabilities: FloatArray
    listed: int

    @property
    def special(self) -> float:
        """Probability of all special values."""
        return float(self.probabilities[self.listed :].sum())

    @property
    def kept(self) -> float:
        """Probability of all listed values."""
        return min(float(self.probabilities[: self.listed].sum()), 1.0)

    def pad(self, table: IntArray, filler: int) -> IntArray:
        """Extend a table of the listed values by a `filler` for each special one."""
        special = self.probabilities.size - self.listed
        return np.pad(table, (0, special), constant_values=filler)

    @cached_property
    def listed_probabilities(self) -> FloatArray:
        """Probabilities among the listed values, adding up to 1; uniform if all are 0."""
        listed = self.probabilities[: self.listed]
        total = listed.sum()
        return listed / total if total > 0 else np.full(self.listed, 1 / self.listed)

    @cached_property
    def cumulative(self) -> FloatArray:
        """Cumulative probability among the listed values, each included."""
        sums = np.cumsum(self.listed_probabilities)
        return np.asarray(sums / sums[-1])  # the last is 1 in spite of rounding

    @cached_property
    def ends(self) -> FloatArray:
        """Value of the normal variable up to which each listed value is chosen."""
        return np.asarray(ndtri(self.cumulative))

    @cached_property
    def starts(self) -> FloatArray:
        """Value of the normal variable beyond which each listed value is chosen."""
        return np.concatenate([[-inf], self.ends[:-1]])

    def choose(self, normals: FloatArray, rng: np.random.Generator) -> IntArray:
        """Turn values of the normal variable into codes.

        The first value whose end is not exceeded is chosen, so one of probability 0 never is.
        """
        codes = np.searchsorted(self.ends, normals, side="left").astype(np.int64)
        if self.special > 0:
            replaced = np.flatnonzero(rng.random(normals.size) < self.special)
            sums = np.cumsum(self.probabilities[self.listed :])
            part = (1 - rng.random(replaced.size)) * sums[-1]  # above 0, up to all of it
            codes[replaced] = self.listed + np.searchsorted(sums, part, side="left")
        return codes


def draw_codes(
    matrix: FloatArray,
    distributions: Mapping[str, ValueDistribution],
    n: int,
    rng: np.random.Generator,
) -> dict[str, IntArray]:
    """Draw the codes of `n` rows.

    Args:
        matrix: Correlations of the normal variables behind the columns, positive definite.
        distributions: Probabilities of each column's values, in the order of the matrix.
        n: Number of rows.
        rng: Source of the draws; rows are post-processing, so it need not be secure.
    """
    normals = np.linalg.cholesky(matrix) @ rng.standard_normal((len(matrix), n))
    pairs = zip(distributions.items(), normals, strict=True)
    return {name: distribution.choose(values, rng) for (name, distribution), values in pairs}


class Runs(NamedTuple):
    """A step function of one normal variable: neighboring runs of constant weight."""

    lower: FloatArray
    upper: FloatArray
    weights: FloatArray


class Cuts(NamedTuple):
    """Where a column's weights change: after which values, and by how much they fall there."""

    codes: NDArray[np.intp]
    falls: FloatArray


@dataclass(frozen=True, eq=False)
class CopulaQuery:
    """Weights of the values of several columns, of which every record counts the product.

    Attributes:
        matrix: Correlations of the normal variables behind the columns.
        distributions: Probabilities of each column's values.
        weights: Weight of each value of each column, special ones last.
    """

    matrix: FloatArray
    distributions: Sequence[ValueDistribution]
    weights: Sequence[FloatArray]

    @cached_property
    def steps(self) -> Steps:
        """The product of step functions whose mean is the share."""
        pairs = zip(self.distributions, self.weights, strict=True)
        return join_runs([weight_runs(distribution, weights) for distribution, weights in pairs])

    @cached_property
    def share(self) -> float:
        """Mean of the product: the share of all records, each counted by its weight."""
        return float(expected_products(self.matrix, self.steps, POINTS)[0])

    def influence(self, which: int, least: float) -> FloatArray:
        """Differentiate the share by the part of records in each value of one column.

        The answer is centered: its mean over the column's probabilities is 0.  Moving a cut of
        the column changes the share by the probability that the other columns are in the box,
        given that the normal variable is at the cut.  Cumulative probabilities are kept between
        `least` and 1 - `least`: a published probability of 0 is not quite 0.
        """
        distribution, weights = self.distributions[which], self.weights[which]
        cuts = _cuts(distribution, weights)
        points = ndtri(np.clip(distribution.cumulative[cuts.codes], least, 1 - least))
        moved = np.zeros(distribution.listed)
        moved[cuts.codes] = cuts.falls * self._given(which, points)
        inside, anywhere = self._with_and_without(which)
        found = np.empty(distribution.probabilities.size)
        found[: distribution.listed] = (
            inside - moved @ distribution.cumulative + np.cumsum(moved[::-1])[::-1]
        )
        found[distribution.listed :] = weights[distribution.listed :] * anywhere
        return found - self.share

    def share_under(self, matrix: FloatArray) -> float:
        """Find the share under other correlations, as accurately as intervals need."""
        return float(expected_products(matrix, self.steps, _FEWER_POINTS)[0])

    def _given(self, fixed: int, points: FloatArray) -> FloatArray:
        """Find the mean product over the other columns, given one normal variable."""
        if len(points) == 0:
            return np.empty(0)
        matrix, steps = condition(self.matrix, self.steps.repeat(len(points)), fixed, points)
        return expected_products(matrix, steps, _FEWER_POINTS)

    def _with_and_without(self, which: int) -> tuple[float, float]:
        """Find the share among records with a listed value in a column, and without it."""
        distribution = self.distributions[which]
        if distribution.special == 0 and distribution.probabilities.size == distribution.listed:
            return self.share, self.share
        listed = ValueDistribution(distribution.listed_probabilities, distribution.listed)
        distributions, weights = list(self.distributions), list(self.weights)
        distributions[which], weights[which] = listed, weights[which][: distribution.listed]
        inside = CopulaQuery(self.matrix, distributions, weights).share
        weights[which] = np.ones(distribution.listed)
        return inside, CopulaQuery(self.matrix, distributions, weights).share


def weight_runs(distribution: ValueDistribution, weights: FloatArray) -> Runs:
    """Turn the weights of a column's values into a step function of its normal variable.

    A special value may replace any other, so it adds its weight everywhere.
    """
    seen = (1 - distribution.special) * weights[: distribution.listed]
    seen = seen + float(
        weights[distribution.listed :] @ distribution.probabilities[distribution.listed :]
    )
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(seen)) + 1])
    lasts = np.append(firsts[1:], distribution.listed) - 1
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
    matrix: FloatArray, distributions: Sequence[ValueDistribution], lows: IntArray, highs: IntArray
) -> FloatArray:
    """Find the share of records in each of many boxes of codes, `low <= code < high`."""
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
    # Below, within and above the box: a special value counts wherever the normal variable is.
    steps = Steps(
        np.stack([-far, lower, upper], axis=2),
        np.stack([lower, upper, far], axis=2),
        np.stack([aside, inside, aside], axis=2),
    )
    return expected_products(matrix, steps)


def _end(distribution: ValueDistribution, codes: IntArray) -> FloatArray:
    """Find the value of the normal variable at which each of `codes` begins."""
    return np.concatenate([[-inf], distribution.ends])[np.minimum(codes, distribution.listed)]


def _special_between(
    distribution: ValueDistribution, lows: IntArray, highs: IntArray
) -> FloatArray:
    sums = np.concatenate([[0.0], np.cumsum(distribution.probabilities[distribution.listed :])])
    first, last = (np.maximum(sides - distribution.listed, 0) for sides in (lows, highs))
    return np.asarray(sums[last] - sums[first])


def _cuts(distribution: ValueDistribution, weights: FloatArray) -> Cuts:
    falls = -np.diff(weights[: distribution.listed])
    codes = np.flatnonzero(falls)
    return Cuts(codes, falls[codes])
