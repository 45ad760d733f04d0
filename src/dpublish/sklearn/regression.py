"""A private linear regression for scikit-learn."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from dpublish.data.column import NumberColumn
from dpublish.errors import InvalidParameter
from dpublish.sklearn import public_facts, rows
from dpublish.sklearn.coefficients import released_weights
from dpublish.sklearn.paid import PaidEstimator


class PrivateRegressor(RegressorMixin, PaidEstimator):  # type: ignore[misc]
    """Predict a number with a private linear regression (`model`, the functional mechanism).

    A fit is one release: `epsilon` is debited from `dataset` of `ledger` before any row is read.
    The range of each feature and of the target is told, by a schema or by `bounds` and
    `target_bounds`, and never read from X or y.  Values beyond it are clipped, missing ones
    follow the schema's rule.

    Parameters:
        epsilon: What a fit costs, such as `"0.5"`.
        ledger: Path or address of the ledger that pays, or an open `dpublish.Ledger`.
        dataset: Dataset of the ledger that pays.
        schema: `dpublish.Schema` or the path of a schema file, with the target in it.
        target: Column of the schema that is predicted; the name of y unless given.
        bounds: Without a schema: `(low, high)` for all features, or a pair for each.
        target_bounds: Without a schema: `(low, high)` of the target.
        bins: Without a schema: cells into which a range is cut; numbers are known to a cell.
        output: New folder for the release; a private temporary one unless given.
        settings: Further settings of the method.
        allow_refit: Whether a fitted estimator may be fitted again, and pay again.

    Attributes:
        coef_: What one unit more of each of `coef_names_` adds to the prediction.
        coef_names_: What is weighed: a feature, or a value of one.
        intercept_: The prediction where all of them are 0.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where X had names.
        release_: The release, with its receipt; it may be published.
        release_folder_: Where the release is.
    """

    _method = "model"

    def __init__(
        self,
        epsilon: Any = None,
        *,
        ledger: Any = None,
        dataset: str | None = None,
        schema: Any = None,
        target: str | None = None,
        bounds: Any = None,
        target_bounds: Any = None,
        bins: int = 64,
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
        self.target_bounds = target_bounds
        self.bins = bins
        self.output = output
        self.settings = settings
        self.allow_refit = allow_refit

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - the name scikit-learn uses
        """Release a linear regression of y on X, paid for by the ledger."""
        if y is None:
            raise InvalidParameter(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        column = self._column(y)
        self._release(X, rows.numbers(rows.read_target(y)), column)
        found = released_weights(self.release_)
        self.coef_, self.coef_names_ = found.coef[0], found.names
        self.intercept_ = float(found.intercept[0])
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Predict the number of each row, within its public bounds."""
        found = self._rows(X)
        return np.asarray(self.release_.predict(found).to_numpy(zero_copy_only=False))

    def _column(self, y: Any) -> str:
        schema = public_facts.read_schema(self.schema)
        if schema is None:
            return public_facts.TARGET
        name = self.target if self.target is not None else getattr(y, "name", None)
        if name is None:
            raise InvalidParameter(
                "the schema does not say which column is the target; pass target='pay'"
            )
        if not isinstance(schema[str(name)], NumberColumn):
            raise InvalidParameter(f"{name!r} is no number; use PrivateClassifier for classes")
        return str(name)

    def _target_columns(self) -> tuple[Any, ...]:
        return (public_facts.target_column(self.target_bounds, self.bins),)

    def _settings(self, names: tuple[str, ...], column: str | None) -> dict[str, Any]:
        return {"model": "linear"} | super()._settings(names, column)
