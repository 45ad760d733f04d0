"""Measure a release on true rows in one call, or use it as a scikit-learn classifier.

What `evaluate` returns is NOT PRIVATE: for the owner's eyes only.
"""

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from dpublish.core.released import Release
from dpublish.evaluation.evaluations import Request
from dpublish.evaluation.evaluations import evaluate as measure
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.sklearn_adapter import require_sklearn
from dpublish.evaluation.true_rows import read_rows


def evaluate(
    release: Release,
    against: Any,
    *,
    train: Any = None,
    target: str | None = None,
    classifiers: Sequence[str] | None = None,
    seed: int = 0,
) -> list[Finding]:
    """Measure a release against true rows.  NOT PRIVATE: what it returns tells about the rows.

    Args:
        release: The release.
        against: True rows: a file, or any Arrow-compatible table.  To measure classifiers, rows
            that the release was not made from.
        train: True rows on which to train classifiers to compare with.
        target: The class column, if the release does not name it.
        classifiers: Some of direct, tree, logistic, boosting, svm; all if absent.
        seed: Which synthetic rows to draw.
    """
    names = release.schema.source_names
    return measure(
        Request(
            release=release,
            against=_rows(against, names),
            train=None if train is None else _rows(train, names),
            target=target,
            classifiers=classifiers,
            seed=seed,
        )
    )


def as_classifier(release: Release) -> Any:
    """Make a scikit-learn classifier of a release that predicts a class.

    It is fitted already, and refuses to be fitted again: what scikit-learn calls fitting would
    not touch what was released.  Where `fit` has to be called, as in cross-validation, freeze
    it: `sklearn.frozen.FrozenEstimator(as_classifier(release))`.
    """
    require_sklearn()
    from dpublish.evaluation.released_classifier import ReleasedClassifier

    return ReleasedClassifier(release)


def _rows(source: Any, names: Sequence[str]) -> pa.Table:
    if isinstance(source, (str, PathLike)):
        return read_rows(fspath(source), names)
    return pa.table(source)
