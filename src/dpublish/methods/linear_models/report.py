"""The section of a linear model: its largest weights, all coefficients, and how to use it."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from dpublish.accuracy.rounding import format_number
from dpublish.core.released import Release
from dpublish.data.features import INTERCEPT
from dpublish.methods.linear_models.released import MODELS, LinearModelRelease
from dpublish.plots.style import GRID, INK, PALE, TEXT, WHISKER
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import each_in_words

_MAX_BARS, _MAX_CHARTS, _MAX_ROWS = 20, 6, 300
_WIDTH, _LABELS, _LINE = 720.0, 220.0, 17.0
_LONGEST = 34
_DEVIATIONS = 2.12  # hold 95 % of Laplace noise, and more of noise that is nearer to normal


class _Bar(NamedTuple):
    """A weight, and the half-width of its 95 % confidence interval (0 if unknown)."""

    label: str
    weight: float
    half_width: float


def section(release: Release, with_charts: bool) -> Section:
    """Show a linear model."""
    if not isinstance(release, LinearModelRelease):
        return Section()
    python = "release.predict(rows)  # rows: any Arrow-compatible object, such as a pandas frame"
    if release.model == "logistic":
        python += "\nrelease.predict_proba(rows)"
    python += "\nrelease.coefficients().to_pandas()"
    return Section(
        figures=_figures(release) if with_charts else (),
        listings=[_coefficients(release)],
        python=python,
        shell="dpublish predict RELEASE rows.csv -o predicted.csv",
    )


def _coefficients(release: LinearModelRelease) -> Listing:
    table = release.coefficients()
    shown = [
        [row["feature"], row["class"]]
        + [_number(row[name]) for name in ("weight", "weight_in_own_units")]
        + ([] if release.standard_deviation is None else [_number(row["standard_deviation"])])
        for row in table.slice(0, _MAX_ROWS).to_pylist()
    ]
    headers = ["feature", "predicts", "weight", "weight in own units"]
    if release.standard_deviation is not None:
        headers.append("standard deviation of the noise")
    caption = (
        f"Coefficients of the {MODELS[release.model]}. Weights belong to features scaled to "
        "[-1, 1]; in own units a weight is what one unit more of the column adds."
    )
    if release.frequencies is not None:
        caption = (
            "Weights of random waves over the columns, a cosine and a sine each; the table "
            "frequencies lists what every wave runs over."
        )
    if table.num_rows > _MAX_ROWS:
        caption += f" The first {_MAX_ROWS} of {table.num_rows:,} are shown."
    return Listing(headers, shown, caption)


def _number(value: float) -> str:
    return format_number(value)


def _figures(release: LinearModelRelease) -> list[Figure]:
    figures = []
    for row, name in enumerate(release.scored[:_MAX_CHARTS]):
        bars = _largest(release, row)
        if not bars:
            continue
        caption = f"The {len(bars)} largest weights for {release.target}"
        caption += "" if release.model == "linear" else f" = {name}"
        if release.standard_deviation is not None:
            caption += "; lines are 95 % confidence intervals that cover the noise only"
        said = each_in_words([f"{bar.label}: {format_number(bar.weight, 3)}" for bar in bars])
        figures.append(Figure(f"{caption}.", _draw(bars), f"{caption}. {said}"))
    return figures


def _largest(release: LinearModelRelease, row: int) -> list[_Bar]:
    weights = release.weights[row]
    order = np.argsort(-np.abs(weights), kind="stable")
    names = release.features.names
    largest = [int(index) for index in order if names[index] != INTERCEPT][:_MAX_BARS]
    known = release.standard_deviation
    deviations = np.zeros_like(weights) if known is None else known[row]
    return [_Bar(names[i], float(weights[i]), _DEVIATIONS * float(deviations[i])) for i in largest]


def _draw(bars: Sequence[_Bar]) -> str:
    """Draw bars from zero to the left or right, with lines for the noise."""
    longest = max(abs(bar.weight) + bar.half_width for bar in bars) or 1.0
    middle = (_WIDTH + _LABELS) / 2
    scale = (_WIDTH - _LABELS) / 2 / longest * 0.86  # leaves room for the numbers
    height = _LINE * len(bars)
    parts = [
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="0" y2="{height:.0f}" stroke="{GRID}"/>'
    ]
    for line, bar in enumerate(bars):
        parts.append(_draw_bar(bar, _LINE * line, middle, scale))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'role="img" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _draw_bar(bar: _Bar, top: float, middle: float, scale: float) -> str:
    end = middle + bar.weight * scale
    left, width = min(middle, end), abs(end - middle)
    line = top + _LINE / 2
    label = bar.label if len(bar.label) <= _LONGEST else bar.label[: _LONGEST - 1] + "…"
    side, edge = ("end", -1) if bar.weight < 0 else ("start", 1)
    drawn = (
        f'<text x="{_LABELS - 8:.0f}" y="{line + 4:.1f}" text-anchor="end">{escape(label)}</text>'
        f'<rect x="{left:.1f}" y="{top + 3:.1f}" width="{width:.1f}" height="{_LINE - 6:.1f}" '
        f'fill="{PALE}" stroke="{INK}" stroke-width="0.6"/>'
        f'<text x="{end + edge * (bar.half_width * scale + 4):.1f}" y="{line + 4:.1f}" '
        f'text-anchor="{side}" fill="{TEXT}">{format_number(bar.weight, 3)}</text>'
    )
    if bar.half_width:
        low, high = end - bar.half_width * scale, end + bar.half_width * scale
        drawn += (
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{line:.1f}" y2="{line:.1f}" '
            f'stroke="{WHISKER}"/>'
        )
    return drawn
