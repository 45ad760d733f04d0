"""What is public about the rows of an estimator: a schema, or bounds and classes for arrays.

None of it is read from X or y.  What is not told is asked for.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter, InvalidType

TARGET = "target"
"""What the target of an array is called in the schema and in the release."""

_BRANCHING = 2


def read_schema(schema: Any) -> Schema | None:
    """Take a schema, or read it from the file at a path."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | PathLike):
        return Schema.read(schema)
    raise InvalidType(
        f"schema must be a dpublish.Schema or the path of a schema file, not "
        f"{type(schema).__name__}"
    )


def number_columns(names: Sequence[str], bounds: Any, bins: int) -> tuple[Column, ...]:
    """Declare the columns of an array by their public bounds."""
    if bounds is None:
        raise InvalidParameter(
            "the public range of each feature is missing, and it is never read from X; pass "
            "bounds=(0, 100) for all features, bounds=[(0, 100), (0, 1)] for each, or a schema"
        )
    return tuple(
        column(name, "numeric", bounds=pair, bins=bins, branching=_BRANCHING, missing="drop")
        for name, pair in zip(names, _pairs(names, bounds), strict=True)
    )


def class_column(classes: Any, name: str = TARGET) -> CategoryColumn:
    """Declare the classes of a target that comes as an array."""
    found = column(name, "category", values=list(class_texts(classes)), missing="drop")
    if not isinstance(found, CategoryColumn):  # pragma: no cover - a category is one
        raise InvalidType("classes make a column of classes")
    return found


def class_texts(classes: Any) -> dict[str, Any]:
    """Name each declared class by a text, in sorted order.

    >>> class_texts([1, 0])
    {'0': 0, '1': 1}
    """
    if classes is None:
        raise InvalidParameter(
            "the classes are missing, and they are never read from y; pass all that there can "
            "be: classes=[0, 1], or a schema"
        )
    if isinstance(classes, str) or not np.iterable(classes):
        raise InvalidType("classes must be a list of all classes, such as [0, 1]")
    given = list(classes)
    if len({isinstance(each, str) for each in given}) > 1:
        raise InvalidParameter("classes must be all texts or all numbers, as y has them")
    return {str(each): each for each in np.unique(np.asarray(given)).tolist()}


def target_column(bounds: Any, bins: int, name: str = TARGET) -> NumberColumn:
    """Declare the public range of a number to predict."""
    if bounds is None:
        raise InvalidParameter(
            "the public range of the target is missing, and it is never read from y; pass "
            "target_bounds=(0, 100), or a schema"
        )
    low, high = _pair(bounds)
    found = column(name, "numeric", bounds=(low, high), bins=bins, missing="drop")
    if not isinstance(found, NumberColumn):  # pragma: no cover - a number is one
        raise InvalidType("a target with bounds is a number")
    return found


def _pairs(names: Sequence[str], bounds: Any) -> list[tuple[float, float]]:
    if isinstance(bounds, Mapping):
        if missing := [name for name in names if name not in bounds]:
            raise InvalidParameter(f"bounds lack the feature {missing[0]!r}; name all features")
        return [_pair(bounds[name]) for name in names]
    if isinstance(bounds, str) or not isinstance(bounds, Sequence | np.ndarray):
        raise InvalidType(
            "bounds must be a pair (low, high), a list of pairs, one for each feature, or a "
            "mapping of names to pairs"
        )
    listed = list(bounds)
    if len(listed) == 2 and not np.iterable(listed[0]):
        return [_pair(listed)] * len(names)
    if len(listed) != len(names):
        raise InvalidParameter(
            f"bounds has {len(listed)} pairs for {len(names)} features; pass one pair for each, "
            "or a single pair for all"
        )
    return [_pair(each) for each in listed]


def _pair(bounds: Any) -> tuple[float, float]:
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        raise InvalidType("bounds must be two numbers, such as (0, 100)") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidParameter(f"bounds ({low:g}, {high:g}) must rise, and be finite")
    return low, high
