"""Train ordinary classifiers on rows, synthetic or true, and hand released ones to scikit-learn.

Only this package and `dpublish.sklearn` know scikit-learn.  All settings are fixed here once:
a comparison in which each method had its classifier tuned to it would compare the tuning.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.prediction import UNKNOWN
from dpublish.core.released import Release
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.evaluation.features import encode_classes, encode_features
from dpublish.randomness import plain_generator

SVM_ROWS = 8_000


class Kind(NamedTuple):
    """A kind of classifier.

    Attributes:
        title: What people call it.
        make: Makes one from a seed.
        max_rows: How many rows it can take.
        with_bins: Whether it is told the bins of numbers: it cannot cut them by itself.
    """

    title: str
    make: Callable[[int], Any]
    max_rows: int | None = None
    with_bins: bool = False


def _tree(seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    # A leaf holds at least one in 500 of the rows, so that single noisy cells do not make one.
    return DecisionTreeClassifier(min_samples_leaf=0.002, random_state=seed)


def _svm(seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(kernel="rbf", C=1.0, gamma="scale", cache_size=500, random_state=seed)


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300, random_state=seed)


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=False, random_state=seed)


CLASSIFIERS = {
    "tree": Kind("decision tree (CART)", _tree),
    "logistic": Kind("logistic regression", _logistic, with_bins=True),
    "boosting": Kind("gradient boosting", _boosting),
    "svm": Kind("support vector machine (RBF kernel, LIBSVM)", _svm, SVM_ROWS, with_bins=True),
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained classifier, or one class for all where there was nothing to learn from."""

    columns: tuple[Column, ...]
    model: Any
    most_frequent: int
    with_bins: bool = False
    classes: int = 0
    """Number of classes of the target."""

    def predict(self, rows: pa.Table) -> NDArray[np.int64]:
        """Predict the class code of each row."""
        if self.model is None or not rows.num_rows:
            return np.full(rows.num_rows, self.most_frequent, dtype=np.int64)
        with _one_thread():
            found = self.model.predict(
                encode_features(rows, self.columns, with_bins=self.with_bins)
            )
        return np.asarray(found, dtype=np.int64)

    def predict_with_scores(
        self, rows: pa.Table
    ) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
        """Predict class codes, and score each class (a column) to rank rows by.

        A class that the model has not seen scores less than any other.  Without a model there
        are no scores.
        """
        if self.model is None or not rows.num_rows:
            return self.predict(rows), None
        with _one_thread():
            features = encode_features(rows, self.columns, with_bins=self.with_bins)
            known = np.asarray(self.model.classes_, dtype=np.int64)
            if hasattr(self.model, "predict_proba"):
                scores = np.asarray(self.model.predict_proba(features))
                predicted = known[scores.argmax(axis=1)]
            else:
                scores = np.asarray(self.model.decision_function(features))
                if scores.ndim == 1:  # one score, for the second of two classes
                    predicted = known[(scores > 0).astype(np.int64)]
                    scores = np.stack([-scores, scores], axis=1)
                else:
                    predicted = np.asarray(self.model.predict(features), dtype=np.int64)
        ranked = np.full((len(scores), self.classes), scores.min() - 1)
        ranked[:, known] = scores
        return predicted, ranked


def fit(rows: pa.Table, schema: Schema, target: str, classifier: str, *, seed: int = 0) -> Fitted:
    """Train a classifier on the columns that the rows have and the schema knows.

    Rows without a class are left out.  With no rows, one class only or nothing to tell them
    apart by, the majority class is predicted; with no rows at all, the first one.
    """
    require_known("classifier", classifier, CLASSIFIERS)
    require_count(seed=seed, at_least=0)
    require_sklearn()
    classes = encode_classes(rows, schema, target)
    kept = np.flatnonzero(classes != UNKNOWN)
    most_frequent = majority_class(classes, schema[target].size)
    kind = CLASSIFIERS[classifier]
    limit = kind.max_rows
    if limit is not None and kept.size > limit:
        kept = np.sort(plain_generator(seed).choice(kept, size=limit, replace=False))
    columns = tuple(c for c in schema.columns if c.name != target and c.name in rows.column_names)
    if not columns or len(np.unique(classes[kept])) < 2:
        return Fitted(columns, None, most_frequent)
    features = encode_features(rows.take(pa.array(kept)), columns, with_bins=kind.with_bins)
    model = kind.make(seed)
    with _one_thread(), warnings.catch_warnings():
        # That 300 steps were not enough for the last digit is no news to the user.
        warnings.simplefilter("ignore")
        model.fit(features, classes[kept])
    return Fitted(columns, model, most_frequent, kind.with_bins, schema[target].size)


def fit_on_release(
    release: Release, classifier: str, target: str, *, n: int | None = None, seed: int = 0
) -> Fitted:
    """Train a classifier on synthetic rows: `n` of them, or as many as the release counted."""
    rows = release.rows(n, seed=seed)
    return fit(rows, release.schema, target, classifier, seed=seed)


def label_points(
    labeled: NDArray[np.float64],
    labels: NDArray[np.int64],
    points: NDArray[np.float64],
    *,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Label points by a decision tree that is trained on labeled ones; without any, all by 0."""
    require_sklearn()
    if len(np.unique(labels)) < 2 or not len(points):
        return np.full(len(points), labels[0] if len(labels) else 0, dtype=np.int64)
    model = _tree(seed)
    with _one_thread(), warnings.catch_warnings():
        # Many small clusters are not numbers to be estimated, as scikit-learn then suspects.
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(labeled, labels).predict(points), dtype=np.int64)


def majority_class(classes: NDArray[np.int64], size: int) -> int:
    """Find the most frequent known class; the first one if there is none, or on a tie."""
    return int(np.bincount(classes[classes != UNKNOWN], minlength=size).argmax())


def _one_thread() -> Any:
    """Compute in one thread: threads that wait for a busy core take longer than one alone."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


def has_sklearn() -> bool:
    """Return whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def require_sklearn() -> None:
    """Refuse to go on without scikit-learn, and say how to get it."""
    if not has_sklearn():
        raise InvalidParameter(
            'training classifiers needs scikit-learn; run: pip install "dpublish[evaluate]"'
        )
