"""One color scale for correlations, on every page that shows them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def show_correlations(axes: Any, matrix: NDArray[np.float64]) -> Any:
    """Draw a matrix on Matplotlib axes: blue is -1, white 0, red 1.  Returns the image."""
    return axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True)
