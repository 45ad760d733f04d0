"""Published boxes: noisy counts of boxes that lie within each other, down to a partition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from dpublish.accuracy.intervals import mixed_half_width, require_confidence
from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.accuracy.projection import round_to_total
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS, NoisySize
from dpublish.core.query.language import parse_query
from dpublish.core.query.weights import assumption, axis_weights
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.spatial.box_checks import require_boxes
from dpublish.methods.spatial.box_overlap import BoxOverlap
from dpublish.methods.spatial.box_table import end_columns, read_ends
from dpublish.methods.spatial.box_tree import BoxTree
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

EVENLY = (
    "records are assumed to lie evenly within partly covered boxes; the bar does not cover "
    "how far that is wrong"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class SpatialRelease(Release):
    """Noisy counts of boxes of leaf codes, which lie within each other.

    Box i holds the leaves `lows[i, j] <= code < highs[i, j]` of each column j of the schema.

    Attributes:
        lows: First leaf of each box along each column.
        highs: The leaf after the last.
        parents: The box around each, listed before it; -1 for a top box.
        levels: Which of `rates` the noise of each box has.
        rates: Rates of the noise (two-sided geometric); None for boxes without a count.
        counts: Noisy counts as they were drawn; 0 where there is none.
        size: Noisy number of records, if it was paid for apart from the counts.
        partial: Whether some of the domain is in no box; it then counts as empty.
    """

    kind: ClassVar[str] = "boxes"

    receipt: Receipt
    schema: Schema
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    parents: NDArray[np.int64]
    levels: NDArray[np.int64]
    rates: tuple[Fraction | None, ...]
    counts: NDArray[np.int64]
    size: NoisySize | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_boxes(
            np.array([column.size for column in self.schema.columns]),
            self.lows,
            self.highs,
            self.parents,
            partial=self.partial,
        )
        for array in (self.levels, self.counts):
            if array.dtype != np.int64 or array.shape != self.parents.shape:
                raise InvalidParameter("levels and counts are integers, one for each box")
        for rate in [*self.rates, None if self.size is None else self.size.rate]:
            if rate is not None:
                require_rate(rate)
        if self.levels.min() < 0 or self.levels.max() >= len(self.rates):
            raise InvalidParameter("every box has one of the rates")
        uncounted = np.isin(self.levels, [k for k, r in enumerate(self.rates) if r is None])
        if np.any(uncounted[self.ends]) or np.any(self.counts[uncounted]):
            raise InvalidParameter("a box without a noisy count has parts and counts 0")
        if self.size is not None and type(self.size.value) is not int:
            raise InvalidParameter("the noisy number of records must be an integer")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SpatialRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.schema == other.schema
            and self.tables()["boxes"] == other.tables()["boxes"]
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """All columns at their leaves."""
        return tuple(column.axis() for column in self.schema.columns)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """The boxes without parts: together these are a partition."""
        return np.setdiff1d(np.arange(self.parents.size), self.parents)

    @cached_property
    def tree(self) -> BoxTree:
        """All boxes below a root that stands for the whole table."""
        variances = np.array([np.inf if r is None else noise_variance(r) for r in self.rates])
        return BoxTree(
            np.concatenate(([-1], self.parents + 1)),
            np.concatenate(
                ([noise_variance(r) for r in self._root_rate] or [np.inf], variances[self.levels])
            ),
        )

    @property
    def _root_rate(self) -> tuple[Fraction, ...]:
        """The rate of the noise of the number of records, where boxes add up to it."""
        return () if self.size is None or self.partial else (self.size.rate,)

    @cached_property
    def box_estimates(self) -> NDArray[np.float64]:
        """Best linear estimates of all boxes; those of the parts of a box add up to its own."""
        root = float(self.size.value) if self.size and self._root_rate else 0.0
        return self.tree.estimate(np.concatenate(([root], self.counts)))[1:]

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """Best linear estimates of the boxes without parts; some may be negative."""
        return self.box_estimates[self.ends]

    @property
    def total(self) -> float:
        """Estimate the number of records in all boxes."""
        return float(self.estimates.sum())

    @cached_property
    def plausible(self) -> NDArray[np.float64]:
        """Non-negative counts of the boxes without parts that add up as the estimates do."""
        every = np.concatenate(([self.total], self.box_estimates))
        return self.tree.nonnegative(every)[self.ends + 1]

    @cached_property
    def _overlap(self) -> BoxOverlap:
        return BoxOverlap(self.lows[self.ends], self.highs[self.ends])

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval.

        The bar holds the noise and, where boxes are cut, the spread of records that are
        strewn evenly over each box.
        """
        require_confidence(confidence)
        parsed = parse_query(query)
        for column in parsed.columns:
            if column not in self.schema.names:
                known = ", ".join(self.schema.names)
                raise InvalidQuery(f"this release knows nothing of {column!r}, only of {known}")
        per_axis = [axis_weights(axis, parsed.about(axis.column)) for axis in self.axes]
        shares = self._overlap.shares(per_axis)
        notes = [
            assumption(axis, parsed.about(axis.column), along)
            for axis, along in zip(self.axes, per_axis, strict=True)
        ]
        spread = float(self.plausible @ (shares * (1 - shares)))
        if np.any((shares > 0) & (shares < 1)):
            notes.append(EVENLY)
        value = float(shares @ self.estimates)
        noise = self.noise_reach(shares, confidence)
        reach = sqrt(noise**2 + spread * float(ndtri((1 + confidence) / 2)) ** 2)
        told = "; ".join(dict.fromkeys(note for note in notes if note)) or None
        return Answer(value, max(value - reach, 0.0), max(value + reach, 0.0), confidence, told)

    def noise_reach(self, weights: NDArray[np.float64], confidence: float) -> float:
        """Bound the noise of the sum of `weights` times the estimates."""
        on_all = np.zeros(self.parents.size + 1)
        on_all[self.ends + 1] = weights
        found = self.tree.adjoint(on_all)
        # What rounding leaves of a weight that cancels out is no weight.
        found[np.abs(found) < 1e-12 * np.abs(found).max()] = 0
        pairs = [
            (rate, found[1:][self.levels == level])
            for level, rate in enumerate(self.rates)
            if rate is not None
        ]
        pairs += [(rate, found[:1]) for rate in self._root_rate]
        return mixed_half_width(tuple(r for r, _ in pairs), tuple(w for _, w in pairs), confidence)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many other boxes at once."""
        for column in columns:
            require_known("column", column, self.schema.names)
        places = [self.schema.names.index(column) for column in columns]
        return self._overlap.sums(self.estimates, places, lows, highs)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Without `n` every box gives its estimated count; with `n`, boxes are drawn in
        proportion (evenly over the domain if every estimate is zero).
        """
        require_count(seed=0 if seed is None else seed, at_least=0)
        if (self.plausible.sum() if n is None else n) > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        if n is None:
            picked = np.repeat(self.ends, round_to_total(self.plausible))
        else:
            require_count(n=n, at_least=0)
            picked = rng.choice(self.ends, size=n, p=self._probabilities())
        codes = rng.integers(self.lows[picked], self.highs[picked])
        columns = zip(self.axes, codes.T, strict=True)
        return pa.table({axis.column: draw_column(axis, along, rng) for axis, along in columns})

    def _probabilities(self) -> NDArray[np.float64]:
        weights = self.plausible
        if not weights.any():
            extents = self.highs[self.ends] - self.lows[self.ends]
            weights = np.prod(extents / [axis.size for axis in self.axes], axis=1)
        return np.asarray(weights / weights.sum())

    def tables(self) -> dict[str, pa.Table]:
        """Give the boxes with their leaves, by number and by name, and their counts."""
        columns: dict[str, pa.Array] = {
            "parent": pa.array(self.parents),
            "level": pa.array(self.levels),
            "noisy_count": pa.array(self.counts),
            "estimated_count": pa.array(self.box_estimates),
        }
        return {"boxes": pa.table(columns | end_columns(self.axes, self.lows, self.highs))}

    def metadata(self) -> dict[str, Any]:
        """Give the noise rates and the noisy number of records."""
        size = self.size
        return {
            "rates": [None if rate is None else format_epsilon(rate) for rate in self.rates],
            "records": None
            if size is None
            else {"count": size.value, "rate": format_epsilon(size.rate)},
            "partial": self.partial,
        }

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the boxes of a release folder."""
        table = tables["boxes"]
        lows, highs = read_ends(table, schema.names)
        size = metadata["records"]
        return cls(
            receipt=receipt,
            schema=schema,
            lows=lows,
            highs=highs,
            parents=whole_column(table, "parent"),
            levels=whole_column(table, "level"),
            rates=tuple(None if r is None else parse_epsilon(r) for r in metadata["rates"]),
            counts=whole_column(table, "noisy_count"),
            size=None if size is None else NoisySize(size["count"], parse_epsilon(size["rate"])),
            partial=bool(metadata["partial"]),
        )

    def expected_error(self) -> dict[str, float]:
        """Give how far noise moves the count of one box at most, and the total (95 %)."""
        finest = [rate for rate in self.rates if rate is not None][-1]
        return {
            "one_box_95": float(sum_quantile(finest, 1, 0.95)),
            "total_95": 1.96 * sqrt(self.tree.total_variance),
        }

    def summary(self) -> dict[str, str]:
        """Describe columns, boxes and error in a few words."""
        errors = self.expected_error()
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size:,})" for axis in self.axes),
            "published": f"{self.parents.size:,} boxes, {self.ends.size:,} of them without parts",
            "records": f"about {max(self.total, 0):,.0f}",
            "error": f"the count of a box without parts is within {errors['one_box_95']:,.0f} of "
            "the truth with probability 95 %; within a box records count as spread evenly",
        }
