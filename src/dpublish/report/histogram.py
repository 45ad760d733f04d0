"""The histogram's section: each margin with error bars, and pairs of columns as shades."""

from itertools import combinations

import numpy as np

from dpublish.release.histogram import Histogram
from dpublish.release.release import Release
from dpublish.report.charts import bar_chart, can_draw, heat_map
from dpublish.report.section import Figure, Listing, Section

_MAX_MARGINS = 8
_MAX_PAIRS = 3
_MAX_BARS = 200
_MAX_SHADES = 40_000
_MAX_LISTED = 20


def section(release: Release) -> Section:
    """Show a histogram."""
    if not isinstance(release, Histogram):
        return Section()
    first = release.axes[0]
    # The widest column of the example query; any label will do.
    label = first.labels[len(first.labels) // 2]
    question = f'{first.column} = "{label}"' if first.edges is None else _range_example(release)
    return Section(
        figures=[*_margins(release), *_pairs(release)] if can_draw() else (),
        listings=[_largest(release)],
        python=f"histogram.count({question!r})\nhistogram.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {question!r}\ndpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _range_example(release: Histogram) -> str:
    axis = release.axes[0]
    edges = axis.edges or (0.0, 1.0)
    low, high = edges[len(edges) // 3], edges[min(len(edges) // 3 + 1, len(edges) - 1)]
    return f"{axis.column} in {low:g}..{high:g}"


def _margins(release: Histogram) -> list[Figure]:
    figures = []
    for axis in release.axes[:_MAX_MARGINS]:
        if axis.size > _MAX_BARS:
            continue
        margin = release.margin(axis.column)
        bars = "; error bars hold 95 % of the noise" if np.isfinite(margin.half_width) else ""
        drawing = bar_chart(
            margin.labels,
            margin.counts,
            margin.half_width,
            title=axis.column,
            ordered=axis.kind in ("numeric", "integer", "ordinal"),
        )
        figures.append(Figure(f"Noisy counts by {axis.column}{bars}.", drawing))
    return figures


def _pairs(release: Histogram) -> list[Figure]:
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


def _largest(release: Histogram) -> Listing:
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
