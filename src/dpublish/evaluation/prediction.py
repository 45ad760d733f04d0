"""How well a release predicts a class or a number, and what that scores.  NOT PRIVATE."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import find_column
from dpublish.core.released import Release
from dpublish.data.column import NumberColumn
from dpublish.errors import InvalidParameter
from dpublish.evaluation.classification import (
    MAJORITY,
    RIDGE,
    HeldOut,
    Score,
    require_columns,
)
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.metrics.classification import mean_area_under_curve, misclassification
from dpublish.evaluation.plain_prediction import MOST_ROWS, cross_predictions
from dpublish.evaluation.score import Part, figure
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.types import FloatArray

LEAST_ERROR_GAP, LEAST_AUC_GAP = 0.02, 0.05
"""Between what scores 100 and 0, of wrong predictions and of the area under the curve."""


def predicts_numbers(release: Release) -> bool:
    """Return whether a release predicts numbers rather than classes."""
    if isinstance(release, PersonalizedRelease):
        return all(predicts_numbers(part.release) for part in release.parts)
    return isinstance(release, LinearModelRelease) and release.model == "linear"


# --- Classes --------------------------------------------------------------------------------------


def ridge_score(held_out: HeldOut, release: Release, target: str, seed: int) -> Score:
    """Measure ridge regression on the classes, each half of the rows predicted from the other."""
    some = held_out.sample(MOST_ROWS, seed)
    rows, classes = some.rows, some.classes
    wanted = np.eye(release.schema[target].size)[classes]
    columns = [one for one in release.schema.columns if one.name != target]
    scores = cross_predictions(rows, columns, wanted, seed)
    several = len(np.unique(classes)) > 1
    return Score(
        RIDGE,
        "true rows",
        misclassification(scores.argmax(axis=1), classes),
        mean_area_under_curve(scores, classes) if several else None,
    )


def class_parts(scores: Sequence[Score], target: str) -> list[Part]:
    """Score wrong predictions and, if rows are ranked, the area under the curve.

    The best classifier counts that the release offers: its own, or one trained on its rows.
    """
    own = [one for one in scores if one.basis == "release"]
    trained = [one for one in scores if one.basis == "true rows" and one.classifier != MAJORITY]
    majority = next(one for one in scores if one.classifier == MAJORITY)
    measured = min(one.misclassification for one in own)
    baseline = majority.misclassification
    reference = min([baseline, *(one.misclassification for one in trained)])
    parts = [
        Part.of(
            "prediction",
            f"predicting {target}",
            "the part of the rows predicted wrongly",
            measured,
            reference=("without privacy", reference),
            baseline=("always the majority class", baseline),
            least_gap=LEAST_ERROR_GAP,
        )
    ]
    areas = [one.auc for one in own if one.auc is not None]
    if not areas:
        return parts
    best = max([0.5, *(one.auc for one in trained if one.auc is not None)])
    missed, least = 1 - max(areas), 1 - best
    parts.append(
        Part.of(
            "ranking",
            f"ranking rows by {target}",
            "the part of the pairs of rows in the wrong order (1 - AUC)",
            missed,
            reference=("without privacy", least),
            baseline=("a random order", 0.5),
            least_gap=LEAST_AUC_GAP,
        )
    )
    return parts


# --- Numbers --------------------------------------------------------------------------------------


def number_finding(release: Release, against: pa.Table, target: str, seed: int) -> Finding:
    """Report how far predicted numbers are from the true ones."""
    column = release.schema[target]
    if not isinstance(column, NumberColumn):
        raise InvalidParameter(f"{target!r} is no column of numbers: name the one it predicts")
    require_columns(against, release.schema)
    values, keep = column.values(against[find_column(against, column)])
    known = np.isfinite(values) if keep is None else keep & np.isfinite(values)
    if not known.any():
        raise InvalidParameter(f"no row has a number in the column {target!r}")
    rows, true = against.filter(pa.array(known)), values[known]
    predicted = release.predict(rows).to_numpy(zero_copy_only=False)
    others = [one for one in release.schema.columns if one.name != target]
    low, high = column.bounds
    plain = np.clip(cross_predictions(rows, others, true[:, None], seed), low, high)
    errors = {
        "the release": _deviation(predicted, true),
        "without privacy (ridge regression)": _deviation(plain[:, 0], true),
        "always the mean": float(true.std()),
    }
    measured, plain_error, baseline = errors.values()
    reference = min(plain_error, baseline)
    least = 0.02 * (high - low)
    return Finding(
        name="regression",
        title=f"Prediction of {target} for {len(true):,} rows: root mean square error",
        headers=["predicted by", "error", "R squared"],
        rows=[
            [name, figure(error), "" if not baseline else f"{1 - (error / baseline) ** 2:.3f}"]
            for name, error in errors.items()
        ],
        notes=["ridge regression is trained on one half of the rows and measured on the other"],
        figures={
            "target": target,
            "rows": len(true),
            "rmse": measured,
            "rmse_without_privacy": plain_error,
            "rmse_of_the_mean": baseline,
        },
        parts=[
            Part.of(
                "prediction",
                f"predicting {target}",
                "the root mean square error",
                measured,
                reference=("without privacy", reference),
                baseline=("always the mean", baseline),
                least_gap=least,
            )
        ],
    )


def _deviation(predicted: FloatArray, true: FloatArray) -> float:
    return sqrt(float(np.square(predicted - true).mean()))
