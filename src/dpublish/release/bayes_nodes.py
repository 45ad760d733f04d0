"""The nodes of a network: which columns each depends on, and which counts that takes."""

from collections.abc import Sequence
from dataclasses import dataclass

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
        if not any(_covers(later, one) for later in sets[index + 1 :])
    )


def joint_of(node: Node, sets: Sequence[ColumnSet]) -> int:
    """Find the first of the counted sets from which a node's counts can be added up."""
    return next(index for index, one in enumerate(sets) if _covers(one, node.columns))


def _covers(one: ColumnSet, other: ColumnSet) -> bool:
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
