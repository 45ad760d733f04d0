"""A junction tree: cliques of columns, joined such that one distribution follows from all.

Columns are numbered; each has a number of classes.  Every set of columns that was counted, or
about which something is known, lies in one clique.  Sums over all combinations of classes are
then computed clique by clique: the cost grows with the cells of the cliques, not of the table.

Reference: S. L. Lauritzen and D. J. Spiegelhalter, "Local Computations with Probabilities on
Graphical Structures", Journal of the Royal Statistical Society B 50(2), 1988.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import log, prod
from typing import Any, NamedTuple

import numpy as np

from dpublish.types import FloatArray

Columns = tuple[int, ...]
"""Numbers of columns, in rising order."""
Potentials = Sequence[FloatArray]
"""An array for each clique, shaped by its columns."""


def find_cliques(sizes: Sequence[int], sets: Iterable[Columns]) -> list[Columns]:
    """Find the cliques of a graph that joins the columns of every set.

    Columns are eliminated one by one, first the one whose clique has the fewest cells.

    >>> find_cliques([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    [(0, 1, 3), (1, 2, 3)]
    """
    near: list[set[int]] = [set() for _ in sizes]
    for one in sets:
        for a, b in combinations(one, 2):
            near[a].add(b)
            near[b].add(a)
    logs = [log(size) if size > 0 else 0.0 for size in sizes]
    weights = [logs[i] + sum(logs[j] for j in near[i]) for i in range(len(sizes))]
    left = set(range(len(sizes)))
    found: list[set[int]] = []
    while left:
        column = min(left, key=lambda i: (weights[i], i))
        left.discard(column)
        around = near[column]
        clique = around | {column}
        if not any(clique <= other for other in found):
            found.append(clique)
        for other in around:
            near[other] |= around
            near[other] -= {other, column}
        for other in around:
            weights[other] = logs[other] + sum(logs[j] for j in near[other])
    return [tuple(sorted(clique)) for clique in found]


def count_cells(sizes: Sequence[int], sets: Iterable[Columns]) -> int:
    """Count the cells of all cliques of a tree that holds the sets."""
    return sum(prod(sizes[i] for i in clique) for clique in find_cliques(sizes, sets))


class Beliefs(NamedTuple):
    """The marginal distribution of every clique, and the logarithm of the normalizing sum."""

    tables: tuple[FloatArray, ...]
    log_sum: float


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each follows its parent.

    Attributes:
        sizes: Number of classes of each column.
        cliques: The columns of each clique; the first one is the root.
        parents: The number of each clique's parent, -1 for the root.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], sets: Iterable[Columns]) -> "JunctionTree":
        """Build a tree that holds every column and every set in one clique.

        >>> tree = JunctionTree.of([2, 3, 4], [(0, 1), (1, 2)])
        >>> tree.cliques, tree.parents, tree.separators
        (((0, 1), (1, 2)), (-1, 0), ((), (1,)))
        """
        cliques = find_cliques(sizes, sets)
        order, parents = [0], {0: -1}
        # Join each clique where it shares the most: a maximum spanning tree (Prim).
        shared = {i: (_shared(cliques[i], cliques[0]), 0) for i in range(1, len(cliques))}
        while shared:
            nearest = max(shared, key=lambda i: (shared[i][0], -i))
            parents[nearest] = order.index(shared.pop(nearest)[1])
            order.append(nearest)
            for i, (most, _) in list(shared.items()):
                if (more := _shared(cliques[i], cliques[nearest])) > most:
                    shared[i] = (more, nearest)
        return cls(tuple(sizes), tuple(cliques[i] for i in order), tuple(parents[i] for i in order))

    @cached_property
    def separators(self) -> tuple[Columns, ...]:
        """The columns that each clique shares with its parent."""
        return tuple(
            () if parent < 0 else tuple(sorted({*clique} & {*self.cliques[parent]}))
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The number of classes along each axis of each clique."""
        return tuple(tuple(self.sizes[i] for i in clique) for clique in self.cliques)

    @cached_property
    def cells(self) -> int:
        """Number of cells of all cliques."""
        return sum(prod(shape) for shape in self.shapes)

    @cached_property
    def neighbors(self) -> tuple[tuple[tuple[int, Columns], ...], ...]:
        """For each clique those that it is joined to, with the columns that they share."""
        found: list[list[tuple[int, Columns]]] = [[] for _ in self.cliques]
        for clique, parent in enumerate(self.parents):
            if parent >= 0:
                found[clique].append((parent, self.separators[clique]))
                found[parent].append((clique, self.separators[clique]))
        return tuple(map(tuple, found))

    def find(self, columns: Iterable[int]) -> int:
        """Find the smallest clique that holds some columns; -1 if none does."""
        wanted = set(columns)
        holding = [i for i, clique in enumerate(self.cliques) if wanted <= {*clique}]
        return min(holding, key=lambda i: (prod(self.shapes[i]), i), default=-1)

    def others(self, clique: int, columns: Iterable[int]) -> tuple[int, ...]:
        """Return the axes of a clique that are not among some columns."""
        kept = set(columns)
        return tuple(k for k, i in enumerate(self.cliques[clique]) if i not in kept)

    def spread(self, clique: int, columns: Iterable[int], table: FloatArray) -> FloatArray:
        """Shape a table of some columns of a clique, so that it can be multiplied with it."""
        kept = set(columns)
        return table.reshape([self.sizes[i] if i in kept else 1 for i in self.cliques[clique]])

    def start(self) -> list[FloatArray]:
        """Return potentials that say nothing."""
        return [np.zeros(shape) for shape in self.shapes]

    def beliefs(self, potentials: Potentials) -> Beliefs:
        """Compute the marginals of all cliques, from logarithms of potentials.

        Combinations whose potential is minus infinity have probability 0.
        """
        logs = list(potentials)
        upward: list[FloatArray] = [np.zeros(())] * len(logs)
        for clique in range(len(logs) - 1, 0, -1):
            shared, parent = self.separators[clique], self.parents[clique]
            message = _log_sum(logs[clique], self.others(clique, shared))
            upward[clique] = message
            logs[parent] = logs[parent] + self.spread(parent, shared, message)
        log_sum = float(_log_sum(logs[0], tuple(range(logs[0].ndim))))
        found: list[FloatArray] = [np.exp(logs[0] - log_sum)]
        for clique in range(1, len(logs)):
            shared, parent = self.separators[clique], self.parents[clique]
            marginal = found[parent].sum(axis=self.others(parent, shared))
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(marginal > 0, np.log(marginal) - upward[clique], -np.inf)
            belief = np.exp(logs[clique] + self.spread(clique, shared, np.asarray(factor)))
            found.append(belief / belief.sum())
        return Beliefs(tuple(found), log_sum)

    def joint(self, tables: Potentials, columns: Columns) -> FloatArray:
        """Compute the marginal of some columns from those of the cliques."""
        home = self.find(columns)
        if home >= 0:
            return np.asarray(tables[home].sum(axis=self.others(home, columns)))
        operands: list[Any] = []
        for clique, table in self._joining(tables, columns):
            operands += [table, list(self.cliques[clique])]
        return np.asarray(np.einsum(*operands, list(columns), optimize="greedy"))

    def _joining(self, tables: Potentials, columns: Columns) -> Iterator[tuple[int, FloatArray]]:
        """Yield the cliques that join some columns: one marginal, then conditional ones."""
        homes = {self.find((column,)) for column in columns}
        first = min(homes)
        kept = {first}
        for home in homes:  # the paths to the root, but for what all of them share
            kept |= set(self.path(home, first))
        reached: set[int] = set()
        todo: list[tuple[int, Columns]] = [(first, ())]
        while todo:
            clique, shared = todo.pop()
            reached.add(clique)
            yield (
                clique,
                tables[clique]
                if not reached - {clique}
                else self.conditional(tables, clique, shared),
            )
            for other, between in self.neighbors[clique]:
                if other in kept and other not in reached:
                    todo.append((other, between))

    def path(self, one: int, other: int) -> list[int]:
        """List the cliques between two, both included."""
        above, below = self._ancestors(one), self._ancestors(other)
        common = next(i for i in above if i in below)
        return [*above[: above.index(common) + 1], *below[: below.index(common)]]

    def _ancestors(self, clique: int) -> list[int]:
        found = [clique]
        while self.parents[found[-1]] >= 0:
            found.append(self.parents[found[-1]])
        return found

    def conditional(self, tables: Potentials, clique: int, given: Columns) -> FloatArray:
        """Compute a clique's distribution given some of its columns; 0 where these have none."""
        table = tables[clique]
        if not given:
            return table
        total = table.sum(axis=self.others(clique, given), keepdims=True)
        return _divide(table, np.broadcast_to(total, table.shape))

    def pairs(self, tables: Potentials) -> dict[tuple[int, int], FloatArray]:
        """Compute the marginals of all pairs of columns.

        From each column, its joint distribution with a clique is passed on to the next: the
        cost grows with the number of cells times that of all classes.
        """
        given = {
            (clique, other): self.conditional(tables, other, shared)
            for clique, near in enumerate(self.neighbors)
            for other, shared in near
        }
        found: dict[tuple[int, int], FloatArray] = {}
        for column in range(len(self.sizes)):
            found.update(self._pairs_of(column, tables, given))
        return found

    def _pairs_of(
        self, column: int, tables: Potentials, given: Mapping[tuple[int, int], FloatArray]
    ) -> dict[tuple[int, int], FloatArray]:
        """Compute the marginals of a column with every later one."""
        size = self.sizes[column]
        home = self.find((column,))
        axis = self.cliques[home].index(column)
        joint = np.zeros((size, *self.shapes[home]))
        for value in range(size):
            at = tuple(value if k == axis else slice(None) for k in range(joint.ndim - 1))
            joint[(value, *at)] = tables[home][at]
        found: dict[tuple[int, int], FloatArray] = {}
        todo = [(home, -1, joint)]
        while todo:
            clique, before, joint = todo.pop()
            members = self.cliques[clique]
            for k, other in enumerate(members):
                if other > column and (column, other) not in found:
                    axes = tuple(j + 1 for j in range(len(members)) if j != k)
                    found[column, other] = joint.sum(axis=axes)
            for other, shared in self.neighbors[clique]:
                if other == before:
                    continue
                message = joint.sum(axis=tuple(k + 1 for k in self.others(clique, shared)))
                shape = [self.sizes[i] if i in shared else 1 for i in self.cliques[other]]
                passed = message.reshape(size, *shape) * given[clique, other]
                todo.append((other, clique, passed))
        return found


def _shared(one: Columns, other: Columns) -> int:
    return len({*one} & {*other})


def _log_sum(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Compute the logarithm of a sum over some axes from logarithms; minus infinity for none."""
    top = logs.max(axis=axes, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(logs - top).sum(axis=axes))
    return np.asarray(found + np.squeeze(top, axis=axes))


def _divide(one: FloatArray, other: FloatArray) -> FloatArray:
    """Divide where that can be done; 0 elsewhere."""
    return np.divide(one, other, out=np.zeros(np.shape(one)), where=other > 0)
