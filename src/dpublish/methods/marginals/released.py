"""Published marginals: how the records are spread over the values of each column, one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.query.axes import read_boxes, read_query
from dpublish.core.query.language import parse_query
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis, Value
from dpublish.data.schema import Schema
from dpublish.errors import (
    CorruptRelease,
    InvalidParameter,
    InvalidQuery,
    require_count,
    require_known,
)
from dpublish.methods.histogram.released import Marginal
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

SMOOTHED = "neighbors were merged or smoothed, so the error is not known"
_LEAST_VARIANCE = 1e-12  # noise that is never there still leaves a number to divide by


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalsRelease(Release):
    """A noisy marginal for each column of the schema, at its leaves."""

    kind: ClassVar[str] = "marginals"

    receipt: Receipt
    schema: Schema
    marginals: tuple[NoisyMarginal, ...]

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        sizes = [axis.size for axis in self.axes]
        if not sizes or [marginal.leaves for marginal in self.marginals] != sizes:
            raise InvalidParameter("there must be a marginal for each column, of all its leaves")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MarginalsRelease)
            and self.receipt == other.receipt
            and self.schema == other.schema
            and self.marginals == other.marginals
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The leaves of each column."""
        return tuple(column.axis() for column in self.schema.columns)

    @cached_property
    def records(self) -> float:
        """Estimate of the number of records: the totals, weighed by how sure they are."""
        sure = np.array([1 / max(m.total_variance, _LEAST_VARIANCE) for m in self.marginals])
        totals = np.array([marginal.total for marginal in self.marginals])
        return max(float(sure @ totals / sure.sum()), 0.0)

    def noisy_marginal(self, column: str) -> NoisyMarginal:
        """Look up the marginal of a column."""
        require_known("column", column, self.schema.names)
        return self.marginals[self.schema.names.index(column)]

    def marginal(self, column: str) -> Marginal:
        """Give the estimated counts of a column's values, rounded, and how far noise reaches.

        Where no confidence interval is offered the reach is not a number.
        """
        noisy = self.noisy_marginal(column)
        first = np.zeros(noisy.leaves)
        first[0] = 1  # no leaf of a tree is perturbed more than its first
        reach = noisy.half_width(first, 0.95)
        counts = np.rint(noisy.bins).astype(np.int64)
        labels = self.schema[column].axis().labels
        return Marginal(labels, counts, float("nan") if reach is None else reach)

    def quantile(self, column: str, part: float) -> Value:
        """Find the value that a part of the records lies below, unlisted and missing left out.

        Numbers are taken to lie evenly within a leaf.
        """
        noisy = self.noisy_marginal(column)
        axis = self.schema[column].axis()
        if axis.kind == "category":
            raise InvalidQuery(f"column {column!r} has no order, so it has no quantiles")
        if not 0 <= part <= 1:
            raise InvalidParameter(f"part ({part}) must lie between 0 and 1")
        cumulative = np.cumsum(noisy.probabilities[: axis.ordinary_leaves])
        wanted = part * cumulative[-1]
        leaf = min(int(np.searchsorted(cumulative, wanted)), axis.ordinary_leaves - 1)
        if axis.leaf_edges is None:
            return axis.labels[leaf]
        below = float(cumulative[leaf - 1]) if leaf else 0.0
        probability = float(cumulative[leaf]) - below
        low, high = axis.leaf_edges[leaf], axis.leaf_edges[leaf + 1]
        value = low + (high - low) * ((wanted - below) / probability if probability else 0.0)
        return min(floor(value), int(high) - 1) if axis.holds_integers else value

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy a query about one column, with a confidence interval.

        Marginals do not say how columns hang together, so a query about several is refused.
        """
        require_confidence(confidence)
        columns = parse_query(query).columns
        if len(columns) > 1:
            raise InvalidQuery(
                f"marginals answer about one column at a time, not {' and '.join(columns)} "
                "together; publish with dpcopula for that"
            )
        # Without a condition the column that is surest of the total answers.
        surest = min(zip(self.marginals, self.schema.names, strict=True), key=_total_variance)[1]
        name = columns[0] if columns else surest
        asked = read_query(self.axes, query)
        noisy = self.noisy_marginal(name)
        weights = asked.weights[self.schema.names.index(name)]
        value = float(weights @ noisy.bins)
        reach = noisy.half_width(weights, confidence)
        if reach is None:
            told = "; ".join(note for note in (asked.assumption, SMOOTHED) if note)
            return Answer(value, None, None, confidence, told)
        low, high = max(value - reach, 0.0), max(value + reach, 0.0)
        return Answer(value, low, high, confidence, asked.assumption)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate counts of boxes as if columns were independent, as they are in `rows`."""
        boxes = read_boxes(self.axes, columns, lows, highs)
        found = np.full(len(boxes.lows), self.records)
        for place, marginal in enumerate(self.marginals):
            cumulative = np.concatenate([[0.0], np.cumsum(marginal.probabilities)])
            found *= cumulative[boxes.highs[:, place]] - cumulative[boxes.lows[:, place]]
        return found

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw rows whose columns have these marginals and nothing to do with each other."""
        count = round(self.records) if n is None else n
        require_count(seed=0 if seed is None else seed, n=count, at_least=0)
        if count > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        return pa.table(
            {
                axis.column: draw_column(
                    axis, rng.choice(axis.size, size=count, p=marginal.probabilities), rng
                )
                for axis, marginal in zip(self.axes, self.marginals, strict=True)
            }
        )

    def tables(self) -> dict[str, pa.Table]:
        """Give the noisy numbers, and the counts and probabilities that follow from them."""
        names = self.schema.names
        estimates = {
            "column": _repeat(names, [axis.size for axis in self.axes]),
            "value": pa.array([label for axis in self.axes for label in axis.labels]),
            "estimated_count": pa.array(np.concatenate([m.bins for m in self.marginals])),
            "probability": pa.array(np.concatenate([m.probabilities for m in self.marginals])),
        }
        return {
            "marginals": marginal_table(names, self.marginals),
            "probabilities": pa.table(estimates),
        }

    def metadata(self) -> dict[str, Any]:
        """Give how each marginal was counted."""
        return {"marginals": [marginal.metadata() for marginal in self.marginals]}

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the marginals of a release folder."""
        marginals = read_marginals(metadata["marginals"], tables["marginals"])
        return cls(receipt=receipt, schema=schema, marginals=marginals)

    def expected_error(self) -> dict[str, float]:
        """Give how far noise moves a count of half of a column's leaves, and the total (95 %)."""
        halves = [m.half_width(middle_half(m.leaves), 0.95) for m in self.marginals]
        totals = [m.half_width(np.ones(m.leaves), 0.95) for m in self.marginals]
        known = [reach for reach in halves if reach is not None]
        figures = {"range_count_95": max(known)} if known else {}
        return figures | {"total_95": min(reach for reach in totals if reach is not None)}

    def summary(self) -> dict[str, str]:
        """Describe columns, methods and error in a few words."""
        errors = self.expected_error()
        methods = (
            f"{axis.column} ({axis.size:,} values, {marginal.method})"
            for axis, marginal in zip(self.axes, self.marginals, strict=True)
        )
        claim = f"the number of records is within {errors['total_95']:,.0f} of the truth"
        if "range_count_95" in errors:
            reach = errors["range_count_95"]
            claim = f"a count of half of a column's values is within {reach:,.0f}; {claim}"
        return {
            "marginals of": ", ".join(methods),
            "records": f"about {self.records:,.0f}",
            "error": f"{claim} with probability 95 %",
        }


