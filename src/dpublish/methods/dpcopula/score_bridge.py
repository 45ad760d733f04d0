"""Between scores of cells and the correlation of normal variables behind them.

A column is thought of as a normal variable that was cut into cells.  A score per cell turns it
into a step function of that variable, and two columns' scores multiply to a mean that rises
with their correlation.  Expanding the step functions in Hermite polynomials gives this mean
exactly, ties or not:  E[g(X) h(Y)] = Σ ρ^r g_r h_r  for normal X, Y with correlation ρ.
"""

from collections.abc import Sequence
from functools import cache
from math import comb, inf, isinf, pi, sqrt

import numpy as np
from scipy.special import ndtri

from dpublish.types import FloatArray, IntArray

SCORE_UNIT = 1 << 14
"""A score of 1 as an integer."""
_TERMS = 120
_GRID = 801
_FARTHEST = 8.0  # standard deviations: what lies beyond has a probability below 1e-15
_STEEPNESSES = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, inf)


def score_table(probabilities: FloatArray, steepness: float) -> IntArray:
    """Score each cell by its rank: clip(steepness (2F - 1), -1, 1), F being its middle rank.

    Steepness 1 makes products of scores Spearman's statistic; infinite steepness leaves only
    on which side of the median a cell lies.  Scores are whole multiples of 1 / SCORE_UNIT.

    >>> score_table(np.array([0.25, 0.5, 0.25]), 1.0).tolist()
    [-12288, 0, 12288]
    """
    middle = np.cumsum(probabilities) - probabilities / 2
    centered = 2 * middle - 1
    if isinf(steepness):
        # The cell that holds the median leans to the side on which more of it lies.
        scores = np.sign(centered)
        np.divide(centered, probabilities, out=scores, where=np.abs(centered) < probabilities)
    else:
        scores = np.clip(steepness * centered, -1, 1)
    return np.asarray(np.rint(scores * SCORE_UNIT), dtype=np.int64)


def latent_correlation(
    products: FloatArray, tables: Sequence[IntArray], probabilities: Sequence[FloatArray]
) -> FloatArray:
    """Find the correlation at which each pair of columns has its mean product of scores.

    Args:
        products: Mean products of the pairs (0, 1), (0, 2), ..., in units of 1.
        tables: Scores of each column's cells.
        probabilities: Probabilities of each column's cells.
    """
    return correlation_of_terms(products, pair_terms(tables, probabilities))


def latent_slope(
    correlations: FloatArray, tables: Sequence[IntArray], probabilities: Sequence[FloatArray]
) -> FloatArray:
    """Say by how much each pair's mean product of scores rises per unit of correlation."""
    return slope_of_terms(correlations, pair_terms(tables, probabilities))


def pair_terms(tables: Sequence[IntArray], probabilities: Sequence[FloatArray]) -> FloatArray:
    """Expand each pair's mean product of scores in powers of the correlation: a row a pair."""
    first, second = np.triu_indices(len(tables), 1)
    terms = np.array([hermite_terms(t, c) for t, c in zip(tables, probabilities, strict=True)])
    return np.asarray(terms[first] * terms[second])


def correlation_of_terms(products: FloatArray, terms: FloatArray) -> FloatArray:
    """Find where each row of `terms`, a series in the correlation, has its product as value."""
    grid = np.sin(np.linspace(-pi / 2, pi / 2, _GRID))
    means = grid[:, None] ** np.arange(terms.shape[1]) @ terms.T
    rising = np.maximum.accumulate(means, axis=0)  # it rises but for what the last terms lack
    pairs = zip(products, rising.T, strict=True)
    return np.array([np.interp(product, mean, grid) for product, mean in pairs])


def slope_of_terms(correlations: FloatArray, terms: FloatArray) -> FloatArray:
    """Differentiate each row of `terms`, a series in the correlation."""
    orders = np.arange(1, terms.shape[1])
    powers = orders * correlations[:, None] ** (orders - 1)
    return np.asarray(np.einsum("pr,pr->p", powers, terms[:, 1:]))


def best_steepness(records: float, epsilon: float, columns: int) -> float:
    """Choose the steepness that makes independent columns' correlations most certain.

    Steep scores stand out better from the noise, flat ones use more of each record.
    """
    records = max(records, 1.0)
    noise = 2 * (comb(columns, 2) / epsilon / records) ** 2

    def uncertainty(steepness: float) -> float:
        square, slope = _moments(steepness)
        return (square**2 / records + noise) / slope**4

    return min(_STEEPNESSES, key=uncertainty)


@cache
def _moments(steepness: float) -> tuple[float, float]:
    """Give the mean square of a score of a normal variable and its covariance with it."""
    square = 1 - 2 / (3 * steepness) if not isinf(steepness) else 1.0
    probabilities = np.full(2000, 1 / 2000)
    table = score_table(probabilities, steepness)
    return square, float(hermite_terms(table, probabilities)[1])


def hermite_terms(table: IntArray, probabilities: FloatArray) -> FloatArray:
    """Expand a step function of a normal variable in normalized Hermite polynomials h_r.

    The integral of h_r times the density over an interval is what (density h_(r-1)) / sqrt(r)
    loses between its ends, so that only the steps between cells count.
    """
    scores = table / SCORE_UNIT
    edges = np.clip(np.cumsum(probabilities)[:-1], 0, 1)
    cuts = np.clip(ndtri(edges), -_FARTHEST, _FARTHEST)
    steps = np.diff(scores)
    weighted = np.exp(-cuts * cuts / 2) / sqrt(2 * pi)
    terms = np.empty(_TERMS)
    terms[0] = scores @ probabilities
    before = np.zeros_like(weighted)
    for order in range(1, _TERMS):
        terms[order] = steps @ weighted / sqrt(order)
        after = (cuts * weighted - sqrt(order - 1) * before) / sqrt(order)
        before, weighted = weighted, after
    return terms
