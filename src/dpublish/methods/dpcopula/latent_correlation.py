"""From a statistic of two columns to the correlation of the normal variables behind them.

A column is modeled as a normal variable that was cut into cells.  Two statistics are inverted:

- Products of scores (Spearman).  A score per cell is a step function of the variable, and the
  mean product of two columns' scores rises with their correlation.  Expanding the step functions
  in Hermite polynomials gives this mean exactly, ties or not:
  E[g(X) h(Y)] = sum of rho^r g_r h_r for normal X, Y with correlation rho.
- Kendall's tau of classes of cells.  The probabilities of pairs of classes are sums of
  rho^r u_r v_r', where u_r holds the integrals of the r-th Hermite polynomial over one column's
  classes.  Tau, with ties as neither, is a quadratic form in them: the sum of
  rho^(r+s) (u_r' D u_s) (v_r' D v_s), where D holds the signs of differences of classes.

Either way the statistic is a series in the correlation, which `correlation_of_terms` inverts.
"""

from collections.abc import Sequence
from functools import cache
from math import comb, inf, isinf, pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpublish.types import FloatArray, IntArray

SCORE_UNIT = 1 << 14
"""A score of 1 as an integer."""
_SCORE_TERMS = 120
_TAU_TERMS = 80
MOST_CLASSES = 128
"""Most classes of a column whose pairs of records are compared."""
_GRID = 801
_FARTHEST = 8.0  # standard deviations: what lies beyond has a probability below 1e-15
_STEEPNESSES = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, inf)


def score_table(probabilities: FloatArray, steepness: float) -> IntArray:
    """Score each cell by its rank: clip(steepness (2F - 1), -1, 1), F being its middle rank.

    Steepness 1 makes products of scores Spearman's statistic; infinite steepness keeps only
    the side of the median on which a cell lies.  Scores are integer multiples of
    1 / SCORE_UNIT.

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


def pair_terms(tables: Sequence[IntArray], probabilities: Sequence[FloatArray]) -> FloatArray:
    """Expand each pair's mean product of scores in powers of the correlation: a row a pair.

    Args:
        tables: Scores of each column's cells.
        probabilities: Probabilities of each column's cells.
    """
    first, second = np.triu_indices(len(tables), 1)
    terms = np.array([hermite_terms(t, c) for t, c in zip(tables, probabilities, strict=True)])
    return np.asarray(terms[first] * terms[second])


def correlation_of_terms(values: FloatArray, terms: FloatArray) -> FloatArray:
    """Find the correlation at which each row of `terms`, a series in it, has the given value.

    A value that no correlation gives is moved to the nearest one.
    """
    grid = np.sin(np.linspace(-pi / 2, pi / 2, _GRID))
    means = grid[:, None] ** np.arange(terms.shape[1]) @ terms.T
    rising = np.maximum.accumulate(means, axis=0)  # it rises but for what the last terms lack
    pairs = zip(values, rising.T, strict=True)
    return np.array([np.interp(value, mean, grid) for value, mean in pairs])


def slope_of_terms(correlations: FloatArray, terms: FloatArray) -> FloatArray:
    """Differentiate each row of `terms`, a series in the correlation."""
    orders = np.arange(1, terms.shape[1])
    powers = orders * correlations[:, None] ** (orders - 1)
    return np.asarray(np.einsum("pr,pr->p", powers, terms[:, 1:]))


def best_steepness(records: float, epsilon: float, columns: int) -> float:
    """Choose the steepness that makes independent columns' correlations most certain.

    Steep scores have a larger signal against the noise; flat ones use more of each record.
    """
    records = max(records, 1.0)
    noise = 2 * (comb(columns, 2) / epsilon / records) ** 2

    def uncertainty(steepness: float) -> float:
        square, slope = _moments(steepness)
        return (square**2 / records + noise) / slope**4

    return min(_STEEPNESSES, key=uncertainty)


@cache
def _moments(steepness: float) -> tuple[float, float]:
    """Return the mean square of a score of a normal variable and its covariance with it."""
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
    terms = np.empty(_SCORE_TERMS)
    terms[0] = scores @ probabilities
    before = np.zeros_like(weighted)
    for order in range(1, _SCORE_TERMS):
        terms[order] = steps @ weighted / sqrt(order)
        after = (cuts * weighted - sqrt(order - 1) * before) / sqrt(order)
        before, weighted = weighted, after
    return terms


# --- Kendall's tau ------------------------------------------------------------------------------


def class_of_values(probabilities: FloatArray, most: int) -> IntArray:
    """Put neighboring values into at most `most` classes of nearly equal probability.

    >>> class_of_values(np.array([0.1, 0.1, 0.5, 0.1, 0.1, 0.1]), 4).tolist()
    [0, 0, 1, 2, 3, 3]
    """
    if probabilities.size <= most:
        return np.arange(probabilities.size)
    middle = np.cumsum(probabilities) - probabilities / 2
    classes = np.clip((middle * most).astype(np.int64), 0, most - 1)
    return np.asarray(np.unique(np.maximum.accumulate(classes), return_inverse=True)[1])


class ClassedColumn(NamedTuple):
    """What tau depends on of a column."""

    forms: FloatArray
    """u_r' D u_s for all r, s."""
    edges: FloatArray
    """Where the classes end, as parts of all records, but for the last."""
    ties: float
    """Probability that two records are of one class."""


