"""Published centers of clusters, with the noisy grid or tree that they were found in, if any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.projection import round_to_total
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import describe_stamps, whole_array
from dpublish.core.beside_labels import Ends, cell_width, with_interval, with_listed_ends
from dpublish.core.codecs import FIGURES, NOISY_SIZE, RATE, Codec, optional
from dpublish.core.grid_counts import GridCounts, first_integers, grid_ends, with_grid_bins
from dpublish.core.noisy_size import NoisySize
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import Metadata, Release, Tables, in_metadata, whole_column
from dpublish.data.axis import Axis
from dpublish.data.box import Box
from dpublish.data.column import NumberColumn
from dpublish.data.own_rows import own_rows
from dpublish.data.schema import Schema
from dpublish.errors import (
    CorruptRelease,
    InvalidParameter,
    InvalidQuery,
    require_count,
    require_known,
)
from dpublish.methods.kmeans.clustering import (
    Clustering,
    ClusterSize,
    cluster_grid,
    cluster_tree,
    estimate_sizes,
)
from dpublish.methods.kmeans.synopsis import GridSynopsis, MarginalTree
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

NOWHERE = -1
"""Label of a row that does not lie in the box, since one of its values is missing."""
NOTES = Codec(list, lambda plain, _: tuple(plain))
"""Texts."""
_RESERVED = ("cluster", "cell_number", "noisy_count", "estimated_count")
_ROUNDING = 1e-9  # of a column's width: from the box to the owner's units and back
_SIZE = optional(NOISY_SIZE)
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class KMeansRelease(Release):
    """Centers of clusters, in the owner's units.

    Attributes:
        receipt: What was guaranteed.
        schema: The columns of numbers that were clustered, and no others.
        centers: A row for each cluster, a column for each column of the schema.
        synopsis: Noisy grid over the same columns; None if the method made none.
        searched: Which cells of the grid centers are looked for in: all cells of the `"box"`,
            or those that stand out from the noise (`"dense"`).
        expected: The error predicted from public facts.
        notes: What else the method decided, and why, in words.
    """

    kind: ClassVar[str] = "centers"
    report: ClassVar[str] = "dpublish.methods.kmeans.report:section"

    receipt: Receipt
    schema: Schema
    centers: FloatArray
    synopsis: GridSynopsis | None = None
    searched: Literal["box", "dense"] = in_metadata(default="box")
    expected: Mapping[str, float] = in_metadata(FIGURES, default=dict)
    notes: tuple[str, ...] = in_metadata(NOTES, default=())

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
        require_known("search", self.searched, ("box", "dense"))

    @cached_property
    def box(self) -> Box:
        """The columns and their public bounds."""
        return Box.of(self.schema)

    @property
    def clusters(self) -> int:
        """Number of centers."""
        return len(self.centers)

    @property
    def gives_rows(self) -> bool:
        """Whether synthetic rows can be drawn: centers alone say too little for that."""
        return self.synopsis is not None

    def label(self, rows: Any) -> IntArray:
        """Find the nearest center of each of `rows`, the first of equals; -1 where one is missing.

        `rows` is a file, or any Arrow-compatible object.  Distances are measured in the box, where
        every column is as wide as any other.
        """
        points, known = self.scale(rows)
        return np.where(known, _nearest(points, self.box.scale(self.centers)), NOWHERE)

    def scale(self, rows: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Find where rows lie in the box, from -1 to 1, and in which rows all numbers are known."""
        table = own_rows(rows, self.box.names)
        points = np.empty((table.num_rows, self.box.dimensions))
        known = np.ones(table.num_rows, dtype=np.bool_)
        for number, column in enumerate(self.box.columns):
            points[:, number], keep = column.values(table[column.name])
            known &= True if keep is None else keep
        return self.box.scale(points), known

    def recluster(
        self, n_clusters: int, *, n_init: int = 30, seed: int | None = None
    ) -> FloatArray:
        """Find other centers, as many as wanted, in the published synopsis; free.

        Centers come in the owner's units.
        """
        require_count(n_clusters=n_clusters, n_init=n_init)
        found = self.find_clusters(n_clusters, n_init=n_init, rng=plain_generator(seed))
        return self.box.unscale(found.centers)

    def find_clusters(
        self, n_clusters: int, *, n_init: int, rng: np.random.Generator
    ) -> Clustering:
        """Find centers, between -1 and 1, in the noisy grid, as those of the release were."""
        return cluster_grid(
            self._require_grid("cannot be clustered again"),
            n_clusters,
            n_init=n_init,
            rng=rng,
            only_dense=self.searched == "dense",
        )

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the noisy grid: `n` of them, or as many as were counted.

        Values are drawn evenly within each cell.
        """
        grid = self._require_grid("gives no synthetic rows")
        rng = self.row_generator(n, seed, counted=grid.total)
        estimates = grid.estimates()
        if n is None:
            cells = np.repeat(np.arange(grid.size), round_to_total(estimates))
        else:
            cells = rng.choice(grid.size, size=n, p=estimates / estimates.sum())
        drawn = {}
        indices = np.unravel_index(cells, grid.sizes)
        for column, index, size in zip(self.box.columns, indices, grid.sizes, strict=True):
            drawn[column.name] = _draw_within(column, index, size, rng)
        return pa.table(drawn)

    @cached_property
    def cluster_sizes(self) -> tuple[ClusterSize, ...] | None:
        """Estimate the number of records of each cluster from the noisy grid; None without one.

        Post-processing: only cells that stand out from the noise are counted.
        """
        if self.synopsis is None:
            return None
        return estimate_sizes(self.synopsis, self.box.scale(self.centers))

    @property
    def needs_numbers(self) -> bool:
        """Whether a record without a number is left out: it is no point."""
        return True

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query` in the noisy grid, with a confidence interval."""
        return self._grid_counts.cells.answer(query, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
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
        """Return the centers and, if there is a grid, its cells by their middles."""
        names = _coordinate_names(self.box)
        numbers = np.arange(self.clusters, dtype=np.int64)
        centers = {
            "cluster": numbers,
            **dict(zip(names, np.ascontiguousarray(self.centers.T), strict=True)),
        }
        columns = dict(zip(names, self.box.columns, strict=True))
        described = describe_stamps(pa.table(centers), columns)
        if self.synopsis is None:
            return {"centers": described}
        middles = self.box.unscale(self.synopsis.cell_centers())
        cells = {
            "cell_number": np.arange(self.synopsis.size, dtype=np.int64),
            **dict(zip(names, np.ascontiguousarray(middles.T), strict=True)),
            "noisy_count": self.synopsis.counts,
            "estimated_count": self.synopsis.estimates(),
        }
        table = describe_stamps(pa.table(cells), columns)
        table = with_grid_bins(table, self.box, self.synopsis.sizes, names)
        return {
            "centers": described,
            "cells": with_interval(table, cell_width(self.synopsis.rate)),
        }

    def metadata(self) -> dict[str, Any]:
        """Return the declared fields, and the grid's sizes and noise rates."""
        grid = self.synopsis
        return super().metadata() | {
            "grid": None if grid is None else list(grid.sizes),
            "noise_rate": None if grid is None else RATE.write(grid.rate),
            "records": None if grid is None else _SIZE.write(grid.records),
        }

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields, the centers and the grid."""
        table = tables["centers"].drop(["cluster"])
        if any(column.type != pa.float64() or column.null_count for column in table.columns):
            raise CorruptRelease("the centers are not numbers")
        grid = None
        if metadata["grid"] is not None:
            grid = GridSynopsis(
                sizes=tuple(metadata["grid"]),
                counts=whole_column(tables["cells"], "noisy_count"),
                rate=RATE.read(metadata["noise_rate"], schema),
                records=_SIZE.read(metadata["records"], schema),
            )
        centers = np.stack([column.to_numpy() for column in table.columns], axis=1)
        return super().read_parts(schema, metadata, tables) | {
            "centers": centers,
            "synopsis": grid,
        }

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe centers and grid in a few words."""
        text = {"centers": f"{self.clusters:,} in {', '.join(self.box.names)}"}
        if self.synopsis is not None:
            sizes = " x ".join(map(str, self.synopsis.sizes))
            text["grid"] = f"{sizes} cells, about {self.synopsis.total:,.0f} records"
        return text | ({"notes": "; ".join(self.notes)} if self.notes else {})


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeKMeansRelease(KMeansRelease):
    """Centers of clusters, and counts of pairs of columns from which rows can be drawn."""

    kind: ClassVar[str] = "tree-centers"
    report: ClassVar[str] = "dpublish.methods.kmeans.report:section"

    tree: MarginalTree

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.tree.order) != self.box.dimensions or self.synopsis is not None:
            raise InvalidParameter("the tree must have the same columns as the centers")

    @property
    def gives_rows(self) -> bool:
        """Whether synthetic rows can be drawn: always, from the tree."""
        return True

    def find_clusters(
        self, n_clusters: int, *, n_init: int, rng: np.random.Generator
    ) -> Clustering:
        """Find centers, between -1 and 1, in points drawn from the tree."""
        return cluster_tree(self.tree, n_clusters, n_init=n_init, rng=rng)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the tree: `n` of them, or as many as were counted."""
        size = round(self.tree.total) if n is None else n
        rng = self.row_generator(n, seed, counted=size)
        points = self.box.unscale(self.tree.draw(size, rng))
        columns = {}
        for column, values in zip(self.box.columns, points.T, strict=True):
            columns[column.name] = (
                whole_array(column.kind, np.rint(values).astype(np.int64))
                if column.partition.whole
                else pa.array(values)
            )
        return pa.table(columns)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query` in rows drawn from the tree."""
        return self._sample.answer(query, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        return self._sample.boxes(columns, lows, highs)

    @cached_property
    def _sample(self) -> SampledCount:
        return SampledCount(self, self.tree.total)

    def tables(self) -> dict[str, pa.Table]:
        """Return the centers, and the counts of each column of the tree."""
        tree, names = self.tree, self.box.names
        edges = list(zip(tree.parents[1:], tree.order[1:], strict=True))
        coarse, fine = tree.coarse_bins, tree.bins
        first = [names[tree.order[0]]] * fine
        pairs = {
            "column": [*first, *(names[child] for _, child in edges for _ in range(coarse * fine))],
            "bin": np.tile(np.arange(fine), 1 + coarse * len(edges)),
            "parent": pa.array(
                [None] * fine
                + [names[parent] for parent, _ in edges for _ in range(coarse * fine)],
                pa.string(),
            ),
            "parent_bin": np.concatenate(
                [np.zeros(fine, np.int64), np.tile(np.repeat(np.arange(coarse), fine), len(edges))]
            ),
            "noisy_count": np.concatenate([tree.root, tree.counts.ravel()]),
        }
        table = with_interval(pa.table(pairs), cell_width(tree.rate))
        return {**super().tables(), "marginals": self._with_tree_bins(table)}

    def _with_tree_bins(self, table: pa.Table) -> pa.Table:
        """Put the ends of bins beside their numbers, for a column and for the one above it."""
        tree, columns = self.tree, self.box.columns
        fine, coarse = tree.bins, tree.coarse_bins
        own = np.arange(fine * coarse) % fine
        above = np.arange(fine * coarse) // fine
        bins = [_bins_of(columns[tree.order[0]], fine, np.arange(fine))]
        parents: list[tuple[Axis | None, Ends | None, int]] = [(None, None, fine)]
        for child, parent in zip(tree.order[1:], tree.parents[1:], strict=True):
            bins.append(_bins_of(columns[child], fine, own))
            parents.append(_bins_of(columns[parent], coarse, above))
        table = with_listed_ends(table, "bin", bins)
        return with_listed_ends(table, "parent_bin", parents)

    def metadata(self) -> dict[str, Any]:
        """Return what the centers need, the shape of the tree and its noise."""
        tree = self.tree
        return super().metadata() | {
            "tree": {
                "order": list(tree.order),
                "parents": list(tree.parents),
                "bins": tree.bins,
                "coarse_bins": tree.coarse_bins,
                "rate": RATE.write(tree.rate),
                "records": tree.records.value,
                "records_rate": RATE.write(tree.records.rate),
            }
        }

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read what the centers need, and the tree."""
        tree = metadata["tree"]
        fine = tree["bins"]
        counts = whole_column(tables["marginals"], "noisy_count")
        shape = (len(tree["order"]) - 1, tree["coarse_bins"], fine)
        return super().read_parts(schema, metadata, tables) | {
            "tree": MarginalTree(
                order=tuple(tree["order"]),
                parents=tuple(tree["parents"]),
                root=counts[:fine],
                counts=counts[fine:].reshape(shape),
                rate=RATE.read(tree["rate"], schema),
                records=NoisySize(tree["records"], RATE.read(tree["records_rate"], schema)),
            )
        }

    def summary(self) -> dict[str, str]:
        """Describe centers and tree in a few words."""
        names = self.box.names
        edges = zip(self.tree.parents[1:], self.tree.order[1:], strict=True)
        shown = ", ".join(f"{names[parent]} - {names[child]}" for parent, child in edges)
        described = super().summary()
        return {"centers": described.pop("centers"), "marginals": shown, **described}


def _nearest(points: FloatArray, centers: FloatArray) -> IntArray:
    """Find the nearest center of each point, some points at a time."""
    found = np.empty(len(points), dtype=np.int64)
    step = max(_BLOCK // centers.size, 1)
    for start in range(0, len(points), step):
        apart = points[start : start + step, None, :] - centers
        found[start : start + step] = np.square(apart).sum(axis=2).argmin(axis=1)
    return found


def _draw_within(
    column: NumberColumn, cells: NDArray[np.intp], size: int, rng: np.random.Generator
) -> pa.Array:
    """Draw a value from each cell of a column: of an integer one, among the integers in it."""
    if column.partition.whole:
        edges = first_integers(column, size).astype(np.int64)
        counts = np.maximum(np.diff(edges)[cells], 1)  # a cell may hold none: the nearest then
        found = edges[cells] + (rng.random(cells.size) * counts).astype(np.int64)
        return whole_array(column.kind, np.minimum(found, int(column.bounds[1])))
    low, high = column.bounds
    return pa.array(low + (cells + rng.random(cells.size)) / size * (high - low))


def _bins_of(column: NumberColumn, size: int, cells: IntArray) -> tuple[Axis, Ends, int]:
    """Return the ends of some of the equal bins of a column."""
    ends = grid_ends(column, size)
    return column.axis(), Ends(*(end.take(pa.array(cells)) for end in ends)), cells.size


def _coordinate_names(box: Box) -> list[str]:
    """Name the coordinates after the columns, but for names that the tables use themselves."""
    found: list[str] = []
    for name in box.names:
        chosen = name
        while chosen in _RESERVED or (chosen != name and chosen in box.names):
            chosen += "_"
        found.append(chosen)
    return found
