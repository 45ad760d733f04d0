"""A published histogram with a class column: classify with it, or draw rows to train on."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.projection import plausible_counts
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import NoisySize, estimate_total
from dpublish.core.prediction import UNKNOWN, encode_rows, label_rows
from dpublish.core.released import whole_column
from dpublish.data.axis import Axis
from dpublish.data.cut import cut_axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator


@dataclass(frozen=True, eq=False, kw_only=True)
class LabeledHistogramRelease(HistogramRelease):
    """Noisy counts by predictors and, along the last axis, by class.

    A predictor that the method did not use has no axis.  The cells of an axis may lie on one
    level of its taxonomy or be a cut through it.  The schema lists all predictors and, last,
    the class column.
    """

    kind: ClassVar[str] = "labeled-histogram"

    records: NoisySize | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for axis in self.axes:
            require_known("column", axis.column, self.schema.names)
        last = self.schema.columns[-1]
        if self.classes.column != last.name or self.classes.size != last.size:
            raise InvalidParameter("the last axis must list all classes, the schema's last column")
        if self.records is not None:
            require_rate(self.records.rate)
            if type(self.records.value) is not int:
                raise InvalidParameter("the noisy number of records must be an integer")

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
    def estimates(self) -> NDArray[np.int64]:
        """Whole, non-negative counts nearest to the noisy ones that add up to `total`.

        Counts above a threshold stand as they are: records that it hides lie in other cells.
        """
        return plausible_counts(self.counts, None if self.threshold else self.total)

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class of each of `rows`: the one with the highest noisy count there."""
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        codes = encode_rows(table, self.schema, [axis.column for axis in self.predictors])
        return label_rows(self.classes, self.predict_codes(codes, table.num_rows))

    def predict_codes(self, codes: Mapping[str, NDArray[np.int64]], size: int) -> NDArray[np.int64]:
        """Predict classes from leaf codes.

        A record with an unknown value, or in a cell that was not published, gets the
        majority class of all.
        """
        cells, known = self.locate(codes, size)
        return np.where(known, self.winners_of(cells), self.most_frequent)

    def winners_of(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the class with the most noisy counts in cells of the predictors.

        In a cell that was not published it is the majority class of all.
        """
        occupied, winners = self._winners
        if not occupied.size:
            return np.full(cells.size, self.most_frequent, dtype=np.int64)
        places = np.minimum(np.searchsorted(occupied, cells), occupied.size - 1)
        return np.where(occupied[places] == cells, winners[places], self.most_frequent)

    def locate(
        self, codes: Mapping[str, NDArray[np.int64]], size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Find the cell of the predictors for each record, and mark those where all are known."""
        cells = np.zeros(size, dtype=np.int64)
        known = np.ones(size, dtype=np.bool_)
        for axis in self.predictors:
            if axis.column not in codes:
                raise InvalidQuery(f"the codes of column {axis.column!r} are missing")
            leaves = codes[axis.column]
            known &= leaves != UNKNOWN
            cells = cells * axis.size + axis.leaf_to_cell[np.maximum(leaves, 0)]
        return cells, known

    @cached_property
    def most_frequent(self) -> int:
        """The class with the most noisy counts in all, the first of equals."""
        sums = np.zeros(self.classes.size, dtype=np.int64)
        np.add.at(sums, self.cells % self.classes.size, self.counts)
        return int(np.argmax(sums))

    @cached_property
    def _winners(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The published cells of the predictors, and the class with the most noisy counts there."""
        groups, labels = np.divmod(self.cells, self.classes.size)
        # By group, then count from high to low, then class: the first of each group wins.
        order = np.lexsort((labels, -self.counts, groups))
        occupied, first = np.unique(groups[order], return_index=True)
        return occupied, labels[order][first]

    def rows(
        self, n: int | None = None, *, seed: int | None = None, fill: bool = False
    ) -> pa.Table:
        """Draw synthetic rows, values spread evenly within each cell.

        Predictors without an axis are left out, or with `fill` drawn evenly from their whole
        public domain: such values say nothing about anybody.
        """
        drawn = super().rows(n, seed=seed)
        if not fill:
            return drawn
        return fill_columns(drawn, self.schema, seed)

    def metadata(self) -> dict[str, Any]:
        """Give axes, noise rates and threshold."""
        axes = [{"column": a.column, "starts": a.leaf_starts[:-1].tolist()} for a in self.axes]
        size = self.records
        plain = None if size is None else {"count": size.value, "rate": format_epsilon(size.rate)}
        return super().metadata() | {"axes": axes, "records": plain}

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
        return cls(receipt=receipt, schema=schema, **cls.read_parts(schema, metadata, tables))

    @staticmethod
    def read_parts(
        schema: Schema, metadata: Mapping[str, Any], tables: Mapping[str, pa.Table]
    ) -> dict[str, Any]:
        """Read the fields of the histogram itself."""
        size = metadata["records"]
        axes = [cut_axis(schema[a["column"]], a["starts"]) for a in metadata["axes"]]
        classes = schema.columns[-1].axis()
        if axes and (axes[-1].column, axes[-1].size) == (classes.column, classes.size):
            axes[-1] = classes  # named after its leaves, not after groups of one leaf
        return {
            "axes": tuple(axes),
            "cells": whole_column(tables["counts"], "cell_number"),
            "counts": whole_column(tables["counts"], "noisy_count"),
            "noise_rate": parse_epsilon(metadata["noise_rate"]),
            "threshold": metadata["threshold"],
            "records": None
            if size is None
            else NoisySize(size["count"], parse_epsilon(size["rate"])),
        }

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
    nowhere = np.zeros(rows.num_rows, dtype=np.intp)
    columns = {
        column.name: rows[column.name]
        if column.name in rows.column_names
        else draw_column(column.axis(0), nowhere, rng)
        for column in schema.columns
    }
    return pa.table(columns)
