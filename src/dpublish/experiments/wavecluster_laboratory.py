"""Where private WaveClusters are tried: data, splits, the true clusters, one trial at a time.

NOT PRIVATE: true clusters are computed from true counts, to compare with.
"""

from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.registry import make_method
from dpublish.data.box import Box
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.datasets.shapes import SHAPES
from dpublish.evaluation.metrics.cells import (
    NONE,
    Labels,
    cell_dissimilarity,
    class_mismatch,
    cluster_count,
    f_measure,
    pair_mismatch,
)
from dpublish.evaluation.sklearn_adapter import label_points
from dpublish.experiments.experiment import Trial
from dpublish.experiments.wavecluster_parts import METHODS, PLAIN
from dpublish.experiments.wavecluster_summary import store_labels
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import WaveTransform, wave_clusters
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

FOLDS = 10
SECONDS = "seconds"
ADJACENCY = "full"  # with corners: only so does the plain algorithm see three spirals in DS2


class Split(NamedTuple):
    """Nine tenths of the points to find clusters in, one tenth (in -1 .. 1) to measure on."""

    table: Table
    box: Box
    held_out: FloatArray


class Truth(NamedTuple):
    """What the plain algorithm finds, and the values of the cells in which it finds it."""

    labels: Labels
    values: FloatArray


class Laboratory:
    """Runs trials on the sets of points of a data folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._rows = lru_cache(maxsize=1)(self._read)
        self._split = lru_cache(maxsize=1)(self._cut)
        self._true = lru_cache(maxsize=1)(self._cluster_plainly)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish clusters of nine tenths of the points, and compare them with the true ones."""
        dataset, fold = str(trial.setting["dataset"]), trial.seed % FOLDS
        cells, percentile = int(trial.setting["cells"]), str(trial.setting["percentile"])
        split, truth = self._split(dataset, fold), self._true(dataset, fold, cells, percentile)
        if trial.method == PLAIN:
            return _sizes(truth.labels) | _pictured(trial, truth.labels)
        method = METHODS[trial.method]
        common = {"cells": cells, "percentile": percentile, "adjacency": ADJACENCY}
        chosen = make_method(method.method, {**common, **method.settings})
        begin = perf_counter()
        made = chosen.release(split.table, budget=Budget.seeded(trial.epsilon), rng=trial.rng())
        figures = {SECONDS: round(perf_counter() - begin, 4)}
        release = cast("WaveClusterRelease", made)
        figures |= compare(truth.labels, release.labels, split.held_out) | _sizes(release.labels)
        if release.threshold is not None:
            figures["reached"] = float(np.count_nonzero(truth.values >= release.threshold))
        return figures | _pictured(trial, release.labels)

    def _read(self, dataset: str) -> pa.Table:
        return SHAPES[dataset].rows(self._folder)

    def _cut(self, dataset: str, fold: int) -> Split:
        rows, schema = self._rows(dataset), SHAPES[dataset].schema
        order = plain_generator(2024).permutation(rows.num_rows)
        is_held_out = order % FOLDS == fold
        box = Box.of(schema)
        away = rows.filter(pa.array(is_held_out))
        points = np.column_stack([away[name].to_numpy() for name in box.names])
        table = open_table(rows.filter(pa.array(~is_held_out)), schema)
        return Split(table, box, box.scale(points))

    def _cluster_plainly(self, dataset: str, fold: int, cells: int, percentile: str) -> Truth:
        split = self._split(dataset, fold)
        transform = WaveTransform((cells, cells))
        counts = split.table.sum(BoxGrid(split.box, transform.sizes))
        labels = wave_clusters(counts, transform, Fraction(percentile), ADJACENCY)
        return Truth(labels, transform.apply(counts) * transform.unit)


def compare(true: Labels, private: Labels, points: FloatArray) -> dict[str, float]:
    """Compare two clusterings of a grid's cells, with points between -1 and 1 to look at."""
    classes, others = _classify(true, points), _classify(private, points)
    return {
        "dsg": cell_dissimilarity(true, private),
        "ocm": class_mismatch(classes, others),
        "2ce": pair_mismatch(classes, others),
        "f": f_measure(_look_up(true, points), _look_up(private, points)),
    }


def _classify(labels: Labels, points: FloatArray) -> Labels:
    """Learn from the centers of labeled cells, and label points anywhere."""
    places = np.argwhere(labels != NONE)
    centers = (2 * places + 1) / np.array(labels.shape) - 1
    return label_points(centers, labels[labels != NONE], points)


def _look_up(labels: Labels, points: FloatArray) -> Labels:
    """Give points the label of the cell they lie in."""
    sides = np.array(labels.shape)
    places = np.minimum(((points + 1) / 2 * sides).astype(np.int64), sides - 1)
    found: Labels = labels[tuple(places.T)]
    return found


def _pictured(trial: Trial, labels: Labels) -> dict[str, float]:
    """Keep the cells themselves of the first run only."""
    return store_labels(labels) if trial.seed == 0 else {}


def _sizes(labels: Labels) -> dict[str, float]:
    return {
        "clusters": float(cluster_count(labels)),
        "cells": float(np.count_nonzero(labels != NONE)),
    }
