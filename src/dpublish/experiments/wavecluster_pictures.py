"""Pictures of clusters: labeled cells in colors, side by side, as SVG text for a page."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.evaluation.metrics.cells import NONE

# Neighbors in this list are told apart by all eyes; clusters beyond the last begin again.
_COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#666666",
    "#B5A800",
)
_SIDE, _GAP, _TITLE = 150, 14, 18


class Picture(NamedTuple):
    """A labeled grid and what is said above it."""

    title: str
    labels: NDArray[np.int64]


def draw_pictures(rows: Sequence[Sequence[Picture]]) -> str:
    """Draw rows of grids; the first coordinate goes to the right, the second upwards."""
    width = max(len(row) for row in rows) * (_SIDE + _GAP)
    height = len(rows) * (_SIDE + _TITLE + _GAP)
    drawn = [
        _draw(picture, place * (_SIDE + _GAP), number * (_SIDE + _TITLE + _GAP))
        for number, row in enumerate(rows)
        for place, picture in enumerate(row)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" role="img" font-family="sans-serif" font-size="11">{"".join(drawn)}</svg>'
    )


def in_colors_of(labels: NDArray[np.int64], model: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rename clusters so that each is called like the cluster of the model it shares most with.

    The larger clusters choose first, and no name is given twice; those that are left over get
    names that the model does not have.
    """
    renamed = np.full_like(labels, NONE)
    names, sizes = np.unique(labels[labels != NONE], return_counts=True)
    free = int(max(model.max(initial=NONE), NONE)) + 1
    taken: set[int] = set()
    for name in names[np.argsort(-sizes, kind="stable")]:
        inside = labels == name
        shared = model[inside]
        wanted, counts = np.unique(shared[shared != NONE], return_counts=True)
        choices = [int(w) for w in wanted[np.argsort(-counts, kind="stable")] if w not in taken]
        given = choices[0] if choices else free
        free += not choices
        taken.add(given)
        renamed[inside] = given
    return renamed


def _draw(picture: Picture, left: int, top: int) -> str:
    across, up = picture.labels.shape
    parts = [
        f'<text x="{left}" y="{top + 12}">{escape(picture.title)}</text>',
        f'<rect x="{left}" y="{top + _TITLE}" width="{_SIDE}" height="{_SIDE}" '
        'fill="#f4f7f9" stroke="#c8d0d5"/>',
        f'<g transform="translate({left} {top + _TITLE}) '
        f'scale({_SIDE / across:.4f} {_SIDE / up:.4f})">',
    ]
    for label in np.unique(picture.labels[picture.labels != NONE]).tolist():
        path = "".join(
            f"M{x} {up - 1 - y}h1v1h-1z" for x, y in np.argwhere(picture.labels == label).tolist()
        )
        parts.append(f'<path d="{path}" fill="{_COLORS[label % len(_COLORS)]}"/>')
    return "".join([*parts, "</g>"])
