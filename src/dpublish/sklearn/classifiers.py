"""Private classifiers for scikit-learn: a grid that predicts best, and a logistic regression."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from dpublish.data.column import CategoryColumn
from dpublish.errors import InvalidParameter
from dpublish.evaluation.released_classifier import ReleasedClassifier
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.sklearn import public_facts, rows
from dpublish.sklearn.coefficients import own_weights
from dpublish.sklearn.paid import PaidEstimator


class _Classifier(ClassifierMixin, PaidEstimator):  # type: ignore[misc]
    """What private classifiers share: declared classes, and predictions of the release."""

    def __init__(
        self,
        epsilon: Any = None,
        *,
        ledger: Any = None,
        dataset: str | None = None,
        schema: Any = None,
        target: str | None = None,
        bounds: Any = None,
        classes: Any = None,
        bins: int = 16,
        output: Any = None,
        settings: Mapping[str, Any] | None = None,
        allow_refit: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.ledger = ledger
        self.dataset = dataset
        self.schema = schema
        self.target = target
        self.bounds = bounds
        self.classes = classes
        self.bins = bins
        self.output = output
        self.settings = settings
        self.allow_refit = allow_refit

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - the name scikit-learn uses
        """Release a classifier of X and y, paid for by the ledger."""
        if y is None:
            raise InvalidParameter(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        column = self._column(y)
        values = rows.read_target(y)
        if self.schema is None:
            texts = public_facts.class_texts(self.classes)
            values = rows.class_values(values, texts).to_numpy(zero_copy_only=False)
        self._release(X, values, column)
        self._own = self._own_classes()
        self.classes_ = np.sort(np.array(list(self._own.values())))
        self._note_weights()
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Predict the class of each row."""
        found = self._rows(X)
        predicted = self._released().predict(found).tolist()
        values = np.empty(len(predicted), dtype=self.classes_.dtype)
        values[:] = [self._own[each] for each in predicted]
        return values

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Predict the probability of each class: a column for each of `classes_`."""
        found = self._rows(X)
        released = self._released()
        order = np.argsort([self._own[each] for each in released.classes_.tolist()])
        return np.asarray(released.predict_proba(found)[:, order], dtype=np.float64)

    def _released(self) -> ReleasedClassifier:
        return ReleasedClassifier(self.release_)

    def _column(self, y: Any) -> str:
        """Name the target: by its parameter, by the name of y, or as that of an array."""
        schema = public_facts.read_schema(self.schema)
        if schema is None:
            return public_facts.TARGET
        name = self.target if self.target is not None else getattr(y, "name", None)
        if name is None:
            raise InvalidParameter(
                "the schema does not say which column is the target; pass target='income'"
            )
        if not isinstance(schema[str(name)], CategoryColumn):
            raise InvalidParameter(f"{name!r} is no column of classes; use PrivateRegressor for it")
        return str(name)

    def _target_columns(self) -> tuple[Any, ...]:
        return (public_facts.class_column(self.classes),)

    def _own_classes(self) -> dict[Any, Any]:
        """Map the released classes to those of the owner, who may have declared numbers."""
        if self.schema is None:
            return public_facts.class_texts(self.classes)
        return {each: each for each in self._released().classes_.tolist()}

    def _note_weights(self) -> None:
        """Keep the weights of a linear model, if that is what was released."""


class PrivateClassifier(_Classifier):
    """Classify with a noisy grid of the columns that predict best (PrivPfC).

    A fit is one release: `epsilon` is debited from `dataset` of `ledger` before any row is read.
    Nothing public is taken from X or y: the range of each feature and all classes are told, by a
    schema or by `bounds` and `classes`.  Values beyond the bounds are clipped, missing ones
    follow the schema's rule, and rows of an unknown class are left out.

    Parameters:
        epsilon: What a fit costs, such as `"0.5"`.
        ledger: Path or address of the ledger that pays, or an open `dpublish.Ledger`.
        dataset: Dataset of the ledger that pays.
        schema: `dpublish.Schema` or the path of a schema file, with the target in it.
        target: Column of the schema that is predicted; the name of y unless given.
        bounds: Without a schema: `(low, high)` for all features, or a pair for each.
        classes: Without a schema: all classes that there can be.
        bins: Without a schema: cells into which the range of a feature is cut.
        output: New folder for the release; a private temporary one unless given.
        settings: Further settings of the method, such as `{"pool": 1000}`.
        allow_refit: Whether a fitted estimator may be fitted again, and pay again.

    Attributes:
        classes_: The declared classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where X had names.
        release_: The release, with its receipt; it may be published.
        release_folder_: Where the release is.
    """

    _method = "privpfc"


class PrivateLogisticRegression(_Classifier):
    """Classify with a logistic regression that is fitted to a private grid (`model`).

    A fit is one release, as for `PrivateClassifier`, whose parameters it has.  If a linear model
    would lose more than a fifth of what the grid knows, the grid is released instead: then
    predictions are those of the grid, and there is no `coef_`.

    Parameters:
        epsilon: What a fit costs, such as `"0.5"`.
        ledger: Path or address of the ledger that pays, or an open `dpublish.Ledger`.
        dataset: Dataset of the ledger that pays.
        schema: `dpublish.Schema` or the path of a schema file, with the target in it.
        target: Column of the schema that is predicted; the name of y unless given.
        bounds: Without a schema: `(low, high)` for all features, or a pair for each.
        classes: Without a schema: all classes that there can be.
        bins: Without a schema: cells into which the range of a feature is cut.
        output: New folder for the release; a private temporary one unless given.
        settings: Further settings of the method.
        allow_refit: Whether a fitted estimator may be fitted again, and pay again.

    Attributes:
        classes_: The declared classes, sorted.
        coef_: Weights, where a linear model was released: a row for each score (one for two
            classes), a column for each of `coef_names_`.
        coef_names_: What the columns of `coef_` weigh: a feature, or a cell of one (`x0=[1, 2)`).
        intercept_: Intercept of each score.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where X had names.
        release_: The release, with its receipt; it may be published.
        release_folder_: Where the release is.
    """

    _method = "model"

    def _settings(self, names: tuple[str, ...], column: str | None) -> dict[str, Any]:
        return {"model": "logistic"} | super()._settings(names, column)

    def _note_weights(self) -> None:
        for name in ("coef_", "coef_names_", "intercept_"):
            self.__dict__.pop(name, None)
        if not isinstance(self.release_, LinearModelRelease):
            return
        scored = [self._own.get(text, text) for text in self.release_.scored]
        self.coef_, self.intercept_, self.coef_names_ = own_weights(
            self.release_, scored, self.classes_
        )
