"""The section of clusters of any shape: the noisy grid with the clusters in colors."""

from collections.abc import Sequence
from html import escape
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.rounding import format_number
from dpublish.core.released import Release
from dpublish.data.column import NumberColumn
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import NO_CLUSTER
from dpublish.plots.charts import GRID
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import each_in_words

_MAX_COLUMNS = 3
_MAX_TILES = 64
_MAX_LISTED = 50
_MOST_SAID = 6
_SIDE, _STRIP, _LEFT, _BOTTOM, _MARGINAL = 400.0, 60.0, 90.0, 40.0, 10.0
_GRAY = "#6b7680"


class _Plane(NamedTuple):
    """Noisy counts by one or two columns, and the heaviest cluster of each tile (-1: none)."""

    counts: NDArray[np.float64]
    labels: NDArray[np.int64]


def section(release: Release, with_charts: bool) -> Section:
    """Show clusters of cells."""
    if not isinstance(release, WaveClusterRelease):
        return Section()
    return Section(
        figures=_figures(release) if with_charts else (),
        listings=[_list_clusters(release)],
        python="release.label(rows)  # rows: a file or any Arrow-compatible object; -1: none"
        "\nrelease.masses()\nrelease.rows(1000).to_pandas()",
        shell="dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _list_clusters(release: WaveClusterRelease) -> Listing:
    masses = release.masses()
    sizes = np.bincount(release.labels[release.labels != NO_CLUSTER], minlength=masses.size)
    order = np.argsort(-masses, kind="stable")[:_MAX_LISTED]
    cells = release.grid.centers()
    rows = []
    for number in order.tolist():
        spans = _spans(release, cells, number)
        rows.append([str(number), f"{sizes[number]:,}", f"{masses[number]:,.0f}", *spans])
    shown = "" if len(rows) == masses.size else f", the {len(rows)} with the most records"
    return Listing(
        headers=["cluster", "coefficients", "noisy records", *release.box.names],
        rows=rows,
        caption=f"The clusters{shown}; the last columns say between which cells each lies."
        f"{_threshold(release)}"
        if rows
        else f"There are no clusters.{_threshold(release)}",
    )


def _spans(release: WaveClusterRelease, cells: NDArray[np.float64], number: int) -> list[str]:
    """Say between which cells a cluster lies, for each column; `cells` are their middles."""
    inside = cells[release.cell_labels == number]
    ends = zip(release.box.columns, inside.min(axis=0), inside.max(axis=0), strict=True)
    return [f"{column.show(low)} to {column.show(high)}" for column, low, high in ends]


def _threshold(release: WaveClusterRelease) -> str:
    """Say which coefficients make the clusters, if that was published; with Haar, in records."""
    if release.threshold is None:
        return ""
    grid = release.grid
    said = f" Clusters are made of noisy coefficients of {format_number(release.threshold)} or more"
    if grid.wavelet != "haar":
        return f"{said}, in the scale of the wavelet {grid.wavelet}."
    side, columns = 2**grid.levels, len(grid.sizes)
    records = format_number(release.threshold * side ** (columns / 2))
    return f"{said}: {records} records in {' x '.join([str(side)] * columns)} cells."


def _figures(release: WaveClusterRelease) -> list[Figure]:
    names, columns = release.box.names, release.box.columns
    note = "gray: noisy counts (stronger: more records); colors: clusters"
    if len(names) == 1:
        drawing = _draw(_project(release, (0,)), columns[0], None)
        caption = f"Clusters by {names[0]}; {note}."
        return [Figure(caption, drawing, f"{caption} {_said(release, (0,))}")]
    if len(names) > 2:
        note += ", the heaviest where several lie behind each other"
    figures = []
    for i, j in combinations(range(min(len(names), _MAX_COLUMNS)), 2):
        caption = f"Clusters by {names[i]} and {names[j]}; {note}."
        drawing = _draw(_project(release, (i, j)), columns[i], columns[j])
        figures.append(Figure(caption, drawing, f"{caption} {_said(release, (i, j))}"))
    return figures


def _said(release: WaveClusterRelease, axes: Sequence[int]) -> str:
    """Say how many clusters there are, how heavy, and between which cells of a picture."""
    masses, cells = release.masses(), release.grid.centers()
    said = []
    for number in np.argsort(-masses, kind="stable")[:_MOST_SAID].tolist():
        spans = _spans(release, cells, number)
        where = ", ".join(f"{release.box.names[axis]} {spans[axis]}" for axis in axes)
        said.append(f"{number}: {masses[number]:,.0f} records, {where}")
    found = release.clusters
    count = f"{found:,} cluster{'' if found == 1 else 's'}" if found else "No cluster"
    sizes = " x ".join(f"{size:,}" for size in release.grid.sizes)
    return f"{count} in a grid of {sizes} cells. {each_in_words(said, of=found)}".rstrip()


def _project(release: WaveClusterRelease, axes: tuple[int, ...]) -> _Plane:
    """Add the counts up by tiles of one or two columns, and find each tile's heaviest cluster."""
    sizes = release.grid.sizes
    indices = np.unravel_index(np.arange(release.counts.size), sizes)
    shape = tuple(min(sizes[axis], _MAX_TILES) for axis in axes)
    tiles = np.zeros(release.counts.size, dtype=np.int64)
    for axis, size in zip(axes, shape, strict=True):
        tiles = tiles * size + indices[axis] * size // sizes[axis]
    counts = np.bincount(tiles, weights=release.counts, minlength=np.prod(shape))
    heaviest = np.full(counts.size, NO_CLUSTER, dtype=np.int64)
    inside = np.flatnonzero(release.cell_labels != NO_CLUSTER)
    clusters = max(release.clusters, 1)
    keys, where = np.unique(
        tiles[inside] * clusters + release.cell_labels[inside], return_inverse=True
    )
    masses = np.bincount(where, weights=release.counts[inside], minlength=keys.size)
    rising = np.argsort(masses, kind="stable")  # the heaviest is written last
    heaviest[keys[rising] // clusters] = keys[rising] % clusters
    grid = shape if len(shape) == 2 else (*shape, 1)
    return _Plane(np.asarray(counts.reshape(grid), dtype=np.float64), heaviest.reshape(grid))


def _draw(plane: _Plane, across: NumberColumn, up: NumberColumn | None) -> str:
    """Draw tiles as shades of gray, or of their cluster's color."""
    tall = _SIDE if up is not None else _STRIP
    width, height = _LEFT + _SIDE + _MARGINAL, tall + _BOTTOM + _MARGINAL
    step_x, step_y = _SIDE / plane.counts.shape[0], tall / plane.counts.shape[1]
    most = max(float(plane.counts.max()), 1.0)
    tiles = []
    for i, j in np.argwhere((plane.counts > 0) | (plane.labels != NO_CLUSTER)).tolist():
        label = int(plane.labels[i, j])
        part = float(np.clip(plane.counts[i, j] / most, 0, 1)) ** 0.5
        fill, opacity = (_GRAY, 0.8 * part) if label == NO_CLUSTER else (_color(label), 1.0)
        tiles.append(
            f'<rect x="{i * step_x:.1f}" y="{tall - (j + 1) * step_y:.1f}" '
            f'width="{step_x:.1f}" height="{step_y:.1f}" fill="{fill}" '
            f'fill-opacity="{opacity:.2f}"/>'
        )
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="11" '
        f'style="max-width:{0.85 * width:.0f}px;min-width:22rem">'
        f'<g shape-rendering="crispEdges" transform="translate({_LEFT:.0f},{_MARGINAL:.0f})">'
        f'<rect width="{_SIDE:.0f}" height="{tall:.0f}" fill="none" stroke="{GRID}"/>'
        + "".join(tiles)
        + _name_sides(across, up, tall)
        + "</g></svg>"
    )


def _color(label: int) -> str:
    """Pick a color far from those of the clusters numbered nearby."""
    return f"hsl({label * 137.508 % 360:.0f},{60 + label % 3 * 15}%,{42 + label % 2 * 14}%)"


def _name_sides(across: NumberColumn, up: NumberColumn | None, tall: float) -> str:
    low, high = across.bounds
    below = tall + 14
    text = (
        f'<text x="0" y="{below:.0f}">{across.show(low, 6)}</text>'
        f'<text x="{_SIDE:.0f}" y="{below:.0f}" text-anchor="end">{across.show(high, 6)}</text>'
        f'<text x="{_SIDE / 2:.0f}" y="{below + 16:.0f}" text-anchor="middle">'
        f"{escape(across.name)}</text>"
    )
    if up is None:
        return text
    bottom, top = up.bounds
    return text + (
        f'<text x="-4" y="{tall:.0f}" text-anchor="end">{up.show(bottom, 6)}</text>'
        f'<text x="-4" y="10" text-anchor="end">{up.show(top, 6)}</text>'
        f'<text transform="translate(-14,{tall / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(up.name)}</text>'
    )
