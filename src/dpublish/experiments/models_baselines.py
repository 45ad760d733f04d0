"""Linear models fitted without privacy: what private ones are measured against."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import UNKNOWN, encode_rows
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.evaluation.features import encode_classes
from dpublish.types import FloatArray

_RIDGE = 1.0
"""Strength of the pull to 0, as of one record; without it separable rows have no best weights."""
_WIDTH = 0.5
"""Half the width of the bend by which the hinge loss is made smooth."""
_MOST_STEPS, _SMALLEST_STEP = 100, 1e-6
_SMALLEST_GAIN = 1e-7
"""Steps that lower the mean loss by less than this are not worth taking."""


@dataclass(frozen=True, eq=False)
class PlainModel:
    """Weights of the same features as private models have, a row for each class."""

    schema: Schema
    features: Features
    weights: FloatArray

    def scores(self, rows: pa.Table) -> FloatArray:
        """Score each class for each row; the highest is predicted."""
        return _matrix(rows, self.schema, self.features) @ self.weights.T


def fit_plain_model(rows: pa.Table, schema: Schema, target: str, model: str) -> PlainModel:
    """Find the best weights for rows in the clear, one class against the rest at a time.

    Two classes need one fit: the other class has the same weights with the opposite sign.
    """
    require_known("model", model, _LOSSES)
    features = Features.of(schema, target)
    classes = encode_classes(rows, schema, target)
    known = classes != UNKNOWN
    matrix = _matrix(rows.filter(pa.array(known)), schema, features)
    size = schema[target].size
    fits = [
        _fit(matrix, np.where(classes[known] == code, 1.0, -1.0), model)
        for code in (range(1, 2) if size == 2 else range(size))
    ]
    weights = np.stack([-fits[0], fits[0]] if size == 2 else fits)
    return PlainModel(schema, features, weights)


def _fit(matrix: FloatArray, signs: FloatArray, model: str) -> FloatArray:
    """Minimize the loss by Newton's steps, halved as long as they do not lower it."""
    loss_of = _LOSSES[model]

    def value_of(weights: FloatArray) -> float:
        losses = loss_of(signs * (matrix @ weights)).losses
        return float(losses.sum() + _RIDGE / 2 * weights @ weights)

    weights = np.zeros(matrix.shape[1])
    for _ in range(_MOST_STEPS):
        bent = loss_of(signs * (matrix @ weights))
        gradient = matrix.T @ (signs * bent.slopes) + _RIDGE * weights
        near = np.flatnonzero(bent.bends)  # of a hinge few rows are near the bend
        part = matrix[near]
        curvature = part.T @ (part * bent.bends[near, None]) + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        gain = float(gradient @ step)
        if gain < _SMALLEST_GAIN * len(signs):
            break
        size, before = 1.0, value_of(weights)
        while size > _SMALLEST_STEP and value_of(weights - size * step) > before - size * gain / 4:
            size /= 2
        weights = weights - size * step
    return weights


class Bent(NamedTuple):
    """Losses of rows, and their first and second derivatives by the margin."""

    losses: FloatArray
    slopes: FloatArray
    bends: FloatArray


def _logistic(margins: FloatArray) -> Bent:
    losses = np.logaddexp(0.0, -margins)
    slopes = -np.exp(-margins - losses)  # which is -1 / (1 + exp(margin))
    return Bent(losses, slopes, -slopes * (1 + slopes))


def _smooth_hinge(margins: FloatArray) -> Bent:
    lacking = 1 + _WIDTH - margins
    bend = np.clip(lacking, 0.0, 2 * _WIDTH)
    straight = np.maximum(lacking - 2 * _WIDTH, 0.0)
    losses = bend**2 / (4 * _WIDTH) + straight
    return Bent(losses, -bend / (2 * _WIDTH), np.where(bend == lacking, 1 / (2 * _WIDTH), 0.0))


_LOSSES = {"logistic": _logistic, "svm": _smooth_hinge}


def _matrix(rows: pa.Table, schema: Schema, features: Features) -> FloatArray:
    codes = encode_rows(rows, schema, features.columns)
    return np.asarray(features.matrix(codes) / FEATURE_UNIT)
