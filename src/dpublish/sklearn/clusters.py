"""Private k-means for scikit-learn: centers, and no labels of private rows."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin

from dpublish.sklearn.paid import PaidEstimator
from dpublish.types import FloatArray


class PrivateKMeans(ClusterMixin, PaidEstimator):  # type: ignore[misc]
    """Find centers of clusters privately (`kmeans`).

    A fit is one release: `epsilon` is debited from `dataset` of `ledger` before any row is read.
    The range of each feature is told, by a schema or by `bounds`, and never read from X.
    The labels of the rows are not released, so there is no `labels_`: `predict` labels any rows
    by the nearest center.  Distances are measured with every feature scaled to its range.

    Parameters:
        n_clusters: Number of clusters.
        epsilon: What a fit costs, such as `"0.5"`.
        ledger: Path or address of the ledger that pays, or an open `dpublish.Ledger`.
        dataset: Dataset of the ledger that pays.
        schema: `dpublish.Schema` or the path of a schema file; the features are numbers.
        bounds: Without a schema: `(low, high)` for all features, or a pair for each.
        output: New folder for the release; a private temporary one unless given.
        settings: Further settings of the method.
        allow_refit: Whether a fitted estimator may be fitted again, and pay again.

    Attributes:
        cluster_centers_: A row for each center, a column for each feature, in its own units.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where X had names.
        release_: The release, with its receipt; it may be published.
        release_folder_: Where the release is.
    """

    _method = "kmeans"
    bins = 16

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
        schema: Any = None,
        bounds: Any = None,
        output: Any = None,
        settings: Mapping[str, Any] | None = None,
        allow_refit: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.ledger = ledger
        self.dataset = dataset
        self.schema = schema
        self.bounds = bounds
        self.output = output
        self.settings = settings
        self.allow_refit = allow_refit

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803 - the name scikit-learn uses
        """Release centers of X, paid for by the ledger; y is ignored."""
        self._release(X, None, None)
        order = [self.release_.schema.names.index(name) for name in self._names_of_fit]
        self.cluster_centers_: FloatArray = self.release_.centers[:, order]
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """Label each row by its nearest center; -1 where a value is missing."""
        found = self._rows(X)
        return np.asarray(self.release_.label(found), dtype=np.int64)

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.int64]:  # noqa: N803
        """Fit, and label the rows of X by the released centers; labels are not released."""
        return self.fit(X).predict(X)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return minus the sum of squared distances to the nearest centers, in scaled units."""
        found = self._rows(X)
        points, known = self.release_.scale(found)
        centers = self.release_.box.scale(self.release_.centers)
        nearest = ((points[known][:, None, :] - centers[None]) ** 2).sum(axis=2).min(axis=1)
        return -float(nearest.sum())

    def _settings(self, names: tuple[str, ...], column: str | None) -> dict[str, Any]:
        own = {"n_clusters": self.n_clusters, "columns": names}
        return own | super()._settings(names, column)
