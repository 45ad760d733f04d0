"""Dividing what is left of a cap: exactly, never above it, and without spending."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.ledger.account import LevelStatus, Status
from dpublish.ledger.ledger import Ledger
from dpublish.planning.schedule import PERIODS, plan_releases, rounded_down
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.neighbors import AddRemoveRecord, PersonalRecord, UserInWindow
from dpublish.randomness import secure

CAPS = st.fractions(min_value=Fraction(1, 1000), max_value=100, max_denominator=10**6)


@st.composite
def statuses(draw):
    cap = draw(CAPS)
    part = draw(st.fractions(min_value=0, max_value=Fraction(99, 100), max_denominator=1000))
    return Status("people", cap, cap * part, ())


@given(statuses(), st.integers(min_value=1, max_value=5000))
def test_releases_never_cost_more_than_is_left_and_waste_little(status, releases):
    found = plan_releases(status, releases=releases)
    assert found.releases * found.epsilon <= status.left
    assert found.total + found.remainder == status.left
    assert found.total > status.left * Fraction(999, 1000)
    assert "/" not in format_epsilon(found.epsilon)  # a decimal, to be typed
    last = list(found.steps())[-1]
    assert last.spent + last.left == status.cap
    assert last.left == found.remainder


@given(statuses(), st.integers(min_value=1, max_value=400), st.integers(min_value=1, max_value=90))
def test_what_is_kept_stays(status, releases, percent):
    found = plan_releases(status, releases=releases, keep=f"{percent}%")
    assert found.kept == status.left * percent / 100
    assert found.remainder >= found.kept
    amount = plan_releases(status, releases=releases, keep=found.kept)
    assert amount == found


@given(statuses(), st.integers(min_value=2, max_value=1000))
def test_epsilon_says_how_many_there_can_be(status, part):
    epsilon = status.left / part
    assert plan_releases(status, epsilon=epsilon).releases == part
    assert plan_releases(status, epsilon=epsilon * (1 + Fraction(1, 10**9))).releases == part - 1


def test_a_period_alone_means_a_year():
    status = Status("people", Fraction(2), Fraction(0), ())
    for per, count in PERIODS.items():
        found = plan_releases(status, per=per)
        assert (found.releases, found.per) == (count, per)
    assert plan_releases(status, per="month", releases=6).releases == 6
    assert plan_releases(status, releases=12).epsilon == Fraction("0.1666")


def test_personalized_releases_are_bounded_by_the_level_that_used_most_of_itself():
    levels = (
        LevelStatus(Fraction("0.01"), Fraction("0.004")),  # 60 % left
        LevelStatus(Fraction(1), Fraction("0.5")),  # 50 % left
    )
    status = Status("survey", Fraction(1), Fraction("0.5"), (), levels)
    found = plan_releases(status, releases=5)
    assert found.epsilon == Fraction("0.1")
    assert found.ordinary == Fraction("0.0012")
    for each in levels:
        assert found.total * each.level / status.cap <= each.left
        assert 5 * found.ordinary <= each.left
    assert plan_releases(status, releases=5, keep="50%").ordinary == Fraction("0.0006")


@pytest.mark.parametrize("levels", [("0.01", "0.1", "1"), ()])
def test_the_ledger_grants_the_whole_schedule_and_not_one_more(tmp_path, levels):
    with Ledger.create(tmp_path / "books.db") as books:
        books.add("survey", cap=None if levels else "0.5", levels=levels)
        found = plan_releases(books.status("survey"), releases=7)
        assert books.status("survey").spent == 0
        for _ in range(7):
            if levels:
                amounts = {Fraction(each): Fraction(each) * found.epsilon for each in levels}
                books.grant_levels(
                    "survey",
                    amounts,
                    purpose="monthly",
                    hides=PersonalRecord("own", levels, "levels"),
                    rng=secure(),
                )
            else:
                books.grant(
                    "survey",
                    epsilon=found.epsilon,
                    purpose="monthly",
                    hides=AddRemoveRecord(),
                    rng=secure(),
                )
        assert books.status("survey").left == found.remainder
        with pytest.raises((BudgetExhausted, InvalidParameter)):
            plan_releases(books.status("survey"), epsilon=found.epsilon)


def test_an_account_of_endless_streams_says_for_how_long_amounts_hold():
    status = Status("taxis", Fraction(1), Fraction(0), (), (), UserInWindow("user", 24))
    assert plan_releases(status, releases=2).to_dict()["per_window_of"] == 24


def test_rounding_goes_down_to_four_digits():
    assert rounded_down(Fraction(2, 3)) == Fraction("0.6666")
    assert rounded_down(Fraction(10**6 + 1, 10**9)) == Fraction("0.001")
    assert rounded_down(Fraction(3)) == 3


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({}, InvalidParameter, "--releases 12"),
        ({"releases": 2, "epsilon": "1"}, InvalidParameter, "decide each other"),
        ({"releases": 0}, InvalidParameter, "at least 1"),
        ({"releases": 10**7}, InvalidParameter, "at most 1,000,000"),
        ({"per": "moon"}, InvalidParameter, "no period 'moon'"),
        ({"releases": 1, "keep": "150%"}, InvalidParameter, "such as 20%"),
        ({"releases": 1, "keep": "lots"}, InvalidParameter, "what is kept"),
        ({"releases": 1, "keep": "2"}, BudgetExhausted, "nothing to divide"),
        ({"epsilon": "3"}, BudgetExhausted, "at most 2"),
        ({"epsilon": "1e-9"}, InvalidParameter, "take a larger one"),
    ],
)
def test_what_cannot_be_divided_is_refused(asked, error, told):
    with pytest.raises(error, match=told):
        plan_releases(Status("people", Fraction(2), Fraction(0), ()), **asked)


def test_a_spent_account_has_nothing_to_divide():
    with pytest.raises(BudgetExhausted, match="nothing to divide: 0 is left"):
        plan_releases(Status("people", Fraction(2), Fraction(2), ()), releases=3)
