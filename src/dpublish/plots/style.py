"""The style sheet of all charts, and the one way in which Matplotlib is used to draw them.

Charts are inline SVG: no network, no JavaScript.  Where Matplotlib is missing, though dpublish
brings it, there are only those that are written as SVG by hand.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from math import floor, isfinite, log10
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

INK, PALE, GRID = "#1f5f8b", "#9dc3dd", "#e3e6e8"
TEXT, FRAME, PAPER = "#555555", "#8a9399", "#f4f7f9"
PAGE, WHISKER, SHADE = "#ffffff", "#333333", "#cccccc"
LESS, MORE = "#2c78b8", "#c8452f"
"""The ends of the scale of correlations; both read as well on a dark page as on a bright one."""
# Distinguishable by all eyes and in print without color (Okabe and Ito).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GRAYS = ("#555555", "#8f8f8f", "#bbbbbb", "#222222")
TRUE, SYNTHETIC = "#666666", "#D55E00"
BAND: Any = {"color": INK, "alpha": 0.3, "linewidth": 0}
"""How the confidence intervals of a line are drawn."""
MARKERS = "osD^vPX*"
DASHES = ("--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
TITLE_SIZE, LABEL_SIZE, SMALL_SIZE = 10, 8, 7
_RULES: Any = {
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "text.usetex": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dpublish",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FRAME,
    "axes.labelcolor": "#333333",
    "axes.axisbelow": True,
    "axes.titlesize": TITLE_SIZE,
    "axes.titlelocation": "left",
    "axes.formatter.useoffset": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "legend.frameon": False,
    "legend.fontsize": LABEL_SIZE,
}
KEPT = "kept"
_KEPT: ContextVar[list[Any] | None] = ContextVar("_KEPT", default=None)
_FONTS = "'DejaVu Sans', sans-serif"
_PADDING = 0.15  # inches around a drawing that is cut to fit; a browser's letters may be wider
_LARGEST_ZOOM = 4 / 3  # of a small drawing on a wide page: its size in points, as it was drawn
_ONE_AT_A_TIME = RLock()
"""Matplotlib keeps its style for the whole process, so only one thread may be drawing."""


def can_draw() -> bool:
    """Return whether Matplotlib is there; a plain installation of dpublish brings it."""
    return find_spec("matplotlib") is not None


class Drawing(NamedTuple):
    """A Matplotlib figure and its axes, row by row."""

    figure: Any
    axes: list[Any]

    def svg(self, *, fit: bool = False) -> str:
        """Write the drawing; with `fit` as large as what is drawn, so that no label is cut off."""
        kept = _KEPT.get()
        if kept is not None:
            kept.append(self.figure)
            return KEPT
        buffer = io.StringIO()
        box: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": _PADDING} if fit else {}
        no_names = {"Date": None, "Creator": None}
        self.figure.savefig(buffer, format="svg", metadata=no_names, dpi=150, **box)
        # A page wants neither the XML prologue nor the metadata, which names addresses.
        prologue = r"^.*?(?=<svg)|<metadata>.*?</metadata>"
        svg = _compact(re.sub(prologue, "", buffer.getvalue(), flags=re.DOTALL))
        return _limit_width(svg) if fit else svg


@contextmanager
def keeping_figures() -> Iterator[list[Any]]:
    """Collect Matplotlib figures as they are, instead of writing them as SVG.

    What is written for each of them meanwhile is `KEPT`.
    """
    figures: list[Any] = []
    token = _KEPT.set(figures)
    try:
        yield figures
    finally:
        _KEPT.reset(token)


@cache
def _figure_class() -> Any:
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure that a notebook shows by itself, whatever its backend is."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=96)
            return buffer.getvalue()

    return ShownFigure


@contextmanager
def drawing(
    size: tuple[float, float], *, panels: int = 1, columns: int = 1, shares_scale: bool = False
) -> Iterator[Drawing]:
    """Open a drawing of `size` inches with so many panels; what is drawn follows the style.

    Other threads that want to draw wait until it is closed.
    """
    import matplotlib as mpl

    with _ONE_AT_A_TIME, mpl.rc_context(_RULES):
        figure = _figure_class()(figsize=size, layout="constrained")
        rows = -(-panels // columns)
        grid = figure.subplots(
            rows, columns, squeeze=False, sharex=shares_scale, sharey=shares_scale
        )
        for empty in grid.flat[panels:]:
            empty.set_visible(False)
        yield Drawing(figure, list(grid.flat[:panels]))


def columns_for(panels: int) -> int:
    """Return how many panels stand side by side: three, or two if there are four."""
    return 2 if panels == 4 else min(3, panels)


def shortened(label: str, length: int = 24) -> str:
    """Cut a label that is too long for an axis.

    >>> shortened("a very long name of a column")
    'a very long name of a c…'
    """
    return label if len(label) <= length else label[: length - 1] + "…"


def plain_number(value: float, digits: int = 4) -> str:
    """Write a number with so many digits that count, separators, and never an exponent.

    >>> plain_number(1234567.0), plain_number(0.000123456), plain_number(2.50)
    ('1,234,567', '0.0001235', '2.5')
    """
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def label_by_counts(axis: Any) -> None:
    """Label an axis by integers with separators."""
    from matplotlib.ticker import StrMethodFormatter

    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def label_logarithms(axis: Any) -> None:
    """Label an axis of logarithms by plain numbers; where it is short, between decades, too."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    if high >= 100 * low:
        axis.set_minor_locator(NullLocator())
        return
    between = FuncFormatter(lambda value, _: plain_number(value) if f"{value:e}"[0] in "25" else "")
    axis.set_minor_formatter(between)


