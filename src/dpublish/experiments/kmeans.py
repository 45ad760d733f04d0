"""How far do records lie from centers that were found privately?

Section 4.6 of D. Su, PhD thesis, Purdue, 2016, on the public tables that can be had and on
simulated clouds of points: the normalized intra-cluster variance (NICV) of every method that
publishes k centers, against epsilon (its figures 4.1, 4.2 and 4.5), as heat maps over k and d
(4.3), and against the number of blocks of GkM (4.6); times (4.8) come with each of them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.registry import CATALOG, make_method, method_settings
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.point_clouds import POINT_SETS, cloud_schema, point_cloud
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.clustering import normalized_intra_cluster_variance
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.experiments.study import (
    EPSILON_AXIS,
    NOISE_FREE,
    Figure,
    Plan,
    Request,
    RunTrial,
    Setting,
    Study,
)
from dpublish.experiments.trials import SECONDS, Cells, Key, Result, Trial, how_often
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.plots.comparisons import HeatLayout, HeatPanel, Line, Panel, heat_maps
from dpublish.privacy.budget import Budget
from dpublish.report import section
from dpublish.report.section import Listing, Section
from dpublish.types import FloatArray

NAME = "kmeans"
NICV = "nicv"
REFERENCES = {NOISE_FREE: "No privacy: the best of ten runs of k-means"}
CLOUDS = "clouds"
"""Datasets that are simulated for each k and d."""
SLOW = {("adult-num", "mkm"), (CLOUDS, "mkm")}
"""Datasets on which a method takes minutes for one run: it is left out unless it is named."""
HEAT_MAP = "heat-map"
_NEAR = 3.0
"""Methods that end up within so many times the reference are shown again, closer."""
Cloud = tuple[int, int]
"""Numbers of clusters and of dimensions of a cloud."""

_figure = partial(Figure, measures=(NICV,), datasets=tuple(POINT_SETS))
FIGURES = {
    "epsilon": _figure(
        title="How well can clusters be found privately?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise, and centers "
        "come nearer to the records.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
    ),
    HEAT_MAP: _figure(
        title="How many clusters, in how many dimensions, can be found privately?",
        across="",
        reading="Each square is one simulated table. From left to right there are more clusters "
        "to find, from bottom to top more columns.",
        epsilons=("1",),
        values=(2, 4, 6, 8, 10),
        datasets=(CLOUDS,),
    ),
    "blocks": _figure(
        title="Into how many blocks should GkM deal the records?",
        across="number of blocks",
        reading="From left to right there are more blocks. The mean over more blocks has less "
        "noise, but each holds fewer records, so its own centers are worse.",
        epsilons=("0.1", "1"),
        key="blocks",
        values=(3, 10, 30, 100, 300, 1_000, 3_000),
        methods=("gkm",),
    ),
}


def kmeans_methods() -> tuple[str, ...]:
    """List the methods that have a setting for the number of clusters."""
    return tuple(
        name
        for name, entry in CATALOG.items()
        if entry.task == "clustering"
        and "n_clusters" in (setting.name for setting in method_settings(name))
    )


class Task(NamedTuple):
    """Rows, what is known about them, how many clusters to find, and the same as points."""

    schema: Schema
    rows: pa.Table
    clusters: int
    points: FloatArray

    @classmethod
    def of(cls, schema: Schema, rows: pa.Table, clusters: int) -> "Task":
        """Scale the rows to the box."""
        box = Box.of(schema)
        columns = [rows[name].to_numpy().astype(np.float64) for name in box.names]
        return cls(schema, rows, clusters, box.scale(np.stack(columns, axis=1)))


class KMeansRunner:
    """Runs trials on the point sets of a data folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._load = lru_cache(maxsize=1)(self._make)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Release centers, and measure their distance from the true points; and seconds."""
        given = trial.setting
        cloud = int(given.get("clusters", 0)), int(given.get("dimensions", 0))
        task = self._load(trial.dataset, *cloud)
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

    def _make(self, dataset: str, clusters: int, dimensions: int) -> Task:
        if dataset == CLOUDS:
            rows = point_cloud(clusters, dimensions)
            return Task.of(cloud_schema(dimensions), rows, clusters)
        points = POINT_SETS[dataset]
        return Task.of(points.schema, points.rows(self._folder), points.clusters)


class KMeansStudy(Study[Figure]):
    """Private centers beside the best ones."""

    name = NAME
    figures = FIGURES
    datasets = POINT_SETS
    references = REFERENCES
    unit = "record"
    table_caption = "NICV: mean ± standard deviation over the repeats."

    def plan(self, repeats: int, *, methods: Sequence[str] | None = None, **options: Any) -> Plan:
        """List the trials; methods that take minutes are left out unless they are named."""
        planned = super().plan(repeats, methods=methods, **options)
        if methods is not None:
            return planned
        slow = {(t.dataset, t.method) for t in planned.trials} & SLOW
        notes = [
            f"{method} was left out on {dataset}, where it takes minutes; name it to run it"
            for dataset, method in sorted(slow)
        ]
        kept = tuple(t for t in planned.trials if (t.dataset, t.method) not in slow)
        return replace(planned, trials=kept, notes=(*planned.notes, *notes))

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List the methods of the figure, or all that publish so many centers."""
        return figure.methods or kmeans_methods()

    def usual_methods(self, figure: Figure) -> Collection[str]:
        """List the same methods."""
        return self.known_methods(figure)

    def missing_file(self, dataset: str, folder: Path | None) -> str | None:
        """Return the file that a dataset lacks; clouds lack none."""
        return None if dataset == CLOUDS else super().missing_file(dataset, folder)

    def trials(self, asked: Request[Figure], **_: Any) -> Iterator[Trial]:
        """List dataset by dataset the reference, then all methods once before any of them twice."""
        figure = asked.figure
        for setting in _settings(asked):
            yield Trial(NAME, NOISE_FREE, "none", 0, setting)
            for seed in range(asked.repeats):
                for epsilon in figure.epsilons:
                    for method in figure.methods:
                        for moved in asked.axis():
                            yield Trial(NAME, method, epsilon, seed, setting | moved)

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the points of a data folder."""
        return KMeansRunner(folder).run_trial

    def table(self, results: Sequence[Result]) -> Listing:
        """Lay the distances out: a row for each line, or for each row of a heat map."""
        return _heat_table(results) if is_heat_map(results) else super().table(results)

    def measure_title(self, measure: str) -> str:
        """Name the only measure."""
        return "NICV (lower is better)"

    def plot(self, results: Sequence[Result], dataset: str | None = None) -> str | None:
        """Draw the heat maps, or two panels for one dataset or for each of them."""
        if not is_heat_map(results):
            return super().plot(results, dataset)
        panels = [
            HeatPanel(f"{method}, ε = {epsilon}", values)
            for (method, epsilon), values in excesses(results).items()
        ]
        layout = HeatLayout("clusters (k)", "columns (d)", "NICV above that without privacy")
        return heat_maps(panels, layout)

    def panels(self, results: Sequence[Result], dataset: str | None) -> list[Panel]:
        """Draw all methods, then those near the reference alone: far ones would flatten them."""
        panels = []
        for group in self.groups(self.summarize(results)):
            name = next(iter(group)).dataset
            if dataset not in (None, name):
                continue
            free = next(line for key, line in group.items() if key.method == NOISE_FREE)
            limit = _NEAR * list(free.values())[-1].mean
            near = {k: line for k, line in group.items() if list(line.values())[-1].mean <= limit}
            panels.append(Panel(f"{name}: all methods", self._lines(group)))
            if 1 < len(near) < len(group):
                panels.append(Panel(f"{name}: a closer look", self._lines(near)))
        return panels

    def _lines(self, cells: Cells) -> list[Line]:
        return [self.line(key, line) for key, line in cells.items()]

    def explanation(self, figure: Figure) -> list[str]:
        """Explain k-means and the measure."""
        return [
            "Each record is a point: its columns are numbers. K-means looks for k centers such "
            "that every point is near one of them; the points that share a nearest center are a "
            "cluster. Here the centers are published without giving away whether any one record "
            "is in the table. How much farther from the points are they for that?",
            "NICV (normalized intra-cluster variance) is the mean squared distance of the points "
            "from the nearest center, with every column scaled to run from -1 to 1. Lower is "
            "better. It is measured on the true points, which is why this page is not private.",
        ]

    def sections(self, results: Sequence[Result], dataset: str) -> list[Section]:
        """Show lines over an axis, or heat maps."""
        if not is_heat_map(results):
            return super().sections(results, dataset)
        drawn, listing = self.plot(results), self.table(results)
        means = {key: fmean(line.values()) for key, line in excesses(results).items()}
        (method, epsilon), best = min(means.items(), key=lambda item: item[1])
        said = [
            "The points of each square are simulated: k clusters of different sizes, shapes and "
            "directions in d columns, 10,000 points in all, and up to 100 points anywhere. The "
            "number is how much larger the NICV is than that of k-means without privacy.",
            f"On average over all squares {method} is nearest, at ε = {epsilon}: {best:.3f} above.",
        ]
        caption = "NICV above that without privacy: light is good, dark is bad."
        return [
            Section(
                "More clusters, more columns",
                said if drawn else [*said, self.no_plot],
                figures=[section.Figure(caption, drawn)] if drawn else [],
                listings=[replace(listing, caption="The same numbers.")],
            )
        ]

    def heading(self, dataset: str) -> str:
        """Write the heading of a dataset's section."""
        return f"{dataset}: how near the centers come"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a set of points."""
        points = POINT_SETS[dataset]
        return (
            f"{points.source}: {points.records:,} points, {points.title}; {points.clusters} "
            "centers are looked for."
        )

    def finding(self, best: Key, point: float, cells: Cells) -> str:
        """Name the nearest centers."""
        free = next(line[point].mean for key, line in cells.items() if key.method == NOISE_FREE)
        return (
            f"the nearest centers are those of {best.short_name}: NICV "
            f"{cells[best][point].mean:.4f}; without privacy, {free:.4f}"
        )

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe what each method publishes."""
        known = [name for name in used if name in CATALOG]
        return [f"{name}: publishes {CATALOG[name].publishes}." for name in known]

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe repeats and the reference."""
        return [
            f"Every method is run {how_often(results)} with fresh noise at every point, "
            "with its default settings. The reference is k-means without privacy from ten starts "
            "among the points, the best of which counts.",
        ]


def is_heat_map(results: Sequence[Result]) -> bool:
    """Return whether the results are of clouds with different k and d."""
    return results[0].trial.dataset == CLOUDS


def excesses(results: Sequence[Result]) -> dict[tuple[str, str], dict[Cloud, float]]:
    """Compute how much farther clouds lie from private centers than from the best ones.

    For every method and budget, the mean over the repeats at each k and d.
    """
    best = {_cloud(r.trial): r.measured[NICV] for r in results if r.trial.method == NOISE_FREE}
    found: dict[tuple[str, str], dict[Cloud, list[float]]] = {}
    for trial, measured in results:
        if trial.method != NOISE_FREE:
            line = found.setdefault((trial.method, trial.epsilon), {})
            cloud = _cloud(trial)
            line.setdefault(cloud, []).append(measured[NICV] - best[cloud])
    return {
        key: {cloud: fmean(values) for cloud, values in line.items()} for key, line in found.items()
    }


def _heat_table(results: Sequence[Result]) -> Listing:
    found = excesses(results)
    across = sorted({cloud[0] for line in found.values() for cloud in line})
    rows = []
    for (method, epsilon), line in found.items():
        for dimensions in sorted({cloud[1] for cloud in line}):
            numbers = [f"{line[clusters, dimensions]:.4f}" for clusters in across]
            rows.append([f"{method}, ε = {epsilon}", f"d = {dimensions}", *numbers])
    return Listing(["method", "columns", *(f"k = {clusters}" for clusters in across)], rows)


def _settings(asked: Request[Figure]) -> Iterator[Setting]:
    """List the datasets; of clouds one for each k and d."""
    for dataset in asked.figure.datasets:
        if dataset != CLOUDS:
            yield asked.setting(dataset)
            continue
        for dimensions in asked.figure.values:
            for clusters in asked.figure.values:
                yield asked.setting(dataset, clusters=clusters, dimensions=dimensions)


def _cloud(trial: Trial) -> Cloud:
    return int(trial.setting["clusters"]), int(trial.setting["dimensions"])


STUDY = KMeansStudy()
