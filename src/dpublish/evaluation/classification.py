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
from dpublish.evaluation.features import encode_classes
from dpublish.evaluation.metrics.classification import misclassification
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS, fit, majority_class
from dpublish.randomness import plain_generator

DIRECT = "direct"
MAJORITY = "majority"
TITLES = {
    DIRECT: "the release's own classifier",
    MAJORITY: "always the majority class",
    **{name: kind.title for name, kind in CLASSIFIERS.items()},
}
Basis = Literal["release", "true rows"]


@dataclass(frozen=True)
class Score:
    """How often one classifier was wrong, and what it was made from."""

    classifier: str
    basis: Basis
    misclassification: float


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


def classifies(release: Release) -> bool:
    """Say whether a release has a classifier of its own."""
    return type(release).predict is not Release.predict


def gives_rows(release: Release) -> bool:
    """Say whether synthetic rows can be drawn from a release."""
    return type(release).rows is not Release.rows


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
) -> list[Score]:
    """Measure the release's own classifier and others trained on its synthetic rows.

    Those that the release cannot serve are passed over: one that gives no rows trains none.
    """
    require_classifiers(classifiers)
    scores = []
    rows: pa.Table | None = None
    for name in classifiers:
        if name == DIRECT:
            if classifies(release):
                labels = pa.table({target: release.predict(held_out.rows)})
                predicted = encode_classes(labels, release.schema, target)
                scores.append(_score(DIRECT, "release", predicted, held_out))
        elif gives_rows(release):
            rows = release.rows(seed=seed) if rows is None else rows
            if target in rows.column_names:
                fitted = fit(rows, release.schema, target, name, seed=seed)
                predicted = fitted.predict(held_out.rows)
                scores.append(_score(name, "release", predicted, held_out))
    return scores


def evaluate_true_rows(
    train: pa.Table,
    held_out: HeldOut,
    *,
    schema: Schema,
    target: str,
    classifiers: Sequence[str] = tuple(CLASSIFIERS),
    seed: int = 0,
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
            predicted = fit(train, schema, target, name, seed=seed).predict(held_out.rows)
            scores.append(_score(name, "true rows", predicted, held_out))
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


def _score(name: str, basis: Basis, predicted: NDArray[np.int64], held_out: HeldOut) -> Score:
    return Score(name, basis, misclassification(predicted, held_out.classes))
