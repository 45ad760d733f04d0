"""PrivateERM: a linear classifier that minimizes a perturbed objective.

A random linear term and a ridge are added to the sum of the records' losses; the weights at the
minimum are published.  Noise of independent coordinates fits records in which few features
differ from 0, as with categories; noise of uniform direction fits the others.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.continuous_noise import (
    Shape,
    noise_error,
    noise_length,
    noise_scale,
    noise_variance,
    root_above,
)
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.linear_models.kernel_gradients import Loss, curvature_bound
from dpublish.methods.linear_models.minimizer import (
    LEAST_RIDGE,
    LOSSES,
    ROUNDING_SHARE,
    USUAL_WEIGHTS,
    assumptions,
    minimize_on,
    publish_weights,
    require_covered,
    require_publishable,
    require_regularization,
    round_up,
    solver_error,
)
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import (
    SIZE_SHARE,
    SMOOTH_CLASSIFIERS,
    ClassifierMethod,
    ModelTask,
    count_records,
)
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray

_FINENESS = 16  # widths are integers from here on


@dataclass(frozen=True, kw_only=True)
class PrivateERM(ClassifierMethod):
    """Publish a linear classifier at the minimum of a perturbed objective.

    Adds a random linear term to the sum of the records' losses and minimizes it.  Choose it for
    a linear model with its coefficients when all columns may matter a little; choose
    `LinearModel` when a few columns matter most, and `OutputPerturbation` when every weight
    needs a confidence interval.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record, for tables of at
        most 2^24 records; the receipt states what the proof assumes.
        Proof: docs/proofs/private_erm.md.

    Parameters:
        target: Column of the classes.
        predictors: Columns to predict it from; all others unless named.
        model: `"logistic"` for logistic regression, `"svm"` for a linear support vector machine
            with a smooth (Huber) loss.
        noise: `"laplace"` draws independent coordinates, `"spherical"` a uniform direction;
            `"auto"` takes the smaller, by the schema alone.
        regularization: Ridge for each record (lambda).  Unless given, the ridge balances the
            noise and no budget pays for the number of records.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `predict_proba(rows)` (logistic regression),
        `coefficients()` and `save(folder)`.

    Example:
        >>> from dpublish import Budget, PrivateERM, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = PrivateERM(target="income", predictors=("age", "education"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.predict({"age": [30, 30], "education": ["Primary", "Master"]}).to_pylist()
        ['<=50K', '>50K']

    Reference:
        K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially Private Empirical Risk
        Minimization", JMLR 12, 2011 (objective perturbation); here in the form for records added
        or removed, in which nothing is divided by their number.
    """

    name: ClassVar[str] = "private-erm"
    proofs: ClassVar[tuple[str, ...]] = ("private_erm", "exact")
    publishes: ClassVar[str] = (
        "a logistic regression or support vector machine, fitted to a perturbed objective"
    )
    prefer_when: ClassVar[str] = (
        "the model must be fitted directly, and its known limit is acceptable"
    )

    model: Literal["logistic", "svm"] = setting(SMOOTH_CLASSIFIERS, default="logistic")
    noise: Literal["auto", "laplace", "spherical"] = setting(
        "Noise of independent coordinates or of uniform direction; auto takes the smaller.",
        default="auto",
    )
    regularization: Fraction | None = setting(
        "Ridge for each record (lambda); left out, it balances the noise, and 2 % of epsilon "
        "for the number of records are saved.",
        default=None,
    )

    def __post_init__(self) -> None:
        if self.noise not in ("auto", "laplace", "spherical"):
            raise InvalidParameter("noise must be auto, laplace or spherical")
        require_regularization(self.regularization)

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish a linear classifier fitted to the records.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  For a
            class, weights w and linear terms b belong together one to one: b is minus the
            gradient of the rest at w.  A record t moves b by its own gradient, at most the
            sensitivity, and multiplies the volume by at most 1 + c / ridge.  The density of
            exact w changes by at most epsilon' (docs/proofs/private_erm.md).  What is
            published are w as computed plus lattice noise that hides the error of the search
            and of floats (`publish_weights`).  The ridge follows from public facts, or from a
            noisy number of records.  Classes compose: their shares add up.  What it assumes (at
            most 2^24 records, a search that ends) is in the receipt (`assumptions`).
        """
        task = self.model_task(run.schema)
        ridge, size, share = None, None, run.budget
        # Opened before any row is read: a share that is already used stops here.
        if self.regularization is not None:
            budgets = run.split(size=SIZE_SHARE, model=1 - SIZE_SHARE)
            share = budgets["model"]
            size = max(count_records(run, task, budget=budgets["size"]), 1)
            ridge = self.regularization * size
        pairs = [
            own.split(noise=1 - ROUNDING_SHARE, rounding=ROUNDING_SHARE)
            for own in task.split(share)
        ]
        rows = []
        for done, (positive, shares) in enumerate(zip(task.problems, pairs, strict=True)):
            perturb = Perturb.of(task, self._shape(task), shares["noise"].epsilon, ridge)
            rows.append(fit_perturbed(run, task, positive, perturb, **shares))
            run.step(done + 1, len(pairs), "classes")
        return LinearModelRelease(
            receipt=run.receipt(assumptions=assumptions(self._shape(task), size)),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=np.array(rows) / task.features.norms,
            expected=run.expected,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict how hard the noise pulls, in records that all pull the same way."""
        require_covered(n_records)
        task = self.model_task(schema)
        ridge, left = None, epsilon
        if self.regularization is not None:
            require_rate(epsilon * SIZE_SHARE)
            left = epsilon * (1 - SIZE_SHARE)
            ridge = self.regularization * (n_records or 1)
        share = task.share(left)
        perturb = Perturb.of(task, self._shape(task), share * (1 - ROUNDING_SHARE), ridge)
        require_publishable(task.features.size, perturb.error, share * ROUNDING_SHARE)
        figures = {"pull_of_noise": float(perturb.pull), "ridge": float(perturb.ridge)}
        if n_records:
            figures["pull_of_noise_per_record"] = figures["pull_of_noise"] / n_records
        summary = (
            f"{task.features.size} weights for each of {len(task.problems)} scores; noise pulls "
            f"at them as {figures['pull_of_noise']:,.0f} records would that all agree"
        )
        return ExpectedError(summary, figures, target="pull_of_noise", is_of_goal=False)

    def _shape(self, task: ModelTask) -> Shape:
        return quieter_shape(task) if self.noise == "auto" else self.noise


def fit_perturbed(
    run: Run,
    task: ModelTask,
    positive: tuple[int, ...],
    perturb: "Perturb",
    *,
    noise: Budget,
    rounding: Budget,
) -> FloatArray:
    """Minimize the perturbed objective of one two-class problem, and publish the weights.

    Privacy:
        `noise.epsilon + rounding.epsilon`-differentially private when one record is added or
        removed: the linear term hides what a record adds to the gradient, the reserve pays for
        the change of volume, and `publish_weights` hides the error of the search and of floats.
    """
    drawn = run.continuous_noise(
        perturb.shape,
        task.features.size,
        sensitivity=perturb.sensitivity,
        reserve=perturb.reserve,
        budget=noise,
    )
    pull = drawn * np.array(perturb.widths)
    weights = minimize_on(run, task, positive, float(perturb.ridge), pull)
    return publish_weights(run, weights, error=perturb.error, budget=rounding)


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
    """Compute how wide the noise of each feature is, and what a record then adds at most.

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
    """Compute the root of the mean squared length of noise, rounded up."""
    squares = noise_variance(shape, len(widths)) * sum(width**2 for width in widths)
    return root_above(squares) * scale


def least_ridge(loss: Loss, epsilon: Fraction) -> Fraction:
    """Return the least ridge of the proof: the change of volume must not use up epsilon."""
    return max(1 / epsilon if loss == "logistic" else 2 / epsilon, LEAST_RIDGE)


def volume_cost(loss: Loss, ridge: Fraction) -> Fraction:
    """Bound what the change of volume adds to the privacy loss where the gradient is longest.

    A Huber loss may be steepest and bent at once: log(1 + c / ridge), at most c / ridge.  A
    logistic loss of slope s is bent by s (1 - s) only.  If ridge >= 1 / epsilon, then
    log(1 + s (1 - s) / ridge) <= (1 - s) epsilon: what the slope leaves of epsilon suffices.
    """
    return Fraction(0) if loss == "logistic" else Fraction(curvature_bound(loss)) / ridge
