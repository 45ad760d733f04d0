"""How alike two tables are: their marginals, and how their columns depend on each other."""

from typing import NamedTuple

import numpy as np

from dpublish.types import FloatArray, IntArray

Counts = IntArray | FloatArray


def total_variation(first: Counts, second: Counts) -> float:
    """Give the part of the records that would have to change for two marginals to be alike.

    >>> total_variation(np.array([3, 1]), np.array([2, 2]))
    0.25
    """
    if not first.sum() or not second.sum():
        return float(bool(first.sum() or second.sum()))
    return float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)


def largest_cdf_gap(first: IntArray, second: IntArray) -> float:
    """Give the largest difference between the parts of the records up to the same value.

    >>> largest_cdf_gap(np.array([2, 1, 1]), np.array([1, 1, 2]))
    0.25
    """
    if not first.sum() or not second.sum():
        return float(bool(first.sum() or second.sum()))
    gaps = np.cumsum(first / first.sum()) - np.cumsum(second / second.sum())
    return float(np.abs(gaps).max())


def mid_ranks(codes: IntArray, ordinary: int) -> FloatArray:
    """Rank codes below `ordinary`, ties sharing the mean of their ranks; others are NaN."""
    counts = np.bincount(codes, minlength=ordinary)[:ordinary]
    ranks = np.cumsum(counts) - (counts - 1) / 2
    out = np.full(int(max(codes.max(initial=0) + 1, ordinary)), np.nan)
    out[:ordinary] = ranks
    return np.asarray(out[codes])


def rank_correlations(ranks: FloatArray) -> FloatArray:
    """Correlate all pairs of columns of ranks (Spearman), over records that have both.

    A pair without anything to compare, such as a constant column, has correlation 0.
    """
    present = ~np.isnan(ranks)
    weights = present.astype(np.float64)
    center = np.nanmean(ranks, axis=0) if present.any(axis=0).all() else np.zeros(ranks.shape[1])
    values = np.where(present, ranks - center, 0.0)
    number = np.maximum(weights.T @ weights, 1.0)
    sums = values.T @ weights  # of column j where k is present
    squares = (values**2).T @ weights
    variances = squares / number - (sums / number) ** 2
    products = values.T @ values / number - (sums / number) * (sums / number).T
    scale = np.sqrt(np.maximum(variances, 0) * np.maximum(variances.T, 0))
    tiny = 1e-12 * max(float(np.max(squares, initial=0.0)), 1.0)
    found = np.divide(products, scale, out=np.zeros_like(products), where=scale > tiny)
    return np.asarray(np.clip(found, -1, 1))


class Contingency(NamedTuple):
    """Codes of two columns, with how many values each may have."""

    first: IntArray
    second: IntArray
    shape: tuple[int, int]


def cramers_v(pair: Contingency) -> float:
    """Measure how far two columns depend on each other, from 0 to 1.

    Corrected for the number of records, so that small and large tables can be compared: the
    plain figure is never 0, and the larger the fewer records there are.
    """
    cells = np.bincount(
        pair.first * pair.shape[1] + pair.second, minlength=pair.shape[0] * pair.shape[1]
    ).reshape(pair.shape)
    cells = cells[cells.sum(axis=1) > 0][:, cells.sum(axis=0) > 0]
    records, (rows, columns) = cells.sum(), cells.shape
    if min(rows, columns) < 2 or records < 2:
        return 0.0
    expected = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / records
    square = float(((cells - expected) ** 2 / expected).sum() / records)
    corrected = max(0.0, square - (rows - 1) * (columns - 1) / (records - 1))
    smaller = min(side - (side - 1) ** 2 / (records - 1) for side in (rows, columns))
    return float(min(1.0, np.sqrt(corrected / (smaller - 1)))) if smaller > 1 else 0.0
