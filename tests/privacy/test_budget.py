import copy
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from math import expm1, log1p
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, PersonalRecord, ReplaceRecord

GRANT = Grant("shop", 3, "f" * 64, "2026-01-01T00:00:00+00:00")
UNIT = AddRemoveUnit("basket")
EPSILONS = st.fractions(min_value=Fraction(1, 10**9), max_value=100)
WEIGHTS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=4),
    st.one_of(st.integers(1, 10**9), st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)),
    min_size=1,
    max_size=8,
)


@given(epsilon=EPSILONS, weights=WEIGHTS)
def test_shares_are_in_proportion_and_add_up_to_the_whole_exactly(epsilon, weights):
    whole = Budget.seeded(epsilon)
    shares = whole.split(**weights)
    total = sum(weights.values(), Fraction(0))
    assert {name: share.epsilon for name, share in shares.items()} == {
        name: epsilon * weight / total for name, weight in weights.items()
    }
    assert sum(share.epsilon for share in whole.account()) == epsilon
    assert whole.cost() == epsilon


@given(epsilon=EPSILONS, count=st.integers(1, 40))
def test_even_parts_are_equal_and_add_up(epsilon, count):
    whole = Budget.seeded(epsilon)
    parts = whole.split_evenly(count)
    assert {part.epsilon for part in parts} == {epsilon / count}
    assert len(whole.account()) == count
    assert whole.cost() == epsilon


# A way of taking a budget apart: leave it, split it by weights, or share it over disjoint parts.
TREES = st.recursive(
    st.just(("leave", [])),
    lambda inner: st.tuples(
        st.sampled_from(["split", "share"]),
        st.lists(st.tuples(st.integers(1, 9), inner), min_size=1, max_size=3),
    ),
    max_leaves=12,
)


@given(epsilon=EPSILONS, tree=TREES)
def test_however_a_budget_is_taken_apart_it_costs_its_epsilon(epsilon, tree):
    whole = Budget.seeded(epsilon)
    take_apart(whole, tree)
    assert whole.cost() == epsilon


def take_apart(budget, tree):
    verb, branches = tree
    if verb == "leave":
        return
    weights = {f"part{index}": weight for index, (weight, _) in enumerate(branches)}
    parts = budget.split(**weights) if verb == "split" else budget.share_disjoint(weights)
    for part, (_, branch) in zip(parts.values(), branches, strict=True):
        take_apart(part, branch)


def test_disjoint_parts_each_get_the_whole_and_cost_it_once():
    whole = Budget.seeded("0.5")
    parts = whole.share_disjoint(["young", "old"])
    assert [part.spend() for part in parts.values()] == [Fraction(1, 2)] * 2
    assert whole.cost() == Fraction(1, 2)
    assert sum(part.epsilon for part in whole.account()) == 1  # what a plain sum would claim


def test_parts_are_named_after_the_whole_and_keep_its_grant():
    grant = Grant("census", 3, "f" * 64)
    shares = Budget.granted("1", "ages", grant=grant).split(size=1, counts=9)
    part = shares["counts"].split_evenly(2, "round")[1]
    assert part.purpose == "ages/counts/round-2"
    assert part.grant is grant


def test_a_budget_is_not_constructed():
    with pytest.raises(TypeError, match=r"Budget\.seeded\(epsilon\)"):
        Budget("1")


@given(epsilon=EPSILONS, part=st.fractions(min_value=Fraction(1, 10**6), max_value=1))
def test_what_may_cost_less_spends_the_whole_share_and_not_more(epsilon, part):
    share = Budget.granted(epsilon, "ages", grant=GRANT, hides=UNIT)
    inner = share.at_most(epsilon * part)
    assert (inner.spend(), share.is_used, share.cost()) == (epsilon * part, True, epsilon)
    assert (inner.purpose, inner.grant, inner.opened) == ("ages", GRANT, share.opened)


