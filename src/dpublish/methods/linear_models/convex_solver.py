"""Find where a strongly convex function of the rows is least, by damped Newton steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpublish.methods.linear_models.kernel_gradients import Gradient
from dpublish.types import FloatArray

MOST_PASSES = 1 << 14
"""The proofs rest on searches that end by themselves; one of the tests takes 401 passes."""

FARTHEST = float(1 << 19)
"""Points are looked for within this distance of 0."""

_SHORTER = 0.9
_ENOUGH = 1e-4  # share of the predicted descent that a step must reach


@dataclass(frozen=True)
class _Point:
    weights: FloatArray
    value: float
    slope: FloatArray
    curvature: FloatArray

    @property
    def steepness(self) -> float:
        return float(np.linalg.norm(self.slope))

    def newton_step(self) -> FloatArray:
        return np.asarray(np.linalg.solve(self.curvature, -self.slope))


def minimize(
    sums: Callable[[FloatArray], Gradient],
    *,
    ridge: float,
    pull: FloatArray,
    tolerance: float,
    passes: int,
) -> FloatArray:
    """Minimize sum of losses + ridge / 2 * |w|^2 + pull * w.

    The gradient at the point found is at most `tolerance` long, so it lies within
    tolerance / ridge of the minimum.  All `passes` are made in any case; only if they are not
    enough, which rows decide, more follow, until the tolerance is met or
    `MOST_PASSES` were made, which no search that was seen comes near.

    A step is taken if it descends enough, or if it makes the shortest gradient so far shorter
    by a tenth; the latter decides close to the minimum, where losses are rounded.  So either
    gradients shrink to the tolerance or values fall, as Newton's do on every strongly convex
    function.

    Args:
        sums: Loss, gradient and curvature of the rows at given weights: one pass.
        ridge: Strength of the regularization, above 0.
        pull: A linear term.
        tolerance: Longest gradient that will do.
        passes: Passes over the rows that are made however soon the search is done.
    """
    best = _evaluate(sums, np.zeros_like(pull), ridge, pull)
    step, length = best.newton_step(), 1.0
    shortest = best.steepness
    for done in range(1, MOST_PASSES):
        if done >= passes and best.steepness <= tolerance:
            break
        trial = _evaluate(sums, _inside(best.weights + length * step), ridge, pull)
        descent = -_ENOUGH * float(best.slope @ (trial.weights - best.weights))
        if best.value - trial.value >= max(descent, 0) or trial.steepness <= _SHORTER * shortest:
            best = trial
            step, length = best.newton_step(), 1.0
            shortest = min(shortest, best.steepness)
        else:
            length /= 4
    return best.weights


def _evaluate(
    sums: Callable[[FloatArray], Gradient], weights: FloatArray, ridge: float, pull: FloatArray
) -> _Point:
    loss, slope, curvature = sums(weights)
    if curvature is None:
        raise TypeError("the sums must tell the curvature")
    value = loss + ridge / 2 * float(weights @ weights) + float(pull @ weights)
    return _Point(
        weights, value, slope + ridge * weights + pull, curvature + ridge * np.eye(weights.size)
    )


def _inside(weights: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(weights))
    return weights if length <= FARTHEST else weights * (FARTHEST / length)
