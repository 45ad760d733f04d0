"""Points to cluster: public tables, and simulated clouds for any k and d.

The tables are not part of this package; they are read from a data folder.  A cloud has k
clusters of different sizes, shapes and directions in d dimensions, as far apart as those of D. Su,
PhD thesis, Purdue, 2016, section 4.6, so that comparisons run anywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpublish.data.schema import Schema, column
from dpublish.datasets.parquet_files import missing_file, read_file
from dpublish.errors import require_count
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

_TAIL = 1.96  # deviations from the mean that hold 95 % of a cluster
_SEPARATIONS = (0.16, 0.26)
_WELL_SEPARATED = 0.342
_VARIANCE_RATIO = 10.0  # between the largest and the smallest variance of a cluster
_MOST_OUTLIERS = 100
_TRIES = 100
_BINS = 16  # a schema needs bins; clustering does not use them


def point_cloud(
    clusters: int, dimensions: int, records: int = 10_000, *, seed: int = 2024
) -> pa.Table:
    """Simulate Gaussian clusters in the box from -1 to 1, and a few outliers.

    Cluster i has i parts of the points.  The two clusters that come nearest to each other are
    between slightly overlapping and just apart: with their means a distance D apart and z
    standard deviations of T1 and T2 toward each other, (D - T1 - T2) / (D + T1 + T2) is drawn
    from 0.16 to 0.26.

    >>> point_cloud(2, 3, 5).column_names
    ['x1', 'x2', 'x3']
    """
    _require_sizes(clusters, dimensions, records)
    rng = plain_generator(seed)
    shapes = [_shape(dimensions, rng) for _ in range(clusters)]
    means = _means(shapes, rng.uniform(*_SEPARATIONS), rng)
    sizes = np.arange(1, clusters + 1) / (clusters * (clusters + 1) / 2)
    points = _draw(shapes, means, rng.choice(clusters, size=records, p=sizes), rng)
    outliers = min(int(rng.integers(_MOST_OUTLIERS + 1)), records // 10)
    points[:outliers] = rng.uniform(-1, 1, (outliers, dimensions))
    return _cloud_table(points)


def separated_cloud(
    clusters: int, dimensions: int, records: int = 10_000, *, seed: int = 2025
) -> pa.Table:
    """Simulate equally large, well separated Gaussian clusters in the box from -1 to 1.

    The clouds on which parameters are tuned (Synthe-PT): the nearest two clusters are separated
    by 0.342, which R's clusterGeneration calls well separated, and there are no outliers.

    >>> separated_cloud(2, 3, 5).column_names
    ['x1', 'x2', 'x3']
    """
    _require_sizes(clusters, dimensions, records)
    rng = plain_generator(seed)
    shapes = [_shape(dimensions, rng) for _ in range(clusters)]
    means = _means(shapes, _WELL_SEPARATED, rng)
    return _cloud_table(_draw(shapes, means, np.arange(records) % clusters, rng))


def uniform_cubes(dimensions: int, records: int = 10_000, *, seed: int = 2026) -> pa.Table:
    """Simulate points that fill the box from -1 to 1 evenly.

    They are what models of grids assume: 2^d clusters, each of which fills a cube.
    """
    _require_sizes(1, dimensions, records)
    return _cloud_table(plain_generator(seed).uniform(-1, 1, (records, dimensions)))


def _require_sizes(clusters: int, dimensions: int, records: int) -> None:
    require_count(clusters=clusters, dimensions=dimensions)
    require_count(records=records, at_least=0)


def _draw(
    shapes: Sequence[FloatArray], means: FloatArray, chosen: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Draw a point of each chosen cluster, and scale all of them to the box."""
    points = means[chosen]
    for number, shape in enumerate(shapes):
        own = chosen == number
        points[own] += rng.standard_normal((own.sum(), len(shape))) @ shape.T
    outer = np.abs(points).max(axis=0, initial=1e-9)
    return np.asarray(points / (1.02 * outer))


def _cloud_table(points: FloatArray) -> pa.Table:
    return pa.table({f"x{number}": values for number, values in enumerate(points.T, start=1)})


def cloud_schema(dimensions: int) -> Schema:
    """Return the schema of a cloud: every coordinate lies between -1 and 1."""
    require_count(dimensions=dimensions)
    names = [f"x{number}" for number in range(1, dimensions + 1)]
    return Schema(tuple(column(name, "numeric", bounds=[-1, 1]) for name in names))


def _shape(dimensions: int, rng: np.random.Generator) -> FloatArray:
    """Draw how a cluster is stretched and turned: a matrix to multiply standard points with."""
    turn, _ = np.linalg.qr(rng.standard_normal((dimensions, dimensions)))
    return np.asarray(turn * np.sqrt(rng.uniform(1, _VARIANCE_RATIO, dimensions)))


def _means(shapes: Sequence[FloatArray], separation: float, rng: np.random.Generator) -> FloatArray:
    """Draw means evenly, then move them as near together as the separation allows."""
    dimensions = len(shapes[0])
    drawn = rng.uniform(-1, 1, (_TRIES, len(shapes), dimensions))
    scales = [_needed_scale(means, shapes, separation) for means in drawn]
    best = int(np.argmin(scales))  # the least stretched of many is the most even
    return np.asarray(drawn[best] * scales[best])


