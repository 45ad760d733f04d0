"""Where the trials of the comparison of private k-means are run, one at a time."""

from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.registry import make_method
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.point_clouds import POINT_SETS, cloud_schema, point_cloud
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.clustering import normalized_intra_cluster_variance
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.experiments.experiment import Trial
from dpublish.experiments.kmeans_parts import CLOUDS, NICV, NOISE_FREE, SECONDS
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.privacy.budget import Budget


class Task(NamedTuple):
    """Rows, what is known about them, how many clusters to find, and the same as points."""

    schema: Schema
    rows: pa.Table
    clusters: int
    points: NDArray[np.float64]

    @classmethod
    def of(cls, schema: Schema, rows: pa.Table, clusters: int) -> "Task":
        """Scale the rows to the box."""
        box = Box.of(schema)
        columns = [rows[name].to_numpy().astype(np.float64) for name in box.names]
        return cls(schema, rows, clusters, box.scale(np.stack(columns, axis=1)))


class Laboratory:
    """Runs trials on the point sets of a data folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._load = lru_cache(maxsize=1)(self._load_uncached)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Release centers, and measure their distance from the true points; and seconds."""
        given = trial.setting
        task = self._load(
            str(given["dataset"]), int(given.get("clusters", 0)), int(given.get("dimensions", 0))
        )
        if trial.method == NOISE_FREE:
            centers = plain_centers(task.points, task.clusters)
            return {NICV: normalized_intra_cluster_variance(task.points, centers)}
        settings: dict[str, Any] = {"n_clusters": task.clusters}
        if "blocks" in given:
            settings["blocks"] = int(given["blocks"])
        method = make_method(trial.method, settings)
        table = open_table(task.rows, task.schema)
        begin = perf_counter()
        release = method.release(table, budget=Budget.seeded(trial.epsilon), rng=trial.rng())
        seconds = perf_counter() - begin
        if not isinstance(release, KMeansRelease):
            raise InvalidParameter(f"{trial.method} does not publish centers")
        found = release.box.scale(release.centers)
        nicv = normalized_intra_cluster_variance(task.points, found)
        return {NICV: nicv, SECONDS: round(seconds, 3)}

    def _load_uncached(self, dataset: str, clusters: int, dimensions: int) -> Task:
        if dataset == CLOUDS:
            rows = point_cloud(clusters, dimensions)
            return Task.of(cloud_schema(dimensions), rows, clusters)
        points = POINT_SETS[dataset]
        return Task.of(points.schema, points.rows(self._folder), points.clusters)
