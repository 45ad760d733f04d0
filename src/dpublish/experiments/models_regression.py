"""Linear regression of a number: fitted privately, and in the clear."""

from typing import Any

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import encode_rows
from dpublish.core.registry import make_method
from dpublish.data.column import NumberColumn
from dpublish.data.features import FEATURE_UNIT, Features, scaled_leaves
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.experiments.folds import Split
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray

_RIDGE = 1.0
"""Strength of the pull to 0, as of one record."""


def number_column(schema: Schema, named: str | None) -> str:
    """Return the column of numbers to predict: the named one, or the first."""
    numbers = [
        column.name
        for column in schema.columns
        if isinstance(column, NumberColumn)
        and column.holds == "numbers"
        and not column.axis().special
    ]
    if named is None and numbers:
        return numbers[0]
    if named not in numbers:
        raise InvalidParameter(
            f"{named!r} is no column of numbers without missing values; name one of "
            f"{', '.join(numbers)} (--set number=NAME)"
        )
    return str(named)


def private_error(
    split: Split,
    number: str,
    method: str,
    settings: dict[str, Any],
    epsilon: str,
    rng: RandomSource,
) -> float:
    """Fit a linear model privately, and measure it on fresh rows."""
    made = make_method(method, {**settings, "target": number, "model": "linear"})
    table = open_table(split.train, split.schema)
    release = made.release(table, budget=Budget.seeded(epsilon), rng=rng)
    return _relative(split, number, np.asarray(release.predict(split.held_out.rows)))


def plain_error(split: Split, number: str) -> float:
    """Fit least squares to the true rows, and measure it on fresh rows."""
    features = Features.of(split.schema, number)
    x, fresh = (
        _matrix(rows, split.schema, features) for rows in (split.train, split.held_out.rows)
    )
    y = _scaled(split.train, split.schema, number)
    weights = np.linalg.solve(x.T @ x + _RIDGE * np.eye(features.size), x.T @ y)
    column = split.schema[number]
    if not isinstance(column, NumberColumn):
        raise TypeError("a column of numbers is needed")
    low, high = column.bounds
    found = (low + high) / 2 + np.clip(fresh @ weights, -1, 1) * (high - low) / 2
    return _relative(split, number, found)


def mean_error(split: Split, number: str) -> float:
    """Predict the mean of the true rows for every fresh row."""
    mean = float(np.mean(_values(split.train, number)))
    return _relative(split, number, np.full(split.held_out.rows.num_rows, mean))


def _relative(split: Split, number: str, predicted: FloatArray) -> float:
    """Divide the root of the mean squared error by the width of the public bounds."""
    column = split.schema[number]
    if not isinstance(column, NumberColumn):
        raise TypeError("a column of numbers is needed")
    low, high = column.bounds
    truth = np.clip(_values(split.held_out.rows, number), low, high)
    return float(np.sqrt(np.mean((predicted - truth) ** 2)) / (high - low))


def _values(rows: pa.Table, number: str) -> FloatArray:
    return np.asarray(rows[number].to_numpy(), dtype=np.float64)


def _scaled(rows: pa.Table, schema: Schema, number: str) -> FloatArray:
    codes = encode_rows(rows, schema, (number,))[number]
    return np.asarray(scaled_leaves(schema[number])[codes] / FEATURE_UNIT)


def _matrix(rows: pa.Table, schema: Schema, features: Features) -> FloatArray:
    codes = encode_rows(rows, schema, features.columns)
    return np.asarray(features.matrix(codes) / FEATURE_UNIT)
