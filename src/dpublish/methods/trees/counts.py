"""Count by conditions in a published decision tree: its leaves are cells with noisy counts."""

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from dpublish.accuracy.intervals import mixed_half_width, require_confidence
from dpublish.core.answer import Answer
from dpublish.core.query.axes import read_question
from dpublish.core.query.cells import bounded
from dpublish.core.query.weights import is_partial
from dpublish.data.axis import Axis
from dpublish.errors import InvalidQuery
from dpublish.types import FloatArray

if TYPE_CHECKING:
    from dpublish.methods.trees.released import DecisionTreeRelease

_EVENLY = "records are assumed to be spread evenly within partly covered leaves of the tree"


def count_tree(tree: "DecisionTreeRelease", query: str, confidence: float) -> Answer:
    """Count the records that satisfy `query` by the columns that part the tree, and by class."""
    require_confidence(confidence)
    if tree.counts is None:
        raise InvalidQuery("this tree is one leaf whose class was chosen without counts")
    names = tree.routes.columns
    axes = [*(tree.schema[name].axis() for name in names), tree.classes]
    question = read_question(axes, query)
    shares = [_Shares(axis, w) for axis, w in zip(axes[:-1], question.weights, strict=False)]
    by_leaf = np.array([_leaf_weight(tree, leaf, shares) for leaf in tree.shape.leaves])
    weights = by_leaf[:, None] * question.weights[-1]
    value = float((weights * tree.counts).sum())
    inner = float((weights * (1 - weights) * tree.counts).sum())
    depths = np.array([tree.shape.depths[leaf] for leaf in tree.shape.leaves])
    reach = mixed_half_width(
        tree.count_rates,
        [weights[depths == depth].ravel() for depth in range(len(tree.count_rates))],
        confidence,
        deviation=sqrt(max(inner, 0.0)),
    )
    note = _EVENLY if np.any(is_partial(weights)) else question.assumption
    return bounded(value, value - reach, value + reach, confidence, note)


class _Shares:
    """Which part of a run of a column's leaves is asked for."""

    def __init__(self, axis: Axis, weights: FloatArray) -> None:
        sizes = np.ones(axis.size)
        if axis.leaf_edges is not None:
            widths = np.diff(axis.leaf_edges)
            sizes[: widths.size] = widths / widths.mean()
        self.column = axis.column
        self.size = axis.size
        self._asked = np.concatenate([[0.0], np.cumsum(sizes * weights)])
        self._all = np.concatenate([[0.0], np.cumsum(sizes)])

    def of(self, first: int, past: int) -> float:
        """Measure a run; one without leaves holds no records."""
        if first >= past:
            return 0.0
        part = (self._asked[past] - self._asked[first]) / (self._all[past] - self._all[first])
        # Running sums round: a run that is asked for as a whole, or not at all, is so.
        return float(np.clip(np.round(part, 12), 0, 1))


def _leaf_weight(tree: "DecisionTreeRelease", leaf: int, shares: list[_Shares]) -> float:
    """Find the part of a leaf that is asked for, by its runs along the columns above it."""
    runs = {share.column: (0, share.size) for share in shares}
    node = leaf
    while node:
        parent = tree.shape.parents[node]
        branches = tree.branches[parent]
        place = node - branches.first_child
        ends = (*branches.starts, tree.schema[branches.column].size)
        low, high = runs[branches.column]
        runs[branches.column] = (max(low, ends[place]), min(high, ends[place + 1]))
        node = parent
    parts = [share.of(*runs[share.column]) for share in shares]
    return float(np.prod(parts))
