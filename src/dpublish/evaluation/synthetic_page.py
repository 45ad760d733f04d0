"""The owner's page about a release: true and synthetic rows side by side.  NOT PRIVATE."""

import numpy as np

from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.report import STAMP, EvaluationReport
from dpublish.evaluation.score import GOOD, ROUGH
from dpublish.evaluation.synthetic_table import Comparison
from dpublish.plots.comparisons import MarginalPlot, draw_associations, draw_errors, draw_marginals
from dpublish.plots.scores import draw_scores
from dpublish.privacy.epsilon import format_epsilon
from dpublish.report.html import NO_PLOT, Page, made_by
from dpublish.report.section import Figure, Listing, Section
from dpublish.types import FloatArray, IntArray

_SCALE = (
    "Each part from 0 (no better than knowing nothing) to 100 (as good as a fresh sample of as "
    f"many rows, or as a method without privacy). From {GOOD:.0f} on a part is good enough, from "
    f"{ROUGH:.0f} on a rough guide. The score is the mean of the parts."
)
_MOST_POINTS = 60  # a marginal with more values is drawn in groups of neighbors


def evaluation_page(
    release: Release, report: EvaluationReport, comparison: Comparison | None
) -> Page:
    """Build the page of the verdict and all behind it; with plots, if the release gives rows."""
    drawings = {} if comparison is None else _draw(comparison)
    return Page(
        title=f"How good is this release? ({release.receipt.method})",
        lead=f"Measured on true rows, for the owner of the table. {made_by()}",
        stamps=[STAMP],
        sections=[
            _verdict(report),
            _explanation(release, drawings),
            *(_section(finding, drawings.get(finding.name)) for finding in report),
        ],
    )


def _verdict(report: EvaluationReport) -> Section:
    """Build the head of the page: the score, a bar for each part, and what the parts mean."""
    return Section(
        "Verdict",
        [report.verdict],
        notes=[f"{part.name}: {part.sentence}" for part in report.parts],
        figures=[_scores(report)] if report.parts else (),
    )


def _scores(report: EvaluationReport) -> Figure:
    said = ", ".join(f"{name}: {score:.0f} ({grade})" for name, score, grade in report.bars)
    return Figure(_SCALE, draw_scores(report.bars, (ROUGH, GOOD)), f"Scores from 0 to 100. {said}.")


def _explanation(release: Release, drawings: dict[str, str | None]) -> Section:
    receipt = release.receipt
    said = [
        f"The release was made by {receipt.method} with ε = {format_epsilon(receipt.epsilon)}. "
        "This page compares it with true rows. Only their owner may see the page: its figures "
        "depend on the rows, and no privacy budget was spent on them.",
        "The release itself may be published, and states which errors to expect.",
    ]
    no_plots = bool(drawings) and not any(drawings.values())
    return Section("What this page shows", [*said, NO_PLOT] if no_plots else said, is_folded=True)


_CAPTIONS = {
    "marginals": "Share of the rows with each value: gray the true rows, orange the synthetic "
    "ones. Columns with many values are drawn in groups.",
    "association": "Each square is a pair of columns: rank correlation from -1 (blue) over 0 (no "
    "color) to 1 (red) where both have an order, otherwise Cramer's V from 0 to 1.",
    "queries": "Each point is a range count. Left of the dotted line the error is relative to "
    "the sanity bound.",
}


def _section(finding: Finding, drawn: str | None) -> Section:
    caption = _CAPTIONS.get(finding.name, "")
    heading, _, rest = finding.title.partition(":")
    said = [finding.title] if rest else []
    return Section(
        heading,
        [*said, *(f"{note[0].upper()}{note[1:]}." for note in finding.notes)],
        figures=() if drawn is None else [Figure(caption, drawn)],
        listings=[Listing(finding.headers, finding.rows)],
        is_folded=True,
    )


def _draw(comparison: Comparison) -> dict[str, str | None]:
    panels = [
        (f"{one.depth} column{'s' if one.depth > 1 else ''}", one.truth, one.relative)
        for one in comparison.answered
    ]
    drawings = {
        "marginals": draw_marginals([_marginal(comparison, axis) for axis in comparison.axes]),
        "queries": draw_errors(panels, comparison.answered[0].sanity),
    }
    if len(comparison.axes) > 1:
        names = comparison.columns
        matrices = [np.eye(len(names)), np.eye(len(names))]
        for pair in comparison.associations:
            cell = names.index(pair.first), names.index(pair.second)
            for matrix, value in zip(matrices, (pair.true, pair.synthetic), strict=True):
                matrix[cell] = matrix[cell[::-1]] = value
        drawings["association"] = draw_associations(names, *matrices)
    return drawings


def _marginal(comparison: Comparison, axis: Axis) -> MarginalPlot:
    true, synthetic = comparison.counts(axis)
    labels = axis.leaf_labels
    if len(labels) <= _MOST_POINTS:
        return MarginalPlot(axis.column, labels, _shares(true), _shares(synthetic))
    # Groups of equally many values: others would show spikes that are in no rows.
    starts = np.arange(0, len(labels), -(-len(labels) // _MOST_POINTS))
    grouped = [np.add.reduceat(counts, starts) for counts in (true, synthetic)]
    return MarginalPlot(axis.column, [labels[start] for start in starts], *map(_shares, grouped))


def _shares(counts: IntArray) -> FloatArray:
    return np.asarray(counts / max(counts.sum(), 1))
