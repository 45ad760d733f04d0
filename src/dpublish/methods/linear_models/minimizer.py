"""Minimize the losses of the records and publish the weights: what both perturbations share.

The proofs of objective and output perturbation speak of the exact minimum and of real numbers.
What is computed lies within a public distance of it, whatever the rows; exact noise on a lattice
that hides twice that distance makes up for it.  Proof: docs/proofs/private_erm.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from dpublish.core.method import Run
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.continuous_noise import Shape, root_above
from dpublish.mechanisms.exact.lattice import choose_exponent, lattice_sensitivity
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.linear_models.kernel_gradients import (
    SLOPE_ERROR,
    Gradient,
    LinearGradients,
    Loss,
    curvature_bound,
)
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray

LOSSES: dict[str, Loss] = {"logistic": "logistic", "svm": "huber"}
"""The smooth loss that stands for each model."""

PASSES: dict[Loss, int] = {"logistic": 16, "huber": 48}
"""Passes that a search makes in any case; they were enough on all tables it was tried on."""

MOST_PASSES = 1 << 14
"""The proofs rest on searches that end by themselves; the longest found took 530 passes."""

FARTHEST = float(1 << 19)
"""Points are looked for within this distance of 0."""

TOLERANCE = 2.0**-16
"""Longest gradient at which the search may end; one record's is at most 1 long."""

ROUNDING_SHARE = Fraction(1, 100)
"""Part of epsilon that pays for the distance from the exact minimum."""

MOST_RECORDS = 1 << 24
"""Rounding errors are covered up to so many records."""

LEAST_RIDGE = Fraction(1, 16)

USUAL_WEIGHTS = 5
"""Length that weights of features in [-1, 1] usually have: what a ridge is balanced for.

The ridge balances what noise costs, at most |b|^2 / ridge, and what it costs itself, ridge times
|w|^2.  Features scaled to a norm of 1 have weights sqrt(columns + 1) times as long.
"""

BEYOND = (
    f"NOT COVERED: by its noisy size the table has more than the {MOST_RECORDS:,} records up to "
    "which rounding errors are bounded"
)

_SHORTER = 0.9  # by so much a gradient must shrink to be taken on its word
_ROUNDED = 2.0**-44  # part of a value by which rounding may raise it
_FLATTER = 0.5  # by so much the derivative must shrink along a step
_SMALLER = 64.0  # how much shorter a step is tried next, as long as all were too long
_EDGE = 1e-3  # secants keep off the ends of what is known by this part
_MOST_LENGTHS = 60  # of one step


# --- The search -------------------------------------------------------------------------------


def minimize_on(
    run: Run, task: ModelTask, positive: tuple[int, ...], ridge: float, pull: FloatArray
) -> FloatArray:
    """Minimize the losses of one class against the others, with a ridge and a linear term.

    The weights are exact up to `solver_error`, and therefore private.
    """
    loss = LOSSES[task.model]

    def sums(weights: FloatArray) -> Gradient:
        kernel = LinearGradients(
            task.schema,
            task.features,
            task.target.name,
            positive,
            weights,
            loss,
            second=True,
        )
        return kernel.read(run.sum(kernel))

    return minimize(sums, ridge=ridge, pull=pull, tolerance=TOLERANCE, passes=PASSES[loss])