def classed_column(probabilities: FloatArray, most: int) -> ClassedColumn:
    """Cut a normal variable into the classes of a column with these probabilities of values."""
    classes = np.zeros(probabilities.size)
    np.add.at(classes, class_of_values(probabilities, most), probabilities)
    classes = classes[: max(most, 1)]
    edges = np.clip(np.cumsum(classes)[:-1], 0, 1)
    integrals = _integrals(classes, edges)
    before = np.cumsum(integrals, axis=1)
    signed = 2 * before - integrals - before[:, -1:]
    return ClassedColumn(signed @ integrals.T, edges, float((classes**2).sum()))


def tau_terms(columns: Sequence[ClassedColumn]) -> FloatArray:
    """Write tau of every pair of columns as a polynomial in their correlation.

    The series is cut off, and two last terms make it exact at correlations 1 and -1, where
    only ties matter.
    """
    order = np.add.outer(np.arange(_TAU_TERMS), np.arange(_TAU_TERMS))
    kept = order < _TAU_TERMS
    orders = order[kept]
    first, second = np.triu_indices(len(columns), 1)
    terms = np.zeros((first.size, _TAU_TERMS + 2))
    for row, one, other in zip(terms, first.tolist(), second.tolist(), strict=True):
        a, b = columns[one], columns[other]
        row[:_TAU_TERMS] = np.bincount(orders, (a.forms * b.forms)[kept], _TAU_TERMS)
        alike = _tau_at_end(a, b.edges, b.ties) - row.sum()
        apart = -_tau_at_end(a, 1 - b.edges, b.ties) - row @ (-1.0) ** np.arange(_TAU_TERMS + 2)
        row[_TAU_TERMS] = (alike + apart) / 2
        row[_TAU_TERMS + 1] = (alike - apart) / 2
    return terms


def _tau_at_end(one: ClassedColumn, edges: FloatArray, ties: float) -> float:
    """Return the probability that two records differ in both columns, if one decides the other."""
    together = np.sort(np.concatenate([[0.0, 1.0], one.edges, edges]))
    return 1 - one.ties - ties + float((np.diff(together) ** 2).sum())


def _integrals(classes: FloatArray, edges: FloatArray) -> FloatArray:
    """Integrate each normalized Hermite polynomial times the normal density over each class.

    The integral is what (density h_(r-1)) / sqrt(r) loses between the ends of the class.
    """
    cuts = np.clip(ndtri(edges), -_FARTHEST, _FARTHEST)
    found = np.empty((_TAU_TERMS, classes.size))
    found[0] = classes
    before, weighted = np.zeros_like(cuts), np.exp(-cuts * cuts / 2) / sqrt(2 * pi)
    for order in range(1, _TAU_TERMS):
        found[order] = -np.diff(weighted, prepend=0.0, append=0.0) / sqrt(order)
        after = (cuts * weighted - sqrt(order - 1) * before) / sqrt(order)
        before, weighted = weighted, after
    return found
