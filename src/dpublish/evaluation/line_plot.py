"""Lines with error bars, several panels to a figure; needs Matplotlib (the extra `plots`)."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

# Told apart by all eyes and in grey (Okabe and Ito); our own methods come in the first ones.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_GREYS = ("#bbbbbb", "#8f8f8f", "#666666", "#444444", "#222222")
_MARKERS = "osD^vPX*"
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
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def _draw(panel: Panel, axes: Any) -> None:
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.grid(axis="y", color="#e3e6e8", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    ours = others = 0
    for number, line in enumerate(panel.lines):
        if line.is_ours:
            colour, ours = _COLOURS[ours % len(_COLOURS)], ours + 1
        else:
            colour, others = _GREYS[others % len(_GREYS)], others + 1
        # A little to the side, so that error bars do not hide each other.
        step = (max(line.places) - min(line.places)) / 250 if len(line.places) > 1 else 0.0
        shift = step * (number - (len(panel.lines) - 1) / 2)
        axes.errorbar(
            [place + shift for place in line.places],
            line.means,
            yerr=line.spreads,
            label=line.label,
            color=colour,
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4.5,
            linewidth=1.8 if line.is_ours else 1.1,
            linestyle="-" if line.is_ours else "--",
            elinewidth=0.8,
            capsize=2,
        )
