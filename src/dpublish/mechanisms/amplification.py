"""How much more a mechanism may spend on a random sample whose members nobody knows."""

from fractions import Fraction
from math import log

from dpublish.mechanisms.exact.enclosures import exp_bounds

_STEPS = 1 << 40
_LARGE = 1000


def amplified_epsilon(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Find an epsilon that, spent on a sample of this rate, costs no more than `epsilon`.

    It is ln(1 + (e^epsilon - 1) / rate) rounded down.  Rounding is checked with whole
    numbers: y is below ln x if e^-y is above 1 / x, and enclosures of e^-y tell.

    >>> float(amplified_epsilon(Fraction(1, 10), Fraction(1, 10))).__round__(4)
    0.7187
    """
    if epsilon > _LARGE:
        return epsilon  # next to nothing is gained, and enclosures would take long
    bits = 128 + 4 * int(epsilon)
    grown = Fraction(1 << bits, exp_bounds(epsilon, bits).high)  # at most e^epsilon
    inside = 1 + (grown - 1) / rate
    found = Fraction(int((log(inside.numerator) - log(inside.denominator)) * _STEPS), _STEPS)
    while found > epsilon and exp_bounds(found, bits).low * inside < 1 << bits:
        found -= Fraction(1, _STEPS)
    return max(found, epsilon)
