"""Model: a linear model fitted to a private synopsis, at no further cost.

For classes the synopsis is the grid of `privpfc`: choosing and refining it costs the whole
budget, and fitting a model to what it knows costs nothing, however many weights there are.
For numbers the objective itself is the synopsis (`functional`).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
from scipy.optimize import minimize
from scipy.special import expit

from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.core.prediction import UNKNOWN, encode_rows
from dpublish.core.task import task_names
from dpublish.data.column import NumberColumn
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.methods.linear_models.functional import FunctionalMechanism
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import PREDICTORS, ModelTask
from dpublish.methods.privpfc.privpfc import PrivPfC
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.types import FloatArray

Kind = Literal["auto", "logistic", "svm", "linear"]
ROWS = 40_000
"""Synthetic rows to which a model is fitted."""
RIDGE = 1e-4
MOST_LOST = 0.2
"""Part of the grid's information that a linear model may lose before the grid is published."""
_FLAT = 1e-6  # a grid that knows less than this does not distinguish the classes
_SEED = 20_240_229  # the model is a function of the synopsis
_WIDTH = 0.5  # of the rounded corner of the hinge
_PASSES = 300


@dataclass(frozen=True, kw_only=True)
class LinearModel(Method[LinearModelRelease | PrivPfCRelease]):
    """Publish a linear model fitted to a private synopsis of the records.

    The default for models: it spends the whole budget on the grid of `PrivPfC` (for a number, on
    the sums of `FunctionalMechanism`) and fits the model to what was published.  If a linear
    model would lose more than a fifth of what the grid knows, the grid itself is published.
    Choose `PrivateERM` when all columns matter a little and none much.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proofs: docs/proofs/grid_quality.md, docs/proofs/refinement.md; docs/proofs/functional.md
        for a number.

    Parameters:
        target: Column to predict: classes, or a number.
        predictors: Columns to predict it from; all others unless named.
        model: `"logistic"`, `"svm"` or `"linear"`; `"auto"` takes logistic regression for classes
            and linear regression for a number.
        pool: Number of candidate grids to choose from, at most.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `predict_proba(rows)` (logistic regression),
        `coefficients()` and `save(folder)`; or a `PrivPfCRelease`, which predicts likewise and
        has no coefficients.

    Example:
        >>> from dpublish import Budget, LinearModel, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = LinearModel(target="income", predictors=("age", "education"), pool=50)
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.predict({"age": [30, 30], "education": ["Primary", "Master"]}).to_pylist()
        ['<=50K', '>50K']

    Reference:
        D. Su, J. Cao, N. Li, M. Lyu, "PrivPfC: Differentially Private Data Publication for
        Classification", VLDB Journal 27, 2018, for the grid.  Fitting a model to it is an
        addition of this package.
    """

    name: ClassVar[str] = "model"
    proofs: ClassVar[tuple[str, ...]] = (
        "grid_quality",
        "refinement",
        "functional",
        "selection",
        "exact",
    )
    task: ClassVar[str] = "model fitting"
    publishes: ClassVar[str] = (
        "a logistic regression, support vector machine or linear regression; predictions and "
        "coefficients follow for free"
    )
    prefer_when: ClassVar[str] = "you want a good linear model with nothing to tune"
    standing: ClassVar[Standing] = "default"

    target: str = setting("Column to predict: classes, or a number.")
    predictors: tuple[str, ...] = setting(PREDICTORS, default=())
    model: Kind = setting(
        "Kind of model. auto: logistic regression for classes, linear regression for a number.",
        default="auto",
    )
    pool: int = setting("How many candidate grids to choose from, at most.", default=10_000)

    def __post_init__(self) -> None:
        require_known("model", self.model, get_args(Kind))
        self._grid()

    def _release(self, run: Run) -> LinearModelRelease | PrivPfCRelease:
        """Publish a model of the records, or the grid where a linear model would lose much.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: that
            of `PrivPfC.release`, which gets the whole budget (`FunctionalMechanism` for a
            number).  Which of them follows from the schema.  The model, and whether it or
            the grid is published, is a function of what they return and of a fixed seed; the
            rows are not read again.
        """
        task = self._task(run.schema)
        if task.model == "linear":
            found = run.release(self._functional(), budget=run.budget)
            return replace(found, receipt=run.receipt())
        grid = run.release(self._grid(), budget=run.budget)
        features = Features.of(task.schema, self.target, by_cell=True)
        receipt = run.receipt()
        error = self._grid().expected_error(run.schema, _size(grid), run.epsilon)
        model = LinearModelRelease(
            receipt=receipt,
            schema=task.schema,
            model="svm" if task.model == "svm" else "logistic",
            target=self.target,
            weights=fit_to_grid(grid, task, features),
            expected=dict(error.figures),
            notes=(
                "fitted to a private grid, which it resembles; columns that the grid left "
                "out weigh nothing",
            ),
            by_cell=True,
        )
        if model.model == "logistic" and lost_information(grid, model) > MOST_LOST:
            return replace(grid, receipt=receipt)
        return model

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return task_names(schema, self.target, self.predictors)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of the synopsis, which depends on the number of records.

        Without that number no error of a class is predicted: how the budget is split is not known.
        """
        if self._task(schema).model == "linear":
            return self._functional().expected_error(schema, n_records, epsilon)
        known = self._require(schema, epsilon)
        if n_records is None:
            summary = (
                "how the budget is split, and so the error, depends on the number of records; "
                "name it (--rows)"
            )
            return ExpectedError(
                summary, {"classes": known.figures["classes"]}, known.target, is_of_goal=False
            )
        return self._grid().expected_error(schema, n_records, epsilon)

    def _require(self, schema: Schema, epsilon: Fraction) -> ExpectedError:
        """Refuse columns and budgets from which no model of classes could be published."""
        Features.of(self._task(schema).schema, self.target, by_cell=True)
        return self._grid().expected_error(schema, None, epsilon)

    def _task(self, schema: Schema) -> ModelTask:
        require_known("column", self.target, schema.names)
        is_number = isinstance(schema[self.target], NumberColumn)
        chosen = self.model
        if chosen == "auto":
            chosen = "linear" if is_number else "logistic"
        return ModelTask.of(
            schema, self.target, self.predictors, chosen, models=("logistic", "svm", "linear")
        )

    def _grid(self) -> PrivPfC:
        return PrivPfC(target=self.target, predictors=self.predictors, pool=self.pool)

    def _functional(self) -> FunctionalMechanism:
        return FunctionalMechanism(target=self.target, predictors=self.predictors, model="linear")


def fit_to_grid(grid: PrivPfCRelease, task: ModelTask, features: Features) -> FloatArray:
    """Fit a model to the classes that a published grid gives to rows drawn from it."""
    rows = grid.rows(ROWS, seed=_SEED)
    known = [name for name in features.columns if name in rows.column_names]
    codes = encode_rows(rows, task.schema, known)
    absent = np.full(rows.num_rows, UNKNOWN, dtype=np.int64)
    matrix = features.matrix({name: codes.get(name, absent) for name in features.columns})
    probabilities = _probabilities(grid, rows, task)
    kind: Literal["logistic", "svm"] = "svm" if task.model == "svm" else "logistic"
    return np.array(
        [
            fit_weights(
                matrix / FEATURE_UNIT,
                probabilities[:, list(problem)].sum(axis=1),
                model=kind,
                ridge=RIDGE,
            )
            for problem in task.problems
        ]
    )


def lost_information(grid: PrivPfCRelease, model: LinearModelRelease) -> float:
    """Compute which part of what a grid knows of the classes a model fitted to it has lost.

    Measured on rows of the grid, by the mean log-likelihood of its own probabilities: 0 if the
    model predicts as the grid does, 1 if it predicts no better than the shares of the classes.
    """
    rows = grid.rows(ROWS, seed=_SEED + 1)
    own = grid.predict_proba(rows)
    codes = encode_rows(rows, grid.schema, grid.card.columns)
    absent = np.full(rows.num_rows, UNKNOWN, dtype=np.int64)
    fitted = model.probabilities({name: codes.get(name, absent) for name in model.features.columns})
    shares = np.broadcast_to(own.mean(axis=0), own.shape)
    best, found, least = (
        float((own * np.log(np.maximum(guess, 1e-9))).sum(axis=1).mean())
        for guess in (own, fitted, shares)
    )
    return (best - found) / (best - least) if best - least > _FLAT else 0.0


def _size(grid: PrivPfCRelease) -> int:
    """Return the noisy number of records that the plan of a grid was made for."""
    return 0 if grid.records is None else max(grid.records.value, 0)


def _probabilities(grid: PrivPfCRelease, rows: pa.Table, task: ModelTask) -> FloatArray:
    return grid.predict_proba(rows) if rows.num_rows else np.zeros((0, task.target.size))


def fit_weights(
    features: FloatArray,
    probabilities: FloatArray,
    *,
    model: Literal["logistic", "svm"],
    ridge: float,
) -> FloatArray:
    """Find the weights that fit the probabilities of a class best, the last being the intercept.

    Ordinary optimization on public rows, such as synthetic ones; it never sees private rows.

    Args:
        features: A row for each record, the intercept's feature last.
        probabilities: How likely each record is to be of the class.
        model: The loss: of logistic regression, or a hinge with a rounded corner.
        ridge: Penalty on half the squared weights, for each record; the intercept is free.

    >>> features = np.array([[-1.0, 1.0], [1.0, 1.0]])
    >>> fit_weights(features, np.array([0.25, 0.75]), model="logistic", ridge=0.0).round(2) + 0.0
    array([1.1, 0. ])
    """
    free = np.ones(features.shape[1])
    free[-1] = 0.0

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        scores = features @ weights
        if model == "logistic":
            losses = np.logaddexp(0.0, scores) - probabilities * scores
            slopes = expit(scores) - probabilities
        else:
            positive, negative = _rounded_hinge(scores), _rounded_hinge(-scores)
            losses = probabilities * positive[0] + (1 - probabilities) * negative[0]
            slopes = probabilities * positive[1] - (1 - probabilities) * negative[1]
        penalized = ridge * free * weights
        value = losses.mean() + 0.5 * float(penalized @ weights)
        return float(value), features.T @ slopes / len(features) + penalized

    start = np.zeros(features.shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _PASSES})
    return np.asarray(found.x, dtype=np.float64)


def _rounded_hinge(margins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the Huber hinge and its slope."""
    inner = 1 + _WIDTH - margins
    middle = np.abs(1 - margins) <= _WIDTH
    losses = np.where(middle, inner**2 / (4 * _WIDTH), np.maximum(1 - margins, 0.0))
    slopes = np.where(middle, -inner / (2 * _WIDTH), np.where(margins < 1, -1.0, 0.0))
    return losses, slopes
