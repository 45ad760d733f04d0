"""The opening of a release: whatever could stop it stops it before a row is read or paid for."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpublish.core.catalog import CATALOG
from dpublish.core.method import Method
from dpublish.core.registry import method_class
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, UserInWindow
from dpublish.randomness import secure, seeded
from dpublish.testing import check_method
from method_examples import SCHEMA, arrow_table

METHOD = Histogram(columns=("sex",))
GRANT = Grant("people", 3, "f" * 64, "2026-01-01T00:00:00+00:00")


class Untouchable:
    """A table whose rows must not be read."""

    schema, neighbors, is_bounded = SCHEMA, AddRemoveRecord(), False

    def __getattr__(self, name):
        raise AssertionError("rows were read")


def granted(hides=None, epsilon="0.1"):
    return Budget.granted(epsilon, grant=GRANT, hides=hides or AddRemoveRecord())


@pytest.mark.parametrize(
    "part_of",
    [
        lambda whole: whole.amplified(Fraction(1, 10**6)),  # worth 11.5 on a sample
        lambda whole: whole.at_most(Fraction(1, 10), hides=AddRemoveRecord()),
        lambda whole: whole.split(counts=1)["counts"],
        lambda whole: whole.share_disjoint(["here", "there"])["there"],
    ],
)
def test_a_part_of_a_grant_pays_for_no_release_of_its_own(part_of):
    part = part_of(granted())
    with pytest.raises(InvalidParameter, match="part of a grant"):
        METHOD.release(Untouchable(), budget=part, rng=secure())
    assert not part.is_used


def test_a_grant_for_units_does_not_become_one_for_records():
    part = granted(AddRemoveUnit("basket")).at_most(Fraction(1, 10), hides=AddRemoveRecord())
    with pytest.raises(InvalidParameter, match="part of a grant"):
        METHOD.release(Untouchable(), budget=part, rng=secure())


def test_a_part_pays_within_its_release():
    table = open_table(arrow_table(), SCHEMA)
    part = granted().split(counts=1)["counts"]
    release = METHOD.release_part(table, budget=part, rng=secure())
    assert release.receipt.epsilon == Fraction(1, 10)


def test_rows_that_were_bounded_by_unit_are_refused():
    """One row more may replace another of its unit: the record would pay twice."""
    by_unit = open_table(arrow_table(), replace(SCHEMA, unit="note"))
    with pytest.raises(InvalidParameter, match="bounded by unit"):
        METHOD.release(by_unit.bound(2, b"k" * 16), budget=granted(), rng=secure())


def test_levels_are_refused_by_methods_that_know_none_before_rows_are_read():
    levels = ((Fraction(1, 10), Fraction(1, 10)), (Fraction(1), Fraction(1)))
    budget = Budget.seeded("1", levels=levels)
    with pytest.raises(InvalidParameter, match="levels"):
        METHOD.release(Untouchable(), budget=budget, rng=seeded(1))
    assert not budget.is_used


def test_a_stream_of_another_notion_costs_nothing():
    method = make_stream_method("per-snapshot", {"columns": ("sex",), "window": 6})
    budget = granted(UserInWindow("note", 7))
    with pytest.raises(InvalidParameter, match="the ledger was told"):
        method.start(replace(SCHEMA, unit="note"), budget=budget, rng=secure())
    assert not budget.is_used


@pytest.mark.parametrize("name", ["release", "release_part"])
def test_a_method_that_goes_around_the_opening_is_noticed(name):
    bypass = type("Bypass", (Histogram,), {name: lambda self, table, **named: None})
    with pytest.raises(AssertionError, match="is final"):
        check_method(bypass(columns=("sex",)))


def test_no_method_of_ours_goes_around_the_opening():
    for name in CATALOG:
        kind = method_class(name)
        assert kind.release is Method.release, name
        assert kind.release_part is Method.release_part, name
