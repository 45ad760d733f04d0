"""Predict one column of a network from all others."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpublish.core.prediction import UNKNOWN
from dpublish.core.probabilities import cell_numbers
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.methods.privbayes.nodes import Node

_LEAST_PROBABILITY = 1e-3
"""A single value that noise made nearly impossible must not outvote all others."""


def predict(
    target: str,
    nodes: Sequence[Node],
    probabilities: Mapping[str, NDArray[np.float64]],
    schema: Schema,
    codes: Mapping[str, NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Find the likeliest code of `target` for each record, given leaf codes of other columns.

    Only the nodes that name the target matter: its own, and its children.  A child says
    nothing where its own value, or that of another parent, is unknown; where a parent of the
    target is unknown, the average over its parents' cells stands in.
    """
    size = len(next(iter(codes.values()), ()))
    classes = schema[target].size
    logs = np.zeros((size, classes))
    for node in nodes:
        if target not in (name for name, _ in node.columns):
            continue
        cells, known = _cells(node, target, schema, codes, size)
        axes = node.axes(schema)
        table = np.log(np.maximum(probabilities[node.column], _LEAST_PROBABILITY))
        for value in range(classes):
            at = [
                np.full(size, value) if axis.column == target else cells[axis.column]
                for axis in axes
            ]
            found = table[cell_numbers(at[1:], axes[1:], size), at[0]]
            logs[:, value] += np.where(known, found, _without(node, target, table, value))
    return np.asarray(np.argmax(logs, axis=1), dtype=np.int64)


def _cells(
    node: Node,
    target: str,
    schema: Schema,
    codes: Mapping[str, NDArray[np.int64]],
    size: int,
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.bool_]]:
    """Find the cells of a node's other columns, and which records have all of them."""
    known = np.ones(size, dtype=np.bool_)
    cells = {}
    others: list[Axis] = [axis for axis in node.axes(schema) if axis.column != target]
    for axis in others:
        leaf = codes[axis.column]
        known &= leaf != UNKNOWN
        cells[axis.column] = axis.leaf_to_cell[np.maximum(leaf, 0)]
    return cells, known


def _without(node: Node, target: str, table: NDArray[np.float64], value: int) -> float:
    """Say what a node adds for a class where another of its columns is unknown."""
    if node.column != target:
        return 0.0
    return float(np.log(np.exp(table[:, value]).mean()))
