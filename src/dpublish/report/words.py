"""What drawings show, in words: for readers who cannot see them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpublish.accuracy.rounding import format_number

_ALL, _EXTREMES, _CELLS = 12, 3, 3


def counts_in_words(labels: Sequence[str], counts: ArrayLike, *, what: str = "records") -> str:
    """Read a chart of counts out: all of few, or the largest and the smallest of many.

    >>> counts_in_words(["a", "b"], [1200, 3])
    'a: 1,200, b: 3 records.'
    """
    values = np.asarray(counts, dtype=np.float64)
    if values.size <= _ALL:
        return f"{_listed(labels, values, range(values.size))} {what}."
    order = np.argsort(-values, kind="stable").tolist()
    most, least = order[:_EXTREMES], order[-_EXTREMES:]
    return (
        f"{values.size:,} values. Largest: {_listed(labels, values, most)} {what}. "
        f"Smallest: {_listed(labels, values, least)}."
    )


def cells_in_words(rows: Sequence[str], columns: Sequence[str], counts: NDArray[Any]) -> str:
    """Read a map of counts out: the fullest cells.

    >>> cells_in_words(["x"], ["a", "b"], np.array([[1, 2]]))
    '1 by 2 cells. Fullest: x and b: 2, x and a: 1 records.'
    """
    flat = counts.ravel()
    fullest = np.argsort(-flat, kind="stable")[:_CELLS].tolist()
    names = {
        cell: f"{rows[cell // len(columns)]} and {columns[cell % len(columns)]}" for cell in fullest
    }
    listed = ", ".join(f"{names[cell]}: {format_number(float(flat[cell]))}" for cell in fullest)
    return f"{len(rows):,} by {len(columns):,} cells. Fullest: {listed} records."


def each_in_words(said: Sequence[str], *, of: int | None = None) -> str:
    """Join what is said of each thing that is drawn: of all of few, or of the first of many.

    `of` is how many there are, if not all of them are said.

    >>> each_in_words(["a: 1", "b: 2"]), each_in_words(["a: 1"], of=3), each_in_words([])
    ('a: 1; b: 2.', 'a: 1; and 2 more.', '')
    """
    shown = said[:_ALL]
    rest = (len(said) if of is None else of) - len(shown)
    end = f"; and {rest:,} more." if rest > 0 else "."
    return "; ".join(shown) + end if shown else ""


def most_in_words(labels: Sequence[str], counts: ArrayLike) -> str:
    """Say at which value the counts of a column are largest.

    >>> most_in_words(["F", "M"], [3, 1200])
    'most at M (1,200)'
    """
    values = np.asarray(counts, dtype=np.float64)
    top = int(np.argmax(values))
    return f"most at {labels[top]} ({values[top]:,.0f})"


def pairs_in_words(labels: Sequence[str], matrix: NDArray[Any]) -> str:
    """Read a map of how much columns depend on each other out: the strongest pairs.

    >>> pairs_in_words(["a", "b", "c"], np.array([[1, 0.1, -0.5], [0.1, 1, 0], [-0.5, 0, 1]]))
    '3 columns. Strongest: a and c: -0.5, a and b: 0.1, b and c: 0.'
    """
    first, second = np.triu_indices(len(labels), 1)
    if not first.size:
        return f"One column, {', '.join(labels)}."
    found = matrix[first, second]
    order = np.argsort(-np.abs(found), kind="stable")[:_EXTREMES]
    listed = ", ".join(
        f"{labels[first[k]]} and {labels[second[k]]}: {format_number(float(found[k]), 3)}"
        for k in order
    )
    return f"{len(labels):,} columns. Strongest: {listed}."


def network_in_words(parents: Mapping[str, Sequence[str]]) -> str:
    """Read a network out.

    >>> network_in_words({"a": [], "b": ["a"]})
    'a depends on nothing; b depends on a.'
    """
    said = (f"{node} depends on {', '.join(of) or 'nothing'}" for node, of in parents.items())
    return f"{'; '.join(said)}."


def _listed(labels: Sequence[str], values: NDArray[np.float64], chosen: Sequence[int]) -> str:
    return ", ".join(f"{labels[i]}: {format_number(float(values[i]))}" for i in chosen)