def minimize(
    sums: Callable[[FloatArray], Gradient],
    *,
    ridge: float,
    pull: FloatArray,
    tolerance: float,
    passes: int,
    start: FloatArray | None = None,
    most_passes: int | None = None,
) -> FloatArray:
    """Minimize sum of losses + ridge / 2 * |w|^2 + pull * w, by Newton steps of searched length.

    The gradient at the point found is at most `tolerance` long, so it lies within
    tolerance / ridge of the minimum.  All `passes` are made in any case; only if they are not
    enough, which rows decide, more follow, until the tolerance is met or
    `MOST_PASSES` were made, which the proofs assume not to happen.

    The function is convex, so along a step its derivative only grows.  It is known from the
    gradient, exactly enough even where values are rounded; a step ends where the function still
    falls, or has just ceased to.  So values never rise (beyond their rounding), however uneven
    the records are: a gradient that is short somewhere far off leads nowhere.

    Args:
        sums: Loss, gradient and curvature of the rows at given weights: one pass.
        ridge: Strength of the regularization, above 0.
        pull: A linear term.
        tolerance: Longest gradient that is accepted.
        passes: Passes over the rows that are made however soon the search is done.
        start: Where to begin; at 0 unless given.
        most_passes: After so many the search is broken off; `MOST_PASSES` unless given.
    """
    first = _evaluate(sums, np.zeros_like(pull) if start is None else start, ridge, pull)
    step = _Step(first)
    for done in range(1, MOST_PASSES if most_passes is None else most_passes):
        if done >= passes and step.begin.steepness <= tolerance:
            break
        trial = _evaluate(sums, step.target(), ridge, pull)
        ended = step.narrow(trial)
        if ended is not None:
            step = _Step(ended)
    return step.begin.weights


class _Step:
    """A Newton step from a point: how far to go along it, searched by the derivative."""

    def __init__(self, begin: "_Point") -> None:
        self.begin = begin
        self.direction = begin.newton_step()
        self.rate = float(begin.slope @ self.direction)  # below 0: the function falls
        self.low, self.low_rate, self.left = 0.0, self.rate, begin
        self.high, self.high_rate = 0.0, 0.0  # no point beyond the lowest is known yet
        self.length, self.tried = 1.0, 0

    def target(self) -> FloatArray:
        """Return the point to try."""
        return _inside(self.begin.weights + self.length * self.direction)

    def narrow(self, trial: "_Point") -> "_Point | None":
        """Return the point where the step ends; None if another length must be tried."""
        rate = float(trial.slope @ self.direction)
        if self._is_end(trial, rate):
            return trial
        self.tried += 1
        if rate > 0:
            self.high, self.high_rate = self.length, rate
        else:
            self.low, self.low_rate, self.left = self.length, rate, trial
        if self.tried >= _MOST_LENGTHS and self.left is not self.begin:
            return self.left
        self.length = self._between()
        return None

    def _is_end(self, trial: "_Point", rate: float) -> bool:
        """Whether the function falls up to the trial, and by then much more slowly, if at all.

        A whole step is an end if the function still falls there.  Close to the minimum, where
        values and derivatives are rounded, a much shorter gradient decides, unless the value
        rose.
        """
        if rate <= 0:
            return self.length == 1 or -rate <= _FLATTER * -self.rate
        rose = trial.value - self.begin.value > _ROUNDED * (1 + abs(self.begin.value))
        return not rose and trial.steepness <= _SHORTER * self.begin.steepness

    def _between(self) -> float:
        """Choose the next length: by the secant of the derivative, or halfway in turn."""
        if self.tried % 2 == 0:
            return sqrt(self.low * self.high) if self.low > 0 else self.high / _SMALLER
        gap = self.high - self.low
        share = self.low_rate / (self.low_rate - self.high_rate)
        return self.low + gap * min(max(share, _EDGE), 1 - _EDGE)


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


def _evaluate(
    sums: Callable[[FloatArray], Gradient], weights: FloatArray, ridge: float, pull: FloatArray
) -> _Point:
    loss, slope, curvature = sums(weights)
    if curvature is None:
        raise TypeError("the sums must include the curvature")
    value = loss + ridge / 2 * float(weights @ weights) + float(pull @ weights)
    return _Point(
        weights, value, slope + ridge * weights + pull, curvature + ridge * np.eye(weights.size)
    )


def _inside(weights: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(weights))
    return weights if length <= FARTHEST else weights * (FARTHEST / length)


# --- What is published ------------------------------------------------------------------------


