"""Measure a release on true rows in one call, or use it as a scikit-learn classifier.

What `evaluate` returns is NOT PRIVATE: for the owner's eyes only.
"""

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from dpublish.core.folder.folder import load
from dpublish.core.released import Release
from dpublish.data.steps import NO_STEPS, Steps
from dpublish.errors import InvalidParameter, InvalidType, plain_refusals
from dpublish.evaluation.evaluations import Request
from dpublish.evaluation.evaluations import evaluate as measure
from dpublish.evaluation.report import EvaluationReport
from dpublish.evaluation.sklearn_adapter import require_sklearn
from dpublish.evaluation.stream_rows import rows_by_step
from dpublish.evaluation.true_rows import read_rows
from dpublish.methods.streams.released import StreamRelease


@plain_refusals
def evaluate(
    release: Release | str | PathLike[str],
    against: Any,
    *,
    train: Any = None,
    target: str | None = None,
    classifiers: Sequence[str] | None = None,
    seed: int = 0,
    step: str | None = None,
) -> EvaluationReport:
    """Measure a release against true rows.  NOT PRIVATE: what it returns tells about the rows.

    Args:
        release: The release, or its folder.
        against: True rows: a file, or any Arrow-compatible table.  To measure classifiers, rows
            that the release was not made from.  Of a stream also a folder of snapshots, or a
            mapping from the label of a step to its rows.
        train: True rows on which to train classifiers to compare with.
        target: The class column, if the release does not name it.
        classifiers: Some of direct, tree, logistic, boosting, svm; all if absent.
        seed: Which synthetic rows to draw.
        step: Of a stream, the column of `against` that holds the label of each row's step.
    """
    return measure(
        make_request(
            release,
            against,
            train=train,
            target=target,
            classifiers=classifiers,
            seed=seed,
            step=step,
        )
    )


def make_request(
    release: Release | str | PathLike[str],
    against: Any,
    *,
    train: Any = None,
    target: str | None = None,
    classifiers: Sequence[str] | None = None,
    seed: int = 0,
    step: str | None = None,
    steps: Steps = NO_STEPS,
) -> Request:
    """Open a release and read the rows that it is measured against, through `steps`."""
    opened = _opened(release)
    if isinstance(classifiers, str):
        raise InvalidType("classifiers is a list of names, such as ['direct', 'tree']")

    def read(source: Any) -> pa.Table:
        return _rows(source, opened, steps, step)

    by_step = None
    if isinstance(opened, StreamRelease):
        if not opened.times:
            raise InvalidParameter("the stream has no step yet; there is nothing to measure")
        by_step = rows_by_step(against, read, step)
    elif step is not None:
        raise InvalidParameter("a step column is for streams; this release has no steps")
    return Request(
        release=opened,
        against=read(against) if by_step is None else next(iter(by_step.values())),
        steps=by_step,
        train=None if train is None else read(train),
        target=target,
        classifiers=classifiers,
        seed=seed,
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


def _opened(release: Release | str | PathLike[str]) -> Release:
    if isinstance(release, (str, PathLike)):
        return load(fspath(release))
    if not isinstance(release, Release):
        raise InvalidType(
            f"release is a Release or the path of its folder, not {type(release).__name__}"
        )
    return release


def _rows(source: Any, release: Release, steps: Steps, step: str | None) -> pa.Table:
    if isinstance(source, (str, PathLike)):
        names = [*release.schema.source_names, *([] if step is None else [step])]
        return read_rows(fspath(source), names, schema=release.schema, steps=steps)
    try:
        return source if isinstance(source, pa.Table) else pa.table(source)
    except (TypeError, ValueError, pa.ArrowException):
        raise InvalidType(
            "true rows are a file or an Arrow-compatible table (pandas, Polars, PyArrow), not "
            f"{type(source).__name__}"
        ) from None
