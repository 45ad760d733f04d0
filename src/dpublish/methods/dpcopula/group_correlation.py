"""Correlations inside groups, read from sums of products of each group's own scores.

Every group has its own marginals, so its own scores, but all share the correlations of the
normal variables behind them.  The sum of products over all records is then the sum of what
each group gives, and rises with the correlation as each of them does.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.mechanisms.exact.lattice import LatticeValues
from dpublish.methods.dpcopula.correlation_repair import pair_matrix, repair_correlation
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation
from dpublish.methods.dpcopula.rows import LeafDistribution
from dpublish.methods.dpcopula.score_bridge import (
    SCORE_UNIT,
    correlation_of_terms,
    hermite_terms,
    score_table,
    slope_of_terms,
)
from dpublish.methods.dpcopula.shrinkage import shrunk
from dpublish.types import FloatArray, IntArray

Distributions = Sequence[Sequence[LeafDistribution]]

_FLATTEST = 1e-9


class GroupReading(NamedTuple):
    """Correlations of the normal variables, and their standard deviations due to noise."""

    matrix: FloatArray
    spread: FloatArray


def group_scores(distributions: Distributions, steepness: float) -> tuple[IntArray, ...]:
    """Score the leaves of each column, a row for each group; special leaves have 0."""
    return tuple(
        np.stack([_padded(distribution, steepness) for distribution in column])
        for column in zip(*distributions, strict=True)
    )


def read_correlation(
    correlation: NoisyCorrelation, distributions: Distributions, sizes: FloatArray
) -> GroupReading:
    """Find the correlations at which the groups together have the published sums.

    Args:
        correlation: Noisy sums of products of scores.
        distributions: For each group, the probabilities of the leaves from which its scores were
        made.
        sizes: Number of records of each group, noisy.
    """
    columns = len(correlation.columns)
    sizes = np.maximum(sizes, 0)
    scale = max(float(sizes.sum()), 1.0) * SCORE_UNIT**2
    products = LatticeValues(correlation.units, correlation.exponent).values / scale
    noise = sqrt(noise_variance(correlation.rate)) * float(np.ldexp(1.0, correlation.exponent))
    terms = _pair_terms(distributions, sizes, float(correlation.settings["steepness"]))
    found = correlation_of_terms(products, terms)
    # Noise alone can carry an estimate to where it seems certain, so 0 is looked at, too.
    slopes = np.minimum(slope_of_terms(found, terms), terms[:, 1])
    spread = pair_matrix(noise / scale / np.maximum(slopes, _FLATTEST), columns, 0)
    matrix = repair_correlation(shrunk(pair_matrix(found, columns, 1), spread))
    return GroupReading(matrix, spread)


def _padded(distribution: LeafDistribution, steepness: float) -> IntArray:
    scores = score_table(distribution.ordinary_probabilities, steepness)
    return np.pad(scores, (0, distribution.probabilities.size - distribution.ordinary))


def _pair_terms(distributions: Distributions, sizes: FloatArray, steepness: float) -> FloatArray:
    """Expand each pair's mean product of scores in powers of the correlation.

    Each group counts by its part of the records that have ordinary leaves in both columns.
    """
    first, second = np.triu_indices(len(distributions[0]), 1)
    parts = sizes / max(float(sizes.sum()), 1.0)
    groups = []
    for part, row in zip(parts, distributions, strict=True):
        probabilities = [distribution.ordinary_probabilities for distribution in row]
        each = np.array([hermite_terms(score_table(x, steepness), x) for x in probabilities])
        each *= np.array([1 - distribution.special for distribution in row])[:, None]
        groups.append(part * each[first] * each[second])
    return np.asarray(np.sum(groups, axis=0))
