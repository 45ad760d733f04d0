"""Publishing under levels: each level is debited what the method says, before rows are read."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.publishing import publish

LEVELS = tuple(map(Fraction, ("0.01", "0.1", "1")))
SCHEMA = Schema((column("age", "integer", bounds=[0, 99], bins=10),))
ROWS = pa.table(
    {
        "age": np.arange(300) % 100,
        "own": np.resize([0.001, 0.01, 0.05, 0.1, 0.7, 1.0, 3.0], 300),
    }
)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "books.db") as books:
        books.add("people", levels=("0.01", "0.1", "1"))
        books.add("plain", cap="1")
        yield books


def configured(method="minimum", **settings):
    given = {"inner": "histogram columns=age", "preference": "own", "levels": LEVELS}
    return make_method(method, given | settings)


def go(ledger, output, method, epsilon="1", dataset="people", schema=None):
    table = open_table(ROWS, method.prepare(SCHEMA) if schema is None else schema)
    return publish(method, table, output, ledger=ledger, dataset=dataset, epsilon=epsilon)


def spent(ledger):
    return [each.spent for each in ledger.status("people").levels]


@pytest.mark.parametrize(
    ("method", "settings", "paid"),
    [
        ("minimum", {}, ("0.005", "0.005", "0.005")),
        ("threshold", {"threshold": "0.1"}, ("0", "0.05", "0.05")),
        ("sampling", {}, ("0.005", "0.05", "0.5")),
    ],
)
def test_each_level_is_debited_what_the_method_spends(ledger, tmp_path, method, settings, paid):
    release = go(ledger, tmp_path / "out", configured(method, **settings), "0.5")
    assert isinstance(release, PersonalizedRelease)
    assert spent(ledger) == list(map(Fraction, paid))
    assert [amount for _, amount in release.receipt.personal] == spent(ledger)
    assert release.receipt.epsilon == max(spent(ledger))
    assert release.receipt.stamps == ()
    assert load(tmp_path / "out") == release
    assert "of 0.01" in (tmp_path / "out" / "report.html").read_text()
    [grant] = ledger.status("people").grants
    assert grant.state == "published"


def test_an_overdrawn_level_is_named_and_nothing_is_debited(ledger, tmp_path):
    go(ledger, tmp_path / "a", configured(), "0.7")
    before = spent(ledger)
    with pytest.raises(BudgetExhausted, match=r"level 0\.01 has 0\.003 left"):
        go(ledger, tmp_path / "b", configured(), "0.7")
    assert spent(ledger) == before
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": SCHEMA}, "open the table with"),
        ({"dataset": "plain"}, "has no levels"),
        ({"epsilon": "1.5"}, "above the largest level"),
        ({"method": configured(levels=("0.01", "0.1"))}, "must be the same"),
        ({"method": configured(inner="histogram columns=wealth")}, "wealth"),
    ],
)
def test_what_does_not_fit_is_refused_for_free(ledger, tmp_path, change, message):
    given = {"method": configured(), "epsilon": "0.1"} | change
    with pytest.raises(InvalidParameter, match=message):
        go(ledger, tmp_path / "out", given.pop("method"), **given)
    assert spent(ledger) == [0, 0, 0]
    assert ledger.status("people").grants == ()


def ordinary(ledger, output, **changes):
    plain = make_method("histogram", {"columns": "age"})
    given = {"ledger": ledger, "dataset": "people", "epsilon": "0.004"} | changes
    return publish(plain, open_table(ROWS, SCHEMA), output, **given)


def test_an_ordinary_release_costs_every_level_the_same(ledger, tmp_path):
    ordinary(ledger, tmp_path / "a", all_have_levels=True)
    assert spent(ledger) == [Fraction(1, 250)] * 3
    go(ledger, tmp_path / "b", configured("sampling"), "0.6")
    assert spent(ledger) == [Fraction(1, 100), Fraction(16, 250), Fraction(151, 250)]


def test_an_ordinary_release_is_refused_before_the_debit_unless_all_have_levels(ledger, tmp_path):
    """Every seventh person here is below the first level, and would lose what no one granted."""
    with pytest.raises(InvalidParameter, match="all_have_levels=True"):
        ordinary(ledger, tmp_path / "a")
    assert ledger.status("people").grants == ()
    assert not (tmp_path / "a").exists()
    with pytest.raises(InvalidParameter, match="leave it out here"):
        ordinary(ledger, tmp_path / "a", dataset="plain", all_have_levels=True)


def test_opposite_rules_on_one_account_are_refused(ledger, tmp_path):
    ledger.add("wards", levels=("0.1", "1"))
    rules = {"preference": "age", "levels": ("0.1", "1"), "derived": True}
    first = configured("sampling", rule="..49=0.1, 50..=1", **rules)
    go(ledger, tmp_path / "a", first, "0.5", dataset="wards")
    go(ledger, tmp_path / "b", first, "0.1", dataset="wards")
    before = ledger.entries()
    opposite = configured("sampling", rule="..49=1, 50..=0.1", **rules)
    with pytest.raises(InvalidParameter, match="one level here and another there"):
        go(ledger, tmp_path / "c", opposite, "0.4", dataset="wards")
    assert ledger.entries() == before
    other_words = configured("sampling", rule=" 50.. = 1.0 ; ..49=0.10", **rules)
    go(ledger, tmp_path / "d", other_words, "0.4", dataset="wards")
    assert "50..=1" in ledger.status("wards").hides.brief()


def test_releases_that_hide_values_alone_have_a_dataset_of_their_own(ledger, tmp_path):
    alone = configured(mode="values-only")
    go(ledger, tmp_path / "a", configured(), "0.1")
    before = spent(ledger)
    with pytest.raises(InvalidParameter, match="add it under another name"):
        go(ledger, tmp_path / "b", alone, "0.1")
    assert spent(ledger) == before
    ledger.add("members", levels=("0.01", "0.1", "1"))
    go(ledger, tmp_path / "c", alone, "0.1", dataset="members")
    assert ledger.status("members").hides == alone.preferences.neighbors(SCHEMA)
    with pytest.raises(InvalidParameter, match="'members' has paid for releases that hide the val"):
        go(ledger, tmp_path / "d", configured(), "0.1", dataset="members")
    go(ledger, tmp_path / "e", alone, "0.1", dataset="members")
    assert ledger.verify().is_intact
