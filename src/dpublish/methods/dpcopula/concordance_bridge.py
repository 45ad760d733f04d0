"""Between Kendall's tau of classes and the correlation of normal variables behind them.

Columns are thought of as normal variables X, Y that were cut into classes.  The probabilities of
pairs of classes are Σ ρ^r u_r v_r', where u_r holds the integrals of the r-th Hermite
polynomial over one column's classes.  Tau, with ties as neither, is a quadratic form in them:
Σ ρ^(r+s) (u_r' D u_s) (v_r' D v_s), where D holds the signs of differences of classes.
"""

from collections.abc import Sequence
from math import pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpublish.types import FloatArray, IntArray

MOST_CLASSES = 128
_TERMS = 80
_GRID = 801
_FARTHEST = 8.0  # standard deviations: what lies beyond has a probability below 1e-15


def class_of_leaves(probabilities: FloatArray, most: int) -> IntArray:
    """Put neighboring leaves into at most so many classes of nearly equal probability.

    >>> class_of_leaves(np.array([0.1, 0.1, 0.5, 0.1, 0.1, 0.1]), 4).tolist()
    [0, 0, 1, 2, 3, 3]
    """
    if probabilities.size <= most:
        return np.arange(probabilities.size)
    middle = np.cumsum(probabilities) - probabilities / 2
    places = np.clip((middle * most).astype(np.int64), 0, most - 1)
    return np.asarray(np.unique(np.maximum.accumulate(places), return_inverse=True)[1])


class ClassedColumn(NamedTuple):
    """What tau needs to know of a column."""

    forms: FloatArray
    """u_r' D u_s for all r, s."""
    edges: FloatArray
    """Where the classes end, as parts of all records, but for the last."""
    ties: float
    """Probability that two records are of one class."""


def classed_column(probabilities: FloatArray, most: int) -> ClassedColumn:
    """Cut a normal variable into the classes of a column with these probabilities of leaves."""
    classes = np.zeros(probabilities.size)
    np.add.at(classes, class_of_leaves(probabilities, most), probabilities)
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
    order = np.add.outer(np.arange(_TERMS), np.arange(_TERMS))
    kept = order < _TERMS
    places = order[kept]
    first, second = np.triu_indices(len(columns), 1)
    terms = np.zeros((first.size, _TERMS + 2))
    for row, one, other in zip(terms, first.tolist(), second.tolist(), strict=True):
        a, b = columns[one], columns[other]
        row[:_TERMS] = np.bincount(places, (a.forms * b.forms)[kept], _TERMS)
        alike = _tau_at_end(a, b.edges, b.ties) - row.sum()
        apart = -_tau_at_end(a, 1 - b.edges, b.ties) - row @ (-1.0) ** np.arange(_TERMS + 2)
        row[_TERMS] = (alike + apart) / 2
        row[_TERMS + 1] = (alike - apart) / 2
    return terms


def correlation_of_tau(taus: FloatArray, terms: FloatArray) -> FloatArray:
    """Find the correlation at which each pair has its tau; what no correlation gives is moved."""
    grid = np.sin(np.linspace(-pi / 2, pi / 2, _GRID))
    means = (grid[:, None] ** np.arange(terms.shape[1])) @ terms.T
    rising = np.maximum.accumulate(means, axis=0)  # it rises but for what the last terms lack
    pairs = zip(taus, rising.T, strict=True)
    return np.array([np.interp(tau, mean, grid) for tau, mean in pairs])


def slope_of_tau(correlations: FloatArray, terms: FloatArray) -> FloatArray:
    """Say by how much each pair's tau rises per unit of correlation."""
    orders = np.arange(1, terms.shape[1])
    powers = orders * correlations[:, None] ** (orders - 1)
    return np.asarray(np.einsum("pr,pr->p", powers, terms[:, 1:]))


def _tau_at_end(one: ClassedColumn, edges: FloatArray, ties: float) -> float:
    """Give the probability that two records differ in both columns, if one decides the other."""
    together = np.sort(np.concatenate([[0.0, 1.0], one.edges, edges]))
    return 1 - one.ties - ties + float((np.diff(together) ** 2).sum())


def _integrals(classes: FloatArray, edges: FloatArray) -> FloatArray:
    """Integrate each normalized Hermite polynomial times the normal density over each class.

    The integral is what (density h_(r-1)) / sqrt(r) loses between the ends of the class.
    """
    cuts = np.clip(ndtri(edges), -_FARTHEST, _FARTHEST)
    found = np.empty((_TERMS, classes.size))
    found[0] = classes
    before, weighted = np.zeros_like(cuts), np.exp(-cuts * cuts / 2) / sqrt(2 * pi)
    for order in range(1, _TERMS):
        found[order] = -np.diff(weighted, prepend=0.0, append=0.0) / sqrt(order)
        after = (cuts * weighted - sqrt(order - 1) * before) / sqrt(order)
        before, weighted = weighted, after
    return found
