"""The section of statistics: a table, and a dot with its interval for every group."""

from dpublish.core.released import Release
from dpublish.methods.statistics.released import Statistic, StatisticsRelease
from dpublish.plots.charts import interval_chart
from dpublish.report.section import Figure, Listing, Section
from dpublish.report.words import each_in_words

_MAX_LISTED = 200
_MAX_DOTS = 40
_MAX_FIGURES = 8


def section(release: Release, with_charts: bool) -> Section:
    """Show statistics."""
    if not isinstance(release, StatisticsRelease):
        return Section()
    measure = release.measures[0]
    return Section(
        paragraphs=[
            "Each interval holds the statistic of this very table, after clipping to the bounds; "
            "it does not speak of a population from which the table was drawn."
        ],
        figures=_figures(release) if with_charts else (),
        listings=[_listing(release)],
        python=f"release.to_pandas()\nrelease.value({measure!r})",
        shell="dpublish statistics RELEASE\ndpublish statistics RELEASE -o statistics.csv",
    )


def _figures(release: StatisticsRelease) -> list[Figure]:
    figures = []
    listed = release.statistics()
    for measure in release.measures[:_MAX_FIGURES]:
        known = [one for one in listed if one.measure == measure and one.value is not None]
        if not known:
            continue
        shown = known[:_MAX_DOTS]
        drawing = interval_chart(
            [", ".join(one.group) or "all records" for one in shown],
            [float(one.value or 0.0) for one in shown],
            [(one.low, one.high) for one in shown],
            title=measure,
        )
        rest = f"; the first {_MAX_DOTS} of {len(known):,}" if len(known) > _MAX_DOTS else ""
        percent = f"{100 * float(release.confidence):g} %"
        caption = f"{measure} by group with {percent} confidence intervals{rest}."
        said = [_in_words(release, one) for one in shown]
        figures.append(Figure(caption, drawing, f"{caption} {each_in_words(said)}"))
    return figures


def _in_words(release: StatisticsRelease, one: Statistic) -> str:
    value, low, high, _ = written(release, one)
    return f"{', '.join(one.group) or 'all records'}: {value} ({low} to {high})"


def _listing(release: StatisticsRelease) -> Listing:
    listed = [*release.statistics(), *release.totals()]
    rows = [[*one.group, one.measure, *written(release, one)] for one in listed[:_MAX_LISTED]]
    rest = f" The first {_MAX_LISTED} of {len(listed):,}." if len(listed) > _MAX_LISTED else ""
    headers = [*(axis.column for axis in release.axes), "measure", "value", "from", "to", "of"]
    caption = f"Statistics of each group, and totals over groups.{rest}"
    return Listing(headers=headers, rows=rows, caption=caption)


def written(release: StatisticsRelease, one: Statistic) -> list[str]:
    """Write value, ends of the interval, and what records it is about."""
    value = "unknown" if one.value is None else release.written(one.measure, one.value)
    ends = [release.written(one.measure, end) for end in (one.low, one.high)]
    return [value, *ends, one.of]
