"""How far do records lie from centers that were found privately?

Section 4.6 of D. Su, PhD thesis, Purdue, 2016, on the public tables that can be had and on
clouds of points that are simulated: the normalized intra-cluster variance (NICV) of every
method that publishes k centers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.point_clouds import POINT_SETS
from dpublish.errors import require_known
from dpublish.experiments import kmeans_page, kmeans_summary
from dpublish.experiments.experiment import Plan, Result, ResultTable, Trial
from dpublish.experiments.kmeans_laboratory import Laboratory
from dpublish.experiments.kmeans_parts import (
    CLOUDS,
    NAME,
    NOISE_FREE,
    PARTS,
    SLOW,
    Part,
    kmeans_methods,
)
from dpublish.experiments.options import choose, present_datasets, write_figure
from dpublish.experiments.page import Page


def plan(
    repeats: int,
    *,
    part: str = "epsilon",
    data_folder: str | Path | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    epsilons: Sequence[str] | None = None,
) -> Plan:
    """List the trials of one part; datasets that are not in the data folder are left out."""
    require_known("part", part, PARTS)
    chosen = PARTS[part]
    known = chosen.methods or kmeans_methods()
    names, amounts = choose(
        methods, epsilons, usual_methods=known, usual_epsilons=chosen.epsilons, known=known
    )
    folder = find_data_folder(data_folder)
    present, notes = present_datasets(
        datasets or chosen.datasets,
        chosen.datasets,
        lambda name: None if name == CLOUDS else POINT_SETS[name].missing_file(folder),
        folder,
    )
    whole = replace(chosen, methods=names, epsilons=amounts, datasets=tuple(present))
    slow = set() if methods is not None else {pair for pair in SLOW if pair[1] in names}
    trials = tuple(
        trial
        for trial in _trials(part, whole, repeats)
        if (trial.setting["dataset"], trial.method) not in slow
    )
    notes += [
        f"{method} was left out on {dataset}, where it takes minutes; name it to run it"
        for dataset, method in sorted(slow)
        if dataset in present
    ]
    return Plan(trials, Laboratory(folder).run_trial, tuple(notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the distances out: a row for each dataset and method, mean ± deviation."""
    return kmeans_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw all panels into one figure."""
    return write_figure(kmeans_page.figure(results), path)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the thesis."""
    return kmeans_page.page(results, notes)


def _trials(name: str, part: Part, repeats: int) -> Iterator[Trial]:
    """List dataset by dataset the reference, then all methods once before any of them twice."""
    for place in _places(name, part):
        yield Trial(NAME, NOISE_FREE, "none", 0, place)
        for seed in range(repeats):
            for epsilon in part.epsilons:
                for method in part.methods or ():
                    for value in part.values if part.key else (0,):
                        moved = {part.key: value} if part.key else {}
                        yield Trial(NAME, method, epsilon, seed, place | moved)


def _places(name: str, part: Part) -> Iterator[dict[str, int | str]]:
    for dataset in part.datasets:
        if dataset != CLOUDS:
            yield {"part": name, "dataset": dataset}
            continue
        for dimensions in part.values:
            for clusters in part.values:
                numbers = {"clusters": clusters, "dimensions": dimensions}
                yield {"part": name, "dataset": dataset, **numbers}
