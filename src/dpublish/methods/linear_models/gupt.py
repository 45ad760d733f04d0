"""Publish the mean of the models that random blocks of the records give.

Known as: GUPT, sample and aggregate.
Reference: P. Mohan, A. Thakurta, E. Shi, D. Song, D. Culler, "GUPT: Privacy Preserving Data
Analysis Made Easy", SIGMOD 2012.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.features import FEATURE_UNIT
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import noisy_size
from dpublish.methods.linear_models.block_average import (
    FEWEST_BLOCKS,
    MOST_BLOCKS,
    average_deviation,
    block_average,
    require_average_rate,
    require_blocks,
)
from dpublish.methods.linear_models.functional import FACTORS, against_rest, moment_kernel
from dpublish.methods.linear_models.kernel_moments import RESPONSE_UNIT
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import ModelTask, require_bound
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray

SIZE_SHARE = Fraction(2, 100)
RIDGE = 1.0
"""Records' worth of weight that a block's model has on being 0, so that there always is one."""


@dataclass(frozen=True, kw_only=True)
class GUPT(Method[LinearModelRelease]):
    """Method: deal the records into blocks, fit a model in each, publish the noisy mean."""

    name: ClassVar[str] = "gupt"

    target: str = setting("Column to predict: classes, or a number if the model is linear.")
    predictors: tuple[str, ...] = setting(
        "Columns to predict it from; all others unless named.", default=()
    )
    model: Literal["linear", "logistic"] = setting(
        "What to fit: linear regression (of a number) or logistic regression (of classes).",
        default="logistic",
    )
    blocks: int | None = setting(
        "Number of blocks; unless given, it follows from the noisy number of records.",
        default=None,
    )
    bound: Fraction = setting(
        "Largest size of a weight, for features from -1 to 1; a block's weights are cut to it.",
        default=Fraction(1),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", require_bound(self.bound))
        if self.blocks is not None:
            require_blocks(self.blocks)
            object.__setattr__(self, "blocks", int(self.blocks))  # a NumPy integer, too

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish the noisy mean of the blocks' weights.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: a
            share for the noisy number of complete records (none if `blocks` is given), the
            rest for the mean over blocks (`block_average`), in a box that the settings give.
            The number of blocks follows from the noisy number of records.
            Proof: docs/proofs/block_average.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        task = self._task(table.schema)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(**self._shares())
        blocks = self.blocks or count_blocks(
            _noisy_records(table, task, budget=budgets["size"], rng=rng)
        )
        high = np.full((len(task.problems), task.features.size), float(self.bound))
        weights = block_average(
            table,
            lambda block: fit_block(block, task),
            low=-high,
            high=high,
            blocks=blocks,
            columns=task.schema.names,
            budget=budgets["mean"],
            rng=rng,
            progress=progress,
        )
        deviation = average_deviation(high.size, blocks, budgets["mean"].epsilon)
        return LinearModelRelease(
            receipt=run.receipt(),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=weights,
            expected=dict(expected.figures),
            notes=(f"mean of {blocks:,} blocks; spreads before weights are moved into the bound",),
            spread=2 * high * deviation,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a weight; how good the blocks' models are, nobody knows.

        If neither the blocks nor the records are known to be many, the fewest are assumed.
        """
        task = self._task(schema)
        moment_kernel(task)
        shares = self._shares()
        mean = epsilon * shares["mean"] / sum(shares.values())
        coordinates = len(task.problems) * task.features.size
        require_average_rate(coordinates, mean)
        if "size" in shares:
            require_rate(epsilon - mean)
        blocks = self.blocks or count_blocks(n_records or 0)
        deviation = 2 * float(self.bound) * average_deviation(coordinates, blocks, mean)
        figures = {"blocks": float(blocks), "weight_deviation": deviation}
        summary = (
            f"each of {coordinates:,} weights with noise of {deviation:,.3g} (standard deviation) "
            f"for {blocks:,} blocks, before it is moved into the bound of {float(self.bound):.3g}"
        )
        return ExpectedError(summary, figures, target="weight_deviation")

    def _task(self, schema: Schema) -> ModelTask:
        return ModelTask.of(schema, self.target, self.predictors, self.model, models=tuple(FACTORS))

    def _shares(self) -> dict[str, Fraction]:
        if self.blocks is not None:
            return {"mean": Fraction(1)}
        return {"size": SIZE_SHARE, "mean": 1 - SIZE_SHARE}


def fit_block(block: Table, task: ModelTask) -> FloatArray:
    """Fit the model to a block's records: least squares with a small ridge, a row a problem.

    Logistic regression is fitted to the second order at 0, as in the functional mechanism.
    The answer is exact and private: only what one record changes in all blocks together may
    be published.
    """
    kernel = moment_kernel(task)
    size = task.features.size
    sums = block.sum(kernel) / (FEATURE_UNIT * RESPONSE_UNIT)
    matrix = sums[:, :size] + RIDGE * np.eye(size)
    vectors = against_rest(sums[:, size:].T)
    return np.asarray(FACTORS[task.model] * np.linalg.solve(matrix, vectors.T).T)


def count_blocks(records: int) -> int:
    """Choose how many blocks there are, from a public or noisy number of records.

    >>> count_blocks(-5), count_blocks(48_842)
    (2, 75)
    """
    return int(min(max(round(max(records, 1) ** 0.4), FEWEST_BLOCKS), MOST_BLOCKS))


def _noisy_records(table: Table, task: ModelTask, *, budget: Budget, rng: RandomSource) -> int:
    """Count the complete records, with noise.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a count
        of sensitivity 1 with geometric noise (`noisy_size`).
    """
    everyone = CompleteCounts(task.schema, (((task.target.name, 0),),), task.schema.names)
    return noisy_size(int(table.sum(everyone).sum()), budget=budget, rng=rng)
