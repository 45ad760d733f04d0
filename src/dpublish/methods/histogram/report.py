"""The sections of histograms: marginals with confidence intervals, pairs of columns, classes."""

import shlex
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.query.language import quote
from dpublish.methods.histogram.released import HistogramRelease, LabeledHistogramRelease
from dpublish.plots.charts import bar_chart, grouped_bar_chart, heat_map
from dpublish.report.predictions import accuracy_listing, describe_rules
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import cells_in_words, counts_in_words
from dpublish.types import IntArray

_MAX_MARGINALS = 8
_MAX_PAIRS = 3
_MAX_BARS = 200
_MAX_SHADES = 40_000
_MAX_LISTED = 20
_MAX_CLASSES = 6
_MAX_CLASS_MARGINALS = 12
_MAX_CLASS_BARS = 60


def section(release: Release, with_charts: bool) -> Section:
    """Show a histogram."""
    if not isinstance(release, HistogramRelease):
        return Section()
    query = _example(release.axes[0])
    return Section(
        figures=[*_marginals(release), *_pairs(release)] if with_charts else (),
        listings=[_largest(release)],
        python=f"histogram.count({query!r})\nhistogram.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(query)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _example(axis: Axis) -> str:
    """Write a query about a cell in the middle."""
    name = quote(axis.column)
    if axis.edges is None:
        return f"{name} = {quote(axis.labels[len(axis.labels) // 2])}"
    start = (len(axis.edges) - 1) // 2
    low, high = axis.edges[start], axis.edges[start + 1]
    if axis.holds_integers:
        return f"{name} in {quote(axis.write(low))}..{quote(axis.write(high - 1))}"
    signs = (">=", "<") if axis.closed == "left" else (">", "<=")
    return f"{name} {signs[0]} {low!r} and {name} {signs[1]} {high!r}"


def _marginals(release: HistogramRelease) -> list[Figure]:
    figures = []
    for axis in release.axes[:_MAX_MARGINALS]:
        if axis.size > _MAX_BARS:
            continue
        marginal = release.marginal(axis.column)
        intervals = _intervals(marginal.half_width)
        drawing = bar_chart(
            marginal.labels,
            marginal.counts,
            marginal.half_width,
            title=axis.column,
            ordered=axis.is_ordered,
        )
        caption = f"Noisy counts by {axis.column}{intervals}."
        alt = f"{caption} {counts_in_words(marginal.labels, marginal.counts)}"
        figures.append(Figure(caption, drawing, alt))
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
        caption = f"Noisy counts by {first.column} and {second.column}; stronger color: more."
        alt = f"{caption} {cells_in_words(first.labels, second.labels, counts)}"
        figures.append(Figure(caption, drawing, alt))
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


# --- With a class column ---------------------------------------------------------------------


def labeled_section(release: Release, with_charts: bool) -> Section:
    """Show a labeled histogram."""
    if not isinstance(release, LabeledHistogramRelease):
        return Section()
    groups = np.unique(release.cells // release.classes.size)
    return classifier_section(release, with_charts, release.winners_of(groups))


def classifier_section(
    release: LabeledHistogramRelease, with_charts: bool, predicted: IntArray
) -> Section:
    """Show a labeled histogram that predicts a class in each of its groups of records."""
    listings = [_classes(release), _rules(release, predicted)]
    if release.threshold is None:
        counts = release.counts.reshape(-1, release.classes.size)
        rates = [float(release.noise_rate)] * len(counts)
        accuracy = accuracy_listing(counts, predicted, rates, release.classes.labels)
        listings = [accuracy, *listings] if accuracy is not None else listings
    return Section(
        figures=[_class_chart(release), *_marginals_by_class(release)] if with_charts else (),
        listings=listings,
        python="release.predict(rows)  # rows: any Arrow-compatible object, such as a pandas frame"
        "\nrelease.rows(1000).to_pandas()  # synthetic rows to train on",
        shell="dpublish predict RELEASE rows.csv -o predicted.csv\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _class_chart(release: LabeledHistogramRelease) -> Figure:
    marginal = release.marginal(release.classes.column)
    shown = slice(_MAX_CLASS_BARS)
    drawing = bar_chart(
        marginal.labels[shown],
        marginal.counts[shown],
        marginal.half_width,
        title=release.classes.column,
        ordered=False,
    )
    caption = f"Noisy counts by class{_intervals(marginal.half_width)}."
    said = counts_in_words(marginal.labels[shown], marginal.counts[shown])
    return Figure(caption, drawing, f"{caption} {release.classes.column}: {said}")


def _intervals(half_width: float) -> str:
    return " with 95 % confidence intervals" if np.isfinite(half_width) else ""


def _marginals_by_class(release: LabeledHistogramRelease) -> list[Figure]:
    if release.classes.size > _MAX_CLASSES:
        return []
    figures = []
    for which, axis in enumerate(release.predictors[:_MAX_CLASS_MARGINALS]):
        if axis.size > _MAX_CLASS_BARS:
            continue
        classes, counts = release.classes.labels, _counts_by_class(release, which, axis)
        drawing = grouped_bar_chart(axis.labels, classes, counts, title=axis.column)
        caption = f"Noisy counts by {axis.column}, split by {release.classes.column}."
        alt = f"{caption} {cells_in_words(axis.labels, classes, counts)}"
        figures.append(Figure(caption, drawing, alt))
    return figures


def _counts_by_class(release: LabeledHistogramRelease, which: int, axis: Axis) -> NDArray[np.int64]:
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
        rows=rows[:_MAX_CLASS_BARS],
        caption="The classes.",
    )


def _rules(release: LabeledHistogramRelease, predicted: IntArray) -> Listing:
    """List the groups of records with the most noisy counts, and what is predicted there."""
    groups, which = np.unique(release.cells // release.classes.size, return_inverse=True)
    sizes = np.zeros((groups.size, release.classes.size), dtype=np.int64)
    np.add.at(sizes, (which, release.cells % release.classes.size), release.counts)
    order = np.argsort(-sizes.sum(axis=1), kind="stable")[:_MAX_LISTED]
    shape = release.shape[:-1]
    indices = np.unravel_index(groups[order], shape) if shape else ()
    rows = [
        [
            _condition(release, [int(index[k]) for index in indices]),
            release.classes.labels[predicted[group]],
            f"{sizes[group].sum():,}",
            f"{sizes[group, predicted[group]]:,}",
        ]
        for k, group in enumerate(order.tolist())
    ]
    target = release.classes.column
    return Listing(
        headers=["if", f"then {target} is", "noisy count", "of that class"],
        rows=rows,
        caption=f"{describe_rules(len(rows), groups.size)} Where no rule fits, {target} is "
        f"{release.classes.labels[release.most_frequent]}.",
    )


def _condition(release: LabeledHistogramRelease, cells: list[int]) -> str:
    """Write what the records of a group have in common."""
    said = [
        f"{axis.column} is {axis.labels[cell]}"
        for axis, cell in zip(release.predictors, cells, strict=True)
        if axis.size > 1
    ]
    return " and ".join(said) or "anything"
