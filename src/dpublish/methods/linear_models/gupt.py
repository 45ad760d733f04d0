"""GUPT: the mean of the models that random blocks of the records give.

A function may do what it likes inside a block: one record lies in one block only, and what
a block finds is moved into a public box before it counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dpublish.accuracy.rounding import format_number
from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.core.task import task_names
from dpublish.data.features import FEATURE_UNIT
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.linear_models.functional import (
    FACTORS,
    against_rest,
    moment_kernel,
)
from dpublish.methods.linear_models.kernel_gradients import Gradient, LinearGradients
from dpublish.methods.linear_models.kernel_moments import RESPONSE_UNIT
from dpublish.methods.linear_models.minimizer import LOSSES, minimize
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import (
    CLASSES_OR_NUMBER,
    PREDICTORS,
    SIZE_SHARE,
    ModelTask,
    count_records,
    require_bound,
)
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.types import FloatArray, IntArray

Estimator = Callable[[Table], ArrayLike]
"""Finds some numbers in a table, always equally many; a function of its records alone."""

RIDGE = 1.0
"""Weight, in records, with which a block's model is drawn to 0, so that there always is one."""
STEPS = 1 << 20
"""Steps of the lattice between the ends of the box, in each coordinate."""
FEWEST_BLOCKS, MOST_BLOCKS = 2, 20_000
KINDS = ("linear", "logistic", "svm")
_NEAR, _PASSES = 1e-3, 60  # a block's search for a support vector machine ends there


@dataclass(frozen=True, kw_only=True)
class GUPT(Method[LinearModelRelease]):
    """Publish the noisy mean of the linear models of random blocks of the records.

    Choose it to compare with sample and aggregate, or for a few weights and very many records;
    `FunctionalMechanism` was as good or better on every table tried.  `block_average` does the
    same with any function of a table.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/gupt.md.

    Parameters:
        target: Column to predict: classes, or a number if the model is linear.
        predictors: Columns to predict it from; all others unless named.
        model: `"linear"` for linear regression of a number, `"logistic"` for logistic regression
            of classes, `"svm"` for a linear support vector machine with a smooth (Huber) loss.
        blocks: Number of blocks, from 2 to 20,000.  Unless given, 2 % of epsilon pays for the
            noisy number of records, from which it follows.
        bound: Largest size of a weight; a block's weights are clipped to it, and the noise is in
            proportion to it.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `predict_proba(rows)` (logistic regression),
        `coefficients()` with the standard deviation of each weight's noise, and `save(folder)`.

    Example:
        >>> from dpublish import Budget, GUPT, datasets, seeded
        >>> people = datasets.table("census", 20_000)
        >>> method = GUPT(target="income", predictors=("education",), blocks=100)
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.predict({"education": ["Primary", "Master"]}).to_pylist()
        ['<=50K', '>50K']

    Reference:
        P. Mohan, A. Thakurta, E. Shi, D. Song, D. Culler, "GUPT: Privacy Preserving Data
        Analysis Made Easy", SIGMOD 2012.
    """

    name: ClassVar[str] = "gupt"
    proofs: ClassVar[tuple[str, ...]] = ("gupt", "exact")
    publishes: ClassVar[str] = (
        "a linear or logistic regression or a support vector machine, averaged over random "
        "blocks of records"
    )
    prefer_when: ClassVar[str] = "you compare with sample-and-aggregate"
    standing: ClassVar[Standing] = "baseline"
    task: ClassVar[str] = "model fitting"

    target: str = setting(CLASSES_OR_NUMBER)
    predictors: tuple[str, ...] = setting(PREDICTORS, default=())
    model: Literal["linear", "logistic", "svm"] = setting(
        "What to fit: linear regression (of a number), logistic regression or a support vector "
        "machine (of classes).",
        default="logistic",
    )
    blocks: int | None = setting(
        "Number of blocks; unless given, it follows from the noisy number of records.",
        default=None,
    )
    bound: Fraction = setting(
        "Largest size of a weight, for features from -1 to 1; a block's weights are clipped to it.",
        default=Fraction(1),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", require_bound(self.bound))
        if self.blocks is not None:
            require_blocks(self.blocks)
            object.__setattr__(self, "blocks", int(self.blocks))  # a NumPy integer, too

    def model_task(self, schema: Schema) -> ModelTask:
        """Find what is predicted from what, by the settings and the schema alone."""
        return ModelTask.of(schema, self.target, self.predictors, self.model, models=KINDS)

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish the noisy mean of the blocks' weights.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: a
            share for the noisy number of complete records (none if `blocks` is given), the
            rest for the mean over blocks (`block_average`), in a box that the settings give.
            The number of blocks follows from the noisy number of records.
            Proof: docs/proofs/gupt.md.
        """
        task = self.model_task(run.schema)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(**self._shares())
        blocks = self.blocks or count_blocks(count_records(run, task, budget=budgets["size"]))
        high = np.full((len(task.problems), task.features.size), float(self.bound))
        weights = block_average(
            run,
            lambda block: fit_block(block, task),
            low=-high,
            high=high,
            blocks=blocks,
            columns=task.schema.names,
            budget=budgets["mean"],
        )
        deviation = average_deviation(high.size, blocks, budgets["mean"].epsilon)
        return LinearModelRelease(
            receipt=run.receipt(),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=weights,
            expected=run.expected,
            notes=(
                f"mean of {blocks:,} blocks; standard deviations are those of the noise before "
                "weights are clipped to the bound",
            ),
            standard_deviation=2 * high * deviation,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return task_names(schema, self.target, self.predictors)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a weight; how good the blocks' models are is not predicted.

        If neither the blocks nor the records are known to be many, the fewest are assumed.
        """
        task = self.model_task(schema)
        if task.model != "svm":
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
            f"each of {coordinates:,} weights with noise of {format_number(deviation, 3)} "
            f"(standard deviation) for {blocks:,} blocks, before it is clipped to the bound of "
            f"{format_number(float(self.bound), 3)}"
        )
        return ExpectedError(summary, figures, target="weight_deviation", is_of_goal=False)

    def _shares(self) -> dict[str, Fraction]:
        if self.blocks is not None:
            return {"mean": Fraction(1)}
        return {"size": SIZE_SHARE, "mean": 1 - SIZE_SHARE}


