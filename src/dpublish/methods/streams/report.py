"""The section of a stream: counts, budget and change over time, and the last steps."""

import shlex
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from dpublish.core.answer import Answer
from dpublish.core.released import Release
from dpublish.errors import CorruptRelease
from dpublish.methods.streams.listing import StepRecord
from dpublish.methods.streams.released import StreamRelease, write_number
from dpublish.plots.charts import band_chart, bar_chart, course_chart, heat_map
from dpublish.privacy.epsilon import format_rounded
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import cells_in_words, counts_in_words

_MAX_BARS = 200
_MAX_SHADES = 40_000
_MAX_SHOWN = 1000
_MAX_COUNTED = 120  # steps whose counts are read for one page
_MAX_LISTED = 50


def section(release: Release, with_charts: bool) -> Section:
    """Show a stream."""
    if not isinstance(release, StreamRelease):
        return Section()
    if not release.records:
        return Section(python="release.steps().to_pandas()")
    time = release.times[-1]
    return Section(
        figures=[*_counts(release), *_course(release), *_latest(release)] if with_charts else (),
        listings=[_steps(release)],
        python=f"release.steps().to_pandas()\nrelease.at({time!r})\nrelease.count(time={time!r})",
        shell="dpublish count RELEASE " + shlex.quote(""),
    )


def _counts(release: StreamRelease) -> list[Figure]:
    """Draw the count of all records over time, at some steps of a long stream."""
    shown = _evenly(release.records)
    found: list[tuple[StepRecord, Answer]] = []
    for record in shown:
        with suppress(CorruptRelease):  # a step whose file is gone is left out
            found.append((record, release.count(time=record.time)))
    if not found or not release.has_published:
        return []
    some = "" if len(found) == len(release.records) else f", {len(found):,} of its steps"
    caption = (
        f"Estimated count of all bins over time{some}. Dots are steps that published a fresh "
        "histogram; the others repeat an earlier estimate."
    )
    intervals = [
        None if answer.low is None or answer.high is None else (answer.low, answer.high)
        for _, answer in found
    ]
    if any(intervals):
        caption += (
            " The band is the 95 % confidence interval of each fresh count; how far the count has "
            "moved since is not known at a step that repeats it."
        )
    counts = [max(answer.value, 0.0) for _, answer in found]
    times = [record.time for record, _ in found]
    drawing = band_chart(
        counts,
        intervals,
        marked=[record.action == "published" for record, _ in found],
        ends=(times[0], times[-1]),
    )
    return [Figure(caption, drawing, f"{caption} {counts_in_words(times, counts)}")]


def _evenly(records: Sequence[StepRecord]) -> list[StepRecord]:
    """Take as many steps as are drawn, evenly, the first and the last among them."""
    if len(records) <= _MAX_COUNTED:
        return list(records)
    positions = np.linspace(0, len(records) - 1, _MAX_COUNTED).round().astype(np.int64)
    return [records[position] for position in positions]


def _course(release: StreamRelease) -> list[Figure]:
    shown = release.records[-_MAX_SHOWN:]
    marked = [record.action == "published" for record in shown]
    ends = (shown[0].time, shown[-1].time)
    note = "" if len(shown) == len(release.records) else f" (the last {len(shown):,} steps)"
    whole = release.receipt.epsilon
    scope = (
        "spent so far"
        if release.window is None
        else f"used within the {release.window:,} steps that end at each step"
    )
    spent = [float(record.spent) for record in shown]
    caption = (
        f"Budget {scope}{note}; the dashed line is all there is, {format_rounded(whole)}. "
        "Columns of the stronger color are steps that published a fresh histogram."
    )
    most = max(shown, key=lambda record: record.spent)
    said = (
        f"{sum(marked):,} of {len(shown):,} steps published. At the last, {ends[1]}, "
        f"{format_rounded(shown[-1].spent)} of {format_rounded(whole)}; "
        f"at most {format_rounded(most.spent)}, at {most.time}."
    )
    budget = Figure(
        caption,
        course_chart(spent, marked=marked, ends=ends, limit=float(whole)),
        f"Budget {scope}{note}. {said}",
    )
    caption = f"Change seen at each step{note}: how far the estimates of all bins moved, added up."
    moved = counts_in_words([record.time for record in shown], [record.change for record in shown])
    change = Figure(
        f"{caption} Noise is part of it.",
        course_chart([record.change for record in shown], marked=marked, ends=ends),
        f"{caption} {moved}",
    )
    return [budget, change]


def _latest(release: StreamRelease) -> list[Figure]:
    estimates = release.at()
    time = release.times[-1]
    figures = []
    for number, axis in enumerate(release.axes):
        if axis.size > _MAX_BARS:
            continue
        counts = _marginal(estimates, number)
        drawing = bar_chart(
            axis.labels, counts, float("nan"), title=axis.column, ordered=axis.is_ordered
        )
        caption = f"Estimates by {axis.column} at {time}."
        figures.append(
            Figure(caption, drawing, f"{caption} {counts_in_words(axis.labels, counts)}")
        )
    if len(release.axes) == 2 and release.size <= _MAX_SHADES:
        first, second = release.axes
        counts = np.rint(estimates).astype(np.int64)
        drawing = heat_map(
            first.labels,
            second.labels,
            counts,
            row_title=first.column,
            column_title=second.column,
        )
        caption = f"Estimates by {first.column} and {second.column} at {time}."
        alt = f"{caption} {cells_in_words(first.labels, second.labels, counts)}"
        figures.append(Figure(caption, drawing, alt))
    return figures


def _marginal(estimates: NDArray[np.float64], kept: int) -> NDArray[np.int64]:
    others = tuple(axis for axis in range(estimates.ndim) if axis != kept)
    return np.asarray(np.rint(estimates.sum(axis=others)), dtype=np.int64)


def _steps(release: StreamRelease) -> Listing:
    shown = release.records[: -_MAX_LISTED - 1 : -1]
    return Listing(
        headers=["step", "time", "what was done", "epsilon", "noise of a bin", "change", "spent"],
        rows=[
            [
                str(record.number),
                record.time,
                record.action,
                format_rounded(record.epsilon),
                write_number(record.noise) if record.noise else "-",
                write_number(record.change, 4),
                format_rounded(record.spent),
            ]
            for record in shown
        ],
        caption=f"The last {len(shown):,} of {len(release.records):,} steps; steps.jsonl has all.",
    )


def counts_over_time(release: StreamRelease) -> Figure | None:
    """Draw the count of all records over time; None before the first publication."""
    return next(iter(_counts(release)), None)
