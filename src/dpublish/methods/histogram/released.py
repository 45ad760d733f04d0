"""Published histograms: noisy counts of cells, confidence intervals, range counts and rows.

With a class column (`LabeledHistogramRelease`) they classify, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor, log10, prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import count_errors, half_width
from dpublish.accuracy.projection import plausible_counts
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column, draw_rows, label_columns
from dpublish.core.beside_labels import with_bins, with_interval
from dpublish.core.codecs import AXES, NOISY_SIZE, RATE, Codec, optional
from dpublish.core.noisy_size import NoisySize, estimate_total
from dpublish.core.prediction import UNKNOWN, encode_rows, label_rows
from dpublish.core.query.cells import CellCounts
from dpublish.core.released import CellRelease, Metadata, Tables, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.cut import cut_axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.sparse_counts import require_sparse
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray


class Marginal(NamedTuple):
    """Noisy counts along one axis, and how far noise may have moved each (95 %)."""

    labels: tuple[str, ...]
    counts: IntArray
    half_width: float


def few(number: float) -> str:
    """Write a number that may be far below 1 in decimals.

    >>> few(0.034), few(1.7), few(1234.5)
    ('0.034', '1.7', '1,234')
    """
    digits = 0 if number >= 100 or number == 0 else max(1 - floor(log10(number)), 0)
    return f"{number:,.{min(digits, 12)}f}"


@dataclass(frozen=True, eq=False)
class HistogramRelease(CellRelease):
    """Noisy counts of the cells of `axes`: all of them, or those at or above a threshold.

    `cells` and `counts` are parallel: cell numbers in row-major order and their noisy counts.
    A dense histogram lists every cell; a sparse one those whose noisy count reached
    `threshold`.  The noise of each count has rate `noise_rate` (two-sided geometric).
    `records` is the noisy number of all records that were counted, if it was paid for apart.
    """

    kind: ClassVar[str] = "histogram"
    report: ClassVar[str] = "dpublish.methods.histogram.report:section"

    receipt: Receipt
    schema: Schema
    axes: tuple[Axis, ...] = in_metadata(AXES)
    cells: IntArray = in_table("counts", "cell_number")
    counts: IntArray = in_table("counts", "noisy_count")
    noise_rate: Fraction = in_metadata(RATE)
    threshold: int | None = in_metadata(default=None)
    records: NoisySize | None = in_metadata(optional(NOISY_SIZE), default=None)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.noise_rate)
        _require_size(self.records)
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

    @cached_property
    def estimates(self) -> IntArray:
        """Whole, non-negative counts nearest to the noisy ones, with the same total."""
        return plausible_counts(self.counts)

    def indices(self) -> tuple[IntArray, ...]:
        """Position of each published cell along each axis."""
        return tuple(i.astype(np.int64) for i in np.unravel_index(self.cells, self.shape))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval.

        A dense histogram has an unbiased answer and the exact quantile of its noise.  A
        sparse one cannot see cells below its threshold; its interval allows for as many records
        in them as there are besides the published ones.  Where cells are covered in part, the
        interval holds wherever in them the records lie.
        """
        return self._cell_counts.answer(query, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        return self._cell_counts.boxes(columns, lows, highs)

    @cached_property
    def _cell_counts(self) -> CellCounts:
        sparse = None if self.threshold is None else self.cells
        return CellCounts(
            self.axes, self.counts, self.noise_rate, sparse, self.threshold, records=self.records
        )

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
            width = half_width(self.noise_rate, np.ones(cells_each), 0.95)
        else:
            width = float("nan")  # what the threshold hides has no symmetric confidence interval
        return Marginal(axis.labels, sums, width)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Without `n` every cell gives its estimated count; with `n`, cells are drawn in
        proportion (evenly if every estimate is zero).  Values are drawn evenly within a cell.
        """
        rng = self.row_generator(n, seed, counted=int(self.estimates.sum()))
        if n is None:
            picked = np.repeat(np.arange(self.cells.size), self.estimates)
        else:
            total = self.estimates.sum()
            probabilities = self.estimates / total if total else None
            if self.cells.size == 0:
                raise InvalidQuery("no cell reached the threshold, so there is nothing to draw")
            picked = rng.choice(self.cells.size, size=n, p=probabilities)
        return draw_rows(self.axes, np.unravel_index(self.cells[picked], self.shape), rng)

    def tables(self) -> dict[str, pa.Table]:
        """Return the cells with their labels, noisy counts and estimates."""
        columns: dict[str, pa.Array] = {
            "cell_number": pa.array(self.cells),
            **label_columns(self.axes, self.indices()),
            "noisy_count": pa.array(self.counts),
            "estimated_count": pa.array(self.estimates),
        }
        table = with_bins(pa.table(columns), self.axes, self.indices())
        errors, is_sparse = self.expected_error(), self.threshold is not None
        width = errors["all_cells_95" if is_sparse else "one_cell_95"]
        return {"counts": with_interval(table, width, at_once=is_sparse)}

    def metadata(self) -> dict[str, Any]:
        """Return whatever else is needed to load the value again; a size only if there is one."""
        found = super().metadata()
        if self.kind == HistogramRelease.kind and self.records is None:
            del found["records"]
        return found

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields; earlier histograms have no number of records."""
        earlier = {"records": None} if cls.kind == HistogramRelease.kind else {}
        return super().read_parts(schema, {**earlier, **metadata}, tables)

    def expected_error(self) -> dict[str, float]:
        """Return the errors of the counts, with probability 95 %."""
        return count_errors(self.noise_rate, self.size, self.threshold)

    def summary(self) -> dict[str, str]:
        """Describe axes, size and error in a few words."""
        errors = self.expected_error()
        published = f"{self.size:,} cells"
        if self.threshold is None:
            width = errors["one_cell_95"]
            claim = f"each count is within {width:,.0f} of the truth with probability 95 %"
        else:
            published = (
                f"{self.cells.size:,} of {published}, noisy count at least {self.threshold:,}"
            )
            claim = (
                f"all of them are within {errors['all_cells_95']:,.0f} of the truth with "
                f"probability 95 %; about {few(errors['expected_false_cells'])} of them stand for "
                "empty cells"
            )
        return {
            "counts by": " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes),
            "published": published,
            "error": claim,
        }


def _require_size(records: NoisySize | None) -> None:
    if records is None:
        return
    require_rate(records.rate)
    if type(records.value) is not int:
        raise InvalidParameter("the noisy number of records must be an integer")


def _read_cuts(plain: Sequence[Mapping[str, Any]], schema: Schema) -> tuple[Axis, ...]:
    axes = [cut_axis(schema[one["column"]], one["starts"]) for one in plain]
    classes = schema.columns[-1].axis()
    if axes and (axes[-1].column, axes[-1].size) == (classes.column, classes.size):
        axes[-1] = classes  # named after its values, not after groups of one value
    return tuple(axes)


CUT_AXES = Codec(
    lambda axes: [{"column": a.column, "starts": a.leaf_starts[:-1].tolist()} for a in axes],
    _read_cuts,
)
"""Columns of the schema, each cut through its taxonomy; the last is the class."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabeledHistogramRelease(HistogramRelease):
    """Noisy counts by predictors and, along the last axis, by class.

    A predictor that the method did not use has no axis.  The cells of an axis may lie on one
    level of its taxonomy or be a cut through it.  The schema lists all predictors and, last,
    the class column.
    """

    kind: ClassVar[str] = "labeled-histogram"
    report: ClassVar[str] = "dpublish.methods.histogram.report:labeled_section"

    axes: tuple[Axis, ...] = in_metadata(CUT_AXES)

    def __post_init__(self) -> None:
        super().__post_init__()
        for axis in self.axes:
            require_known("column", axis.column, self.schema.names)
        last = self.schema.columns[-1]
        if self.classes.column != last.name or self.classes.size != last.size:
            raise InvalidParameter("the last axis must list all classes, the schema's last column")

    @property
    def classes(self) -> Axis:
        """The axis of the class column."""
        return self.axes[-1]

    @property
    def predictors(self) -> tuple[Axis, ...]:
        """The axes of the columns from which the class is predicted."""
        return self.axes[:-1]

    @cached_property
    def total(self) -> float:
        """Estimate the number of records from all that was published of it."""
        if self.records is None:
            return float(self.counts.sum())
        if self.threshold is not None:  # what the threshold hides is not in the counts
            return float(self.records.value)
        return estimate_total(self.counts, self.noise_rate, self.records)

    @cached_property
    def estimates(self) -> IntArray:
        """Whole, non-negative counts nearest to the noisy ones that add up to `total`.

        Counts above a threshold stand as they are: records that it hides lie in other cells.
        """
        return plausible_counts(self.counts, None if self.threshold else self.total)

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class of each of `rows`: the one with the highest noisy count there."""
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        codes = encode_rows(table, self.schema, [axis.column for axis in self.predictors])
        return label_rows(self.classes, self.predict_codes(codes, table.num_rows))

    def predict_codes(self, codes: Mapping[str, IntArray], size: int) -> IntArray:
        """Predict classes from codes.

        A record with an unknown value, or in a cell that was not published, gets the
        majority class of all.
        """
        cells, known = self.locate(codes, size)
        return np.where(known, self.winners_of(cells), self.most_frequent)

    def winners_of(self, cells: IntArray) -> IntArray:
        """Find the class with the most noisy counts in cells of the predictors.

        In a cell that was not published it is the majority class of all.
        """
        occupied, winners = self._winners
        if not occupied.size:
            return np.full(cells.size, self.most_frequent, dtype=np.int64)
        index = np.minimum(np.searchsorted(occupied, cells), occupied.size - 1)
        return np.where(occupied[index] == cells, winners[index], self.most_frequent)

    def locate(
        self, codes: Mapping[str, IntArray], size: int
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """Find the cell of the predictors for each record, and mark those where all are known."""
        cells = np.zeros(size, dtype=np.int64)
        known = np.ones(size, dtype=np.bool_)
        for axis in self.predictors:
            if axis.column not in codes:
                raise InvalidQuery(f"the codes of column {axis.column!r} are missing")
            along = codes[axis.column]
            known &= along != UNKNOWN
            cells = cells * axis.size + axis.leaf_to_cell[np.maximum(along, 0)]
        return cells, known

    @cached_property
    def most_frequent(self) -> int:
        """The class with the most noisy counts in all, the first of equals."""
        sums = np.zeros(self.classes.size, dtype=np.int64)
        np.add.at(sums, self.cells % self.classes.size, self.counts)
        return int(np.argmax(sums))

    @cached_property
    def _winners(self) -> tuple[IntArray, IntArray]:
        """The published cells of the predictors, and the class with the most noisy counts there."""
        groups, labels = np.divmod(self.cells, self.classes.size)
        # By group, then count from high to low, then class: the first of each group wins.
        order = np.lexsort((labels, -self.counts, groups))
        occupied, first = np.unique(groups[order], return_index=True)
        return occupied, labels[order][first]

    def rows(
        self, n: int | None = None, *, seed: int | None = None, fill: bool = False
    ) -> pa.Table:
        """Draw synthetic rows, values drawn evenly within each cell.

        Predictors without an axis are left out, or with `fill` drawn evenly from their whole
        public domain: such values depend on no record.
        """
        drawn = super().rows(n, seed=seed)
        if not fill:
            return drawn
        return fill_columns(drawn, self.schema, seed)

    def summary(self) -> dict[str, str]:
        """Describe target, axes, size and error in a few words."""
        described = super().summary()
        described.pop("counts by")
        used = " x ".join(f"{a.column} ({a.size})" for a in self.predictors) or "no column"
        return {
            "predicts": f"{self.classes.column} ({', '.join(self.classes.labels)})",
            "from": f"{used}; {prod(a.size for a in self.predictors):,} cells",
            **described,
        }


def fill_columns(rows: pa.Table, schema: Schema, seed: int | None) -> pa.Table:
    """Add the schema's other columns, drawn evenly, and put all in the schema's order."""
    rng = plain_generator(None if seed is None else seed + 1)
    root = np.zeros(rows.num_rows, dtype=np.intp)
    columns = {
        column.name: rows[column.name]
        if column.name in rows.column_names
        else draw_column(column.axis(0), root, rng)
        for column in schema.columns
    }
    return pa.table(columns)
