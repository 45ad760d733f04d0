"""What a release is worth, in the unit of its goal: measured on public rows that stand in.

Predictions are measured by the share of wrong ones and by AUC, clusters by distance, rows by the
total variation distance of pairs of columns, counts and statistics by relative error, a ranking
by precision.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpublish.aggregates.counts import Counts
from dpublish.core.method import Method
from dpublish.core.prediction import UNKNOWN, encode_rows
from dpublish.core.released import Release
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema, parse_columns
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.evaluation.class_scores import release_scores
from dpublish.evaluation.classification import HeldOut
from dpublish.evaluation.features import encode_classes
from dpublish.evaluation.metrics.cells import class_mismatch
from dpublish.evaluation.metrics.classification import mean_area_under_curve, misclassification
from dpublish.evaluation.metrics.clustering import normalized_intra_cluster_variance
from dpublish.evaluation.metrics.queries import SANITY, relative_errors
from dpublish.evaluation.metrics.selection import false_negative_rate
from dpublish.evaluation.metrics.tables import total_variation
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.evaluation.workload import Workload, answers, ranges_between_records, true_counts
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.statistics.released import Statistic, StatisticsRelease
from dpublish.methods.topk.released import TopKRelease
from dpublish.methods.topk.topk import TopK
from dpublish.methods.wavecluster.plain import PlainWaveCluster
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.planning.goals import Goal, GoalTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.types import FloatArray, IntArray

Figures = dict[str, float]
Cells = tuple[IntArray, int]
"""The cell of each row along a column, and how many there are."""
MOST_CELLS = 20
"""Pairs of columns are compared on at most so many cells of a number."""
MOST_PAIRS = 300
QUERIES = 400
"""Range counts about one column, about two, and about three."""
_DEPTHS = (1, 2, 3)
_STARTS, _MOST_POINTS = 10, 20_000
_WITHOUT_NOISE = 1_000_000


@dataclass(frozen=True)
class Measure:
    """A figure by which a release is judged.

    Attributes:
        name: As it is written in `wanted`: `wrong`, `auc`, `distance` ...
        title: The same in words.
        is_better_low: Whether less is better.
    """

    name: str
    title: str
    is_better_low: bool


WRONG = Measure("wrong", "share of wrong predictions", True)
AUC = Measure("auc", "area under the ROC curve (AUC)", False)
RMSE = Measure("rmse", "root mean squared error, in units of the column", True)
R2 = Measure("r2", "share of the variance explained (R²)", False)
DISTANCE = Measure(
    "distance", "squared distance to the nearest center, over that without privacy", True
)
NICV = Measure("nicv", "squared distance to the nearest center (NICV), columns from -1 to 1", True)
MISMATCH = Measure("mismatch", "share of records in another cluster than without privacy", True)
TV = Measure("tv", "total variation distance of pairs of columns", True)
RELATIVE = Measure("relative", "mean relative error of range counts", True)
STATISTIC = Measure("relative", "median relative error of the statistics", True)
PRECISION = Measure("precision", "share of the most frequent values that are found", False)


@dataclass(frozen=True, eq=False)
class Measurer(ABC):
    """Measures releases of one method from the same rows; what is true of them is found once.

    Attributes:
        method: The method that is rehearsed.
        schema: The schema of the rows.
        rows: The rows that releases are made from.
        held_out: Further rows.
    """

    measures: ClassVar[tuple[Measure, ...]]
    method: Method[Any]
    schema: Schema
    rows: pa.Table
    held_out: pa.Table

    @abstractmethod
    def measure(self, release: Release, seed: int) -> Figures:
        """Measure a release; a measure that it does not allow is left out."""

    def notes(self) -> list[str]:
        """Return what the figures are to be compared with, in sentences."""
        return []


class ClassMeasurer(Measurer):
    """Measures predicted classes on rows that the release has not seen."""

    measures = (WRONG, AUC)

    @cached_property
    def _held_out(self) -> HeldOut:
        return HeldOut.of(self.held_out, self.schema, target_of(self.method))

    def notes(self) -> list[str]:
        """Return how often the most frequent class alone is wrong."""
        classes = self._held_out.classes
        wrong = 1 - np.bincount(classes).max() / len(classes)
        return [f"always predicting the most frequent class is wrong for {wrong:.3f} of these rows"]

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure the share of wrong predictions, and AUC where there are probabilities."""
        target, held_out = target_of(self.method), self._held_out
        labels = pa.table({target: release.predict(held_out.rows)})
        predicted = encode_classes(labels, self.schema, target)
        found = {WRONG.name: misclassification(predicted, held_out.classes)}
        scores = release_scores(release, held_out.rows)
        if scores is not None and np.unique(held_out.classes).size > 1:
            found[AUC.name] = mean_area_under_curve(scores, held_out.classes)
        return found


