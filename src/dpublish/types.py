"""Names for the array types that the whole package uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
WholeArray = NDArray[np.integer[Any]]
"""Integers of any width."""
