"""Charts of values that are no releases: an answer, a plan, an account, a schema."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpublish.plots.style import INK, PALE, draw_intervals, drawing, label_logarithms, shortened

_MOST_BARS = 60


def bars(labels: Sequence[str], values: Sequence[float], *, title: str, unit: str) -> Any:
    """Draw a bar for each label, from top to bottom; only the last of very many."""
    labels, values = labels[-_MOST_BARS:], values[-_MOST_BARS:]
    with drawing((7.2, 0.9 + 0.24 * len(labels))) as drawn:
        axes = drawn.axes[0]
        positions = np.arange(len(labels))
        axes.barh(positions, values, color=PALE, edgecolor=INK, linewidth=0.6)
        _name_rows(axes, labels, title)
        axes.set_xlabel(unit)
        return drawn.figure


def dot_chart(
    labels: Sequence[str],
    values: Sequence[float],
    intervals: Sequence[tuple[float | None, float | None]],
    *,
    title: str,
) -> Any:
    """Draw a dot for each label, with its interval where there is one."""
    with drawing((7.2, 0.9 + 0.3 * len(labels))) as drawn:
        axes = drawn.axes[0]
        lows, highs = (
            [value if end is None else end for value, end in zip(values, ends, strict=True)]
            for ends in zip(*intervals, strict=True)
        )
        draw_intervals(axes, np.arange(len(labels)), values, lows, highs)
        axes.margins(x=0.3)
        _name_rows(axes, labels, title)
        return drawn.figure


def curve(points: Sequence[tuple[float, float]], *, mark: float, title: str) -> Any:
    """Draw an error over epsilon, both on logarithmic scales, with one epsilon marked."""
    with drawing((7.2, 2.8)) as drawn:
        axes = drawn.axes[0]
        across, up = (list(each) for each in zip(*points, strict=True))
        axes.plot(across, up, color=INK, marker="o", markersize=3)
        axes.axvline(mark, color=PALE, linewidth=4, zorder=0)
        axes.set_xscale("log")
        if min(up) > 0:
            axes.set_yscale("log")
            label_logarithms(axes.yaxis)
        label_logarithms(axes.xaxis)
        axes.set_xlabel("epsilon")
        axes.set_ylabel("expected error")
        axes.set_title(shortened(title, 90))
        axes.grid()
        return drawn.figure


def _name_rows(axes: Any, labels: Sequence[str], title: str) -> None:
    axes.set_yticks(np.arange(len(labels)), [shortened(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x")
    axes.set_title(shortened(title, 90))