class NumberMeasurer(Measurer):
    """Measures predicted numbers on rows that the release has not seen."""

    measures = (RMSE, R2)

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure the error of predicted numbers, beside the variance of the true ones."""
        column = self.schema[target_of(self.method)]
        if not isinstance(column, NumberColumn):
            raise InvalidParameter(f"{column.name!r} is not a number")
        true, keep = column.values(self.held_out[column.name])
        known = np.ones(len(true), dtype=np.bool_) if keep is None else keep
        if not known.any():
            raise InvalidParameter(f"no row that is held out has a number in {column.name!r}")
        predicted = np.asarray(release.predict(self.held_out), dtype=np.float64)
        square = float(np.square(predicted - true)[known].mean())
        variance = float(np.var(true[known]))
        found = {RMSE.name: square**0.5}
        return found | ({R2.name: 1 - square / variance} if variance > 0 else {})


class ClusterMeasurer(Measurer):
    """Measures how far rows lie from centers."""

    measures = (DISTANCE, NICV)

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure the distance from the nearest center, and compare it with plain k-means."""
        if not isinstance(release, KMeansRelease):
            raise InvalidParameter("the release has no centers to measure")
        points, known = release.scale(self.rows)
        if not known.any():
            raise InvalidParameter("no row has a number in every column that is clustered")
        centers = release.box.scale(release.centers)
        found = normalized_intra_cluster_variance(points[known], centers)
        best = self._best(points[known], release.clusters)
        return {DISTANCE.name: found / best if best > 0 else 1.0, NICV.name: found}

    def _best(self, points: FloatArray, clusters: int) -> float:
        if "best" not in self._kept:
            chosen = plain_generator(0).permutation(len(points))[:_MOST_POINTS]
            centers = plain_centers(points[chosen], clusters, starts=_STARTS, seed=0)
            self._kept["best"] = normalized_intra_cluster_variance(points, centers)
        return self._kept["best"]

    @cached_property
    def _kept(self) -> dict[str, float]:
        return {}


class ShapeMeasurer(Measurer):
    """Compares clusters of any shape with those that WaveCluster finds without noise."""

    measures = (MISMATCH,)

    @cached_property
    def _true(self) -> IntArray:
        settings = {
            one.name: getattr(self.method, one.name)
            for one in fields(PlainWaveCluster)
            if hasattr(self.method, one.name)
        }
        found = PlainWaveCluster(**settings).of_rows(self.rows, self.schema)
        return found.label(self.rows)

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure the share of the rows that are put elsewhere."""
        if not isinstance(release, WaveClusterRelease):
            raise InvalidParameter("the release has no clusters to measure")
        return {MISMATCH.name: class_mismatch(self._true, release.label(self.rows))}


class PairMeasurer(Measurer):
    """Compares pairs of columns of synthetic rows with those of the rows released from."""

    measures = (TV, RELATIVE)

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure pairs of columns, and range counts."""
        drawn = release.rows(self.rows.num_rows, seed=seed)
        cells = {name: coarse_cells(drawn, self.schema, name) for name in drawn.column_names}
        pairs = self._pairs([name for name in self.schema.names if name in cells])
        found = [_distance(self._true, cells, pair) for pair in pairs]
        apart = {TV.name: float(np.mean(found))} if found else {}
        return apart | {RELATIVE.name: self._counts.error_of_rows(drawn)}

    @cached_property
    def _counts(self) -> "CountMeasurer":
        return CountMeasurer(self.method, self.schema, self.rows, self.held_out)

    @cached_property
    def _true(self) -> dict[str, Cells]:
        names = self.method.reads(self.schema)
        return {name: coarse_cells(self.rows, self.schema, name) for name in names}

    def _pairs(self, names: Sequence[str]) -> list[tuple[str, str]]:
        every = list(combinations(names, 2))
        order = plain_generator(0).permutation(len(every))[:MOST_PAIRS]
        return [every[index] for index in order]


