"""Read what a personal choice is asked: the leaves of a query, or the leaves of a median."""

import numpy as np

from dpublish.core.query.language import parse_query, require_columns
from dpublish.core.query.weights import axis_weights, is_partial
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery

AskedLeaves = tuple[tuple[str, tuple[bool, ...]], ...]


def asked_leaves(schema: Schema, query: str) -> AskedLeaves:
    """Mark the leaves of each column that satisfy the conditions of `query`.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 99], bins=4),))
    >>> asked_leaves(schema, "age >= 50")
    (('age', (False, False, True, True)),)
    """
    parsed = parse_query(query)
    require_columns(parsed, schema.names, "the table tells")
    asked = []
    for name in parsed.columns:
        axis = schema[name].axis()
        weights = axis_weights(axis, parsed.about(name))
        split = np.flatnonzero(is_partial(weights))
        if split.size:
            raise InvalidQuery(
                f"the query takes in only part of {axis.labels[int(split[0])]!r}, the finest that "
                f"the schema tells apart in column {name!r}; move its ends, or use finer bins"
            )
        asked.append((name, tuple((weights > 0).tolist())))
    return tuple(asked)


def median_axis(schema: Schema, column: str) -> Axis:
    """Find the leaves among which a median is chosen."""
    found = schema[column]
    if not isinstance(found, NumberColumn):
        raise InvalidParameter(f"column {column!r} holds no numbers, so it has no median")
    return found.axis()
