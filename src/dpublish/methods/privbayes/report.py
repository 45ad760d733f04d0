"""The network's section: what depends on what, and each column's noisy counts."""

from collections.abc import Sequence

import numpy as np

from dpublish.core.released import Release
from dpublish.methods.privbayes.network import Node
from dpublish.methods.privbayes.released import PrivBayesRelease
from dpublish.plots.charts import bar_chart
from dpublish.plots.networks import MOST_NODES, network
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import counts_in_words, network_in_words

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
        figures=[*network_figures(release.nodes), *_marginals(release)] if with_charts else (),
        listings=[_dependences(release)],
        python=python,
        shell="dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def network_figures(nodes: Sequence[Node]) -> list[Figure]:
    """Draw what depends on what, unless there is too much of it."""
    if not 1 < len(nodes) <= MOST_NODES:
        return []
    parents = {node.column: [name for name, _ in node.parents] for node in nodes}
    caption = "The network: arrows lead to a column from those on which its values depend."
    return [Figure(caption, network(parents), f"{caption} {network_in_words(parents)}")]


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
        alt = f"{caption} {counts_in_words(marginal.labels, marginal.counts)}"
        figures.append(Figure(caption, drawing, alt))
    return figures
