"""The owner's page about a release: true and synthetic rows side by side.  NOT PRIVATE."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.evaluation.finding import Finding
from dpublish.evaluation.synthetic_table import Comparison
from dpublish.experiments.page import Listing, Page, Section
from dpublish.plots.table_plots import (
    MarginalPlot,
    draw_associations,
    draw_errors,
    draw_marginals,
)
from dpublish.privacy.epsilon import format_epsilon

_MOST_POINTS = 60  # a marginal with more values is drawn in groups of neighbors
_NO_PLOT = 'There are no plots: they take Matplotlib (pip install "dpublish[plots]").'


def evaluation_page(
    release: Release, findings: Sequence[Finding], comparison: Comparison | None
) -> Page:
    """Tell all that was measured; with plots, if the release gives rows."""
    figures = {} if comparison is None else _figures(comparison)
    return Page(
        title=f"How good is this release? ({release.receipt.method})",
        lead="Measured on true rows, for the owner of the table.",
        sections=[
            _explanation(release, figures),
            *(_section(finding, figures.get(finding.name)) for finding in findings),
        ],
    )


def _explanation(release: Release, figures: dict[str, str | None]) -> Section:
    receipt = release.receipt
    said = [
        f"The release was made by {receipt.method} with ε = {format_epsilon(receipt.epsilon)}. "
        "Below it is compared with true rows: nobody but their owner may see this page, for "
        "the figures tell about the rows, and no privacy was paid for them.",
        "The release itself may be published, and tells by itself which errors to expect.",
    ]
    no_plots = bool(figures) and not any(figures.values())
    return Section("What this page shows", [*said, _NO_PLOT] if no_plots else said)


_CAPTIONS = {
    "marginals": "Part of the rows with each value: gray the true rows, orange the synthetic ones. "
    "Columns with many values are drawn in groups.",
    "association": "Each square is a pair of columns: rank correlation from -1 (red) to 1 (blue) "
    "where both have an order, otherwise Cramer's V from 0 to 1.",
    "queries": "Each point is a range count. Left of the dotted line the error is relative to "
    "the sanity bound.",
}


def _section(finding: Finding, figure: str | None) -> Section:
    words = finding.title.partition(":")[0]
    text_columns = 2 if finding.name == "association" else 1
    return Section(
        words,
        [finding.title, *(f"{note[0].upper()}{note[1:]}." for note in finding.notes)],
        figure=figure,
        figure_caption=_CAPTIONS.get(finding.name, ""),
        listings=[Listing(finding.headers, finding.rows, "", text_columns)],
    )


def _figures(comparison: Comparison) -> dict[str, str | None]:
    panels = [
        (f"{one.depth} column{'s' if one.depth > 1 else ''}", one.truth, one.relative)
        for one in comparison.answered
    ]
    figures = {
        "marginals": draw_marginals([_marginal(comparison, axis) for axis in comparison.axes]),
        "queries": draw_errors(panels, comparison.answered[0].sanity),
    }
    if len(comparison.axes) > 1:
        names = comparison.columns
        matrices = [np.eye(len(names)), np.eye(len(names))]
        for pair in comparison.associations:
            place = names.index(pair.first), names.index(pair.second)
            for matrix, value in zip(matrices, (pair.true, pair.synthetic), strict=True):
                matrix[place] = matrix[place[::-1]] = value
        figures["association"] = draw_associations(names, *matrices)
    return figures


def _marginal(comparison: Comparison, axis: Axis) -> MarginalPlot:
    true, synthetic = comparison.counts(axis)
    labels = axis.leaf_labels
    if len(labels) <= _MOST_POINTS:
        return MarginalPlot(axis.column, labels, _parts(true), _parts(synthetic))
    # Groups of equally many values: others would show spikes that are in no rows.
    starts = np.arange(0, len(labels), -(-len(labels) // _MOST_POINTS))
    grouped = [np.add.reduceat(counts, starts) for counts in (true, synthetic)]
    return MarginalPlot(axis.column, [labels[start] for start in starts], *map(_parts, grouped))


def _parts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(counts / max(counts.sum(), 1))
