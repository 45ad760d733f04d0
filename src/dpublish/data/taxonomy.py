"""A taxonomy: a tree that generalizes a column's values, step by step, up to "any".

Leaves are numbered in the order of the tree, so every node is a run of neighboring
leaves, and a level is nothing but the list of leaves at which its cells start.  Levels
are counted from the root: level 0 is one cell, the deepest level has a cell per leaf.  A
leaf that hangs above a level stays itself on it.  Each level refines the one above, by
construction, so that counts on a fine level can be added up to any coarser one.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, InvalidSchema, require_count

ROOT = "any"
MAX_DEPTH = 50
_INTEGER = re.compile(r"([+-]?[0-9]+)\.0*")
_TRUTH = {"true": "true", "false": "false"}


def canonical_text(value: object) -> str:
    """Write a value the one way in which values are compared.

    Integers lose their decimals and truth values their capitals, so that a table
    read from CSV text and the same table read from typed columns agree.

    >>> [canonical_text(value) for value in (3, 3.0, "3", " 3.0 ", True, "TRUE", "003")]
    ['3', '3', '3', '3', 'true', 'true', '003']
    """
    text = str(value).strip()
    whole = _INTEGER.fullmatch(text)
    return whole[1] if whole else _TRUTH.get(text.lower(), text)


@dataclass(frozen=True)
class Node:
    """A group of nodes; a node without children is a leaf.

    A group that was written without a name has None as its `label`.
    """

    label: str | None
    children: tuple["Node", ...] = ()

    def leaves(self) -> Iterator[str]:
        """Walk through the labels of the leaves below this node, in order."""
        if not self.children:
            yield self.label or ""
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True)
class Level:
    """The cells of one level: the first leaf of each, and their labels."""

    starts: tuple[int, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Taxonomy:
    """Nested levels over the leaves `0 .. size - 1`; the first is the root, the last the leaves.

    >>> work = Taxonomy.from_tree(read_tree({"Paid": ["Private", "State"], "Unpaid": {}}))
    >>> work.labels(1), work.labels(2)
    (('Paid', 'Unpaid'), ('Private', 'State', 'Unpaid'))
    >>> work.leaf_to_cell(1)
    array([0, 0, 1])
    >>> print(work.render())
    any
      Paid
        Private
        State
      Unpaid
    """

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        _check_nested(self.levels)

    @classmethod
    def flat(cls, leaves: Sequence[str]) -> "Taxonomy":
        """Put all `leaves` directly under the root."""
        return cls((Level((0,), (ROOT,)), Level(tuple(range(len(leaves))), tuple(leaves))))

    @classmethod
    def from_tree(cls, root: Node, extra: Sequence[str] = ()) -> "Taxonomy":
        """Number the leaves of a tree; `extra` leaves are hung under the root, at the end."""
        children = root.children + tuple(Node(label) for label in extra)
        whole = Node(root.label or ROOT, children)
        _refuse_repeats(whole)
        paths = list(_paths(whole, ()))
        height = max(map(len, paths)) - 1
        return cls(tuple(_cut(paths, depth) for depth in range(height + 1)))

    @classmethod
    def merging(
        cls,
        leaves: Sequence[str],
        branching: int,
        name: Callable[[int, int], str],
        extra: Sequence[str] = (),
    ) -> "Taxonomy":
        """Merge neighboring leaves, `branching` at a time, until the root holds them all.

        `name` gives the label of the leaves from its first argument up to, not including,
        its second.  The `extra` leaves take no part, and hang under the root.
        """
        require_count(at_least=2, branching=branching)
        count, width = len(leaves), 1
        extra_starts = range(count, count + len(extra))
        levels = [Level((*range(count), *extra_starts), (*leaves, *extra))]
        while (width := width * branching) < count:
            starts = range(0, count, width)
            labels = [name(start, min(start + width, count)) for start in starts]
            levels.append(Level((*starts, *extra_starts), (*labels, *extra)))
        levels.append(Level((0,), (ROOT,)))
        return cls(tuple(reversed(levels)))

    @cached_property
    def size(self) -> int:
        """Number of leaves."""
        return len(self.levels[-1].starts)

    @property
    def height(self) -> int:
        """Deepest level, that of the leaves."""
        return len(self.levels) - 1

    def labels(self, level: int) -> tuple[str, ...]:
        """Name the cells of a level."""
        return self.levels[self.require_level(level)].labels

    def cell_starts(self, level: int) -> NDArray[np.int64]:
        """List the first leaf of each cell of a level, closed off by the number of leaves."""
        return np.array((*self.levels[self.require_level(level)].starts, self.size), dtype=np.int64)

    def leaf_to_cell(self, level: int) -> NDArray[np.int64]:
        """Return for each leaf in which cell of a level it lies."""
        lengths = np.diff(self.cell_starts(level))
        return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)

    def require_level(self, level: int) -> int:
        """Refuse a level that the taxonomy does not have."""
        require_count(at_least=0, level=level)
        if level > self.height:
            raise InvalidParameter(f"level ({level}) must be at most {self.height}, the leaves")
        return level

    @cached_property
    def runs(self) -> dict[str, tuple[int, int]]:
        """Leaves of every node, by canonical label: the first, and the first after the last."""
        found: dict[str, tuple[int, int]] = {}
        for level in self.levels:  # from the root down, so that a leaf wins over the root's name
            runs = pairwise((*level.starts, self.size))
            found.update(zip(map(canonical_text, level.labels), runs, strict=True))
        return found

    def render(self) -> str:
        """Draw the tree as indented lines of text."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """List the lines of the drawn tree."""
        lines: dict[tuple[int, str], int] = {}
        for depth, level in enumerate(self.levels):
            for cell in zip(level.starts, level.labels, strict=True):
                lines.setdefault(cell, depth)  # a leaf above this level was drawn already
        ordered = sorted(lines.items(), key=lambda line: (line[0][0], line[1]))
        return ["  " * depth + label for (_, label), depth in ordered]


def read_tree(plain: object) -> Node:
    """Read a tree of nested tables and lists.

    A table maps the name of a group to what is in it; a list holds leaves, named groups
    (tables) and unnamed groups (lists).  A table with a single group names the root.

    >>> read_tree(["red", ["green", "blue"]]).children[1]
    Node(label=None, children=(Node(label='green', children=()), Node(label='blue', children=())))
    """
    children = _read_children(plain, 1)
    if isinstance(plain, Mapping) and len(children) == 1 and children[0].children:
        return children[0]
    if not children:
        raise InvalidSchema("taxonomy is empty; list the values in it")
    return Node(None, children)


def write_tree(root: Node) -> Any:
    """Write a tree so that `read_tree` gives it back, even if keys are sorted on the way."""
    children = [write_tree(child) for child in root.children]
    if not children:
        return root.label
    return children if root.label is None else {root.label: children}


def _read_children(plain: object, depth: int) -> tuple[Node, ...]:
    if depth > MAX_DEPTH:
        raise InvalidSchema(f"taxonomy is deeper than {MAX_DEPTH} levels")
    if isinstance(plain, Mapping):
        return tuple(Node(str(name), _read_children(x, depth + 1)) for name, x in plain.items())
    if isinstance(plain, list | tuple):
        return tuple(node for item in plain for node in _read_item(item, depth))
    raise InvalidSchema("taxonomy must be made of tables and lists, down to the values")


def _read_item(item: object, depth: int) -> tuple[Node, ...]:
    if isinstance(item, Mapping):
        return _read_children(item, depth)
    if isinstance(item, list | tuple):
        if not item:
            raise InvalidSchema("taxonomy holds an empty list; remove it")
        return (Node(None, _read_children(item, depth + 1)),)
    if isinstance(item, str | int):
        return (Node(item if isinstance(item, str) else canonical_text(item)),)
    raise InvalidSchema("taxonomy may hold only text, integers, true and false as values")


def _name(node: Node) -> str:
    if node.label is not None:
        return node.label
    leaves = list(node.leaves())
    return f"{leaves[0]}..{leaves[-1]}"


def _paths(node: Node, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    path = (*above, _name(node))
    if not node.children:
        yield path
    for child in node.children:
        yield from _paths(child, path)


def _refuse_repeats(root: Node) -> None:
    seen: set[str] = set()
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        waiting += node.children
        label = _name(node)
        if not label.strip():
            raise InvalidSchema("taxonomy holds a blank name; blanks count as missing")
        if canonical_text(label) in seen:
            raise InvalidSchema(f"taxonomy names {label!r} twice; every name must be unique")
        seen.add(canonical_text(label))


def _cut(paths: Sequence[tuple[str, ...]], depth: int) -> Level:
    starts: list[int] = []
    labels: list[str] = []
    for leaf, path in enumerate(paths):
        label = path[min(depth, len(path) - 1)]
        if not labels or label != labels[-1]:
            starts.append(leaf)
            labels.append(label)
    return Level(tuple(starts), tuple(labels))


def _check_nested(levels: tuple[Level, ...]) -> None:
    for level in levels:
        increasing = all(a < b for a, b in pairwise(level.starts))
        if level.starts[:1] != (0,) or not increasing or len(level.labels) != len(level.starts):
            raise InvalidSchema("taxonomy level must start at leaf 0 and list its cells in order")
        if len(set(level.labels)) < len(level.labels):
            raise InvalidSchema("taxonomy gives two cells of a level the same name")
    if len(levels) < 2 or len(levels[0].starts) != 1:
        raise InvalidSchema("taxonomy must have a root of one cell, and leaves")
    if levels[-1].starts[-1] != len(levels[-1].starts) - 1:
        raise InvalidSchema("taxonomy must end in its leaves")
    for above, below in pairwise(levels):
        if not set(above.starts) <= set(below.starts):
            raise InvalidSchema("taxonomy is not nested: a cell crosses two cells above it")
