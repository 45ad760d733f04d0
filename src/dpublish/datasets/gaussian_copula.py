"""Simulated tables whose columns depend on each other as those of a normal distribution do.

Integers with marginals of three shapes, tied by a Gaussian copula with a known matrix of
correlations: what DPCopula assumes, so that it shows the best accuracy of the method.
"""

from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from dpublish.data.schema import Schema, column
from dpublish.errors import require_count, require_known
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

Marginal = Literal["gaussian", "uniform", "zipf"]
Dependence = Literal["random", "exchangeable"]
VALUES = 1_000
_EXCHANGEABLE = 0.5
_WIDTH = 6.0  # deviations of a Gaussian marginal from the least value to the greatest


def gaussian_copula(
    records: int,
    columns: int,
    *,
    values: int = VALUES,
    marginal: Marginal = "gaussian",
    dependence: Dependence = "random",
    seed: int = 2024,
) -> pa.Table:
    """Simulate a table of integers from 0 to `values` - 1.

    >>> gaussian_copula(5, 3).column_names
    ['x1', 'x2', 'x3']
    """
    require_count(columns=columns, values=values)
    require_count(records=records, at_least=0)
    require_known("marginal", marginal, get_args(Marginal))
    rng = plain_generator(seed)
    root = np.linalg.cholesky(_correlations(columns, dependence, rng))
    edges = np.cumsum(marginal_probabilities(marginal, values))
    drawn = ndtr(rng.standard_normal((records, columns)) @ root.T)
    codes = np.minimum(np.searchsorted(edges, drawn, side="left"), values - 1)
    return pa.table({f"x{number}": codes[:, number - 1] for number in range(1, columns + 1)})


def gaussian_copula_schema(columns: int, values: int = VALUES) -> Schema:
    """Return the schema of a simulated table: every value has a cell of its own."""
    require_count(columns=columns, values=values)
    names = [f"x{number}" for number in range(1, columns + 1)]
    made = tuple(column(name, "integer", bounds=[0, values - 1]) for name in names)
    return Schema(made, name="simulated")


def correlation_matrix(
    columns: int, dependence: Dependence = "random", *, seed: int = 2024
) -> FloatArray:
    """Return the correlation matrix of the table with the same seed."""
    return _correlations(columns, dependence, plain_generator(seed))


def marginal_probabilities(marginal: Marginal, values: int) -> FloatArray:
    """Compute the probability of every value: a bell, uniform, or in proportion to 1/i."""
    edges = np.arange(values + 1) / values
    if marginal == "uniform":
        return np.diff(edges)
    if marginal == "zipf":
        weights = 1 / np.arange(1, values + 1)
    else:
        weights = np.diff(ndtr(_WIDTH * (edges - 0.5)))
    return np.asarray(weights / weights.sum())


def _correlations(columns: int, dependence: Dependence, rng: np.random.Generator) -> FloatArray:
    require_known("dependence", dependence, get_args(Dependence))
    if dependence == "exchangeable":
        return np.where(np.eye(columns) > 0, 1.0, _EXCHANGEABLE)
    # About half as many common causes as columns, so that some pairs are highly correlated.
    causes = rng.standard_normal((columns, columns // 2 + 1))
    products = causes @ causes.T + 0.1 * np.eye(columns)
    scale = np.sqrt(np.diag(products))
    matrix = products / np.outer(scale, scale)
    np.fill_diagonal(matrix, 1.0)
    return np.asarray(matrix)
