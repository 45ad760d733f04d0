"""What an account hides is one change: epsilons of different changes do not add up."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest

from dpublish.errors import BudgetExhausted, InvalidParameter, LedgerTampered
from dpublish.ledger import ledger as ledger_module
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    PersonalRecord,
    ReplaceRecord,
    UserInWindow,
    to_dict,
)
from dpublish.randomness import secure
from ledger.ledger_forgery import edit_body, read, reseal, verify, write
from ledger.ledger_levels import personal

LEVELS = (Fraction(1, 10), Fraction(1))
PART = {level: level / 4 for level in LEVELS}
NOTIONS = {
    "a record": AddRemoveRecord(),
    "a record exchanged": ReplaceRecord(),
    "a unit": AddRemoveUnit("user"),
    "another unit": AddRemoveUnit("household"),
    "a window": UserInWindow("user", 24),
    "a longer window": UserInWindow("user", 48),
    "another unit in a window": UserInWindow("household", 24),
}


@pytest.fixture
def path(locate):
    with Ledger.create(locate()) as ledger:
        ledger.add("survey", levels=LEVELS)
        ledger.add("census", cap="1")
    return locate()


@pytest.fixture
def ledger(path):
    with Ledger(path) as ledger:
        yield ledger


def by_level(ledger, mode="levels", amounts=PART, **changes):
    hides = personal(LEVELS, mode, **changes)
    return ledger.grant_levels("survey", amounts, purpose="ages", hides=hides, rng=secure())


def ordinary(ledger, epsilon="0.01", dataset="survey", hides=NOTIONS["a record"], **changes):
    given = {"all_have_levels": dataset == "survey"} | changes
    return ledger.grant(
        dataset, epsilon=epsilon, purpose="ages", hides=hides, rng=secure(), **given
    )


# One cap


@pytest.mark.parametrize(("first", "second"), list(permutations(NOTIONS, 2)))
def test_an_account_never_pays_for_two_notions(path, first, second):
    with Ledger(path) as ledger:
        budget = ordinary(ledger, "0.5", "census", NOTIONS[first])
        assert budget.hides == NOTIONS[first]
        ledger.publish(budget.grant, "id", "hash")  # the last entry is no grant
    with Ledger(path) as ledger:
        before = ledger.entries()
        with pytest.raises(InvalidParameter, match=r"do not add up.*from a second account"):
            ordinary(ledger, "0.5", "census", NOTIONS[second])
        assert ledger.entries() == before
        ordinary(ledger, "0.5", "census", NOTIONS[first])
        ordinary(ledger, "0.1", "survey")  # another account decides for itself
        assert ledger.verify().problems == ()


@pytest.mark.parametrize(
    ("first", "second", "also"),
    [
        ("a record", "a unit", None),
        ("a unit", "a record", 'unit = "user" in the schema'),
        ("a unit", "another unit", None),
        ("a window", "a longer window", "--window 24"),
        ("a window", "another unit in a window", None),
        ("a window", "a record", None),
        ("a unit", "a window", None),
    ],
)
def test_no_one_is_told_to_hide_less_in_order_to_share_an_account(ledger, first, second, also):
    ordinary(ledger, "0.5", "census", NOTIONS[first])
    with pytest.raises(InvalidParameter) as caught:
        ordinary(ledger, "0.1", "census", NOTIONS[second])
    advice = str(caught.value).partition("do not add up. ")[2]
    assert advice.startswith("Pay for this one from a second account")
    assert "Open the table with" not in advice
    assert (also in advice) if also else advice.endswith("bounded by neither")


def test_books_that_say_one_never_stand_for_a_unit_that_lost_more(ledger):
    """A unit with 50 rows: half from a release that hides it, half from one that hides rows."""
    rows, lost = 50, Fraction(0)
    for notion, factor in ((AddRemoveUnit("user"), 1), (AddRemoveRecord(), rows)):
        try:
            budget = ordinary(ledger, "0.5", "census", notion)
        except InvalidParameter:
            continue
        lost += factor * budget.epsilon
    assert 0 < lost <= ledger.status("census").cap


def test_a_grant_says_what_it_hides(ledger):
    for missing in (None, "presence", AddRemoveRecord):
        with pytest.raises(InvalidParameter, match="hides must say what is hidden"):
            ordinary(ledger, "0.1", "census", missing)
    with pytest.raises(InvalidParameter, match="use grant_levels"):
        ordinary(ledger, "0.1", "census", personal(LEVELS))
    with pytest.raises(TypeError, match="hides"):
        ledger.grant("census", epsilon="0.1", purpose="ages", rng=secure())
    assert ledger.status("census").spent == 0


def test_the_status_and_every_grant_say_what_is_hidden(ledger):
    assert ledger.status("census").to_dict()["hides"] is None
    ordinary(ledger, "0.1", "census", NOTIONS["a unit"])
    status = ledger.status("census")
    assert status.hides == status.grants[0].hides == NOTIONS["a unit"]
    plain = json.loads(json.dumps(status.to_dict()))
    assert plain["hides"] == plain["grants"][0]["hides"] == to_dict(NOTIONS["a unit"])
    assert "per_window_of" not in plain
    assert json.loads(ledger.entries()[-1].body)["hides"] == to_dict(NOTIONS["a unit"])


def test_what_is_paid_per_window_is_marked(ledger):
    ordinary(ledger, "0.1", "census", NOTIONS["a window"])
    status = ledger.status("census")
    assert (status.window, status.grants[0].window) == (24, 24)
    plain = status.to_dict()
    assert (plain["per_window_of"], plain["grants"][0]["per_window_of"]) == (24, 24)
    assert json.loads(ledger.entries()[-1].body)["hides"]["window"] == 24


# Levels


GRANTS = {
    "ordinary": (True, ordinary),
    "levels": (True, by_level),
    "values": (False, lambda ledger: by_level(ledger, "values-only")),
}


@pytest.mark.parametrize("second", GRANTS)
@pytest.mark.parametrize("first", GRANTS)
def test_the_first_grant_decides_what_all_others_hide(path, first, second):
    (hides, start), (wanted, more) = GRANTS[first], GRANTS[second]
    with Ledger(path) as ledger:
        budget = start(ledger)
        ledger.publish(budget.grant, "id", "hash")  # the last entry is no grant
    with Ledger(path) as ledger:
        before = ledger.entries()
        if wanted == hides:
            more(ledger)
        else:
            with pytest.raises(InvalidParameter, match="add it under another name"):
                more(ledger)
            assert ledger.entries() == before
        assert ledger.verify().problems == ()


def test_ordinary_and_personalized_grants_of_one_account_keep_their_own_notions(ledger):
    for act in (ordinary, by_level, ordinary, by_level):
        act(ledger)
    found = [type(grant.hides) for grant in ledger.status("survey").grants]
    assert found == [AddRemoveRecord, PersonalRecord] * 2
    assert ledger.status("survey").hides == personal(LEVELS)


def test_people_with_several_records_share_an_account_with_ordinary_releases_that_hide_them(path):
    user = {"hides": NOTIONS["a unit"]}
    with Ledger(path) as ledger:
        for first in (True, False):
            ordinary(ledger, **user)
            by_level(ledger, unit="user")
            assert ledger.status("survey").hides == personal(LEVELS, unit="user"), first
        found = [type(grant.hides) for grant in ledger.status("survey").grants]
        assert found == [AddRemoveUnit, PersonalRecord] * 2
    with Ledger(path) as ledger:
        assert ledger.verify().problems == ()


@pytest.mark.parametrize(
    "other",
    [
        lambda ledger: ordinary(ledger),
        lambda ledger: ordinary(ledger, hides=NOTIONS["another unit"]),
        lambda ledger: by_level(ledger),
        lambda ledger: by_level(ledger, unit="household"),
    ],
)
@pytest.mark.parametrize("first", ["people", "other"])
def test_what_hides_one_record_or_another_unit_is_not_added_to_what_hides_people(
    ledger, other, first
):
    def people(ledger):
        return by_level(ledger, unit="user")

    before, after = (people, other) if first == "people" else (other, people)
    before(ledger)
    entries = ledger.entries()
    with pytest.raises(InvalidParameter, match="do not add up"):
        after(ledger)
    assert ledger.entries() == entries


OTHER_LEVELS = {
    "people with several records": {"unit": "user"},
    "another column": {"column": "theirs"},
    "a rule instead of a column": {"rule": "..17=0.1; 18..=1"},
    "another mode": {"mode": "frame"},
}


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("case", OTHER_LEVELS)
def test_where_levels_come_from_is_decided_once(path, case, between):
    with Ledger(path) as ledger:
        by_level(ledger)
        if between:
            ordinary(ledger)
    with Ledger(path) as ledger:
        before = ledger.entries()
        with pytest.raises(InvalidParameter, match="one level here and another there"):
            by_level(ledger, **OTHER_LEVELS[case])
        assert ledger.entries() == before
        by_level(ledger)
        assert ledger.verify().is_intact


def test_opposite_rules_do_not_make_one_person_pay_twice(ledger):
    """Whoever is a minor has the first level by one rule, and the last by its opposite."""
    lost = Fraction(0)
    for rule, at in (("..17=0.1; 18..=1", LEVELS[0]), ("..17=1; 18..=0.1", LEVELS[1])):
        halves = {level: level / 2 for level in LEVELS}
        try:
            by_level(ledger, amounts=halves, column="age", rule=rule)
        except InvalidParameter:
            continue
        lost += halves[at]
    assert 0 < lost <= LEVELS[0]


def test_a_rule_that_comes_to_mean_something_else_is_refused(ledger):
    """The groups that a rule names may be defined anew in the schema: its words stay the same."""
    rule = {"column": "home", "rule": "far=1; near=0.1"}
    by_level(ledger, cells="0" * 16, **rule)
    before = ledger.entries()
    with pytest.raises(InvalidParameter, match="one level here and another there"):
        by_level(ledger, cells="1" * 16, **rule)
    assert ledger.entries() == before


def test_a_grant_by_level_has_the_levels_of_what_it_hides(ledger):
    for hides in (AddRemoveRecord(), personal(("0.1", "2")), personal(("0.1",))):
        with pytest.raises(InvalidParameter, match="PersonalRecord that has the same levels"):
            ledger.grant_levels("survey", PART, purpose="ages", hides=hides, rng=secure())


@pytest.mark.parametrize("vouched", [False, True])
@pytest.mark.parametrize("first", [None, *GRANTS])
def test_no_account_with_levels_pays_per_window(ledger, vouched, first):
    if first is not None:
        GRANTS[first][1](ledger)
    before = ledger.entries()
    with pytest.raises(InvalidParameter, match="give it a horizon"):
        ordinary(ledger, "0.01", hides=NOTIONS["a window"], all_have_levels=vouched)
    assert ledger.entries() == before


def test_an_ordinary_grant_where_people_have_levels_needs_the_owners_word(ledger):
    before = ledger.entries()
    with pytest.raises(
        InvalidParameter, match=r"below the first level \(0\.1\).*--all-have-levels"
    ):
        ordinary(ledger, all_have_levels=False)
    with pytest.raises(InvalidParameter, match="leave it out here"):
        ordinary(ledger, "0.1", "census", all_have_levels=True)
    assert ledger.entries() == before
    ordinary(ledger)
    assert json.loads(ledger.entries()[-1].body)["all_have_levels"] is True
    assert ledger.status("survey").grants[0].all_have_levels


def test_a_refused_grant_decides_nothing(ledger):
    with pytest.raises(BudgetExhausted):
        ordinary(ledger, "0.2")
    by_level(ledger, "values-only")
    assert ledger.status("survey").hides == personal(LEVELS, "values-only")


WISHES = ("values-only", "levels", "values-only", "levels")


def lost(ledger):
    """Add up what exchanging their values costs a person, over all that WISHES get.

    A release that hides presence costs them twice its amount: they leave and come back.
    """
    found = dict.fromkeys(LEVELS, Fraction(0))
    for mode in WISHES:
        try:
            by_level(ledger, mode)
        except InvalidParameter:
            continue
        for level, amount in PART.items():
            found[level] += amount * (2 if mode == "levels" else 1)
    return found


def test_whoever_is_guaranteed_that_values_are_hidden_loses_their_level_at_most(ledger):
    assert all(0 < cost <= level for level, cost in lost(ledger).items())


def test_a_ledger_that_adds_up_whatever_is_asked_for_is_caught(ledger, monkeypatch):
    def take_any(dataset, account, hides):
        account.hides = hides

    monkeypatch.setattr(ledger_module, "fix_notion", take_any)
    assert all(cost > level for level, cost in lost(ledger).items())
    found = " ".join(ledger.verify().problems)
    assert "entry 5: it hides one record, at the level" in found


# Forgeries


RECORD, UNIT = to_dict(NOTIONS["a record"]), to_dict(NOTIONS["a unit"])
WINDOW = to_dict(NOTIONS["a window"])
PERSONAL = to_dict(personal(LEVELS)) | {"levels": ["0.1", "1"]}
FORGERIES = {  # entries: 0 create, 1 and 2 add, 3 and 4 grants by level, 5 publish, 6 and 7 census
    "a later grant": (4, PERSONAL | {"column": "theirs"}, "earlier releases hide one record"),
    "another rule": (4, PERSONAL | {"rule": "..17=1; *=0.1"}, "earlier releases hide one record"),
    "another mode": (4, PERSONAL | {"mode": "values-only"}, "it hides the values of one record"),
    "a first grant": (3, PERSONAL | {"column": "theirs"}, "earlier releases hide one record"),
    "a grant by level of records": (4, RECORD, "debits other levels than its release has"),
    "a publication that forgets": (5, RECORD, "not what the entries"),
    "a start that hides something": (1, PERSONAL, "not what the entries"),
    "a second notion": (7, UNIT, "one person ('user'), but earlier releases hide one record"),
    "a first notion": (6, UNIT, "hides one record, but earlier releases hide all records of one"),
    "a window slipped in": (7, WINDOW, "in any 24 consecutive snapshots, but earlier"),
    "a window of nothing": (7, WINDOW | {"window": 0}, "cannot be read"),
    "no notion at all": (7, {}, "cannot be read"),
    "a notion that never was": (7, {"name": "names"}, "cannot be read"),
    "a notion with something more": (7, UNIT | {"rows": 5}, "does not say clearly"),
    "a column that is no name": (7, UNIT | {"column": 7}, "does not say clearly"),
    "a notion that is no notion": (7, ["add-remove-record"], "cannot be read"),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_notion_is_found_behind_fitting_hashes(path, ledger, case):
    budget = by_level(ledger)
    by_level(ledger)
    ledger.publish(budget.grant, "id", "hash")
    ordinary(ledger, "0.1", "census")
    ordinary(ledger, "0.1", "census")
    assert ledger.verify().is_intact
    number, hides, message = FORGERIES[case]
    entries = read(path)
    entries[number] = edit_body(entries[number], hides=hides)
    write(path, reseal(entries))
    assert message in " ".join(verify(path).problems)


@pytest.mark.parametrize(("dataset", "grant"), [("survey", by_level), ("census", None)])
def test_a_notion_that_was_taken_out_of_a_grant_is_found(path, ledger, dataset, grant):
    for _ in range(2):
        by_level(ledger) if grant else ordinary(ledger, "0.1", "census")
    entries = read(path)
    body = json.loads(entries[4].body)
    del body["hides"]
    entries[4] = replace(entries[4], body=json.dumps(body))
    write(path, reseal(entries))
    assert "does not say what is hidden" in " ".join(verify(path).problems)
    with Ledger(path) as forged, pytest.raises(LedgerTampered):
        forged.status(dataset)


def test_a_notion_that_was_exchanged_everywhere_does_not_fit_the_hashes(path, ledger):
    """Totals and notions agree with each other, so the hashes alone can tell."""
    for _ in range(2):
        ordinary(ledger, "0.1", "census")
    record, unit = '"name":"add-remove-record"', '"column":"user","name":"add-remove-unit"'
    entries = [replace(each, body=each.body.replace(record, unit)) for each in read(path)]
    write(path, entries)
    assert [json.loads(entry.body)["hides"] for entry in entries[3:]] == [UNIT, UNIT]
    problems = " ".join(verify(path).problems)
    assert "entry 4: it was edited" in problems
    assert "entry 5: it was edited" in problems
    with Ledger(path) as forged, pytest.raises(LedgerTampered):
        ordinary(forged, "0.1", "census", NOTIONS["a unit"])


def test_a_window_forged_into_an_account_with_levels_is_found(path, ledger):
    ordinary(ledger)
    entries = read(path)
    entries[3] = edit_body(entries[3], hides=WINDOW)
    write(path, reseal(entries))
    assert "pays per window where people have numbers" in " ".join(verify(path).problems)