def marginal_table(names: Sequence[str], marginals: Sequence[NoisyMarginal]) -> pa.Table:
    """Put the noisy numbers of several columns' marginals into one table."""
    sizes = [marginal.units.size for marginal in marginals]
    return pa.table(
        {
            "column": _repeat(names, sizes),
            "position": pa.array(np.concatenate([np.arange(size) for size in sizes])),
            "noisy_number": pa.array(np.concatenate([marginal.units for marginal in marginals])),
        }
    )


def read_marginals(
    metadata: Sequence[Mapping[str, Any]], table: pa.Table
) -> tuple[NoisyMarginal, ...]:
    """Take marginals out of such a table again."""
    starts = np.flatnonzero(whole_column(table, "position") == 0)
    parts = np.split(whole_column(table, "noisy_number"), starts[1:])
    if len(parts) != len(metadata):
        raise CorruptRelease("the noisy numbers are not those of the columns")
    return tuple(map(NoisyMarginal.from_metadata, metadata, parts))


def middle_half(leaves: int) -> NDArray[np.float64]:
    """Weigh the leaves in the middle half by 1, the others by 0.

    >>> middle_half(6).tolist()
    [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    """
    weights = np.zeros(leaves)
    weights[leaves // 4 : leaves // 4 + -(-leaves // 2)] = 1
    return weights


def _total_variance(item: tuple[NoisyMarginal, str]) -> float:
    return item[0].total_variance


def _repeat(names: Sequence[str], sizes: Sequence[int]) -> pa.Array:
    codes = np.repeat(np.arange(len(names), dtype=np.int32), sizes)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names))
