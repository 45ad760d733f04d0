"""Classes of a column's leaves that hold about as many records each, by its released marginal.

Classes of neighboring leaves are nested: two, four, eight and so on, as far as leaves tell
ranks apart.  They make a taxonomy over the same leaves, on which a few cells say most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.column import with_taxonomy
from dpublish.data.schema import Schema
from dpublish.data.taxonomy import Level, Taxonomy
from dpublish.errors import InvalidParameter

Starts = tuple[int, ...]
"""The first leaf of each class."""
MOST_CLASSES = 32


def rank_levels(probabilities: NDArray[np.float64], ordinary: int) -> tuple[Starts, ...]:
    """Cut the first `ordinary` leaves into nested classes by rank; the others stay alone.

    A leaf belongs to the class in which the middle of its ranks lies.

    >>> rank_levels(np.full(4, 0.25), 4)
    ((0, 2),)
    >>> rank_levels(np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), 6)
    ((0, 1), (0, 1, 3), (0, 1, 2, 3, 5))
    """
    listed = probabilities[:ordinary]
    total = float(listed.sum())
    even = np.full(ordinary, 1 / ordinary)
    middles = np.cumsum(listed) - listed / 2
    ranks = middles / total if total > 0 else np.cumsum(even) - even / 2
    levels: list[Starts] = []
    classes = 2
    while classes <= MOST_CLASSES:
        of_leaf = np.minimum((ranks * classes).astype(np.int64), classes - 1)
        first = np.flatnonzero(np.diff(of_leaf, prepend=-1))
        starts = tuple(int(leaf) for leaf in (*first, *range(ordinary, probabilities.size)))
        if len(starts) > (len(levels[-1]) if levels else 1) and len(starts) < probabilities.size:
            levels.append(starts)
        classes *= 2
    return tuple(levels)


def classed_schema(schema: Schema, classes: Mapping[str, Sequence[Starts]]) -> Schema:
    """Look at the named columns through their classes instead of their own taxonomies."""
    for name, levels in classes.items():
        for starts in levels:
            if not all(type(leaf) is int and 0 <= leaf < schema[name].size for leaf in starts):
                raise InvalidParameter(f"classes of {name!r} must start at its leaves")
    return replace(
        schema,
        columns=tuple(
            with_taxonomy(column, _taxonomy(column.axis(), classes[column.name]))
            if column.name in classes
            else column
            for column in schema.columns
        ),
    )


def _taxonomy(axis: Axis, levels: Sequence[Starts]) -> Taxonomy:
    leaves = axis.leaf_labels
    between = tuple(
        Level(tuple(starts), _labels(leaves, [*pairwise((*starts, len(leaves)))]))
        for starts in levels
    )
    return Taxonomy((axis.taxonomy.levels[0], *between, axis.taxonomy.levels[-1]))


def _labels(leaves: Sequence[str], runs: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Name runs of leaves by their ends; a name that a leaf has already gets their numbers."""
    taken = set(leaves)
    labels = []
    for start, stop in runs:
        label = leaves[start]
        if stop - start > 1:
            label = f"{leaves[start]} to {leaves[stop - 1]}"
            while label in taken:
                label += f" ({start} to {stop - 1})"
        taken.add(label)
        labels.append(label)
    return tuple(labels)
