"""The model's section: how good it is, which tables were counted, and each column's counts."""

import numpy as np

from dpublish.core.released import Release
from dpublish.methods.synth.released import SynthRelease
from dpublish.plots.charts import bar_chart
from dpublish.report.section import Figure, Listing, Section

_MAX_MARGINALS = 24
_MAX_BARS = 200


def section(release: Release, with_charts: bool) -> Section:
    """Show a model of a table."""
    if not isinstance(release, SynthRelease):
        return Section()
    listings = [listing for listing in (_quality(release), _tables(release)) if listing.rows]
    return Section(
        figures=_marginals(release) if with_charts else (),
        listings=listings,
        python='release.rows(1000).to_pandas()\nprint(release.count(""))',
        shell="dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _quality(release: SynthRelease) -> Listing:
    rows = []
    for what, distance in (
        ("mean of all pairs of columns", release.mean_distance()),
        ("the pair that is furthest off", release.worst_distance()),
    ):
        if distance is not None:
            interval = f"{distance.low:.3f} to {distance.high:.3f}"
            rows.append([what, f"{distance.value:.3f}", interval])
    return Listing(
        headers=["distance from the truth", "measured", "95 % confidence interval"],
        rows=rows,
        caption="Total variation distance between true and synthetic frequencies of pairs of "
        "columns: 0 is equal, 1 has nothing in common. It was measured with noise, and a share of "
        "epsilon paid for it.",
    )


def _tables(release: SynthRelease) -> Listing:
    rows = []
    for table in release.counted:
        names = [
            f"{release.names[i]} ({release.classes[i].sizes[level]})"
            for i, level in zip(table.columns, table.levels, strict=True)
        ]
        noise = np.sqrt(2) / float(table.rate)
        rows.append([" x ".join(names), f"{table.counts.size:,}", f"{noise:,.0f}"])
    return Listing(
        headers=["columns (classes)", "cells", "standard deviation of the noise"],
        rows=rows,
        caption="The tables that were counted, in the order in which they were chosen.",
    )


def _marginals(release: SynthRelease) -> list[Figure]:
    figures = []
    for name in release.names[:_MAX_MARGINALS]:
        axis = release.schema[name].axis()
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
        figures.append(Figure(f"Noisy counts by {name}; 95 % confidence intervals.", drawing))
    return figures
