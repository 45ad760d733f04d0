"""A decision tree in words: what each branch holds, and the tree as indented rules."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from dpublish.core.query.language import quote
from dpublish.data.axis import Axis
from dpublish.data.column import Column
from dpublish.methods.trees.kernels import Branches

if TYPE_CHECKING:
    from dpublish.methods.trees.released import DecisionTreeRelease


def branch_texts(tree: "DecisionTreeRelease") -> Iterator[str]:
    """Say of each node but the root which records of its parent it holds."""
    for branches in tree.branches.values():
        column = tree.schema[branches.column]
        for run in runs_of(branches, column):
            yield condition(column, [run])


def runs_of(branches: Branches, column: Column) -> list[tuple[int, int]]:
    """List the leaves of each branch: the first, and the first after the last."""
    return list(pairwise((*branches.starts, column.size)))


def condition(column: Column, runs: Sequence[tuple[int, int]]) -> str:
    """Describe the records whose value lies in one of `runs` of leaves.

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
        parts.append(f"{name} {above} {edges[start]:.12g}")
    if stop < axis.ordinary_leaves:
        parts.append(f"{name} {below} {edges[stop]:.12g}")
    text = " and ".join(parts) or f"{name} is a number"
    return " or ".join([text, *missing])


def _labels(axis: Axis, start: int, stop: int) -> tuple[str, ...]:
    """Name a run of leaves: the node of the taxonomy that it is, else leaf by leaf."""
    for level in axis.taxonomy.levels:
        ends = (*level.starts[1:], axis.taxonomy.size)
        for first, end, label in zip(level.starts, ends, level.labels, strict=True):
            if (first, end) == (start, stop):
                return (label,)
    return axis.leaf_labels[start:stop]


def write_rules(tree: "DecisionTreeRelease") -> str:
    """Write a tree as indented lines."""
    labels = tree.classes.labels
    settled = _settled(tree)
    if settled[0] is not None:
        return f"all records: {labels[settled[0]]}"
    return "\n".join(_lines(tree, 0, settled, 0))


def _lines(
    tree: "DecisionTreeRelease", node: int, settled: Sequence[int | None], depth: int
) -> Iterator[str]:
    branches = tree.branches[node]
    column = tree.schema[branches.column]
    groups: dict[int | None, list[tuple[int, int]]] = {}
    for child, run in enumerate(runs_of(branches, column), start=branches.first_child):
        if settled[child] is None:
            yield "  " * depth + condition(column, [run])
            yield from _lines(tree, child, settled, depth + 1)
        else:
            groups.setdefault(settled[child], []).append(run)
    for label, runs in groups.items():
        predicted = tree.classes.labels[label] if label is not None else ""
        yield "  " * depth + f"{condition(column, runs)}: {predicted}"


def _settled(tree: "DecisionTreeRelease") -> list[int | None]:
    """Find for each node the class that all its leaves predict, if they agree."""
    found: list[int | None] = [int(label) for label in tree.predicted]
    for node, branches in reversed(list(tree.branches.items())):
        first = branches.first_child
        below = set(found[first : first + len(branches.starts)])
        found[node] = below.pop() if len(below) == 1 else None
    return found
