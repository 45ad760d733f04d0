"""How well do private clusters keep the shapes of the true ones?

Section 7 of L. Chen, T. Yu, R. Chirkova, "WaveCluster with differential privacy" (CIKM, 2015):
its four methods and its measures, on its sets DS1 and DS2 and on shapes made up here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.shapes import SHAPES, ShapeSet
from dpublish.errors import InvalidParameter, require_known
from dpublish.evaluation.experiment import Plan, Result, ResultTable, Trial
from dpublish.evaluation.experiments import wavecluster_page, wavecluster_summary
from dpublish.evaluation.experiments.wavecluster_laboratory import FOLDS, Laboratory
from dpublish.evaluation.experiments.wavecluster_parts import METHODS, PARTS, PLAIN, Part
from dpublish.evaluation.page import Page
from dpublish.evaluation.sklearn_adapter import require_sklearn
from dpublish.privacy.epsilon import parse_epsilon

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
    chosen = _chosen_part(PARTS[part], methods, epsilons)
    folder = find_data_folder(data_folder)
    present, notes = _present(tuple(SHAPES) if datasets is None else datasets, folder)
    listed = [
        trial
        for shapes in present
        for seed in range(repeats)
        for trial in _trials(part, chosen, shapes, seed)
    ]
    return Plan(tuple(listed), Laboratory(folder).run_trial, tuple(notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the figures out: a row for each dataset, measure and method, mean ± deviation."""
    return wavecluster_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw a panel for each dataset and measure into one figure."""
    drawn = wavecluster_page.figure(results)
    if drawn is None:
        return None
    path.write_text(drawn, encoding="utf-8")
    return path


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


def _chosen_part(part: Part, methods: Sequence[str] | None, epsilons: Sequence[str] | None) -> Part:
    names = tuple(part.methods if methods is None else methods)
    for name in names:
        require_known("method", name, METHODS)
    amounts = tuple(part.epsilons if epsilons is None else epsilons)
    for amount in amounts:
        parse_epsilon(amount)
    if not names or not amounts:
        raise InvalidParameter("name at least one method and one epsilon")
    return replace(part, methods=names, epsilons=amounts)


def _present(names: Sequence[str], folder: Path | None) -> tuple[list[ShapeSet], list[str]]:
    present, notes = [], []
    for name in names:
        require_known("dataset", name, SHAPES)
        missing = SHAPES[name].missing_file(folder)
        if missing is None:
            present.append(SHAPES[name])
        else:
            place = "no data folder was named" if folder is None else f"it is not in {folder}"
            notes.append(f"{name} was left out: it needs {missing}, and {place}")
    if not present:
        reasons = notes or ["name at least one dataset"]
        raise InvalidParameter("; ".join(reasons) + " (--data-folder, or DPUBLISH_DATA)")
    return present, notes
