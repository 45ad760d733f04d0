"""Output perturbation: the weights of a regularized linear classifier, with noise."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from dpublish.accuracy.rounding import format_number
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.schema import Schema
from dpublish.mechanisms.continuous_noise import noise_error, noise_scale, noise_variance
from dpublish.mechanisms.exact.sampler import require_rate
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
    rounding_deviation,
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

USUAL_RECORDS = 10_000
"""Number of records for which errors are predicted unless it is given."""


class OutputNoise(NamedTuple):
    """The noise of the weights of one two-class problem."""

    ridge: Fraction
    scale: Fraction
    error: Fraction

    @classmethod
    def of(cls, task: ModelTask, epsilon: Fraction, ridge: Fraction) -> Self:
        """Calibrate the noise of weights that a record moves by at most 1 / ridge."""
        ridge = round_up(max(ridge, LEAST_RIDGE))
        size = task.features.size
        scale = noise_scale("spherical", size, epsilon, 1 / ridge)
        columns = len(task.features.columns)
        error = solver_error(LOSSES[task.model], columns, ridge, Fraction(0))
        return cls(ridge, scale, error + noise_error("spherical", size, scale))


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(ClassifierMethod):
    """Publish the weights of a regularized linear classifier, with noise.

    Minimizes the records' losses and a ridge, then adds noise to the weights.  Choose it as a
    baseline, or when every weight needs a confidence interval; `PrivateERM` was more accurate
    on every table tried.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record, for tables of at
        most 2^24 records; the receipt states what the proof assumes.
        Proof: docs/proofs/private_erm.md.

    Parameters:
        target: Column of the classes.
        predictors: Columns to predict it from; all others unless named.
        model: `"logistic"` for logistic regression, `"svm"` for a linear support vector machine
            with a smooth (Huber) loss.
        regularization: Ridge for each record (lambda).  Unless given, the ridge balances the
            noise, by a formula of epsilon, the schema and the noisy number of records.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `predict_proba(rows)` (logistic regression),
        `coefficients()` with the standard deviation of each weight's noise, and `save(folder)`.

    Example:
        >>> from dpublish import Budget, OutputPerturbation, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = OutputPerturbation(target="income", predictors=("age", "education"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> for row in release.coefficients().to_pylist():
        ...     weight, deviation = row["weight"], row["standard_deviation"]
        ...     print(f"{row['feature']:12} {weight:6.2f} +/- {2 * deviation:.2f}")
        age            0.25 +/- 0.62
        education      2.29 +/- 0.62
        (intercept)   -0.92 +/- 0.62

    Reference:
        K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially Private Empirical Risk
        Minimization", JMLR 12, 2011 (output perturbation, the sensitivity method); here in the
        form for records added or removed.
    """

    name: ClassVar[str] = "output-perturbation"
    proofs: ClassVar[tuple[str, ...]] = ("private_erm", "exact")
    publishes: ClassVar[str] = (
        "a logistic regression or support vector machine with noise on its weights"
    )
    prefer_when: ClassVar[str] = "you want a simple baseline that tolerates an inexact solver"
    standing: ClassVar[Standing] = "baseline"

    model: Literal["logistic", "svm"] = setting(SMOOTH_CLASSIFIERS, default="logistic")
    regularization: Fraction | None = setting(
        "Ridge for each record (lambda); left out, it balances the noise.", default=None
    )

    def __post_init__(self) -> None:
        require_regularization(self.regularization)

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish a linear classifier fitted to the records.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            ridge follows from public facts and a noisy number of records.  For each class the
            objective is strongly convex (ridge), and a record adds a gradient of length 1 at
            most, so the exact minimum moves by at most 1 / ridge in L2, which spherical noise
            hides.  What is published are weights and noise as computed, plus lattice noise that
            hides the error of the search and of floats (`publish_weights`).  Shares add up.
            What it assumes, at most 2^24 records among it, is in the receipt (`assumptions`).
        """
        task = self.model_task(run.schema)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(size=SIZE_SHARE, model=1 - SIZE_SHARE)
        pairs = [
            own.split(noise=1 - ROUNDING_SHARE, rounding=ROUNDING_SHARE)
            for own in task.split(budgets["model"])
        ]
        records = max(count_records(run, task, budget=budgets["size"]), 1)
        rows = []
        for done, (positive, shares) in enumerate(zip(task.problems, pairs, strict=True)):
            perturb = self._perturb(task, shares["noise"].epsilon, records)
            rows.append(fit_and_perturb(run, task, positive, perturb, **shares))
            run.step(done + 1, len(pairs), "classes")
        deviation = self._deviation(task, records, run.epsilon)
        return LinearModelRelease(
            receipt=run.receipt(assumptions=assumptions("spherical", records)),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=np.array(rows) / task.features.norms,
            expected=self._expect(run.schema, records, run.epsilon).figures,
            standard_deviation=np.full((len(rows), task.features.size), deviation),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of each weight, given the number of records."""
        require_covered(n_records)
        return self._expect(schema, n_records, epsilon)

    def _expect(self, schema: Schema, n_records: int | None, epsilon: Fraction) -> ExpectedError:
        task = self.model_task(schema)
        require_rate(epsilon * SIZE_SHARE)
        records = n_records or USUAL_RECORDS
        share = self._share(task, epsilon)
        for size in (1, records):  # the least ridge that a table can lead to, and the likely one
            perturb = self._perturb(task, share * (1 - ROUNDING_SHARE), size)
            require_publishable(task.features.size, perturb.error, share * ROUNDING_SHARE)
        figures = {
            "one_weight": self._deviation(task, records, epsilon),
            "ridge": float(perturb.ridge),
        }
        summary = (
            f"{task.features.size} weights for each of {len(task.problems)} scores; noise of "
            f"standard deviation {format_number(figures['one_weight'], 3)} in each at {records:,} "
            "records"
        )
        return ExpectedError(summary, figures, target="one_weight", is_of_goal=False)

    def _share(self, task: ModelTask, epsilon: Fraction) -> Fraction:
        return task.share(epsilon * (1 - SIZE_SHARE))

    def _perturb(self, task: ModelTask, epsilon: Fraction, records: int) -> OutputNoise:
        if self.regularization is not None:
            return OutputNoise.of(task, epsilon, self.regularization * records)
        return OutputNoise.of(task, epsilon, balanced_ridge(task, epsilon, records))

    def _deviation(self, task: ModelTask, records: int, epsilon: Fraction) -> float:
        """Compute the standard deviation of each published weight, all noise included."""
        share = self._share(task, epsilon)
        perturb = self._perturb(task, share * (1 - ROUNDING_SHARE), records)
        size = task.features.size
        variance = noise_variance("spherical", size) * float(perturb.scale) ** 2
        variance += rounding_deviation(size, perturb.error, share * ROUNDING_SHARE) ** 2
        return sqrt(variance) / task.features.norms


def fit_and_perturb(
    run: Run,
    task: ModelTask,
    positive: tuple[int, ...],
    perturb: OutputNoise,
    *,
    noise: Budget,
    rounding: Budget,
) -> FloatArray:
    """Minimize the losses of one two-class problem, and publish the weights with noise.

    Privacy:
        `noise.epsilon + rounding.epsilon`-differentially private when one record is added or
        removed: it moves the exact minimum by at most 1 / ridge in L2, which spherical noise
        hides, and `publish_weights` hides the error of the search, of the draw and of floats.
    """
    size = task.features.size
    drawn = run.continuous_noise("spherical", size, sensitivity=1 / perturb.ridge, budget=noise)
    weights = minimize_on(run, task, positive, float(perturb.ridge), np.zeros(size))
    return publish_weights(run, weights + drawn, error=perturb.error, budget=rounding)


def balanced_ridge(task: ModelTask, epsilon: Fraction, records: int) -> Fraction:
    """Balance what noise costs and what the ridge does, for weights of the usual length.

    Noise of variance v = (p + 1) / (epsilon ridge)^2 in each weight costs at most records *
    v / 8 of loss, since the curvatures of a record add up to at most 1/4; a ridge costs at most
    ridge * |w|^2 / 2.
    """
    size, columns = task.features.size, len(task.features.columns)
    squares = USUAL_WEIGHTS**2 * (columns + 1)
    cube = float((size + 1) * records / (2 * epsilon**2 * squares))
    return Fraction(cube ** (1 / 3)).limit_denominator(1024)
