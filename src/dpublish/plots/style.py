"""The style sheet of all charts, and the one way in which Matplotlib is used to draw them.

Charts are inline SVG: no network, no JavaScript.  Without Matplotlib (the extra `plots`) there
are only those that are written as SVG by hand.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from math import floor, isfinite, log10
from threading import RLock
from typing import Any, NamedTuple

INK, PALE, GRID = "#1f5f8b", "#9dc3dd", "#e3e6e8"
TEXT, FRAME, PAPER = "#555555", "#8a9399", "#f4f7f9"
# Distinguishable by all eyes and in print without color (Okabe and Ito).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GRAYS = ("#555555", "#8f8f8f", "#bbbbbb", "#222222")
TRUE, SYNTHETIC = "#666666", "#D55E00"
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
_PADDING = 0.15  # inches around a drawing that is cut to fit; a browser's letters may be wider
_LARGEST_ZOOM = 1.6  # of a small drawing on a wide page
_ONE_AT_A_TIME = RLock()
"""Matplotlib keeps its style for the whole process, so only one thread may be drawing."""


def can_draw() -> bool:
    """Return whether Matplotlib (the extra `plots`) is installed."""
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
        svg = re.sub(prologue, "", buffer.getvalue(), flags=re.DOTALL)
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
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    between = FuncFormatter(lambda value, _: plain_number(value) if f"{value:e}"[0] in "25" else "")
    axis.set_minor_formatter(between if high < 100 * low else NullFormatter())


def show_correlations(axes: Any, matrix: Any) -> Any:
    """Draw a matrix of correlations: blue is -1, white 0, red 1.  Returns the image."""
    return axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True)


def _limit_width(svg: str) -> str:
    """Keep a page from blowing a small drawing up to its own width."""
    width = re.search(r'viewBox="0 0 ([\d.]+)', svg)
    style = "" if width is None else f' style="max-width:{_LARGEST_ZOOM * float(width[1]):.0f}px"'
    return svg.replace("<svg", f"<svg{style}", 1)
