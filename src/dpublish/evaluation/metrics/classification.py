"""How good a classifier is.  Measured on true rows, so the figures are not private."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from dpublish.errors import InvalidParameter


def misclassification(predicted: NDArray[np.int64], true: NDArray[np.int64]) -> float:
    """Measure the part of the rows whose class was predicted wrongly: 0 is perfect.

    >>> misclassification(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
    0.25
    """
    if predicted.shape != true.shape:
        raise InvalidParameter("predicted and true classes must be equally many")
    if not true.size:
        raise InvalidParameter("there is no row with a known class to measure on")
    return float(np.count_nonzero(predicted != true) / true.size)


def area_under_curve(scores: NDArray[np.float64], is_positive: NDArray[np.bool_]) -> float:
    """Measure how well scores put positive rows before the others (AUC): 1 is perfect.

    It is the probability that a positive row has a higher score than another one, ties by halves,
    so scores that know nothing have 0.5.

    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    if scores.shape != is_positive.shape:
        raise InvalidParameter("there must be as many scores as rows")
    positive = int(np.count_nonzero(is_positive))
    pairs = positive * (is_positive.size - positive)
    if not pairs:
        raise InvalidParameter("rows of both kinds are needed to measure on")
    lowest = positive * (positive + 1) / 2  # the sum of ranks if all positive rows come last
    return float((rankdata(scores)[is_positive].sum() - lowest) / pairs)


def mean_area_under_curve(scores: NDArray[np.float64], true: NDArray[np.int64]) -> float:
    """Measure how well each class's scores put its rows before the others, averaged over classes.

    `scores` has a row for each row and a column for each class.  Classes that no row has, and
    one that all have, are left out.

    >>> mean_area_under_curve(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
    1.0
    """
    if scores.shape[:1] != true.shape:
        raise InvalidParameter("there must be as many rows of scores as true classes")
    counts = np.bincount(true, minlength=scores.shape[1])
    present = [code for code, count in enumerate(counts) if 0 < count < true.size]
    if not present:
        raise InvalidParameter("rows of two classes are needed to measure on")
    return float(np.mean([area_under_curve(scores[:, code], true == code) for code in present]))
