"""The section of a sample of cells: its marginals, and the largest cells."""

import numpy as np

from dpublish.core.released import Release
from dpublish.methods.filter_priority.released import FilterPriorityRelease
from dpublish.report.axis_marginals import marginal_figures
from dpublish.report.section import Listing, Section

_MOST_LISTED = 20


def section(release: Release, with_charts: bool) -> Section:
    """Show a sample of cells."""
    if not isinstance(release, FilterPriorityRelease):
        return Section()
    marginals = [release.marginal(axis.column).counts for axis in release.axes]
    return Section(
        figures=marginal_figures(release.axes, marginals, "Weights of sampled cells")
        if with_charts
        else (),
        listings=[_largest(release)],
        python="release.count()\nrelease.rows(1000).to_pandas()",
        shell="dpublish count RELEASE ''\ndpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _largest(release: FilterPriorityRelease) -> Listing:
    order = np.argsort(-release.weights, kind="stable")[:_MOST_LISTED]
    rows = [
        [
            *(axis.labels[i[k]] for axis, i in zip(release.axes, release.indices, strict=True)),
            f"{release.counts[k]:,}",
            f"{release.weights[k]:,.1f}",
        ]
        for k in order
    ]
    return Listing(
        headers=[*(axis.column for axis in release.axes), "noisy count", "weight"],
        rows=rows,
        caption=f"The {len(rows)} largest of {release.cells.size:,} published cells.",
    )
