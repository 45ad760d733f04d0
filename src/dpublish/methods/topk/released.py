"""A published ranking: the most frequent values of a column, in order."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.core.answer import Answer
from dpublish.core.beside_labels import cell_width, with_bins, with_interval
from dpublish.core.codecs import BOOL, FIGURES, RATE, Codec, optional
from dpublish.core.query.cells import bounded
from dpublish.core.released import Release, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.query.language import parse_query, require_columns
from dpublish.data.query.weights import axis_weights
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.privacy.receipt import Receipt
from dpublish.types import IntArray

ONE_AXIS = Codec(
    lambda axis: {"column": axis.column, "level": axis.level},
    lambda plain, schema: schema[plain["column"]].axis(plain["level"]),
)


@dataclass(frozen=True, eq=False)
class TopKRelease(Release):
    """Chosen cells of one axis, with noisy counts if the release was made with counts.

    They are listed most frequent first if `is_ranked`; else their order means nothing.
    """

    kind: ClassVar[str] = "top-values"
    report: ClassVar[str] = "dpublish.methods.topk.report:section"

    receipt: Receipt
    schema: Schema
    axis: Axis = in_metadata(ONE_AXIS)
    chosen: IntArray = in_table("values", "cell_number")
    counts: IntArray | None = in_table("values", "noisy_count", optional=True, default=None)
    noise_rate: Fraction | None = in_metadata(optional(RATE), default=None)
    is_ranked: bool = in_metadata(BOOL, default=True)
    expected: Mapping[str, float] = in_metadata(FIGURES, default=dict)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        chosen = self.chosen
        inside = chosen.size == 0 or (chosen.min() >= 0 and chosen.max() < self.axis.size)
        if chosen.dtype != np.int64 or chosen.ndim != 1 or not inside:
            raise InvalidParameter("chosen values must be cells of the axis")
        if np.unique(chosen).size != chosen.size:
            raise InvalidParameter("a value is chosen once")
        if (self.counts is None) != (self.noise_rate is None):
            raise InvalidParameter("counts come with the rate of their noise")
        if self.noise_rate is not None:
            require_rate(self.noise_rate)
        counts = chosen if self.counts is None else self.counts
        if counts.dtype != np.int64 or counts.shape != chosen.shape:
            raise InvalidParameter("there must be one count for each chosen value")
        if not all(isinstance(v, float) and isfinite(v) for v in dict(self.expected).values()):
            raise InvalidParameter("expected errors must be finite numbers")

    @property
    def values(self) -> tuple[str, ...]:
        """The chosen values, in the order in which they are published."""
        return tuple(self.axis.labels[index] for index in self.chosen)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records with a chosen value, such as `item = bread`, or with one of several."""
        require_confidence(confidence)
        if self.counts is None or self.noise_rate is None:
            raise InvalidQuery("this release has no counts; release it with --with-counts")
        parsed = parse_query(query)
        if parsed.columns != (self.axis.column,):
            require_columns(parsed, (self.axis.column,))
            raise InvalidQuery(f"name published values of {self.axis.column!r}")
        weights = axis_weights(self.axis, parsed.about(self.axis.column))
        named = np.flatnonzero(weights)
        if np.any(weights[named] != 1) or not np.isin(named, self.chosen).all():
            raise InvalidQuery(f"name some of the {len(self.chosen)} published values only")
        value = float(self.counts[np.isin(self.chosen, named)].sum())
        width = half_width(self.noise_rate, np.ones(named.size), confidence)
        return bounded(value, value - width, value + width, confidence)

    def tables(self) -> dict[str, pa.Table]:
        """Return the values, with their rank if there is one, and their noisy counts if any."""
        columns: dict[str, Any] = {
            "cell_number": self.chosen,
            "value": pa.array(self.values, pa.string()),
        }
        if self.is_ranked:
            columns = {"rank": np.arange(1, len(self.chosen) + 1), **columns}
        if self.counts is not None:
            columns["noisy_count"] = self.counts
        table = with_bins(pa.table(columns), [self.axis], [self.chosen], ["value"])
        return {
            "values": table
            if self.noise_rate is None
            else with_interval(table, cell_width(self.noise_rate))
        }

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe what was chosen in a few words."""
        shown = ", ".join(self.values[:5]) + (", ..." if len(self.values) > 5 else "")
        size = f"{len(self.values)} of {self.axis.size:,} values of {self.axis.column}"
        lines = {"most frequent": f"{size}: {shown}"}
        if "omitted_excess_95" in self.expected:
            lines["error"] = (
                "no value omitted or ranked lower is more frequent by more than "
                f"{self.expected['omitted_excess_95']:,.0f} with probability 95 %"
            )
        if "comparison_deviation" in self.expected:
            lines["error"] = (
                "each comparison with the threshold was off by "
                f"{self.expected['comparison_deviation']:,.0f} (standard deviation)"
            )
        if self.noise_rate is not None:
            width = half_width(self.noise_rate, np.ones(1), 0.95)
            lines["counts"] = f"each within {width:,.0f} of the truth with probability 95 %"
        return lines
