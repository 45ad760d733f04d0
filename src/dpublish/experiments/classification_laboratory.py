"""Where the trials of the comparison of classifiers are run: data, folds, one trial at a time."""

from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS
from dpublish.evaluation.classification import (
    HeldOut,
    Score,
    evaluate_release,
    evaluate_true_rows,
    stratified_folds,
)
from dpublish.evaluation.features import encode_classes
from dpublish.experiments.classification_parts import (
    NOISE_FREE,
    make_run,
    paid_twin,
    predictors_of,
)
from dpublish.experiments.experiment import Trial
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator

FOLDS = 10
SECONDS = "seconds"


class Split(NamedTuple):
    """One fold of a dataset to measure on, the others to learn from."""

    schema: Schema
    target: str
    train: pa.Table
    held_out: HeldOut


class Laboratory:
    """Runs trials on the benchmarks of a data folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._load = lru_cache(maxsize=1)(self._load_uncached)
        self._split = lru_cache(maxsize=1)(self._split_uncached)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Release from nine folds, measure on the tenth; errors by classifier, and seconds."""
        dataset, fold = str(trial.setting["dataset"]), int(trial.setting["fold"])
        split = self._split(dataset, fold, int(trial.setting.get("rows", 0)))
        classifiers = str(trial.setting["classifiers"]).split(",")
        if trial.method == NOISE_FREE:
            scores = evaluate_true_rows(
                _columns(split, trial),
                split.held_out,
                schema=split.schema,
                target=split.target,
                classifiers=classifiers,
                seed=trial.seed,
            )
            return _figures(scores)
        begin = perf_counter()
        release = _release(trial, split)
        seconds = perf_counter() - begin
        scores = evaluate_release(
            release,
            split.held_out,
            target=split.target,
            classifiers=classifiers,
            seed=trial.seed,
        )
        return _figures(scores) | {SECONDS: round(seconds, 3)}

    def _load_uncached(self, dataset: str) -> tuple[Schema, pa.Table, np.ndarray]:
        benchmark = BENCHMARKS[dataset]
        schema, rows = benchmark.schema(self._folder), benchmark.rows(self._folder)
        if benchmark.fold_column is not None:
            return schema, rows, np.asarray(rows[benchmark.fold_column])
        classes = encode_classes(rows, schema, benchmark.target)
        return schema, rows, stratified_folds(classes, FOLDS, seed=2024)

    def _split_uncached(self, dataset: str, fold: int, limit: int) -> Split:
        benchmark = BENCHMARKS[dataset]
        schema, rows, folds = self._load(dataset)
        held_out = HeldOut.of(rows.filter(pa.array(folds == fold)), schema, benchmark.target)
        train = rows.filter(pa.array(folds != fold))
        if limit and benchmark.make is not None:
            train = benchmark.make(limit, fold)  # fresh rows, as many as asked for
        elif limit:
            order = plain_generator(fold).permutation(train.num_rows)
            train = train.take(pa.array(order[:limit]))
        return Split(schema, benchmark.target, train, held_out)


def _release(trial: Trial, split: Split) -> Release:
    run = make_run(trial, split.schema, split.target)
    table = open_table(split.train, split.schema)
    release = run.method.release(table, budget=Budget.seeded(run.epsilon), rng=trial.rng())
    twin = paid_twin(trial, release)
    return release if twin is None else _release(twin, split)


def _columns(split: Split, trial: Trial) -> pa.Table:
    """Leave out the columns that the trial does without."""
    if "predictors" not in trial.setting:
        return split.train
    names = predictors_of(split.schema, split.target)[: int(trial.setting["predictors"])]
    return split.train.select([*names, split.target])


def _figures(scores: list[Score]) -> dict[str, float]:
    return {score.classifier: score.misclassification for score in scores}
