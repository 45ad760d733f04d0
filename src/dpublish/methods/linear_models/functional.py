"""Functional mechanism: a linear or logistic model from the noisy sums of its objective.

A noisy matrix need not be positive definite.  It gets a ridge as high as its noise, and
directions that are still not positive are left out (spectral trimming).  Nothing is drawn
again until it fits: no budget would pay for that choice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.rounding import format_number
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.core.task import task_names
from dpublish.data.features import FEATURE_UNIT, scaled_leaves
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.mechanisms.continuous_noise import root_above
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.linear_models.kernel_moments import RESPONSE_UNIT, LinearMoments
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import (
    CLASSES_OR_NUMBER,
    PREDICTORS,
    REGRESSIONS,
    ModelTask,
    require_bound,
)
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.types import FloatArray

FACTORS = {"linear": 1.0, "logistic": 2.0}
"""What the solution of least squares is multiplied by to minimize each model's objective."""
RIDGE_DEVIATIONS = 4.0
"""The ridge is at least so many standard deviations of the noise of a product."""
_UNIT = FEATURE_UNIT * RESPONSE_UNIT
_ROUGH = 1 << 16
"""The paper's noise is of thousands of records: sums are floored to multiples of 1/16 first."""
# The objective's vector is 2 Σ r x beside Σ x xᵀ, or half of Σ r x beside an eighth of Σ x xᵀ.
_VECTOR_WEIGHTS = {"linear": 2, "logistic": 4}


