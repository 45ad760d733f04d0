"""Charts as inline SVG: no network, no JavaScript.  Without Matplotlib there are no charts."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.plots.correlation_colors import show_correlations

INK, PALE, GRID = "#1f5f8b", "#9dc3dd", "#e3e6e8"
_STYLE: Any = {
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "text.usetex": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dpublish",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a9399",
    "axes.labelcolor": "#333333",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "axes.formatter.useoffset": False,
}
_MAX_LABEL = 24
_INCHES_PER_LETTER = 0.065  # of the small labels of a map
_PADDING = 0.15  # inches around a figure that is cut to fit; a browser's letters may be wider
_LARGEST_ZOOM = 1.6  # of a small figure on a wide page
_MAX_SMALL_BARS = 120
MERGED = f"where more than {_MAX_SMALL_BARS} values are merged into bars, the mean per value"
"""What a caption has to say of `small_bar_charts`."""


class Panel(NamedTuple):
    """One of many small charts: counts by label, in order."""

    title: str
    labels: Sequence[str]
    counts: NDArray[np.float64]


def can_draw() -> bool:
    """Say whether Matplotlib (the extra `plots`) is installed."""
    return find_spec("matplotlib") is not None


def bar_chart(
    labels: Sequence[str], counts: NDArray[np.int64], reach: float, *, title: str, ordered: bool
) -> str:
    """Draw counts with confidence intervals: columns for ordered values, bars for names."""
    with _figure(_bar_size(labels, ordered)) as (axes, finish):
        places = np.arange(len(labels))
        bars = {"color": PALE, "edgecolor": INK, "linewidth": 0.6}
        error = reach if np.isfinite(reach) else None
        whisker = {"ecolor": "#333333", "elinewidth": 1, "capsize": 2 if len(labels) < 30 else 0}
        if ordered:
            axes.bar(places, counts, yerr=error, width=0.9, error_kw=whisker, **bars)
            _thin_ticks(axes, labels)
            axes.set_ylabel("records")
        else:
            axes.barh(places, counts, xerr=error, error_kw=whisker, **bars)
            axes.set_yticks(places, [_short(label) for label in labels])
            axes.invert_yaxis()
            axes.set_xlabel("records")
        axes.grid(axis="y" if ordered else "x", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_title(_short(title), loc="left", fontsize=10)
        _plain_numbers(axes.yaxis if ordered else axes.xaxis)
        return finish()


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
    with _figure((7.2, height)) as (axes, finish):
        places = np.arange(len(labels))
        for group, name in enumerate(groups):
            offset = (group - (len(groups) - 1) / 2) * thickness
            shade = _shade(group, len(groups))
            # Without the space, a name that starts with an underscore would be left out.
            bars = {"color": shade, "label": f" {_short(name)}"}
            axes.barh(places + offset, counts[:, group], thickness, **bars)
        axes.set_yticks(places, [_short(label) for label in labels])
        axes.invert_yaxis()
        axes.set_xlabel("records")
        axes.grid(axis="x", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_title(_short(title), loc="left", fontsize=10)
        axes.legend(frameon=False, ncols=min(len(groups), 4), loc="lower right", fontsize=8)
        _plain_numbers(axes.xaxis)
        return finish()


def heat_map(
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    counts: NDArray[np.int64],
    *,
    row_title: str,
    column_title: str,
) -> str:
    """Draw a table of counts as shades; negative noisy counts are drawn as zero."""
    height = min(7.0, max(1.8, 0.9 + 0.22 * len(row_labels)))
    with _figure((7.2, height)) as (axes, finish):
        image = axes.imshow(np.maximum(counts, 0), aspect="auto", cmap="Blues", rasterized=True)
        axes.figure.colorbar(image, ax=axes, label="records", fraction=0.04, pad=0.02)
        _thin_ticks(axes, column_labels)
        step = max(1, len(row_labels) // 24)
        shown = range(0, len(row_labels), step)
        axes.set_yticks(list(shown), [_short(row_labels[i]) for i in shown])
        axes.set_xlabel(_short(column_title))
        axes.set_ylabel(_short(row_title))
        return finish()


def correlation_map(labels: Sequence[str], matrix: NDArray[np.float64]) -> str:
    """Draw correlations as colors from blue (-1) over white (0) to red (1)."""
    longest = max((len(_short(label)) for label in labels), default=1)
    side = min(7.0, 1.2 + 0.24 * len(labels)) + _INCHES_PER_LETTER * longest
    with _figure((side + 0.6, side)) as (axes, finish):
        image = show_correlations(axes, matrix)
        axes.figure.colorbar(image, ax=axes, label="correlation", fraction=0.04, pad=0.02)
        shown = range(0, len(labels), max(1, -(-len(labels) // 40)))
        names = [_short(labels[i]) for i in shown]
        axes.set_xticks(list(shown), names, rotation=90)
        axes.set_yticks(list(shown), names)
        axes.tick_params(length=0, labelsize=7)
        return finish(fit=True)


def small_bar_charts(panels: Sequence[Panel]) -> str:
    """Draw many small charts of counts in a grid.

    Many bars are merged into fewer, which show the mean count of a value: the last may stand
    for fewer values than the others.
    """
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    with _figure((7.6, 0.2 + 1.25 * down)) as (axes, finish):
        figure = axes.figure
        axes.remove()
        grid = figure.subplots(down, across, squeeze=False).flat
        for panel, small in zip(panels, grid, strict=False):
            size = len(panel.labels)
            merged = -(-size // _MAX_SMALL_BARS)
            starts = np.arange(0, size, merged)
            widths = np.diff(np.append(starts, size))
            heights = np.add.reduceat(panel.counts, starts) / widths
            small.stairs(heights, np.append(starts, size), fill=True, color=INK)
            places = [0, size - 1] if size > 1 else [0]
            small.set_xticks([place + 0.5 for place in places])
            names = [_short(panel.labels[place])[:12] for place in places]
            for tick, text in zip(small.set_xticklabels(names), ("left", "right"), strict=False):
                tick.set_ha(text)
            small.tick_params(length=0, labelsize=6)
            small.set_title(_short(panel.title), loc="left", fontsize=7)
            _plain_numbers(small.yaxis)
        for empty in grid:
            empty.set_visible(False)
        return finish()


def _shade(place: int, count: int) -> str:
    """Pick a color from pale to dark, so that neighbors differ."""
    low, high = (int(PALE[1:], 16), int(INK[1:], 16)) if count > 1 else (int(INK[1:], 16),) * 2
    part = place / max(count - 1, 1)
    mixed = (
        round((low >> shift & 255) * (1 - part) + (high >> shift & 255) * part)
        for shift in (16, 8, 0)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _bar_size(labels: Sequence[str], ordered: bool) -> tuple[float, float]:
    return (7.2, 2.6) if ordered else (7.2, min(9.0, 0.8 + 0.24 * len(labels)))


@contextmanager
def _figure(size: tuple[float, float]) -> Iterator[tuple[Any, Callable[..., str]]]:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()

        def finish(*, fit: bool = False) -> str:
            """Write the SVG; with `fit` as large as what is drawn, so that no label is cut off."""
            buffer = io.StringIO()
            box: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": _PADDING} if fit else {}
            no_names = {"Date": None, "Creator": None}
            figure.savefig(buffer, format="svg", metadata=no_names, dpi=150, **box)
            # The XML prologue and the metadata, which names addresses, have no place in a page.
            svg = re.sub(
                r"^.*?(?=<svg)|<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL
            )
            return _limit_width(svg) if fit else svg

        yield axes, finish


def _limit_width(svg: str) -> str:
    """Keep a page from blowing a small figure up to its own width."""
    width = re.search(r'viewBox="0 0 ([\d.]+)', svg)
    style = "" if width is None else f' style="max-width:{_LARGEST_ZOOM * float(width[1]):.0f}px"'
    return svg.replace("<svg", f"<svg{style}", 1)


def _thin_ticks(axes: Any, labels: Sequence[str]) -> None:
    """Label as many columns as fit, slanted where they are long."""
    longest = max((len(_short(label)) for label in labels), default=1)
    room = 26 if longest <= 3 else 18
    step = max(1, -(-len(labels) // room))
    shown = range(0, len(labels), step)
    slanted = longest * len(shown) > 90
    axes.set_xticks(
        list(shown),
        [_short(labels[i]) for i in shown],
        rotation=45 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor" if slanted else "default",
    )


def _plain_numbers(axis: Any) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _short(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else label[: _MAX_LABEL - 1] + "…"
