"""A person's total over all releases is tracked at their level and never passes their number."""

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.ledger import ledger as ledger_module
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure, seeded
from ledger.ledger_forgery import verify
from ledger.ledger_levels import personal

CENT, TENTH, ONE = Fraction(1, 100), Fraction(1, 10), Fraction(1)
LEVELS = (CENT, TENTH, ONE)
PEOPLE = [Fraction(text) for text in ("0.01", "0.05", "0.1", "0.99", "1", "7")]  # own numbers
MIXED = [  # what ten releases ask for, at each level or of everyone, and whether they get it
    ("0.001", True),
    (("0.002", "0.02", "0.2"), True),
    (("0", "0.05", "0.5"), True),
    ("0.008", False),  # the first level has 0.007
    (("0.004", "0.04", "0.4"), False),  # the second level has 0.029
    (("0.005", "0.005", "0.005"), True),
    ("0.002", True),
    (("0", "0", "0.3"), False),  # the last level has 0.292
    (("0", "0.022", "0"), True),
    (("0", "0", "0.292"), True),
]


@pytest.fixture
def path(locate):
    with Ledger.create(locate()) as ledger:
        ledger.add("survey", levels=("0.01", "0.1", "1"))
    return locate()


@pytest.fixture
def ledger(path):
    with Ledger(path) as ledger:
        yield ledger


def ask(ledger, wanted, dataset="survey", **changes):
    settings = {"purpose": "ages", "rng": secure()} | changes
    if isinstance(wanted, tuple):
        amounts = dict(zip(LEVELS, map(Fraction, wanted), strict=True))
        return ledger.grant_levels(dataset, amounts, hides=personal(LEVELS), **settings)
    settings |= {"hides": AddRemoveRecord(), "all_have_levels": dataset == "survey"}
    return ledger.grant(dataset, epsilon=wanted, **settings)


def costs(wanted, person):
    """Say what a release costs a person, by the plain meaning of levels."""
    if not isinstance(wanted, tuple):
        return Fraction(wanted)
    return Fraction(wanted[sum(person >= level for level in LEVELS) - 1])


def recount(granted, person):
    return sum((costs(wanted, person) for wanted in granted), Fraction(0))


def spent(ledger, dataset="survey"):
    return tuple(level.spent for level in ledger.status(dataset).levels)


def run_mixed(path):
    """Run the ten releases, each from a freshly opened ledger, and list those that were paid."""
    granted, answers = [], []
    for wanted, _ in MIXED:
        with Ledger(path) as ledger:
            try:
                budget = ask(ledger, wanted)
            except BudgetExhausted:
                answers.append(False)
                continue
            granted.append(wanted)
            answers.append(True)
            ledger.publish(budget.grant, f"release-{budget.grant.entry}", "hash")
    return granted, answers


# A person's total


def test_a_persons_total_is_right_over_ten_mixed_releases(path):
    granted, answers = run_mixed(path)
    assert answers == [paid for _, paid in MIXED]
    for person in PEOPLE:
        assert recount(granted, person) <= person
    with Ledger(path) as ledger:
        assert spent(ledger) == tuple(recount(granted, level) for level in LEVELS)
        assert spent(ledger) == (CENT, TENTH, ONE)  # used up to the last digit
        assert ledger.verify().problems == ()


def test_the_same_ten_releases_catch_a_ledger_that_watches_the_highest_level_only(
    path, monkeypatch
):
    def careless(dataset, account, epsilon, amounts):
        before = account.spent
        account.pay(epsilon, amounts)
        if account.spent > account.cap:
            raise BudgetExhausted(f"{dataset} has {account.cap - before} left")

    monkeypatch.setattr(ledger_module, "debit", careless)
    granted, _ = run_mixed(path)
    assert any(recount(granted, person) > person for person in PEOPLE)
    problems = " ".join(verify(path).problems)
    assert "level 0.01 of 'survey' has spent more than it may" in problems


WANTED = st.one_of(
    st.fractions(min_value="1/10000", max_value="0.006"),
    st.tuples(*(st.fractions(min_value=0, max_value=level / 2) for level in LEVELS)).filter(any),
)


@settings(max_examples=25, deadline=None)  # every grant waits for the disk
@given(wishes=st.lists(WANTED, max_size=10))
def test_whatever_is_asked_for_every_level_holds_exactly(tmp_path_factory, wishes):
    with Ledger.create(tmp_path_factory.mktemp("books") / "books.db") as ledger:
        ledger.add("survey", levels=LEVELS)
        granted = []
        for wanted in wishes:
            if all(recount([*granted, wanted], level) <= level for level in LEVELS):
                ask(ledger, wanted)
                granted.append(wanted)
            else:
                with pytest.raises(BudgetExhausted):
                    ask(ledger, wanted)
        assert spent(ledger) == tuple(recount(granted, level) for level in LEVELS)
        assert ledger.verify().problems == ()


# Granting by level


def test_a_grant_by_level_hands_out_its_largest_amount_and_says_who_paid_what(ledger):
    budget = ask(ledger, ("0.01", "0.05", "0.5"))
    assert budget.epsilon == Fraction(1, 2)
    assert budget.levels == ((CENT, CENT), (TENTH, TENTH / 2), (ONE, ONE / 2))
    status = ledger.status("survey")
    assert status.grants[0].levels == ledger.grant_status(budget.grant).levels == budget.levels
    assert [level.left for level in status.levels] == [0, TENTH / 2, ONE / 2]
    assert (status.cap, status.spent, status.left) == (1, ONE / 2, ONE / 2)


