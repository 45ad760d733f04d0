"""What the comparison of private k-means runs: releases, references, and simulated errors.

All of it looks at true points, and noise is seeded: NOT PRIVATE, for public data only.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

from dpublish.core.method import Run
from dpublish.core.registry import make_method
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.datasets.point_clouds import (
    cloud_schema,
    point_cloud,
    separated_cloud,
    uniform_cubes,
)
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.clustering import (
    cluster_fit,
    normalized_intra_cluster_variance,
)
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.experiments.study import NOISE_FREE
from dpublish.experiments.trials import FIGURE, REFUSED, SECONDS, Trial
from dpublish.mechanisms.genetic_search import Breeding, breed, draw_uniform
from dpublish.methods.kmeans.choose_k import Validity, best_of, judge_clusters
from dpublish.methods.kmeans.clustering import cluster_grid
from dpublish.methods.kmeans.dplloyd_impr import count_weight
from dpublish.methods.kmeans.error_model import (
    block_error,
    blocks_like_rounds,
    grid_bias,
    grid_cells,
    grid_variance,
    round_error,
)
from dpublish.methods.kmeans.eugkm import RECORDS_PER_CELL, grid_side, release_grid
from dpublish.methods.kmeans.kernels import CenterLosses, ClusterSums
from dpublish.methods.kmeans.lloyd_round import lloyd_round
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import separated_centers
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource, plain_generator, seeded
from dpublish.types import FloatArray

NICV = "nicv"
CHOSEN, VALIDITY = "k", "validity"
MSE = "mse"
LARGEST, SMALLEST = "largest", "smallest"
"""Sizes of the clusters without privacy."""
STARTS = 30
"""How many runs of k-means the reference is the best of, as in the thesis."""
CLOUDS, TUNING, CUBES = "clouds", "clouds-pt", "cubes"
"""Simulated points: for each k and d, the same for tuning, and what models assume."""
SAG, NOISE = "sag", "noise"
LLOYD, GENE = "lloyd", "gene"
ROUND, GRID = "one-round", "one-grid"
ROUND_MODEL, GRID_MODEL, BIAS_MODEL = "model-round", "model-grid", "model-bias"
BLOCK_MODEL = "model-blocks"
SHARE = "hybrid-share"
_NO_NOISE = Fraction(10**9)
"""What takes the noise out of GkM: at this epsilon it is below the last digit shown."""
_GENE: dict[str, Any] = {"population": 200, "parents": 10}

PUBLISHED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "dplloyd-uniform": ("dplloyd", {"start": "uniform"}),
    "dplloyd-20": ("dplloyd", {"start": "uniform", "max_iter": 20}),
    "dplloyd-80": ("dplloyd", {"start": "uniform", "max_iter": 80}),
    "dplloyd-200": ("dplloyd", {"start": "uniform", "max_iter": 200}),
    "dplloyd-halving": ("dplloyd", {"schedule": "halving"}),
    "gkm-loose": ("gkm", {"output_range": "loose"}),
    "pgkm-paper": ("pgkm", {"choice": "plain", "parents": 10}),
}
"""Methods as their papers have them: the method, and its settings."""
KNOBS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "blocks": ("blocks", ("gkm",)),
    "rounds": ("max_iter", ("dplloyd",)),
    "theta": ("theta", ("eugkm", "ugkm", "hybrid")),
    "starts": ("n_init", ("eugkm", "ugkm", "mkm", "hybrid")),
}
"""Settings of trials that go to methods: the method's name for them, and which methods."""


class PointSource(Protocol):
    """Points to cluster, and how many clusters are looked for."""

    @property
    def clusters(self) -> int:
        """Number of clusters to find."""
        ...

    @property
    def schema(self) -> Schema:
        """The columns and their bounds."""
        ...

    def rows(self, folder: Path | None) -> pa.Table:
        """Read the points, or simulate them."""
        ...


