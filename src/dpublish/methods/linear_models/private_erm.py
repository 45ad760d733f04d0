"""Publish a linear classifier that minimizes a perturbed objective.

To the sum of the records' losses a random linear term is added, and a ridge; the weights at the
minimum are published.  Noise of independent coordinates fits records in which few features
differ from 0, as with categories; noise of uniform direction fits the others.

Known as: objective perturbation, PrivateERM.
Reference: K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially Private Empirical Risk
Minimization", JMLR 12, 2011; here in the form for records added or removed, in which nothing is
divided by their number.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.continuous_noise import Shape, continuous_noise
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.linear_models.fitting_passes import count_records, minimize_on
from dpublish.methods.linear_models.objective_noise import (
    Perturb,
    quieter_shape,
    require_regularization,
)
from dpublish.methods.linear_models.proof_limits import assumptions, require_covered
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.solver_error import (
    ROUNDING_SHARE,
    SIZE_SHARE,
    publish_weights,
    require_publishable,
)
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class PrivateERM(Method[LinearModelRelease]):
    """Method: perturb the objective of a linear classifier, then minimize it."""

    name: ClassVar[str] = "private-erm"

    target: str = setting("Column of the classes.")
    predictors: tuple[str, ...] = setting(
        "Columns that may predict the class; all others, unless named.", default=()
    )
    model: Literal["logistic", "svm"] = setting(
        "Logistic regression, or a support vector machine with a smooth (Huber) loss.",
        default="logistic",
    )
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
        """Publish a linear classifier fitted to `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  For a
            class, weights w and linear terms b belong together one to one: b is minus the
            gradient of the rest at w.  A record t moves b by its own gradient, at most the
            sensitivity, and multiplies the volume by at most 1 + c / ridge.  The density of
            exact w changes by at most epsilon' (docs/proofs/perturbed_objective.md).  What is
            published are w as computed plus lattice noise that hides the error of the search
            and of floats (`publish_weights`).  The ridge follows from public facts, or from a
            noisy number of records.  Classes compose: their shares add up.  What it assumes (at
            most 2^24 records, a search that ends) is in the receipt (`proof_limits`).
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        task = self._task(table.schema)
        ridge, size, share = None, None, budget
        # Opened before any row is read: a share that is already used stops here.
        if self.regularization is not None:
            budgets = budget.split(size=SIZE_SHARE, model=1 - SIZE_SHARE)
            share = budgets["model"]
            size = count_records(table, task, budget=budgets["size"], rng=rng)
            ridge = self.regularization * size
        pairs = [
            own.split(noise=1 - ROUNDING_SHARE, rounding=ROUNDING_SHARE)
            for own in task.split(share)
        ]
        rows = []
        for done, (positive, shares) in enumerate(zip(task.problems, pairs, strict=True)):
            perturb = Perturb.of(task, self._shape(task), shares["noise"].epsilon, ridge)
            rows.append(self._fit(table, task, positive, perturb, shares, rng))
            if progress is not None:
                progress(done + 1, len(pairs), "classes")
        return LinearModelRelease(
            receipt=run.receipt(
                assumptions=assumptions(self._shape(task), size),
            ),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=np.array(rows) / task.features.norms,
            expected=expected.figures,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict how hard the noise pulls, in records that all pull the same way."""
        require_covered(n_records)
        task = self._task(schema)
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
        return ExpectedError(summary, figures, target="pull_of_noise")

    def _task(self, schema: Schema) -> ModelTask:
        return ModelTask.of(schema, self.target, self.predictors, self.model)

    def _shape(self, task: ModelTask) -> Shape:
        return quieter_shape(task) if self.noise == "auto" else self.noise

    def _fit(
        self,
        table: Table,
        task: ModelTask,
        positive: tuple[int, ...],
        perturb: Perturb,
        shares: dict[str, Budget],
        rng: RandomSource,
    ) -> FloatArray:
        noise = continuous_noise(
            perturb.shape,
            task.features.size,
            sensitivity=perturb.sensitivity,
            reserve=perturb.reserve,
            budget=shares["noise"],
            rng=rng,
        )
        pull = noise * np.array(perturb.widths)
        weights = minimize_on(table, task, positive, float(perturb.ridge), pull)
        return publish_weights(weights, error=perturb.error, budget=shares["rounding"], rng=rng)
