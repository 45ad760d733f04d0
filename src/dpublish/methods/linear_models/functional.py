"""Publish a linear or logistic model by perturbing the coefficients of its objective.

Known as: functional mechanism (FM).
Reference: J. Zhang, Z. Zhang, X. Xiao, Y. Yang, M. Winslett, "Functional Mechanism: Regression
Analysis under Differential Privacy", PVLDB 5(11), 2012.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.features import FEATURE_UNIT, scaled_leaves
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.linear_models.kernel_moments import RESPONSE_UNIT, LinearMoments
from dpublish.methods.linear_models.moment_solution import NoisyMoments, solve
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import ModelTask, require_bound
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray

FACTORS = {"linear": 1.0, "logistic": 2.0}
"""What the solution of least squares is multiplied by to minimize each model's objective."""
_UNIT = FEATURE_UNIT * RESPONSE_UNIT
# The objective's vector is 2 Σ r x beside Σ x xᵀ, or half of Σ r x beside an eighth of Σ x xᵀ.
_VECTOR_WEIGHTS = {"linear": 2, "logistic": 4}


@dataclass(frozen=True, kw_only=True)
class FunctionalMechanism(Method[LinearModelRelease]):
    """Method: perturb the sums of which the objective consists, then minimize it."""

    name: ClassVar[str] = "functional"

    target: str = setting("Column to predict: classes, or a number if the model is linear.")
    predictors: tuple[str, ...] = setting(
        "Columns to predict it from; all others unless named.", default=()
    )
    model: Literal["linear", "logistic"] = setting(
        "What to fit: linear regression (of a number) or logistic regression (of classes).",
        default="logistic",
    )
    bound: Fraction = setting(
        "Longest vector of weights, for features whose squares add up to at most 1.",
        default=Fraction(10),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", require_bound(self.bound))

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish the weights that minimize the perturbed objective.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  Two
            budgets pay, one after the other, for the sums of r x and of x xᵀ over complete
            records, integers with geometric noise for the most that one record of the
            domain can change them by (`LinearMoments`).  The number of records is not read.
            Which sums are published, their order and all that follows - shrinking, ridge,
            trimming, cutting - comes from the schema and the noisy sums.
            Proof: docs/proofs/functional.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        task = self._task(table.schema)
        kernel = moment_kernel(task)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(**self._shares(kernel))
        moments = release_moments(
            table, kernel, vector=budgets["vector"], matrix=budgets["matrix"], rng=rng
        )
        found = solve(
            moments,
            factor=FACTORS[self.model],
            longest=float(self.bound) / task.features.norms,
        )
        if progress is not None:
            progress(1, 1, "model")
        return LinearModelRelease(
            receipt=run.receipt(),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=found.weights,
            expected=dict(expected.figures),
            notes=("spreads tell of noise only, not of what the ridge takes away",),
            spread=found.spread,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of the sums; what it does to the weights depends on the records."""
        kernel = moment_kernel(self._task(schema))
        shares = self._shares(kernel)
        unit = epsilon / sum(shares.values())
        deviations = {}
        for name, most in _sensitivities(kernel).items():
            rate = unit * shares[name] / most
            require_rate(rate)
            deviations[f"{name}_deviation"] = sqrt(noise_variance(rate)) / _UNIT
        summary = (
            f"sums of products of two features with noise of {deviations['matrix_deviation']:,.3g} "
            f"records, sums of features by target of {deviations['vector_deviation']:,.3g} records "
            "(standard deviations)"
        )
        return ExpectedError(summary, deviations, target="matrix_deviation")

    def _task(self, schema: Schema) -> ModelTask:
        return ModelTask.of(schema, self.target, self.predictors, self.model, models=tuple(FACTORS))

    def _shares(self, kernel: LinearMoments) -> dict[str, int]:
        """Share so that all coefficients of the objective get the same noise."""
        most = _sensitivities(kernel)
        return {
            "vector": _VECTOR_WEIGHTS[self.model] * most["vector"],
            "matrix": most["matrix"],
        }


def moment_kernel(task: ModelTask) -> LinearMoments:
    """Say which sums the model needs: with a number, with -1 and 1 for two classes, or by class."""
    if task.model == "linear":
        responses = scaled_leaves(task.target)[:, None]
    elif len(task.problems) == 1:
        responses = RESPONSE_UNIT * np.array([[-1], [1]])
    else:
        responses = RESPONSE_UNIT * np.eye(task.target.size, dtype=np.int64)
    return LinearMoments(task.schema, task.features, task.target.name, responses)


def release_moments(
    table: Table, kernel: LinearMoments, *, vector: Budget, matrix: Budget, rng: RandomSource
) -> NoisyMoments:
    """Publish the sums of a kernel, in units of records.

    Privacy:
        `vector.epsilon + matrix.epsilon`-differentially private when one record is added or
        removed: integers with geometric noise (`add_geometric`) for sensitivities that
        `LinearMoments` proves.  Products that are 0 or known from others get no noise of
        their own: which those are, the schema says.
    """
    most = _sensitivities(kernel)
    variances = [
        noise_variance(vector.epsilon / most["vector"]) / _UNIT**2,
        noise_variance(matrix.epsilon / most["matrix"]) / _UNIT**2,
    ]
    sums = table.sum(kernel)
    size = kernel.features.size
    vectors = add_geometric(sums[:, size:], sensitivity=most["vector"], budget=vector, rng=rng)
    products = add_geometric(
        sums[:, :size][kernel.places], sensitivity=most["matrix"], budget=matrix, rng=rng
    )
    return NoisyMoments(
        kernel=kernel,
        matrix=kernel.fill(products / _UNIT),
        vectors=against_rest(vectors.T / _UNIT),
        matrix_variance=variances[1],
        vector_variance=variances[0] * len(vectors.T),
    )


def against_rest(vectors: FloatArray) -> FloatArray:
    """Set each of many classes against all others: 1 for the class, -1 for the rest.

    A record touches the sums of its own class only, so sums by class cost no more than those
    of two classes.  What is set against the rest is the sum of all, each with its own sign,
    so its noise has the variance of all of them.  A single vector stays as it is.
    """
    return vectors if len(vectors) == 1 else 2 * vectors - vectors.sum(axis=0)


def _sensitivities(kernel: LinearMoments) -> dict[str, int]:
    neighbors = AddRemoveRecord()
    return {
        "vector": kernel.vector_sensitivity(neighbors),
        "matrix": kernel.matrix_sensitivity(neighbors),
    }
