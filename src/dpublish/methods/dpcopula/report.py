"""The sections of copulas: marginals, correlations or dependences, and a few rows drawn."""

import shlex
from collections.abc import Sequence

import numpy as np

from dpublish.accuracy.rounding import format_number
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.query.language import quote
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.dpcopula.released_cells import CellCopulasRelease
from dpublish.methods.dpcopula.released_hybrid import DPCopulaHybridRelease
from dpublish.methods.privbayes.report import network_figures
from dpublish.plots.charts import MERGED, Panel, correlation_map, small_bar_charts
from dpublish.report.axis_marginals import marginal_figures, tell_rest
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import each_in_words, most_in_words, pairs_in_words
from dpublish.types import FloatArray

_MAX_MARGINALS = 40
_MAX_MIXED_MARGINALS = 48
_MAX_CORRELATIONS = 15
_MAX_CELLS = 20
_MAX_COLUMNS = 12
_SAMPLE_ROWS = 5


# --- A copula -------------------------------------------------------------------------------------


def section(release: Release, with_charts: bool) -> Section:
    """Show a copula."""
    if not isinstance(release, DPCopulaRelease):
        return Section()
    query = " and ".join(_condition(axis) for axis in list(release.axes.values())[:2])
    listings = [_sample_rows(release)]
    if release.ordered:
        listings.insert(0, _strongest(release))
    return _count_and_rows(query, listings, _figures(release) if with_charts else ())