def solver_error(loss: Loss, columns: int, ridge: Fraction, pull: Fraction) -> Fraction:
    """Bound the L2 distance between the point found and the exact minimum.

    The gradient there is at most `TOLERANCE` as computed; what rounding adds to it is bounded
    for weights as long as the minimum's can be: twice pull / ridge + sqrt(2 records / ridge).
    Divided by the ridge, since the function is that strongly convex, it bounds the distance.

    Args:
        loss: Loss of a record.
        columns: Number of predictors.
        ridge: Strength of the regularization.
        pull: Longest linear term.
    """
    weights = 2 * float(pull / ridge) + sqrt(2 * MOST_RECORDS / ridge) + 1
    if weights > FARTHEST:
        raise InvalidParameter(
            "with so little regularization the best weights may be too large to look for; take "
            "fewer columns, or a larger regularization"
        )
    margin = (columns + 6) * 2.0**-53 * weights
    record = curvature_bound(loss) * margin + SLOPE_ERROR + 2.0**-50
    terms = 2.0**-50 * (float(ridge) * weights + float(pull))
    gradient = TOLERANCE + MOST_RECORDS * record + terms
    return Fraction(ceil(gradient * 2**40), 1 << 40) / ridge


def publish_weights(
    run: Run, weights: FloatArray, *, error: Fraction, budget: Budget
) -> FloatArray:
    """Move weights onto a lattice, with exact noise that hides how they were computed.

    Args:
        run: The release at work.
        weights: What was computed.
        error: Most that they lie apart (L2) from what the rest of the budget paid for.
        budget: Budget to empty.

    Privacy:
        Let a mechanism be private that publishes real numbers, and let the weights lie within
        `error` of them in L2, always.  Given those reals, the weights of two neighbors lie at
        most 2 * error apart in L2, so 2 * error * sqrt(p) in L1, and `add_laplace` hides that
        for `budget.epsilon`.  Together both cost the sum, and the reals stay unpublished.
    """
    return run.add_laplace(weights, sensitivity=_apart(len(weights), error), budget=budget).values


def require_publishable(size: int, error: Fraction, epsilon: Fraction) -> None:
    """Refuse an epsilon for which `publish_weights` could not draw its noise."""
    apart = _apart(size, error)
    units = lattice_sensitivity(apart, choose_exponent(apart, epsilon, size), size)
    require_rate(epsilon / units)


def rounding_deviation(size: int, error: Fraction, epsilon: Fraction) -> float:
    """Compute the standard deviation of the noise that `publish_weights` adds to each weight."""
    return sqrt(2) * float(_apart(size, error) / epsilon)


def _apart(size: int, error: Fraction) -> Fraction:
    return 2 * root_above(size) * error


# --- What the proof assumes, and settings -----------------------------------------------------


def assumptions(shape: Shape, records: int | None = None) -> Sequence[str]:
    """List what the proof assumes, for the receipt; `records` is a noisy number of them."""
    found = [
        f"the table has at most {MOST_RECORDS:,} (2^24) records",
        "no noise was drawn whose probability is below 10^-50",
        f"every search for a minimum would meet its tolerance within {MOST_PASSES:,} passes",
    ]
    if shape == "spherical":
        found.append("the machine's square root, logarithm, sine and cosine are within 2 ulp")
    return [BEYOND, *found] if records is not None and records > MOST_RECORDS else found


def require_covered(n_records: int | None) -> None:
    """Refuse a public number of records for which the proof does not hold."""
    if n_records is not None and n_records > MOST_RECORDS:
        raise InvalidParameter(
            f"the proof of this method covers at most {MOST_RECORDS:,} (2^24) records, not "
            f"{n_records:,}; take another method"
        )


def require_regularization(value: Fraction | None) -> None:
    """Refuse a ridge that is not above 0, or that is absurdly large."""
    if value is None:
        return
    if not isinstance(value, Fraction) or not 0 < value <= 1 << 20:
        raise InvalidParameter(f"regularization ({value}) must be above 0 and at most 2**20")


def round_up(ridge: Fraction) -> Fraction:
    """Round a ridge up to one that a float holds exactly."""
    return Fraction(ceil(ridge * 1024), 1024)
