"""How good are linear models that were fitted privately?

The comparisons of J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: Differentially
Private Model Fitting Using Genetic Algorithms" (SIGMOD 2013), and those of D. Su, J. Cao, N. Li,
M. Lyu, "PrivPfC" (VLDB Journal, 2018), that output a classifier: stratified folds, each measured
by what was fitted on the other nine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.errors import InvalidParameter, require_known
from dpublish.experiments import classification, kmeans, models_page, models_summary
from dpublish.experiments.experiment import Plan, Result, ResultTable, Trial
from dpublish.experiments.kmeans_parts import NAME as KMEANS_NAME
from dpublish.experiments.models_laboratory import ModelLaboratory
from dpublish.experiments.models_parts import (
    ANY,
    COMMONEST,
    KMEANS,
    KMEANS_METHODS,
    MODELS,
    NAME,
    NOISE_FREE,
    PARTS,
    SECONDS,
    Part,
    known_methods,
    models_of,
)
from dpublish.experiments.options import write_figure
from dpublish.experiments.page import Page
from dpublish.privacy.epsilon import parse_epsilon


def plan(
    repeats: int,
    *,
    part: str = "epsilon",
    data_folder: str | Path | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    epsilons: Sequence[str] | None = None,
    classifiers: Sequence[str] | None = None,
    folds: int | None = None,
) -> Plan:
    """List the trials of one part; datasets and methods that are not there are left out."""
    require_known("part", part, (*PARTS, KMEANS))
    if part == KMEANS:
        if classifiers is not None or folds is not None:
            raise InvalidParameter("k-means has neither classifiers nor folds")
        return kmeans.plan(
            repeats,
            data_folder=data_folder,
            datasets=datasets,
            methods=KMEANS_METHODS if methods is None else methods,
            epsilons=epsilons,
        )
    chosen, notes = _chosen_part(PARTS[part], methods, epsilons)
    models = tuple(MODELS if classifiers is None else classifiers)
    for model in models:
        require_known("classifier", model, MODELS)
    if not models:
        raise InvalidParameter("name at least one classifier")
    places, absent = _places(
        data_folder=data_folder,
        datasets=datasets or chosen.datasets,
        folds=chosen.folds if folds is None else folds,
    )
    trials = tuple(
        replace(trial, setting={"part": part, **place, **trial.setting})
        for seed in range(repeats)
        for place in places
        for trial in _trials(chosen, models, seed)
    )
    laboratory = ModelLaboratory(find_data_folder(data_folder))
    return Plan(trials, laboratory.run_trial, (*absent, *notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the figures out: a row for each dataset, measure, model and method."""
    return kmeans.table(results) if _is_kmeans(results) else models_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw all panels into one figure."""
    if _is_kmeans(results):
        return kmeans.plot(results, path)
    return write_figure(models_page.figure(results), path)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the papers."""
    if _is_kmeans(results):
        return kmeans.page(results, notes)
    return models_page.page(results, notes)


def _is_kmeans(results: Sequence[Result]) -> bool:
    return results[0].trial.experiment == KMEANS_NAME


def _chosen_part(
    part: Part, methods: Sequence[str] | None, epsilons: Sequence[str] | None
) -> tuple[Part, list[str]]:
    names, notes = known_methods(part.methods if methods is None else methods)
    amounts = tuple(part.epsilons if epsilons is None else epsilons)
    for amount in amounts:
        parse_epsilon(amount)
    if not names or not amounts:
        raise InvalidParameter("; ".join(["name at least one method and one epsilon", *notes]))
    return replace(part, methods=names, epsilons=amounts), notes


def _places(**options: Any) -> tuple[list[dict[str, int | str]], tuple[str, ...]]:
    """List datasets and folds, and what is missing: those of the comparison of classifiers."""
    same = classification.plan(
        1, methods=("majority",), epsilons=("1",), classifiers=("direct",), **options
    )
    found = dict.fromkeys((t.setting["dataset"], t.setting["fold"]) for t in same.trials)
    return [{"dataset": dataset, "fold": fold} for dataset, fold in found], same.notes


def _trials(part: Part, models: Sequence[str], seed: int) -> Iterator[Trial]:
    """List one round of trials: the references first, then every method at every place."""
    axis: list[dict[str, int | str]] = [{part.key: v} for v in part.values] if part.key else [{}]
    if seed == 0:
        yield from _references(part, models, axis if part.moves_references else [{}])
    for value, epsilon, method in product(axis, part.epsilons, part.methods):
        for model in models_of(method, models):
            yield Trial(NAME, method, epsilon, seed, {"model": model, **value})


def _references(
    part: Part, models: Sequence[str], axis: Sequence[dict[str, int | str]]
) -> Iterator[Trial]:
    if SECONDS not in part.measures:  # to name the majority class takes no time
        yield Trial(NAME, COMMONEST, "none", 0, {"model": ANY})
    for value, model in product(axis, models):
        yield Trial(NAME, NOISE_FREE, "none", 0, {"model": model, **value})
