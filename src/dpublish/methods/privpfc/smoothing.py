"""Smooth the noisy counts of a grid: probabilities of its classes, and weights of its cells.

`smooth_probabilities` fits an additive model: the log-odds of the classes are a sum of one
effect per cell of each axis.  The model is fitted to the projected counts, and each cell's own
counts are then weighed against it, in proportion to how many records they stand for.

`grid_weights` scales the cells until they meet the sums along each axis and each pair of axes
(iterative proportional fitting).  Clipping noisy counts at zero moves records from large cells
to the many that are nearly empty; sums over slices of the grid average the noise out.

All of it is post-processing.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dpublish.accuracy.projection import project_nonnegative, round_to_total
from dpublish.types import FloatArray

_RIDGE = 1.0  # records of prior doubt about each effect
_MAX_CELLS = 200_000  # the largest cells decide the fit; the rest only take from it
_PASSES = 20
_EVEN = 0.02  # part of the weights that come from the sums along single axes


def smooth_probabilities(
    noisy: NDArray[np.int64], shape: tuple[int, ...], total: float, doubt: float
) -> FloatArray:
    """Estimate the probability of each class in each cell from noisy counts (cells x classes).

    Args:
        noisy: Noisy counts, a row for each cell of the predictors and a column for each class.
        shape: Number of cells along each predictor.
        total: Number of records, as far as it is known.
        doubt: How many records of a cell weigh as much as the additive model.
    """
    counts = project_nonnegative(noisy, total)
    model = additive_probabilities(counts, shape)
    mixed: FloatArray = counts + doubt * model
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def additive_probabilities(counts: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Fit the additive model and give its probability of each class in each cell.

    >>> counts = np.array([[90.0, 10.0], [10.0, 90.0]])
    >>> additive_probabilities(counts, (2,)).round(1).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    classes = counts.shape[1]
    # One record shared out over the classes, so that none of them is impossible.
    overall = np.log((counts.sum(axis=0) + 1 / classes) / (counts.sum() + 1))
    weights = counts.sum(axis=1)
    order = np.argsort(-weights, kind="stable")[:_MAX_CELLS]
    heavy = order[weights[order] > 0]
    if not heavy.size or not shape:
        return np.tile(np.exp(overall), (len(counts), 1))
    indices = _effect_indices(heavy, shape)
    effects = _fit(counts[heavy], indices, overall, sum(shape))
    logits = np.tile(overall, (len(counts), 1))
    for index in _effect_indices(np.arange(len(counts)), shape):
        logits += effects[index]
    return _softmax(logits)


def _effect_indices(cells: NDArray[np.intp], shape: tuple[int, ...]) -> list[NDArray[np.intp]]:
    """Number the effects of each cell, those of one axis after those of another."""
    starts = np.cumsum([0, *shape[:-1]])
    indices = np.unravel_index(cells, shape)
    return [index + start for index, start in zip(indices, starts, strict=True)]


def _fit(
    counts: FloatArray, indices: list[NDArray[np.intp]], overall: FloatArray, effects: int
) -> FloatArray:
    """Maximize the likelihood, less a ridge penalty that keeps effects of rare cells small."""
    weights = counts.sum(axis=1, keepdims=True)
    classes = counts.shape[1]
    scale = 1 / float(weights.sum())

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(effects, classes)
        logits = overall + sum(theta[index] for index in indices)
        logits = logits - logits.max(axis=1, keepdims=True)
        log_sums = np.log(np.exp(logits).sum(axis=1, keepdims=True))
        value = -float((counts * (logits - log_sums)).sum())
        errors = weights * np.exp(logits - log_sums) - counts
        slope = _RIDGE * theta
        for column in range(classes):
            for index in indices:
                slope[:, column] += np.bincount(index, errors[:, column], minlength=effects)
        return (value + _RIDGE / 2 * float((theta**2).sum())) * scale, slope.ravel() * scale

    found = minimize(
        loss,
        np.zeros(effects * classes),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 200, "ftol": 1e-10, "gtol": 1e-6},
    )
    return np.asarray(found.x.reshape(effects, classes))


def _softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def grid_weights(noisy: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Compute an integer weight for each cell of a grid; all of them add up to an integer `total`.

    >>> grid_weights(np.array([[60, -4], [3, 41]]), 100).tolist()
    [[56, 0], [7, 37]]
    """
    weights = project_nonnegative(noisy, total)
    if noisy.ndim < 2 or not weights.any():
        return round_to_total(np.atleast_1d(weights))
    single = [_projected_sums(noisy, (axis,), total) for axis in range(noisy.ndim)]
    product = np.full((1,) * noisy.ndim, float(total))
    for sums in single:
        product = product * (sums / total)
    pairs = combinations(range(noisy.ndim), 2) if noisy.ndim > 2 else ()
    wanted = [*single, *(_projected_sums(noisy, pair, total) for pair in pairs)]
    weights = (1 - _EVEN) * weights + _EVEN * product
    for _ in range(_PASSES):
        for sums in wanted:
            weights = _scaled(weights, sums)
    return round_to_total(weights * (total / weights.sum()))


def _projected_sums(noisy: NDArray[np.int64], kept: tuple[int, ...], total: float) -> FloatArray:
    others = tuple(axis for axis in range(noisy.ndim) if axis not in kept)
    return project_nonnegative(noisy.sum(axis=others, keepdims=True), total)


def _scaled(weights: FloatArray, wanted: FloatArray) -> FloatArray:
    others = tuple(axis for axis, size in enumerate(wanted.shape) if size != weights.shape[axis])
    sums = weights.sum(axis=others, keepdims=True)
    return np.asarray(weights * np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0))
