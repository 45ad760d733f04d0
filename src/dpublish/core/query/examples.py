"""Example queries for a release: one or two conditions on its columns, from its schema alone."""

from collections.abc import Iterator

from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.query.language import Condition, Query
from dpublish.errors import DPublishError

_MOST_COLUMNS = 4
_MOST_TRIED = 12


def example_queries(release: Release) -> list[str]:
    """List queries that a release answers; none if it answers no counts.

    The first is empty: it counts all records.
    """
    if type(release).count is Release.count:
        return []
    conditions = [
        found
        for name in release.complete[:_MOST_TRIED]
        if (found := _condition(release.schema[name].axis())) is not None
    ]
    told = ["", *(str(Query((one,))) for one in conditions[:_MOST_COLUMNS])]
    told += [str(Query((one, other))) for one, other in _pairs(conditions)]
    return [query for query in told if _answers(release, query)]


def _condition(axis: Axis) -> Condition | None:
    """Ask for the middle of what has an order, for the first value of what has none."""
    if axis.edges is None:
        values = axis.labels[: axis.ordinary_leaves]
        return Condition(axis.column, "=", (values[0],)) if values else None
    first, stop = axis.edges[0], axis.edges[-1]
    quarter = (stop - first) / 4
    ends = (first + quarter, stop - quarter)
    if axis.holds_integers:
        ends = (float(round(ends[0])), float(round(ends[1])))
    return Condition(axis.column, "in range", (axis.write(ends[0]), axis.write(ends[1])))


def _pairs(conditions: list[Condition]) -> Iterator[tuple[Condition, Condition]]:
    if len(conditions) > 1:
        yield conditions[0], conditions[1]


def _answers(release: Release, query: str) -> bool:
    try:
        release.count(query)
    except DPublishError:
        return False
    return True