class Task(NamedTuple):
    """Rows, what is known about them, how many clusters to find, and the same as points."""

    schema: Schema
    rows: pa.Table
    clusters: int
    points: FloatArray
    best: FloatArray
    """The best centers without privacy."""

    @classmethod
    def of(cls, schema: Schema, rows: pa.Table, clusters: int) -> "Task":
        """Scale the rows to the box, and find the best centers; incomplete rows are left out."""
        box = Box.of(schema)
        columns, known = [], np.ones(rows.num_rows, dtype=np.bool_)
        for column in box.columns:
            values, keep = column.values(rows[column.name])
            columns.append(values.astype(np.float64))
            known &= True if keep is None else keep
        points = box.scale(np.stack(columns, axis=1)[known])
        return cls(schema, rows, clusters, points, plain_centers(points, clusters, starts=STARTS))

    def table(self) -> Table:
        """Open the rows."""
        return open_table(self.rows, self.schema)

    def nicv(self, centers: FloatArray) -> float:
        """Measure the distance of the points from centers between -1 and 1."""
        return normalized_intra_cluster_variance(self.points, centers)


class KMeansRunner:
    """Runs trials on the point sets of a data folder."""

    def __init__(self, folder: Path | None, datasets: Mapping[str, PointSource]) -> None:
        self._folder = folder
        self._datasets = datasets
        self._load = lru_cache(maxsize=2)(self._make)
        self._curves: tuple[tuple[Any, ...], Curve] | None = None

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Run what the trial's figure and method ask for."""
        given = trial.setting
        sizes = int(given.get("clusters", 0)), int(given.get("dimensions", 0))
        task = self._load(trial.dataset, *sizes)
        if trial.method in (LLOYD, GENE):
            return {NICV: self._curve(task, trial).at(int(given["iterations"]))}
        run = _FIGURES.get(str(given.get(FIGURE)), measure_centers)
        return run(task, trial)

    def _make(self, dataset: str, clusters: int, dimensions: int) -> Task:
        if dataset in _CLOUD_ROWS:
            rows = _CLOUD_ROWS[dataset](clusters, dimensions)
            return Task.of(cloud_schema(dimensions), rows, clusters)
        points = self._datasets[dataset]
        return Task.of(points.schema, points.rows(self._folder), clusters or points.clusters)

    def _curve(self, task: Task, trial: Trial) -> "Curve":
        """Return the search that a trial is a moment of; it goes on where the last one stopped."""
        asked = trial.dataset, task.clusters, trial.method, trial.seed
        if self._curves is None or self._curves[0] != asked:
            steps = lloyd_steps if trial.method == LLOYD else gene_steps
            self._curves = asked, Curve(task, steps(task, trial.seed))
        return self._curves[1]


_CLOUD_ROWS: Mapping[str, Callable[[int, int], pa.Table]] = {
    CLOUDS: point_cloud,
    TUNING: separated_cloud,
    CUBES: lambda _, dimensions: uniform_cubes(dimensions),
}


# --- Releases and what they are compared with -----------------------------------------------


def measure_centers(task: Task, trial: Trial) -> dict[str, float]:
    """Release centers, and measure their distance from the true points; and seconds."""
    if trial.method == NOISE_FREE:
        fit = cluster_fit(task.points, task.best)
        return {NICV: fit.nicv, LARGEST: float(fit.sizes.max()), SMALLEST: float(fit.sizes.min())}
    if trial.method == NOISE:
        return {NICV: task.nicv(noisy_best(task, trial))}
    name, epsilon = ("gkm", _NO_NOISE) if trial.method == SAG else (trial.method, trial.epsilon)
    begin = perf_counter()
    try:
        release = release_of(task, name, trial, epsilon)
    except InvalidParameter:
        return {REFUSED: 1.0}  # so many rounds that the last would get next to nothing
    seconds = perf_counter() - begin
    found = release.box.scale(release.centers)
    return {NICV: task.nicv(found), SECONDS: round(seconds, 3)}


def release_of(
    task: Task, line: str, trial: Trial, epsilon: str | Fraction, **settings: Any
) -> KMeansRelease:
    """Release centers by a method, or by a method as published, with the trial's settings."""
    name, fixed = PUBLISHED.get(line, (line, {}))
    chosen: dict[str, Any] = {"n_clusters": task.clusters, **fixed, **settings}
    for knob, (setting, takers) in KNOBS.items():
        if knob in trial.setting and name in takers:
            value = trial.setting[knob]
            chosen[setting] = Fraction(value) if setting == "theta" else int(value)
    method = make_method(name, chosen)
    release = method.release(task.table(), budget=Budget.seeded(epsilon), rng=trial.rng())
    if not isinstance(release, KMeansRelease):
        raise TypeError(f"{name} does not publish centers")
    return release


