"""True and synthetic rows side by side, as SVG text for a page; needs Matplotlib (`plots`)."""

import io
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.plots.correlation_colors import show_correlations
from dpublish.types import FloatArray

_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpublish",
    "font.size": 9,
    "text.parse_math": False,
}
_TRUE, _SYNTHETIC = "#666666", "#D55E00"
_MOST_BARS = 12  # more values than this are drawn as a line
_NUMBERED = 12  # heat maps of more columns show no numbers
_LABEL = 14


class MarginalPlot(NamedTuple):
    """A column: names of its cells, and the part of the rows in each."""

    title: str
    labels: Sequence[str]
    true: FloatArray
    synthetic: FloatArray


def draw_marginals(marginals: Sequence[MarginalPlot]) -> str | None:
    """Draw the marginals of every column, true and synthetic ones over each other."""

    def paint(figure: Any, grid: list[Any]) -> None:
        for axes, marginal in zip(grid, marginals, strict=True):
            draw = _draw_bars if len(marginal.labels) <= _MOST_BARS else _draw_steps
            draw(axes, marginal)
            axes.set_title(marginal.title, loc="left", fontsize=10)
            axes.set_ylim(bottom=0)
            _plain(axes)
        grid[0].legend(frameon=False, fontsize=8)

    return _render(len(marginals), (3.3, 2.3), paint)


def draw_associations(names: Sequence[str], true: FloatArray, synthetic: FloatArray) -> str | None:
    """Draw two matrices as heat maps with one scale of colors."""
    short = [_short(name) for name in names]

    def paint(figure: Any, grid: list[Any]) -> None:
        for axes, matrix, title in zip(
            grid, (true, synthetic), ("true rows", "synthetic"), strict=True
        ):
            image = show_correlations(axes, matrix)
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_xticks(range(len(names)), short, rotation=90, fontsize=7)
            axes.set_yticks(range(len(names)), short, fontsize=7)
            axes.tick_params(length=0)
            if len(names) <= _NUMBERED:
                _write_numbers(axes, matrix)
        figure.colorbar(image, ax=grid, shrink=0.8)

    side = min(2.2 + 0.32 * len(names), 6.5)
    return _render(2, (side + 0.4, side), paint)


def draw_errors(
    panels: Sequence[tuple[str, NDArray[np.int64], FloatArray]], sanity: float
) -> str | None:
    """Draw the relative error of each question over its true count, in one panel per title."""

    def paint(figure: Any, grid: list[Any]) -> None:
        for axes, (title, truth, errors) in zip(grid, panels, strict=True):
            # A logarithm has no place for 0: it is drawn at the left and lower ends.
            axes.scatter(np.maximum(truth, 0.5), np.maximum(errors, 1e-4), s=5, color=_SYNTHETIC)
            axes.axvline(sanity, color=_TRUE, linewidth=0.8, linestyle=":")
            axes.set_xscale("log")
            axes.set_yscale("log")
            plain_logarithms(axes.xaxis)
            plain_logarithms(axes.yaxis)
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_xlabel("true count")
            axes.set_ylabel("relative error")
            _plain(axes)

    return _render(len(panels), (3.3, 2.6), paint)


def plain_logarithms(axis: Any) -> None:
    """Label an axis of logarithms by plain numbers; where it is short, between decades, too."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    between = FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axis.set_minor_formatter(between if high < 100 * low else NullFormatter())


def _render(
    count: int, panel: tuple[float, float], paint: Callable[[Any, list[Any]], None]
) -> str | None:
    """Make a figure of so many panels, have it painted, and write it as SVG."""
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = 2 if count == 4 else min(3, count)
    rows = -(-count // columns)
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(panel[0] * columns, panel[1] * rows), layout="constrained")
        grid = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes in grid[count:]:
            axes.set_visible(False)
        paint(figure, grid[:count])
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    # The XML prologue and the metadata, which names addresses, have no place in a page.
    prologue = r"^.*?(?=<svg)|<metadata>.*?</metadata>"
    return re.sub(prologue, "", buffer.getvalue(), flags=re.DOTALL)


def _draw_bars(axes: Any, marginal: MarginalPlot) -> None:
    places = np.arange(len(marginal.labels))
    axes.bar(places - 0.2, marginal.true, width=0.4, color=_TRUE, label="true rows")
    axes.bar(places + 0.2, marginal.synthetic, width=0.4, color=_SYNTHETIC, label="synthetic")
    axes.set_xticks(places, [_short(label) for label in marginal.labels], rotation=90, fontsize=7)


def _draw_steps(axes: Any, marginal: MarginalPlot) -> None:
    places = np.arange(len(marginal.labels))
    axes.fill_between(places, marginal.true, step="mid", color="#cccccc", label="true rows")
    axes.step(
        places, marginal.synthetic, where="mid", color=_SYNTHETIC, linewidth=1, label="synthetic"
    )
    ticks = np.linspace(0, len(places) - 1, 4).astype(int)
    axes.set_xticks(ticks, [_short(marginal.labels[tick]) for tick in ticks], fontsize=7)


def _write_numbers(axes: Any, matrix: FloatArray) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        color = "white" if abs(value) > 0.6 else "black"
        place = {"ha": "center", "va": "center", "fontsize": 6, "color": color}
        axes.text(column, row, f"{value:.2f}", **place)


def _plain(axes: Any) -> None:
    axes.grid(axis="y", color="#e3e6e8", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _short(label: str) -> str:
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"
