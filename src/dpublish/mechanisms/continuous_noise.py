"""Draw continuous noise that is not published itself, each draw close to a real number.

Some proofs need noise with a density: what is published is then a smooth function of it, which
depends on the rows.  Floats have no density.  So every draw comes with a real number of exactly
the wanted distribution that lies within a known distance of it, and whoever uses the draw pays for
that distance with exact noise on a lattice.

Two shapes.  Laplace: coordinates independent of each other, density proportional to
exp(-|b|_1 / scale).  Spherical: direction uniform on the sphere, length Gamma distributed,
density proportional to exp(-|b|_2 / scale).

Known as: the noise of objective and output perturbation (Gamma-sphere noise).
Reference: K. Chaudhuri, C. Monteleoni, A. Sarwate, "Differentially Private Empirical Risk
Minimization", JMLR 12, 2011.  Proofs: docs/proofs/private_erm.md.
"""

from fractions import Fraction
from math import isqrt, log, pi
from typing import Literal

import numpy as np

from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import geometric
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray

Shape = Literal["laplace", "spherical"]
SHAPES = ("laplace", "spherical")
MOST_DIMENSIONS = 1 << 20

_STEP_BITS = 30  # the lattice of Laplace draws is so much finer than their scale
_MANTISSA_BITS = 53
_FAR = 1 << 10  # squares of normal numbers add up to at most this times their number, in effect


def continuous_noise(
    shape: Shape,
    dimensions: int,
    *,
    sensitivity: Fraction,
    reserve: Fraction = Fraction(0),
    budget: Budget,
    rng: RandomSource,
) -> FloatArray:
    """Draw a vector with a density proportional to exp(-(epsilon - reserve) |b| / sensitivity).

    Args:
        shape: Which norm |b| is: L1 (laplace) or L2 (spherical).
        dimensions: Length of the vector.
        sensitivity: Most that the vector which it hides can move in that norm.
        reserve: Part of epsilon that pays for something else, such as a change of volume.
        budget: Budget to empty.
        rng: Source of the noise.

    Privacy:
        `budget.epsilon`-differentially private, if the reserve covers what it is kept for and
        the reals behind the draw were used: moving b by at most `sensitivity` changes its log
        density by at most epsilon - reserve.  The draw is within `noise_error` of those reals
        in L2, so nothing that depends on it may be published before noise on a lattice, paid
        for apart, hides that distance.

    >>> from dpublish.randomness import seeded
    >>> budget = Budget.seeded(1)
    >>> continuous_noise("laplace", 3, sensitivity=Fraction(1), budget=budget, rng=seeded(7)).shape
    (3,)
    """
    scale = noise_scale(shape, dimensions, budget.epsilon - reserve, sensitivity)
    budget.spend()
    if shape == "laplace":
        return _laplace(dimensions, scale, rng)
    lengths = np.linalg.norm(_normals(dimensions + 1, rng))
    return np.asarray(_normals(dimensions, rng) * (lengths * float(scale)))


def noise_scale(
    shape: Shape, dimensions: int, epsilon: Fraction, sensitivity: Fraction
) -> Fraction:
    """Find the scale of the noise, or refuse what cannot be drawn."""
    require_known("shape", shape, SHAPES)
    require_count(dimensions=dimensions)
    if dimensions > MOST_DIMENSIONS:
        raise InvalidParameter(f"noise has at most {MOST_DIMENSIONS:,} dimensions")
    if epsilon <= 0 or sensitivity <= 0:
        raise InvalidParameter("epsilon and sensitivity of noise must be above 0")
    scale = sensitivity / epsilon
    if not Fraction(1, 1 << 100) <= scale <= 1 << 100:
        raise InvalidParameter("the scale of the noise must lie between 2**-100 and 2**100")
    return scale


def noise_variance(shape: Shape, dimensions: int) -> int:
    """Return the variance of each coordinate of noise of scale 1.

    >>> noise_variance("laplace", 9), noise_variance("spherical", 9)
    (2, 10)
    """
    return 2 if shape == "laplace" else dimensions + 1


def noise_error(shape: Shape, dimensions: int, scale: Fraction) -> Fraction:
    """Bound the L2 distance of a draw from the real numbers that it stands for."""
    if shape == "laplace":
        return scale * root_above(dimensions) / (1 << (_STEP_BITS + 1))
    relative = Fraction(1, 1 << 44) + Fraction(dimensions, 1 << 52)
    return scale * relative * _FAR * (dimensions + 2)


def noise_length(dimensions: int, scale: Fraction) -> Fraction:
    """Bound the L2 norm of the noise; one draw in 10^50, or fewer, is longer."""
    return scale * (8 * dimensions + 128)


def root_above(number: Fraction | int) -> Fraction:
    """Round a square root up, by less than a millionth.

    >>> float(root_above(2))
    1.4142141342163086
    """
    number = Fraction(number)
    root = isqrt((number.numerator << 40) // number.denominator) + 1
    return Fraction(root, 1 << 20)


def _laplace(count: int, scale: Fraction, rng: RandomSource) -> FloatArray:
    """Draw the cell of a lattice that holds a Laplace number, exactly; give its middle.

    The size of such a number is exponential, and the whole part of an exponential number is
    geometric: nothing is rounded.
    """
    exponent = scale.numerator.bit_length() - scale.denominator.bit_length() - 1 - _STEP_BITS
    step = Fraction(2) ** exponent
    cells = geometric(step / scale, count, rng)
    signs = 1.0 - 2.0 * (rng.words(count) & np.uint64(1))
    return np.asarray(signs * (cells + 0.5) * float(step))


def _normals(count: int, rng: RandomSource) -> FloatArray:
    """Draw normal numbers in pairs: a length whose square is exponential, and an angle."""
    pairs = (count + 1) // 2
    lengths = np.sqrt(2 * _exponentials(pairs, rng))
    angles = rng.words(pairs) * (2 * pi * 2.0**-64)
    return np.concatenate([lengths * np.cos(angles), lengths * np.sin(angles)])[:count]


def _exponentials(count: int, rng: RandomSource) -> FloatArray:
    """Draw -log(u): u is halved as often as a coin says, then uniform between 1/2 and 1.

    Small results come from 128 bits, so they are as precise as large ones.
    """
    high, low = rng.words(2 * count).reshape(2, count).astype(np.float64)
    parts = high * 2.0**-65 + low * 2.0**-129
    return np.asarray(log(2) * _leading_zeros(count, rng) - np.log1p(-parts))


def _leading_zeros(count: int, rng: RandomSource) -> FloatArray:
    """Count the zeros before the first 1 in each of `count` endless strings of fair bits."""
    zeros = np.zeros(count)
    undecided = np.arange(count)
    while undecided.size:
        words = (rng.words(undecided.size) >> np.uint64(64 - _MANTISSA_BITS)).astype(np.float64)
        zeros[undecided] += _MANTISSA_BITS - np.frexp(words)[1]
        undecided = undecided[words == 0]
    return zeros
