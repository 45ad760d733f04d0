"""Digits of noise: put together, they have exactly the probability of the integer.

A radix or scale that is off by one changes probabilities by less than a percent, which no
sample shows.  Here the sampler is steered by scripted words to chosen digits, and the product
of their probabilities is compared to 60 digits with that of the number it returns.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.exact.enclosures import ExpRate, SkipRate, floor_survival
from dpublish.mechanisms.exact.sampler import discrete_laplace, geometric
from noise_oracle import ScriptedSource, real


def interval(distribution, digit):
    """The first and last word that decide for this digit, the ties at both ends left out."""
    above = -1 if digit == distribution.largest else floor_survival(distribution, digit + 1, 64)
    below = floor_survival(distribution, digit, 64) if digit else 1 << 64
    return above + 1, below - 1


def steer(distributions, digits):
    """Words that make each distribution draw its digit, and the probability of those digits."""
    words, probability = [], mpmath.mpf(1)
    for distribution, digit in zip(distributions, digits, strict=True):
        words.append(sum(interval(distribution, digit)) // 2)
        probability *= survival(distribution, digit) - (
            0 if digit == distribution.largest else survival(distribution, digit + 1)
        )
    return words, probability


def survival(distribution, value):
    if value == 0:
        return mpmath.mpf(1)
    low, high = distribution.survival(value, 600)
    return mpmath.ldexp(mpmath.mpf(low + high) / 2, -600)


def every_value(sampler, distributions):
    """Each value the sampler can return, and the sum of the probabilities of its digits."""
    values = defaultdict(mpmath.mpf)
    for digits in product(*[range(distribution.largest + 1) for distribution in distributions]):
        words, probability = steer(distributions, digits)
        if sampler is discrete_laplace:  # reads the lowest digit first, as it holds the sign
            words[1:] = reversed(words[1:])
        else:
            words.reverse()
        values[sampler(RATE, 1, ScriptedSource(*words)).item()] += probability
    return values


def digit_choices(distributions):
    """Digits for each distribution, smallest and largest included, that one word can ask for."""
    return product(
        *[
            [d for d in candidates(distribution) if can_be_asked_for(distribution, d)]
            for distribution in distributions
        ]
    )


def candidates(distribution):
    few = {0, 1, 2, 3, 7, distribution.largest // 2, distribution.largest}
    return sorted(digit for digit in few if digit <= distribution.largest)


def can_be_asked_for(distribution, digit):
    first, last = interval(distribution, digit)
    return first < last


RATE = Fraction(1, 100)  # noise of two digits


def same(left, right):
    return abs(left / right - 1) < mpmath.mpf(10) ** -60


@pytest.mark.parametrize("rate", ["1/10", "1/100", "1/5000"])
def test_digits_join_into_a_geometric_number_of_exactly_the_right_probability(rate):
    rate = Fraction(rate)
    distributions = exact._digit_distributions(ExpRate(rate), below=exact.LARGEST_NOISE)
    with mpmath.workprec(700):
        step = mpmath.exp(-real(rate))
        for digits in digit_choices(distributions):
            words, probability = steer(distributions, digits)
            (value,) = geometric(rate, 1, ScriptedSource(*reversed(words))).tolist()
            assert same(probability, (1 - step) * step**value), (digits, value)


@pytest.mark.parametrize("rate", ["1/10", "1/100", "1/5000"])
def test_digits_and_sign_join_into_two_sided_noise_of_exactly_the_right_probability(rate):
    rate = Fraction(rate)
    distributions = exact._digit_distributions(
        ExpRate(rate), signed=True, below=exact.LARGEST_NOISE
    )
    with mpmath.workprec(700):
        step, seen = mpmath.exp(-real(rate)), set()
        for digits in digit_choices(distributions):
            words, probability = steer(distributions, digits)
            source = ScriptedSource(words[0], *reversed(words[1:]))
            (value,) = discrete_laplace(rate, 1, source).tolist()
            assert same(probability, (1 - step) / (1 + step) * step ** abs(value)), (digits, value)
            seen.add(value)
    assert len(seen) == len(list(digit_choices(distributions)))
    assert min(seen) < 0 < max(seen)


@pytest.mark.parametrize(
    ("threshold", "size"), [(1, 5), (40, 1000), (40, 257), (90, 1000), (90, 70_000), (200, 10**15)]
)
def test_gaps_within_the_size_have_exactly_the_right_probability(threshold, size):
    skip = SkipRate(Fraction(1, 10), threshold)
    distributions = exact._digit_distributions(skip, below=size)
    inside = 0
    with mpmath.workprec(700):
        step = mpmath.exp(-mpmath.mpf(1) / 10)
        miss = 1 - step**threshold / (1 + step)
        for digits in digit_choices(distributions):
            words, probability = steer(distributions, digits)
            (value,) = exact._gaps(skip, size, 1, ScriptedSource(*reversed(words))).tolist()
            if value < size:
                assert same(probability, (1 - miss) * miss**value), (digits, value)
                inside += 1
    assert inside > 2


@pytest.mark.parametrize("largest", [1, 5, 255, 256, 300])
def test_noise_beyond_the_largest_is_the_largest_and_all_else_is_exact(largest, monkeypatch):
    monkeypatch.setattr(exact, "LARGEST_NOISE", largest)
    distributions = exact._digit_distributions(ExpRate(RATE), below=largest)
    with mpmath.workprec(700):
        step, seen = mpmath.exp(-real(RATE)), every_value(geometric, distributions)
        assert sorted(seen) == list(range(largest + 1))
        assert same(seen.pop(largest), step**largest)
        assert all(
            same(probability, (1 - step) * step**value) for value, probability in seen.items()
        )


@pytest.mark.parametrize("largest", [1, 5, 300])
def test_two_sided_noise_beyond_the_largest_keeps_its_sign(largest, monkeypatch):
    monkeypatch.setattr(exact, "LARGEST_NOISE", largest)
    distributions = exact._digit_distributions(ExpRate(RATE), signed=True, below=largest)
    with mpmath.workprec(700):
        step, seen = mpmath.exp(-real(RATE)), every_value(discrete_laplace, distributions)
        assert sorted(seen) == list(range(-largest - 1, largest + 1))
        for end in (-largest - 1, largest):
            assert same(seen.pop(end), step ** abs(end) / (1 + step))
        both = (1 - step) / (1 + step)
        assert all(
            same(probability, both * step ** abs(value)) for value, probability in seen.items()
        )


def test_the_largest_noise_fits_with_its_sign():
    (distribution,) = exact._digit_distributions(
        ExpRate(Fraction(1)), signed=True, below=exact.LARGEST_NOISE
    )
    assert distribution.largest == 2**63 - 1


def test_noise_that_never_ends_comes_to_an_end(monkeypatch):
    monkeypatch.setattr(exact, "LARGEST_NOISE", 1000)

    class Zeros:
        def words(self, count):
            return np.zeros(count, dtype=np.uint64)

    for rate in (Fraction(1), Fraction(1, 10), Fraction(1, 200)):
        assert geometric(rate, 2, Zeros()).tolist() == [1000, 1000]
        assert discrete_laplace(rate, 1, Zeros()).tolist() == [-1001]
