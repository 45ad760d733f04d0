"""How well do private clusters keep the shapes of the true ones?

Section 7 of L. Chen, T. Yu, R. Chirkova, "WaveCluster with differential privacy" (CIKM, 2015):
its four methods and its measures, on its sets DS1 and DS2 and on shapes simulated here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.shapes import SHAPES, ShapeSet
from dpublish.errors import require_known
from dpublish.evaluation.sklearn_adapter import require_sklearn
from dpublish.experiments import wavecluster_page, wavecluster_summary
from dpublish.experiments.experiment import Plan, Result, ResultTable, Trial
from dpublish.experiments.options import choose, present_datasets, write_figure
from dpublish.experiments.page import Page
from dpublish.experiments.wavecluster_laboratory import FOLDS, Laboratory
from dpublish.experiments.wavecluster_parts import METHODS, PARTS, PLAIN, Part

NAME = "wavecluster"


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
    require_sklearn()
    usual = PARTS[part]
    names, amounts = choose(
        methods,
        epsilons,
        usual_methods=usual.methods,
        usual_epsilons=usual.epsilons,
        known=METHODS,
    )
    chosen = replace(usual, methods=names, epsilons=amounts)
    folder = find_data_folder(data_folder)
    present, notes = present_datasets(
        tuple(SHAPES) if datasets is None else datasets,
        SHAPES,
        lambda name: SHAPES[name].missing_file(folder),
        folder,
    )
    listed = [
        trial
        for shapes in (SHAPES[name] for name in present)
        for seed in range(repeats)
        for trial in _trials(part, chosen, shapes, seed)
    ]
    return Plan(tuple(listed), Laboratory(folder).run_trial, tuple(notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the figures out: a row for each dataset, measure and method, mean ± deviation."""
    return wavecluster_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw a panel for each dataset and measure into one figure."""
    return write_figure(wavecluster_page.figure(results), path)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the paper."""
    return wavecluster_page.page(results, notes)


def _trials(name: str, part: Part, shapes: ShapeSet, seed: int) -> Iterator[Trial]:
    """List one round of trials: at each place the plain algorithm on new points, then methods."""
    for value in part.values or ("",):
        setting: dict[str, int | str] = {
            "part": name,
            "dataset": shapes.name,
            "cells": shapes.cells,
            "percentile": shapes.percentile,
        }
        if part.key is not None:
            setting[part.key] = value
        if seed < FOLDS:
            yield Trial(NAME, PLAIN, "none", seed, setting)
        for epsilon in part.epsilons:
            for method in part.methods:
                yield Trial(NAME, method, epsilon, seed, setting)
