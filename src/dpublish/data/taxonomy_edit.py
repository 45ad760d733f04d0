"""Draw the taxonomy of a column anew: its tree as it is, and a drawn tree as keys of the schema.

What is drawn arranges the leaves that there are: every one occurs in it once, and none is added.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from dpublish.data.column import Column, NumberColumn
from dpublish.data.date_column import DateColumn, DatePartColumn
from dpublish.data.interval import order_intervals, parse_interval
from dpublish.data.taxonomy import MAX_DEPTH, Node, canonical_text, write_tree
from dpublish.errors import InvalidSchema

MOST_LEAVES = 1_000
"""Trees of more leaves are no work for a mouse; a code list with columns of groups says them."""
_CUTS = ("bounds", "bins", "cuts", "branching")


def current_tree(column: Column) -> Node:
    """Return the tree of a column over its own leaves; groups named by their range have no name.

    >>> from dpublish.data.schema import column
    >>> age = column("age", "integer", bounds=[0, 3], branching=2)
    >>> write_tree(current_tree(age))
    [['0', '1'], ['2', '3']]
    """
    _require_drawable(column)
    if isinstance(column, NumberColumn) and column.tree is not None:
        return _without_ranges(order_intervals(column.tree, whole=column.partition.whole).root)
    if column.tree is not None:
        return column.tree
    levels = column.taxonomy.levels
    own = column.size - column.axis().special
    return Node(None, tuple(_nest(levels, 1, 0, own)))


def can_draw(column: Column) -> bool:
    """Whether a column has a tree to draw: dates have the levels of the calendar."""
    return not isinstance(column, DateColumn | DatePartColumn) and column.size <= MOST_LEAVES


def read_drawn(plain: Any, depth: int = 1) -> Node:
    """Read a node that was drawn: its name, and what is in it if it is a group.

    >>> read_drawn({"name": None, "children": [{"name": "a"}, {"name": "b"}]}).children[1].label
    'b'
    """
    name = plain.get("name") if isinstance(plain, Mapping) else ()
    if not (name is None or isinstance(name, str)) or depth > MAX_DEPTH:
        raise InvalidSchema("this is no drawn tree; open the page again")
    label = None if name is None or not name.strip() else name.strip()
    inside = plain.get("children")
    if inside is None:
        if label is None:
            raise InvalidSchema("a value has no name; open the page again")
        return Node(label)
    if not isinstance(inside, list):
        raise InvalidSchema("this is no drawn tree; open the page again")
    if not inside:
        raise InvalidSchema(f"the group {label or '(no name)'} is empty; fill it, or delete it")
    return Node(label, tuple(read_drawn(child, depth + 1) for child in inside))


def drawn_keys(declared: Mapping[str, Any], column: Column, drawn: Node) -> dict[str, Any]:
    """Return the keys of a column with a drawn tree, instead of the taxonomy that it had.

    >>> from dpublish.data.schema import column
    >>> declared = {"kind": "integer", "bounds": [0, 3], "missing": "drop"}
    >>> drawn = Node(None, (Node("low", (Node("0"), Node("1"))), Node("2"), Node("3")))
    >>> drawn_keys(declared, column("n", **declared), drawn)["taxonomy"]
    [{'low': ['0', '1']}, '2', '3']
    """
    _require_drawable(column)
    _require_leaves(column, drawn)
    is_flat = not any(child.children for child in drawn.children)
    if is_flat and not {"taxonomy", "branching"} & declared.keys():
        return dict(declared)
    gone = {"taxonomy", "taxonomy_key", "branching"}
    if isinstance(column, NumberColumn):
        gone.update(_CUTS)
    kept = {key: value for key, value in declared.items() if key not in gone}
    if is_flat and "values" in kept:
        return kept
    return kept | {"taxonomy": write_tree(Node(drawn.label, drawn.children))}


def _require_drawable(column: Column) -> None:
    if isinstance(column, DateColumn | DatePartColumn):
        raise InvalidSchema(
            f"column {column.name!r} has the levels of the calendar; a tree of its own is not drawn"
        )
    if column.size > MOST_LEAVES:
        raise InvalidSchema(
            f"column {column.name!r} has {column.size:,} values, more than {MOST_LEAVES:,}; group "
            "them in a code list whose other columns are groups, and name it as the taxonomy"
        )


def _require_leaves(column: Column, drawn: Node) -> None:
    """Refuse a drawn tree that does not have every leaf of a column once."""
    there = Counter(map(canonical_text, current_tree(column).leaves()))
    found = Counter(map(canonical_text, drawn.leaves()))
    for text in [*there, *found]:
        if found[text] < there[text]:
            raise InvalidSchema(f"the tree lacks {text!r}; every value is in it once")
        if found[text] > max(there[text], 1):
            raise InvalidSchema(f"the tree has {text!r} twice; every value is in it once")
        if not there[text]:
            raise InvalidSchema(f"the tree has {text!r}, which is no value of the column")


def _nest(levels: Any, depth: int, start: int, stop: int) -> Iterator[Node]:
    """Build the nodes of a level between two leaves, with what is below them."""
    level = levels[depth]
    ends = [*level.starts, len(levels[-1].starts)]
    for low, high in pairwise(ends):
        if not start <= low < stop:
            continue
        if high - low == 1 or depth == len(levels) - 1:
            yield Node(levels[-1].labels[low])
        else:
            yield Node(None, tuple(_nest(levels, depth + 1, low, high)))


def _without_ranges(node: Node) -> Node:
    is_range = bool(node.children) and parse_interval(node.label or "") is not None
    children = tuple(map(_without_ranges, node.children))
    return Node(None if is_range else node.label, children)