@dataclass(frozen=True, kw_only=True)
class FunctionalMechanism(Method[LinearModelRelease]):
    """Publish a linear or logistic model from the noisy sums of its objective.

    Adds noise once to the sums of which the objective consists, then minimizes it.  Choose it
    to predict a number, or when every weight needs a confidence interval; for classes it needs
    many records for each feature, and `LinearModel` is more accurate.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/functional.md.

    Parameters:
        target: Column to predict: classes, or a number if the model is linear.
        predictors: Columns to predict it from; all others unless named.
        model: `"linear"` for linear regression of a number, `"logistic"` for logistic regression
            of classes, whose loss is taken to the second order.
        bound: Longest vector of weights that is published.
        calibration: `"tight"` adds noise for what one record can really change; `"paper"` for the
            bound of the paper, to all products, and neither shrinks them nor raises the ridge
            for many features.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `predict_proba(rows)` (logistic regression),
        `coefficients()` with the standard deviation of each weight's noise, and `save(folder)`.

    Example:
        >>> from dpublish import Budget, FunctionalMechanism, datasets, seeded
        >>> loans = datasets.table("loans", 20_000)
        >>> method = FunctionalMechanism(
        ...     target="years_employed", predictors=("age",), model="linear"
        ... )
        >>> release = method.release(loans, budget=Budget.seeded("1"), rng=seeded(7))
        >>> [round(years) for years in release.predict({"age": [25, 60]}).to_pylist()]
        [3, 11]

    Reference:
        J. Zhang, Z. Zhang, X. Xiao, Y. Yang, M. Winslett, "Functional Mechanism: Regression
        Analysis under Differential Privacy", PVLDB 5(11), 2012.
    """

    name: ClassVar[str] = "functional"
    proofs: ClassVar[tuple[str, ...]] = ("functional", "exact")
    task: ClassVar[str] = "model fitting"
    publishes: ClassVar[str] = (
        "a linear or logistic regression, fitted to a perturbed objective, with confidence "
        "intervals"
    )
    prefer_when: ClassVar[str] = "you predict a number, or need confidence intervals of the weights"

    target: str = setting(CLASSES_OR_NUMBER)
    predictors: tuple[str, ...] = setting(PREDICTORS, default=())
    model: Literal["linear", "logistic"] = setting(REGRESSIONS, default="logistic")
    bound: Fraction = setting(
        "Longest vector of weights, for features whose squares add up to at most 1.",
        default=Fraction(10),
    )
    calibration: Literal["tight", "paper"] = setting(
        "Noise for what one record can really change, or for the paper's larger bound.",
        default="tight",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", require_bound(self.bound))
        require_known("calibration", self.calibration, ("tight", "paper"))

    def model_task(self, schema: Schema) -> ModelTask:
        """Find what is predicted from what, by the settings and the schema alone."""
        return ModelTask.of(schema, self.target, self.predictors, self.model, models=tuple(FACTORS))

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
        task = self.model_task(run.schema)
        kernel = moment_kernel(task)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(**self._shares(kernel))
        longest = float(self.bound) / task.features.norms
        if self.calibration == "paper":
            noise = self._noise(kernel)
            rough = release_all_moments(run, kernel, noise, **budgets)
            found = solve_as_published(rough, factor=FACTORS[self.model], longest=longest)
        else:
            moments = release_moments(run, kernel, **budgets)
            found = solve(moments, factor=FACTORS[self.model], longest=longest)
        run.step(1, 1, "model")
        return LinearModelRelease(
            receipt=run.receipt(),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=found.weights,
            expected=run.expected,
            notes=(
                ("calibrated as in the paper",)
                if self.calibration == "paper"
                else ("standard deviations cover the noise, not what the ridge takes away",)
            ),
            standard_deviation=found.standard_deviation,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return task_names(schema, self.target, self.predictors)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of the sums; what it does to the weights depends on the records."""
        kernel = moment_kernel(self.model_task(schema))
        shares = self._shares(kernel)
        unit = epsilon / sum(shares.values())
        deviations = {}
        for name, most in self._noise(kernel).items():
            rate = unit * shares[name] / most
            require_rate(rate)
            unit_of_sums = _UNIT if self.calibration == "tight" else _UNIT // _ROUGH
            deviations[f"{name}_deviation"] = sqrt(noise_variance(rate)) / unit_of_sums
        products = format_number(deviations["matrix_deviation"], 3)
        by_target = format_number(deviations["vector_deviation"], 3)
        summary = (
            f"sums of products of two features with noise of {products} records, sums of features "
            f"by target of {by_target} records (standard deviations)"
        )
        return ExpectedError(summary, deviations, target="matrix_deviation", is_of_goal=False)

    def _noise(self, kernel: LinearMoments) -> dict[str, int]:
        """Return for which changes noise is added; with the paper's bound, never for less."""
        if self.calibration == "tight":
            return _sensitivities(kernel)
        shares = self._shares(kernel)
        return published_sensitivities(kernel, self.model, shares)

    def _shares(self, kernel: LinearMoments) -> dict[str, int]:
        """Share so that all coefficients of the objective get the same noise."""
        most = _sensitivities(kernel)
        return {
            "vector": _VECTOR_WEIGHTS[self.model] * most["vector"],
            "matrix": most["matrix"],
        }


def moment_kernel(task: ModelTask) -> LinearMoments:
    """Build the kernel of the model's sums: with a number, with -1 and 1, or by class."""
    if task.model == "linear":
        responses = scaled_leaves(task.target)[:, None]
    elif len(task.problems) == 1:
        responses = RESPONSE_UNIT * np.array([[-1], [1]])
    else:
        responses = RESPONSE_UNIT * np.eye(task.target.size, dtype=np.int64)
    return LinearMoments(task.schema, task.features, task.target.name, responses)


def release_moments(
    run: Run, kernel: LinearMoments, *, vector: Budget, matrix: Budget
) -> "NoisyMoments":
    """Publish the sums of a kernel, in units of records.

    Privacy:
        `vector.epsilon + matrix.epsilon`-differentially private when one record is added or
        removed: integers with geometric noise (`add_noise`) for sensitivities that
        `LinearMoments` proves.  Products that are 0 or known from others get no noise of
        their own: which those are follows from the schema.
    """
    most = _sensitivities(kernel)
    variances = [
        noise_variance(vector.epsilon / most["vector"]) / _UNIT**2,
        noise_variance(matrix.epsilon / most["matrix"]) / _UNIT**2,
    ]
    sums = run.sum(kernel)
    size = kernel.features.size
    vectors = run.add_noise(sums[:, size:], sensitivity=most["vector"], budget=vector)
    products = run.add_noise(
        sums[:, :size][kernel.pairs], sensitivity=most["matrix"], budget=matrix
    )
    return NoisyMoments(
        kernel=kernel,
        matrix=kernel.fill(products / _UNIT),
        vectors=against_rest(vectors.T / _UNIT),
        matrix_variance=variances[1],
        vector_variance=variances[0] * len(vectors.T),
    )


def published_sensitivities(
    kernel: LinearMoments, model: str, shares: Mapping[str, int]
) -> dict[str, int]:
    """Find the sensitivities that give every coefficient the noise of the paper's bound.

    The paper scales d features by 1 / sqrt(d) and adds Laplace noise of Delta / epsilon to each
    coefficient of the objective: Delta = 2 (d + 1)^2 for linear and d^2 / 4 + 3 d for logistic
    regression.  In features from -1 to 1 that is sqrt(d) and d times as much.  A record may
    change every product of two features, so that is the least there is.  Sums are counted in
    multiples of `_ROUGH` units.
    """
    size, columns = kernel.features.size, len(kernel.features.columns) + 1
    total = sum(shares.values())
    delta = 2 * (size + 1) ** 2 if model == "linear" else Fraction(size * size, 4) + 3 * size
    by_vector, by_matrix = (Fraction(1, 2), 1) if model == "linear" else (2, 8)
    paper = {
        "vector": by_vector * delta * root_above(size) * Fraction(shares["vector"], total),
        "matrix": by_matrix * delta * size * Fraction(shares["matrix"], total),
    }
    touched = {"vector": columns, "matrix": columns * (columns + 1) // 2}
    changes = {
        "vector": kernel.vector_sensitivity(AddRemoveRecord()),
        "matrix": _UNIT * touched["matrix"],
    }
    # A floor moves by at most the change in multiples, rounded up: one more for each sum touched.
    least = {name: changes[name] // _ROUGH + touched[name] for name in changes}
    return {name: max(ceil(paper[name] * _UNIT / _ROUGH), least[name]) for name in paper}


def release_all_moments(
    run: Run, kernel: LinearMoments, noise: Mapping[str, int], *, vector: Budget, matrix: Budget
) -> "RoughMoments":
    """Publish the sums of a kernel with noise for every product of two features.

    Privacy:
        `vector.epsilon + matrix.epsilon`-differentially private when one record is added or
        removed: floored integers with geometric noise.  `noise` is at least what a record
        changes: it has one feature of each of c columns that is not 0, the intercept's
        included, each at most 1, so c (c + 1) / 2 products change, each by at most 1
        (`LinearMoments` bounds the vectors), and a floor by no more than rounded up.  Which
        sums are published follows from the schema.
    """
    unit = _UNIT // _ROUGH
    variance = noise_variance(matrix.epsilon / noise["matrix"]) / unit**2
    sums = run.sum(kernel) // _ROUGH
    size = kernel.features.size
    vectors = run.add_noise(sums[:, size:], sensitivity=noise["vector"], budget=vector)
    upper = np.triu_indices(size)
    products = run.add_noise(sums[:, :size][upper], sensitivity=noise["matrix"], budget=matrix)
    found = np.zeros((size, size))
    found[upper] = products / unit
    whole = found + np.triu(found, 1).T
    return RoughMoments(whole, against_rest(vectors.T / unit), variance)


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


# --- From noisy sums to weights, without the rows ------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Published moments, in units of records: features and responses lie between -1 and 1.

    Attributes:
        kernel: What was summed up.
        matrix: Sums of x xᵀ, symmetric.
        vectors: Sums of r x, a row for each response.
        matrix_variance: Of the noise of each product that was published.
        vector_variance: Of the noise of each entry of a vector.
    """

    kernel: LinearMoments
    matrix: FloatArray
    vectors: FloatArray
    matrix_variance: float
    vector_variance: float

    @property
    def ridge(self) -> float:
        """What is added to the diagonal: 4 deviations of the noise, or more for many features.

        The eigenvalues of a symmetric p x p matrix of noise with deviation σ have the deviation
        σ √p, so 4 σ would leave about half of the noisy directions in.
        """
        deviations = max(RIDGE_DEVIATIONS, sqrt(len(self.matrix)))
        return deviations * sqrt(self.matrix_variance)

    @cached_property
    def means(self) -> FloatArray:
        """Mean of each feature, by the intercept's products."""
        sums = self.matrix[-1]
        return np.asarray(np.clip(sums / max(sums[-1], 1.0), -1, 1))

    @cached_property
    def kept(self) -> FloatArray:
        """How much of each product is believed, from 0 to 1, the same for two whole columns.

        Independent columns would have the products n μ μᵀ.  What differs from these may be
        noise: of a block of m products with noise of variance σ² and a sum of squared
        differences Q, the part 1 - m σ² / Q is kept (James and Stein's rule).
        """
        difference = self.matrix - self.independent
        squares = self._by_columns(difference**2)
        sizes = self._by_columns(np.ones_like(difference))
        noise = sizes * self.matrix_variance
        part = 1 - np.divide(noise, squares, out=np.ones_like(noise), where=squares > noise)
        np.fill_diagonal(part, 1.0)  # within a column, and with the intercept: all of it
        part[-1], part[:, -1] = 1.0, 1.0
        return np.asarray(part[np.ix_(self._columns, self._columns)])

    @cached_property
    def independent(self) -> FloatArray:
        """The products that independent columns would have."""
        return np.asarray(max(self.matrix[-1, -1], 1.0) * np.outer(self.means, self.means))

    @property
    def shrunk(self) -> FloatArray:
        """The products with no more of their differences than is believed."""
        return self.independent + self.kept * (self.matrix - self.independent)

    @cached_property
    def _columns(self) -> NDArray[np.int64]:
        groups = self.kernel.features.groups
        return np.repeat(np.arange(len(groups)), [len(group) for group in groups])

    def _by_columns(self, products: FloatArray) -> FloatArray:
        """Add up the products of every two columns."""
        starts = np.flatnonzero(np.diff(self._columns, prepend=-1))
        rows = np.add.reduceat(products, starts, axis=0)
        return np.asarray(np.add.reduceat(rows, starts, axis=1))


class RoughMoments(NamedTuple):
    """Sums of x xᵀ and of r x as the paper publishes them, and the variance of a product."""

    matrix: FloatArray
    vectors: FloatArray
    matrix_variance: float


def solve_as_published(moments: RoughMoments, *, factor: float, longest: float) -> "Solution":
    """Minimize the noisy objective with the paper's ridge, trimmed; no error is known."""
    ridge = RIDGE_DEVIATIONS * sqrt(moments.matrix_variance)
    weights = factor * moments.vectors @ trimmed_inverse(moments.matrix, ridge)
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    return Solution(weights * (longest / np.maximum(lengths, longest)), None)


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights, a row for each response, and the standard deviation that noise gives them."""

    weights: FloatArray
    standard_deviation: FloatArray | None


def solve(moments: NoisyMoments, *, factor: float, longest: float) -> Solution:
    """Minimize the noisy objective: factor (M + ridge I)⁻¹ v, cut to a length of `longest`.

    The standard deviation is that of the first order in the noise (delta method) with the
    ridge, the directions and the parts that are kept held fixed:
    δw = (M + ridge I)⁻¹ (factor δv - δM w).
    It covers the noise only, not what the ridge takes away.
    """
    inverse = trimmed_inverse(moments.shrunk, moments.ridge)
    weights = factor * moments.vectors @ inverse
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    shrink = longest / np.maximum(lengths, longest)
    deviation = np.empty_like(weights)
    for row, one in zip(deviation, weights, strict=True):
        noise = moments.matrix_variance * product_noise(one, moments)
        noise[np.diag_indices_from(noise)] += factor**2 * moments.vector_variance
        row[:] = np.sqrt(np.maximum(np.sum((inverse @ noise) * inverse, axis=1), 0))
    return Solution(weights * shrink, deviation * shrink)


def trimmed_inverse(matrix: FloatArray, ridge: float) -> FloatArray:
    """Invert a symmetric matrix plus a ridge in the directions in which that is positive.

    >>> trimmed_inverse(np.diag([3.0, -9.0]), 1.0)
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    values, vectors = np.linalg.eigh(matrix)
    raised = values + ridge
    # What is positive by rounding only is not: its inverse would be huge.
    positive = raised > 1e-12 * np.abs(raised).max(initial=1.0)
    inverses = np.where(positive, 1 / np.where(positive, raised, 1.0), 0.0)
    return np.asarray((vectors * inverses) @ vectors.T)


def product_noise(weights: FloatArray, moments: NoisyMoments) -> FloatArray:
    """Compute the covariance of δM w where every published product has noise of variance 1.

    A product of features i < j of two columns stands in M twice: it adds κ w_j to entry i and
    κ w_i to entry j, κ being the part that is kept.  The intercept's products
    (sums of features) also stand on the diagonal, if the feature is an indicator, and in the
    products n μ μᵀ of independent columns.
    """
    size = len(weights)
    published = np.zeros((size, size))
    published[moments.kernel.pairs] = 1.0
    squares = np.diag(published).copy()
    squares[-1] = 0.0
    pairs = np.triu(published, 1)
    pairs[:, -1] = 0.0
    pairs = (pairs + pairs.T) * moments.kept**2
    noise = pairs * np.outer(weights, weights)
    noise[np.diag_indices(size)] += pairs @ weights**2 + squares * weights**2
    sums = _sum_effects(weights, moments)
    return np.asarray(noise + sums @ sums.T)


def _sum_effects(weights: FloatArray, moments: NoisyMoments) -> FloatArray:
    """Compute how much noise in the sum of each feature (a column) adds to each entry of δM w."""
    means, lost = moments.means, 1 - moments.kept
    reliance = lost @ (means * weights)
    effects = np.diag(reliance) + lost * np.outer(means, weights)
    effects[:, -1] -= means * reliance  # n also divides
    effects[np.diag_indices_from(effects)] += weights[-1]
    effects[-1, :-1] += weights[:-1]
    indicators = moments.kernel.indicators
    effects[indicators, indicators] += weights[indicators]
    return effects