def noisy_best(task: Task, trial: Trial) -> FloatArray:
    """Add to the best centers the noise that GkM adds to the mean over its blocks (Eq. 4.10)."""
    clusters, dimensions = task.best.shape
    scale = 2 * clusters * dimensions / (int(trial.setting["blocks"]) * float(trial.epsilon))
    drawn = plain_generator(int(trial.key, 16)).laplace(0, scale, task.best.shape)
    return np.clip(task.best + drawn, -1, 1)


# --- How many clusters ----------------------------------------------------------------------


def choose_clusters(task: Task, trial: Trial) -> dict[str, float]:
    """Choose the number of clusters by validity: from a noisy grid, or without privacy."""
    most = int(trial.setting["most"])
    candidates, starts = range(2, most + 1), int(trial.setting.get("starts", STARTS))
    if trial.method == NOISE_FREE:
        found = [_plain_validity(task.points, number, starts) for number in candidates]
    else:
        grid = release_of(
            task._replace(clusters=most), trial.method, trial, trial.epsilon, n_init=1
        )
        found = judge_clusters(grid, candidates, n_init=starts, seed=trial.seed)
    best = best_of(found)
    return {CHOSEN: float(best.n_clusters), VALIDITY: best.ratio}


def _plain_validity(points: FloatArray, clusters: int, starts: int) -> Validity:
    centers = plain_centers(points, clusters, starts=starts)
    within = normalized_intra_cluster_variance(points, centers)
    return Validity(clusters, within, float(pdist(centers, "sqeuclidean").min()))


# --- Searches without privacy, step by step ---------------------------------------------------


class Curve:
    """The distance after each step of a search."""

    def __init__(self, task: Task, steps: Iterator[FloatArray]) -> None:
        self._task = task
        self._steps = steps
        self._found: list[float] = []

    def at(self, step: int) -> float:
        """Return the NICV after so many steps, from 1."""
        while len(self._found) < step:
            self._found.append(self._task.nicv(next(self._steps)))
        return self._found[step - 1]


def lloyd_steps(task: Task, seed: int) -> Iterator[FloatArray]:
    """Move centers to the means of their points, from a start that looks at no point."""
    box, run = Box.of(task.schema), Run(task.table(), rng=seeded(seed))
    centers = separated_centers(task.clusters, box.dimensions, plain_generator(seed))
    while True:
        sums = run.sum(ClusterSums(box, centers))
        counts = sums[:, :1]
        centers = np.where(counts > 0, sums[:, 1:] / (np.maximum(counts, 1) * UNIT), centers)
        yield centers


def gene_steps(task: Task, seed: int) -> Iterator[FloatArray]:
    """Breed sets of centers from the best ten of each generation; the best of each is yielded."""
    rng = seeded(seed)
    box, run = Box.of(task.schema), Run(task.table(), rng=rng)
    plan = Breeding(bound=UNIT, rounds=1, population=_GENE["population"], parents=_GENE["parents"])
    shape = (task.clusters, box.dimensions)
    generation = draw_uniform(plan.population, task.clusters * box.dimensions, UNIT, rng)
    number = 0
    while True:
        number += 1
        losses = run.sum(CenterLosses(box, generation.reshape(-1, *shape)))
        parents = generation[np.argsort(losses, kind="stable")[: plan.parents]]
        yield parents[0].reshape(shape) / UNIT
        generation = breed(parents, plan, number, rng)


# --- Simulated errors of centers, and what models predict -------------------------------------


def true_means(points: FloatArray, centers: FloatArray) -> FloatArray:
    """Return the means of the points nearest to each center; a center without any stays."""
    nearest = cdist(points, centers, "sqeuclidean").argmin(axis=1)
    found = centers.copy()
    for number in np.unique(nearest):
        found[number] = points[nearest == number].mean(axis=0)
    return found


def means_after_round(
    task: Task, centers: FloatArray, epsilon: Fraction, rng: RandomSource, weight: Fraction | int
) -> FloatArray:
    """Move centers by one noisy round of k-means."""
    run = Run(task.table(), rng=rng)
    budget = Budget.seeded(epsilon)
    return lloyd_round(run, Box.of(task.schema), centers, count_weight=weight, budget=budget)


def noisy_grid(task: Task, side: int, epsilon: Fraction, rng: RandomSource) -> GridSynopsis:
    """Publish the noisy counts of a grid with as many cells along each column."""
    box = Box.of(task.schema)
    sizes = (side,) * box.dimensions
    run = Run(task.table(), rng=rng)
    return release_grid(run, box, sizes, None, budget=Budget.seeded(epsilon))