def _needed_scale(means: FloatArray, shapes: Sequence[FloatArray], separation: float) -> float:
    """Compute by how much means must be stretched until no two clusters are nearer than that."""
    needed = 1.0 if len(shapes) == 1 else 0.0
    for first, second in combinations(range(len(shapes)), 2):
        between = means[first] - means[second]
        distance = float(np.linalg.norm(between))
        along = between / distance
        deviation = sum(
            float(np.linalg.norm(shapes[number].T @ along)) for number in (first, second)
        )
        wanted = _TAIL * deviation * (1 + separation) / (1 - separation)
        needed = max(needed, wanted / distance)
    return needed


@dataclass(frozen=True)
class PointSet:
    """A public table of points, and the number of clusters to find.

    Attributes:
        name: What the command line calls it.
        title: What it holds, in words.
        source: Where the points come from, in words.
        records: How many points it has; public, like all of it.
        clusters: Number of clusters to find.
        bounds: Public bounds of each column.
        kind: Whether its numbers are integers.
        file: Its Parquet file, or None if it is simulated.
        part: Which value of the file's column `dataset` marks its rows; None for all rows.
        make: Simulates its rows, or None.
        convert: Makes points of the rows of the file, or None if they are points already.
    """

    name: str
    title: str
    source: str
    records: int
    clusters: int
    bounds: Mapping[str, tuple[int, int]] = field(hash=False)
    kind: Literal["numeric", "integer"] = "numeric"
    file: str | None = None
    part: str | None = None
    make: Callable[[], pa.Table] | None = None
    convert: Callable[[pa.Table], pa.Table] | None = None

    @property
    def schema(self) -> Schema:
        """The columns and their bounds."""
        return Schema(
            tuple(
                column(name, self.kind, bounds=list(ends), bins=_BINS)
                for name, ends in self.bounds.items()
            )
        )

    def missing_file(self, folder: Path | None) -> str | None:
        """Name the file that the folder lacks, if any."""
        return missing_file(self.file, folder)

    def rows(self, folder: Path | None) -> pa.Table:
        """Read the points, or simulate them."""
        if self.make is not None:
            return self.make()
        names = list(self.bounds)
        wanted = [*names, *(["dataset"] if self.part else []), *(["count"] if self.convert else [])]
        read = read_file(self.name, self.file, folder, wanted)
        if self.part is not None:
            read = read.filter(pc.equal(read["dataset"].cast(pa.string()), self.part))
        if self.convert is not None:
            read = self.convert(read)
        return read.select(names)


def sample_cells(counted: pa.Table, records: int, *, seed: int = 2027) -> pa.Table:
    """Draw points from counts of the cells of a grid: cells by their counts, evenly within them.

    >>> cells = pa.table({"row": [0, 3], "col": [1, 2], "count": [0, 9]})
    >>> points = sample_cells(cells, 4)
    >>> bool(pc.all(pc.equal(pc.floor(points["row"]), 3.0)).as_py()), points.num_rows
    (True, 4)
    """
    rng = plain_generator(seed)
    counts = counted["count"].to_numpy()
    cells = rng.choice(len(counts), size=records, p=counts / counts.sum())
    drawn = {}
    for name in ("row", "col"):
        drawn[name] = counted[name].to_numpy()[cells] + rng.random(records)
    return pa.table(drawn)


GOWALLA_RECORDS = 107_091
POINT_SETS = {
    points.name: points
    for points in (
        PointSet(
            name="simulated",
            title="five clusters of different sizes in four dimensions",
            source="Points that this package simulates",
            records=10_000,
            clusters=5,
            bounds={f"x{number}": (-1, 1) for number in range(1, 5)},
            make=partial(point_cloud, 5, 4),
        ),
        PointSet(
            name="s1",
            title="15 round clusters in the plane",
            source="S1 of Fränti and Virmajoki, a benchmark for clustering",
            records=5_000,
            clusters=15,
            bounds={"x": (0, 1_000_000), "y": (0, 1_000_000)},
            file="clustering_s_sets.parquet",
            part="s1",
        ),
        PointSet(
            name="adult-num",
            title="six numbers about each person: age, years of education, hours of work, gains "
            "and losses, and a survey weight",
            source="UCI Adult, from the United States census bureau's survey of 1994",
            records=48_842,
            clusters=5,
            bounds={
                "age": (17, 90),
                "fnlwgt": (12_285, 1_490_400),
                "education_num": (1, 16),
                "capital_gain": (0, 99_999),
                "capital_loss": (0, 4_356),
                "hours_per_week": (1, 99),
            },
            kind="integer",
            file="adult.parquet",
        ),
        PointSet(
            name="gowalla",
            title="locations of check-ins: points drawn from the counts of a grid of 256 x 256 "
            "cells, as many as the thesis has (one location of each user)",
            source="Gowalla, a location-based social network, as counted by DPBench",
            records=GOWALLA_RECORDS,
            clusters=5,
            bounds={"row": (0, 256), "col": (0, 256)},
            file="dpbench_2d.parquet",
            part="GOWALLA",
            convert=partial(sample_cells, records=GOWALLA_RECORDS),
        ),
        PointSet(
            name="gowalla-checkins",
            title="latitude and longitude of all check-ins of 1,000 users",
            source="Gowalla, a location-based social network",
            records=157_251,
            clusters=5,
            bounds={"lat": (-90, 90), "lon": (-180, 180)},
            file="gowalla_checkins_1000users.parquet",
        ),
    )
}
