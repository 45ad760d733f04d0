"""Make a noisy matrix a correlation matrix again: unit diagonal, no negative eigenvalue.

Reference: N. J. Higham, "Computing the nearest correlation matrix: a problem from finance",
IMA J. Numer. Anal. 22(3), 2002 (alternating projections).
"""

from typing import Literal

import numpy as np

from dpublish.errors import require_known
from dpublish.types import FloatArray

Repair = Literal["clip", "nearest", "shrink"]

SMALLEST_EIGENVALUE = 1e-6
_ROUNDS = 100
_TOLERANCE = 1e-8


def repair_correlation(matrix: FloatArray, repair: Repair = "clip") -> FloatArray:
    """Find a correlation matrix near a symmetric matrix; a sound one is only cleaned.

    Args:
        matrix: Symmetric; the diagonal is taken as 1 and the rest is moved into -1..1.
        repair: `clip` raises eigenvalues that are too small; `nearest` first looks for the
            nearest correlation matrix; `shrink` mixes with uncorrelated columns.

    >>> crooked = np.array([[1, 0.9, 0.9], [0.9, 1, -0.9], [0.9, -0.9, 1]])
    >>> np.linalg.eigvalsh(crooked).round(1).tolist()
    [-0.8, 1.9, 1.9]
    >>> repair_correlation(crooked).round(2).tolist()
    [[1.0, 0.5, 0.5], [0.5, 1.0, -0.5], [0.5, -0.5, 1.0]]
    """
    require_known("repair", repair, ("clip", "nearest", "shrink"))
    cleaned = _with_unit_diagonal(np.clip((matrix + matrix.T) / 2, -1, 1))
    smallest = float(np.linalg.eigvalsh(cleaned)[0])
    if smallest >= SMALLEST_EIGENVALUE:
        return cleaned
    if repair == "shrink":
        part = (SMALLEST_EIGENVALUE - smallest) / (1 - smallest)
        return _with_unit_diagonal((1 - part) * cleaned)
    return _raise_eigenvalues(_nearest(cleaned) if repair == "nearest" else cleaned)


def pair_matrix(values: FloatArray, columns: int, diagonal: float) -> FloatArray:
    """Lay out values of the pairs (0, 1), (0, 2), ... as a symmetric matrix."""
    matrix = np.full((columns, columns), diagonal, dtype=np.float64)
    first, second = np.triu_indices(columns, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


def _raise_eigenvalues(matrix: FloatArray) -> FloatArray:
    """Raise the small eigenvalues, then rescale to a unit diagonal."""
    values, vectors = np.linalg.eigh(matrix)
    raised = (vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diag(raised))
    return _with_unit_diagonal(np.clip(raised / np.outer(scale, scale), -1, 1))


def _nearest(matrix: FloatArray) -> FloatArray:
    """Project in turn onto matrices without negative eigenvalues and with a unit diagonal."""
    found, correction = matrix, np.zeros_like(matrix)
    for _ in range(_ROUNDS):
        shifted = found - correction
        values, vectors = np.linalg.eigh(shifted)
        projected = (vectors * np.maximum(values, 0)) @ vectors.T
        correction = projected - shifted
        before, found = found, _with_unit_diagonal(projected)
        if float(np.abs(found - before).max()) < _TOLERANCE:
            break
    return found


def _with_unit_diagonal(matrix: FloatArray) -> FloatArray:
    fixed = (matrix + matrix.T) / 2
    np.fill_diagonal(fixed, 1)
    return fixed
