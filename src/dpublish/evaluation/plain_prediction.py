"""Prediction without privacy: what a release that predicts is measured against.

Ridge regression on the public features of `features`, trained on one half of the true rows and
measured on the other, and the other way around.  It needs nothing but NumPy.  NOT PRIVATE.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dpublish.data.column import Column, NumberColumn
from dpublish.evaluation.features import encode_features
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

MOST_ROWS = 50_000
MOST_VALUES = 200
"""Categories with more values are not used: each would be a feature."""
_PENALTY = 1.0  # as heavy as one row


def cross_predictions(
    rows: pa.Table, columns: Sequence[Column], wanted: FloatArray, seed: int = 0
) -> FloatArray:
    """Predict `wanted` (a row for each of `rows`) of each half from the other half."""
    usable = [one for one in columns if isinstance(one, NumberColumn) or one.size <= MOST_VALUES]
    encoded = encode_features(rows, usable, with_bins=True).astype(np.float64)
    features = np.hstack([encoded, np.ones((len(wanted), 1))])
    half = plain_generator(seed).permutation(len(wanted)) % 2
    predicted = np.empty_like(wanted)
    for side in (0, 1):
        weights = _ridge(features[half != side], wanted[half != side])
        predicted[half == side] = features[half == side] @ weights
    return predicted


def _ridge(features: FloatArray, wanted: FloatArray) -> FloatArray:
    square = features.T @ features
    square[np.diag_indices_from(square)] += _PENALTY
    return np.asarray(np.linalg.solve(square, features.T @ wanted))
