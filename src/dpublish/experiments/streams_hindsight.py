"""How much DSAT's default loses to the best of its rivals, which is known only afterward."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from dpublish.experiments.streams_competitors import (
    DEFAULTS,
    METHODS,
    OTHER_HISTOGRAMS,
    TRUE,
    Level,
)
from dpublish.experiments.trials import Cells
from dpublish.plots.style import plain_number

RIVALS = ("fixed-sampling", "bd", "ba", "dsat", "dsat-w")
"""Methods whose competitors are rivals of the default: the other controllers, too."""
GOAL_MEAN, GOAL_MOST = 1.1, 1.3
"""What the default should keep to, on average and on every stream."""


class Hindsight(NamedTuple):
    """The default on one stream at one budget, beside the best of its rivals."""

    dataset: str
    level: Level
    epsilon: float
    error: float
    rival: str
    least: float

    @property
    def ratio(self) -> float:
        """The error of the default, divided by that of the best rival."""
        return self.error / self.least


def is_rival(method: str, level: Level) -> bool:
    """Whether a competitor is a rival of the default: fixed sampling, BA, BD, a controller.

    >>> is_rival("fixed-20", "stream"), is_rival("per-snapshot", "stream")
    (True, False)
    """
    chosen = METHODS[method]
    is_private = method not in (*TRUE, *OTHER_HISTOGRAMS, DEFAULTS[level])
    return is_private and chosen.level == level and chosen.method in RIVALS


def look_back(cells: Cells) -> list[Hindsight]:
    """Compare the default with the best rival wherever both were run."""
    found: dict[tuple[str, Level, float], dict[str, float]] = {}
    for key, line in cells.items():
        for point, cell in line.items():
            group = found.setdefault((key.dataset, METHODS[key.method].level, point), {})
            group[key.method] = cell.mean
    rows = []
    for (dataset, level, point), means in found.items():
        rivals = {name: mean for name, mean in means.items() if is_rival(name, level)}
        if rivals and DEFAULTS[level] in means:
            best = min(rivals, key=lambda name: rivals[name])
            rows.append(
                Hindsight(dataset, level, point, means[DEFAULTS[level]], best, rivals[best])
            )
    return rows


def table_rows(rows: Iterable[Hindsight]) -> list[list[str]]:
    """Write the comparisons down, a row for each."""
    return [
        [
            row.dataset,
            row.level,
            plain_number(row.epsilon),
            _people(row.error),
            row.rival,
            _people(row.least),
            f"{row.ratio:.2f}",
        ]
        for row in rows
    ]


HEADERS = ("stream", "hidden in", "epsilon", "default", "best rival", "its error", "ratio")


def verdict(rows: Sequence[Hindsight]) -> str:
    """Write mean and most of the ratios, and on which streams the goal is missed."""
    if not rows:
        return ""
    worst = max(rows, key=lambda row: row.ratio)
    missed = [
        f"{row.dataset} ({row.level}, ε = {plain_number(row.epsilon)}: {row.ratio:.2f})"
        for row in rows
        if row.ratio > GOAL_MOST
    ]
    return (
        f"The error of DSAT's default is {fmean(row.ratio for row in rows):.2f} times that of "
        f"the best rival on average, and {worst.ratio:.2f} times at most ({worst.dataset}). "
        + (
            f"It is more than {GOAL_MOST:g} times on " + ", ".join(missed) + "."
            if missed
            else f"It is nowhere more than {GOAL_MOST:g} times."
        )
    )


def _people(error: float) -> str:
    return f"{error:,.0f}" if error >= 100 else f"{error:.1f}"
