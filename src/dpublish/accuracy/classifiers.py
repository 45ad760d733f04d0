"""What noisy class counts say about the accuracy of a classifier that was made from them.

A group of records is given one class.  How many records get their own class is a sum of true
counts, one from each group; the noisy counts tell it but for the noise of these counts.  Which
of them are summed was chosen by looking at the noise, so the usual interval of a sum does not
hold.  The largest noise of each group bounds whatever was chosen.
"""

from collections.abc import Sequence
from math import inf, log
from typing import NamedTuple

import numpy as np

from dpublish.accuracy.intervals import terms_half_width
from dpublish.accuracy.noise_distribution import Terms, noise_survival
from dpublish.types import IntArray

_TOTAL_RISK = 0.2  # part of the risk for the number of records
_SIDE_RISK = (1 - _TOTAL_RISK) / 2  # and for each side of what is right
_TRIED = 24  # exponents of Chernoff's bound
_LARGEST_PART = 0.9  # of the rate, the largest of them
_FAR = 20.0  # noise so far out that it adds less than e^-20 of a moment is left out
_FINE = 0.02  # of the mean size of noise
_STEEPEST = 8.0  # less noise is taken for that much


class AccuracyBounds(NamedTuple):
    """The share of records that get their own class: an estimate, and what it lies between."""

    estimate: float
    low: float
    high: float


def accuracy_bounds(
    counts: IntArray, predicted: IntArray, rates: Sequence[float], confidence: float = 0.95
) -> AccuracyBounds | None:
    """Bound the accuracy on the counted records; None if noise leaves no records to speak of.

    Args:
        counts: Noisy counts, a row for each group and a column for each class.
        predicted: The class of each group, chosen in any way from what is published.
        rates: The rate of the noise of each group's counts.
        confidence: Probability with which both bounds hold.

    >>> found = accuracy_bounds(np.array([[900, 100], [50, 950]]), np.array([0, 1]), [1.0, 1.0])
    >>> print(f"{found.estimate:.3f} {found.low:.3f} {found.high:.3f}")
    0.925 0.917 0.933
    """
    off = largest_noise(rates, counts.shape[1], (1 - confidence) * _SIDE_RISK)
    right = float(counts[np.arange(len(counts)), predicted].sum())
    return _bounds(right, off, counts, rates, confidence)


def majority_bounds(
    counts: IntArray, rates: Sequence[float], confidence: float = 0.95
) -> AccuracyBounds | None:
    """Bound the share of the class with the most noisy counts, as `accuracy_bounds` does.

    One class for all groups is chosen among few, so that the bounds are those of every class.
    """
    risk = 2 * (1 - confidence) * _SIDE_RISK / counts.shape[1]
    off = _sum_width(rates, 1, 1 - risk)
    return _bounds(float(counts.sum(axis=0).max()), off, counts, rates, confidence)


def _bounds(
    right: float, off: float, counts: IntArray, rates: Sequence[float], confidence: float
) -> AccuracyBounds | None:
    total = float(counts.sum())
    width = _sum_width(rates, counts.shape[1], 1 - (1 - confidence) * _TOTAL_RISK)
    if total - width <= 0:
        return None
    low, high = (right - off) / (total + width), (right + off) / (total - width)
    return AccuracyBounds(*(float(np.clip(part, 0, 1)) for part in (right / total, low, high)))


def _sum_width(rates: Sequence[float], each: int, confidence: float) -> float:
    """Bound the noise of the sum of so many counts of each group."""
    repeated = np.repeat(np.asarray(rates, dtype=np.float64), each)
    return terms_half_width(Terms.gather(np.ones(repeated.size), repeated), confidence)


def largest_noise(rates: Sequence[float], classes: int, risk: float) -> float:
    """Bound the sum of each group's largest noise, but for a probability of `risk`.

    Chernoff's bound: P(S >= q) is at most E[exp(t S)] / exp(t q) for every t.
    """
    steep = np.minimum(np.asarray(rates, dtype=np.float64), _STEEPEST)
    distinct, repeats = np.unique(steep, return_counts=True)
    best = inf
    for part in np.linspace(0.04, _LARGEST_PART, _TRIED):
        exponent = float(part * distinct.min())
        logs = [_log_moment(rate, classes, exponent) for rate in distinct.tolist()]
        best = min(best, (float(repeats @ np.array(logs)) - log(risk)) / exponent)
    return best


def _log_moment(rate: float, classes: int, exponent: float) -> float:
    """Bound the logarithm of E[exp(exponent * M)] of the largest of some draws of noise.

    Much noise is taken in steps, each as large as the largest in it.
    """
    step = max(1, int(_FINE / rate))
    farthest = int(_FAR / (1 - _LARGEST_PART) / rate / step) + 2
    ends = step * np.arange(-farthest, farthest + 1)
    at_most = (1 - noise_survival(rate, ends + 1)) ** classes
    probabilities = np.diff(at_most, prepend=0.0)
    return log(float(np.sum(probabilities * np.exp(exponent * ends))))