def test_an_inner_release_may_hide_another_change_and_never_pays_by_level():
    levels = ((Fraction(1, 2), Fraction(1, 2)), (Fraction(1), Fraction(1)))
    share = Budget.granted("1", grant=GRANT, hides=UNIT, levels=levels)
    kept, other = share.split(kept=1, other=1).values()
    assert kept.at_most(kept.epsilon).hides == UNIT
    inner = other.at_most(other.epsilon, hides=AddRemoveRecord())
    assert (inner.hides, inner.levels) == (AddRemoveRecord(), None)


def test_whatever_is_made_of_a_budget_is_a_part_and_the_whole_is_none():
    whole, sampled, rows = (
        Budget.granted("1", grant=GRANT, hides=hides) for hides in (UNIT, AddRemoveRecord(), UNIT)
    )
    assert [whole.is_part, Budget.seeded("1").is_part] == [False, False]
    one, other = whole.split(one=1, other=1).values()
    derived = [one.at_most(one.epsilon), sampled.amplified(Fraction(1, 2)), rows.for_rows(1)]
    assert all(part.is_part for part in (one, other, *derived))


@pytest.mark.parametrize("most", [1, 4, 7])
def test_rows_of_a_unit_get_an_equal_share_of_the_budget_and_of_every_level(most):
    levels = ((Fraction(1, 2), Fraction(1, 3)), (Fraction(1), Fraction(1)))
    hides = PersonalRecord("own", ("0.5", "1"), "levels", unit="basket")
    whole = Budget.granted("1", "ages", grant=GRANT, hides=hides, levels=levels)
    row = PersonalRecord("own", ("0.5", "1"), "levels")
    inner = whole.for_rows(most, hides=row)
    assert (inner.epsilon, inner.hides, inner.purpose) == (Fraction(1, most), row, "ages")
    assert inner.levels == tuple((level, amount / most) for level, amount in levels)
    assert whole.is_used
    plain = Budget.granted("1", grant=GRANT, hides=UNIT).for_rows(most)
    assert (plain.epsilon, plain.hides, plain.levels) == (
        Fraction(1, most),
        AddRemoveRecord(),
        None,
    )


@pytest.mark.parametrize("hides", [AddRemoveRecord(), ReplaceRecord()])
def test_rows_pay_for_nothing_where_no_unit_is_hidden(hides):
    budget = Budget.granted("1", grant=GRANT, hides=hides)
    with pytest.raises(InvalidParameter, match=f"do not make up {hides.brief()}$"):
        budget.for_rows(2)
    assert not budget.is_used


RATES = [Fraction(1, 1000), Fraction(1, 7), Fraction(1, 2), Fraction(1)]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 3), Fraction(5)])
def test_a_sample_costs_at_most_the_budget_and_hardly_less(epsilon, rate):
    share = Budget.granted(epsilon, "ages", grant=GRANT, hides=AddRemoveRecord())
    inner = share.amplified(rate)
    cost = log1p(float(rate) * expm1(float(inner.epsilon)))
    assert float(epsilon) * (1 - 1e-9) <= cost <= float(epsilon) * (1 + 1e-12)
    assert (share.is_used, share.cost()) == (True, epsilon)
    assert (inner.purpose, inner.grant, inner.hides) == ("ages/sample", GRANT, AddRemoveRecord())


def test_a_sample_of_rows_does_not_help_to_hide_a_unit():
    share = Budget.granted("1", grant=GRANT, hides=UNIT)
    with pytest.raises(InvalidParameter, match=r"all records of one person \('basket'\)"):
        share.amplified(Fraction(1, 2))
    assert not share.is_used


OPENERS = {
    "at_most": lambda budget: budget.at_most(budget.epsilon / 2),
    "amplified": lambda budget: budget.amplified(Fraction(1, 2)),
    "spend": lambda budget: budget.spend(),
    "split": lambda budget: budget.split(one=1, other=2),
    "split_evenly": lambda budget: budget.split_evenly(2),
    "share_disjoint": lambda budget: budget.share_disjoint("ab"),
}


