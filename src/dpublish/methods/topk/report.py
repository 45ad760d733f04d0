"""The ranking's section: the values in order, with their counts if there are any."""

import shlex

import numpy as np

from dpublish.accuracy.intervals import half_width
from dpublish.core.released import Release
from dpublish.data.query.language import quote
from dpublish.methods.topk.released import TopKRelease
from dpublish.plots.charts import bar_chart
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import counts_in_words

_MAX_BARS = 60


def section(release: Release, with_charts: bool) -> Section:
    """Show a ranking."""
    if not isinstance(release, TopKRelease):
        return Section()
    table = release.tables()["values"].drop_columns(["cell_number"])
    headers = [name.replace("_", " ") for name in table.column_names]
    rows = [[_words(value) for value in row.values()] for row in table.to_pylist()]
    caption = "The chosen values" + (", most frequent first." if release.is_ranked else ".")
    python, shell = "ranking.values", ""
    if release.values and release.counts is not None:
        query = f"{quote(release.axis.column)} = {quote(release.values[0])}"
        python += f"\nranking.count({query!r})"
        shell = f"dpublish count RELEASE {shlex.quote(query)}"
    return Section(
        figures=_figures(release) if with_charts else [],
        listings=[Listing(headers, rows, caption)],
        python=python,
        shell=shell,
    )


def _words(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _figures(release: TopKRelease) -> list[Figure]:
    if release.counts is None or release.noise_rate is None:
        return []
    values, counts = release.values[:_MAX_BARS], release.counts[:_MAX_BARS]
    drawing = bar_chart(
        values,
        counts,
        half_width(release.noise_rate, np.ones(1), 0.95),
        title=f"most frequent {release.axis.column}",
        ordered=False,
    )
    caption = "Noisy counts with 95 % confidence intervals."
    alt = f"Most frequent {release.axis.column}. {caption} {counts_in_words(values, counts)}"
    return [Figure(caption, drawing, alt)]
