"""Charts of releases: columns and bars of counts, maps of tables, and courses over time."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.rounding import format_number
from dpublish.plots.style import (
    BAND,
    GRID,
    INK,
    PALE,
    SMALL_SIZE,
    TEXT,
    WHISKER,
    can_draw,
    draw_intervals,
    drawing,
    label_by_counts,
    shortened,
    show_counts,
    show_dependence,
)

__all__ = [
    "GRID",
    "INK",
    "MERGED",
    "PALE",
    "Panel",
    "band_chart",
    "bar_chart",
    "can_draw",
    "correlation_map",
    "course_chart",
    "dependence_map",
    "grouped_bar_chart",
    "heat_map",
    "interval_chart",
    "small_bar_charts",
]

_INCHES_PER_LETTER = 0.065  # of the small labels of a map
_MAX_SMALL_BARS = 120
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720.0, 170.0, 70.0, 24.0, 12.0  # of a course
MERGED = f"where more than {_MAX_SMALL_BARS} values are merged into bars, the mean per value"
"""What a caption has to say of `small_bar_charts`."""


class Panel(NamedTuple):
    """One of many small charts: counts by label, in order."""

    title: str
    labels: Sequence[str]
    counts: NDArray[np.float64]
    half_width: float = float("nan")
    """Half-width of the 95 % confidence interval of one value's count, if it is known."""


def bar_chart(
    labels: Sequence[str],
    counts: NDArray[np.int64],
    half_width: float,
    *,
    title: str,
    ordered: bool,
) -> str:
    """Draw counts with confidence intervals: columns for ordered values, bars for names."""
    size = (7.2, 2.6) if ordered else (7.2, min(9.0, 0.8 + 0.24 * len(labels)))
    with drawing(size) as drawn:
        axes = drawn.axes[0]
        positions = np.arange(len(labels))
        bars = {"color": PALE, "edgecolor": INK, "linewidth": 0.6}
        error = half_width if np.isfinite(half_width) else None
        whisker = {"ecolor": WHISKER, "elinewidth": 1, "capsize": 2 if len(labels) < 30 else 0}
        if ordered:
            axes.bar(positions, counts, yerr=error, width=0.9, error_kw=whisker, **bars)
            _thin_ticks(axes, labels)
            axes.set_ylabel("records")
            axes.grid(axis="y")
            axes.set_title(shortened(title))
            label_by_counts(axes.yaxis)
        else:
            axes.barh(positions, counts, xerr=error, error_kw=whisker, **bars)
            _finish_bars(axes, labels, title)
        return drawn.svg()


def grouped_bar_chart(
    labels: Sequence[str],
    groups: Sequence[str],
    counts: NDArray[np.int64],
    *,
    title: str,
) -> str:
    """Draw counts by label and group as bars side by side, one shade for each group."""
    thickness = 0.8 / len(groups)
    height = min(12.0, 1.0 + (0.12 + 0.13 * len(groups)) * len(labels))
    with drawing((7.2, height)) as drawn:
        axes = drawn.axes[0]
        positions = np.arange(len(labels))
        for group, name in enumerate(groups):
            offset = (group - (len(groups) - 1) / 2) * thickness
            shade = _shade(group, len(groups))
            # Without the space, a name that starts with an underscore would be left out.
            bars = {"color": shade, "label": f" {shortened(name)}"}
            axes.barh(positions + offset, counts[:, group], thickness, **bars)
        _finish_bars(axes, labels, title)
        axes.legend(ncols=min(len(groups), 4), loc="lower right")
        return drawn.svg()


def interval_chart(
    labels: Sequence[str],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    *,
    title: str,
) -> str:
    """Draw a dot and its interval for each label, from top to bottom."""
    with drawing((7.2, min(12.0, 0.9 + 0.24 * len(labels)))) as drawn:
        axes = drawn.axes[0]
        positions = np.arange(len(labels))
        lows, highs = np.array(intervals, dtype=np.float64).reshape(-1, 2).T
        draw_intervals(axes, positions, values, lows, highs)
        axes.set_yticks(positions, [shortened(label) for label in labels])
        axes.invert_yaxis()
        axes.grid(axis="x")
        axes.set_title(shortened(title))
        return drawn.svg()