def test_an_ordinary_grant_costs_every_level_the_same(ledger):
    budget = ask(ledger, "0.004")
    assert budget.levels is None
    assert spent(ledger) == (Fraction("0.004"),) * 3
    assert ledger.status("survey").grants[0].levels == ()


def test_an_overdraft_says_which_levels_are_short_and_what_they_have_left(ledger):
    ask(ledger, ("0.006", "0.02", "0.2"))
    with pytest.raises(BudgetExhausted) as caught:
        ask(ledger, ("0.01", "0.1", "0.5"))
    assert str(caught.value) == (
        "'survey' cannot pay: level 0.01 has 0.004 left, but 0.01 was asked for; level 0.1 has "
        "0.08 left, but 0.1 was asked for: ask for at most 0.2 in these proportions; a person's "
        "own number is never raised"
    )
    ask(ledger, ("0.004", "0.04", "0.2"))  # the advice holds


def test_an_ordinary_overdraft_names_the_smallest_level(ledger):
    with pytest.raises(BudgetExhausted) as caught:
        ask(ledger, "0.05")
    assert str(caught.value) == (
        "'survey' cannot pay: level 0.01 has 0.01 left, but 0.05 was asked for: ask for at most "
        "0.01; an ordinary release costs every level the same"
    )
    ask(ledger, "0.01")
    with pytest.raises(BudgetExhausted, match="nothing more can be released; an ordinary"):
        ask(ledger, "1e-9")
    ask(ledger, ("0", "0.01", "0.1"))  # the others have not finished


def test_a_level_that_is_not_used_can_be_used_up(ledger):
    ask(ledger, ("0.01", "0", "0"))
    ask(ledger, ("0", "0.1", "1"))
    with pytest.raises(BudgetExhausted, match="nothing more can be released in these proportions"):
        ask(ledger, ("0.001", "0", "0"))


REFUSED = {
    "a seed": ({"rng": seeded(1)}, "seeded source gives the noise away"),
    "no purpose": ({"purpose": ""}, "purpose must be one line of text"),
    "more than a level": ({"wanted": ("0.011", "0", "0")}, r"level 0\.01 pays from 0 up to"),
    "nothing": ({"wanted": ("0", "0", "0")}, "some level must pay something"),
    "too many digits": ({"wanted": ("0", "0", Fraction(1, 10**121))}, "more than 120 digits"),
    "another dataset": ({"dataset": "clinic"}, "no dataset 'clinic'"),
    "one that has no levels": ({"dataset": "census"}, "'census' has no levels"),
    "one that has others": (
        {"dataset": "others"},
        r"'others' has levels 0\.1 and 1, but the release has levels 0\.01, 0\.1 and 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_grant_by_level_costs_nothing(ledger, case):
    changes, message = REFUSED[case]
    ledger.add("census", cap="1")
    ledger.add("others", levels=("0.1", "1"))
    before = ledger.entries()
    with pytest.raises((InvalidParameter, BudgetExhausted), match=message):
        ask(ledger, **{"wanted": ("0.01", "0.1", "1")} | changes)
    assert ledger.entries() == before


def test_a_thousand_levels_are_added_up_and_an_overdraft_is_told_in_one_short_line(ledger):
    levels = [Fraction(number, 1000) for number in range(1, 1001)]
    ledger.add("wide", levels=levels)
    asked = {"purpose": "p", "hides": personal(levels), "rng": secure()}
    ledger.grant_levels("wide", {e: e / 2 for e in levels}, **asked)
    assert spent(ledger, "wide") == tuple(level / 2 for level in levels)
    with pytest.raises(BudgetExhausted, match="; 997 more levels are short: ") as caught:
        ledger.grant_levels("wide", {e: e for e in levels}, **asked)
    assert len(str(caught.value)) < 400
    with pytest.raises(InvalidParameter, match=r"1,000 levels from 0\.001 to 1, but the release"):
        ask(ledger, ("0", "0", "1"), "wide")
    assert ledger.verify().is_intact


# Accounts with levels


def test_a_datasets_cap_is_its_highest_level_and_stays(ledger):
    assert ledger.status("survey").cap == 1
    with pytest.raises(InvalidParameter, match="people's own numbers are its caps"):
        ledger.change_cap("survey", "5", reason="more")
    ledger.add("same", cap="1.0", levels=("0.5", "1"))
    with pytest.raises(InvalidParameter, match=r"its highest level \(1\); leave the cap out"):
        ledger.add("other", cap="2", levels=("0.5", "1"))
    for levels in (("1", "0.5"), (float("nan"),), ("1", "1.0"), ("0", "1")):
        with pytest.raises(InvalidParameter):
            ledger.add("bad", levels=levels)
    assert ledger.datasets() == ("survey", "same")


def test_datasets_with_and_without_levels_live_side_by_side(ledger):
    ledger.add("census", cap="1")
    ask(ledger, "0.3", "census")
    ask(ledger, ("0.01", "0.1", "1"))
    assert (ledger.status("census").left, ledger.status("census").levels) == (Fraction(7, 10), ())
    assert ledger.verify().is_intact


def test_the_status_can_be_written_as_json_with_its_levels(ledger):
    ask(ledger, ("0", "0.05", "0.5"))
    ask(ledger, "0.001")
    plain = json.loads(json.dumps(ledger.status("survey").to_dict()))
    assert plain["levels"][1] == {"level": "0.1", "spent": "0.051", "left": "0.049"}
    by_level, ordinary = plain["grants"]
    assert by_level["levels"][0] == {"level": "0.01", "epsilon": "0"}
    assert "levels" not in ordinary
