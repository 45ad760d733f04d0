"""The network's section: what depends on what, and each column's noisy counts."""

import numpy as np

from dpublish.core.released import Release
from dpublish.methods.privbayes.released import PrivBayesRelease
from dpublish.plots.charts import bar_chart
from dpublish.report.section import Figure, Listing, Section

_MAX_MARGINALS = 24
_MAX_BARS = 200


def section(release: Release, with_charts: bool) -> Section:
    """Show a network."""
    if not isinstance(release, PrivBayesRelease):
        return Section()
    python = "release.rows(1000).to_pandas()"
    if release.target is not None:
        python += "\nrelease.predict(release.rows(10))"
    return Section(
        figures=_marginals(release) if with_charts else (),
        listings=[_dependences(release)],
        python=python,
        shell="dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _dependences(release: PrivBayesRelease) -> Listing:
    rows = []
    for node in release.nodes:
        axes = node.axes(release.schema)
        parents = ", ".join(f"{axis.column} ({axis.size})" for axis in axes[1:])
        cells = int(np.prod([axis.size for axis in axes]))
        rows.append([f"{node.column} ({axes[0].size})", parents or "nothing", f"{cells:,}"])
    return Listing(
        headers=["column (cells)", "depends on (cells)", "joint cells"],
        rows=rows,
        caption="The network, in the order in which columns are drawn.",
    )


def _marginals(release: PrivBayesRelease) -> list[Figure]:
    figures = []
    for name in release.schema.names[:_MAX_MARGINALS]:
        axis = release.axes[name]
        if axis.size > _MAX_BARS:
            continue
        marginal = release.marginal(name)
        drawing = bar_chart(
            marginal.labels,
            marginal.counts,
            marginal.half_width,
            title=name,
            ordered=axis.is_ordered,
        )
        caption = f"Noisy counts by {name}; 95 % confidence intervals."
        figures.append(Figure(caption, drawing))
    return figures
