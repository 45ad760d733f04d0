"""Lines over a setting, several panels to a figure; needs Matplotlib (the extra `plots`)."""

import io
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from dpublish.storage.files import whole_file

# Told apart by all eyes and in gray (Okabe and Ito); our own methods come in the first ones.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_GRAYS = ("#bbbbbb", "#8f8f8f", "#666666", "#444444", "#222222")
_MARKERS = "osD^vPX*"
_DASHES = ("--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "dpublish", "font.size": 9}


class Line(NamedTuple):
    """One method: means and deviations over a setting."""

    label: str
    places: Sequence[float]
    means: Sequence[float]
    spreads: Sequence[float]
    is_ours: bool


class Panel(NamedTuple):
    """Lines that are compared with each other."""

    title: str
    lines: Sequence[Line]


class Layout(NamedTuple):
    """How small panels with a common legend are drawn."""

    across: str
    up: str
    ticks: Sequence[float]
    is_log: bool = False
    has_one_scale: bool = True
    width: float = 3.1
    height: float = 2.9


def draw_panels(
    panels: Sequence[Sequence[Panel]], path: Path, *, across: str, up: str, note: str
) -> Path | None:
    """Draw rows of panels into `path` (.svg or .png), or do nothing without Matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows, columns = len(panels), max(len(row) for row in panels)
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(6.2 * columns, 3.8 * rows + 0.3), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for row, row_of_axes in zip(panels, grid, strict=True):
            for panel, axes in zip(row, row_of_axes, strict=True):
                _draw(panel, axes)
                axes.set_xlabel(across)
                axes.set_ylabel(up)
            row_of_axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        figure.suptitle(note, fontsize=8, color="#555555")
        about = {"Date": None} if path.suffix == ".svg" else None
        with whole_file(path, replaces=True) as draft:
            figure.savefig(draft, format=path.suffix[1:], dpi=150, metadata=about)
    return path


def small_multiples(panels: Sequence[Panel], layout: Layout) -> str | None:
    """Draw small panels with bands for deviations and one legend, as SVG text for a page.

    A line keeps its color and mark from panel to panel, also where others are absent.  What
    is not ours is a reference: gray, without marks.
    """
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    styles = _styles(panels)
    with rc_context({**_SETTINGS, "text.parse_math": False}):
        legend_height = 0.22 * -(-len(styles) // 2) + 0.2
        size = (layout.width * columns, layout.height * rows + legend_height)
        figure = Figure(figsize=size, layout="constrained")
        shared = layout.has_one_scale
        grid = figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        handles: dict[str, Any] = {}
        for panel, axes in zip(panels, grid.flat, strict=False):
            handles |= _draw_bands(panel, axes, layout, styles)
            axes.set_xlabel(layout.across)
            axes.tick_params(labelbottom=True)  # also above a place that is left empty
        for axes in grid[:, 0]:
            axes.set_ylabel(layout.up)
        keys = [handles[label] for label in styles]
        figure.legend(keys, styles, loc="outside lower left", ncols=2, frameon=False, fontsize=8)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    # The XML prologue and the metadata, which names addresses, have no place in a page.
    prologue = r"^.*?(?=<svg)|<metadata>.*?</metadata>"
    return re.sub(prologue, "", buffer.getvalue(), flags=re.DOTALL)


def _styles(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """Give each line of a figure its looks, the methods first and the references last."""
    lines = {line.label: line.is_ours for panel in panels for line in panel.lines}
    styles: dict[str, dict[str, Any]] = {}
    for number, label in enumerate(label for label, is_ours in lines.items() if is_ours):
        color, marker = _COLORS[number % len(_COLORS)], _MARKERS[number % len(_MARKERS)]
        styles[label] = {"color": color, "marker": marker, "markersize": 4, "linewidth": 1.6}
    for number, label in enumerate(label for label, is_ours in lines.items() if not is_ours):
        styles[label] = {"color": "#555555", "linestyle": _DASHES[number % 4], "linewidth": 1.4}
    return styles


def _draw_bands(
    panel: Panel, axes: Any, layout: Layout, styles: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    _prepare(panel, axes)
    handles = {}
    for line in panel.lines:
        style = styles[line.label]
        low = [m - s for m, s in zip(line.means, line.spreads, strict=True)]
        high = [m + s for m, s in zip(line.means, line.spreads, strict=True)]
        axes.fill_between(line.places, low, high, color=style["color"], alpha=0.13, linewidth=0)
        (handles[line.label],) = axes.plot(line.places, line.means, **style)
    if layout.is_log:
        axes.set_xscale("log")
    axes.set_xticks(layout.ticks, [f"{tick:,g}" for tick in layout.ticks])
    axes.minorticks_off()
    return handles


def _prepare(panel: Panel, axes: Any) -> None:
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.grid(axis="y", color="#e3e6e8", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _draw(panel: Panel, axes: Any) -> None:
    _prepare(panel, axes)
    ours = others = 0
    for number, line in enumerate(panel.lines):
        if line.is_ours:
            color, ours = _COLORS[ours % len(_COLORS)], ours + 1
        else:
            color, others = _GRAYS[others % len(_GRAYS)], others + 1
        # A little to the side, so that confidence intervals do not hide each other.
        step = (max(line.places) - min(line.places)) / 250 if len(line.places) > 1 else 0.0
        shift = step * (number - (len(panel.lines) - 1) / 2)
        axes.errorbar(
            [place + shift for place in line.places],
            line.means,
            yerr=line.spreads,
            label=line.label,
            color=color,
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4.5,
            linewidth=1.8 if line.is_ours else 1.1,
            linestyle="-" if line.is_ours else "--",
            elinewidth=0.8,
            capsize=2,
        )
