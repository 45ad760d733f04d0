"""A released model in the form in which scikit-learn expects a classifier.

Its columns are read by name, from any Arrow-compatible object (such as a pandas frame), or in
the order of `feature_names_in_` from an array.
"""

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from dpublish.core.prediction import encode_rows
from dpublish.core.released import Release
from dpublish.data.column import CategoryColumn
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.evaluation.classification import classifies
from dpublish.evaluation.evaluations import target_of
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.privpfc.released import PrivPfCRelease


def _gives_scores(classifier: "ReleasedClassifier") -> bool:
    return isinstance(classifier.release, LinearModelRelease)


def _gives_probabilities(classifier: "ReleasedClassifier") -> bool:
    release = classifier.release
    logistic = isinstance(release, LinearModelRelease) and release.model == "logistic"
    return logistic or isinstance(release, PrivPfCRelease)


class ReleasedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that was fitted privately and stays as it is.

    Attributes:
        release: The release that predicts.
        classes_: The classes, sorted as scikit-learn expects; with the owner's own type.
        feature_names_in_: Columns that it reads.
        n_features_in_: How many these are.
    """

    def __init__(self, release: Release) -> None:
        self.release = release

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        return np.sort(self._declared())

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Columns that it reads, in order."""
        release, target = self.release, self._target()
        return np.array([name for name in release.schema.names if name != target], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns that it reads."""
        return len(self.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> NoReturn:  # noqa: N803 - the name scikit-learn uses
        """Refuse: the model was released, and nothing is learned here."""
        raise InvalidParameter(
            "this model was released and cannot be fitted again; to use it where fit is called, "
            "as in cross-validation, wrap it: sklearn.frozen.FrozenEstimator(model)"
        )

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Predict the class of each row."""
        declared = self._declared()
        labels = self._column().axis().labels
        codes = {label: code for code, label in enumerate(labels)}
        predicted = self.release.predict(self._rows(X)).to_pylist()
        # Only the class of missing values has no label, and it is the last.
        return declared[[codes.get(label, len(labels) - 1) for label in predicted]]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Compute the probability of each class: a column for each of `classes_`."""
        order = np.argsort(self._declared())
        if isinstance(self.release, PrivPfCRelease):
            return self.release.predict_proba(self._rows(X))[:, order]
        model = self._model()
        codes = encode_rows(self._rows(X), model.schema, model.features.columns)
        return model.probabilities(codes)[:, order]

    @available_if(_gives_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Score each row: for the second of two `classes_`, else a column for each class."""
        model = self._model()
        codes = encode_rows(self._rows(X), model.schema, model.features.columns)
        scores = model.decision(codes)
        order = np.argsort(self._declared())
        if scores.shape[1] > 1:
            return scores[:, order]
        return scores[:, 0] if order[1] == 1 else -scores[:, 0]

    def _rows(self, rows: Any) -> pa.Table:
        if not isinstance(rows, np.ndarray):
            return rows if isinstance(rows, pa.Table) else pa.table(rows)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise InvalidQuery(f"rows without names must have {self.n_features_in_} columns")
        return pa.table(
            {
                name: pa.array(values)
                for name, values in zip(self.feature_names_in_, rows.T, strict=True)
            }
        )

    def _declared(self) -> NDArray[Any]:
        """The classes in the order of their codes; as text, unless all are of one type."""
        column = self._column()
        labels = column.axis().labels
        values = (*column.categories, *labels[len(column.categories) :])
        return np.array(values if len(set(map(type, values))) == 1 else labels)

    def _column(self) -> CategoryColumn:
        schema: Schema = self.release.schema
        column = schema[self._target()]
        if not isinstance(column, CategoryColumn) or not classifies(self.release):
            raise InvalidParameter("this release does not predict a class")
        return column

    def _target(self) -> str:
        named = getattr(self.release, "target", None)
        target = named if isinstance(named, str) else target_of(self.release)
        if target is None:
            raise InvalidParameter("this release was not made to predict a class")
        return target

    def _model(self) -> LinearModelRelease:
        if not isinstance(self.release, LinearModelRelease):
            raise InvalidQuery("this release gives classes only")
        return self.release
