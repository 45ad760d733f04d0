"""The section of counts by class: each predictor's marginal by class, and the largest cells."""

import numpy as np
from numpy.typing import NDArray

from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.methods.histogram.released_labeled import LabeledHistogramRelease
from dpublish.plots.charts import bar_chart, grouped_bar_chart
from dpublish.report.section import Figure, Listing, Section

_MAX_MARGINALS = 12
_MAX_BARS = 60
_MAX_CLASSES = 6
_MAX_LISTED = 20


def section(release: Release, with_charts: bool) -> Section:
    """Show a labeled histogram."""
    if not isinstance(release, LabeledHistogramRelease):
        return Section()
    return Section(
        figures=[_class_chart(release), *_marginals(release)] if with_charts else (),
        listings=[_classes(release), _largest(release)],
        python="release.predict(rows)  # rows: any Arrow-compatible object, such as a pandas frame"
        "\nrelease.rows(1000).to_pandas()  # synthetic rows to train on",
        shell="dpublish predict RELEASE rows.csv -o predicted.csv\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _class_chart(release: LabeledHistogramRelease) -> Figure:
    marginal = release.marginal(release.classes.column)
    shown = slice(_MAX_BARS)
    drawing = bar_chart(
        marginal.labels[shown],
        marginal.counts[shown],
        marginal.half_width,
        title=release.classes.column,
        ordered=False,
    )
    bars = (
        "; confidence intervals hold 95 % of the noise" if np.isfinite(marginal.half_width) else ""
    )
    return Figure(f"Noisy counts by class{bars}.", drawing)


def _marginals(release: LabeledHistogramRelease) -> list[Figure]:
    if release.classes.size > _MAX_CLASSES:
        return []
    figures = []
    for which, axis in enumerate(release.predictors[:_MAX_MARGINALS]):
        if axis.size > _MAX_BARS:
            continue
        drawing = grouped_bar_chart(
            axis.labels,
            release.classes.labels,
            _marginal_by_class(release, which, axis),
            title=axis.column,
        )
        caption = f"Noisy counts by {axis.column}, split by {release.classes.column}."
        figures.append(Figure(caption, drawing))
    return figures


def _marginal_by_class(
    release: LabeledHistogramRelease, which: int, axis: Axis
) -> NDArray[np.int64]:
    """Add up the counts along all axes but one and that of the classes."""
    sums = np.zeros((axis.size, release.classes.size), dtype=np.int64)
    indices = release.indices()
    np.add.at(sums, (indices[which], indices[-1]), release.counts)
    return sums


def _classes(release: LabeledHistogramRelease) -> Listing:
    marginal = release.marginal(release.classes.column)
    rows = [
        [label, f"{count:,}", "predicted where nothing else is known" if most_frequent else ""]
        for label, count, most_frequent in zip(
            marginal.labels,
            marginal.counts.tolist(),
            np.arange(release.classes.size) == release.most_frequent,
            strict=True,
        )
    ]
    return Listing(
        headers=[release.classes.column, "noisy count", ""],
        rows=rows[:_MAX_BARS],
        caption="The classes.",
    )


def _largest(release: LabeledHistogramRelease) -> Listing:
    """List the groups of records, by predictors, with the most noisy counts."""
    places, groups = np.unique(release.cells // release.classes.size, return_inverse=True)
    sizes = np.zeros(places.size, dtype=np.int64)
    np.add.at(sizes, groups, release.counts)
    order = np.argsort(-sizes, kind="stable")[:_MAX_LISTED]
    shape = release.shape[:-1]
    indices = np.unravel_index(places[order], shape) if shape else ()
    predicted = release.winners_of(places[order])
    rows = [
        [
            *(
                axis.labels[index[k]]
                for axis, index in zip(release.predictors, indices, strict=True)
            ),
            f"{sizes[group]:,}",
            release.classes.labels[predicted[k]],
        ]
        for k, group in enumerate(order)
    ]
    headers = [axis.column for axis in release.predictors]
    return Listing(
        headers=[*headers, "noisy count", f"highest count: {release.classes.column}"],
        rows=rows,
        caption=f"The {len(rows)} largest of {places.size:,} published groups of records, and the "
        "class with the highest noisy count in each.",
    )
