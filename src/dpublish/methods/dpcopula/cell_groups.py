"""Cells of some columns in groups, with the marginals of other columns in each group.

Every group has its own marginals, so its own scores, but all share the correlations of the
normal variables behind them.  The sum of products over all records is then the sum of what
each group gives, and rises with the correlation as each of them does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from typing import NamedTuple

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.projection import project_nonnegative
from dpublish.core.released import is_same
from dpublish.data.axis import Axis
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.lattice import LatticeValues
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.correlation import (
    NoisyCorrelation,
    pair_matrix,
    repair_correlation,
    shrink,
)
from dpublish.methods.dpcopula.gaussian_copula import ValueDistribution
from dpublish.methods.dpcopula.latent_correlation import (
    SCORE_UNIT,
    correlation_of_terms,
    hermite_terms,
    score_table,
    slope_of_terms,
)
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.types import FloatArray, IntArray

Distributions = Sequence[Sequence[ValueDistribution]]
"""For each group, the distribution of each column."""
_FLATTEST = 1e-9


@dataclass(frozen=True, eq=False)
class CellGroups:
    """Noisy counts of all cells of `categories`, and marginals of `numbers` in groups of cells.

    Each cell that was kept is a group of its own, in the order of cells; all other cells
    together are the last group, if there are any.

    Attributes:
        categories: Axes of the cells, the last counting fastest, all at their finest level.
        numbers: Axes of the other columns, at their finest level.
        counts: Noisy count of every cell.
        rate: Rate of their noise.
        kept: Numbers of the cells that are groups of their own.
        marginals: For each group the marginals of `numbers`, in their order.
    """

    categories: tuple[Axis, ...]
    numbers: tuple[Axis, ...]
    counts: IntArray
    rate: Fraction
    kept: IntArray
    marginals: tuple[tuple[NoisyMarginal, ...], ...]

    def __post_init__(self) -> None:
        """Refuse what no method would publish: it may come from anywhere."""
        require_rate(self.rate)
        names = [axis.column for axis in (*self.categories, *self.numbers)]
        if not self.categories or len(set(names)) < len(names):
            raise InvalidParameter("cells need at least one column, and every column comes once")
        if self.counts.dtype != np.int64 or self.counts.shape != (prod(self.shape),):
            raise InvalidParameter("there must be an integer noisy count for every cell")
        _require_kept(self.kept, self.counts.size)
        if len(self.marginals) != self.groups:
            raise InvalidParameter("there must be marginals for every group of cells")
        sizes = [axis.size for axis in self.numbers]
        if any([marginal.leaves for marginal in row] != sizes for row in self.marginals):
            raise InvalidParameter("each group has a marginal of every column, with all its values")

    def __eq__(self, other: object) -> bool:
        return is_same(self, other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis of the cells."""
        return tuple(axis.size for axis in self.categories)

    @cached_property
    def group_of(self) -> IntArray:
        """Group of each cell."""
        return groups_of_cells(self.kept, self.counts.size)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return self.kept.size + (self.kept.size < self.counts.size)

    @cached_property
    def sizes(self) -> FloatArray:
        """Estimate of the number of records of each group; it may be negative.

        Cells and marginals each give one, unbiased; they are weighted by inverse variance.
        """
        return self._evidence[0]

    @property
    def records(self) -> float:
        """Estimate of the number of all records."""
        return max(float(self.sizes.sum()), 0.0)

    @property
    def records_deviation(self) -> float:
        """Standard deviation that noise gives the number of records, before it is cut at 0."""
        return sqrt(float(self._evidence[1].sum()))

    @cached_property
    def _evidence(self) -> tuple[FloatArray, FloatArray]:
        """Estimates of the groups' sizes, and their variances."""
        cells = np.bincount(self.group_of, minlength=self.groups)
        totals = [np.bincount(self.group_of, weights=self.counts, minlength=self.groups)]
        variances = [cells * noise_variance(self.rate)]
        for j in range(len(self.numbers)):
            totals.append(np.array([row[j].total for row in self.marginals]))
            variances.append(np.array([row[j].total_variance for row in self.marginals]))
        precisions = 1 / np.maximum(variances, 1e-9)
        found = precisions.sum(axis=0)
        return (precisions * totals).sum(axis=0) / found, 1 / found

    @cached_property
    def estimates(self) -> FloatArray:
        """Counts of all cells that could be real: not negative, each group adding up."""
        found = np.zeros(self.counts.size)
        found[self.kept] = np.maximum(self.sizes[: self.kept.size], 0)
        if self.groups > self.kept.size:
            rest = self.group_of == self.kept.size
            found[rest] = project_nonnegative(self.counts[rest], float(self.sizes[-1]))
        return found

    @cached_property
    def distributions(self) -> tuple[tuple[ValueDistribution, ...], ...]:
        """For each group, the probabilities of each column's values."""
        listed = [axis.ordinary_leaves for axis in self.numbers]
        return tuple(
            tuple(ValueDistribution(m.probabilities, n) for m, n in zip(row, listed, strict=True))
            for row in self.marginals
        )

    def box_masses(self, lows: IntArray, highs: IntArray) -> FloatArray:
        """Add up the estimates of each group's cells in each of many boxes of codes."""
        kept = np.stack(np.unravel_index(self.kept, self.shape), axis=1)
        masses = np.zeros((len(lows), self.groups))
        inside = ((lows[:, None] <= kept) & (kept < highs[:, None])).all(axis=2)
        masses[:, : self.kept.size] = inside * self.estimates[self.kept]
        if self.groups > self.kept.size:
            rest = np.where(self.group_of == self.kept.size, self.estimates, 0)
            cube = rest.reshape(self.shape)
            for box, ends in enumerate(zip(lows, highs, strict=True)):
                part = tuple(slice(low, high) for low, high in zip(*ends, strict=True))
                masses[box, -1] = cube[part].sum()
        return masses


