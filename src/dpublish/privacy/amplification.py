"""Amplification by sampling: a mechanism may spend more on a random sample than on everyone.

If a mechanism is y-private on a sample that keeps each record with probability q, unseen, it is
ln(1 + q (e^y - 1))-private on the table.  One function solves this for y, the other for q.
Both round to the side that keeps the guarantee, by enclosures of exponentials.
"""

from fractions import Fraction
from math import log

from dpublish.privacy.exponentials import exp_bounds

RATE_BITS = 64
"""Sampling rates are integer multiples of 2^-64."""

_STEPS = 1 << 40
_LARGE = 1000
_PRECISION = 320  # bits to which exponentials are enclosed before a rate is rounded down


def amplified_epsilon(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return an epsilon that, spent on a sample of this rate, costs no more than `epsilon`.

    It is ln(1 + (e^epsilon - 1) / rate) rounded down.  Rounding is checked with integers: y is
    below ln x if e^-y is above 1 / x, which an enclosure of e^-y decides.

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


def sampling_rate(epsilon: Fraction, spent: Fraction) -> Fraction:
    """Return the rate at which a sample on which `spent` is spent costs `epsilon`; 1 at most.

    It is (e^epsilon - 1) / (e^spent - 1) rounded down to a multiple of 2^-64.  A smaller rate
    hides more, so rounding down keeps the guarantee.

    >>> round(float(sampling_rate(Fraction(1, 100), Fraction(1))), 6)
    0.005849
    >>> sampling_rate(Fraction(1), Fraction(1))
    Fraction(1, 1)
    """
    if epsilon >= spent:
        return Fraction(1)
    # The same ratio without large numbers: e^-(t - a) (1 - e^-a) / (1 - e^-t).
    gap, kept, whole = (
        exp_bounds(exponent, _PRECISION) for exponent in (spent - epsilon, epsilon, spent)
    )
    one = 1 << _PRECISION
    least = gap.low * max(one - kept.high, 0)
    most = (one - whole.low) << _PRECISION
    return Fraction((least << RATE_BITS) // most, 1 << RATE_BITS)
