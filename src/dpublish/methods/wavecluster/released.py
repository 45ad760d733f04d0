"""Published clusters of any shape: labeled cells of a grid, and its noisy counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite, prod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpublish.accuracy.projection import project_nonnegative, round_to_total
from dpublish.accuracy.rounding import format_number
from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import describe_stamps, whole_array
from dpublish.core.beside_labels import cell_width, with_interval
from dpublish.core.codecs import FIGURES, FLOAT, RATE, Codec, optional
from dpublish.core.grid_counts import GridCounts, with_grid_bins
from dpublish.core.released import Metadata, Release, Tables, in_metadata, whole_column
from dpublish.data.batch import Batch
from dpublish.data.box import Box
from dpublish.data.own_rows import own_rows
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.wavecluster.wavecluster import NO_CLUSTER
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

RESERVED = frozenset({"cell_number", "noisy_count", "cluster"})
"""Column names that the published tables use themselves."""


@dataclass(frozen=True)
class WaveGrid:
    """Cells of a box and the wavelet coefficients that they belong to; all of it is public.

    Attributes:
        box: The columns and their bounds.
        sizes: Number of cells along each column.
        shape: Number of coefficients along each column.
        owners: For each column, the coefficient to which each cell along it belongs.
        wavelet: Name of the wavelet.
        levels: How often each axis was halved.
        percentile: Part of the positive coefficients that is not significant (p).
        adjacency: Which coefficients are neighbors.
    """

    box: Box
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    owners: tuple[tuple[int, ...], ...]
    wavelet: str
    levels: int
    percentile: Fraction
    adjacency: str

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        _ = self.kernel  # refuses sizes that are no sizes, or too large
        require_count(levels=self.levels)
        if not isinstance(self.percentile, Fraction) or not 0 < self.percentile < 1:
            raise InvalidParameter("percentile must lie between 0 and 1")
        if not all(isinstance(text, str) for text in (self.wavelet, self.adjacency)):
            raise InvalidParameter("wavelet and adjacency must be names")
        if not len(self.owners) == len(self.sizes) == len(self.shape):
            raise InvalidParameter("there must be a list of owners and an axis for every column")
        for owner, cells, coefficients in zip(self.owners, self.sizes, self.shape, strict=True):
            require_count(coefficients=coefficients)
            if coefficients > cells:
                raise InvalidParameter("there cannot be more coefficients than cells")
            if len(owner) != cells or not all(type(index) is int for index in owner):
                raise InvalidParameter("every cell along a column belongs to one coefficient")
            if min(owner) < 0 or max(owner) >= coefficients:
                raise InvalidParameter("a cell belongs to a coefficient that does not exist")

    @cached_property
    def kernel(self) -> BoxGrid:
        """The kernel that counts records by cell."""
        return BoxGrid(self.box, self.sizes)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(self.sizes)

    def of_cells(self, values: IntArray) -> IntArray:
        """Return the value of its coefficient for every cell, row by row."""
        return np.asarray(values[np.ix_(*map(np.asarray, self.owners))]).ravel()

    def centers(self) -> FloatArray:
        """Return the middle of every cell in the owner's units, a row for each."""
        lines = [(2 * np.arange(size) + 1) / size - 1 for size in self.sizes]
        middles = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
        return self.box.unscale(middles.reshape(-1, len(self.sizes)))

    def locate(self, values: Mapping[str, FloatArray], size: int) -> IntArray:
        """Find the cell of each of `size` points, given by the values of the columns."""
        return self.kernel.locate(self.box.lattice(Batch(size, values=values)))

    def draw(self, cells: IntArray, rng: np.random.Generator) -> dict[str, pa.Array]:
        """Draw a point evenly from each of `cells`, as columns in the owner's units."""
        corners = np.stack(np.unravel_index(cells, self.sizes), axis=1)
        inside = (corners + rng.random(corners.shape)) / np.array(self.sizes)
        drawn = self.box.unscale(2 * inside - 1).T
        return {
            column.name: whole_array(column.kind, np.rint(line).astype(np.int64))
            if column.partition.whole
            else pa.array(line)
            for column, line in zip(self.box.columns, drawn, strict=True)
        }


