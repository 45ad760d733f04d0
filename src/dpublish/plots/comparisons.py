"""Charts of evaluations and experiments: methods over a setting, true beside synthetic rows.

All return SVG text for a page; those that need Matplotlib return None without it.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.plots.style import (
    COLORS,
    DASHES,
    FRAME,
    GRAYS,
    LABEL_SIZE,
    MARKERS,
    PAPER,
    SHADE,
    SMALL_SIZE,
    SYNTHETIC,
    TEXT,
    TRUE,
    can_draw,
    columns_for,
    drawing,
    label_logarithms,
    plain_number,
    shortened,
    show_dependence,
)
from dpublish.types import FloatArray, IntArray

_INCHES_PER_LETTER = 0.065  # of a legend
_TITLE_LETTERS = 46  # of a panel; longer titles take two lines
_SMALLEST = 1e-4  # colors of what is less look the same
_MOST_BARS = 12  # more values than this are drawn as a line
_NUMBERED = 12  # maps of more columns show no numbers
_SIDE, _GAP, _TITLE = 150, 14, 18  # of a picture of cells
_ON_DARK, _ON_BRIGHT = "#fefefe", "#101010"  # black and white would follow the page's scheme
_CELL_COLORS = (COLORS[0], COLORS[4], *COLORS[2:4], COLORS[5], COLORS[1], TRUE, "#B5A800")


class Line(NamedTuple):
    """One method: means and standard deviations over a setting.

    Lines that are not ours are references: gray, without marks.
    """

    label: str
    points: Sequence[float]
    means: Sequence[float]
    deviations: Sequence[float]
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
    width: float = 4.4
    height: float = 3.4
    note: str = ""
    is_log_up: bool = False


def small_multiples(panels: Sequence[Panel], layout: Layout) -> str | None:
    """Draw small panels with bands for standard deviations and one legend.

    A line keeps its color and mark from panel to panel, also where others are absent.
    """
    if not can_draw() or not panels:
        return None
    columns = columns_for(len(panels))
    rows = -(-len(panels) // columns)
    styles = _styles(panels)
    label_width = 0.6 + _INCHES_PER_LETTER * max(map(len, styles), default=0)
    width = max(layout.width * columns, label_width)
    legend_columns = 2 if 2 * label_width <= width else 1
    legend_height = 0.22 * -(-len(styles) // legend_columns) + 0.2 + (0.2 if layout.note else 0)
    size = (width, layout.height * rows + legend_height)
    with drawing(
        size, panels=len(panels), columns=columns, shares_scale=layout.has_one_scale
    ) as drawn:
        handles: dict[str, Any] = {}
        for number, (panel, axes) in enumerate(zip(panels, drawn.axes, strict=True)):
            handles |= _draw_bands(panel, axes, layout, styles)
            axes.set_xlabel(layout.across)
            axes.tick_params(labelbottom=True)  # also above a position that is left empty
            if number % columns == 0:
                axes.set_ylabel(layout.up)
        keys = [handles[label] for label in styles]
        drawn.figure.legend(keys, styles, loc="outside lower left", ncols=legend_columns)
        if layout.note:
            drawn.figure.suptitle(layout.note, fontsize=LABEL_SIZE, color=TEXT)
        return drawn.svg()


def _styles(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """Choose how each line of a drawing looks, the methods first and the references last."""
    lines = {line.label: line.is_ours for panel in panels for line in panel.lines}
    styles: dict[str, dict[str, Any]] = {}
    for number, label in enumerate(label for label, is_ours in lines.items() if is_ours):
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        again = "-" if number < len(COLORS) else "--"  # where colors begin again
        look = {"color": color, "marker": marker, "linestyle": again}
        styles[label] = look | {"markersize": 4, "linewidth": 1.6}
    for number, label in enumerate(label for label, is_ours in lines.items() if not is_ours):
        shade, dash = divmod(number, len(DASHES))
        color = GRAYS[shade % len(GRAYS)]
        styles[label] = {"color": color, "linestyle": DASHES[dash], "linewidth": 1.4}
    return styles


def _draw_bands(
    panel: Panel, axes: Any, layout: Layout, styles: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    axes.set_title(fill(panel.title, _TITLE_LETTERS))
    axes.grid(axis="y")
    handles = {}
    for line in panel.lines:
        style = styles[line.label]
        means, deviations = np.asarray(line.means), np.asarray(line.deviations)
        low = means - deviations
        if layout.is_log_up:
            low = np.maximum(low, means / 10)  # no logarithm shows what is below zero
        limits = (low, means + deviations)
        axes.fill_between(line.points, *limits, color=style["color"], alpha=0.13, linewidth=0)
        (handles[line.label],) = axes.plot(line.points, line.means, **style)
    if layout.is_log_up:
        axes.set_yscale("log")
        label_logarithms(axes.yaxis)
    if layout.is_log:
        axes.set_xscale("log")
    axes.set_xticks(layout.ticks, [plain_number(tick) for tick in layout.ticks])
    axes.minorticks_off()
    return handles


class HeatPanel(NamedTuple):
    """One method: a value for each pair of settings (across, up)."""

    title: str
    values: Mapping[tuple[int, int], float]


class HeatLayout(NamedTuple):
    """What the sides and colors of all panels mean."""

    across: str
    up: str
    color: str


def heat_maps(panels: Sequence[HeatPanel], layout: HeatLayout) -> str | None:
    """Draw panels with one scale of colors.

    Colors follow the logarithm, and each square shows its number, so that no one has to
    compare shades.
    """
    if not can_draw() or not panels:
        return None
    from matplotlib.colors import LogNorm

    columns = columns_for(len(panels))
    rows = -(-len(panels) // columns)
    values = [value for panel in panels for value in panel.values.values()]
    low = max(min(values), _SMALLEST)
    norm = LogNorm(low, max(*values, low * 10), clip=True)
    size = (3.3 * columns + 0.6, 2.9 * rows + 0.3)
    with drawing(size, panels=len(panels), columns=columns) as drawn:
        for panel, axes in zip(panels, drawn.axes, strict=True):
            image = _draw_squares(panel, axes, norm)
            axes.set_xlabel(layout.across)
            axes.set_ylabel(layout.up)
        scale = drawn.figure.colorbar(image, ax=drawn.axes, label=layout.color, shrink=0.8)
        label_logarithms(scale.ax.yaxis)
        return drawn.svg()


def _draw_squares(panel: HeatPanel, axes: Any, norm: Any) -> Any:
    across = sorted({pair[0] for pair in panel.values})
    up = sorted({pair[1] for pair in panel.values})
    numbers = [[panel.values.get((x, y), float("nan")) for x in across] for y in up]
    floored = [[max(value, _SMALLEST) for value in row] for row in numbers]
    image = axes.imshow(floored, norm=norm, cmap="cividis_r", origin="lower", aspect="auto")
    for (x, y), value in panel.values.items():
        shade = norm(max(value, _SMALLEST))
        where = (across.index(x), up.index(y))
        _write_number(axes, where, _few_signs(value), is_dark=shade > 0.55)
    axes.set_xticks(range(len(across)), [str(x) for x in across])
    axes.set_yticks(range(len(up)), [str(y) for y in up])
    axes.set_title(panel.title)
    axes.tick_params(length=0)
    return image


class MarginalPlot(NamedTuple):
    """A column: names of its cells, and the share of the rows in each."""

    title: str
    labels: Sequence[str]
    true: FloatArray
    synthetic: FloatArray


def draw_marginals(marginals: Sequence[MarginalPlot]) -> str | None:
    """Draw the marginals of every column, true and synthetic ones over each other."""

    def paint(figure: Any, grid: Sequence[Any]) -> None:
        for axes, marginal in zip(grid, marginals, strict=True):
            draw = _draw_bars if len(marginal.labels) <= _MOST_BARS else _draw_steps
            draw(axes, marginal)
            axes.set_title(marginal.title)
            axes.set_ylim(bottom=0)
            axes.grid(axis="y")
        grid[0].legend()

    return _render(len(marginals), (3.3, 2.3), paint)


def draw_associations(names: Sequence[str], true: FloatArray, synthetic: FloatArray) -> str | None:
    """Draw two matrices as maps with one scale of colors."""
    short = [shortened(name, 14) for name in names]

    def paint(figure: Any, grid: Sequence[Any]) -> None:
        for axes, matrix, title in zip(
            grid, (true, synthetic), ("true rows", "synthetic"), strict=True
        ):
            image = show_dependence(axes, matrix)
            axes.set_title(title)
            axes.set_xticks(range(len(names)), short, rotation=90, fontsize=SMALL_SIZE)
            axes.set_yticks(range(len(names)), short, fontsize=SMALL_SIZE)
            axes.tick_params(length=0)
            for (row, column), value in np.ndenumerate(matrix):
                if len(names) <= _NUMBERED:
                    where = (column, row)
                    axes.text(*where, f"{value:.2f}", ha="center", va="center", fontsize=6.5)
        figure.colorbar(image, ax=list(grid), shrink=0.8)

    side = min(2.2 + 0.32 * len(names), 6.5)
    return _render(2, (side + 0.4, side), paint)


def draw_errors(panels: Sequence[tuple[str, IntArray, FloatArray]], sanity: float) -> str | None:
    """Draw the relative error of each query over its true count, in one panel per title."""

    def paint(figure: Any, grid: Sequence[Any]) -> None:
        for axes, (title, truth, errors) in zip(grid, panels, strict=True):
            # The logarithm of 0 is infinite: 0 is drawn at the left and lower ends.
            shown = (np.maximum(truth, 0.5), np.maximum(errors, 1e-4))
            axes.scatter(*shown, s=5, color=SYNTHETIC, rasterized=True)  # a thousand points
            axes.axvline(sanity, color=TRUE, linewidth=0.8, linestyle=":")
            axes.set_xscale("log")
            axes.set_yscale("log")
            label_logarithms(axes.xaxis)
            label_logarithms(axes.yaxis)
            axes.set_title(title)
            axes.set_xlabel("true count")
            axes.set_ylabel("relative error")
            axes.grid(axis="y")

    return _render(len(panels), (3.3, 2.6), paint)


_NO_LABEL = -1
NOISE = -2
"""Label of a cell that holds points and is in no cluster."""


class Picture(NamedTuple):
    """A grid of cells with labels (-1 for none, -2 for noise), and what is written above it."""

    title: str
    labels: NDArray[np.int64]


def draw_pictures(rows: Sequence[Sequence[Picture]]) -> str:
    """Draw rows of grids; the first coordinate goes to the right, the second upwards.

    This needs no Matplotlib.  Labels beyond the last color begin with the first again.
    """
    width = max(len(row) for row in rows) * (_SIDE + _GAP)
    height = len(rows) * (_SIDE + _TITLE + _GAP)
    drawn = [
        _draw_cells(picture, across * (_SIDE + _GAP), down * (_SIDE + _TITLE + _GAP))
        for down, row in enumerate(rows)
        for across, picture in enumerate(row)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" role="img" font-family="sans-serif" font-size="11">{"".join(drawn)}</svg>'
    )


def _draw_cells(picture: Picture, left: int, top: int) -> str:
    across, up = picture.labels.shape
    drawn = [
        f'<text x="{left}" y="{top + 12}">{escape(picture.title)}</text>',
        f'<rect x="{left}" y="{top + _TITLE}" width="{_SIDE}" height="{_SIDE}" '
        f'fill="{PAPER}" stroke="{FRAME}"/>',
        f'<g transform="translate({left} {top + _TITLE}) '
        f'scale({_SIDE / across:.4f} {_SIDE / up:.4f})">',
    ]
    for label in np.unique(picture.labels[picture.labels != _NO_LABEL]).tolist():
        path = "".join(
            f"M{x} {up - 1 - y}h1v1h-1z" for x, y in np.argwhere(picture.labels == label).tolist()
        )
        color = FRAME if label == NOISE else _CELL_COLORS[label % len(_CELL_COLORS)]
        drawn.append(f'<path d="{path}" fill="{color}"/>')
    return "".join([*drawn, "</g>"])


def _render(
    panels: int, size: tuple[float, float], paint: Callable[[Any, Sequence[Any]], None]
) -> str | None:
    """Open a drawing of panels of `size` inches and have it painted."""
    if not can_draw():
        return None
    columns = columns_for(panels)
    whole = (size[0] * columns, size[1] * -(-panels // columns))
    with drawing(whole, panels=panels, columns=columns) as drawn:
        paint(drawn.figure, drawn.axes)
        return drawn.svg(fit=True)


def _draw_bars(axes: Any, marginal: MarginalPlot) -> None:
    positions = np.arange(len(marginal.labels))
    axes.bar(positions - 0.2, marginal.true, width=0.4, color=TRUE, label="true rows")
    axes.bar(positions + 0.2, marginal.synthetic, width=0.4, color=SYNTHETIC, label="synthetic")
    labels = [shortened(label, 14) for label in marginal.labels]
    axes.set_xticks(positions, labels, rotation=90, fontsize=SMALL_SIZE)


def _draw_steps(axes: Any, marginal: MarginalPlot) -> None:
    positions = np.arange(len(marginal.labels))
    axes.fill_between(positions, marginal.true, step="mid", color=SHADE, label="true rows")
    axes.step(
        positions, marginal.synthetic, where="mid", color=SYNTHETIC, linewidth=1, label="synthetic"
    )
    ticks = np.linspace(0, len(positions) - 1, 4).astype(int)
    labels = [shortened(marginal.labels[tick], 14) for tick in ticks]
    axes.set_xticks(ticks, labels, fontsize=SMALL_SIZE)


def _write_number(axes: Any, where: tuple[int, int], text: str, *, is_dark: bool) -> None:
    """Write a number into a square, bright where the square is dark, in bright and dark pages."""
    color = _ON_DARK if is_dark else _ON_BRIGHT
    axes.text(*where, text, ha="center", va="center", fontsize=6.5, color=color)


def _few_signs(value: float) -> str:
    """Write a number in few signs: .003, .12, 1.4."""
    digits = 3 if abs(value) < 0.1 else 2 if abs(value) < 1 else 1
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
