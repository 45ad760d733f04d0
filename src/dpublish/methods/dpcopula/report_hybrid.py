"""The section of a mixed table: every column's counts, what depends on what, a few rows."""

import shlex

import numpy as np

from dpublish.core.query.language import quote
from dpublish.core.released import Release
from dpublish.methods.dpcopula.released_hybrid import DPCopulaHybridRelease
from dpublish.methods.dpcopula.report import sample_rows
from dpublish.plots.charts import MERGED, Panel, correlation_map, small_bar_charts
from dpublish.report.axis_marginals import tell_rest
from dpublish.report.section import Figure, Listing, Section

_MAX_MARGINALS = 48


def section(release: Release, with_charts: bool) -> Section:
    """Show a mixed table."""
    if not isinstance(release, DPCopulaHybridRelease):
        return Section()
    number = release.numbers.schema.names[0]
    edges = release.schema[number].axis().edges
    question = "" if edges is None else f"{quote(number)} >= {edges[len(edges) // 2]:g}"
    return Section(
        figures=_figures(release) if with_charts else (),
        listings=[_dependences(release), sample_rows(release)],
        python=f"release.rows(1000).to_pandas()\nrelease.count({question!r})",
        shell="dpublish rows RELEASE -n 1000 -o rows.csv\n"
        f"dpublish count RELEASE {shlex.quote(question)}",
    )


def _figures(release: DPCopulaHybridRelease) -> list[Figure]:
    names = release.schema.names[:_MAX_MARGINALS]
    panels = [
        Panel(name, release.marginal_axis(name).labels, release.marginal_counts(name))
        for name in names
    ]
    counts = Figure(f"Estimated counts of every column; {MERGED}.", small_bar_charts(panels))
    figures = tell_rest([counts], len(release.schema.names) - len(names))
    if release.numbers.ordered:
        drawing = correlation_map(release.numbers.ordered, release.numbers.matrix)
        figures.append(Figure("Correlations of the normal variables behind the numbers.", drawing))
    return figures


def _dependences(release: DPCopulaHybridRelease) -> Listing:
    network = release.network
    rows = []
    for node in network.nodes:
        axes = node.axes(network.schema)
        parents = ", ".join(f"{axis.column} ({axis.size})" for axis in axes[1:])
        if node.column in network.given:
            parents, cells = "correlations with other numbers", "not counted"
        else:
            cells = f"{int(np.prod([axis.size for axis in axes])):,}"
        rows.append([f"{node.column} ({axes[0].size})", parents or "nothing", cells])
    return Listing(
        headers=["column (cells)", "depends on (cells)", "joint cells"],
        rows=rows,
        caption="The network, in the order in which columns are drawn; numbers by classes of rank.",
    )
