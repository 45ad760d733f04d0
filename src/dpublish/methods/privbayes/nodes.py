"""The nodes of a network: which columns each depends on, and which counts that takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dpublish.aggregates.cells import ColumnSet
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter


@dataclass(frozen=True)
class Node:
    """A column on a level, and the columns, each on a level, on which it depends."""

    column: str
    level: int
    parents: tuple[tuple[str, int], ...] = ()

    @property
    def columns(self) -> ColumnSet:
        """The column itself, and after it its parents."""
        return ((self.column, self.level), *self.parents)

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """Find the axes of the column and its parents."""
        return tuple(schema[name].axis(level) for name, level in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Turn the node into plain values for a file."""
        parents = [{"column": name, "level": level} for name, level in self.parents]
        return {"column": self.column, "level": self.level, "parents": parents}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        parents = tuple((parent["column"], parent["level"]) for parent in plain["parents"])
        return cls(plain["column"], plain["level"], parents)


def joint_sets(nodes: Sequence[Node]) -> tuple[ColumnSet, ...]:
    """List the sets of columns to count; what can be added up from a later set is left out.

    >>> first, second = Node("sex", 1), Node("town", 1, (("sex", 1),))
    >>> joint_sets([first, second])
    ((('town', 1), ('sex', 1)),)
    """
    sets = [node.columns for node in nodes]
    return tuple(
        one
        for index, one in enumerate(sets)
        if not any(covers(later, one) for later in sets[index + 1 :])
    )


def joint_of(node: Node, sets: Sequence[ColumnSet]) -> int:
    """Find the first of the counted sets from which a node's counts can be added up."""
    return next(index for index, one in enumerate(sets) if covers(one, node.columns))


def covers(one: ColumnSet, other: ColumnSet) -> bool:
    """Tell whether the counts of `other` can be added up from those of `one`."""
    levels = {name: level or 0 for name, level in one}
    return all(levels.get(name, -1) >= (level or 0) for name, level in other)


def require_network(nodes: Sequence[Node], schema: Schema) -> None:
    """Refuse nodes that are no network: every parent comes earlier, and on a level as fine."""
    if not nodes or [node.column for node in nodes] != list(
        dict.fromkeys(node.column for node in nodes)
    ):
        raise InvalidParameter("a network has at least one node, each column once")
    earlier: dict[str, int] = {}
    for node in nodes:
        if any(type(level) is not int or level < 1 for _, level in node.columns):
            raise InvalidParameter(f"the node {node.column!r} has a level that is no level")
        node.axes(schema)  # refuses columns and levels that the schema does not have
        names = [name for name, _ in node.parents]
        if len(set(names)) < len(names):
            raise InvalidParameter(f"the node {node.column!r} lists a parent twice")
        for name, level in node.parents:
            if level > earlier.get(name, 0):
                raise InvalidParameter(f"the node {node.column!r} has a parent that is not earlier")
        earlier[node.column] = node.level


def cell_labels(axes: Sequence[Axis]) -> list[str]:
    """Name the combined cells of several axes, the last counting fastest.

    >>> from dpublish.data.schema import column
    >>> cell_labels([column("sex", "category", values=["F", "M"]).axis()])
    ['sex: F', 'sex: M']
    """
    labels = [""]
    for axis in axes:
        labels = [
            f"{start}, {axis.column}: {label}" if start else f"{axis.column}: {label}"
            for start in labels
            for label in axis.labels
        ]
    return labels
