"""Enclosures: they contain the number they enclose, whatever is asked and whoever asks."""

import ast
import decimal
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path

import mpmath
import pytest

from dpublish.mechanisms import weighted_choice
from dpublish.mechanisms.exact import enclosures
from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.exact.enclosures import (
    Distribution,
    ExpRate,
    SkipRate,
    floor_exp,
    floor_survival,
    floor_survivals,
)
from dpublish.privacy import exponentials
from dpublish.privacy.exponentials import Bounds, exp_bounds
from noise_oracle import real

RATES = [
    Fraction(1),
    Fraction(1, 10),
    Fraction(1, 1000),
    Fraction(1, 10**6),
    Fraction(20),
    Fraction(1, 1 << 40),
    Fraction(355, 113),
    Fraction(123456789, 987654321012345),
]
DISTRIBUTIONS = (
    [Distribution(ExpRate(rate)) for rate in RATES]
    + [Distribution(ExpRate(rate), signed=True) for rate in RATES]
    + [Distribution(ExpRate(rate), 256, radix=256) for rate in RATES[:4]]
    + [Distribution(ExpRate(rate), radix=256, signed=True) for rate in RATES]
    + [Distribution(SkipRate(Fraction(1, 10), 40), scale) for scale in (1, 256)]
    + [
        Distribution(SkipRate(Fraction(1, 10), 400), 65536, radix=17),
        Distribution(SkipRate(Fraction(2), 9), cap=5),
    ]
    + [Distribution(ExpRate(rate), cap=cap, signed=True) for rate in RATES for cap in (1, 2, 31)]
)
SHORT_DISTRIBUTIONS = [
    distribution
    for distribution in DISTRIBUTIONS
    if distribution.largest or distribution.rate.power(distribution.scale, 64).low < 63 << 58
]
VALUES = [1, 2, 3, 4, 5, 62, 63, 64, 254, 255]


def true_survival(distribution, value):
    """S(value) as the docstring of `Distribution` defines it, at mpmath's working precision."""
    rate = distribution.rate
    factor = mpmath.exp(-real(rate.rate))
    if isinstance(rate, SkipRate):
        factor = 1 - factor**rate.threshold / (1 + factor)
    step = factor**distribution.scale
    magnitude, remainder = divmod(value, 2) if distribution.signed else (value, 0)

    def at_least(k):
        if distribution.cap is not None and k > distribution.cap:
            return mpmath.mpf(0)
        if distribution.radix is None:
            return step**k
        return (step**k - step**distribution.radix) / (1 - step**distribution.radix)

    is_set = step / (1 + step)
    return at_least(magnitude + 1) + remainder_mass(at_least, magnitude, remainder, is_set)


def remainder_mass(at_least, magnitude, remainder, is_set):
    here = at_least(magnitude) - at_least(magnitude + 1)
    return here * is_set if remainder else here


@pytest.mark.parametrize("bits", [64, 128, 256, 512])
def test_thresholds_are_the_floors_that_mpmath_finds(bits):
    checked = 0
    with mpmath.workprec(6 * bits + 800):
        for distribution in DISTRIBUTIONS:
            for value in VALUES:
                if distribution.largest is None or value <= distribution.largest:
                    wanted = int(
                        mpmath.floor(mpmath.ldexp(true_survival(distribution, value), bits))
                    )
                    assert floor_survival(distribution, value, bits) == wanted, (
                        distribution,
                        value,
                    )
                    checked += 1
    assert checked > 150


def test_unary_minus_would_have_been_caught():
    def careless(exponent, digits):
        with decimal.localcontext() as context:
            context.prec = digits
            quotient = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        negated = -quotient  # rounds to the 28 digits of the thread's context
        with decimal.localcontext() as context:
            context.prec = digits
            return negated.exp()

    careless_exp = Fraction(careless(Fraction(1, 3), digits=200))
    assert int(careless_exp * 2**64) == floor_exp(Fraction(1, 3), 1, 64)
    assert int(careless_exp * 2**128) != floor_exp(Fraction(1, 3), 1, 128)


@pytest.mark.parametrize("distribution", SHORT_DISTRIBUTIONS, ids=str)
def test_the_whole_table_agrees_with_its_entries(distribution):
    table = floor_survivals(distribution, 64)
    assert table == [floor_survival(distribution, k + 1, 64) for k in range(len(table))]
    assert len(table) == distribution.largest or table[-1] == 0


def test_enclosures_hold_the_number_and_are_tight():
    with mpmath.workprec(2000):
        for rate in RATES:
            for precision in (8, 64, 300):
                low, high = exp_bounds(rate, precision)
                assert low <= mpmath.ldexp(mpmath.exp(-real(rate)), precision) <= high
                assert high - low <= 2


@pytest.mark.parametrize("precision", [8, 64, 300])
def test_enclosures_of_small_numbers_are_as_tight(precision):
    with mpmath.workprec(2000):
        for share in range(50, 111):
            exponent = Fraction(share * precision, 100)
            low, high = exp_bounds(exponent, precision)
            assert low <= mpmath.ldexp(mpmath.exp(-real(exponent)), precision) <= high
            assert high - low <= 2


