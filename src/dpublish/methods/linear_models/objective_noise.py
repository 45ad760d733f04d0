"""How strongly an objective is perturbed and regularized: from public facts alone."""

from fractions import Fraction
from math import ceil
from typing import NamedTuple, Self

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.continuous_noise import (
    Shape,
    noise_error,
    noise_length,
    noise_scale,
    noise_variance,
    root_above,
)
from dpublish.methods.linear_models.fitting_passes import LOSSES
from dpublish.methods.linear_models.kernel_gradients import Loss, curvature_bound
from dpublish.methods.linear_models.solver_error import LEAST_RIDGE, solver_error
from dpublish.methods.linear_models.task import ModelTask

USUAL_WEIGHTS = 5
"""Length that weights of features in [-1, 1] usually have: what a ridge is balanced for.

The ridge balances what noise costs, at most |b|^2 / ridge, and what it costs itself, ridge times
|w|^2.  Features scaled to a norm of 1 have weights sqrt(columns + 1) times as long.
"""

_FINENESS = 16  # widths are integers from here on


class Perturb(NamedTuple):
    """How one two-class problem is perturbed, from public facts and the noisy size alone.

    Attributes:
        shape: Shape of the noise.
        widths: What the noise of each feature is multiplied by, integers.
        sensitivity: Most that a record's gradient, divided by the widths, is long.
        reserve: Part of epsilon that pays for the change of volume.
        ridge: Strength of the regularization.
        scale: Scale of the noise before it is multiplied.
        error: Most that the weights found lie apart from the exact minimum, in L2.
    """

    shape: Shape
    widths: tuple[int, ...]
    sensitivity: Fraction
    reserve: Fraction
    ridge: Fraction
    scale: Fraction
    error: Fraction

    @classmethod
    def of(cls, task: ModelTask, shape: Shape, epsilon: Fraction, ridge: Fraction | None) -> Self:
        """Calibrate the noise to `epsilon`; without a ridge, take the usual one."""
        loss = LOSSES[task.model]
        columns, size = len(task.features.columns), task.features.size
        widths, sensitivity = noise_widths(task, shape)
        if ridge is None:
            ridge = pull_of_noise(shape, widths, sensitivity / epsilon) / (
                USUAL_WEIGHTS * root_above(columns + 1)
            )
        ridge = round_up(max(ridge, least_ridge(loss, epsilon)))
        reserve = volume_cost(loss, ridge)
        scale = noise_scale(shape, size, epsilon - reserve, sensitivity)
        widest = max(widths) * scale
        error = solver_error(loss, columns, ridge, noise_length(size, widest))
        error += noise_error(shape, size, widest) / ridge
        return cls(shape, widths, sensitivity, reserve, ridge, scale, error)

    @property
    def pull(self) -> Fraction:
        """Root of the mean squared length of the noise: so many records pull as hard."""
        return pull_of_noise(self.shape, self.widths, self.scale)


def noise_widths(task: ModelTask, shape: Shape) -> tuple[tuple[int, ...], Fraction]:
    """Say how wide the noise of each feature is, and what a record then adds at most.

    A record touches one of the p_g features of a column.  Independent noise of widths q costs
    the sum of 1 / q over columns, and has a variance of the sum of p_g q^2; the latter is least,
    given the former, where q is inverse to the cube root of p_g.
    """
    groups = task.features.groups
    if shape == "spherical":
        return (1,) * task.features.size, Fraction(1)
    largest = max(map(len, groups))
    by_group = [ceil(_FINENESS * (largest / len(group)) ** (1 / 3)) for group in groups]
    widths = tuple(q for q, group in zip(by_group, groups, strict=True) for _ in group)
    shares = sum((Fraction(1, q) for q in by_group), Fraction(0))
    return widths, shares * root_above(Fraction(1, len(groups)))


def quieter_shape(task: ModelTask) -> Shape:
    """Choose the shape whose noise is shorter."""
    laplace, spherical = (
        pull_of_noise(shape, *noise_widths(task, shape)) for shape in ("laplace", "spherical")
    )
    return "laplace" if laplace <= spherical else "spherical"


def pull_of_noise(shape: Shape, widths: tuple[int, ...], scale: Fraction) -> Fraction:
    """Find the root of the mean squared length of noise, rounded up."""
    squares = noise_variance(shape, len(widths)) * sum(width**2 for width in widths)
    return root_above(squares) * scale


def least_ridge(loss: Loss, epsilon: Fraction) -> Fraction:
    """Say which ridge the proof needs: the change of volume must not eat up epsilon."""
    return max(1 / epsilon if loss == "logistic" else 2 / epsilon, LEAST_RIDGE)


def volume_cost(loss: Loss, ridge: Fraction) -> Fraction:
    """Bound what the change of volume adds to the privacy loss where the gradient is longest.

    A Huber loss may be steepest and bent at once: log(1 + c / ridge), at most c / ridge.  A
    logistic loss of slope s is bent by s (1 - s) only.  If ridge >= 1 / epsilon, then
    log(1 + s (1 - s) / ridge) <= (1 - s) epsilon: what the slope leaves of epsilon suffices.
    """
    return Fraction(0) if loss == "logistic" else Fraction(curvature_bound(loss)) / ridge


def round_up(ridge: Fraction) -> Fraction:
    """Take a ridge that a float holds exactly."""
    return Fraction(ceil(ridge * 1024), 1024)


def require_regularization(value: Fraction | None) -> None:
    """Refuse a ridge that is not above 0, or that is absurdly large."""
    if value is None:
        return
    if not isinstance(value, Fraction) or not 0 < value <= 1 << 20:
        raise InvalidParameter(f"regularization ({value}) must be above 0 and at most 2**20")