@pytest.mark.parametrize("first", OPENERS)
@pytest.mark.parametrize("second", OPENERS)
def test_a_budget_opens_once(first, second):
    budget = Budget.seeded("1", "ages")
    OPENERS[first](budget)
    before = budget.account()
    assert budget.is_used
    with pytest.raises(BudgetAlreadyUsed, match="'ages' is already used"):
        OPENERS[second](budget)
    assert budget.account() == before


def test_a_budget_opens_once_for_threads_that_grab_it_together():
    for _ in range(50):
        budget, barrier, got = Budget.seeded("1"), Barrier(4), []
        threads = [Thread(target=grab, args=(budget, barrier, got)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == [0, 0, 0, 1]


def grab(budget, barrier, got):
    barrier.wait()
    try:
        got.append(budget.spend())
    except BudgetAlreadyUsed:
        got.append(0)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_budget_cannot_be_duplicated(duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(Budget.seeded("1"))


@pytest.mark.parametrize(
    "refused",
    [
        lambda budget: budget.split(),
        lambda budget: budget.split(a=0),
        lambda budget: budget.split(a=-1, b=2),
        lambda budget: budget.split(a=0.5),
        lambda budget: budget.split(a=True),
        lambda budget: budget.split_evenly(0),
        lambda budget: budget.split_evenly(1.5),
        lambda budget: budget.share_disjoint([]),
        lambda budget: budget.at_most(Fraction(101, 100)),
        lambda budget: budget.at_most(Fraction(0)),
        lambda budget: budget.at_most(0.5),
        lambda budget: budget.amplified(Fraction(0)),
        lambda budget: budget.amplified(Fraction(3, 2)),
        lambda budget: budget.amplified(0.5),
    ],
)
def test_a_refused_split_costs_nothing(refused):
    budget = Budget.seeded("1")
    with pytest.raises(InvalidParameter):
        refused(budget)
    assert not budget.is_used
    assert budget.spend() == 1


def test_a_budget_remembers_that_its_epsilon_was_read_from_a_float():
    budget = Budget.seeded(0.1)
    assert budget.epsilon == Fraction(1, 10)
    assert "the float 0.1" in budget.epsilon_read
    assert Budget.seeded("0.1").epsilon_read == ""


def test_a_budget_shows_its_epsilon_its_purpose_and_whether_it_is_used():
    budget = Budget.seeded("0.5", "ages")
    assert repr(budget) == "Budget('0.5', 'ages', full)"
    budget.spend()
    assert repr(budget) == "Budget('0.5', 'ages', used)"


FORK = """
import os
from dpublish.errors import BudgetAlreadyUsed
from dpublish.privacy.budget import Budget
budget = Budget.seeded(1)
child = os.fork()
if child == 0:
    try:
        budget.spend()
    except BudgetAlreadyUsed:
        os._exit(7)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), budget.spend())
"""


def test_a_budget_does_not_open_in_another_process():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7", "1"]


@pytest.mark.parametrize("opener", OPENERS)
def test_nothing_opens_a_budget_that_belongs_to_another_process(opener, monkeypatch):
    budget, here = Budget.seeded(1, "ages"), os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: here + 1)  # as a child sees it
        with pytest.raises(BudgetAlreadyUsed, match="'ages' belongs to another process"):
            OPENERS[opener](budget)
    assert not budget.is_used
    assert budget.account() == [budget]
    OPENERS[opener](budget)  # where it was made it is whole


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", Fraction(50)), ("purpose", "other"), ("grant", Grant("census", 3, "h"))],
)
def test_what_a_budget_holds_cannot_be_changed(name, value):
    budget = Budget.seeded("0.1")
    with pytest.raises(AttributeError):
        setattr(budget, name, value)
    assert (budget.spend(), budget.purpose, budget.grant) == (Fraction(1, 10), "release", None)
