"""The section of boxes: how dense they are, the marginals, and the fullest of them."""

import shlex
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.query.language import quote
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.plots.charts import GRID, INK, bar_chart, heat_map
from dpublish.report.axis_marginals import tell_rest
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import cells_in_words, counts_in_words, each_in_words

_MAX_MARGINALS = 8
_MAX_BARS = 40
_MAX_DRAWN = 5_000
_MAX_LISTED = 20
_MOST_SAID = 3
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _PADDING = 440.0, 330.0, 110.0, 40.0, 10.0


def section(release: Release, with_charts: bool) -> Section:
    """Show boxes."""
    if not isinstance(release, SpatialRelease):
        return Section()
    query = _example(release.axes[0])
    return Section(
        figures=[*_picture(release), *_marginals(release)] if with_charts else (),
        listings=[_fullest(release)],
        python=f"release.count({query!r})\nrelease.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(query)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _example(axis: Axis) -> str:
    """Write a query for half of a column."""
    name, middle = quote(axis.column), axis.ordinary_leaves // 2
    if axis.edges is None:
        return f"{name} = {quote(axis.labels[middle])}"
    edge = axis.edges[middle]
    return f"{name} >= {quote(axis.write(edge))}"


def _marginals(release: SpatialRelease) -> list[Figure]:
    figures = []
    for axis in release.axes[:_MAX_MARGINALS]:
        ends = _range_ends(axis)[:, None]
        counts = release.count_boxes([axis.column], ends[:-1], ends[1:])
        labels, shown = _range_labels(axis), np.rint(counts).astype(np.int64)
        drawing = bar_chart(
            labels,
            shown,
            float("nan"),
            title=axis.column,
            ordered=axis.kind != "category",
        )
        caption = f"Estimated counts by {axis.column}."
        figures.append(Figure(caption, drawing, f"{caption} {counts_in_words(labels, shown)}"))
    return tell_rest(figures, len(release.axes) - len(figures))


def _range_ends(axis: Axis) -> NDArray[np.int64]:
    """Cut a column into ranges of equal length, no more than can be shown.

    Only the last may be shorter: where lengths vary from range to range, so do the counts.
    """
    step = -(-axis.size // _MAX_BARS)
    return np.append(np.arange(0, axis.size, step), axis.size)


def _range_labels(axis: Axis) -> list[str]:
    """Name these ranges."""
    ends = _range_ends(axis).tolist()
    return [_span(axis, low, high) for low, high in pairwise(ends)]


def _span(axis: Axis, low: int, high: int) -> str:
    """Name a range of codes by its first and its last."""
    first, last = axis.labels[low], axis.labels[high - 1]
    return first if first == last else f"{first} to {last}"


def _fullest(release: SpatialRelease) -> Listing:
    order = np.argsort(-release.plausible, kind="stable")[:_MAX_LISTED]
    rows = [
        [
            *(
                _span(axis, low, high)
                for axis, low, high in zip(
                    release.axes, release.lows[box], release.highs[box], strict=True
                )
            ),
            f"{release.plausible[index]:,.0f}",
        ]
        for index, box in zip(order, release.ends[order], strict=True)
    ]
    return Listing(
        headers=[*release.schema.names, "estimated records"],
        rows=rows,
        caption=f"The {len(rows)} fullest of {release.ends.size:,} boxes without parts.",
    )


def _picture(release: SpatialRelease) -> list[Figure]:
    """Draw the boxes of two columns, the darker the more records for their size."""
    if len(release.axes) != 2:
        return []
    if release.ends.size > _MAX_DRAWN:
        return [_tiles(release)]
    lows, highs = release.lows[release.ends], release.highs[release.ends]
    density = release.plausible / np.prod(highs - lows, axis=1)
    shades = np.sqrt(density / max(float(density.max()), 1e-300))
    steps = np.array([_WIDTH, _HEIGHT]) / [axis.size for axis in release.axes]
    drawn = "".join(
        f'<rect x="{x:.1f}" y="{_HEIGHT - y - height:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill-opacity="{shade:.2f}"/>'
        for (x, y), (width, height), shade in zip(
            lows * steps, (highs - lows) * steps, shades, strict=True
        )
    )
    width, height = _LEFT + _WIDTH + _PADDING, _HEIGHT + _BOTTOM + _PADDING
    across, up = release.axes
    drawing = (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="11" '
        f'style="max-width:{width:.0f}px;min-width:22rem">'
        f'<g transform="translate({_LEFT:.0f},{_PADDING:.0f})">'
        f'<g fill="{INK}" stroke="{GRID}" stroke-width="0.5">{drawn}</g>'
        f"{_name_sides(across, up)}</g></svg>"
    )
    caption = (
        f"Boxes by {across.column} and {up.column}; the stronger the color, the denser the records."
    )
    return [Figure(caption, drawing, f"{caption} {_densest(release, density)}")]


def _densest(release: SpatialRelease, density: NDArray[np.float64]) -> str:
    """Say how many boxes there are, and where records are densest."""
    said = []
    for index in np.argsort(-density, kind="stable")[:_MOST_SAID].tolist():
        box = release.ends[index]
        sides = zip(release.axes, release.lows[box], release.highs[box], strict=True)
        where = " and ".join(f"{axis.column} {_span(axis, low, high)}" for axis, low, high in sides)
        said.append(f"{where}: {release.plausible[index]:,.0f} records")
    return f"{release.ends.size:,} boxes. Densest: {each_in_words(said)}"


def _tiles(release: SpatialRelease) -> Figure:
    """Draw very many boxes as tiles of ranges of equal length."""
    across, up = release.axes
    ends = [_range_ends(axis) for axis in (up, across)]
    indices = np.indices([len(one) - 1 for one in ends]).reshape(2, -1)
    lows, highs = (
        np.stack([one[index + step] for one, index in zip(ends, indices, strict=True)], axis=1)
        for step in (0, 1)
    )
    counts = release.count_boxes([up.column, across.column], lows, highs)
    table = np.rint(counts).astype(np.int64).reshape([len(one) - 1 for one in ends])
    rows, columns = _range_labels(up), _range_labels(across)
    drawing = heat_map(rows, columns, table, row_title=up.column, column_title=across.column)
    caption = f"Estimated counts by {up.column} and {across.column}."
    return Figure(caption, drawing, f"{caption} {cells_in_words(rows, columns, table)}")


def _name_sides(across: Axis, up: Axis) -> str:
    below = _HEIGHT + 14
    texts = [
        (f'x="0" y="{below:.0f}"', across.labels[0]),
        (f'x="{_WIDTH:.0f}" y="{below:.0f}" text-anchor="end"', across.labels[-1]),
        (f'x="{_WIDTH / 2:.0f}" y="{below + 16:.0f}" text-anchor="middle"', across.column),
        (f'x="-4" y="{_HEIGHT:.0f}" text-anchor="end"', up.labels[0]),
        ('x="-4" y="10" text-anchor="end"', up.labels[-1]),
        (
            f'transform="translate(-14,{_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle"',
            up.column,
        ),
    ]
    return "".join(f"<text {where}>{escape(label[:24])}</text>" for where, label in texts)
