"""A public decision tree: the route of a record through it, its shape, and its rules in words.

A tree is a mapping from inner nodes to their branches.  All of it is published, or made from
what is published; no record decides anything here but its own route.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.column import Column
from dpublish.data.query.language import quote
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.types import IntArray


@dataclass(frozen=True)
class Branches:
    """How a node parts its records: by the code of `column`, in runs.

    Branch i leads to the node `first_child` + i and takes the codes from `starts[i]` up to,
    not including, `starts[i + 1]`.
    """

    column: str
    starts: tuple[int, ...]
    first_child: int

    @property
    def children(self) -> range:
        """Numbers of the child nodes."""
        return range(self.first_child, self.first_child + len(self.starts))

    def runs(self, size: int) -> list[tuple[int, int]]:
        """List the codes of each branch: the first, and the first after the last.

        `size` is the number of codes of the column.
        """
        return list(pairwise((*self.starts, size)))


@dataclass(frozen=True)
class Routes:
    """The way of a record down a tree: a function of the record and of the public tree alone.

    Attributes:
        schema: The columns and their codes.
        branches: How each inner node parts its records, by the number of the node; 0 is the
            root, and children have greater numbers than their parents.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 3]),))
    >>> routes = Routes(schema, {0: Branches("age", (0, 2), 1)})
    >>> routes.follow({"age": np.array([0, 1, 2, 3, -1])}, 5)
    array([1, 1, 2, 2, 0])
    """

    schema: Schema
    branches: Mapping[int, Branches]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns by which some node parts its records."""
        return tuple(dict.fromkeys(b.column for b in self.branches.values()))

    def follow(self, codes: Mapping[str, NDArray[Any]], size: int) -> IntArray:
        """Find the node in which each of `size` records ends.

        A record whose value is unknown (a negative code) ends at the node that splits by it.
        """
        node = np.zeros(size, dtype=np.int64)
        if not self.branches:
            return node
        columns, offsets, steps = self._tables
        stacked = np.stack([codes[name].astype(np.int64) for name in self.columns])
        moving = np.arange(size)
        while moving.size:
            at = node[moving]
            inner = at < len(columns)
            inner[inner] = columns[at[inner]] >= 0
            moving, at = moving[inner], at[inner]
            code = stacked[columns[at], moving]
            known = code >= 0
            moving = moving[known]
            node[moving] = steps[offsets[at[known]] + code[known]]
        return node

    @cached_property
    def _tables(self) -> tuple[IntArray, IntArray, IntArray]:
        """Build one list of next nodes, by code, of all nodes; each node's column and offset."""
        columns = np.full(max(self.branches) + 1, -1, dtype=np.int64)
        offsets = np.zeros_like(columns)
        steps: list[IntArray] = []
        length = 0
        for node, branches in self.branches.items():
            size = self.schema[branches.column].size
            runs = np.diff((*branches.starts, size))
            columns[node] = self.columns.index(branches.column)
            offsets[node] = length
            steps.append(np.repeat(branches.children, runs))
            length += size
        return columns, offsets, np.concatenate(steps)


@dataclass(frozen=True)
class TreeShape:
    """Nodes numbered level by level, children in the order of their parents; 0 is the root.

    >>> shape = TreeShape({0: Branches("age", (0, 2), 1), 2: Branches("sex", (0, 1), 3)})
    >>> shape.parents, shape.depths, shape.leaves
    ((-1, 0, 0, 2, 2), (0, 1, 1, 2, 2), (1, 3, 4))
    """

    branches: Mapping[int, Branches]

    def __post_init__(self) -> None:
        first = 1
        for node, branches in self.branches.items():
            if not 0 <= node < first == branches.first_child:
                raise InvalidParameter("nodes must be numbered level by level")
            first += len(branches.starts)
        if list(self.branches) != sorted(self.branches):
            raise InvalidParameter("nodes must be numbered level by level")

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.parents)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The parent of each node; -1 for the root."""
        return (-1, *(node for node, b in self.branches.items() for _ in b.starts))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """How many splits lie above each node."""
        depths = [0]
        for parent in self.parents[1:]:
            depths.append(depths[parent] + 1)
        return tuple(depths)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Numbers of the leaves."""
        return tuple(node for node in range(self.size) if node not in self.branches)

    def require_columns(self, schema: Schema, target: str) -> None:
        """Refuse branches that are not runs of all codes of a predictor."""
        for branches in self.branches.values():
            require_known("column", branches.column, schema.names)
            starts = branches.starts
            ends = (*starts[1:], schema[branches.column].size)
            if branches.column == target or len(starts) < 2 or starts[0] != 0:
                raise InvalidParameter("a node must be split by a predictor, from its first code")
            if any(start >= end for start, end in zip(starts, ends, strict=True)):
                raise InvalidParameter("the branches of a node must be runs of codes")

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> "TreeShape":
        """Gather the branches of each node from a list of nodes."""
        children: dict[int, list[int]] = {}
        for number, row in enumerate(rows[1:], start=1):
            children.setdefault(row["parent"], []).append(number)
        found = {}
        for node, row in enumerate(rows):
            below = children.pop(node, [])
            if (row["split_by"] is None) == bool(below):
                raise InvalidParameter("a node has branches if it is split, and only then")
            if below:
                starts = tuple(int(rows[child]["first_code"]) for child in below)
                found[node] = Branches(str(row["split_by"]), starts, below[0])
        if children or not rows or rows[0]["parent"] is not None:
            raise InvalidParameter("every node but the root has a parent")
        return cls(found)


