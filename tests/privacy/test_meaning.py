"""What epsilon means, in odds and in words: exact bounds, rounded outward."""

from decimal import Decimal
from fractions import Fraction
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import InvalidParameter
from dpublish.privacy.levels import parse_amounts
from dpublish.privacy.meaning import (
    PRIORS,
    least_sure,
    most_detected,
    most_sure,
    odds_factor,
    percent_at_least,
    percent_at_most,
    tell_factor,
    two_sentences,
)
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    PersonalRecord,
    ReplaceRecord,
    UserInWindow,
)

PROBABILITIES = st.fractions(min_value=Fraction(1, 10**6), max_value=1 - Fraction(1, 10**6))
EPSILONS = st.fractions(min_value=Fraction(1, 10**6), max_value=50)


@given(PROBABILITIES, EPSILONS)
def test_the_odds_move_by_the_factor_and_no_more(prior, epsilon):
    most, least = float(most_sure(prior, epsilon)), float(least_sure(prior, epsilon))
    before, factor = float(prior / (1 - prior)), exp(epsilon)
    assert most == pytest.approx(before * factor / (1 + before * factor))
    assert least == pytest.approx(before / factor / (1 + before / factor))
    assert 0 < least < prior < most <= 1


def likelihood_bound(prior, epsilon):
    """Search over two-outcome mechanisms for the one after which anyone is surest."""
    best = 0.0
    for step in range(1, 2000):
        absent = step / 2000  # probability of the outcome without the record
        present = min(absent * exp(epsilon), 1 - (1 - absent) * exp(-epsilon))
        best = max(best, prior * present / (prior * present + (1 - prior) * absent))
    return best


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "3"])
@pytest.mark.parametrize("prior", PRIORS)
def test_some_private_mechanism_comes_as_close_to_the_bound_as_one_likes(prior, epsilon):
    bound = float(most_sure(prior, Fraction(epsilon)))
    found = likelihood_bound(float(prior), float(Fraction(epsilon)))
    assert found == pytest.approx(bound, rel=1e-6)


@given(PROBABILITIES, EPSILONS)
def test_no_test_beats_the_two_sides_of_the_guarantee(rate, epsilon):
    found = float(most_detected(rate, epsilon))
    assert found <= float(rate) * exp(epsilon) * (1 + 1e-9)
    assert 1 - found >= (1 - float(rate)) * exp(-epsilon) * (1 - 1e-9) - 1e-15
    assert float(rate) < found <= 1


@given(PROBABILITIES)
def test_percent_is_rounded_outward_and_not_far(probability):
    exact = Decimal(probability.numerator) / probability.denominator
    upper = Decimal(percent_at_most(exact).removesuffix(" %")) / 100
    lower = Decimal(percent_at_least(exact).removesuffix(" %")) / 100
    assert lower <= exact <= upper
    assert upper - lower <= Decimal("0.00101")


def test_numbers_that_were_computed_by_hand():
    # e = 2.71828: odds 1 to 9 become 2.71828 to 9, which is 23.2 %.
    assert percent_at_most(most_sure(Fraction(1, 10), Fraction(1))) == "23.2 %"
    assert percent_at_least(least_sure(Fraction(1, 2), Fraction(1))) == "26.8 %"
    assert percent_at_most(most_detected(Fraction(1, 20), Fraction(1))) == "13.6 %"
    assert [tell_factor(Fraction(text)) for text in ("1", "10", "1000")] == [
        "2.72",
        "22,100",
        "e^1000",
    ]


def test_a_huge_epsilon_allows_certainty_and_does_not_overflow():
    for epsilon in (Fraction(10**6), Fraction(10**3000)):
        assert percent_at_most(most_sure(Fraction(1, 100), epsilon)) == "100 %"
        assert percent_at_least(least_sure(Fraction(1, 2), epsilon)) == "0 %"
        assert percent_at_most(most_detected(Fraction(1, 20), epsilon)) == "100 %"
        assert odds_factor(epsilon) > 10**9
        assert "100 % sure" in two_sentences(epsilon)


@pytest.mark.parametrize("prior", [Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_certainty_cannot_be_updated(prior):
    for bound in (most_sure, least_sure, most_detected):
        with pytest.raises(InvalidParameter, match="between 0 and 1"):
            bound(prior, Fraction(1))


LEVELS = ("0.01", "1")


@pytest.mark.parametrize(
    ("neighbors", "claim"),
    [
        (AddRemoveRecord(), "that a given record is in the table"),
        (ReplaceRecord(), "that a given record has certain values rather than certain others"),
        (AddRemoveUnit("patient_id"), "that a given person ('patient_id') is in the table"),
        (AddRemoveUnit("basket", noun="basket"), "that a given basket is in the table"),
        (
            UserInWindow("user", 24),
            "that a given person ('user') is in the data within 24 consecutive snapshots",
        ),
        (PersonalRecord("own", LEVELS, "levels"), "that a given record is in the table"),
        (
            PersonalRecord("own", LEVELS, "levels", unit="who"),
            "that a given person ('who') is in the table",
        ),
        (
            PersonalRecord("own", LEVELS, "values-only"),
            "that a given record has certain values rather than certain others",
        ),
    ],
)
def test_two_sentences_name_what_is_hidden(neighbors, claim):
    told = two_sentences(Fraction(1, 2), neighbors)
    assert f"50 % likely {claim} can be at most 62.3 % sure" in told
    assert told.count(". ") == 1
    assert told.endswith(".")
    assert ("every further window" in told) is isinstance(neighbors, UserInWindow)


def test_levels_that_pay_differently_are_bounded_by_the_most():
    hides = PersonalRecord("own", LEVELS, "levels")
    different = parse_amounts({Fraction(1, 100): "0.005", Fraction(1): "0.5"})
    told = two_sentences(Fraction(1, 2), hides, different)
    assert "ε at most 0.5" in told
    assert "at a level that pays this much, can be at most 62.3 %" in told
    assert "at a level that pays less, it is less" in told
    alike = parse_amounts({Fraction(1, 100): "0.01", Fraction(1): "0.01"})
    assert "ε = 0.01" in two_sentences(Fraction(1, 100), hides, alike)


def test_an_epsilon_that_is_no_short_decimal_is_marked_as_rounded():
    assert "with ε ≈0.3333:" in two_sentences(Fraction(1, 3))


@pytest.mark.parametrize(
    ("epsilon", "told"),
    [("0.5", "1.65"), ("9", "8,110"), ("20", "4.86 × 10^8"), ("50", "5.19 × 10^21")],
)
def test_a_large_factor_is_told_by_its_power_of_ten_and_rounded_up(epsilon, told):
    assert tell_factor(Fraction(epsilon)) == told
    shown = Fraction(told.partition(" ")[0].replace(",", ""))
    shown *= 10 ** int(told.partition("^")[2] or 0)
    assert exp(float(Fraction(epsilon))) <= shown
