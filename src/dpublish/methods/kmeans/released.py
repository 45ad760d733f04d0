"""Published centers of clusters, and the noisy grid that they were found in, if there is one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.projection import round_to_total
from dpublish.core.answer import Answer
from dpublish.core.grid_counts import GridCounts, first_integers
from dpublish.core.noisy_size import MAX_ROWS, NoisySize
from dpublish.core.released import Release, whole_column
from dpublish.data.box import Box
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery, require_count
from dpublish.methods.kmeans.cluster_sizes import ClusterSize, estimate_sizes
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.methods.kmeans.synopsis_clusters import cluster_synopsis
from dpublish.methods.kmeans.weighted_lloyd import Clustering
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

NOWHERE = -1
"""Label of a row that has no place in the box, since one of its values is missing."""
_RESERVED = ("cluster", "cell_number", "noisy_count", "estimated_count")
_ROUNDING = 1e-9  # of a column's width: from the box to the owner's units and back
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class KMeansRelease(Release):
    """Centers of clusters, in the owner's units.

    Attributes:
        receipt: What was guaranteed.
        schema: The columns of numbers that were clustered, and no others.
        centers: A row for each cluster, a column for each column of the schema.
        synopsis: Noisy grid over the same columns; None if the method made none.
        expected: The error predicted from public facts.
        notes: What else the method decided, and why, in words.
    """

    kind: ClassVar[str] = "centers"

    receipt: Receipt
    schema: Schema
    centers: FloatArray
    synopsis: GridSynopsis | None = None
    expected: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        box = self.box
        if not all(isinstance(column, NumberColumn) for column in self.schema.columns):
            raise InvalidParameter("centers lie in columns of numbers, so a schema has no others")
        shape = self.centers.shape
        if self.centers.dtype != np.float64 or len(shape) != 2 or shape[1] != box.dimensions:
            raise InvalidParameter("each center has a number for each column")
        slack = _ROUNDING * (box.high - box.low)
        inside = (self.centers >= box.low - slack) & (self.centers <= box.high + slack)
        if not shape[0] or not inside.all():
            raise InvalidParameter("there must be centers, all of them within the bounds")
        if self.synopsis is not None and len(self.synopsis.sizes) != box.dimensions:
            raise InvalidParameter("the grid must have the same columns as the centers")
        if not all(isinstance(v, float) and isfinite(v) for v in self.expected.values()):
            raise InvalidParameter("expected errors must be finite numbers")
        if not all(isinstance(note, str) for note in self.notes):
            raise InvalidParameter("notes must be texts")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, KMeansRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.schema == other.schema
            and np.array_equal(self.centers, other.centers)
            and self.synopsis == other.synopsis
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def box(self) -> Box:
        """The columns and their public bounds."""
        return Box.of(self.schema)

    @property
    def clusters(self) -> int:
        """Number of centers."""
        return len(self.centers)

    def label(self, rows: Any) -> NDArray[np.int64]:
        """Find the nearest center of each of `rows`, the first of equals; -1 where one is missing.

        `rows` is any Arrow-compatible object.  Distances are measured in the box, where every
        column is as wide as any other.
        """
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        for name in self.box.names:
            if table.column_names.count(name) != 1:
                raise InvalidQuery(f"the rows must have a column {name!r}, once")
        points = np.empty((table.num_rows, self.box.dimensions))
        known = np.ones(table.num_rows, dtype=np.bool_)
        for place, column in enumerate(self.box.columns):
            points[:, place], keep = column.values(table[column.name])
            known &= True if keep is None else keep
        found = _nearest(self.box.scale(points), self.box.scale(self.centers))
        return np.where(known, found, NOWHERE)

    def recluster(self, clusters: int, *, starts: int = 30, seed: int | None = None) -> FloatArray:
        """Find other centers, as many as wanted, in the published synopsis; free.

        Centers come in the owner's units.
        """
        require_count(clusters=clusters, starts=starts)
        found = self.find_clusters(clusters, starts=starts, rng=plain_generator(seed))
        return self.box.unscale(found.centers)

    def find_clusters(self, clusters: int, *, starts: int, rng: np.random.Generator) -> Clustering:
        """Find centers, between -1 and 1, in the noisy grid, as the release's method does."""
        return cluster_synopsis(
            self._require_grid("cannot be clustered again"),
            clusters,
            starts=starts,
            rng=rng,
            only_dense=self.receipt.method == "kmeans",
        )

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the noisy grid: `n` of them, or as many as were counted.

        Values are spread evenly within each cell.
        """
        grid = self._require_grid("gives no synthetic rows")
        require_count(seed=0 if seed is None else seed, n=0 if n is None else n, at_least=0)
        if (grid.total if n is None else n) > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        estimates = grid.estimates()
        if n is None:
            cells = np.repeat(np.arange(grid.size), round_to_total(estimates))
        else:
            cells = rng.choice(grid.size, size=n, p=estimates / estimates.sum())
        drawn = {}
        places = np.unravel_index(cells, grid.sizes)
        for column, place, size in zip(self.box.columns, places, grid.sizes, strict=True):
            drawn[column.name] = _draw_within(column, place, size, rng)
        return pa.table(drawn)

    @cached_property
    def cluster_sizes(self) -> tuple[ClusterSize, ...] | None:
        """Estimate the number of records of each cluster from the noisy grid; None without one.

        Post-processing: only cells that stand out from the noise are counted.
        """
        if self.synopsis is None:
            return None
        return estimate_sizes(self.synopsis, self.box.scale(self.centers))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query` in the noisy grid, with a confidence interval."""
        return self._grid_counts.cells.answer(query, confidence)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> FloatArray:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        return self._grid_counts.boxes(columns, lows, highs)

    @cached_property
    def _grid_counts(self) -> GridCounts:
        grid = self._require_grid("answers no counts")
        return GridCounts(self.box, grid.sizes, grid.counts, grid.rate)

    def _require_grid(self, otherwise: str) -> GridSynopsis:
        if self.synopsis is None:
            raise InvalidQuery(
                f"a release of {self.receipt.method} {otherwise}: it holds no grid; "
                "use one that does, such as eugkm"
            )
        return self.synopsis

    def tables(self) -> dict[str, pa.Table]:
        """Give the centers and, if there is a grid, its cells by their middles."""
        names = _coordinate_names(self.box)
        numbers = np.arange(self.clusters, dtype=np.int64)
        centers = {
            "cluster": numbers,
            **dict(zip(names, np.ascontiguousarray(self.centers.T), strict=True)),
        }
        if self.synopsis is None:
            return {"centers": pa.table(centers)}
        middles = self.box.unscale(self.synopsis.cell_centers())
        cells = {
            "cell_number": np.arange(self.synopsis.size, dtype=np.int64),
            **dict(zip(names, np.ascontiguousarray(middles.T), strict=True)),
            "noisy_count": self.synopsis.counts,
            "estimated_count": self.synopsis.estimates(),
        }
        return {"centers": pa.table(centers), "cells": pa.table(cells)}

    def metadata(self) -> dict[str, Any]:
        """Give the grid's sizes and noise rates, the expected error and the notes."""
        grid = self.synopsis
        size = None if grid is None else grid.records
        return {
            "grid": None if grid is None else list(grid.sizes),
            "noise_rate": None if grid is None else format_epsilon(grid.rate),
            "records": None
            if size is None
            else {"count": size.value, "rate": format_epsilon(size.rate)},
            "expected": dict(self.expected),
            "notes": list(self.notes),
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
        """Rebuild the centers of a release folder."""
        table = tables["centers"].drop(["cluster"])
        if any(column.type != pa.float64() or column.null_count for column in table.columns):
            raise CorruptRelease("the centers are not numbers")
        columns = [column.to_numpy() for column in table.columns]
        return cls(
            receipt=receipt,
            schema=schema,
            centers=np.stack(columns, axis=1),
            synopsis=_read_grid(metadata, tables),
            expected={str(k): float(v) for k, v in metadata["expected"].items()},
            notes=tuple(metadata["notes"]),
        )

    def expected_error(self) -> dict[str, float]:
        """Give the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe centers and grid in a few words."""
        text = {"centers": f"{self.clusters:,} in {', '.join(self.box.names)}"}
        if self.synopsis is not None:
            sizes = " x ".join(map(str, self.synopsis.sizes))
            text["grid"] = f"{sizes} cells, about {self.synopsis.total:,.0f} records"
        return text | ({"notes": "; ".join(self.notes)} if self.notes else {})


def _nearest(points: FloatArray, centers: FloatArray) -> NDArray[np.int64]:
    """Find the nearest center of each point, some points at a time."""
    found = np.empty(len(points), dtype=np.int64)
    step = max(_BLOCK // centers.size, 1)
    for start in range(0, len(points), step):
        apart = points[start : start + step, None, :] - centers
        found[start : start + step] = np.square(apart).sum(axis=2).argmin(axis=1)
    return found


def _draw_within(
    column: NumberColumn, cells: NDArray[np.intp], size: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw a value from each cell of a column: of an integer one, among the integers in it."""
    if column.kind == "integer":
        edges = first_integers(column, size).astype(np.int64)
        counts = np.maximum(np.diff(edges)[cells], 1)  # a cell may hold none: the nearest then
        found = edges[cells] + (rng.random(cells.size) * counts).astype(np.int64)
        return np.minimum(found, int(column.bounds[1]))
    low, high = column.bounds
    return np.asarray(low + (cells + rng.random(cells.size)) / size * (high - low))


def _coordinate_names(box: Box) -> list[str]:
    """Name the coordinates after the columns, but for names that the tables use themselves."""
    found: list[str] = []
    for name in box.names:
        chosen = name
        while chosen in _RESERVED or (chosen != name and chosen in box.names):
            chosen += "_"
        found.append(chosen)
    return found


def _read_grid(metadata: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> GridSynopsis | None:
    if metadata["grid"] is None:
        return None
    size = metadata["records"]
    return GridSynopsis(
        sizes=tuple(metadata["grid"]),
        counts=whole_column(tables["cells"], "noisy_count"),
        rate=parse_epsilon(metadata["noise_rate"]),
        records=None if size is None else NoisySize(size["count"], parse_epsilon(size["rate"])),
    )
