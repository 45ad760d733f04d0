"""Cuts through the taxonomies of several columns, refined node by node; all of it is public."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from dpublish.data.axis import Axis
from dpublish.data.column import Column
from dpublish.data.cut import cut_axis
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidParameter


class Node(NamedTuple):
    """A node that has children: the leaves below it, and the first leaf of each child."""

    column: str
    start: int
    stop: int
    children: tuple[int, ...]


@dataclass(frozen=True)
class Cuts:
    """A cut through each column's taxonomy, and the nodes of these that can be refined.

    >>> from dpublish.data.schema import column
    >>> work = column("work", "category", taxonomy={"Paid": ["Private", "State"], "Unpaid": {}})
    >>> cuts = Cuts.of_roots([work])
    >>> cuts = cuts.refine(0)
    >>> cuts.starts, cuts.candidates
    ({'work': (0, 2)}, (Node(column='work', start=0, stop=2, children=(0, 1)),))
    >>> cuts.refine(0).axes([work])[0].labels
    ('Private', 'State', 'Unpaid')
    """

    inner: dict[tuple[str, int, int], Node]
    starts: dict[str, tuple[int, ...]]
    candidates: tuple[Node, ...]

    @classmethod
    def of_roots(cls, columns: Sequence[Column]) -> "Cuts":
        """Start with one cell for each column."""
        inner = {node[:3]: node for column in columns for node in inner_nodes(column)}
        roots = [(column.name, 0, column.size) for column in columns]
        starts: dict[str, tuple[int, ...]] = {column.name: (0,) for column in columns}
        return cls(inner, starts, tuple(inner[root] for root in roots if root in inner))

    def refine(self, which: int) -> "Cuts":
        """Replace a candidate by its children."""
        node = self.candidates[which]
        runs = pairwise((*node.children, node.stop))
        below = [self.inner.get((node.column, start, stop)) for start, stop in runs]
        others = self.candidates[:which] + self.candidates[which + 1 :]
        cut = tuple(sorted({*self.starts[node.column], *node.children}))
        return replace(
            self,
            starts=self.starts | {node.column: cut},
            candidates=(*others, *(child for child in below if child is not None)),
        )

    def axes(self, columns: Iterable[Column]) -> tuple[Axis, ...]:
        """Make the axes of the columns that are cut at all."""
        cut = ((column, self.starts[column.name]) for column in columns)
        return tuple(cut_axis(column, starts) for column, starts in cut if len(starts) > 1)


def inner_nodes(column: Column) -> list[Node]:
    """List the nodes of a column's taxonomy that have two children or more.

    A node with one child is the same cell as that child.
    """
    taxonomy = column.taxonomy
    found = []
    for above, below in pairwise(taxonomy.levels):
        for start, stop in pairwise((*above.starts, taxonomy.size)):
            first, last = bisect_left(below.starts, start), bisect_left(below.starts, stop)
            if last - first > 1:
                found.append(Node(column.name, start, stop, below.starts[first:last]))
    return found


def require_distinct_nodes(column: Column) -> None:
    """Refuse a column two of whose nodes, which one cut may hold, have the same name."""
    taxonomy = column.taxonomy
    names: dict[str, tuple[int, int]] = {}
    for level in taxonomy.levels[1:]:
        for run, label in zip(pairwise((*level.starts, taxonomy.size)), level.labels, strict=True):
            if names.setdefault(canonical_text(label), run) != run:
                raise InvalidParameter(
                    f"two groups of values of {column.name!r} are called {label!r}; rename one"
                )


def most_cells(columns: Iterable[Column], steps: int) -> int:
    """Bound the number of cells that `steps` refinements can make.

    A refinement adds one cell less than it has children.  So no cut of a column after s of
    them has more cells than 1 and the s largest additions.

    >>> from dpublish.data.schema import column
    >>> columns = [column(name, "category", values=list("abc")) for name in ("x", "y")]
    >>> most_cells(columns, 1), most_cells(columns, 2), most_cells(columns, 9)
    (3, 9, 9)
    """
    most = [1] * (steps + 1)
    for column in columns:
        additions = sorted((len(node.children) - 1 for node in inner_nodes(column)), reverse=True)
        sizes = [1]
        for addition in additions[:steps]:
            sizes.append(sizes[-1] + addition)
        most = [
            max(most[total - own] * size for own, size in enumerate(sizes[: total + 1]))
            for total in range(steps + 1)
        ]
    return most[-1]
