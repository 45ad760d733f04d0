"""Digits of noise: put together, they have exactly the probability of the whole number.

A radix or scale that is off by one changes probabilities by less than a percent, which no
sample shows.  Here the sampler is steered by scripted words to chosen digits, and the product
of their probabilities is compared to 60 places with that of the number it returns.
"""

from fractions import Fraction
from itertools import product

import mpmath
import pytest

from dpublish.mechanisms import exact
from dpublish.mechanisms.enclosures import ExpRate, SkipRate, floor_survival
from dpublish.mechanisms.exact import discrete_laplace, geometric
from noise_oracle import ScriptedSource, real


def interval(law, digit):
    """The first and last word that decide for this digit, the ties at both ends left out."""
    above = -1 if digit == law.largest else floor_survival(law, digit + 1, 64)
    below = floor_survival(law, digit, 64) if digit else 1 << 64
    return above + 1, below - 1


def steer(laws, digits):
    """Words that make each law draw its digit, and the exact probability of those digits."""
    words, chance = [], mpmath.mpf(1)
    for law, digit in zip(laws, digits, strict=True):
        words.append(sum(interval(law, digit)) // 2)
        chance *= survival(law, digit) - (0 if digit == law.largest else survival(law, digit + 1))
    return words, chance


def survival(law, value):
    if value == 0:
        return mpmath.mpf(1)
    low, high = law.survival(value, 600)
    return mpmath.ldexp(mpmath.mpf(low + high) / 2, -600)


def digit_choices(laws):
    """Digits for each law, the smallest and largest among them, that one word can ask for."""
    return product(*[[d for d in candidates(law) if can_be_asked_for(law, d)] for law in laws])


def candidates(law):
    return sorted({0, 1, 2, 3, 7} if law.largest is None else {0, 1, law.largest // 2, law.largest})


def can_be_asked_for(law, digit):
    first, last = interval(law, digit)
    return first < last


def same(left, right):
    return abs(left / right - 1) < mpmath.mpf(10) ** -60


@pytest.mark.parametrize("rate", ["1/10", "1/100", "1/5000"])
def test_digits_join_into_a_geometric_number_of_exactly_the_right_probability(rate):
    rate = Fraction(rate)
    laws = exact._digit_laws(ExpRate(rate))
    with mpmath.workprec(700):
        step = mpmath.exp(-real(rate))
        for digits in digit_choices(laws):
            words, chance = steer(laws, digits)
            (value,) = geometric(rate, 1, ScriptedSource(*reversed(words))).tolist()
            assert same(chance, (1 - step) * step**value), (digits, value)


@pytest.mark.parametrize("rate", ["1/10", "1/100", "1/5000"])
def test_digits_and_sign_join_into_two_sided_noise_of_exactly_the_right_probability(rate):
    rate = Fraction(rate)
    laws = exact._digit_laws(ExpRate(rate), signed=True)
    with mpmath.workprec(700):
        step, seen = mpmath.exp(-real(rate)), set()
        for digits in digit_choices(laws):
            words, chance = steer(laws, digits)
            source = ScriptedSource(words[0], *reversed(words[1:]))
            (value,) = discrete_laplace(rate, 1, source).tolist()
            assert same(chance, (1 - step) / (1 + step) * step ** abs(value)), (digits, value)
            seen.add(value)
    assert len(seen) == len(list(digit_choices(laws)))
    assert min(seen) < 0 < max(seen)


@pytest.mark.parametrize(
    ("threshold", "size"), [(1, 5), (40, 1000), (40, 257), (90, 1000), (90, 70_000), (200, 10**15)]
)
def test_gaps_within_the_size_have_exactly_the_right_probability(threshold, size):
    skip = SkipRate(Fraction(1, 10), threshold)
    laws = exact._digit_laws(skip, below=size)
    inside = 0
    with mpmath.workprec(700):
        step = mpmath.exp(-mpmath.mpf(1) / 10)
        miss = 1 - step**threshold / (1 + step)
        for digits in digit_choices(laws):
            words, chance = steer(laws, digits)
            (value,) = exact._gaps(skip, size, 1, ScriptedSource(*reversed(words))).tolist()
            if value < size:
                assert same(chance, (1 - miss) * miss**value), (digits, value)
                inside += 1
    assert inside > 2
