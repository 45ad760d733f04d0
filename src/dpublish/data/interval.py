"""Cut a range of numbers into cells: the leaves of a numeric column.

Every cell is half open, closed at the left as a rule.  Integers are cut between two
of them, so that the cell from 30 to 35 holds 30, 31, 32, 33 and 34.  The outermost cells
also take what lies beyond them, since values are clipped to the bounds first.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, inf, isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpublish.data.taxonomy import Node
from dpublish.errors import InvalidSchema

Closed = Literal["left", "right"]
MAX_LEAVES = 100_000
MAX_BINS = 1_000_000
MAX_WHOLE = 2**53  # beyond it floats skip integers
_LOOK_UP_LIMIT = 1 << 20
_NUMBER = r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*"
_INTERVAL = re.compile(rf"([\[(]){_NUMBER},{_NUMBER}([\])])")
_WHOLE_RANGE = re.compile(r"([+-]?[0-9]+)(?:\s*\.\.\s*([+-]?[0-9]+))?")


@dataclass(frozen=True)
class Partition:
    """Neighboring cells between `edges`, each closed on the side `closed`.

    With `bins` set, cells are equally wide and found by arithmetic instead of search.
    """

    edges: tuple[float, ...]
    closed: Closed = "left"
    whole: bool = False
    bins: int | None = None

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or not all(map(isfinite, self.edges)):
            raise InvalidSchema("must have at least two edges, all finite")
        if not all(low < high for low, high in pairwise(self.edges)):
            raise InvalidSchema("must have edges that increase, and far enough to tell apart")
        if not isfinite(self.edges[-1] - self.edges[0]) or not isfinite(self._cells_per_unit):
            raise InvalidSchema("must not span more, or less, than a float can measure")
        if self.whole and max(abs(self.edges[0]), abs(self.edges[-1])) > MAX_WHOLE:
            raise InvalidSchema("must have edges below 2^53 in size, where floats skip no number")

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.edges) - 1

    def cut_anew(self, edges: tuple[float, ...]) -> "Partition":
        """Cut the same kind of numbers at other edges."""
        return Partition(edges, whole=self.whole)

    @property
    def low(self) -> float:
        """Least value after clipping."""
        return self.edges[0]

    @property
    def high(self) -> float:
        """Greatest value after clipping."""
        return self.edges[-1] - 1 if self.whole else self.edges[-1]

    @property
    def _cells_per_unit(self) -> float:
        return (self.bins or 1) / (self.edges[-1] - self.edges[0])

    def clip(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring numbers into the bounds; integer columns round down first."""
        if self.whole:
            numbers = np.floor(numbers)
        return np.clip(numbers, self.low, self.high)

    def locate(self, clipped: NDArray[np.float64]) -> NDArray[np.int64]:
        """Find the cell of each number; all lie within the bounds.

        A cell is what its published edges say.  For equal bins a product finds it but for
        rounding, which may miss by one at an edge; comparing with the edges puts that right.
        """
        if self.bins is not None:
            scaled = np.floor((clipped - self.low) * self._cells_per_unit)
            cells = np.minimum(scaled, self.bins - 1).astype(np.int64)
            cells += clipped >= self._starts[cells + 1]
            cells -= clipped < self._starts[cells]
            return cells
        if self._look_up is not None:
            return self._look_up[clipped.astype(np.int64) - int(self.low)]
        side: Literal["left", "right"] = "right" if self.closed == "left" else "left"
        return np.searchsorted(self._inner_edges, clipped, side=side).astype(np.int64)

    @cached_property
    def _starts(self) -> NDArray[np.float64]:
        """Where each cell starts; after the last comes nothing."""
        return np.array((*self.edges[:-1], inf))

    @cached_property
    def _inner_edges(self) -> NDArray[np.float64]:
        return np.array(self.edges[1:-1])

    @cached_property
    def _look_up(self) -> NDArray[np.int64] | None:
        """Cell of every integer, if they are few enough to list."""
        if not self.whole or self.edges[-1] - self.edges[0] > _LOOK_UP_LIMIT:
            return None
        widths = np.diff(np.array(self.edges)).astype(np.int64)
        return np.repeat(np.arange(self.size, dtype=np.int64), widths)

    def label(self, start: int, stop: int) -> str:
        """Name the cells from `start` up to, not including, `stop` as one interval.

        >>> equal_bins(0, 100, 4).label(1, 3), whole_bins(17, 90).label(13, 18)
        ('[25, 75)', '30..34')
        """
        low, high = self.edges[start], self.edges[stop]
        if self.whole:
            last = high - 1
            return f"{low:.0f}" if low == last else f"{low:.0f}..{last:.0f}"
        opening = "[" if self.closed == "left" or start == 0 else "("
        closing = "]" if self.closed == "right" or stop == self.size else ")"
        return f"{opening}{self._texts[start]}, {self._texts[stop]}{closing}"

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        short = tuple(f"{edge:.12g}" for edge in self.edges)
        return short if len(set(short)) == len(short) else tuple(map(repr, self.edges))

    @property
    def labels(self) -> tuple[str, ...]:
        """Name every cell."""
        return tuple(self.label(cell, cell + 1) for cell in range(self.size))


def equal_bins(low: float, high: float, bins: int) -> Partition:
    """Cut the numbers from `low` to `high` into equally wide cells."""
    if not (low < high and isfinite(high - low)):
        raise InvalidSchema("must be two finite numbers, the lower first")
    _require_bins(bins, MAX_BINS)
    edges = (*(low + (high - low) * cell / bins for cell in range(bins)), high)
    return Partition(tuple(map(float, edges)), bins=bins)


