"""Where the trials of the comparison of private models are run, one at a time."""

from time import perf_counter

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import encode_rows
from dpublish.core.released import Release
from dpublish.data.sources import open_table
from dpublish.evaluation.classification import DIRECT, HeldOut, evaluate_release
from dpublish.evaluation.features import encode_classes
from dpublish.evaluation.metrics.classification import mean_area_under_curve, misclassification
from dpublish.evaluation.sklearn_adapter import majority_class
from dpublish.experiments.classification_laboratory import Laboratory, Split
from dpublish.experiments.experiment import Trial
from dpublish.experiments.models_parts import (
    COMMONEST,
    CURVE,
    NOISE_FREE,
    SECONDS,
    WRONG,
    method_for,
)
from dpublish.experiments.models_reference import fit_plain_model
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray


class ModelLaboratory(Laboratory):
    """Runs trials on the benchmarks of a data folder, cut into folds as for classification."""

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Fit on nine folds, measure on the tenth: errors, area under the curve, and seconds."""
        given = trial.setting
        split = self._split(str(given["dataset"]), int(given["fold"]), int(given.get("rows", 0)))
        if trial.method == COMMONEST:
            return _of_most_frequent(split)
        begin = perf_counter()
        if trial.method == NOISE_FREE:
            model = fit_plain_model(split.train, split.schema, split.target, str(given["model"]))
            seconds = perf_counter() - begin
            figures = _figures(model.scores(split.held_out.rows), split.held_out)
        else:
            method = method_for(trial, split.target)
            table = open_table(split.train, split.schema)
            release = method.release(table, budget=Budget.seeded(trial.epsilon), rng=trial.rng())
            seconds = perf_counter() - begin
            figures = _measure(release, split)
        return figures | {SECONDS: round(seconds, 3)}


def class_scores(release: Release, rows: pa.Table, target: str) -> FloatArray:
    """Score every class for every row by what a release tells of its certainty.

    A release that only names classes gives 1 to the one that it names.
    """
    if isinstance(release, PrivPfCRelease):
        return release.predict_proba(rows)
    if isinstance(release, LinearModelRelease):
        decided = release.decision(encode_rows(rows, release.schema, release.features.columns))
        return np.hstack([-decided, decided]) if decided.shape[1] == 1 else decided
    labels = encode_classes(pa.table({target: release.predict(rows)}), release.schema, target)
    return np.eye(release.schema[target].size)[labels]


def _measure(release: Release, split: Split) -> dict[str, float]:
    held_out = split.held_out
    (score,) = evaluate_release(release, held_out, target=split.target, classifiers=(DIRECT,))
    scores = class_scores(release, held_out.rows, split.target)
    return {
        WRONG: score.misclassification,
        CURVE: mean_area_under_curve(scores, held_out.classes),
    }


def _figures(scores: FloatArray, held_out: HeldOut) -> dict[str, float]:
    predicted = np.asarray(scores.argmax(axis=1), dtype=np.int64)
    return {
        WRONG: misclassification(predicted, held_out.classes),
        CURVE: mean_area_under_curve(scores, held_out.classes),
    }


def _of_most_frequent(split: Split) -> dict[str, float]:
    size = split.schema[split.target].size
    classes = encode_classes(split.train, split.schema, split.target)
    scores = np.zeros((len(split.held_out.classes), size))
    scores[:, majority_class(classes, size)] = 1
    return _figures(scores, split.held_out)
