"""Bar charts of the marginals of a release, one for each column, long columns in groups."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.plots.charts import bar_chart
from dpublish.report.section import Figure
from dpublish.report.words import counts_in_words

_MOST_CHARTS = 8
_MOST_BARS = 100


def marginal_figures(
    axes: Sequence[Axis], marginals: Sequence[NDArray[Any]], what: str
) -> list[Figure]:
    """Draw the marginal of each column; leaves of a long column are added up in groups."""
    figures = []
    for axis, counts in list(zip(axes, marginals, strict=True))[:_MOST_CHARTS]:
        step = -(-axis.size // _MOST_BARS)
        starts = np.arange(0, axis.size, step)
        labels = [axis.labels[start] for start in starts]
        groups = f", {step} values to a bar" if step > 1 else ""
        shown = np.rint(np.add.reduceat(counts, starts)).astype(np.int64)
        drawing = bar_chart(
            labels,
            shown,
            float("nan"),
            title=axis.column,
            ordered=axis.kind != "category",
        )
        alt = f"{what} by {axis.column}{groups}. {counts_in_words(labels, shown)}"
        figures.append(Figure(f"{what} by {axis.column}{groups}.", drawing, alt))
    return tell_rest(figures, len(axes) - len(figures))


def tell_rest(figures: list[Figure], left_out: int) -> list[Figure]:
    """Add to the last caption how many columns are not drawn."""
    if not figures or not left_out:
        return figures
    *others, last = figures
    rest = f"{left_out} more column{'s are' if left_out > 1 else ' is'} not shown."
    return [*others, replace(last, caption=f"{last.caption} {rest}")]
