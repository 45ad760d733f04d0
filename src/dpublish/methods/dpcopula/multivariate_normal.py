"""Probabilities of boxes under a normal distribution, and means of products of step functions.

A box's probability is an integral over as many variables as it has sides.  Taken one after the
other, each variable is drawn from that part of its range that the box leaves it, given those
before; what is left to average is the product of these parts, a smooth function on the unit
cube.  Quasi-random points do this well and give the same answer every time.

Known as: separation of variables.
Reference: A. Genz, "Numerical Computation of Multivariate Normal Probabilities", Journal of
Computational and Graphical Statistics 1(2), 1992.
"""

from collections.abc import Sequence
from functools import cache
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpublish.types import FloatArray

POINTS = 2048
_BLOCK = 1 << 17  # numbers worked on at once: small enough to stay near the processor
_LEAST, _MOST = 1e-300, 1 - 2.0**-53  # probabilities whose normal quantile is finite


class Steps(NamedTuple):
    """Products of step functions of m normal variables, q products at once.

    In product i the function of variable j is `weights[i, j, r]` from `lower[i, j, r]` to
    `upper[i, j, r]`, for each run r, and 0 elsewhere.  All are arrays of shape (q, m, runs);
    runs that are not needed weigh 0.
    """

    lower: FloatArray
    upper: FloatArray
    weights: FloatArray

    def pick(self, variables: Sequence[int]) -> "Steps":
        """Keep only some of the variables."""
        return Steps(*(part[:, list(variables)] for part in self))

    def repeat(self, times: int) -> "Steps":
        """List every product `times` times in a row."""
        return Steps(*(np.repeat(part, times, axis=0) for part in self))


def box_probabilities(
    matrix: FloatArray, lower: FloatArray, upper: FloatArray, points: int = POINTS
) -> FloatArray:
    """Find the probability of each box under normal variables with a correlation matrix.

    Args:
        matrix: Correlations of the m variables, positive definite.
        lower: Lower ends of q boxes, shape (q, m); may be -inf.
        upper: Upper ends, shape (q, m); may be inf.
        points: How many quasi-random points to average over.

    >>> quadrant = np.zeros((1, 2)), np.full((1, 2), inf)
    >>> box_probabilities(np.array([[1, 0.5], [0.5, 1]]), *quadrant).round(3)
    array([0.333])
    """
    probabilities = np.ones(len(lower))
    limited = (lower > -inf) | (upper < inf)
    # A variable without limits is left out, which is exact; so boxes go by their limits.
    for pattern in np.unique(limited, axis=0):
        rows = np.flatnonzero((limited == pattern).all(axis=1))
        used = np.flatnonzero(pattern)
        if used.size:
            low, high = lower[np.ix_(rows, used)], upper[np.ix_(rows, used)]
            steps = Steps(low[..., None], high[..., None], np.ones((*low.shape, 1)))
            probabilities[rows] = expected_products(matrix[np.ix_(used, used)], steps, points)
    return probabilities


def expected_products(matrix: FloatArray, steps: Steps, points: int = POINTS) -> FloatArray:
    """Find the mean of each product of step functions of correlated normal variables."""
    products, variables, _ = steps.lower.shape
    if variables == 0:
        return np.ones(products)
    # The narrowest first: what is left to average then varies least.
    masses = steps.weights * (ndtr(steps.upper) - ndtr(steps.lower))
    order = np.argsort(masses.sum(axis=2).mean(axis=0), kind="stable")
    factor = np.asarray(np.linalg.cholesky(matrix[np.ix_(order, order)]), dtype=np.float64)
    ordered = steps.pick(order.tolist())
    found = np.empty(products)
    block = max(1, _BLOCK // points)
    for start in range(0, products, block):
        part = Steps(*(values[start : start + block] for values in ordered))
        found[start : start + block] = _average(factor, part, lattice(variables - 1, points))
    return found


def condition(
    matrix: FloatArray, steps: Steps, fixed: int, values: FloatArray
) -> tuple[FloatArray, Steps]:
    """Fix one variable at `values`, one for each product, and describe the others given it.

    The others are moved and stretched to be standard normal again.
    """
    rest = [j for j in range(len(matrix)) if j != fixed]
    slopes = matrix[rest, fixed]
    covariance = matrix[np.ix_(rest, rest)] - np.outer(slopes, slopes)
    scales = np.sqrt(np.diag(covariance))
    means = np.outer(values, slopes)[:, :, None]
    picked = steps.pick(rest)
    moved = Steps(
        (picked.lower - means) / scales[:, None],
        (picked.upper - means) / scales[:, None],
        picked.weights,
    )
    return covariance / np.outer(scales, scales), moved


@cache
def lattice(variables: int, points: int) -> FloatArray:
    """Make points that fill the unit cube evenly, one row for each variable.

    Multiples of the roots of primes, modulo 1 (after Richtmyer), folded so that the ends of
    the unit interval meet: a function on them is averaged as if it were periodic.
    """
    steps = np.arange(1, points + 1) * np.sqrt(_primes(variables))[:, None]
    cube = np.abs(2 * ((steps + 0.5) % 1) - 1)
    cube.flags.writeable = False
    return np.asarray(cube)


def _primes(count: int) -> NDArray[np.int64]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return np.array(found, dtype=np.int64)


def _average(factor: FloatArray, steps: Steps, cube: FloatArray) -> FloatArray:
    """Average the products of masses over the points of the cube."""
    variables = len(factor)
    normals: list[FloatArray] = []
    product: FloatArray = np.ones((len(steps.lower), 1))
    for j in range(variables):
        # The first variable has the same range at every point, so one column is enough.
        shift: FloatArray = np.zeros((len(product), 1))
        for k, normal in enumerate(normals):
            if factor[j, k]:
                shift = shift + factor[j, k] * normal
        low = ndtr((steps.lower[:, j, None] - shift[..., None]) / factor[j, j])
        high = ndtr((steps.upper[:, j, None] - shift[..., None]) / factor[j, j])
        weights = steps.weights[:, j, None]
        mass = np.cumsum(weights * (high - low), axis=2)
        product = product * mass[..., -1]
        if j < variables - 1:
            normals.append(_draw(low, mass, weights, cube[j]))
    return np.asarray(product.mean(axis=1))


def _draw(low: FloatArray, mass: FloatArray, weights: FloatArray, part: FloatArray) -> FloatArray:
    """Find the normal values below which `part` of the weighted mass lies."""
    target = part * mass[..., -1]
    if mass.shape[2] == 1:
        inside = low[..., 0] + target / np.maximum(weights[..., 0], _LEAST)
    else:
        run = (mass[..., :-1] < target[..., None]).sum(axis=2)[..., None]
        shape = (*target.shape, mass.shape[2])
        before = np.concatenate([np.zeros((*mass.shape[:2], 1)), mass[..., :-1]], axis=2)
        start, passed, weight = (
            np.take_along_axis(np.broadcast_to(values, shape), run, axis=2)[..., 0]
            for values in (low, before, weights)
        )
        inside = start + (target - passed) / np.maximum(weight, _LEAST)
    return np.asarray(ndtri(np.clip(inside, _LEAST, _MOST)))
