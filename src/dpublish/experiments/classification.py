"""How often are classifiers wrong that learn from private releases?

Section 5 of D. Su, J. Cao, N. Li, M. Lyu, "PrivPfC: differentially private data publication
for classification" (VLDB Journal, 2018), on the public tables that can be had: stratified
folds, each measured by what was released from the other nine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dpublish.core.registry import CATALOG
from dpublish.datasets.benchmarks import BENCHMARKS, Benchmark, find_data_folder
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.evaluation.classification import require_classifiers
from dpublish.experiments import classification_page, classification_summary
from dpublish.experiments.classification_laboratory import FOLDS, Laboratory
from dpublish.experiments.classification_parts import (
    NOISE_FREE,
    PARTS,
    TITLES,
    Part,
    predictors_of,
)
from dpublish.experiments.experiment import Plan, Result, ResultTable, Trial
from dpublish.experiments.options import choose, present_datasets, write_figure
from dpublish.experiments.page import Page

NAME = "classification"


def plan(
    repeats: int,
    *,
    part: str = "epsilon",
    data_folder: str | Path | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    epsilons: Sequence[str] | None = None,
    classifiers: Sequence[str] = ("direct", "tree"),
    folds: int = FOLDS,
) -> Plan:
    """List the trials of one part; datasets that are not in the data folder are left out."""
    require_known("part", part, PARTS)
    require_classifiers(classifiers)
    _require_folds(folds)
    chosen = _chosen_part(PARTS[part], methods, epsilons)
    folder = find_data_folder(data_folder)
    present, notes = present_datasets(
        datasets or chosen.datasets or tuple(BENCHMARKS),
        BENCHMARKS,
        lambda name: BENCHMARKS[name].missing_file(folder),
        folder,
    )
    listed = []
    for benchmark in (BENCHMARKS[name] for name in present):
        values = _values(chosen, benchmark, folder)
        common = {"part": part, "dataset": benchmark.name, "classifiers": ",".join(classifiers)}
        for seed in range(repeats):
            for fold in range(folds):
                for trial in _trials(chosen, values, seed):
                    setting = {**common, "fold": fold, **trial.setting}
                    listed.append(replace(trial, setting=setting))
    return Plan(tuple(listed), Laboratory(folder).run_trial, tuple(notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the errors out: a row for each dataset, classifier and method, mean ± deviation."""
    return classification_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw all panels into one figure."""
    return write_figure(classification_page.figure(results, has_one_scale=False), path)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the paper."""
    return classification_page.page(results, notes)


def _trials(part: Part, values: Sequence[int | None], seed: int) -> Iterator[Trial]:
    """List one round of trials: the references first, then every method at every place."""
    if seed == 0:
        for value in values if part.moves_references else [None]:
            yield Trial(NAME, NOISE_FREE, "none", 0, _setting(part, value))
    for value in values:
        for epsilon in part.epsilons:
            for method in part.methods:
                yield Trial(NAME, method, epsilon, seed, _setting(part, value))


def _setting(part: Part, value: int | None) -> dict[str, int | str]:
    return {} if part.key is None or value is None else {part.key: value}


def _values(part: Part, benchmark: Benchmark, folder: Path | None) -> Sequence[int | None]:
    """List the places on the axis; where the dataset ends before them, its end is the last."""
    if part.key is None:
        return [None]
    limit = max(part.values)
    if part.key == "predictors":
        limit = len(predictors_of(benchmark.schema(folder), benchmark.target))
    elif part.key == "rows" and benchmark.make is None:
        limit = benchmark.records * (FOLDS - 1) // FOLDS
    return sorted({min(value, limit) for value in part.values})


def _chosen_part(part: Part, methods: Sequence[str] | None, epsilons: Sequence[str] | None) -> Part:
    known = [name for name in TITLES if name.removesuffix("-unpaid") in CATALOG]
    names, amounts = choose(
        methods,
        epsilons,
        usual_methods=part.methods,
        usual_epsilons=part.epsilons,
        known=known,
    )
    return replace(part, methods=names, epsilons=amounts)


def _require_folds(folds: int) -> None:
    require_count(folds=folds)
    if folds > FOLDS:
        raise InvalidParameter(f"folds ({folds}) must be at most {FOLDS}")
