"""Move noisy correlations toward 0 by what is likely to be noise."""

import numpy as np

from dpublish.types import FloatArray


def shrunk(matrix: FloatArray, spread: FloatArray) -> FloatArray:
    """Shrink each correlation by how uncertain it is.

    A correlation r with standard deviation s becomes r max(0, 1 - s²/r²): what noise alone may
    have made becomes 0, and what is clear of it stays.

    Known as: positive-part James-Stein, one number at a time.

    >>> noisy = np.array([[1, 0.5, 0.1], [0.5, 1, -0.2], [0.1, -0.2, 1]])
    >>> shrunk(noisy, 0.1 - 0.1 * np.eye(3)).round(3).tolist()
    [[1.0, 0.48, 0.0], [0.48, 1.0, -0.15], [0.0, -0.15, 1.0]]
    """
    squares = matrix * matrix
    kept = np.maximum(squares - spread * spread, 0)
    return matrix * np.divide(kept, squares, out=np.zeros_like(matrix), where=squares > 0)
