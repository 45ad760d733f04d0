"""The section of published centers: where they lie, over the noisy grid if there is one."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpublish.core.released import Release
from dpublish.data.column import NumberColumn
from dpublish.methods.kmeans.clustering import ClusterSize
from dpublish.methods.kmeans.released import KMeansRelease, TreeKMeansRelease
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.plots.charts import interval_chart
from dpublish.plots.networks import MOST_NODES, network
from dpublish.plots.style import GRID, INK, PAGE
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import counts_in_words, each_in_words, network_in_words

_MAX_COLUMNS = 3
_MAX_SHADES = 64
_MAX_LISTED = 100
_MAX_SIZES = 40
_SIDE, _STRIP, _LEFT, _BOTTOM, _MARGINAL = 400.0, 60.0, 90.0, 40.0, 10.0
_ROOM = 16.0  # that a label needs beside its center
_TITLE, _LETTER = 78.0, 6.2  # how far left a title may stand; the width of a letter, about
_DOT = "#c0392b"
_ABOUT_SIZES = (
    " Records are noisy counts of the cells that stand out from the noise, ± what noise does to "
    "their sum (95 %). A center that may be noise is hollow in the picture."
)


def section(release: Release, with_charts: bool) -> Section:
    """Show centers of clusters."""
    if not isinstance(release, KMeansRelease):
        return Section()
    python = "release.centers\nrelease.label(rows)"
    shell = ""
    if release.synopsis is not None:
        python += "\nrelease.recluster(8)\nrelease.rows(1000).to_pandas()"
        shell = "dpublish choose-k RELEASE --from 2 --to 16\ndpublish rows RELEASE -n 1000"
        shell += " -o rows.csv"
    return Section(
        figures=[*_figures(release), *_sizes(release), *_tree(release)] if with_charts else (),
        listings=[_list_centers(release)],
        python=python,
        shell=shell,
    )


def _list_centers(release: KMeansRelease) -> Listing:
    shown = release.centers[:_MAX_LISTED]
    sizes = release.cluster_sizes
    about: tuple[str, ...] = ("records",) if sizes else ()
    if any(size.may_be_noise for size in sizes or ()):
        about = (*about, "note")
    caption = "The centers, in the units of their columns" + (
        "." if len(shown) == release.clusters else f"; the first {len(shown):,}."
    )
    return Listing(
        headers=[
            "cluster",
            *release.box.names,
            *about,
        ],
        rows=[
            [
                str(number),
                *(
                    column.show(value, 7)
                    for column, value in zip(release.box.columns, center, strict=True)
                ),
                *(_size_cells(sizes[number])[: len(about)] if sizes else ()),
            ]
            for number, center in enumerate(shown)
        ],
        caption=caption + (_ABOUT_SIZES if sizes else ""),
    )


def _size_cells(size: ClusterSize) -> tuple[str, str]:
    records = f"{size.records:,.0f} ± {size.half_width:,.0f}"
    return records, "may be noise" if size.may_be_noise else ""


@dataclass(frozen=True)
class _Side:
    """One side of a picture: a column, the centers along it (0 to 1), and its length."""

    column: NumberColumn | None
    points: NDArray[np.float64]
    length: float = _SIDE

    @property
    def title(self) -> str:
        return "" if self.column is None else escape(self.column.name)

    @property
    def ends(self) -> tuple[str, str]:
        if self.column is None:
            return "", ""
        low, high = self.column.bounds
        return self.column.show(low, 7), self.column.show(high, 7)

    @property
    def quarters(self) -> tuple[str, ...]:
        """What stands at a quarter, a half and three quarters; nothing if it is too long."""
        if self.column is None:
            return ()
        low, high = self.column.bounds
        found = tuple(self.column.show(low + (high - low) * k / 4, 4) for k in (1, 2, 3))
        longest = max(map(len, (*found, *self.ends)))
        return found if 14 + longest * _LETTER < _TITLE else ()


def _figures(release: KMeansRelease) -> list[Figure]:
    box = release.box
    doubtful = frozenset(
        number for number, size in enumerate(release.cluster_sizes or ()) if size.may_be_noise
    )
    points = (box.scale(release.centers) + 1) / 2
    over = "" if release.synopsis is None else " over the noisy grid (stronger color: more records)"
    if box.dimensions == 1:
        shades = None if release.synopsis is None else release.synopsis.counts[:, None]
        strip = _Side(None, np.full(release.clusters, 0.5), _STRIP)
        picture = _draw(_Side(box.columns[0], points[:, 0]), strip, shades, doubtful)
        caption = f"Centers by {box.names[0]}{over}."
        return [Figure(caption, picture, f"{caption} {_where(release, (0,))}")]
    # Where the centers differ most there is most to see.
    widest = np.argsort(-points.var(axis=0), kind="stable")[:_MAX_COLUMNS]
    figures = []
    for first, second in combinations(sorted(widest.tolist()), 2):
        across, up = (_Side(box.columns[i], points[:, i]) for i in (first, second))
        shades = _plane(release.synopsis, first, second)
        caption = f"Centers by {box.names[first]} and {box.names[second]}{over}."
        alt = f"{caption} {_where(release, (first, second))}"
        figures.append(Figure(caption, _draw(across, up, shades, doubtful), alt))
    return figures


def _where(release: KMeansRelease, axes: Sequence[int]) -> str:
    """Say where the centers are in the columns of a picture."""
    sizes = release.cluster_sizes
    said = []
    for number, center in enumerate(release.centers):
        columns = ((release.box.columns[axis], center[axis]) for axis in axes)
        point = ", ".join(f"{column.name} = {column.show(value)}" for column, value in columns)
        note = " (may be noise)" if sizes and sizes[number].may_be_noise else ""
        said.append(f"{number} at {point}{note}")
    return each_in_words(said)


def _sizes(release: KMeansRelease) -> list[Figure]:
    """Draw how many records each cluster has, as far as a grid tells."""
    sizes = (release.cluster_sizes or ())[:_MAX_SIZES]
    if not sizes:
        return []
    names = [
        f"{number}{' (may be noise)' if size.may_be_noise else ''}"
        for number, size in enumerate(sizes)
    ]
    drawing = interval_chart(
        names,
        [size.records for size in sizes],
        [(max(s.records - s.half_width, 0.0), s.records + s.half_width) for s in sizes],
        title="records of each cluster",
    )
    caption = "Records of each cluster with 95 % intervals of the noise of the cells that stand out"
    rest = "" if len(sizes) == release.clusters else f"; the first {len(sizes)}"
    alt = f"{caption}{rest}. {counts_in_words(names, [size.records for size in sizes])}"
    return [Figure(f"{caption}{rest}.", drawing, alt)]


def _tree(release: KMeansRelease) -> list[Figure]:
    """Draw which pairs of columns were counted, if they make a tree."""
    if not isinstance(release, TreeKMeansRelease) or not 1 < release.box.dimensions <= MOST_NODES:
        return []
    names, tree = release.box.names, release.tree
    parents: dict[str, list[str]] = {names[tree.order[0]]: []}
    for column, above in zip(tree.order[1:], tree.parents[1:], strict=True):
        parents[names[column]] = [names[above]]
    caption = "The tree of marginals: columns that are joined were counted together."
    drawing = network(parents, is_directed=False)
    return [Figure(caption, drawing, f"{caption} {network_in_words(parents)}")]


def _plane(grid: GridSynopsis | None, first: int, second: int) -> NDArray[np.int64] | None:
    return None if grid is None else grid.plane(first, second)


def _draw(
    across: _Side, up: _Side, counts: NDArray[np.int64] | None, doubtful: frozenset[int]
) -> str:
    """Draw the box, noisy counts as shades, and the centers with their numbers."""
    width = _LEFT + across.length + _MARGINAL
    height = up.length + _BOTTOM + _MARGINAL
    head = (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="11" '
        f'style="max-width:{0.85 * width:.0f}px;min-width:22rem">'
        f'<g transform="translate({_LEFT:.0f},{_MARGINAL:.0f})">'
        f'<rect width="{across.length:.0f}" height="{up.length:.0f}" fill="none" '
        f'stroke="{GRID}"/>'
    )
    shades = _lines(across, up) if counts is None else _shade(counts, across.length, up.length)
    dots = "".join(
        _dot(number, x * across.length, (1 - y) * up.length, number in doubtful, across.length)
        for number, (x, y) in enumerate(zip(across.points, up.points, strict=True))
    )
    return head + shades + dots + _name_sides(across, up, counts is None) + "</g></svg>"


def _dot(number: int, x: float, y: float, is_hollow: bool, width: float) -> str:
    """Draw a center and its number: above it and to the right, unless that is out of the box."""
    colors = (PAGE, _DOT) if is_hollow else (_DOT, PAGE)
    side, anchor = (-6, ' text-anchor="end"') if x > width - _ROOM else (6, "")
    up = y - 4 if y > _ROOM else y + 13
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colors[0]}" stroke="{colors[1]}"/>'
        f'<text x="{x + side:.1f}" y="{up:.1f}"{anchor}>{number}</text>'
    )


def _lines(across: _Side, up: _Side) -> str:
    """Draw lines at the quarters of the columns: without a grid the box would be empty."""
    upright = [across.length * k / 4 for k in (1, 2, 3)]
    level = [up.length * k / 4 for k in (1, 2, 3) if up.column is not None]
    drawn = [f"M{x:.0f} 0V{up.length:.0f}" for x in upright]
    drawn += [f"M0 {y:.0f}H{across.length:.0f}" for y in level]
    return f'<path d="{"".join(drawn)}" fill="none" stroke="{GRID}"/>'


def _name_quarters(across: _Side, up: _Side) -> str:
    below = up.length + 14
    along = "".join(
        f'<text x="{across.length * k / 4:.0f}" y="{below:.0f}" text-anchor="middle">{text}</text>'
        for k, text in enumerate(across.quarters, 1)
    )
    return along + "".join(
        f'<text x="-4" y="{up.length * (1 - k / 4) + 4:.0f}" text-anchor="end">{text}</text>'
        for k, text in enumerate(up.quarters, 1)
    )


def _name_sides(across: _Side, up: _Side, has_lines: bool) -> str:
    below = up.length + 14
    left, right = across.ends
    bottom, top = up.ends
    shown = (bottom, top, *up.quarters) if has_lines and up.quarters else ()
    beside = 14 + _LETTER * max(map(len, shown), default=0)
    return (_name_quarters(across, up) if has_lines else "") + (
        f'<text x="0" y="{below:.0f}">{left}</text>'
        f'<text x="{across.length:.0f}" y="{below:.0f}" text-anchor="end">{right}</text>'
        f'<text x="{across.length / 2:.0f}" y="{below + 16:.0f}" text-anchor="middle">'
        f"{across.title}</text>"
        f'<text x="-4" y="{up.length:.0f}" text-anchor="end">{bottom}</text>'
        f'<text x="-4" y="10" text-anchor="end">{top}</text>'
        f'<text transform="translate({-beside:.0f},{up.length / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{up.title}</text>'
    )


def _shade(counts: NDArray[np.int64], width: float, height: float) -> str:
    """Draw cells whose noisy count is positive, as dark as it is large."""
    across, up = (_cuts(size) for size in counts.shape)
    coarse = np.add.reduceat(np.add.reduceat(counts, across[:-1], axis=0), up[:-1], axis=1)
    x, y = across / across[-1] * width, up / up[-1] * height
    most = max(int(coarse.max()), 1)
    cells = "".join(
        f'<rect x="{x[i]:.1f}" y="{height - y[j + 1]:.1f}" width="{x[i + 1] - x[i]:.1f}" '
        f'height="{y[j + 1] - y[j]:.1f}" fill-opacity="{coarse[i, j] / most:.2f}"/>'
        for i, j in np.argwhere(coarse > 0)
    )
    return f'<g fill="{INK}" shape-rendering="crispEdges">{cells}</g>'


def _cuts(size: int) -> NDArray[np.int64]:
    """Merge neighboring cells until there are few enough to be drawn."""
    together = -(-size // _MAX_SHADES)
    return np.append(np.arange(0, size, together, dtype=np.int64), size)
