"""Enclose survival probabilities between integers, as tightly as anyone asks.

The samplers compare random bits with numbers such as exp(-rate).  Those are irrational, so
no float and no fraction equals them; but every comparison with finitely many bits is decided
by an enclosure that is tight enough.  All arithmetic is on integers (the exponential of
`privacy/exponentials` aside) and rounds outwards.  Why it is exact: docs/proofs/exact.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count, islice
from typing import Protocol

from dpublish.privacy.exponentials import Bounds, exp_bounds

_FIRST_GUARD = 64  # extra bits tried first; doubled until the enclosure decides


class Rate(Protocol):
    """A public number strictly between 0 and 1, irrational, with powers that can be enclosed."""

    def power(self, exponent: int, precision: int) -> Bounds:
        """Enclose `2**precision` times the number to the power `exponent` >= 0."""
        ...


@dataclass(frozen=True)
class ExpRate:
    """The number exp(-rate): geometric noise falls by this factor at every step."""

    rate: Fraction

    def power(self, exponent: int, precision: int) -> Bounds:
        """Enclose `2**precision * exp(-rate * exponent)`."""
        return exp_bounds(self.rate * exponent, precision)


@dataclass(frozen=True)
class SkipRate:
    """The number 1 - p, where p = a**threshold / (1 + a) and a = exp(-rate).

    p is the probability that two-sided geometric noise reaches `threshold` >= 1, so 1 - p is
    that of an empty cell to stay below it.
    """

    rate: Fraction
    threshold: int

    def success(self, precision: int) -> Bounds:
        """Enclose `2**precision * p`."""
        one = 1 << precision
        step = exp_bounds(self.rate, precision)
        tail = exp_bounds(self.rate * self.threshold, precision)
        return Bounds(
            (tail.low << precision) // (one + step.high),
            _ceil_divide(tail.high << precision, one + step.low),
        )

    def power(self, exponent: int, precision: int) -> Bounds:
        """Enclose `2**precision * (1 - p)**exponent`."""
        guard = exponent.bit_length() + 8  # the error grows with the exponent
        working = precision + guard
        probability = self.success(working)
        square = Bounds((1 << working) - probability.high, (1 << working) - probability.low)
        result = Bounds(1 << working, 1 << working)
        while exponent:
            if exponent & 1:
                result = _multiply(result, square, working)
            square = _multiply(square, square, working)
            exponent >>= 1
        return Bounds(result.low >> guard, _ceil_shift(result.high, guard))


@dataclass(frozen=True)
class Distribution:
    """A distribution on 0, 1, 2, ... by its survival S(k) = P(value >= k); a = rate**scale.

    The plain distribution is geometric, S(k) = a**k.  A `radix` makes it the geometric distribution
    given that
    the value is below the radix: one digit of a wider geometric number.  A `cap` replaces
    every number above the cap by the cap.  `signed` appends a sign bit: value = 2 * number +
    sign, where the sign is set with probability a / (1 + a).
    """

    rate: Rate
    scale: int = 1
    radix: int | None = None
    cap: int | None = None
    signed: bool = False

    @property
    def largest(self) -> int | None:
        """The largest value, or None if there is none."""
        largest = self.cap if self.radix is None else self.radix - 1
        return 2 * largest + 1 if self.signed and largest is not None else largest

    def survival(self, value: int, precision: int) -> Bounds:
        """Enclose `2**precision * S(value)` for one value >= 1, up to the largest."""
        magnitude = (value + 1) // 2 if self.signed else value
        power = self.rate.power(self.scale * magnitude, precision)
        return self._shape(value, power, *self._constants(precision), precision)

    def survivals(self, precision: int) -> Iterator[Bounds]:
        """Enclose `2**precision * S(k)` for k = 1, 2, ... up to the largest, one product each."""
        step, edge = self._constants(precision)
        power = step
        for value in islice(count(1), self.largest):
            if value > 1 and (value % 2 == 1 or not self.signed):
                power = _multiply(power, step, precision)
            yield self._shape(value, power, step, edge, precision)

    def _constants(self, precision: int) -> tuple[Bounds, Bounds]:
        step = self.rate.power(self.scale, precision)
        if self.radix is None:
            return step, Bounds(0, 0)
        return step, self.rate.power(self.scale * self.radix, precision)

    def _shape(self, value: int, power: Bounds, step: Bounds, edge: Bounds, bits: int) -> Bounds:
        """Turn a**magnitude into S(value)."""
        one = 1 << bits
        low, high = power
        if self.signed and value % 2 == 1:
            # At the cap only the sign is left to be drawn: there are no larger numbers.
            factor = 1 if self.radix is None and value == self.largest else 2
            low = (factor * low << bits) // (one + step.high)
            high = _ceil_divide(factor * high << bits, one + step.low)
        if self.radix is not None:
            if edge.high >= one:
                return Bounds(0, one)  # too coarse to say anything; the caller asks again
            low = (max(low - edge.high, 0) << bits) // (one - edge.low)
            high = _ceil_divide((high - edge.low) << bits, one - edge.high)
        return Bounds(low, high)


@lru_cache(maxsize=1 << 14)
def floor_survival(distribution: Distribution, value: int, bits: int) -> int:
    """Compute floor(2**bits * S(value)) exactly, for values from 1 to the largest."""
    guard = _FIRST_GUARD
    while True:
        decided = _floor(distribution.survival(value, bits + guard), bits, guard)
        if decided is not None:
            return decided
        guard *= 2


def floor_survivals(distribution: Distribution, bits: int) -> list[int]:
    """Compute floor(2**bits * S(k)) exactly for k = 1, 2, ... up to the largest or the first 0."""
    guard = _FIRST_GUARD
    while True:
        floors: list[int] = []
        for bounds in distribution.survivals(bits + guard):
            decided = _floor(bounds, bits, guard)
            if decided is None:
                break
            floors.append(decided)
            if decided == 0:
                return floors
        else:
            return floors
        guard *= 2


def floor_exp(rate: Fraction, multiple: int, bits: int) -> int:
    """Compute floor(2**bits * exp(-rate * multiple)) exactly.

    >>> floor_exp(Fraction(1, 10), 5, 64)
    11188515852577165299
    """
    if multiple == 0:
        return 1 << bits
    return floor_survival(Distribution(ExpRate(rate)), multiple, bits)


def _floor(bounds: Bounds, bits: int, guard: int) -> int | None:
    """Round the enclosure down to `bits` bits if both ends agree; S(k) < 1 for k >= 1."""
    if bounds.low > bounds.high:
        raise ArithmeticError("an enclosure is empty: the arithmetic below it is broken")
    low = bounds.low >> guard
    high = min(bounds.high, (1 << (bits + guard)) - 1) >> guard
    return low if low == high else None


def _multiply(left: Bounds, right: Bounds, precision: int) -> Bounds:
    return Bounds(left.low * right.low >> precision, _ceil_shift(left.high * right.high, precision))


def _ceil_shift(value: int, bits: int) -> int:
    return -(-value >> bits)


def _ceil_divide(top: int, bottom: int) -> int:
    return -(-top // bottom)