def means_in_grid(grid: GridSynopsis, centers: FloatArray) -> FloatArray:
    """Return the weighted means of the cells nearest to each center, as a round over them."""
    cells, weights = grid.cell_centers(), grid.counts.astype(np.float64)
    nearest = cdist(cells, centers, "sqeuclidean").argmin(axis=1)
    counts = np.bincount(nearest, weights=weights, minlength=len(centers))
    sums = np.stack(
        [np.bincount(nearest, weights * column, minlength=len(centers)) for column in cells.T], 1
    )
    return np.where(counts[:, None] >= 1, sums / np.maximum(counts, 1)[:, None], centers)


def mean_squared_error(found: FloatArray, true: FloatArray) -> float:
    """Return the squared distance of centers from the true ones, the mean over the clusters."""
    return float(np.square(found - true).sum(axis=1).mean())


def simulate_error(task: Task, trial: Trial) -> dict[str, float]:
    """Measure how far noise moves a center, or return what a model says of that."""
    epsilon = Fraction(trial.epsilon)
    middles = _cube_middles(task) if trial.dataset == CUBES else task.best
    task = task._replace(best=true_means(task.points, middles))
    if trial.method in _MODELS:
        return {MSE: _MODELS[trial.method](task, float(epsilon))}
    if trial.method == ROUND:
        found = means_after_round(task, task.best, epsilon, trial.rng(), 1)
    else:
        grid = noisy_grid(task, _side(task, float(epsilon)), epsilon, trial.rng())
        found = means_in_grid(grid, task.best)
    return {MSE: mean_squared_error(found, true_means(task.points, task.best))}


def _cube_middles(task: Task) -> FloatArray:
    sides = [[-0.5, 0.5]] * task.points.shape[1]
    return np.stack([axis.ravel() for axis in np.meshgrid(*sides, indexing="ij")], axis=1)


def _side(task: Task, epsilon: float) -> int:
    return grid_side("eug", len(task.points), task.points.shape[1], task.clusters, epsilon)


_MODELS: Mapping[str, Callable[[Task, float], float]] = {
    ROUND_MODEL: lambda task, epsilon: round_error(
        len(task.points) * epsilon, task.points.shape[1], len(task.best)
    ),
    GRID_MODEL: lambda task, epsilon: grid_variance(
        len(task.points) * epsilon,
        _side(task, epsilon) ** task.points.shape[1],
        task.points.shape[1],
        len(task.best),
    ),
    BIAS_MODEL: lambda task, epsilon: grid_bias(
        _side(task, epsilon) ** task.points.shape[1], task.points.shape[1]
    ),
    BLOCK_MODEL: lambda task, epsilon: block_error(
        blocks_like_rounds(len(task.points), 1, task.points.shape[1]),
        epsilon,
        task.points.shape[1],
        len(task.best),
    ),
}


# --- What a grid and a round leave of their errors ---------------------------------------------


def simulate_share(task: Task, trial: Trial) -> dict[str, float]:
    """Run a grid and a round that share epsilon, and return the error and what models say of it."""
    epsilon, part = Fraction(trial.epsilon), Fraction(int(trial.setting["percent"]), 100)
    records, dimensions = len(task.points), task.points.shape[1]
    rng = trial.rng()
    grid = noisy_grid(task, _side(task, float(epsilon * part)), epsilon * part, rng)
    starts = int(trial.setting.get("starts", STARTS))
    generator = plain_generator(trial.seed)
    begun = cluster_grid(grid, task.clusters, n_init=starts, rng=generator).centers
    weight = count_weight(dimensions)
    found = means_after_round(task, begun, epsilon * (1 - part), rng, weight)
    rows, columns = linear_sum_assignment(cdist(found, task.best, "sqeuclidean"))
    cells = grid_cells(records * float(epsilon * part), dimensions, RECORDS_PER_CELL)
    return {
        MSE: mean_squared_error(found[rows], task.best[columns]),
        "variance": grid_variance(
            records * float(epsilon * part), cells, dimensions, task.clusters
        ),
        "bias": grid_bias(cells, dimensions),
        "round": round_error(records * float(epsilon * (1 - part)), dimensions, task.clusters),
        "rho": float(np.abs(task.best).mean() / 2),
    }


_FIGURES: Mapping[str, Callable[[Task, Trial], dict[str, float]]] = {
    "choose-k": choose_clusters,
    "error-model": simulate_error,
    "shares": simulate_share,
}
