"""A published histogram: noisy counts of cells, confidence intervals, range counts and rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import count_errors, half_width
from dpublish.accuracy.projection import plausible_counts
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.query.cells import CellCounts
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.sparse_counts import require_sparse
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator


class Marginal(NamedTuple):
    """Noisy counts along one axis, and how far noise may have moved each (95 %)."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64]
    half_width: float


@dataclass(frozen=True, eq=False)
class HistogramRelease(Release):
    """Noisy counts of the cells of `axes`: all of them, or those at or above a threshold.

    `cells` and `counts` are parallel: cell numbers in row-major order and their noisy counts.
    A dense histogram lists every cell; a sparse one those whose noisy count reached
    `threshold`.  The noise of each count has rate `noise_rate` (two-sided geometric).
    """

    kind: ClassVar[str] = "histogram"

    receipt: Receipt
    schema: Schema
    axes: tuple[Axis, ...]
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    noise_rate: Fraction
    threshold: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.noise_rate)
        if not self.axes or len({axis.column for axis in self.axes}) != len(self.axes):
            raise InvalidParameter("a histogram has at least one axis, each column once")
        for array in (self.cells, self.counts):
            if array.dtype != np.int64 or array.shape != (self.cells.size,):
                raise InvalidParameter("cells and counts must be parallel integers")
        if self.threshold is None:
            # Sizes first: a stranger's release may claim more cells than memory holds.
            if self.cells.size != self.size or np.any(self.cells != np.arange(self.size)):
                raise InvalidParameter("a dense histogram has a count for every cell, in order")
            return
        require_sparse(self.size, self.threshold, self.noise_rate)
        inside = self.cells.size == 0 or (self.cells[0] >= 0 and self.cells[-1] < self.size)
        if not inside or np.any(np.diff(self.cells) <= 0) or np.any(self.counts < self.threshold):
            raise InvalidParameter("a sparse histogram lists cells in order, none below threshold")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HistogramRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of cells of the domain, published or not."""
        return prod(self.shape)

    @cached_property
    def estimates(self) -> NDArray[np.int64]:
        """Whole, non-negative counts nearest to the noisy ones, with the same total."""
        return plausible_counts(self.counts)

    def indices(self) -> tuple[NDArray[np.int64], ...]:
        """Position of each published cell along each axis."""
        return tuple(i.astype(np.int64) for i in np.unravel_index(self.cells, self.shape))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval.

        A dense histogram gives an unbiased answer and the exact quantile of its noise.  A
        sparse one cannot see cells below its threshold; its interval allows for them, so it
        is wide where many cells are unpublished.
        """
        return self._cell_counts.answer(query, confidence)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        return self._cell_counts.boxes(columns, lows, highs)

    @cached_property
    def _cell_counts(self) -> CellCounts:
        sparse = None if self.threshold is None else self.cells
        return CellCounts(self.axes, self.counts, self.noise_rate, sparse, self.threshold)

    def marginal(self, column: str) -> Marginal:
        """Add up the counts along all other axes."""
        names = [axis.column for axis in self.axes]
        require_known("axis", column, names)
        which = names.index(column)
        axis = self.axes[which]
        sums = np.zeros(axis.size, dtype=np.int64)
        np.add.at(sums, self.indices()[which], self.counts)
        cells_each = self.size // axis.size
        if self.threshold is None:
            reach = half_width(self.noise_rate, np.ones(cells_each), 0.95)
        else:
            reach = float("nan")  # what the threshold hides has no symmetric confidence interval
        return Marginal(axis.labels, sums, reach)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Without `n` every cell gives its estimated count; with `n`, cells are drawn in
        proportion (evenly if every estimate is zero).  Values are spread evenly in a cell.
        """
        require_count(seed=0 if seed is None else seed, at_least=0)
        if (self.estimates.sum() if n is None else n) > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        if n is None:
            picked = np.repeat(np.arange(self.cells.size), self.estimates)
        else:
            require_count(n=n, at_least=0)
            total = self.estimates.sum()
            probabilities = self.estimates / total if total else None
            if self.cells.size == 0:
                raise InvalidQuery("no cell reached the threshold, so there is nothing to draw")
            picked = rng.choice(self.cells.size, size=n, p=probabilities)
        positions = np.unravel_index(self.cells[picked], self.shape)
        return pa.table(
            {
                axis.column: draw_column(axis, index, rng)
                for axis, index in zip(self.axes, positions, strict=True)
            }
        )

    def tables(self) -> dict[str, pa.Table]:
        """Give the cells with their labels, noisy counts and estimates."""
        columns: dict[str, pa.Array] = {"cell_number": pa.array(self.cells)}
        for axis, index in zip(self.axes, self.indices(), strict=True):
            columns[axis.column] = pa.DictionaryArray.from_arrays(
                pa.array(index.astype(np.int32)), pa.array(axis.labels)
            )
        columns["noisy_count"] = pa.array(self.counts)
        columns["estimated_count"] = pa.array(self.estimates)
        return {"counts": pa.table(list(columns.values()), names=list(columns))}

    def metadata(self) -> dict[str, Any]:
        """Give axes, noise rate and threshold."""
        return {
            "axes": [{"column": axis.column, "level": axis.level} for axis in self.axes],
            "noise_rate": format_epsilon(self.noise_rate),
            "threshold": self.threshold,
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
        """Rebuild the histogram of a release folder."""
        table = tables["counts"]
        return cls(
            receipt=receipt,
            schema=schema,
            axes=tuple(schema[a["column"]].axis(a["level"]) for a in metadata["axes"]),
            cells=whole_column(table, "cell_number"),
            counts=whole_column(table, "noisy_count"),
            noise_rate=parse_epsilon(metadata["noise_rate"]),
            threshold=metadata["threshold"],
        )

    def expected_error(self) -> dict[str, float]:
        """Give the errors of the counts, with probability 95 %."""
        return count_errors(self.noise_rate, self.size, self.threshold)

    def summary(self) -> dict[str, str]:
        """Describe axes, size and error in a few words."""
        errors = self.expected_error()
        published = f"{self.size:,} cells"
        if self.threshold is None:
            reach = errors["one_cell_95"]
            claim = f"each count is within {reach:,.0f} of the truth with probability 95 %"
        else:
            published = f"{self.cells.size:,} of {published}, noisy count at least {self.threshold}"
            claim = (
                f"all of them are within {errors['all_cells_95']:,.0f} of the truth with "
                f"probability 95 %; about {errors['expected_false_cells']:,.2g} of them stand for "
                "empty cells"
            )
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes),
            "published": published,
            "error": claim,
        }
