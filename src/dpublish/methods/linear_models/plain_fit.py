"""Fit a linear model to rows in the clear, such as synthetic ones: ordinary optimization.

Nothing here is private, and nothing here sees private rows.
"""

from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from dpublish.types import FloatArray

_WIDTH = 0.5  # of the rounded corner of the hinge
_PASSES = 300


def fit_weights(
    features: FloatArray,
    probabilities: FloatArray,
    *,
    model: Literal["logistic", "svm"],
    ridge: float,
) -> FloatArray:
    """Find the weights that fit the probabilities of a class best, the last being the intercept.

    Args:
        features: A row for each record, the intercept's feature last.
        probabilities: How likely each record is to be of the class.
        model: The loss: of logistic regression, or a hinge with a rounded corner.
        ridge: Penalty on half the squared weights, for each record; the intercept is free.

    >>> features = np.array([[-1.0, 1.0], [1.0, 1.0]])
    >>> fit_weights(features, np.array([0.25, 0.75]), model="logistic", ridge=0.0).round(2) + 0.0
    array([1.1, 0. ])
    """
    free = np.ones(features.shape[1])
    free[-1] = 0.0

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        scores = features @ weights
        if model == "logistic":
            losses = np.logaddexp(0.0, scores) - probabilities * scores
            slopes = expit(scores) - probabilities
        else:
            for_it, against = _rounded_hinge(scores), _rounded_hinge(-scores)
            losses = probabilities * for_it[0] + (1 - probabilities) * against[0]
            slopes = probabilities * for_it[1] - (1 - probabilities) * against[1]
        penalized = ridge * free * weights
        value = losses.mean() + 0.5 * float(penalized @ weights)
        return float(value), features.T @ slopes / len(features) + penalized

    start = np.zeros(features.shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _PASSES})
    return np.asarray(found.x, dtype=np.float64)


def _rounded_hinge(margins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the Huber hinge and its slope."""
    inner = 1 + _WIDTH - margins
    middle = np.abs(1 - margins) <= _WIDTH
    losses = np.where(middle, inner**2 / (4 * _WIDTH), np.maximum(1 - margins, 0.0))
    slopes = np.where(middle, -inner / (2 * _WIDTH), np.where(margins < 1, -1.0, 0.0))
    return losses, slopes
