"""A published sample of the largest noisy cells of a domain that may be huge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite, prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import count_errors, require_confidence
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS, RESERVED
from dpublish.core.query.axes import read_boxes, read_question
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.sparse_counts import require_sparse
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

TABLE_COLUMNS = RESERVED | {"weight"}
"""Column names that the published table uses itself."""
_HIDDEN = "records in cells whose noisy count is below the threshold are not counted"


class SampleMarginal(NamedTuple):
    """Weights of the sampled cells, added up along one axis."""

    labels: tuple[str, ...]
    counts: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FilterPriorityRelease(Release):
    """A priority sample of the cells whose noisy count reached `threshold`.

    `cells` and `counts` are parallel: cell numbers in row-major order over the leaves of all
    columns, and their noisy counts (two-sided geometric noise of rate `noise_rate`).  A cell
    of noisy count c was kept with a probability of about c / `cutoff`, or for sure if c is greater,
    so it stands for max(c, cutoff) records.  A cutoff of 0: all cells were kept.
    """

    kind: ClassVar[str] = "cell-sample"

    receipt: Receipt
    schema: Schema
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    cutoff: float
    sample: int
    threshold: int
    noise_rate: Fraction

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_sparse(self.size, self.threshold, self.noise_rate)
        require_count(sample=self.sample)
        for array in (self.cells, self.counts):
            if array.dtype != np.int64 or array.shape != (self.cells.size,):
                raise InvalidParameter("cells and counts must be parallel integers")
        inside = self.cells.size == 0 or (self.cells[0] >= 0 and self.cells[-1] < self.size)
        if not inside or np.any(np.diff(self.cells) <= 0) or np.any(self.counts < self.threshold):
            raise InvalidParameter("a sample lists cells in order, none below the threshold")
        if type(self.cutoff) is not float or not isfinite(self.cutoff) or self.cutoff < 0:
            raise InvalidParameter("the cutoff must be a number of at least 0")
        if self.cells.size > self.sample or (self.cutoff and self.cells.size < self.sample):
            raise InvalidParameter("a sample is full if there is a cutoff, and never overfull")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FilterPriorityRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.schema == other.schema
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The columns at their leaves."""
        return tuple(column.axis() for column in self.schema.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of leaves of each column."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of cells of the domain, published or not."""
        return prod(self.shape)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """How many records each sampled cell stands for."""
        return np.maximum(self.counts.astype(np.float64), self.cutoff)

    @cached_property
    def indices(self) -> tuple[NDArray[np.int64], ...]:
        """Position of each sampled cell along each axis."""
        return tuple(i.astype(np.int64) for i in np.unravel_index(self.cells, self.shape))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, without a confidence interval.

        What lies in cells below the threshold is not seen, and how much that is is not known.
        """
        require_confidence(confidence)
        question = read_question(self.axes, query)
        parts = self.weights.copy()
        for index, along in zip(self.indices, question.weights, strict=True):
            parts *= along[index]
        notes = "; ".join(note for note in (question.assumption, _HIDDEN) if note)
        return Answer(float(parts.sum()), None, None, confidence, notes)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        bounds = read_boxes(self.axes, columns, lows, highs)
        named = [place for place, axis in enumerate(self.axes) if axis.column in columns]
        sums = np.zeros(len(lows))
        for box, (low, high) in enumerate(zip(bounds.lows, bounds.highs, strict=True)):
            inside = np.ones(self.cells.size, dtype=np.bool_)
            for place in named:
                index = self.indices[place]
                inside &= (index >= low[place]) & (index < high[place])
            sums[box] = self.weights[inside].sum()
        return sums

    def marginal(self, column: str) -> SampleMarginal:
        """Add up the weights along all other axes."""
        names = [axis.column for axis in self.axes]
        require_known("column", column, names)
        which = names.index(column)
        sums = np.zeros(self.shape[which])
        np.add.at(sums, self.indices[which], self.weights)
        return SampleMarginal(self.axes[which].labels, sums)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as the sample stands for.

        Cells are drawn in proportion to their weights; without any, evenly from the domain.
        """
        require_count(seed=0 if seed is None else seed, n=0 if n is None else n, at_least=0)
        number = round(float(self.weights.sum())) if n is None else n
        if number > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        if self.cells.size:
            picked = rng.choice(self.cells.size, size=number, p=self.weights / self.weights.sum())
            positions = [index[picked] for index in self.indices]
        else:
            positions = [rng.integers(size, size=number) for size in self.shape]
        drawn = [draw_column(*pair, rng) for pair in zip(self.axes, positions, strict=True)]
        return pa.table(drawn, names=[axis.column for axis in self.axes])

    def tables(self) -> dict[str, pa.Table]:
        """Give the sampled cells with their labels, noisy counts and weights."""
        columns: dict[str, pa.Array] = {"cell_number": pa.array(self.cells)}
        for axis, index in zip(self.axes, self.indices, strict=True):
            columns[axis.column] = pa.DictionaryArray.from_arrays(
                pa.array(index.astype(np.int32)), pa.array(axis.labels)
            )
        columns["noisy_count"] = pa.array(self.counts)
        columns["weight"] = pa.array(self.weights)
        return {"sample": pa.table(list(columns.values()), names=list(columns))}

    def metadata(self) -> dict[str, Any]:
        """Give the cutoff, the size of the sample, the threshold and the noise rate."""
        return {
            "cutoff": self.cutoff,
            "sample": self.sample,
            "threshold": self.threshold,
            "noise_rate": format_epsilon(self.noise_rate),
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
        """Rebuild the sample of a release folder."""
        return cls(
            receipt=receipt,
            schema=schema,
            cells=whole_column(tables["sample"], "cell_number"),
            counts=whole_column(tables["sample"], "noisy_count"),
            cutoff=float(metadata["cutoff"]),
            sample=metadata["sample"],
            threshold=metadata["threshold"],
            noise_rate=parse_epsilon(metadata["noise_rate"]),
        )

    def expected_error(self) -> dict[str, float]:
        """Give the errors of the noisy counts, with probability 95 %."""
        return count_errors(self.noise_rate, self.size, self.threshold)

    def summary(self) -> dict[str, str]:
        """Describe axes, sample and error in a few words."""
        errors = self.expected_error()
        sampled = f", those below {self.cutoff:,.0f} at random" if self.cutoff else ""
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes),
            "published": f"{self.cells.size:,} of {self.size:,} cells, noisy count at least "
            f"{self.threshold:,}{sampled}",
            "error": f"noisy counts are within {errors['all_cells_95']:,.0f} of the truth with "
            "probability 95 %; records in unpublished cells are missing",
        }
