"""PrivateSVM: the weights of a regularized support vector machine, with noise."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from dpublish.accuracy.rounding import format_number
from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.core.task import task_names
from dpublish.data.features import MAX_FEATURES, Features
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.continuous_noise import root_above
from dpublish.mechanisms.exact.lattice import choose_exponent, lattice_sensitivity
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.linear_models.fourier_features import FourierFeatures, draw_frequencies
from dpublish.methods.linear_models.kernel_gradients import (
    HUBER_WIDTH,
    SLOPE_ERROR,
    Gradient,
    LinearGradients,
)
from dpublish.methods.linear_models.minimizer import (
    BEYOND,
    LEAST_RIDGE,
    MOST_PASSES,
    MOST_RECORDS,
    USUAL_WEIGHTS,
    minimize,
    require_covered,
    round_up,
)
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import (
    PREDICTORS,
    SIZE_SHARE,
    ModelTask,
    count_records,
)
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray

HINGE_WIDTH = 2.0**-10
"""The corner of the hinge is rounded off for margins within this of 1 (h)."""

TOLERANCE = 2.0**-6
"""Longest gradient at which the search may end; one record's is at most 1 long."""

USUAL_RECORDS = 10_000
"""Number of records for which errors are predicted unless it is given."""

MOST_WAVES = (MAX_FEATURES - 1) // 2

_NARROWER = 4  # each search has a corner so much narrower than the one before
_PASSES = 4  # of each search, at least
_SURE = 116  # noise of rate r is beyond this / r with a probability below 10^-50

Map = Features | FourierFeatures


class SVMNoise(NamedTuple):
    """The ridge and the noise of one two-class problem, from public facts and the noisy size.

    Attributes:
        ridge: Strength of the regularization (Lambda).
        distance: Most that the weights found lie apart from the exact minimum (gamma), in L2.
        sensitivity: Most that the weights found move when a record comes or goes, in L1.
    """

    ridge: Fraction
    distance: Fraction
    sensitivity: Fraction

    @classmethod
    def of(cls, features: Map, ridge: Fraction, records: int) -> Self:
        """Calibrate to a ridge, for tables of at most so many records.

        A record moves the exact minimum by at most 1 / ridge in L2.  On either table the weights
        found lie within `distance` of it.  In L1 a vector of p coordinates is at most sqrt(p)
        times as long.
        """
        ridge = round_up(max(ridge, LEAST_RIDGE))
        distance = search_distance(features, ridge, records)
        moved = 1 / ridge + 2 * distance
        return cls(ridge, distance, root_above(features.size) * moved)

    def deviation(self, epsilon: Fraction) -> float:
        """Compute the standard deviation of the noise of each weight."""
        return sqrt(2) * float(self.sensitivity / epsilon)