def heat_map(
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    counts: NDArray[np.int64],
    *,
    row_title: str,
    column_title: str,
) -> str:
    """Draw a table of counts, stronger where there are more; those below zero as zero."""
    height = min(7.0, max(1.8, 0.9 + 0.22 * len(row_labels)))
    with drawing((7.2, height)) as drawn:
        axes = drawn.axes[0]
        image = show_counts(axes, np.maximum(counts, 0))
        scale = axes.figure.colorbar(image, ax=axes, label="records", fraction=0.04, pad=0.02)
        label_by_counts(scale.ax.yaxis)
        _thin_ticks(axes, column_labels)
        step = max(1, len(row_labels) // 24)
        shown = range(0, len(row_labels), step)
        axes.set_yticks(list(shown), [shortened(row_labels[i]) for i in shown])
        axes.set_xlabel(shortened(column_title))
        axes.set_ylabel(shortened(row_title))
        return drawn.svg()


def correlation_map(labels: Sequence[str], matrix: NDArray[np.float64]) -> str:
    """Draw correlations as colors from blue (-1) over none (0) to red (1)."""
    return _square_map(labels, lambda axes: show_dependence(axes, matrix), "correlation")


def dependence_map(labels: Sequence[str], matrix: NDArray[np.float64], *, measure: str) -> str:
    """Draw how much columns depend on each other, on the scale of correlations from 0 to 1."""
    return _square_map(labels, lambda axes: show_dependence(axes, matrix, is_signed=False), measure)


def _square_map(labels: Sequence[str], show: Callable[[Any], Any], measure: str) -> str:
    longest = max((len(shortened(label)) for label in labels), default=1)
    side = min(7.0, 1.2 + 0.24 * len(labels)) + _INCHES_PER_LETTER * longest
    with drawing((side + 0.6, side)) as drawn:
        axes = drawn.axes[0]
        axes.figure.colorbar(show(axes), ax=axes, label=measure, fraction=0.04, pad=0.02)
        shown = range(0, len(labels), max(1, -(-len(labels) // 40)))
        names = [shortened(labels[i]) for i in shown]
        axes.set_xticks(list(shown), names, rotation=90)
        axes.set_yticks(list(shown), names)
        axes.tick_params(length=0, labelsize=SMALL_SIZE)
        return drawn.svg(fit=True)


def small_bar_charts(panels: Sequence[Panel]) -> str:
    """Draw many small charts of counts in a grid.

    Many bars are merged into fewer, which show the mean count of a value: the last may stand
    for fewer values than the others.
    """
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    with drawing((7.6, 0.2 + 1.25 * down), panels=len(panels), columns=across) as drawn:
        for panel, small in zip(panels, drawn.axes, strict=True):
            size = len(panel.labels)
            merged = -(-size // _MAX_SMALL_BARS)
            starts = np.arange(0, size, merged)
            widths = np.diff(np.append(starts, size))
            heights = np.add.reduceat(panel.counts, starts) / widths
            ends = np.append(starts, size)
            small.stairs(heights, ends, fill=True, color=PALE)
            small.stairs(heights, ends, baseline=None, color=INK, linewidth=0.8)
            if np.isfinite(panel.half_width) and merged == 1:
                low = np.maximum(heights - panel.half_width, 0)
                small.stairs(heights + panel.half_width, ends, baseline=low, fill=True, **BAND)
            outer = [0, size - 1] if size > 1 else [0]
            small.set_xticks([end + 0.5 for end in outer])
            names = [shortened(panel.labels[end])[:12] for end in outer]
            for tick, text in zip(small.set_xticklabels(names), ("left", "right"), strict=False):
                tick.set_ha(text)
            small.tick_params(length=0, labelsize=6)
            small.set_title(shortened(panel.title), fontsize=SMALL_SIZE)
            label_by_counts(small.yaxis)
        return drawn.svg()


def course_chart(
    values: Sequence[float],
    *,
    marked: Sequence[bool],
    ends: tuple[str, str],
    limit: float | None = None,
) -> str:
    """Draw a column for every step, the marked ones darker; `ends` name the first and the last.

    A dashed line shows the limit.

    >>> course_chart([1.0, 2.0], marked=[True, False], ends=("a", "<b>"), limit=4.0).count("<rect")
    2
    """
    top = max([limit or 0.0, *values]) or 1.0
    width = (_WIDTH - _LEFT) / len(values)
    floor = _HEIGHT - _BOTTOM

    def height(value: float) -> float:
        return (floor - _TOP) * value / top

    columns = [
        f'<rect x="{_LEFT + step * width:.2f}" y="{floor - height(value):.2f}" '
        f'width="{max(width * 0.9, 0.5):.2f}" height="{height(value):.2f}" '
        f'fill="{INK if is_marked else PALE}"/>'
        for step, (value, is_marked) in enumerate(zip(values, marked, strict=True))
        if value > 0
    ]
    lines = [_line(floor, GRID, "")]
    if limit is not None:
        lines.append(_line(floor - height(limit), WHISKER, ' stroke-dasharray="4 3"'))
    drawn = "".join([*columns, *lines])
    return _course(drawn, top, floor, ends if len(values) > 1 else (ends[0], ""))


def band_chart(
    values: Sequence[float],
    intervals: Sequence[tuple[float, float] | None],
    *,
    marked: Sequence[bool],
    ends: tuple[str, str],
) -> str:
    """Draw values over time as a line, intervals as a band, and the marked steps as dots.

    A step without an interval has a gap in the band.

    >>> drawn = band_chart([3, 4], [(2, 4), None], marked=[True, False], ends=("a", "b"))
    >>> drawn.count("<circle"), drawn.count("<path")
    (1, 2)
    """
    known = [end for interval in intervals if interval is not None for end in interval]
    top = max([*values, *known]) or 1.0
    floor = _HEIGHT - _BOTTOM
    width = (_WIDTH - _LEFT) / len(values)

    def point_of(step: int, value: float) -> tuple[float, float]:
        return _LEFT + (step + 0.5) * width, floor - (floor - _TOP) * max(value, 0.0) / top

    band = "".join(
        f"M{left:.1f} {up:.1f}h{width:.1f}V{down:.1f}h{-width:.1f}z"
        for step, interval in enumerate(intervals)
        if interval is not None
        for left, up, down in [
            (_LEFT + step * width, point_of(step, interval[1])[1], point_of(step, interval[0])[1])
        ]
    )
    points = [point_of(step, value) for step, value in enumerate(values)]
    line = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
    radius = min(4.0, max(width / 3, 1.2))
    dots = "".join(
        f'<circle cx="{across:.1f}" cy="{down:.1f}" r="{radius:.1f}" fill="{INK}"/>'
        for (across, down), is_marked in zip(points, marked, strict=True)
        if is_marked
    )
    drawn = (
        f'{_line(floor, GRID, "")}<path d="{band}" fill="{INK}" fill-opacity="0.25" '
        f'shape-rendering="crispEdges"/>'
        f'<path d="{line}" fill="none" stroke="{INK}" stroke-width="1.5"/>{dots}'
    )
    return _course(drawn, top, floor, ends if len(values) > 1 else (ends[0], ""))


def _course(drawn: str, top: float, floor: float, ends: tuple[str, str]) -> str:
    """Put the scale and the names of the first and the last step around a course."""
    words = [
        _text(_LEFT - 6, _TOP + 4, "end", format_number(top, 3)),
        _text(_LEFT - 6, floor + 4, "end", "0"),
        _text(_LEFT, _HEIGHT - 6, "start", ends[0]),
        _text(_WIDTH, _HEIGHT - 6, "end", ends[1]),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" '
        f'role="img">{drawn}{"".join(words)}</svg>'
    )


def _finish_bars(axes: Any, labels: Sequence[str], title: str) -> None:
    """Name bars from top to bottom, and what they count."""
    axes.set_yticks(np.arange(len(labels)), [shortened(label) for label in labels])
    axes.invert_yaxis()
    axes.set_xlabel("records")
    axes.grid(axis="x")
    axes.set_title(shortened(title))
    label_by_counts(axes.xaxis)


def _shade(number: int, count: int) -> str:
    """Pick a color from pale to dark, so that neighbors differ."""
    low, high = (int(PALE[1:], 16), int(INK[1:], 16)) if count > 1 else (int(INK[1:], 16),) * 2
    part = number / max(count - 1, 1)
    mixed = (
        round((low >> shift & 255) * (1 - part) + (high >> shift & 255) * part)
        for shift in (16, 8, 0)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _thin_ticks(axes: Any, labels: Sequence[str]) -> None:
    """Label as many columns as fit, slanted where they are long."""
    longest = max((len(shortened(label)) for label in labels), default=1)
    room = 26 if longest <= 3 else 18
    step = max(1, -(-len(labels) // room))
    shown = range(0, len(labels), step)
    slanted = (longest + 1) * len(shown) > 84
    axes.set_xticks(
        list(shown),
        [shortened(labels[i]) for i in shown],
        rotation=45 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor" if slanted else "default",
    )


def _line(height: float, color: str, style: str) -> str:
    return (
        f'<line x1="{_LEFT:.0f}" x2="{_WIDTH:.0f}" y1="{height:.2f}" y2="{height:.2f}" '
        f'stroke="{color}"{style}/>'
    )


def _text(across: float, down: float, anchor: str, words: str) -> str:
    return (
        f'<text x="{across:.0f}" y="{down:.0f}" text-anchor="{anchor}" font-size="11" '
        f'font-family="sans-serif" fill="{TEXT}">{escape(words)}</text>'
    )
