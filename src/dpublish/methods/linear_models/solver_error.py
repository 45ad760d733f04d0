"""Pay for what the proof of a minimizer leaves out: a search that ends, and floats.

The proofs of objective and output perturbation speak of the exact minimum and of real numbers.
What is computed lies within a public distance of it, whatever the rows; exact noise on a lattice
that hides twice that distance makes up for it.  Proof: docs/proofs/perturbed_objective.md.
"""

from fractions import Fraction
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.continuous_noise import root_above
from dpublish.mechanisms.exact.lattice import choose_exponent, lattice_sensitivity
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_laplace
from dpublish.methods.linear_models.convex_solver import FARTHEST
from dpublish.methods.linear_models.kernel_gradients import SLOPE_ERROR, Loss, curvature_bound
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

TOLERANCE = 2.0**-16
"""Longest gradient at which the search may end; one record's is at most 1 long."""

ROUNDING_SHARE = Fraction(1, 100)
"""Part of epsilon that pays for the distance from the exact minimum."""

SIZE_SHARE = Fraction(1, 50)
"""Part of epsilon that pays for the number of records, where it is needed."""

MOST_RECORDS = 1 << 24
"""Rounding errors are covered up to so many records."""

LEAST_RIDGE = Fraction(1, 16)


def solver_error(loss: Loss, columns: int, ridge: Fraction, pull: Fraction) -> Fraction:
    """Bound the L2 distance between the point found and the exact minimum.

    The gradient there is at most `TOLERANCE` as computed; what rounding adds to it is bounded
    for weights as long as the minimum's can be: twice pull / ridge + sqrt(2 records / ridge).
    Divided by the ridge, since the function is that strongly convex, it bounds the distance.

    Args:
        loss: Loss of a record.
        columns: Number of predictors.
        ridge: Strength of the regularization.
        pull: Longest linear term.
    """
    weights = 2 * float(pull / ridge) + sqrt(2 * MOST_RECORDS / ridge) + 1
    if weights > FARTHEST:
        raise InvalidParameter(
            "with so little regularization the best weights may be too large to look for; take "
            "fewer columns, or a larger regularization"
        )
    margin = (columns + 6) * 2.0**-53 * weights
    record = curvature_bound(loss) * margin + SLOPE_ERROR + 2.0**-50
    terms = 2.0**-50 * (float(ridge) * weights + float(pull))
    gradient = TOLERANCE + MOST_RECORDS * record + terms
    return Fraction(ceil(gradient * 2**40), 1 << 40) / ridge


def publish_weights(
    weights: NDArray[np.float64], *, error: Fraction, budget: Budget, rng: RandomSource
) -> NDArray[np.float64]:
    """Move weights onto a lattice, with exact noise that hides how they were computed.

    Args:
        weights: What was computed.
        error: Most that they lie apart (L2) from what the rest of the budget paid for.
        budget: Budget to empty.
        rng: Source of the noise.

    Privacy:
        Let a mechanism be private that publishes real numbers, and let the weights lie within
        `error` of them in L2, always.  Given those reals, the weights of two neighbors lie at
        most 2 * error apart in L2, so 2 * error * sqrt(p) in L1, and `add_laplace` hides that
        for `budget.epsilon`.  Together both cost the sum, and the reals stay unpublished.
    """
    size = len(weights)
    noisy = add_laplace(weights, sensitivity=_apart(size, error), budget=budget, rng=rng)
    return noisy.values


def require_publishable(size: int, error: Fraction, epsilon: Fraction) -> None:
    """Refuse an epsilon for which `publish_weights` could not draw its noise."""
    apart = _apart(size, error)
    units = lattice_sensitivity(apart, choose_exponent(apart, epsilon, size), size)
    require_rate(epsilon / units)


def rounding_deviation(size: int, error: Fraction, epsilon: Fraction) -> float:
    """Give the standard deviation of the noise that `publish_weights` adds to each weight."""
    return sqrt(2) * float(_apart(size, error) / epsilon)


def _apart(size: int, error: Fraction) -> Fraction:
    return 2 * root_above(size) * error