# --- In words -----------------------------------------------------------------------------------


def branch_conditions(schema: Schema, tree: Mapping[int, Branches]) -> Iterator[str]:
    """Describe, for each node but the root, which records of its parent it holds."""
    for branches in tree.values():
        column = schema[branches.column]
        for run in branches.runs(column.size):
            yield condition(column, [run])


def write_rules(
    schema: Schema, tree: Mapping[int, Branches], predicted: Sequence[int], labels: Sequence[str]
) -> str:
    """Write a tree as indented lines; branches that predict the same class are one line.

    Args:
        schema: The columns.
        tree: How inner nodes part their records.
        predicted: The class that each node predicts.
        labels: Names of the classes.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 9]),))
    >>> print(write_rules(schema, {0: Branches("age", (0, 4), 1)}, [0, 1, 0], ["low", "high"]))
    age < 4: high
    age >= 4: low
    """
    settled = _settled(tree, predicted)
    if settled[0] is not None:
        return f"all records: {labels[settled[0]]}"
    return "\n".join(_lines(schema, tree, settled, labels, node=0, depth=0))


def condition(column: Column, runs: Sequence[tuple[int, int]]) -> str:
    """Describe the records whose value lies in one of `runs` of codes.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 99], bins=10)
    >>> condition(age, [(0, 3)]), condition(age, [(3, 10)])
    ('age < 30', 'age >= 30')
    >>> condition(column("sex", "category", values=["F", "M"]), [(0, 1)])
    'sex = F'
    """
    axis = column.axis()
    name = quote(column.name)
    if axis.leaf_edges is not None and len(runs) == 1:
        return _number_condition(name, axis, *runs[0])
    labels = [label for run in runs for label in _labels(axis, *run)]
    if len(labels) == 1:
        return f"{name} = {quote(labels[0])}"
    return f"{name} in {', '.join(map(quote, labels))}"


def _number_condition(name: str, axis: Axis, start: int, stop: int) -> str:
    edges = axis.leaf_edges or ()
    with_special = stop > axis.ordinary_leaves
    missing = axis.leaf_labels[axis.ordinary_leaves :] if with_special else ()
    if start >= axis.ordinary_leaves:
        return f"{name} = {', '.join(missing)}"
    above, below = (">=", "<") if axis.closed == "left" else (">", "<=")
    parts = []
    if start > 0:
        parts.append(f"{name} {above} {_written(axis, edges[start])}")
    if stop < axis.ordinary_leaves:
        parts.append(f"{name} {below} {_written(axis, edges[stop])}")
    text = " and ".join(parts) or f"{name} is {'a number' if axis.date_kind is None else 'a date'}"
    return " or ".join([text, *missing])


def _written(axis: Axis, edge: float) -> str:
    return f"{edge:.12g}" if axis.date_kind is None else quote(axis.write(edge))


def _labels(axis: Axis, start: int, stop: int) -> tuple[str, ...]:
    """Name a run of codes: the node of the taxonomy that it is, else value by value."""
    for level in axis.taxonomy.levels:
        ends = (*level.starts[1:], axis.taxonomy.size)
        for first, end, label in zip(level.starts, ends, level.labels, strict=True):
            if (first, end) == (start, stop):
                return (label,)
    return axis.leaf_labels[start:stop]


def _lines(
    schema: Schema,
    tree: Mapping[int, Branches],
    settled: Sequence[int | None],
    labels: Sequence[str],
    *,
    node: int,
    depth: int,
) -> Iterator[str]:
    branches = tree[node]
    column = schema[branches.column]
    groups: dict[int | None, list[tuple[int, int]]] = {}
    for child, run in zip(branches.children, branches.runs(column.size), strict=True):
        if settled[child] is None:
            yield "  " * depth + condition(column, [run])
            yield from _lines(schema, tree, settled, labels, node=child, depth=depth + 1)
        else:
            groups.setdefault(settled[child], []).append(run)
    for label, runs in groups.items():
        predicted = labels[label] if label is not None else ""
        yield "  " * depth + f"{condition(column, runs)}: {predicted}"


def _settled(tree: Mapping[int, Branches], predicted: Sequence[int]) -> list[int | None]:
    """Find for each node the class that all its leaves predict, if they agree."""
    found: list[int | None] = [int(label) for label in predicted]
    for node, branches in reversed(list(tree.items())):
        below = {found[child] for child in branches.children}
        found[node] = below.pop() if len(below) == 1 else None
    return found