@dataclass(frozen=True, kw_only=True)
class PrivateSVM(Method[LinearModelRelease]):
    """Publish the weights of a regularized support vector machine, with noise.

    Minimizes the hinge losses of the records and a ridge, then adds Laplace noise to the
    weights.  Choose it to compare with PrivateSVM, or for a boundary that is no plane
    (`features="random-fourier"`); `LinearModel` and `PrivateERM` were more accurate on most
    tables tried.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record, for tables of at
        most 2^24 records; the receipt states what the proof assumes.
        Proof: docs/proofs/private_svm.md.

    Parameters:
        target: Column of the classes.
        predictors: Columns to predict it from; all others unless named.
        model: `"svm"`; there is no other.
        cost: What the mean hinge loss weighs against half the squared length of the weights (C),
            for features from -1 to 1.  Unless given, it balances the noise, by a formula of
            epsilon, the schema and the noisy number of records.
        features: `"linear"` weighs the columns; `"random-fourier"` weighs random waves over
            them, which come near a Gaussian kernel.
        waves: Number of random waves, each with a weight for its cosine and one for its sine.
        bandwidth: Width of the Gaussian kernel, for columns scaled to [-1, 1]; the square root of
            the number of columns unless given.

    Returns:
        A `LinearModelRelease` with `predict(rows)`, `coefficients()` with the standard deviation
        of each weight's noise, and `save(folder)`.

    Example:
        >>> from dpublish import Budget, PrivateSVM, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = PrivateSVM(target="income", predictors=("age", "education"))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.predict({"age": [30, 30], "education": ["Primary", "Master"]}).to_pylist()
        ['<=50K', '>50K']

    Reference:
        B. Rubinstein, P. Bartlett, L. Huang, N. Taft, "Learning in a Large Function Space:
        Privacy-Preserving Mechanisms for SVM Learning", Journal of Privacy and Confidentiality
        4(1), 2012; here for records added or removed, with a search that need not be exact.
    """

    name: ClassVar[str] = "private-svm"
    proofs: ClassVar[tuple[str, ...]] = ("private_svm", "exact")
    task: ClassVar[str] = "model fitting"
    publishes: ClassVar[str] = (
        "a support vector machine with noise on its weights, linear or with random features"
    )
    prefer_when: ClassVar[str] = "you compare with PrivateSVM, or no plane divides the classes"
    standing: ClassVar[Standing] = "baseline"

    target: str = setting("Column of the classes.")
    predictors: tuple[str, ...] = setting(PREDICTORS, default=())
    model: Literal["svm"] = setting("A support vector machine; there is no other.", default="svm")
    cost: Fraction | None = setting(
        "What the mean loss weighs against half the squared weights (C); left out, it balances "
        "the noise.",
        default=None,
    )
    features: Literal["linear", "random-fourier"] = setting(
        "Weigh the columns, or random waves over them.", default="linear"
    )
    waves: int = setting("Number of random waves.", default=64)
    bandwidth: Fraction | None = setting(
        "Width of the Gaussian kernel; the square root of the number of columns unless given.",
        default=None,
    )

    def __post_init__(self) -> None:
        require_known("model", self.model, ("svm",))
        require_known("kind of features", self.features, ("linear", "random-fourier"))
        require_between("cost", self.cost)
        require_between("bandwidth", self.bandwidth)
        require_count(waves=self.waves)
        if self.waves > MOST_WAVES:
            raise InvalidParameter(f"waves ({self.waves:,}) must be at most {MOST_WAVES:,}")
        object.__setattr__(self, "waves", int(self.waves))  # a NumPy integer, too

    def model_task(self, schema: Schema) -> ModelTask:
        """Find what is predicted from what, by the settings and the schema alone."""
        return ModelTask.of(schema, self.target, self.predictors, "svm")

    def _release(self, run: Run) -> LinearModelRelease:
        """Publish a support vector machine fitted to the records.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            ridge follows from public facts and a noisy number of records; waves are drawn
            before any row is read.  For each class the objective is strongly convex in all
            weights, the intercept's included, and a record adds a gradient of length 1 at
            most: the exact minimum moves by at most 1 / ridge in L2, the weights found by
            twice their distance from it more, and lattice noise for sqrt(p) times that hides
            it (docs/proofs/private_svm.md).  Shares add up.  What it assumes, at most 2^24
            records among it, is in the receipt.
        """
        task = self.model_task(run.schema)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(size=SIZE_SHARE, model=1 - SIZE_SHARE)
        shares = task.split(budgets["model"])
        features = self._draw(run, task)
        most = _SURE / budgets["size"].epsilon
        records = max(count_records(run, task, budget=budgets["size"]), 1)
        noise = self._noise(task, features, shares[0].epsilon, records, records + ceil(most))
        rows = []
        for done, (positive, share) in enumerate(zip(task.problems, shares, strict=True)):
            rows.append(fit_hinge(run, task, features, positive, noise, budget=share))
            run.step(done + 1, len(shares), "classes")
        deviation = noise.deviation(shares[0].epsilon) / features.norms
        return LinearModelRelease(
            receipt=run.receipt(assumptions=_assumptions(records)),
            schema=task.schema,
            model="svm",
            target=self.target,
            weights=np.array(rows) / features.norms,
            expected=self._expect(run.schema, records, run.epsilon).figures,
            standard_deviation=np.full((len(rows), features.size), deviation),
            frequencies=features.frequencies if isinstance(features, FourierFeatures) else None,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return task_names(schema, self.target, self.predictors)

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
        features = self._shape(task)
        share = task.share(epsilon * (1 - SIZE_SHARE))
        most = ceil(_SURE / (epsilon * SIZE_SHARE))
        for size in (1, records):  # the least ridge that a table can lead to, and the likely one
            noise = self._noise(task, features, share, size, size + most)
            require_drawable(noise.sensitivity, share, features.size)
        deviation = noise.deviation(share) / features.norms
        figures = {"one_weight": deviation, "ridge": float(noise.ridge)}
        summary = (
            f"{features.size} weights for each of {len(task.problems)} scores; noise of standard "
            f"deviation {format_number(deviation, 3)} in each at {records:,} records"
        )
        return ExpectedError(summary, figures, target="one_weight", is_of_goal=False)

    def _draw(self, run: Run, task: ModelTask) -> Map:
        """Draw the waves, without a look at the rows."""
        if self.features == "linear":
            return task.features
        size = task.features.size
        width = self.bandwidth or sqrt(len(task.features.columns))
        drawn = draw_frequencies(self.waves, size, float(width), run.public_generator())
        return FourierFeatures(task.features, drawn)

    def _shape(self, task: ModelTask) -> Map:
        """Return features of the right number and norm, for what depends on no more."""
        if self.features == "linear":
            return task.features
        still = np.zeros((self.waves, task.features.size), dtype=np.int64)
        return FourierFeatures(task.features, still)

    def _noise(
        self, task: ModelTask, features: Map, epsilon: Fraction, records: int, most: int
    ) -> SVMNoise:
        if self.cost is not None:
            squares = Fraction(features.norms) ** 2
            ridge = records / (self.cost * squares)
        else:
            ridge = balanced_ridge(features.size, len(task.features.columns), epsilon, records)
        return SVMNoise.of(features, ridge, min(most, MOST_RECORDS))


def fit_hinge(
    run: Run,
    task: ModelTask,
    features: Map,
    positive: tuple[int, ...],
    noise: SVMNoise,
    *,
    budget: Budget,
) -> FloatArray:
    """Minimize the hinge losses of one two-class problem, and publish the weights with noise.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: the weights
        found move by at most `noise.sensitivity` in L1 (`SVMNoise`), which `add_laplace` hides.
    """
    found = minimize_hinge(run, task, features, positive, float(noise.ridge))
    return run.add_laplace(found, sensitivity=noise.sensitivity, budget=budget).values


def minimize_hinge(
    run: Run, task: ModelTask, features: Map, positive: tuple[int, ...], ridge: float
) -> FloatArray:
    """Minimize hinge losses and a ridge, by searches with ever narrower corners.

    Each search begins where the one before ended.  The weights are exact up to
    `search_distance`, and therefore private.
    """
    weights = np.zeros(features.size)
    width = HUBER_WIDTH
    while True:
        weights = minimize(
            _hinge_sums(run, task, features, positive, width),
            ridge=ridge,
            pull=np.zeros(features.size),
            tolerance=TOLERANCE,
            passes=_PASSES,
            start=weights,
        )
        if width <= HINGE_WIDTH:
            return weights
        width = max(width / _NARROWER, HINGE_WIDTH)


def _hinge_sums(
    run: Run, task: ModelTask, features: Map, positive: tuple[int, ...], width: float
) -> Callable[[FloatArray], Gradient]:
    def sums(weights: FloatArray) -> Gradient:
        kernel = LinearGradients(
            task.schema,
            features,
            task.target.name,
            positive,
            weights,
            "huber",
            second=True,
            width=width,
        )
        return kernel.read(run.sum(kernel))

    return sums


def search_distance(features: Map, ridge: Fraction, records: int) -> Fraction:
    """Bound the L2 distance between the weights found and the exact minimum.

    The gradient there is at most `TOLERANCE` long as computed; rounding adds what is bounded
    here for at most so many records.  Divided by the ridge, since the objective is that
    strongly convex, it bounds the distance.
    """
    length = 2 * sqrt(2 * records / ridge) + 1
    terms = features.size if isinstance(features, FourierFeatures) else len(features.columns) + 1
    margin = (terms + 5) * 2.0**-53 * length
    record = margin / (2 * HINGE_WIDTH) + SLOPE_ERROR + 2.0**-50
    gradient = TOLERANCE * (1 + 2.0**-40) + records * record + 2.0**-50 * float(ridge) * length
    return Fraction(ceil(gradient * 2**40), 1 << 40) / ridge


def balanced_ridge(size: int, columns: int, epsilon: Fraction, records: int) -> Fraction:
    """Balance what noise costs and what the ridge does, for weights of the usual length.

    Noise of standard deviation s = sqrt(2 p) / (epsilon ridge) in each weight moves a margin by
    about s, and a hinge by no more: it costs at most records * s.  A ridge costs
    ridge * |w|^2 / 2.
    """
    squares = USUAL_WEIGHTS**2 * (columns + 1)
    square = 2 * records * sqrt(2 * size) / (float(epsilon) * squares)
    return Fraction(sqrt(square)).limit_denominator(1024)


def require_drawable(sensitivity: Fraction, epsilon: Fraction, size: int) -> None:
    """Refuse an epsilon for which the noise of the weights could not be drawn."""
    exponent = choose_exponent(sensitivity, epsilon, size)
    require_rate(epsilon / lattice_sensitivity(sensitivity, exponent, size))


def require_between(name: str, value: Fraction | None) -> None:
    """Refuse a setting that is not above 0, or that is absurdly large or small."""
    if value is None:
        return
    if not isinstance(value, Fraction) or not Fraction(1, 1 << 20) <= value <= 1 << 20:
        raise InvalidParameter(f"{name} ({value}) must lie between 2**-20 and 2**20")


def _assumptions(records: int) -> list[str]:
    found = [
        f"the table has at most {MOST_RECORDS:,} (2^24) records",
        "no noise was drawn whose probability is below 10^-50",
        f"every search for a minimum would meet its tolerance within {MOST_PASSES:,} passes",
    ]
    return [BEYOND, *found] if records > MOST_RECORDS else found
