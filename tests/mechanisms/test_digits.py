"""Digits of noise: put together, they have exactly the probability of the whole number.

A radix or scale that is off by one changes probabilities by less than a percent, which no
sample shows.  Here the sampler is steered by scripted words to chosen digits, and the product
of their probabilities is compared to 60 places with that of the number it returns.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
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


def every_value(sampler, laws):
    """Each value the sampler can return, and the sum of the probabilities of its digits."""
    values = defaultdict(mpmath.mpf)
    for digits in product(*[range(law.largest + 1) for law in laws]):
        words, chance = steer(laws, digits)
        if sampler is discrete_laplace:  # reads the lowest digit first, as it holds the sign
            words[1:] = reversed(words[1:])
        else:
            words.reverse()
        values[sampler(RATE, 1, ScriptedSource(*words)).item()] += chance
    return values


def digit_choices(laws):
    """Digits for each law, the smallest and largest among them, that one word can ask for."""
    return product(*[[d for d in candidates(law) if can_be_asked_for(law, d)] for law in laws])


def candidates(law):
    few = {0, 1, 2, 3, 7, law.largest // 2, law.largest}
    return sorted(digit for digit in few if digit <= law.largest)


def can_be_asked_for(law, digit):
    first, last = interval(law, digit)
    return first < last


RATE = Fraction(1, 100)  # noise of two digits


def same(left, right):
    return abs(left / right - 1) < mpmath.mpf(10) ** -60


@pytest.mark.parametrize("rate", ["1/10", "1/100", "1/5000"])
def test_digits_join_into_a_geometric_number_of_exactly_the_right_probability(rate):
    rate = Fraction(rate)
    laws = exact._digit_laws(ExpRate(rate), below=exact.LARGEST_NOISE)
    with mpmath.workprec(700):
        step = mpmath.exp(-real(rate))
        for digits in digit_choices(laws):
            words, chance = steer(laws, digits)
            (value,) = geometric(rate, 1, ScriptedSource(*reversed(words))).tolist()
            assert same(chance, (1 - step) * step**value), (digits, value)


@pytest.mark.parametrize("rate", ["1/10", "1/100", "1/5000"])
def test_digits_and_sign_join_into_two_sided_noise_of_exactly_the_right_probability(rate):
    rate = Fraction(rate)
    laws = exact._digit_laws(ExpRate(rate), signed=True, below=exact.LARGEST_NOISE)
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


@pytest.mark.parametrize("largest", [1, 5, 255, 256, 300])
def test_noise_beyond_the_largest_is_the_largest_and_all_else_is_exact(largest, monkeypatch):
    monkeypatch.setattr(exact, "LARGEST_NOISE", largest)
    laws = exact._digit_laws(ExpRate(RATE), below=largest)
    with mpmath.workprec(700):
        step, seen = mpmath.exp(-real(RATE)), every_value(geometric, laws)
        assert sorted(seen) == list(range(largest + 1))
        assert same(seen.pop(largest), step**largest)
        assert all(same(chance, (1 - step) * step**value) for value, chance in seen.items())


@pytest.mark.parametrize("largest", [1, 5, 300])
def test_two_sided_noise_beyond_the_largest_keeps_its_sign(largest, monkeypatch):
    monkeypatch.setattr(exact, "LARGEST_NOISE", largest)
    laws = exact._digit_laws(ExpRate(RATE), signed=True, below=largest)
    with mpmath.workprec(700):
        step, seen = mpmath.exp(-real(RATE)), every_value(discrete_laplace, laws)
        assert sorted(seen) == list(range(-largest - 1, largest + 1))
        for end in (-largest - 1, largest):
            assert same(seen.pop(end), step ** abs(end) / (1 + step))
        both = (1 - step) / (1 + step)
        assert all(same(chance, both * step ** abs(value)) for value, chance in seen.items())


def test_the_largest_noise_fits_with_its_sign():
    (law,) = exact._digit_laws(ExpRate(Fraction(1)), signed=True, below=exact.LARGEST_NOISE)
    assert law.largest == 2**63 - 1


def test_noise_that_never_ends_comes_to_an_end(monkeypatch):
    monkeypatch.setattr(exact, "LARGEST_NOISE", 1000)

    class Zeros:
        def words(self, count):
            return np.zeros(count, dtype=np.uint64)

    for rate in (Fraction(1), Fraction(1, 10), Fraction(1, 200)):
        assert geometric(rate, 2, Zeros()).tolist() == [1000, 1000]
        assert discrete_laplace(rate, 1, Zeros()).tolist() == [-1001]
