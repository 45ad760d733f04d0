"""Private estimators for scikit-learn: a fit is one release that the ledger pays for.

>>> from dpublish.sklearn import PrivateClassifier
>>> PrivateClassifier(epsilon="0.5")
PrivateClassifier(epsilon='0.5')
"""

from importlib.util import find_spec

if find_spec("sklearn") is None:  # pragma: no cover - the tests have scikit-learn
    raise ImportError(
        'dpublish.sklearn needs scikit-learn 1.6 or later; run: pip install "dpublish[sklearn]"'
    )

from dpublish.sklearn.classifiers import PrivateClassifier, PrivateLogisticRegression
from dpublish.sklearn.clusters import PrivateKMeans
from dpublish.sklearn.paid import RefitRefused
from dpublish.sklearn.regression import PrivateRegressor

__all__ = [
    "PrivateClassifier",
    "PrivateKMeans",
    "PrivateLogisticRegression",
    "PrivateRegressor",
    "RefitRefused",
]
