"""Values over two settings as colored squares; needs Matplotlib (the extra `plots`)."""

import io
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from dpublish.plots.table_plots import plain_logarithms

_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpublish",
    "font.size": 9,
    "text.parse_math": False,
}
_SMALLEST = 1e-4  # what is less looks the same


class HeatPanel(NamedTuple):
    """One method: a value for each place (across, up)."""

    title: str
    values: Mapping[tuple[int, int], float]


class HeatLayout(NamedTuple):
    """What the sides and colors of all panels mean."""

    across: str
    up: str
    color: str


def heat_maps(panels: Sequence[HeatPanel], layout: HeatLayout) -> str | None:
    """Draw panels with one scale of colors, as SVG text for a page.

    Colors follow the logarithm, and each square shows its number, so that nobody has to
    tell shades apart.
    """
    if find_spec("matplotlib") is None or not panels:
        return None
    from matplotlib import rc_context
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    values = [value for panel in panels for value in panel.values.values()]
    low = max(min(values), _SMALLEST)
    norm = LogNorm(low, max(*values, low * 10), clip=True)
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(3.3 * columns + 0.6, 2.9 * rows + 0.3), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for panel, axes in zip(panels, grid.flat, strict=False):
            image = _draw(panel, axes, norm)
            axes.set_xlabel(layout.across)
            axes.set_ylabel(layout.up)
        scale = figure.colorbar(image, ax=list(grid.flat), label=layout.color, shrink=0.8)
        plain_logarithms(scale.ax.yaxis)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    # The XML prologue and the metadata, which names addresses, have no place in a page.
    prologue = r"^.*?(?=<svg)|<metadata>.*?</metadata>"
    return re.sub(prologue, "", buffer.getvalue(), flags=re.DOTALL)


def _draw(panel: HeatPanel, axes: Any, norm: Any) -> Any:
    across = sorted({place[0] for place in panel.values})
    up = sorted({place[1] for place in panel.values})
    numbers = [[panel.values.get((x, y), float("nan")) for x in across] for y in up]
    floored = [[max(value, _SMALLEST) for value in row] for row in numbers]
    image = axes.imshow(floored, norm=norm, cmap="cividis_r", origin="lower", aspect="auto")
    for (x, y), value in panel.values.items():
        shade = norm(max(value, _SMALLEST))
        color = "white" if shade > 0.55 else "black"
        place = (across.index(x), up.index(y))
        axes.text(*place, _short(value), ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks(range(len(across)), [str(x) for x in across])
    axes.set_yticks(range(len(up)), [str(y) for y in up])
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.tick_params(length=0)
    return image


def _short(value: float) -> str:
    """Write a number in few signs: .003, .12, 1.4."""
    digits = 3 if abs(value) < 0.1 else 2 if abs(value) < 1 else 1
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
