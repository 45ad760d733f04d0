"""Count by conditions in synthetic rows, where a release has no counts for a query.

The rows are always the same ones, so the same query has the same answer.  How far it is
from the truth depends on how well the release's model fits, which no budget was spent to know.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.query.rows import ClearRows
from dpublish.core.released import Release
from dpublish.data.query.language import Condition, Query, parse_query, require_columns
from dpublish.data.query.weights import RANGES, axis_weights
from dpublish.errors import InvalidQuery

SAMPLE = 1 << 18
"""How many rows are drawn."""
SEED = 20_240_229
WHY = (
    f"estimated from {SAMPLE:,} synthetic rows; they follow a model whose error is not known, "
    "so there is no confidence interval"
)


class SampledCount:
    """Counts estimated from rows of a release, all of the same weight."""

    def __init__(self, release: Release, total: float) -> None:
        """Draw the rows; together they stand for `total` records."""
        rows = release.rows(SAMPLE, seed=SEED)
        self._names = tuple(rows.column_names)
        self._schema = release.schema
        self._rows = ClearRows(rows, release.schema)
        self._weight = max(total, 0.0) / SAMPLE

    def answer(self, query: str, confidence: float) -> Answer:
        """Count the records that satisfy `query`; what cannot be is known to be 0."""
        require_confidence(confidence)
        parsed = parse_query(query)
        require_columns(parsed, self._names)
        found = self._rows.matches(parsed)
        if self._is_impossible(parsed):
            return Answer(0.0, 0.0, 0.0, confidence)
        return Answer(float(found.sum()) * self._weight, None, None, confidence, WHY)

    def _is_impossible(self, query: Query) -> bool:
        return any(self._excludes_all(name, query.about(name)) for name in query.columns)

    def _excludes_all(self, name: str, conditions: tuple[Condition, ...]) -> bool:
        """Check whether no value of a column satisfies all conditions."""
        axis = self._schema[name].axis()
        ranges = tuple(c for c in conditions if c.operator in RANGES)
        others = [(c,) for c in conditions if c.operator not in RANGES]
        parts = [axis_weights(axis, some) > 0 for some in (ranges, *others)]
        return not np.all(parts, axis=0).any()

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
