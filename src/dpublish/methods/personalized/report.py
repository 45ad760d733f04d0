"""The sections of personalized releases: how each level's budget is used, and what is in them."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from html import escape

from dpublish.accuracy.rounding import format_number
from dpublish.core.released import Release
from dpublish.errors import DPublishError
from dpublish.methods.personalized.released import PersonalizedAnswer, PersonalizedRelease
from dpublish.methods.personalized.released_parts import Part, shares
from dpublish.plots.charts import INK, PALE
from dpublish.privacy.epsilon import format_short
from dpublish.report.section import Figure, Listing, Section, section_of
from dpublish.report.words import each_in_words

_MOST_LEVELS = 24
_MOST_PARTS = 50
_SHOWN_PARTS, _FIGURES_EACH = 2, 2
_WIDTH, _LABELS, _NUMBERS, _LINE = 720.0, 90.0, 190.0, 20.0


def section(release: Release, with_charts: bool) -> Section:
    """Show a personalized release."""
    if not isinstance(release, PersonalizedRelease):
        return Section()
    python, shell = _uses(release)
    return Section(
        figures=[_levels(release), *_parts(release)] if with_charts else (),
        listings=[_listed(release)],
        python=python,
        shell=shell,
    )


def _levels(release: PersonalizedRelease | PersonalizedAnswer) -> Figure:
    pairs = _some(release.receipt.personal)
    what = "answer" if isinstance(release, PersonalizedAnswer) else "release"
    caption = (
        f"How much of each level this {what} uses: the stronger color is spent here, the paler "
        "is the rest of what people of the level accept in all."
    )
    if len(pairs) < len(release.receipt.personal):
        caption += f" {len(pairs)} of {len(release.receipt.personal):,} levels are shown."
    said = [f"level {format_short(level)}: {_used(level, amount)}" for level, amount in pairs]
    alt = f"How much of each level this {what} uses. {each_in_words(said)}"
    return Figure(caption, level_bars(pairs), alt)


def _used(level: Fraction, amount: Fraction) -> str:
    percent = format_number(100 * float(amount / level), 3)
    return f"{format_short(amount)} of {format_short(level)} ({percent} %)"


def level_bars(pairs: Sequence[tuple[Fraction, Fraction]]) -> str:
    """Draw a bar for each level, all equally long, the part that is spent in dark."""
    room = _WIDTH - _LABELS - _NUMBERS
    lines = []
    for row, (level, amount) in enumerate(pairs):
        top = row * _LINE + 4
        used = float(amount / level)
        label = _used(level, amount)
        lines.append(
            f'<text x="{_LABELS - 8:.0f}" y="{top + 11:.1f}" text-anchor="end">'
            f"{escape(format_short(level))}</text>"
            f'<rect x="{_LABELS:.0f}" y="{top:.1f}" width="{room:.1f}" height="14" '
            f'fill="{PALE}"/>'
            f'<rect x="{_LABELS:.0f}" y="{top:.1f}" width="{room * used:.1f}" height="14" '
            f'fill="{INK}"/>'
            f'<text x="{_LABELS + room + 8:.0f}" y="{top + 11:.1f}">{escape(label)}</text>'
        )
    height = len(pairs) * _LINE + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'font-size="12" font-family="sans-serif">{"".join(lines)}</svg>'
    )


def _listed(release: PersonalizedRelease) -> Listing:
    parts = release.parts[:_MOST_PARTS]
    weights = shares(release.parts)
    rows = [
        [
            str(number + 1),
            part.level_names,
            format_short(part.epsilon),
            "not known" if part.size is None else f"{part.size:,.0f}",
            f"{format_number(100 * weights[number], 3)} %"
            if release.combine == "weighted"
            else "added up",
            format_number(part.scale * part.units),
            part.release.kind.replace("-", " "),
        ]
        for number, part in enumerate(parts)
    ]
    caption = "The parts: whose records, published with which epsilon, and how much they count."
    if len(parts) < len(release.parts):
        caption += f" The first {len(parts)} of {len(release.parts):,} are shown."
    cost = "epsilon" if release.receipt.contribution is None else "epsilon of a record"
    headers = ["part", "people of", cost, "people", "weight", "scale", "published"]
    return Listing(headers, rows, caption)


def _parts(release: PersonalizedRelease) -> list[Figure]:
    """Show what the parts that count most show of themselves."""
    weights = shares(release.parts)
    order = sorted(range(len(release.parts)), key=lambda number: -weights[number])
    figures = []
    for number in order[:_SHOWN_PARTS]:
        part = release.parts[number]
        shown = part.in_records(release.records_each[number])
        for figure in section_of(shown).figures[:_FIGURES_EACH]:
            whose = f"Part {number + 1}, {part.level_names}"
            alt = f"{whose}: {figure.alt or figure.caption}"
            figures.append(replace(figure, caption=f"{whose}: {figure.caption}", alt=alt))
    return figures


def _uses(release: PersonalizedRelease) -> tuple[str, str]:
    """List what all parts together can answer: what each of them answers."""
    part = release.parts[0]
    python, shell = [], []
    if _answers(release):
        python.append("release.count()")
        shell.append("dpublish count RELEASE")
    if type(part.release).predict is not Release.predict:
        python.append("release.predict(rows)  # rows: any Arrow-compatible object")
        shell.append("dpublish predict RELEASE rows.csv -o predicted.csv")
    if type(part.release).rows is not Release.rows:
        python.append("release.rows(1000).to_pandas()")
        shell.append("dpublish rows RELEASE -n 1000 -o rows.csv")
    python.append(f"release.parts[0].release  # a part by itself{_unit(part)}")
    return "\n".join(python), "\n".join(shell)


def _unit(part: Part) -> str:
    """Warn that a part's own counts are no records, where records weigh."""
    return "" if part.units == 1 else f"; it counts weights, {part.units:,} for a full record"


def _answers(release: PersonalizedRelease) -> bool:
    try:
        release.count()
    except DPublishError:
        return False
    return True


def _some(
    pairs: Sequence[tuple[Fraction, Fraction]],
) -> Sequence[tuple[Fraction, Fraction]]:
    """Take a picture's worth of levels, the first and the last among them."""
    if len(pairs) <= _MOST_LEVELS:
        return pairs
    positions = [(len(pairs) - 1) * row // (_MOST_LEVELS - 1) for row in range(_MOST_LEVELS)]
    return [pairs[position] for position in positions]


# --- One answer -----------------------------------------------------------------------------------


_MAX_LISTED = 20


def answer_section(release: Release, with_charts: bool) -> Section:
    """Show a personal answer."""
    if not isinstance(release, PersonalizedAnswer):
        return Section()
    counts = release.statistic == "count"
    return Section(
        figures=[_levels(release)] if with_charts and release.receipt.personal else [],
        listings=[_answered(release), _paid_by_level(release)],
        python=f"release.count({release.query!r})" if counts else "release.number, release.label",
        shell=f"dpublish count RELEASE {shlex.quote(release.query)}" if counts else "",
    )


def _answered(release: PersonalizedAnswer) -> Listing:
    rows = [[name, words] for name, words in release.summary().items()]
    return Listing(["", "answer"], rows, "The one answer of this release.")


def _paid_by_level(release: PersonalizedAnswer) -> Listing:
    personal = release.receipt.personal
    rows = [[format_short(level), format_short(amount)] for level, amount in personal[:_MAX_LISTED]]
    return Listing(
        ["level", "epsilon paid"],
        rows,
        f"What people of each level paid; {len(rows):,} of {len(personal):,} levels.",
    )
