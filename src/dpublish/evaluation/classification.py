"""How well a release classifies rows that it has not seen.

NOT PRIVATE: everything here looks at true rows.  The owner may use it to choose a method on
public data; a figure measured on private rows must not be published.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.prediction import UNKNOWN, find_column
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.evaluation.class_scores import release_scores
from dpublish.evaluation.features import encode_classes
from dpublish.evaluation.metrics.classification import mean_area_under_curve, misclassification
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS, Fitted, fit, majority_class
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.privbayes.released import PrivBayesRelease
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

DIRECT = "direct"
MAJORITY = "majority"
RIDGE = "ridge"
TITLES = {
    DIRECT: "the release's own classifier",
    MAJORITY: "always the majority class",
    RIDGE: "ridge regression",
    **{name: kind.title for name, kind in CLASSIFIERS.items()},
}
Basis = Literal["release", "true rows"]


@dataclass(frozen=True)
class Score:
    """How often one classifier was wrong, what it was made from, and how well it ranks rows.

    Attributes:
        classifier: Which one.
        basis: What it was made from.
        misclassification: The part of the rows whose class was predicted wrongly.
        auc: The area under the curve, of several classes the mean over each against the rest;
            None if it gives no scores, or all rows are of one class.
    """

    classifier: str
    basis: Basis
    misclassification: float
    auc: float | None = None


@dataclass(frozen=True)
class HeldOut:
    """True rows that a release has not seen, those without a known class left out."""

    rows: pa.Table
    classes: NDArray[np.int64]

    @classmethod
    def of(cls, rows: pa.Table, schema: Schema, target: str) -> "HeldOut":
        """Find the class of each row."""
        require_known("column", target, schema.names)
        require_columns(rows, schema)
        classes = encode_classes(rows, schema, target)
        known = classes != UNKNOWN
        if not known.any():
            raise InvalidParameter(f"no row has a known class in the column {target!r}")
        return cls(rows.filter(pa.array(known)), classes[known])

    def sample(self, most: int | None, seed: int) -> "HeldOut":
        """Return at most so many of the rows, drawn at random."""
        if most is None or len(self.classes) <= most:
            return self
        drawn = plain_generator(seed).choice(len(self.classes), size=most, replace=False)
        some = np.sort(drawn)
        return HeldOut(self.rows.take(pa.array(some)), self.classes[some])


def classifies(release: Release) -> bool:
    """Say whether a release has a classifier of its own."""
    if isinstance(release, PersonalizedRelease):
        return all(classifies(part.release) for part in release.parts)
    if isinstance(release, PrivBayesRelease):
        return release.target is not None
    return type(release).predict is not Release.predict


def gives_rows(release: Release) -> bool:
    """Say whether synthetic rows can be drawn from a release."""
    if isinstance(release, PersonalizedRelease):
        return all(gives_rows(part.release) for part in release.parts)
    if isinstance(release, StatisticsRelease):
        return False
    return type(release).rows is not Release.rows and getattr(release, "gives_rows", True)


def require_classifiers(names: Sequence[str]) -> None:
    """Refuse names of classifiers that are not known, and an empty list."""
    if not names:
        raise InvalidParameter("name at least one classifier")
    for name in names:
        require_known("classifier", name, (DIRECT, *CLASSIFIERS))


def require_columns(rows: pa.Table, schema: Schema) -> None:
    """Refuse rows that lack a column of the schema, or have it twice."""
    for column in schema.columns:
        if rows.column_names.count(find_column(rows, column)) != 1:
            raise InvalidParameter(f"the rows must have a column {column.name!r}, once")


def evaluate_release(
    release: Release,
    held_out: HeldOut,
    *,
    target: str,
    classifiers: Sequence[str] = (DIRECT, *CLASSIFIERS),
    seed: int = 0,
    limited: bool = False,
) -> list[Score]:
    """Measure the release's own classifier and others trained on its synthetic rows.

    Those that the release cannot serve are passed over: one that gives no rows trains none.
    If `limited`, a classifier that is trained on some rows is measured on as many.
    """
    require_classifiers(classifiers)
    scores = []
    rows: pa.Table | None = None
    for name in classifiers:
        if name == DIRECT:
            if classifies(release):
                labels = pa.table({target: release.predict(held_out.rows)})
                predicted = encode_classes(labels, release.schema, target)
                ranked = release_scores(release, held_out.rows)
                scores.append(_score(DIRECT, "release", predicted, held_out, ranked))
        elif gives_rows(release):
            rows = release.rows(seed=seed) if rows is None else rows
            if target in rows.column_names:
                fitted = fit(rows, release.schema, target, name, seed=seed)
                scores.append(
                    _measure(name, "release", fitted, _some(held_out, name, limited, seed))
                )
    return scores


def evaluate_true_rows(
    train: pa.Table,
    held_out: HeldOut,
    *,
    schema: Schema,
    target: str,
    classifiers: Sequence[str] = tuple(CLASSIFIERS),
    seed: int = 0,
    limited: bool = False,
) -> list[Score]:
    """Measure what no release can be expected to beat, and what each of them should.

    The former are the same classifiers trained on true rows (NoiseFree in the literature),
    the latter always predicts the majority class of these rows (Majority).
    """
    require_classifiers(classifiers)
    most_frequent = majority_class(encode_classes(train, schema, target), schema[target].size)
    scores = [
        _score(MAJORITY, "true rows", np.full_like(held_out.classes, most_frequent), held_out),
    ]
    for name in classifiers:
        if name != DIRECT:
            fitted = fit(train, schema, target, name, seed=seed)
            scores.append(_measure(name, "true rows", fitted, _some(held_out, name, limited, seed)))
    return scores


def stratified_folds(classes: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Deal rows out into folds so that each fold holds its part of every class.

    Rows of a class are shuffled by the seed and dealt out in turn, going on with the next
    class where the last one stopped: the folds differ by one row at most, also in each class.

    >>> stratified_folds(np.array([0, 0, 0, 0, 1, 1]), 2, seed=1)[4:].sum()
    np.int64(1)
    """
    require_count(folds=folds, at_least=2)
    rng = plain_generator(seed)
    order = rng.permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    found = np.empty(len(classes), dtype=np.int64)
    found[order] = np.arange(len(classes)) % folds
    return found


def _some(held_out: HeldOut, classifier: str, limited: bool, seed: int) -> HeldOut:
    return held_out.sample(CLASSIFIERS[classifier].max_rows, seed) if limited else held_out


def _measure(name: str, basis: Basis, fitted: Fitted, held_out: HeldOut) -> Score:
    predicted, ranked = fitted.predict_with_scores(held_out.rows)
    return _score(name, basis, predicted, held_out, ranked)


def _score(
    name: str,
    basis: Basis,
    predicted: NDArray[np.int64],
    held_out: HeldOut,
    ranked: FloatArray | None = None,
) -> Score:
    several = len(np.unique(held_out.classes)) > 1
    auc = None
    if ranked is not None and several and np.isfinite(ranked).all():
        auc = mean_area_under_curve(ranked, held_out.classes)
    return Score(name, basis, misclassification(predicted, held_out.classes), auc)
