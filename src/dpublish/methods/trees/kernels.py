"""Records sorted into the nodes of a public tree, and counted there by value and by class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.cells import unbounded
from dpublish.data.schema import Schema
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors

MAX_CELLS = 2**23
"""Most counts that are held at once: 64 MB."""


@dataclass(frozen=True)
class Branches:
    """How a node parts its records: by the leaf of `column`, in runs.

    Branch i leads to the node `first_child` + i and takes the leaves from `starts[i]` up to,
    not including, `starts[i + 1]`.
    """

    column: str
    starts: tuple[int, ...]
    first_child: int


@dataclass(frozen=True)
class Routes:
    """The way of a record down a tree: a function of the record and of the public tree alone.

    Attributes:
        schema: The columns and their leaves.
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

    def follow(self, codes: Mapping[str, NDArray[Any]], size: int) -> NDArray[np.int64]:
        """Find the node in which each of `size` records ends.

        A record whose value has no leaf (a negative code) ends at the node that asks for it.
        """
        node = np.zeros(size, dtype=np.int64)
        if not self.branches:
            return node
        columns, places, steps = self._tables
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
            node[moving] = steps[places[at[known]] + code[known]]
        return node

    @cached_property
    def _tables(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Give each node's column and place in a list that names the next node of each leaf."""
        columns = np.full(max(self.branches) + 1, -1, dtype=np.int64)
        places = np.zeros_like(columns)
        steps: list[NDArray[np.int64]] = []
        length = 0
        for node, branches in self.branches.items():
            size = self.schema[branches.column].size
            runs = np.diff((*branches.starts, size))
            columns[node] = self.columns.index(branches.column)
            places[node] = length
            steps.append(np.repeat(branches.first_child + np.arange(runs.size), runs))
            length += size
        return columns, places, np.concatenate(steps)


@dataclass(frozen=True)
class TreeCounts:
    """Kernel: count the records of some nodes, for each column by leaf and class.

    A record that ends in none of the nodes is not counted.

    Attributes:
        routes: The tree so far, which is public.
        nodes: Nodes whose records are counted; no two can hold the same record.
        columns: Columns whose leaves are told apart.
        target: Column of the classes.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 2]),
    ...                  column("sex", "category", values=["F", "M"])))
    >>> kernel = TreeCounts(Routes(schema, {}), (0,), ("age",), "sex")
    >>> answer = kernel.zero()
    >>> codes = {"age": np.array([0, 2, 2]), "sex": np.array([1, 0, 1])}
    >>> kernel.add(Batch(3, codes=codes), answer)
    >>> kernel.split(answer)["age"].tolist()
    [[[0, 1], [0, 0], [1, 1]]]
    """

    routes: Routes
    nodes: tuple[int, ...]
    columns: tuple[str, ...]
    target: str

    def __post_init__(self) -> None:
        if self.size > MAX_CELLS and len(self.nodes) > 1:
            raise InvalidParameter("these are too many nodes to count at once")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes.

        They are the same for every tree over the same columns, so that a rule for missing
        values leaves out the same records every time.
        """
        return (*self.columns, self.target)

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers: none."""
        return ()

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(self.routes.schema[name].size for name in self.columns)

    @cached_property
    def _classes(self) -> int:
        return self.routes.schema[self.target].size

    @cached_property
    def size(self) -> int:
        """Number of counts of all nodes and columns together."""
        return len(self.nodes) * cells_per_node(self.routes.schema, self.columns, self.target)

    def zero(self) -> NDArray[np.int64]:
        """Make the answer for no records."""
        return np.zeros(self.size, dtype=np.int64)

    def add(self, batch: Batch, out: NDArray[np.int64]) -> None:
        """Add the records of `batch` to `out`."""
        codes = {name: batch.codes(name) for name in self.codes}
        ends = self.routes.follow(codes, len(batch))
        position = self._positions[np.minimum(ends, self._positions.size - 1)]
        kept = np.flatnonzero(position >= 0)
        position = position[kept]
        classes = codes[self.target][kept].astype(np.int64)
        start = 0
        for name, size in zip(self.columns, self._sizes, strict=True):
            stop = start + len(self.nodes) * size * self._classes
            keys = (position * size + codes[name][kept]) * self._classes + classes
            np.add.at(out[start:stop], keys, 1)
            start = stop

    @cached_property
    def _positions(self) -> NDArray[np.int64]:
        """The position of each node among those that are counted; one more entry for the rest."""
        places = np.full(max(self.nodes) + 2, -1, dtype=np.int64)
        places[list(self.nodes)] = np.arange(len(self.nodes))
        return places

    def merge(self, out: NDArray[np.int64], other: NDArray[np.int64]) -> None:
        """Add another partial answer to `out`."""
        out += other

    def split(self, answer: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Cut an answer into one array (node, leaf, class) per column."""
        shapes = [(len(self.nodes), size, self._classes) for size in self._sizes]
        cuts = np.cumsum([a * b * c for a, b, c in shapes])[:-1]
        parts = np.split(answer, cuts)
        return {
            name: part.reshape(shape)
            for name, part, shape in zip(self.columns, parts, shapes, strict=True)
        }

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Say how much the counts of one column, of all nodes and classes, change at most (L1).

        A record ends in one node and has one leaf and one class: it changes one count by one.
        """
        if isinstance(neighbors, AddRemoveRecord):
            return 1
        raise unbounded(neighbors, "use a table with one row per unit")


def cells_per_node(schema: Schema, columns: Sequence[str], target: str) -> int:
    """Count the cells that `TreeCounts` holds for one node."""
    return sum(schema[name].size for name in columns) * schema[target].size
