"""What the minimizers of a linear classifier's losses read from the rows."""

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.data.table import Table
from dpublish.mechanisms.noise import noisy_size
from dpublish.methods.linear_models.convex_solver import minimize
from dpublish.methods.linear_models.kernel_gradients import Gradient, LinearGradients, Loss
from dpublish.methods.linear_models.solver_error import TOLERANCE
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray

LOSSES: dict[str, Loss] = {"logistic": "logistic", "svm": "huber"}
"""The smooth loss that stands for each model."""

PASSES: dict[Loss, int] = {"logistic": 16, "huber": 48}
"""Passes that a search makes in any case; they were enough on all tables it was tried on."""


def minimize_on(
    table: Table, task: ModelTask, positive: tuple[int, ...], ridge: float, pull: FloatArray
) -> FloatArray:
    """Minimize the losses of one class against the others, with a ridge and a linear term."""
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
        return kernel.read(table.sum(kernel))

    return minimize(sums, ridge=ridge, pull=pull, tolerance=TOLERANCE, passes=PASSES[loss])


def count_records(table: Table, task: ModelTask, *, budget: Budget, rng: RandomSource) -> int:
    """Count the complete records, perturbed; at least 1.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a count of
        sensitivity 1 with two-sided geometric noise (`noisy_size`).
    """
    kernel = CompleteCounts(task.schema, ((),), (*task.features.columns, task.target.name))
    size = int(kernel.split(table.sum(kernel))[0].sum())
    return max(noisy_size(size, budget=budget, rng=rng), 1)