class CountMeasurer(Measurer):
    """Measures range counts whose ends lie where records are."""

    measures = (RELATIVE,)

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure the mean relative error of range counts."""
        return {RELATIVE.name: self.error(release)}

    def error(self, release: Release) -> float:
        """Compute the mean relative error of a release's own answers, or of its rows'."""
        names = tuple(name for name in self.schema.names if name in release.schema.names)
        return self._mean([(answers(release, one), true) for one, true in self._workloads(names)])

    def error_of_rows(self, drawn: pa.Table) -> float:
        """Compute the mean relative error of counts of synthetic rows, as many as there are."""
        names = tuple(name for name in self.schema.names if name in drawn.column_names)
        codes = encode_rows(drawn, self.schema, names)
        counted = [(true_counts(codes, one), true) for one, true in self._workloads(names)]
        return self._mean([(found.astype(np.float64), true) for found, true in counted])

    def _mean(self, counted: Sequence[tuple[FloatArray, IntArray]]) -> float:
        sanity = max(SANITY * self.rows.num_rows, 1.0)
        return float(np.concatenate([relative_errors(*pair, sanity) for pair in counted]).mean())

    def _workloads(self, names: tuple[str, ...]) -> list[tuple[Workload, IntArray]]:
        if names not in self._kept:
            rng = plain_generator(0)
            codes = encode_rows(self.rows, self.schema, names)
            found = []
            for depth in self._depths(len(names)):
                sets = _column_sets(names, depth, rng)
                for chosen in sets:
                    part = max(QUERIES // len(sets), 1)
                    workload = ranges_between_records(codes, chosen, part, rng)
                    found.append((workload, true_counts(codes, workload)))
            self._kept[names] = found
        return self._kept[names]

    def _depths(self, columns: int) -> list[int]:
        """List how many columns queries are about; marginals are about one."""
        deepest = 1 if self.method.name == "marginals" else columns
        return [depth for depth in _DEPTHS if depth <= deepest]

    @cached_property
    def _kept(self) -> dict[tuple[str, ...], list[tuple[Workload, IntArray]]]:
        return {}


class StatisticsMeasurer(Measurer):
    """Compares statistics with those of the same release at an epsilon that hides nothing."""

    measures = (STATISTIC,)

    @cached_property
    def _true(self) -> dict[tuple[tuple[str, ...], str], float]:
        table = open_table(self.rows, self.schema)
        exact = self.method.release(table, budget=Budget.seeded(_WITHOUT_NOISE), rng=seeded(0))
        return {
            (one.group, one.measure): float(one.value)
            for one in _statistics(exact)
            if one.value is not None
        }

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure the median relative error; a number that is not given counts as 1."""
        found = {(one.group, one.measure): one.value for one in _statistics(release)}
        errors = [_relative(found.get(key), true) for key, true in self._true.items()]
        if not errors:
            raise InvalidParameter("the stand-in has no row to compute statistics of")
        return {STATISTIC.name: float(np.median(errors))}


class TopMeasurer(Measurer):
    """Measures how many of the most frequent values are found."""

    measures = (PRECISION,)

    @cached_property
    def _counts(self) -> IntArray:
        if not isinstance(self.method, TopK):
            raise InvalidParameter("the release has no ranked values to measure")
        ((name, level),) = parse_columns((self.method.column,), self.schema)
        kernel = Counts(self.schema, (((name, level),),))
        return np.asarray(open_table(self.rows, self.schema).sum(kernel)).ravel()

    def measure(self, release: Release, seed: int) -> Figures:
        """Measure the share of the most frequent values that are chosen; ties are as good."""
        if not isinstance(release, TopKRelease) or not isinstance(self.method, TopK):
            raise InvalidParameter("the release has no ranked values to measure")
        count = min(self.method.count, self._counts.size)
        chosen = release.chosen.tolist()[:count]
        return {PRECISION.name: 1 - false_negative_rate(chosen, self._counts, count)}


BY_TASK: Mapping[str, type[Measurer]] = {
    "classification": ClassMeasurer,
    "model fitting": ClassMeasurer,
    "clustering": ClusterMeasurer,
    "shapes": ShapeMeasurer,
    "counting": CountMeasurer,
    "synthesis": PairMeasurer,
    "ranking": TopMeasurer,
}
"""How the releases of a method are measured, by what the method is for."""