class Careless(decimal.Context):
    """A context that leaves out the step that makes up for the rounding of `exp`."""

    def next_minus(self, number):
        return number

    next_plus = next_minus


EXPONENTS = [Fraction(top, bottom) for top in range(1, 40) for bottom in (1, 7, 13, 30)]


def misses(monkeypatch, context_type=decimal.Context, turned=False):
    """Count the exponents whose enclosure, computed with four digits only, fails to hold."""
    accurate = exponentials._context(4, decimal.ROUND_FLOOR)

    def coarse(digits, rounding):
        if turned:
            opposite = {decimal.ROUND_FLOOR: decimal.ROUND_CEILING}
            rounding = opposite.get(rounding, decimal.ROUND_FLOOR)
        limits = {"Emin": accurate.Emin, "Emax": accurate.Emax}
        return context_type(prec=4, rounding=rounding, traps=[], **limits)

    monkeypatch.setattr(exponentials, "_context", coarse)
    missed = 0
    with mpmath.workprec(400):
        for exponent in EXPONENTS:
            low, high = exp_bounds.__wrapped__(exponent, 64)
            truth = mpmath.ldexp(mpmath.exp(-real(exponent)), 64)
            missed += not low <= truth <= high
    return missed


def test_every_rounding_is_outwards(monkeypatch):
    assert misses(monkeypatch) == 0
    assert misses(monkeypatch, Careless) > 0
    assert misses(monkeypatch, turned=True) > 0


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_products_enclose_what_single_powers_enclose(distribution):
    for value, bounds in enumerate(islice(distribution.survivals(160), 40), start=1):
        with mpmath.workprec(1000):
            truth = mpmath.ldexp(true_survival(distribution, value), 160)
            assert bounds.low <= truth <= bounds.high


def test_too_little_precision_is_noticed_and_mended(monkeypatch):
    distribution = Distribution(ExpRate(Fraction(1, 1 << 40)), radix=256, signed=True)
    wanted = floor_survivals(distribution, 64)
    monkeypatch.setattr(enclosures, "_FIRST_GUARD", 1)
    floor_survival.cache_clear()
    assert floor_survivals(distribution, 64) == wanted
    assert [floor_survival(distribution, k, 64) for k in (1, 100, 511)] == [
        wanted[k - 1] for k in (1, 100, 511)
    ]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("value", [1, 3, 200])
def test_precision_that_cannot_tell_a_digit_from_one_says_nothing(signed, value, monkeypatch):
    distribution = Distribution(ExpRate(Fraction(1, 1 << 40)), radix=256, signed=signed)
    assert distribution.survival(value, 16) == Bounds(0, 1 << 16)  # a**256 may well be 1
    bounds = distribution.survival(value, 60)
    with mpmath.workprec(1000):
        truth = mpmath.ldexp(true_survival(distribution, value), 60)
    assert 0 < bounds.low <= truth <= bounds.high < 1 << 60
    monkeypatch.setattr(enclosures, "_FIRST_GUARD", 1)
    floor_survival.cache_clear()
    assert floor_survival(distribution, value, 8) == int(mpmath.ldexp(truth, -52))


def test_an_enclosure_decides_only_if_both_ends_agree():
    assert enclosures._floor(Bounds(31, 33), bits=4, guard=4) is None
    assert enclosures._floor(Bounds(32, 33), bits=4, guard=4) == 2
    assert enclosures._floor(Bounds(255, 256), bits=4, guard=4) == 15  # a survival is below 1
    with pytest.raises(ArithmeticError, match="empty"):
        enclosures._floor(Bounds(33, 32), bits=4, guard=4)


def test_settings_of_the_callers_thread_do_not_matter():
    wanted = exp_bounds(Fraction(7, 3), 200)
    exp_bounds.cache_clear()
    with decimal.localcontext() as context:
        context.prec, context.rounding, context.Emin, context.Emax = 2, decimal.ROUND_UP, -1, 1
        context.traps[decimal.Inexact] = True
        assert exp_bounds(Fraction(7, 3), 200) == wanted


def test_extreme_exponents_are_decided_at_once():
    assert floor_exp(Fraction(20), 10**12, 64) == 0
    assert floor_exp(Fraction(1, 3), 0, 64) == 1 << 64
    barely_ever = Distribution(SkipRate(Fraction(1), 10**12), scale=1 << 61, cap=1)
    assert floor_survival(barely_ever, 1, 64) == (1 << 64) - 1


@pytest.mark.parametrize("module", [exponentials, enclosures, exact, weighted_choice])
def test_no_float_is_on_the_path_of_the_noise(module):
    tree = ast.parse(Path(module.__file__).read_text())
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Div), "true division makes floats"
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float | complex))
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
            assert not names & {"math", "cmath", "random", "numpy.random", "scipy"}
        if isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            assert name not in {"float", "float64", "float32", "random", "log", "sqrt", "round"}
