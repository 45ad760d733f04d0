"""Published clusters of any shape: labeled cells of a grid, and its noisy counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import isfinite, prod
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from dpublish.accuracy.projection import project_nonnegative, round_to_total
from dpublish.core.answer import Answer
from dpublish.core.grid_counts import GridCounts
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.released import Release, whole_column
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.wavecluster.grid import WaveGrid
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

NO_CLUSTER = -1
"""Label of what lies in no cluster, or has no place in the box."""
RESERVED = frozenset({"cell_number", "noisy_count", "cluster"})
"""Column names that the published tables use themselves."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WaveClusterRelease(Release):
    """Clusters of significant coefficients over a noisy grid.

    Attributes:
        receipt: What was guaranteed.
        schema: The columns of numbers that span the grid, and no others.
        grid: Cells, wavelet, and to which coefficient each cell belongs.
        counts: Noisy counts (or estimates made of such) of all cells, row by row.
        labels: Cluster of each coefficient, shaped by the axes; -1 where there is none.
        noise_rate: Rate of the noise of each count; None if counts are estimates.
        threshold: Least significant coefficient, if the method published one (d').
        chosen: How many coefficients were taken, if the method published that (k').
        expected: The error predicted from public facts.
    """

    kind: ClassVar[str] = "wave-clusters"

    receipt: Receipt
    schema: Schema
    grid: WaveGrid
    counts: FloatArray
    labels: IntArray
    noise_rate: Fraction | None = None
    threshold: float | None = None
    chosen: int | None = None
    expected: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        if self.grid.box.columns != self.schema.columns or RESERVED & set(self.schema.names):
            raise InvalidParameter(
                "the schema must list the columns of the grid, and none of them may be called "
                + ", ".join(sorted(RESERVED))
            )
        if self.counts.dtype != np.float64 or self.counts.shape != (self.grid.cells,):
            raise InvalidParameter("there must be a count for every cell")
        if self.labels.dtype != np.int64 or self.labels.shape != self.grid.shape:
            raise InvalidParameter("there must be a label for every coefficient")
        found = np.unique(self.labels[self.labels != NO_CLUSTER])
        if not np.array_equal(found, np.arange(found.size)):
            raise InvalidParameter("clusters must be numbered from 0, without gaps")
        self._require_numbers()

    def _require_numbers(self) -> None:
        if self.noise_rate is not None:
            require_rate(self.noise_rate)
        if self.chosen is not None and type(self.chosen) is not int:
            raise InvalidParameter("the number of chosen coefficients must be whole")
        numbers = (*self.expected.values(), 0.0 if self.threshold is None else self.threshold)
        if not all(isinstance(number, float) and isfinite(number) for number in numbers):
            raise InvalidParameter("threshold and expected errors must be finite numbers")
        if not np.isfinite(self.counts).all():
            raise InvalidParameter("noisy counts must be finite")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WaveClusterRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.schema == other.schema
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.labels, other.labels)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def box(self) -> Box:
        """The columns and their public bounds."""
        return self.grid.box

    @property
    def clusters(self) -> int:
        """Number of clusters; there may be none."""
        return int(self.labels.max(initial=NO_CLUSTER)) + 1

    @property
    def significant(self) -> int:
        """Number of coefficients that lie in a cluster."""
        return int(np.count_nonzero(self.labels != NO_CLUSTER))

    @cached_property
    def cell_labels(self) -> IntArray:
        """The cluster of every cell of the grid, row by row; -1 where there is none."""
        return self.grid.spread(self.labels)

    def masses(self) -> FloatArray:
        """Add up the noisy counts of each cluster."""
        inside = self.cell_labels != NO_CLUSTER
        sums = np.zeros(self.clusters)
        np.add.at(sums, self.cell_labels[inside], self.counts[inside])
        return sums

    def label(self, rows: Any) -> IntArray:
        """Find the cluster of each of `rows`; -1 where there is none, or a value is missing.

        `rows` is any Arrow-compatible object.  Labels are looked up in the published cells.
        Labels of private rows would be private again: they are for their owner only.
        """
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        known = np.ones(table.num_rows, dtype=np.bool_)
        values = {}
        for column in self.box.columns:
            if table.column_names.count(column.name) != 1:
                raise InvalidQuery(f"the rows must have a column {column.name!r}, once")
            values[column.name], keep = column.values(table[column.name])
            known &= True if keep is None else keep
        places = self.grid.locate(values, table.num_rows)
        return np.where(known, self.cell_labels[places], NO_CLUSTER)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the grid: `n` of them, or as many as were counted.

        Values are spread evenly within each cell; `label` tells the cluster of each row.
        """
        require_count(seed=0 if seed is None else seed, n=0 if n is None else n, at_least=0)
        total = max(float(self.counts.sum()), 0.0)
        if (total if n is None else n) > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        estimates = project_nonnegative(self.counts, total)
        if n is None:
            cells = np.repeat(np.arange(self.counts.size), round_to_total(estimates))
        else:
            weight = estimates.sum()
            probabilities = (
                estimates / weight if weight > 0 else None
            )  # evenly, if nothing is known
            cells = rng.choice(self.counts.size, size=n, p=probabilities)
        return pa.table(self.grid.draw(cells, rng))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query` in the grid; with a bar if the noise is known."""
        return self._grid_counts.cells.answer(query, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        return self._grid_counts.boxes(columns, lows, highs)

    @cached_property
    def _grid_counts(self) -> GridCounts:
        return GridCounts(self.box, self.grid.sizes, self.counts, self.noise_rate)

    def tables(self) -> dict[str, pa.Table]:
        """Give the clusters, the labeled coefficients, and the cells by their middles."""
        places = np.flatnonzero(self.labels.ravel() != NO_CLUSTER)
        inside = self.labels.ravel()[places]
        clusters = {
            "cluster": np.arange(self.clusters, dtype=np.int64),
            "coefficients": np.bincount(inside, minlength=self.clusters).astype(np.int64),
            "noisy_count": self.masses(),
        }
        middles = np.ascontiguousarray(self.grid.centers().T)
        cells = {
            "cell_number": np.arange(self.counts.size, dtype=np.int64),
            **dict(zip(self.box.names, middles, strict=True)),
            "noisy_count": self.counts,
            "cluster": pa.array(self.cell_labels, mask=self.cell_labels == NO_CLUSTER),
        }
        return {
            "clusters": pa.table(clusters),
            "coefficients": pa.table({"coefficient_number": places, "cluster": inside}),
            "cells": pa.table(cells),
        }

    def metadata(self) -> dict[str, Any]:
        """Give the grid, the wavelet and what else was published."""
        return self.grid.to_dict() | {
            "noise_rate": None if self.noise_rate is None else format_epsilon(self.noise_rate),
            "threshold": self.threshold,
            "chosen": self.chosen,
            "expected": dict(self.expected),
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
        """Rebuild the clusters of a release folder."""
        grid = WaveGrid.from_dict(Box.of(schema), metadata)
        counts = tables["cells"]["noisy_count"]
        if counts.type != pa.float64() or counts.null_count:
            raise CorruptRelease("the noisy counts are not numbers")
        rate, threshold = metadata["noise_rate"], metadata["threshold"]
        return cls(
            receipt=receipt,
            schema=schema,
            grid=grid,
            counts=counts.to_numpy(),
            labels=_read_labels(tables["coefficients"], grid.shape),
            noise_rate=None if rate is None else parse_epsilon(rate),
            threshold=None if threshold is None else float(threshold),
            chosen=metadata["chosen"],
            expected={str(name): float(value) for name, value in metadata["expected"].items()},
        )

    def expected_error(self) -> dict[str, float]:
        """Give the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe clusters and grid in a few words."""
        grid = self.grid
        sizes = " x ".join(f"{n} ({m})" for n, m in zip(self.box.names, grid.sizes, strict=True))
        share = f"{self.significant:,} of {self.labels.size:,} coefficients"
        return {
            "clusters": f"{self.clusters:,}, made of {share}",
            "grid": f"{sizes}; about {max(self.counts.sum(), 0):,.0f} records",
            "wavelet": f"{grid.wavelet}, levels {grid.levels}, p = {float(grid.percentile):.4g}",
        }


def _read_labels(table: pa.Table, shape: tuple[int, ...]) -> IntArray:
    places = whole_column(table, "coefficient_number")
    ends = np.concatenate(([-1], places, [prod(shape)]))
    if np.diff(ends).min() < 1:
        raise CorruptRelease("the coefficients are not in order, or too many")
    labels = np.full(prod(shape), NO_CLUSTER, dtype=np.int64)
    labels[places] = whole_column(table, "cluster")
    return labels.reshape(shape)