def _write_grid(grid: WaveGrid) -> dict[str, Any]:
    return {
        "sizes": list(grid.sizes),
        "coefficients": list(grid.shape),
        "owners": [list(owner) for owner in grid.owners],
        "wavelet": grid.wavelet,
        "levels": grid.levels,
        "percentile": RATE.write(grid.percentile),
        "adjacency": grid.adjacency,
    }


def _read_grid(plain: Mapping[str, Any], schema: Schema) -> WaveGrid:
    return WaveGrid(
        box=Box.of(schema),
        sizes=tuple(plain["sizes"]),
        shape=tuple(plain["coefficients"]),
        owners=tuple(tuple(owner) for owner in plain["owners"]),
        wavelet=plain["wavelet"],
        levels=plain["levels"],
        percentile=RATE.read(plain["percentile"], schema),
        adjacency=plain["adjacency"],
    )


WAVE_GRID = Codec(_write_grid, _read_grid)
"""A grid and its wavelet; the box is that of the schema."""


class LabeledCells:
    """Cells of a grid with counts, and the clusters of their coefficients.

    Attributes:
        grid: Cells, wavelet, and to which coefficient each cell belongs.
        counts: Counts (or estimates) of all cells, row by row.
        labels: Cluster of each coefficient, shaped by the axes; -1 where there is none.
    """

    grid: WaveGrid
    counts: FloatArray
    labels: IntArray

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
        return self.grid.of_cells(self.labels)

    def masses(self) -> FloatArray:
        """Add up the noisy counts of each cluster."""
        inside = self.cell_labels != NO_CLUSTER
        sums = np.zeros(self.clusters)
        np.add.at(sums, self.cell_labels[inside], self.counts[inside])
        return sums

    def label(self, rows: Any) -> IntArray:
        """Find the cluster of each of `rows`; -1 where there is none, or a value is missing.

        `rows` is a file, or any Arrow-compatible object.  Labels are looked up in the published
        cells.  Labels of private rows would be private again: they are for their owner only.
        """
        table = own_rows(rows, self.box.names)
        known = np.ones(table.num_rows, dtype=np.bool_)
        values = {}
        for column in self.box.columns:
            values[column.name], keep = column.values(table[column.name])
            known &= True if keep is None else keep
        cells = self.grid.locate(values, table.num_rows)
        return np.where(known, self.cell_labels[cells], NO_CLUSTER)

    def tables(self) -> dict[str, pa.Table]:
        """Return the clusters, the labeled coefficients, and the cells by their middles."""
        numbers = np.flatnonzero(self.labels.ravel() != NO_CLUSTER)
        inside = self.labels.ravel()[numbers]
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
        columns = dict(zip(self.box.names, self.box.columns, strict=True))
        table = describe_stamps(pa.table(cells), columns)
        return {
            "clusters": pa.table(clusters),
            "coefficients": pa.table({"coefficient_number": numbers, "cluster": inside}),
            "cells": with_grid_bins(table, self.box, self.grid.sizes, self.box.names),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class WaveClusterRelease(LabeledCells, Release):
    """Clusters of significant coefficients over a noisy grid.

    Attributes:
        receipt: What was guaranteed.
        schema: The columns of numbers that span the grid, and no others.
        grid: Cells, wavelet, and to which coefficient each cell belongs.
        counts: Noisy counts (or estimates made of such) of all cells, row by row.
        labels: Cluster of each coefficient, shaped by the axes; -1 where there is none.
        noise_rate: Rate of the noise of each count; None if counts are estimates.
        threshold: Least significant coefficient in the scale of the wavelet, if the method
            published one (d'); with Haar in the plane, half the records of 2 x 2 cells.
        chosen: How many coefficients were taken, if the method published that (k').
        expected: The error predicted from public facts.
    """

    kind: ClassVar[str] = "wave-clusters"
    report: ClassVar[str] = "dpublish.methods.wavecluster.report:section"

    receipt: Receipt
    schema: Schema
    grid: WaveGrid = in_metadata(WAVE_GRID)
    counts: FloatArray
    labels: IntArray
    noise_rate: Fraction | None = in_metadata(optional(RATE), default=None)
    threshold: float | None = in_metadata(optional(FLOAT), default=None)
    chosen: int | None = in_metadata(default=None)
    expected: Mapping[str, float] = in_metadata(FIGURES, default=dict)

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
            raise InvalidParameter("the number of chosen coefficients must be an integer")
        numbers = (*self.expected.values(), 0.0 if self.threshold is None else self.threshold)
        if not all(isinstance(number, float) and isfinite(number) for number in numbers):
            raise InvalidParameter("threshold and expected errors must be finite numbers")
        if not np.isfinite(self.counts).all():
            raise InvalidParameter("noisy counts must be finite")

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the grid: `n` of them, or as many as were counted.

        Values are drawn evenly within each cell; `label` returns the cluster of each row.
        """
        total = max(float(self.counts.sum()), 0.0)
        rng = self.row_generator(n, seed, counted=total)
        estimates = project_nonnegative(self.counts, total)
        if n is None:
            cells = np.repeat(np.arange(self.counts.size), round_to_total(estimates))
        else:
            weight = estimates.sum()
            # Evenly, if nothing is known.
            probabilities = estimates / weight if weight > 0 else None
            cells = rng.choice(self.counts.size, size=n, p=probabilities)
        return pa.table(self.grid.draw(cells, rng))

    @property
    def needs_numbers(self) -> bool:
        """Whether a record without a number is left out: it is no point."""
        return True

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query` in the grid.

        The answer has a confidence interval if the rate of the noise is known.
        """
        return self._grid_counts.cells.answer(query, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        return self._grid_counts.boxes(columns, lows, highs)

    @cached_property
    def _grid_counts(self) -> GridCounts:
        return GridCounts(self.box, self.grid.sizes, self.counts, self.noise_rate)

    def tables(self) -> dict[str, pa.Table]:
        """Return clusters, coefficients and cells; counts with intervals if noise is known."""
        found = super().tables()
        if self.noise_rate is not None:
            found["cells"] = with_interval(found["cells"], cell_width(self.noise_rate))
        return found

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields, the counts and the labels."""
        found = super().read_parts(schema, metadata, tables)
        counts = tables["cells"]["noisy_count"]
        if counts.type != pa.float64() or counts.null_count:
            raise CorruptRelease("the noisy counts are not numbers")
        labels = _read_labels(tables["coefficients"], found["grid"].shape)
        return found | {"counts": counts.to_numpy(), "labels": labels}

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe clusters and grid in a few words."""
        grid = self.grid
        sizes = " x ".join(f"{n} ({m})" for n, m in zip(self.box.names, grid.sizes, strict=True))
        share = f"{self.significant:,} of {self.labels.size:,} coefficients"
        return {
            "clusters": f"{self.clusters:,}, made of {share}",
            "grid": f"{sizes}; about {max(self.counts.sum(), 0):,.0f} records",
            "wavelet": f"{grid.wavelet}, levels {grid.levels}, p = "
            f"{format_number(float(grid.percentile))}",
        }


def _read_labels(table: pa.Table, shape: tuple[int, ...]) -> IntArray:
    numbers = whole_column(table, "coefficient_number")
    ends = np.concatenate(([-1], numbers, [prod(shape)]))
    if np.diff(ends).min() < 1:
        raise CorruptRelease("the coefficients are not in order, or too many")
    labels = np.full(prod(shape), NO_CLUSTER, dtype=np.int64)
    labels[numbers] = whole_column(table, "cluster")
    return labels.reshape(shape)
