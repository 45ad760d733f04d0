"""Drawings of networks: what depends on what, from top to bottom, written as SVG by hand."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from dpublish.plots.style import FRAME, INK, PAPER, shortened

MOST_NODES = 40
"""More nodes than this are no picture any more."""

_WIDTH, _LAYER, _BOX, _EDGE = 720.0, 74.0, 26.0, 8.0
_PER_ROW = 6
_LETTER, _LONGEST = 6.6, 40


class _Position(NamedTuple):
    """The middle of a node's upper side, and the width that is there for it."""

    across: float
    down: float
    room: float


def network(parents: Mapping[str, Sequence[str]], *, is_directed: bool = True) -> str:
    """Draw nodes as boxes below their parents, which come before them in the mapping.

    >>> network({"a": [], "b": ["a"]}).count("<rect"), network({"a": [], "b": ["a"]}).count("<path")
    (2, 2)
    """
    positions = _arrange(parents)
    edges = "".join(
        _edge(positions[parent], positions[node])
        for node, above in parents.items()
        for parent in above
    )
    boxes = "".join(_box(node, position) for node, position in positions.items())
    height = max(position.down for position in positions.values()) + _BOX + 2
    tip = (
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{FRAME}"/></marker></defs>'
    )
    ends = ' marker-end="url(#tip)"' if is_directed else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'role="img" font-family="sans-serif" font-size="12">{tip if is_directed else ""}'
        f'<g fill="none" stroke="{FRAME}"{ends}>{edges}</g>{boxes}</svg>'
    )


def _arrange(parents: Mapping[str, Sequence[str]]) -> dict[str, _Position]:
    """Arrange nodes in rows, each below the lowest of its parents, near the middle of them."""
    depth: dict[str, int] = {}
    for node, above in parents.items():
        depth[node] = 1 + max((depth[parent] for parent in above), default=-1)
    positions: dict[str, _Position] = {}
    down = 1.0
    for layer in range(max(depth.values()) + 1):
        nodes = [node for node, at in depth.items() if at == layer]
        nodes.sort(key=lambda node: _middle([positions[parent].across for parent in parents[node]]))
        for start in range(0, len(nodes), _PER_ROW):
            row = nodes[start : start + _PER_ROW]
            for number, node in enumerate(row):
                room = _WIDTH / len(row)
                positions[node] = _Position(room * (number + 0.5), down, room)
            down += _LAYER if start + _PER_ROW >= len(nodes) else _BOX + 14
    return positions


def _middle(across: Sequence[float]) -> float:
    return sum(across) / len(across) if across else _WIDTH / 2


def _edge(above: _Position, below: _Position) -> str:
    """Draw a line from the lower side of a box to the upper side of another."""
    start, end, gap = above.down + _BOX, below.down, (below.down - above.down - _BOX) / 2
    return (
        f'<path d="M{above.across:.1f} {start:.1f}C{above.across:.1f} {start + gap:.1f} '
        f'{below.across:.1f} {end - gap:.1f} {below.across:.1f} {end:.1f}"/>'
    )


def _box(name: str, position: _Position) -> str:
    across, down = position.across, position.down
    label = shortened(name, min(_LONGEST, int((position.room - 3 * _EDGE) / _LETTER)))
    width = len(label) * _LETTER + 2 * _EDGE
    return (
        f'<rect x="{across - width / 2:.1f}" y="{down:.1f}" width="{width:.1f}" '
        f'height="{_BOX:.0f}" rx="5" fill="{PAPER}" stroke="{INK}"/>'
        f'<text x="{across:.1f}" y="{down + 17:.1f}" text-anchor="middle">{escape(label)}</text>'
    )
