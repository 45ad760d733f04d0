"""Curves over epsilon: the median of a few repeats, their range, and what is marked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from dpublish.plots.style import (
    COLORS,
    INK,
    LABEL_SIZE,
    PALE,
    SMALL_SIZE,
    TEXT,
    Drawing,
    columns_for,
    drawing,
    plain_number,
)

_WIDTH, _HEIGHT = 4.6, 3.2


class Curve(NamedTuple):
    """One measure over epsilon.

    Attributes:
        title: What is measured.
        points: The epsilons, rising.
        medians: The median of the repeats at each.
        lows: The least of them.
        highs: The largest of them.
        limit: A value that is wanted, or None.
    """

    title: str
    points: Sequence[float]
    medians: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    limit: float | None = None


@contextmanager
def draw_curves(curves: Sequence[Curve], *, knee: float | None, stamp: str) -> Iterator[Drawing]:
    """Open a drawing with one panel for each curve; the knee is a vertical line in all of them."""
    columns = columns_for(len(curves))
    rows = -(-len(curves) // columns)
    size = (_WIDTH * columns, _HEIGHT * rows + 0.3)
    with drawing(size, panels=len(curves), columns=columns) as drawn:
        for curve, axes in zip(curves, drawn.axes, strict=True):
            _draw(curve, axes, knee)
        drawn.figure.supxlabel(stamp, fontsize=SMALL_SIZE, color=TEXT)
        yield drawn


def _draw(curve: Curve, axes: Any, knee: float | None) -> None:
    axes.set_title(curve.title, fontsize=LABEL_SIZE + 1)
    axes.fill_between(curve.points, curve.lows, curve.highs, color=PALE, alpha=0.5, linewidth=0)
    axes.plot(curve.points, curve.medians, "o-", color=INK, markersize=4, linewidth=1.6)
    if knee is not None:
        axes.axvline(knee, color=COLORS[1], linestyle="--", linewidth=1.1)
        axes.annotate(
            "stops paying",
            (knee, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3, -9),
            textcoords="offset points",
            fontsize=SMALL_SIZE,
            color=COLORS[1],
        )
    if curve.limit is not None:
        axes.axhline(curve.limit, color=COLORS[2], linestyle=":", linewidth=1.1)
    axes.set_xscale("log")
    axes.set_xticks(list(curve.points), [plain_number(point) for point in curve.points])
    axes.minorticks_off()
    axes.set_xlabel("epsilon")
    axes.grid(axis="y")
