"""Check that a method keeps the rules that every method of this package keeps.

`check_method` is for authors of methods, as scikit-learn's `check_estimator` is for authors of
estimators.  It runs a method on a small table and raises `AssertionError` with a sentence that
says which rule is broken.  What passes is not proved private; what fails is not.

`privacy_loss` and `frequency_p_value` compare what a mechanism does with what its proof says.

>>> from dpublish import Histogram
>>> check_method(Histogram(columns=("age", "sex")))
"""

from dpublish.testing.conformance import check_method, example_rows, example_schema
from dpublish.testing.probabilities import frequency_p_value, privacy_loss

__all__ = ["check_method", "example_rows", "example_schema", "frequency_p_value", "privacy_loss"]
