"""How often a classifier is wrong.  Measured on true rows, so the figure is not private."""

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter


def misclassification(foretold: NDArray[np.int64], true: NDArray[np.int64]) -> float:
    """Measure the part of the rows whose class was foretold wrongly: 0 is perfect.

    >>> misclassification(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
    0.25
    """
    if foretold.shape != true.shape:
        raise InvalidParameter("foretold and true classes must be equally many")
    if not true.size:
        raise InvalidParameter("there is no row with a known class to measure on")
    return float(np.count_nonzero(foretold != true) / true.size)