BY_GOAL: Mapping[GoalTask, type[Measurer]] = {"rows": PairMeasurer, "counts": CountMeasurer}
"""How they are measured if a goal is named that methods of several tasks may serve."""

NOT_REHEARSED: Mapping[str, str] = {
    "streams": "a stream needs tables that change over time, and a stand-in is one table; "
    "`dpublish plan` states the noise of a step",
    "personalized": "it needs the epsilon of each person; rehearse the method within it by itself",
    "bounds": "`dpublish plan` states its error, which has a formula",
}
"""Tasks that are not rehearsed, with what to do instead."""


def require_rehearsed(name: str, task: str) -> None:
    """Refuse a method of a task that is not rehearsed, and say what to do instead."""
    if task in NOT_REHEARSED:
        raise InvalidParameter(f"{name} is not rehearsed: {NOT_REHEARSED[task]}")
    if task not in BY_TASK:
        known = ", ".join(BY_TASK)
        raise InvalidParameter(f"{name} is for {task or 'no task'}; rehearsals know: {known}")


def measurer_class(method: Method[Any], schema: Schema, goal: Goal | None = None) -> type[Measurer]:
    """Choose how releases of a method are measured, by a goal or else by what it is for."""
    require_rehearsed(method.name, method.task)
    if goal is not None and goal.task in BY_GOAL and _serves(method, goal):
        return BY_GOAL[goal.task]
    if method.name == "statistics":
        return StatisticsMeasurer
    found = BY_TASK[method.task]
    if found is ClassMeasurer and isinstance(schema[target_of(method)], NumberColumn):
        return NumberMeasurer
    return found


def _serves(method: Method[Any], goal: Goal) -> bool:
    return method.task in {"synthesis", "counting"} and method.name != "statistics"


def target_of(method: Method[Any]) -> str:
    """Name the column that a method predicts."""
    target = getattr(method, "target", None)
    if not isinstance(target, str):
        raise InvalidParameter(f"{method.name} predicts no column; name it with --target")
    return target


def coarse_cells(rows: pa.Table, schema: Schema, name: str) -> Cells:
    """Find cells of a column: those of the schema, or at most 20 groups of neighbors.

    >>> from dpublish.data.schema import column
    >>> ages = Schema((column("age", "integer", bounds=[0, 99]),))
    >>> coarse_cells(pa.table({"age": [0, 4, 5, 99]}), ages, "age")[0].tolist()
    [0, 0, 1, 19]
    """
    axis = schema[name].axis()
    codes, ordinary = encode_rows(rows, schema, [name])[name], axis.ordinary_leaves
    if axis.kind == "category" or ordinary <= MOST_CELLS:
        return codes, axis.taxonomy.size
    groups = np.concatenate(
        [np.arange(ordinary) * MOST_CELLS // ordinary, MOST_CELLS + np.arange(axis.special)]
    )
    return np.where(codes == UNKNOWN, UNKNOWN, groups[codes]), MOST_CELLS + axis.special


def _distance(
    true: Mapping[str, Cells], drawn: Mapping[str, Cells], pair: tuple[str, str]
) -> float:
    """Compute the total variation distance of two columns' joint frequencies."""
    tables = []
    for cells in (true, drawn):
        (first, size), (second, width) = (cells[name] for name in pair)
        known = (first != UNKNOWN) & (second != UNKNOWN)
        joined = first[known] * width + second[known]
        tables.append(np.bincount(joined, minlength=size * width))
    return total_variation(*tables)


def _column_sets(
    names: Sequence[str], depth: int, rng: np.random.Generator
) -> list[tuple[str, ...]]:
    """Choose a few sets of columns to query together."""
    every = list(combinations(names, depth)) if len(names) <= 2 * max(_DEPTHS) else []
    if every:
        return every[: QUERIES // 4]
    drawn = (sorted(rng.choice(len(names), depth, replace=False)) for _ in range(25))
    return list(dict.fromkeys(tuple(names[index] for index in some) for some in drawn))


def _statistics(release: Release) -> list[Statistic]:
    if not isinstance(release, StatisticsRelease):
        raise InvalidParameter("the release has no statistics to measure")
    return release.statistics()


def _relative(found: float | None, true: float) -> float:
    if found is None:
        return 1.0
    return abs(found - true) / max(abs(true), 1.0) if found != true else 0.0