def _count_and_rows(query: str, listings: list[Listing], figures: Sequence[Figure]) -> Section:
    return Section(
        figures=figures,
        listings=listings,
        python=f"release.count({query!r})\nrelease.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(query)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _condition(axis: Axis) -> str:
    """Write a condition that about half of the cells satisfy, or one value."""
    name = quote(axis.column)
    if axis.edges is None:
        return f"{name} = {quote(axis.labels[0])}"
    middle = axis.edges[(len(axis.edges) - 1) // 2]
    return f"{name} >= {quote(axis.write(middle))}"


def _figures(release: DPCopulaRelease) -> list[Figure]:
    panels = [
        Panel(name, release.axes[name].labels, release.records * distribution.probabilities)
        for name, distribution in list(release.distributions.items())[:_MAX_MARGINALS]
    ]
    left_out = len(release.distributions) - len(panels)
    more = f" The first {len(panels)}; {left_out} more are not shown." if left_out else ""
    caption = f"Estimated counts of every column, from its noisy marginal; {MERGED}.{more}"
    figures = [Figure(caption, small_bar_charts(panels), _peaks(panels))]
    if release.ordered:
        drawing = correlation_map(release.ordered, release.matrix)
        caption = "Correlations of the normal variables behind the columns that have an order."
        alt = f"{caption} {pairs_in_words(release.ordered, release.matrix)}"
        figures.append(Figure(caption, drawing, alt))
    return figures


def _peaks(panels: Sequence[Panel]) -> str:
    said = [f"{panel.title}: {most_in_words(panel.labels, panel.counts)}" for panel in panels]
    return f"Estimated counts of every column. {each_in_words(said)}"


def _strongest(release: DPCopulaRelease) -> Listing:
    first, second = np.triu_indices(len(release.ordered), 1)
    found = release.matrix[first, second]
    order = np.argsort(-np.abs(found), kind="stable")[:_MAX_CORRELATIONS]
    rows = [
        [
            release.ordered[first[k]],
            release.ordered[second[k]],
            f"{found[k]:+.3f}",
            f"{min(release.deviations[first[k], second[k]], 1):.3f}",
        ]
        for k in order
    ]
    return Listing(
        headers=["column", "column", "correlation", "standard deviation of its noise"],
        rows=rows,
        caption=f"The {len(rows)} strongest of {found.size:,} correlations.",
    )


def _sample_rows(release: Release) -> Listing:
    """Show a few rows drawn from a release."""
    names = release.schema.names[:_MAX_COLUMNS]
    drawn = release.rows(_SAMPLE_ROWS, seed=0).select(names)
    return Listing(
        headers=names,
        rows=[[_text(row[name]) for name in names] for row in drawn.to_pylist()],
        caption="Rows drawn from the release: synthetic, not copied from records.",
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return format_number(value, 6) if isinstance(value, float) else str(value)


# --- Numbers and categories joined by a network ---------------------------------------------------


def mixed_section(release: Release, with_charts: bool) -> Section:
    """Show a mixed table."""
    if not isinstance(release, DPCopulaHybridRelease):
        return Section()
    number = release.numbers.schema.names[0]
    edges = release.schema[number].axis().edges
    query = "" if edges is None else f"{quote(number)} >= {edges[len(edges) // 2]:g}"
    return Section(
        figures=_mixed_figures(release) if with_charts else (),
        listings=[_dependences(release), _sample_rows(release)],
        python=f"release.rows(1000).to_pandas()\nrelease.count({query!r})",
        shell="dpublish rows RELEASE -n 1000 -o rows.csv\n"
        f"dpublish count RELEASE {shlex.quote(query)}",
    )


def _mixed_figures(release: DPCopulaHybridRelease) -> list[Figure]:
    names = release.schema.names[:_MAX_MIXED_MARGINALS]
    panels = [
        Panel(name, release.marginal_axis(name).labels, release.marginal_counts(name))
        for name in names
    ]
    caption = f"Estimated counts of every column; {MERGED}."
    counts = Figure(caption, small_bar_charts(panels), _peaks(panels))
    figures = tell_rest([counts], len(release.schema.names) - len(names))
    if release.numbers.ordered:
        numbers, matrix = release.numbers.ordered, release.numbers.matrix
        caption = "Correlations of the normal variables behind the numbers."
        alt = f"{caption} {pairs_in_words(numbers, matrix)}"
        figures.append(Figure(caption, correlation_map(numbers, matrix), alt))
    return [*figures, *network_figures(release.network.nodes)]


def _dependences(release: DPCopulaHybridRelease) -> Listing:
    network = release.network
    rows = []
    for node in network.nodes:
        axes = node.axes(network.schema)
        parents = ", ".join(f"{axis.column} ({axis.size})" for axis in axes[1:])
        if node.column in network.given:
            parents, cells = "correlations with other numbers", "not counted"
        elif not node.parents and node.column in network.apart:
            cells = "its own marginal"
        else:
            cells = f"{int(np.prod([axis.size for axis in axes])):,}"
        rows.append([f"{node.column} ({axes[0].size})", parents or "nothing", cells])
    return Listing(
        headers=["column (cells)", "depends on (cells)", "joint cells"],
        rows=rows,
        caption="The network, in the order in which columns are drawn; numbers by classes of rank.",
    )


# --- Cells of categories, with copulas inside -----------------------------------------------------


def cells_section(release: Release, with_charts: bool) -> Section:
    """Show cells and copulas."""
    if not isinstance(release, CellCopulasRelease):
        return Section()
    axis = release.groups.categories[0]
    query = f"{quote(axis.column)} = {quote(axis.labels[0])}"
    listings = [_fullest(release)]
    if len(release.numbers) > 1:
        listings.append(_cell_correlations(release))
    return _count_and_rows(query, listings, _cell_figures(release) if with_charts else ())


def _cell_figures(release: CellCopulasRelease) -> list[Figure]:
    """Draw each column: cells added up over the others, marginals over all groups."""
    groups = release.groups
    cube = groups.estimates.reshape(groups.shape)
    counts: list[FloatArray] = []
    for index in range(len(groups.categories)):
        others = tuple(axis for axis in range(cube.ndim) if axis != index)
        counts.append(cube.sum(axis=others))
    sizes = np.maximum(groups.sizes, 0)
    for distributions in zip(*groups.distributions, strict=True):
        counts.append(
            sizes @ np.stack([distribution.probabilities for distribution in distributions])
        )
    return marginal_figures((*groups.categories, *groups.numbers), counts, "Estimated counts")


def _fullest(release: CellCopulasRelease) -> Listing:
    groups = release.groups
    order = np.argsort(-groups.counts, kind="stable")[:_MAX_CELLS]
    along = np.unravel_index(order, groups.shape)
    rows = [
        [
            *(axis.labels[i[k]] for axis, i in zip(groups.categories, along, strict=True)),
            f"{groups.counts[cell]:,}",
            "yes" if groups.group_of[cell] < groups.kept.size else "no",
        ]
        for k, cell in enumerate(order)
    ]
    caption = f"The {len(rows)} fullest of {groups.counts.size:,} cells."
    if groups.kept.size:
        least = groups.counts[groups.kept].min()
        caption += f" Cells with marginals of their own have a noisy count of {least:,} or more."
    return Listing(
        headers=[*(axis.column for axis in groups.categories), "noisy count", "own marginals"],
        rows=rows,
        caption=caption,
    )


def _cell_correlations(release: CellCopulasRelease) -> Listing:
    first, second = np.triu_indices(len(release.numbers), 1)
    rows = [
        [
            release.numbers[i],
            release.numbers[j],
            f"{release.matrix[i, j]:.2f}",
            format_number(release.reading.deviations[i, j], 2),
        ]
        for i, j in zip(first, second, strict=True)
    ]
    return Listing(
        headers=["column", "column", "correlation", "deviation due to noise"],
        rows=rows,
        caption="Correlations inside groups of cells, of the normal variables behind columns.",
    )
