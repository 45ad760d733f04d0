"""The statistics of a release as one table, whether all people were measured or parts of them."""

import pyarrow as pa

from dpublish.core.released import Release
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.statistics.measures import read_measure
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.methods.statistics.report import written


def statistics_of(release: Release) -> list[tuple[str, StatisticsRelease]]:
    """List the statistics of a release: one, or those of each part of the people, by name."""
    if isinstance(release, StatisticsRelease):
        return [("", release)]
    parts = release.parts if isinstance(release, PersonalizedRelease) else ()
    found = [
        (f"part {number} ({part.level_names})", part.release)
        for number, part in enumerate(parts, 1)
        if isinstance(part.release, StatisticsRelease)
    ]
    if not found:
        raise InvalidParameter(
            f"a release of kind {release.kind!r} has no statistics; try count, rows or report"
        )
    return found


def statistics_table(
    release: Release, measure: str | None = None, *, totals: bool = True
) -> pa.Table:
    """Return the statistics of a release, those of parts of the people one below the other."""
    parts = statistics_of(release)
    return _join([(name, _pick(part, measure, totals=totals)) for name, part in parts])


def statistics_rows(
    release: StatisticsRelease, measure: str | None = None, *, totals: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Write the statistics of one part for people: the headers, and the rows."""
    wanted = None if measure is None else _find(release, measure)
    listed = [*release.statistics(), *(release.totals() if totals else ())]
    rows = [
        [*one.group, one.measure, *written(release, one), one.note]
        for one in listed
        if wanted in (None, one.measure)
    ]
    headers = [*(x.column for x in release.axes), "measure", "value", "from", "to", "of", "note"]
    return headers, rows


def _join(tables: list[tuple[str, pa.Table]]) -> pa.Table:
    """Set the tables of parts one below the other, with a column that names the part."""
    first, alone = tables[0]
    if not first:  # all people together, not parts of them
        return alone
    named = (
        table.add_column(0, "part", pa.array([name] * table.num_rows, pa.string()))
        for name, table in tables
    )
    return pa.concat_tables(named)


def _pick(release: StatisticsRelease, measure: str | None, *, totals: bool) -> pa.Table:
    table = release.table(totals=totals)
    if measure is None:
        return table
    wanted = _find(release, measure)
    kept = [text == wanted for text in table.column("measure").to_pylist()]
    return table.filter(pa.array(kept, pa.bool_()))


def _find(release: StatisticsRelease, measure: str) -> str:
    wanted = str(read_measure(measure))
    require_known("measure", wanted, release.measures)
    return wanted