def fit_block(block: Table, task: ModelTask) -> FloatArray:
    """Fit the model to a block's records: least squares with a small ridge, a row a problem.

    Logistic regression is fitted to the second order at 0, as in the functional mechanism; a
    support vector machine by a search.  The answer is exact and private: only what one record
    changes in all blocks together may be published.
    """
    if task.model == "svm":
        return np.array([_fit_svm(block, task, positive) for positive in task.problems])
    kernel = moment_kernel(task)
    size = task.features.size
    sums = block.sum(kernel) / (FEATURE_UNIT * RESPONSE_UNIT)
    matrix = sums[:, :size] + RIDGE * np.eye(size)
    vectors = against_rest(sums[:, size:].T)
    return np.asarray(FACTORS[task.model] * np.linalg.solve(matrix, vectors.T).T)


def _fit_svm(block: Table, task: ModelTask, positive: tuple[int, ...]) -> FloatArray:
    """Minimize the Huber losses of a block and a small ridge, in few passes."""

    def sums(weights: FloatArray) -> Gradient:
        kernel = LinearGradients(
            task.schema,
            task.features,
            task.target.name,
            positive,
            weights,
            LOSSES["svm"],
            second=True,
        )
        return kernel.read(block.sum(kernel))

    norms = task.features.norms
    found = minimize(
        sums,
        ridge=RIDGE / norms**2,
        pull=np.zeros(task.features.size),
        tolerance=_NEAR,
        passes=1,
        most_passes=_PASSES,
    )
    return found / norms


def count_blocks(records: int) -> int:
    """Choose how many blocks there are, from a public or noisy number of records.

    >>> count_blocks(-5), count_blocks(48_842)
    (2, 75)
    """
    return int(min(max(round(max(records, 1) ** 0.4), FEWEST_BLOCKS), MOST_BLOCKS))


