"""The ranking's section: the values in order, with their counts where they were bought."""

import numpy as np

from dpublish.release.error_bars import half_width
from dpublish.release.release import Release
from dpublish.release.top_values import TopValues
from dpublish.report.charts import bar_chart, can_draw
from dpublish.report.section import Figure, Listing, Section

_MAX_BARS = 60


def section(release: Release) -> Section:
    """Show a ranking."""
    if not isinstance(release, TopValues):
        return Section()
    headers, rows = ["rank", release.axis.column], []
    for rank, value in enumerate(release.values, start=1):
        row = [str(rank), value]
        if release.counts is not None:
            row.append(f"{release.counts[rank - 1]:,}")
        rows.append(row)
    if release.counts is not None:
        headers.append("noisy count")
    example = f'{release.axis.column} = "{release.values[0]}"' if release.values else ""
    asks = bool(example) and release.counts is not None
    return Section(
        figures=_figures(release),
        listings=[Listing(headers, rows, "The chosen values, most frequent first.")],
        python="ranking.values" + (f"\nranking.count({example!r})" if asks else ""),
        shell=f"dpublish count RELEASE {example!r}" if asks else "",
    )


def _figures(release: TopValues) -> list[Figure]:
    if release.counts is None or release.noise_rate is None or not can_draw():
        return []
    drawing = bar_chart(
        release.values[:_MAX_BARS],
        release.counts[:_MAX_BARS],
        half_width(release.noise_rate, np.ones(1), 0.95),
        title=f"most frequent {release.axis.column}",
        ordered=False,
    )
    return [Figure("Noisy counts; error bars hold 95 % of the noise.", drawing)]