def whole_bins(low: int, high: int, bins: int | None = None) -> Partition:
    """Cut the integers from `low` to `high` into cells of their own, or into `bins`.

    The number x goes to cell `(x - low) * bins // (high - low + 1)`.
    """
    if low > high or max(abs(low), abs(high)) >= MAX_WHOLE:
        raise InvalidSchema("must be two integers, the lower first, below 2^53 in size")
    count = high - low + 1
    if bins is None:
        if count > MAX_LEAVES:
            raise InvalidSchema(f"holds {count} integers, more than {MAX_LEAVES}; set bins")
        bins = count
    _require_bins(bins, min(count, MAX_BINS))
    return Partition(
        tuple(float(low - (-cell * count // bins)) for cell in range(bins + 1)), whole=True
    )


def cut_at(cuts: tuple[float, ...], *, whole: bool) -> Partition:
    """Cut at the given edges, of which the first and the last are the bounds."""
    if not whole:
        return Partition(tuple(map(float, cuts)))
    if len(cuts) < 2 or not all(abs(cut) < MAX_WHOLE for cut in cuts):
        raise InvalidSchema("must have at least two edges, below 2^53 in size")
    return Partition((*(float(ceil(cut)) for cut in cuts[:-1]), floor(cuts[-1]) + 1.0), whole=True)


def _require_bins(bins: int, most: int) -> None:
    if not 1 <= bins <= most:
        raise InvalidSchema(f"cannot be cut into {bins} bins; choose 1 to {most}")


@dataclass(frozen=True)
class Interval:
    """An interval with its ends, each of which may be included or not."""

    low: float
    high: float
    include_low: bool = True
    include_high: bool = False

    def to_whole(self) -> "Interval":
        """Keep the integers in it, as an interval that is closed at the left."""
        low = ceil(self.low) if self.include_low else floor(self.low) + 1
        high = floor(self.high) + 1 if self.include_high else ceil(self.high)
        return Interval(float(low), float(high))


def parse_interval(text: str) -> Interval | None:
    """Read `(14.0, 20.0]`, `[0, 5)`, or the integers `30..34` and `30`; else None.

    >>> parse_interval("(14.0, 20.0]")
    Interval(low=14.0, high=20.0, include_low=False, include_high=True)
    """
    if found := _INTERVAL.fullmatch(text.strip()):
        opening, low, high, closing = found.groups()
    elif found := _WHOLE_RANGE.fullmatch(text.strip()):
        opening, low, high, closing = "[", found[1], found[2] or found[1], "]"
    else:
        return None
    span = Interval(float(low), float(high), opening == "[", closing == "]")
    return span if max(abs(span.low), abs(span.high)) < inf else None


@dataclass(frozen=True)
class IntervalTree:
    """A tree of intervals put in order: its leaves as a partition, its nodes named afresh."""

    partition: Partition
    root: Node


def order_intervals(root: Node, *, whole: bool) -> IntervalTree:
    """Sort a tree of intervals, and check that children tile their parents exactly.

    Groups may have names of their own; the leaves must be intervals.

    >>> from dpublish.data.taxonomy import read_tree
    >>> tree = order_intervals(read_tree({"adult": ["(65, 99]", "(17, 65]"]}), whole=True)
    >>> tree.root.label, tree.partition.labels
    ('adult', ('18..65', '66..99'))
    """
    spanned = _span_nodes(root, whole)
    leaves = spanned.leaf_spans()
    sides = {span.include_high for span in leaves[:-1]}
    if len(sides) > 1:
        raise InvalidSchema("must close all intervals on the same side")
    edges = (*(span.low for span in leaves), leaves[-1].high)
    partition = Partition(edges, closed="right" if True in sides else "left", whole=whole)
    return IntervalTree(partition, spanned.rename(partition, 0))


@dataclass(frozen=True)
class _SpannedNode:
    """A node of a tree of intervals, and what it spans; `name` is None if an interval's."""

    name: str | None
    span: Interval
    children: tuple["_SpannedNode", ...]

    def leaf_spans(self) -> list[Interval]:
        if not self.children:
            return [self.span]
        return [span for child in self.children for span in child.leaf_spans()]

    def rename(self, partition: Partition, start: int) -> Node:
        children: list[Node] = []
        stop = start
        for child in self.children:
            children.append(child.rename(partition, stop))
            stop += len(child.leaf_spans())
        label = self.name or partition.label(start, max(stop, start + 1))
        return Node(label, tuple(children))


def _span_nodes(node: Node, whole: bool) -> _SpannedNode:
    declared = parse_interval(node.label or "")
    if declared is not None and whole:
        declared = declared.to_whole()
    if not node.children:
        if declared is None:
            raise InvalidSchema(f"has a leaf {node.label!r} that is no interval such as [0, 10)")
        if declared.low >= declared.high:
            raise InvalidSchema(f"has a leaf {node.label!r} that holds nothing")
        return _SpannedNode(None, declared, ())
    children = tuple(
        sorted((_span_nodes(c, whole) for c in node.children), key=lambda c: c.span.low)
    )
    for left, right in pairwise(child.span for child in children):
        if left.high != right.low or left.include_high == right.include_low:
            gap = left.high < right.low or not (left.include_high or right.include_low)
            fault = "a gap" if gap and left.high <= right.low else "an overlap"
            raise InvalidSchema(f"has {fault} where {left.high:.12g} meets {right.low:.12g}")
    first, last = children[0].span, children[-1].span
    span = Interval(first.low, last.high, first.include_low, last.include_high)
    if declared is not None and declared != span:
        raise InvalidSchema(f"has a node {node.label!r} that its children do not fill exactly")
    return _SpannedNode(None if declared else node.label, span, children)