def block_average(
    run: Run,
    estimate: Estimator,
    *,
    low: FloatArray,
    high: FloatArray,
    blocks: int,
    columns: tuple[str, ...],
    budget: Budget,
) -> FloatArray:
    """Publish the noisy mean over blocks of what `estimate` finds, within a public box.

    Known as: sample and aggregate.
    Reference: K. Nissim, S. Raskhodnikova, A. Smith, "Smooth Sensitivity and Sampling in Private
    Data Analysis", STOC 2007.

    Args:
        run: The release at work; `Run(table, rng=...)` makes one.
        estimate: What is to be found.  Wherever it fails or finds no finite number, the
            middle of the box counts instead, since an error would depend on the records.
        low: Lowest value of each coordinate, public.
        high: Highest value of each coordinate.
        blocks: Number of blocks, public or found privately.
        columns: Columns that `estimate` reads; a record must be complete in them.
        budget: Budget to empty; all coordinates together cost exactly this.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Every
        record draws its block by itself, so fix the draws of the others: one block changes,
        in whatever way.  Its answer is moved into the box and counted in whole steps, of
        which a coordinate has 0 to STEPS.  So the sums over blocks of all q coordinates
        change by at most q STEPS (L1), attained, and get geometric noise for it.  Assumes
        that `estimate` neither keeps nor sends anything.  Proof: docs/proofs/gupt.md.
    """
    require_blocks(blocks)
    require_box(low, high)
    if not isinstance(run.neighbors, AddRemoveRecord):
        raise InvalidParameter("a mean over blocks hides one record added or removed, nothing else")
    require_average_rate(low.size, budget.epsilon)
    # Opened before any row is read: a share that is already used stops here.
    share = budget.split(answers=1)["answers"]
    total = np.zeros(low.shape, dtype=np.int64)
    for number, block in enumerate(run.split_rows(blocks, columns), start=1):
        total += answer_in_steps(block, estimate, low, high)
        run.step(number, blocks, "blocks")
    noisy = run.add_noise(total, sensitivity=low.size * STEPS, budget=share)
    part = np.clip(noisy / (blocks * STEPS), 0, 1)
    return np.asarray(low + part * (high - low))


def answer_in_steps(
    block: Table, estimate: Estimator, low: FloatArray, high: FloatArray
) -> IntArray:
    """Return where in the box the answer of one block lies; exact and therefore private."""
    middle = (low + high) / 2
    try:
        found = np.asarray(estimate(block), dtype=np.float64).reshape(low.shape)
    except Exception:  # noqa: BLE001 - whatever goes wrong in a block must not be seen outside
        found = middle
    inside = np.clip(np.where(np.isfinite(found), found, middle), low, high)
    return np.rint((inside - low) / (high - low) * STEPS).astype(np.int64)


def average_deviation(coordinates: int, blocks: int, epsilon: Fraction) -> float:
    """Predict the noise of a coordinate, as a part of its range (standard deviation).

    >>> round(average_deviation(10, 100, Fraction(1)), 3)
    0.141
    """
    return 2**0.5 * coordinates / (blocks * float(epsilon))


def require_average_rate(coordinates: int, epsilon: Fraction) -> None:
    """Refuse so little budget that the noise would not fit."""
    require_rate(epsilon / (coordinates * STEPS))


def require_blocks(blocks: int) -> None:
    """Refuse a number of blocks that is too small or too large."""
    require_count(blocks=blocks, at_least=FEWEST_BLOCKS)
    if blocks > MOST_BLOCKS:
        raise InvalidParameter(f"blocks must be at most {MOST_BLOCKS:,}")


def require_box(low: FloatArray, high: FloatArray) -> None:
    """Refuse a box that has no width or no end."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(high - low).all()
    if low.shape != high.shape or low.size == 0 or not finite or not (low < high).all():
        raise InvalidParameter("the box must have a finite low end below the high end everywhere")