def draw_intervals(axes: Any, rows: Any, values: Sequence[float], lows: Any, highs: Any) -> None:
    """Draw a dot in each row, and a whisker from the low to the high end of its interval."""
    at = np.asarray(values, dtype=np.float64)
    sides = np.maximum(np.stack([at - lows, np.asarray(highs) - at]), 0)
    axes.errorbar(at, rows, xerr=sides, fmt="o", color=INK, markersize=4, capsize=3, elinewidth=1.2)


def show_dependence(axes: Any, matrix: Any, *, is_signed: bool = True) -> Any:
    """Draw correlations, or other measures of dependence, with the one scale of all pages.

    Red is 1, blue -1, and what is 0 has no color; `is_signed` says whether there are values below
    0.  Returns the image.
    """
    image = axes.imshow(matrix, cmap=_color_map(LESS, MORE), vmin=-1, vmax=1, rasterized=True)
    if not is_signed:
        image.set(cmap=_color_map(MORE), clim=(0, 1))
    return image


def show_counts(axes: Any, counts: Any) -> Any:
    """Draw a table of counts: the stronger the color, the more.  Returns the image."""
    return axes.imshow(counts, aspect="auto", cmap=_color_map(LESS), rasterized=True)


@cache
def _color_map(*ends: str) -> Any:
    """Run from one color over none at all to the other; from none, if there is one color only.

    What has no color shows the page, be it bright or dark.
    """
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    first, last = to_rgb(ends[0]), to_rgb(ends[-1])
    below = [(0.0, (*first, 1.0)), (0.5, (*first, 0.0)), (0.5, (*last, 0.0))]
    steps = (
        [*below, (1.0, (*last, 1.0))]
        if len(ends) > 1
        else [(0.0, (*first, 0.0)), (1.0, (*first, 1.0))]
    )
    return LinearSegmentedColormap.from_list("dpublish", steps)


def _compact(svg: str) -> str:
    r"""Write a drawing shorter, so that a page of many stays light; it looks the same.

    >>> _compact('<path d="M 65.634372 2 \n\nL 0.001 -3.456789">')
    '<path d="M 65.63 2 L 0 -3.46">'
    """
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(font-family: )[^;\"]+", rf"\1{_FONTS}", svg)
    svg = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", svg)
    svg = re.sub(r"-?\b\d+\.\d{3,}", _rounded, svg)
    return re.sub(r"(?<=>)\s+(?=<)", "", re.sub(r"\s*\n\s*", " ", svg))


def _rounded(number: re.Match[str]) -> str:
    """Round to hundredths of a point, which no eye tells apart."""
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _limit_width(svg: str) -> str:
    """Keep a page from blowing a small drawing up to its own width, and a phone from the same."""
    width = re.search(r'viewBox="0 0 ([\d.]+)', svg)
    if width is None:
        return svg
    most = f"{_LARGEST_ZOOM * float(width[1]):.0f}px"
    style = f' style="max-width:{most};min-width:min(32rem,{most})"'
    return svg.replace("<svg", f"<svg{style}", 1)
