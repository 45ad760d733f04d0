"""The shape of a published tree: which node is whose child, and what no tree looks like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.trees.kernels import Branches


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
        """Refuse branches that are not runs of all leaves of a predictor."""
        for branches in self.branches.values():
            require_known("column", branches.column, schema.names)
            starts = branches.starts
            ends = (*starts[1:], schema[branches.column].size)
            if branches.column == target or len(starts) < 2 or starts[0] != 0:
                raise InvalidParameter("a node must be parted by a predictor, from its first leaf")
            if any(start >= end for start, end in zip(starts, ends, strict=True)):
                raise InvalidParameter("the branches of a node must be runs of leaves")

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
