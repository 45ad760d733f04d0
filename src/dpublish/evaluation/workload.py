"""Workloads: many range counts at once, their true answers, and those of a release.

A query is a box of codes: low <= code < high along each of its columns.  True counts
are NOT PRIVATE.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpublish.core.prediction import encode_rows
from dpublish.core.released import Release
from dpublish.data.encoding import code_type
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.evaluation.metrics.queries import relative_errors

__all__ = [
    "Workload",
    "answers",
    "independent_counts",
    "random_ranges",
    "ranges_between_records",
    "relative_errors",
    "true_counts",
]

Codes = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Workload:
    """Boxes of codes over the same columns.

    Attributes:
        columns: The columns queried; others are not limited.
        lows: First code of each box along each column, one row per box.
        highs: First code past it.
    """

    columns: tuple[str, ...]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]

    def __post_init__(self) -> None:
        shapes = {self.lows.shape, self.highs.shape, (len(self.lows), len(self.columns))}
        if len(shapes) > 1:
            raise InvalidParameter("a workload needs a low and a high for every box and column")

    def __len__(self) -> int:
        return len(self.lows)


def random_ranges(
    schema: Schema,
    columns: Sequence[str],
    queries: int,
    rng: np.random.Generator,
    *,
    coverage: float | None = None,
) -> Workload:
    """Draw boxes at random: along each column, all between two values drawn evenly.

    With `coverage` every box holds about that part of the domain, the same part of each
    column, and only its position is drawn.  Codes of missing and unlisted values are never in
    a box.

    >>> from dpublish.data.schema import column
    >>> from dpublish.randomness import plain_generator
    >>> schema = Schema((column("age", "integer", bounds=[0, 99]),))
    >>> drawn = random_ranges(schema, ["age"], 3, plain_generator(1), coverage=0.1)
    >>> (drawn.highs - drawn.lows).tolist()
    [[10], [10], [10]]
    """
    require_count(queries=queries, at_least=0)
    for name in columns:
        require_known("column", name, schema.names)
    if not columns:
        raise InvalidParameter("name at least one column to query")
    sizes = np.array([schema[name].axis().ordinary_leaves for name in columns])
    shape = (queries, len(columns))
    if coverage is None:
        ends = rng.integers(0, sizes, (2, *shape))
        return Workload(tuple(columns), ends.min(axis=0), ends.max(axis=0) + 1)
    if not 0 < coverage <= 1:
        raise InvalidParameter(f"coverage ({coverage:g}) must be above 0 and at most 1")
    widths = np.maximum(np.rint(sizes * coverage ** (1 / len(columns))), 1).astype(np.int64)
    lows = rng.integers(0, sizes - widths + 1, shape)
    return Workload(tuple(columns), lows, lows + widths)


def ranges_between_records(
    codes: Codes, columns: Sequence[str], queries: int, rng: np.random.Generator
) -> Workload:
    """Draw boxes whose ends are values of records drawn at random, two for each column.

    Where marginals are steep, boxes drawn evenly hold next to no records; these go where the
    records are.  NOT PRIVATE: for measuring on true rows only.
    """
    require_count(queries=queries, at_least=0)
    ends = np.empty((2, queries, len(columns)), dtype=np.int64)
    for index, name in enumerate(columns):
        known = codes[name][codes[name] >= 0]
        if not len(known):
            raise InvalidParameter(f"no record has a value in the column {name!r}")
        ends[:, :, index] = known[rng.integers(0, len(known), (2, queries))]
    return Workload(tuple(columns), ends.min(axis=0), ends.max(axis=0) + 1)


def true_counts(codes: Codes, workload: Workload) -> NDArray[np.int64]:
    """Count the records in each box; NOT PRIVATE.

    `codes` are codes as `encode_rows` gives them: a record whose value is unknown in a
    column lies in no range of it.
    """
    past = int(workload.highs.max(initial=0))
    narrow = [_narrow(codes[name], past) for name in workload.columns]
    widths = workload.highs - workload.lows
    found = np.zeros(len(workload), dtype=np.int64)
    for index in range(len(workload)):
        inside: NDArray[np.bool_] | None = None
        for column, low, width in zip(narrow, workload.lows[index], widths[index], strict=True):
            # What is below wraps around to far above, so that one comparison does for both.
            here = column - column.dtype.type(low + 1) < column.dtype.type(width)
            inside = here if inside is None else np.logical_and(inside, here, out=inside)
        found[index] = 0 if inside is None else np.count_nonzero(inside)
    return found


def independent_counts(codes: Codes, workload: Workload) -> NDArray[np.float64]:
    """Guess each count from the true marginals, as if the columns were independent; NOT PRIVATE."""
    records = len(codes[workload.columns[0]])
    parts = np.full(len(workload), float(records))
    for index, name in enumerate(workload.columns):
        counts = np.bincount(codes[name] + 1, minlength=int(workload.highs.max(initial=0)) + 1)
        below = np.cumsum(counts) / max(records, 1)  # unknown values are below all others
        parts *= below[workload.highs[:, index]] - below[workload.lows[:, index]]
    return parts


def answers(release: Release, workload: Workload, seed: int = 0) -> NDArray[np.float64]:
    """Answer all queries from a release: by its own estimates, or else from synthetic rows."""
    if type(release).count_boxes is not Release.count_boxes:
        return release.count_boxes(workload.columns, workload.lows, workload.highs)
    rows = release.rows(seed=seed)
    codes = encode_rows(rows, release.schema, workload.columns)
    return true_counts(codes, workload).astype(np.float64)


def _narrow(codes: NDArray[np.int64], past: int) -> NDArray[np.unsignedinteger]:
    """Add one to every code, so that unknown ones are 0, in the narrowest type with room."""
    largest = max(int(codes.max(initial=0)), past)
    return (codes + 1).astype(code_type(largest + 2))
