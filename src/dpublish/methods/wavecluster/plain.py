"""WaveCluster without noise: on public rows, or on what a release has published.

Nothing here adds noise.  Clusters of a release are as private as the release, whatever it is and
however often they are computed; clusters of rows are as private as the rows.
"""

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from dpublish.core.grid_counts import first_integers
from dpublish.core.released import Release
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.data.schema_file import to_schema
from dpublish.data.sources import open_table
from dpublish.data.table import Table, is_table
from dpublish.errors import InvalidParameter
from dpublish.methods.wavecluster.plan import WavePlan, WaveSettings
from dpublish.methods.wavecluster.released import LabeledCells, WaveGrid
from dpublish.methods.wavecluster.wavecluster import significant_cells
from dpublish.types import FloatArray, IntArray

_PARTS = 1 << 10  # estimates are whole multiples of this part of a record
_MOST_BOXES = 1 << 18  # that a release is asked to estimate at once


@dataclass(frozen=True, eq=False, kw_only=True)
class WaveClusters(LabeledCells):
    """Clusters of cells that plain WaveCluster found; as private as what it was given.

    Attributes:
        grid: Cells, wavelet, and to which coefficient each cell belongs.
        counts: Counts (or estimates) of all cells, row by row.
        labels: Cluster of each coefficient, shaped by the axes; -1 where there is none.
    """

    grid: WaveGrid
    counts: FloatArray
    labels: IntArray


@dataclass(frozen=True, kw_only=True)
class PlainWaveCluster(WaveSettings):
    """Find clusters of any shape without noise: in public rows, or in a release of any method.

    A release needs two or more columns of numbers, and has to count boxes or draw rows.  That is
    free: it reads what is published already.

    Parameters:
        columns, cells, wavelet, levels: The grid and how it is smoothed, as for `PrivTHR`.
        percentile, adjacency, min_cells: What makes a cluster, as for `PrivTHR`.

    Example:
        >>> from dpublish import PSD, Budget, PlainWaveCluster, datasets, seeded
        >>> points = datasets.table("shapes", 5_000)
        >>> release = PSD().release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> found = PlainWaveCluster(cells=16).of_release(release)
        >>> found.clusters, found.significant
        (1, 54)

    Reference:
        G. Sheikholeslami, S. Chatterjee, A. Zhang, "WaveCluster", VLDB 1998.
    """

    def of_rows(
        self, rows: Any, schema: Schema | str | PathLike[str] | None = None
    ) -> WaveClusters:
        """Cluster public or synthetic rows; what is found is as private as they are.

        Args:
            rows: A file, any Arrow-compatible object, or a table that is open already, such as
                that of `datasets.table`.
            schema: What is known about the rows, or the file that says it.  An open table has
                its own.
        """
        table = _opened(rows, schema)
        plan = WavePlan.of(table.schema, self)
        return self._cluster(plan, table.sum(plan.kernel))

    def of_release(
        self, release: Release, *, from_rows: bool = False, seed: int | None = None
    ) -> WaveClusters:
        """Cluster what a release has published: its estimates of cells, or its rows.

        Args:
            release: Any release that counts boxes or draws rows.
            from_rows: Take synthetic rows even if the release counts boxes.
            seed: Draw the same rows again.
        """
        plan = WavePlan.of(release.schema, self)
        counts = type(release).count_boxes is not Release.count_boxes
        if counts and not from_rows and _boxes(plan) <= _MOST_BOXES:
            estimates = cell_estimates(release, plan)
            whole = np.rint(np.maximum(estimates, 0) * _PARTS).astype(np.int64)
            return self._cluster(plan, whole, unit=_PARTS)
        return self.of_rows(release.rows(seed=seed), release.schema)

    def _cluster(self, plan: WavePlan, counts: IntArray, unit: int = 1) -> WaveClusters:
        significant = significant_cells(plan.transform.apply(counts), self.percentile)
        return WaveClusters(
            grid=plan.grid(), counts=counts.ravel() / unit, labels=plan.connect(significant)
        )


def _opened(rows: Any, schema: Schema | str | PathLike[str] | None) -> Table:
    """Open rows, unless they are; records are seen by the kernel of the table alone."""
    if not is_table(rows):
        return open_table(rows, to_schema(schema))
    table: Table = rows
    if schema is not None and to_schema(schema) != table.schema:
        raise InvalidParameter(
            "the table was opened with another schema; leave schema out, or pass the rows "
            "themselves"
        )
    return table


def _boxes(plan: WavePlan) -> int:
    found = 1
    for column in plan.box.columns:
        found *= column.partition.size
    return found


def cell_estimates(release: Release, plan: WavePlan) -> FloatArray:
    """Estimate the counts of the plan's cells from a release that counts boxes of codes.

    A box of codes that lies in several cells is divided in proportion to its length in each.
    """
    sizes = tuple(column.partition.size for column in plan.box.columns)
    lows = np.stack(np.unravel_index(np.arange(_boxes(plan)), sizes), axis=1).astype(np.int64)
    found = release.count_boxes(plan.box.names, lows, lows + 1).reshape(sizes)
    if not np.isfinite(found).all():
        raise InvalidParameter("the release does not count all cells of the grid")
    for axis, (column, cells) in enumerate(
        zip(plan.box.columns, plan.transform.sizes, strict=True)
    ):
        shares = _shares(column, cells)
        found = np.moveaxis(np.tensordot(shares, np.moveaxis(found, axis, 0), axes=1), 0, axis)
    return np.asarray(found, dtype=np.float64)


def _shares(column: NumberColumn, cells: int) -> FloatArray:
    """Compute the part of each code that lies in each cell, a row for each cell."""
    low, high = column.bounds
    ends = (
        first_integers(column, cells)
        if column.partition.whole
        else low + (high - low) * np.arange(cells + 1) / cells
    )
    codes = np.asarray(column.partition.edges)
    overlap = np.minimum(ends[1:, None], codes[1:]) - np.maximum(ends[:-1, None], codes[:-1])
    return np.asarray(np.maximum(overlap, 0) / np.diff(codes))
