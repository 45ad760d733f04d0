"""Count by conditions in synthetic rows, where a release has no counts for a query.

The rows are always the same ones, so the same query has the same answer.  How far it is
from the truth depends on how well the release's model fits, which no budget was spent to know.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.query.cells import around
from dpublish.core.query.dependence import ANY_DEPENDENCE, CountOf, joint_bounds
from dpublish.core.query.rows import ClearRows
from dpublish.core.released import Release
from dpublish.data.query.language import Query, parse_query, require_columns
from dpublish.data.query.weights import axis_extent
from dpublish.errors import InvalidQuery

SAMPLE = 1 << 18
"""How many rows are drawn."""
SEED = 20_240_229
WHY = f"estimated from {SAMPLE:,} synthetic rows; they follow a model whose error is not known"
NO_INTERVAL = "so there is no confidence interval"


class SampledCount:
    """Counts estimated from rows of a release, all of the same weight."""

    def __init__(self, release: Release, total: float) -> None:
        """Draw the rows; together they stand for `total` records."""
        rows = release.rows(SAMPLE, seed=SEED)
        self._names = tuple(rows.column_names)
        self._schema = release.schema
        self._rows = ClearRows(rows, release.schema)
        self._weight = max(total, 0.0) / SAMPLE

    def answer(self, query: str, confidence: float, count_of: CountOf | None = None) -> Answer:
        """Count the records that satisfy `query`; what cannot be is known to be 0.

        With `count_of`, which counts by single columns from published counts, the interval is
        what these allow; else there is none.
        """
        require_confidence(confidence)
        parsed = parse_query(query)
        require_columns(parsed, self._names)
        found = self._rows.matches(parsed)
        if self._is_impossible(parsed):
            return Answer(0.0, 0.0, 0.0, confidence)
        value = float(found.sum()) * self._weight
        bounds = None if count_of is None else joint_bounds(parsed, count_of, confidence)
        if bounds is None:
            return Answer(value, None, None, confidence, f"{WHY}, {NO_INTERVAL}")
        return around(value, *bounds, confidence, f"{WHY}; {ANY_DEPENDENCE}")

    def _is_impossible(self, query: Query) -> bool:
        """Check whether no value of some column satisfies all conditions on it."""
        extents = (axis_extent(self._schema[x].axis(), query.about(x)) for x in query.columns)
        return any(not extent.outer.any() for extent in extents)

    def boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate the number of records in each of many boxes of codes."""
        for name in columns:
            if name not in self._names:
                raise InvalidQuery(f"this release knows nothing of {name!r}, only of {self._names}")
        codes = [self._rows.codes(name) for name in columns]
        found = np.empty(len(lows))
        for box, (low, high) in enumerate(zip(lows, highs, strict=True)):
            inside = np.ones(len(self._rows), dtype=np.bool_)
            for along, first, past in zip(codes, low, high, strict=True):
                inside &= (along >= first) & (along < past)
            found[box] = inside.sum()
        return found * self._weight
