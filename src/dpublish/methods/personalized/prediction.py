"""Classify with all parts of a personalized release: a mean model, mean, or vote."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import label_rows
from dpublish.data.axis import Axis
from dpublish.errors import InvalidQuery
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.personalized.parts import Part, shares
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.types import FloatArray


def predict(parts: Sequence[Part], rows: Any) -> pa.Array:
    """Predict the class (or the number) of each of `rows`.

    Linear models of one kind are averaged; probabilities are averaged where every part gives some;
    else parts vote with their weights, and of equals the first class in order wins.
    """
    if not parts:
        raise InvalidQuery("a release without parts does not classify")
    model = mean_model(parts)
    if model is not None:
        return model.predict(rows)
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    grids = _grids(parts)
    if grids is not None:
        return label_rows(_classes(grids), _mean_probabilities(parts, grids, table).argmax(axis=1))
    predicted = [part.release.predict(table) for part in parts]
    if all(pa.types.is_floating(each.type) for each in predicted):
        numbers = np.stack([each.to_numpy(zero_copy_only=False) for each in predicted])
        return pa.array(shares(parts) @ numbers)
    return _vote(predicted, shares(parts))


def predict_proba(parts: Sequence[Part], rows: Any) -> pa.Table:
    """Give the probability of each class for each of `rows`, a column a class."""
    model = mean_model(parts)
    if model is not None:
        return model.predict_proba(rows)
    grids = _grids(parts)
    if grids is None:
        raise InvalidQuery("the parts of this release give no probabilities, only classes")
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    probabilities = _mean_probabilities(parts, grids, table)
    return pa.table(dict(zip(_classes(grids).labels, probabilities.T, strict=True)))


def mean_model(parts: Sequence[Part]) -> LinearModelRelease | None:
    """Average linear models of one kind and the same features; None if they are not such."""
    models = [part.release for part in parts if isinstance(part.release, LinearModelRelease)]
    if not models or len(models) != len(parts) or any(not _alike(models[0], m) for m in models):
        return None
    first, weights = models[0], shares(parts)
    deviations = [m.standard_deviation for m in models if m.standard_deviation is not None]
    mean = np.tensordot(weights, np.stack([model.weights for model in models]), 1)
    deviation = None
    if len(deviations) == len(models):
        deviation = np.sqrt(np.tensordot(weights**2, np.square(np.stack(deviations)), 1))
    return LinearModelRelease(
        receipt=first.receipt,
        schema=first.schema,
        model=first.model,
        target=first.target,
        weights=np.asarray(mean, dtype=np.float64),
        expected={},
        standard_deviation=deviation,
        by_cell=first.by_cell,
    )


def _alike(one: LinearModelRelease, other: LinearModelRelease) -> bool:
    return (one.schema, one.model, one.target, one.by_cell) == (
        other.schema,
        other.model,
        other.target,
        other.by_cell,
    )


def _grids(parts: Sequence[Part]) -> list[PrivPfCRelease] | None:
    """Take the grid classifiers out of their parts, if all are such and of the same classes."""
    grids = [part.release for part in parts if isinstance(part.release, PrivPfCRelease)]
    if not grids or len(grids) != len(parts):
        return None
    return grids if len({_classes([grid]).labels for grid in grids}) == 1 else None


def _classes(grids: Sequence[PrivPfCRelease]) -> Axis:
    return grids[0].classes


def _mean_probabilities(
    parts: Sequence[Part], grids: Sequence[PrivPfCRelease], rows: pa.Table
) -> FloatArray:
    probabilities = np.stack([grid.predict_proba(rows) for grid in grids])
    return np.asarray(np.tensordot(shares(parts), probabilities, 1))


def _vote(predicted: Sequence[pa.Array], weights: FloatArray) -> pa.Array:
    """Take the label with the most weight in each row; a missing label is one, too.

    >>> _vote([pa.array(["a", "b"]), pa.array(["b", None])], np.array([0.4, 0.6])).to_pylist()
    ['b', None]
    """
    labels = sorted({label for each in predicted for label in each.to_pylist()}, key=_missing_last)
    places = {label: place for place, label in enumerate(labels)}
    votes = np.zeros((len(predicted[0]), len(labels)))
    for each, weight in zip(predicted, weights, strict=True):
        codes = [places[label] for label in each.to_pylist()]
        votes[np.arange(len(codes)), codes] += weight
    winners = votes.argmax(axis=1) if labels else np.empty(0, dtype=np.int64)
    return pa.array(labels, predicted[0].type).take(pa.array(winners))


def _missing_last(label: Any) -> tuple[bool, Any]:
    return (label is None, label)
