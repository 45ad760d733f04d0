"""The histogram's section: marginals with confidence intervals, and pairs of columns as shades."""

import shlex
from itertools import combinations

import numpy as np

from dpublish.core.query.language import quote
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.plots.charts import bar_chart, heat_map
from dpublish.report.section import Figure, Listing, Section

_MAX_MARGINALS = 8
_MAX_PAIRS = 3
_MAX_BARS = 200
_MAX_SHADES = 40_000
_MAX_LISTED = 20


def section(release: Release, with_charts: bool) -> Section:
    """Show a histogram."""
    if not isinstance(release, HistogramRelease):
        return Section()
    question = _example(release.axes[0])
    return Section(
        figures=[*_marginals(release), *_pairs(release)] if with_charts else (),
        listings=[_largest(release)],
        python=f"histogram.count({question!r})\nhistogram.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(question)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _example(axis: Axis) -> str:
    """Write a question about one cell of the middle."""
    name = quote(axis.column)
    if axis.edges is None:
        return f"{name} = {quote(axis.labels[len(axis.labels) // 2])}"
    start = (len(axis.edges) - 1) // 2
    low, high = axis.edges[start], axis.edges[start + 1]
    if axis.holds_integers:
        return f"{name} in {low:.0f}..{high - 1:.0f}"
    signs = (">=", "<") if axis.closed == "left" else (">", "<=")
    return f"{name} {signs[0]} {low!r} and {name} {signs[1]} {high!r}"


def _marginals(release: HistogramRelease) -> list[Figure]:
    figures = []
    for axis in release.axes[:_MAX_MARGINALS]:
        if axis.size > _MAX_BARS:
            continue
        marginal = release.marginal(axis.column)
        bars = (
            "; confidence intervals hold 95 % of the noise"
            if np.isfinite(marginal.half_width)
            else ""
        )
        drawing = bar_chart(
            marginal.labels,
            marginal.counts,
            marginal.half_width,
            title=axis.column,
            ordered=axis.kind in ("numeric", "integer", "ordinal"),
        )
        figures.append(Figure(f"Noisy counts by {axis.column}{bars}.", drawing))
    return figures


def _pairs(release: HistogramRelease) -> list[Figure]:
    figures: list[Figure] = []
    for (i, first), (j, second) in combinations(enumerate(release.axes), 2):
        if first.size * second.size > _MAX_SHADES or len(figures) == _MAX_PAIRS:
            continue
        counts = np.zeros((first.size, second.size), dtype=np.int64)
        indices = release.indices()
        np.add.at(counts, (indices[i], indices[j]), release.counts)
        drawing = heat_map(
            first.labels,
            second.labels,
            counts,
            row_title=first.column,
            column_title=second.column,
        )
        figures.append(Figure(f"Noisy counts by {first.column} and {second.column}.", drawing))
    return figures


def _largest(release: HistogramRelease) -> Listing:
    order = np.argsort(-release.counts, kind="stable")[:_MAX_LISTED]
    indices = release.indices()
    rows = [
        [
            *(axis.labels[index[k]] for axis, index in zip(release.axes, indices, strict=True)),
            f"{release.counts[k]:,}",
        ]
        for k in order
    ]
    return Listing(
        headers=[*(axis.column for axis in release.axes), "noisy count"],
        rows=rows,
        caption=f"The {len(rows)} largest of {release.cells.size:,} published cells.",
    )
