"""How far answers to counting queries are from the truth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter

SANITY = 0.0005
"""The usual sanity bound, as a part of the rows: 0.05 %."""


class QueryErrors(NamedTuple):
    """Errors of many answers in a few numbers."""

    mean_relative: float
    median_relative: float
    mean_absolute: float


def relative_errors(
    answers: NDArray[np.float64], truth: NDArray[np.int64], sanity: float
) -> NDArray[np.float64]:
    """Divide each error by the true count, or by the sanity bound where that is larger.

    Without the bound a single record too many where there is none would count without limit.

    >>> relative_errors(np.array([12.0, 3.0]), np.array([10, 0]), sanity=5.0)
    array([0.2, 0.6])
    """
    if not sanity > 0:
        raise InvalidParameter(f"the sanity bound ({sanity:g}) must be above 0")
    return np.asarray(np.abs(answers - truth) / np.maximum(truth, sanity))


def summarize_errors(
    answers: NDArray[np.float64], truth: NDArray[np.int64], sanity: float
) -> QueryErrors:
    """Give mean and median relative error, and the mean absolute error."""
    if not len(truth):
        raise InvalidParameter("there are no queries to measure")
    relative = relative_errors(answers, truth, sanity)
    absolute = np.abs(answers - truth)
    return QueryErrors(float(relative.mean()), float(np.median(relative)), float(absolute.mean()))
