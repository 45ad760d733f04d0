"""Counts of records in the nodes of a public tree, by value and by class."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpublish.aggregates.kernel import CodeSums, unbounded
from dpublish.data.batch import Batch
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.trees.tree import Routes
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import IntArray

MAX_CELLS = 2**23
"""Most counts that are held at once: 64 MB."""


@dataclass(frozen=True)
class TreeCounts(CodeSums):
    """Kernel: count the records of some nodes, for each column by code and class.

    A record that ends in none of the nodes is not counted.

    Attributes:
        routes: The tree so far, which is public.
        nodes: Nodes whose records are counted; no two can hold the same record.
        columns: Columns by whose codes records are counted.
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

    def zero(self) -> IntArray:
        """Return the answer for no records."""
        return np.zeros(self.size, dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
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
    def _positions(self) -> IntArray:
        """The position of each node among those that are counted; one more entry for the rest."""
        positions = np.full(max(self.nodes) + 2, -1, dtype=np.int64)
        positions[list(self.nodes)] = np.arange(len(self.nodes))
        return positions

    def split(self, answer: IntArray) -> dict[str, IntArray]:
        """Cut an answer into one array (node, code, class) per column."""
        shapes = [(len(self.nodes), size, self._classes) for size in self._sizes]
        cuts = np.cumsum([a * b * c for a, b, c in shapes])[:-1]
        parts = np.split(answer, cuts)
        return {
            name: part.reshape(shape)
            for name, part, shape in zip(self.columns, parts, shapes, strict=True)
        }

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return how much the counts of one column, over nodes and classes, change (L1).

        A record ends in one node and has one code and one class: it changes one count by one.
        """
        if isinstance(neighbors, AddRemoveRecord):
            return 1
        raise unbounded(neighbors, "use a table with one row per unit")


def cells_per_node(schema: Schema, columns: Sequence[str], target: str) -> int:
    """Count the cells that `TreeCounts` holds for one node."""
    return sum(schema[name].size for name in columns) * schema[target].size
