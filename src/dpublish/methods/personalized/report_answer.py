"""The section of a personal answer: what it says, and what part of its number each level paid."""

import shlex

from dpublish.core.released import Release
from dpublish.methods.personalized.released_answer import PersonalizedAnswer
from dpublish.plots.charts import course_chart
from dpublish.privacy.epsilon import format_short
from dpublish.report.section import Figure, Listing, Section

_MAX_LISTED = 20


def section(release: Release, with_charts: bool) -> Section:
    """Show a personal answer."""
    if not isinstance(release, PersonalizedAnswer):
        return Section()
    counts = release.question == "count"
    return Section(
        figures=[_paid(release)] if with_charts and release.receipt.personal else [],
        listings=[_answer(release), _levels(release)],
        python=f"release.count({release.query!r})" if counts else "release.number, release.label",
        shell=f"dpublish count RELEASE {shlex.quote(release.query)}" if counts else "",
    )


def _paid(release: PersonalizedAnswer) -> Figure:
    personal = release.receipt.personal
    drawing = course_chart(
        [float(amount / level) for level, amount in personal],
        marked=[True] * len(personal),
        ends=(f"level {format_short(personal[0][0])}", f"level {format_short(personal[-1][0])}"),
        limit=1.0,
    )
    return Figure("Part of its own number that each level paid for this answer.", drawing)


def _answer(release: PersonalizedAnswer) -> Listing:
    rows = [[name, told] for name, told in release.summary().items()]
    return Listing(["", "answer"], rows, "The one answer of this release.")


def _levels(release: PersonalizedAnswer) -> Listing:
    personal = release.receipt.personal
    rows = [[format_short(level), format_short(amount)] for level, amount in personal[:_MAX_LISTED]]
    return Listing(
        ["level", "epsilon paid"],
        rows,
        f"What people of each level paid; {len(rows):,} of {len(personal):,} levels.",
    )
