"""The copula's section: every marginal, the correlations, and a few rows drawn from them."""

import shlex

import numpy as np

from dpublish.core.query.language import quote
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.plots.charts import MERGED, Panel, correlation_map, small_bar_charts
from dpublish.report.section import Figure, Listing, Section

_MAX_MARGINALS = 40
_MAX_LISTED = 15
_MAX_COLUMNS = 12
_SAMPLE_ROWS = 5


def section(release: Release, with_charts: bool) -> Section:
    """Show a copula."""
    if not isinstance(release, DPCopulaRelease):
        return Section()
    question = " and ".join(_condition(axis) for axis in list(release.axes.values())[:2])
    listings = [sample_rows(release)]
    if release.ordered:
        listings.insert(0, _strongest(release))
    return Section(
        figures=_figures(release) if with_charts else (),
        listings=listings,
        python=f"release.count({question!r})\nrelease.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(question)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _condition(axis: Axis) -> str:
    """Write a condition that about half of the cells satisfy, or one value."""
    name = quote(axis.column)
    if axis.edges is None:
        return f"{name} = {quote(axis.labels[0])}"
    middle = axis.edges[(len(axis.edges) - 1) // 2]
    return f"{name} >= {middle:.0f}" if axis.holds_integers else f"{name} >= {middle!r}"


def _figures(release: DPCopulaRelease) -> list[Figure]:
    panels = [
        Panel(name, release.axes[name].labels, release.records * distribution.probabilities)
        for name, distribution in list(release.distributions.items())[:_MAX_MARGINALS]
    ]
    left_out = len(release.distributions) - len(panels)
    more = f" The first {len(panels)}; {left_out} more are not shown." if left_out else ""
    caption = f"Estimated counts of every column, from its noisy marginal; {MERGED}.{more}"
    figures = [Figure(caption, small_bar_charts(panels))]
    if release.ordered:
        drawing = correlation_map(release.ordered, release.matrix)
        caption = "Correlations of the normal variables behind the columns that have an order."
        figures.append(Figure(caption, drawing))
    return figures


def _strongest(release: DPCopulaRelease) -> Listing:
    first, second = np.triu_indices(len(release.ordered), 1)
    found = release.matrix[first, second]
    order = np.argsort(-np.abs(found), kind="stable")[:_MAX_LISTED]
    rows = [
        [
            release.ordered[first[k]],
            release.ordered[second[k]],
            f"{found[k]:+.3f}",
            f"{min(release.spread[first[k], second[k]], 1):.3f}",
        ]
        for k in order
    ]
    return Listing(
        headers=["column", "column", "correlation", "standard deviation of its noise"],
        rows=rows,
        caption=f"The {len(rows)} strongest of {found.size:,} correlations.",
    )


def sample_rows(release: Release) -> Listing:
    """Show a few rows drawn from a release."""
    names = release.schema.names[:_MAX_COLUMNS]
    drawn = release.rows(_SAMPLE_ROWS, seed=0).select(names)
    return Listing(
        headers=names,
        rows=[[_told(row[name]) for name in names] for row in drawn.to_pylist()],
        caption="Rows drawn from the release: made up, not copied from records.",
    )


def _told(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