def groups_of_cells(kept: IntArray, cells: int) -> IntArray:
    """Number the groups: each kept cell is one, all others are the last.

    >>> groups_of_cells(np.array([1, 3]), 5)
    array([2, 0, 2, 1, 2])
    """
    found = np.full(cells, kept.size, dtype=np.int64)
    found[kept] = np.arange(kept.size)
    return found


def _require_kept(kept: IntArray, cells: int) -> None:
    inside = kept.size == 0 or (kept[0] >= 0 and kept[-1] < cells)
    if kept.dtype != np.int64 or kept.ndim != 1 or not inside or np.any(np.diff(kept) <= 0):
        raise InvalidParameter("the cells that were kept must be listed in order, each once")


# --- Correlations inside groups -------------------------------------------------------------------


class GroupReading(NamedTuple):
    """Correlations of the normal variables, and their standard deviations due to noise."""

    matrix: FloatArray
    deviations: FloatArray


def group_scores(distributions: Distributions, steepness: float) -> tuple[IntArray, ...]:
    """Score the values of each column, a row for each group; special values have 0."""
    return tuple(
        np.stack([x.pad(score_table(x.listed_probabilities, steepness), 0) for x in column])
        for column in zip(*distributions, strict=True)
    )


def read_group_correlation(
    correlation: NoisyCorrelation, distributions: Distributions, sizes: FloatArray
) -> GroupReading:
    """Find the correlations at which the groups together have the published sums.

    Args:
        correlation: Noisy sums of products of scores.
        distributions: For each group, the distributions from which its scores were made.
        sizes: Number of records of each group, noisy.
    """
    columns = len(correlation.columns)
    sizes = np.maximum(sizes, 0)
    scale = max(float(sizes.sum()), 1.0) * SCORE_UNIT**2
    products = LatticeValues(correlation.units, correlation.exponent).values / scale
    noise = sqrt(noise_variance(correlation.rate)) * float(np.ldexp(1.0, correlation.exponent))
    terms = _group_terms(distributions, sizes, float(correlation.settings["steepness"]))
    found = correlation_of_terms(products, terms)
    # Noise alone can move an estimate to where the slope is large; so the slope at 0 counts, too.
    slopes = np.minimum(slope_of_terms(found, terms), terms[:, 1])
    deviations = pair_matrix(noise / scale / np.maximum(slopes, _FLATTEST), columns, 0)
    matrix = repair_correlation(shrink(pair_matrix(found, columns, 1), deviations))
    return GroupReading(matrix, deviations)


def _group_terms(distributions: Distributions, sizes: FloatArray, steepness: float) -> FloatArray:
    """Expand each pair's mean product of scores in powers of the correlation.

    Each group counts by its part of the records that have listed values in both columns.
    """
    first, second = np.triu_indices(len(distributions[0]), 1)
    parts = sizes / max(float(sizes.sum()), 1.0)
    groups = []
    for part, row in zip(parts, distributions, strict=True):
        probabilities = [distribution.listed_probabilities for distribution in row]
        each = np.array([hermite_terms(score_table(x, steepness), x) for x in probabilities])
        each *= np.array([1 - distribution.special for distribution in row])[:, None]
        groups.append(part * each[first] * each[second])
    return np.asarray(np.sum(groups, axis=0))
