"""The section of published marginals: a chart for each column."""

import shlex

import numpy as np

from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.query.language import quote
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.released import MarginalsRelease
from dpublish.plots.charts import bar_chart
from dpublish.report.axis_marginals import tell_rest
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import counts_in_words
from dpublish.types import FloatArray

_MAX_CHARTS = 40
_MAX_BARS = 100
_MAX_NAMES = 40


def section(release: Release, with_charts: bool) -> Section:
    """Show marginals."""
    if not isinstance(release, MarginalsRelease):
        return Section()
    pairs = list(zip(release.axes, release.marginals, strict=True))
    axis = release.axes[0]
    query = f"{quote(axis.column)} = {quote(axis.labels[axis.size // 2])}"
    return Section(
        figures=_figures(pairs) if with_charts else (),
        listings=[_methods(release)],
        python=f"release.count({query!r})\nrelease.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(query)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _figures(pairs: list[tuple[Axis, NoisyMarginal]]) -> list[Figure]:
    drawn = [draw_marginal(*pair) for pair in pairs[:_MAX_CHARTS]]
    return tell_rest(drawn, len(pairs) - len(drawn))


def draw_marginal(axis: Axis, marginal: NoisyMarginal) -> Figure:
    """Draw one marginal: runs of values where there are many, the most frequent of many names."""
    ordered = axis.kind != "category"
    if ordered and axis.size > _MAX_BARS:
        run = -(-axis.size // _MAX_BARS)
        starts = np.arange(0, axis.size, run)
        counts = np.add.reduceat(marginal.bins, starts)
        labels = [f"{axis.labels[start]} …" for start in starts]
        what = f"Estimated counts by {axis.column}, in runs of {run} values"
        weights = _run(axis.size, run)
    else:
        kept = np.arange(axis.size)
        if not ordered and axis.size > _MAX_NAMES:
            kept = np.sort(np.argsort(-marginal.bins, kind="stable")[:_MAX_NAMES])
        counts = marginal.bins[kept]
        labels = [axis.labels[code] for code in kept]
        part = "" if kept.size == axis.size else f", the {kept.size} most frequent of {axis.size:,}"
        what = f"Estimated counts by {axis.column}{part}"
        weights = _run(axis.size, 1)
    width = marginal.half_width(weights, 0.95)
    interval = "" if width is None else ", with 95 % confidence intervals"
    shown = np.rint(counts).astype(np.int64)
    drawing = bar_chart(
        labels,
        shown,
        float("nan") if width is None else width,
        title=axis.column,
        ordered=ordered,
    )
    return Figure(
        f"{what}{interval}.", drawing, f"{what}{interval}. {counts_in_words(labels, shown)}"
    )


def _run(size: int, length: int) -> FloatArray:
    """Weigh the first run of values: noise in the others is alike."""
    return (np.arange(size) < length).astype(np.float64)


def _methods(release: MarginalsRelease) -> Listing:
    rows = [
        [axis.column, f"{axis.size:,}", marginal.method, f"{marginal.total:,.0f}"]
        for axis, marginal in zip(release.axes, release.marginals, strict=True)
    ]
    return Listing(
        headers=["column", "values", "counted by", "records"],
        rows=rows,
        caption="How each column was counted, and how many records that gives.",
    )
