"""A public number of records: the release hides an exchange, and says so."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.dpcopula.dpcopula import DPCopula
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord
from dpublish.randomness import plain_generator, secure, seeded

METHODS = ("spearman", "kendall", "mle")


def people(records, missing="refuse"):
    columns = [column(name, "integer", bounds=[0, 9], missing=missing) for name in ("a", "b")]
    codes = plain_generator(3).integers(0, 10, (2, records))
    return open_table(pa.table({"a": codes[0], "b": codes[1]}), Schema(tuple(columns)))


def publish(table, budget=None, rng=None, **settings):
    budget = Budget.seeded("1") if budget is None else budget
    return DPCopula(**settings).release(table, budget=budget, rng=rng or seeded(4))


@pytest.mark.parametrize("correlation", METHODS)
def test_nothing_is_spent_on_the_number_and_the_receipt_states_the_exchange(correlation):
    budget = Budget.seeded("1")
    release = publish(
        people(500), budget, public_records=500, correlation=correlation, ratio=Fraction(4)
    )
    assert budget.cost() == 1
    assert all(share.is_used for share in budget.account())
    shares = {name.split("/")[1]: share for name, share in release.receipt.shares}
    assert shares == {"marginals": Fraction(4, 5), "correlations": Fraction(1, 5)}
    assert release.receipt.neighbors == ReplaceRecord()
    assert release.records == pytest.approx(500, abs=1e-6)
    assert release.summary()["records"] == "500, which is public"
    answer = release.count("")
    assert answer.high - answer.low < 0.01
    assert publish(people(500)).receipt.neighbors == AddRemoveRecord()


@pytest.mark.parametrize("correlation", METHODS)
def test_what_hides_a_record_in_or_out_gets_half(correlation):
    settings = {"correlation": correlation, "ratio": Fraction(4), "marginal": "identity"}
    release = publish(people(500), public_records=500, **settings)
    assert {marginal.rate for marginal in release.marginals} == {Fraction(4, 5) / 2 / 2}
    usual = publish(people(500), Budget.seeded(Fraction(50, 49)), **settings)  # 2 % for the size
    assert {marginal.rate for marginal in usual.marginals} == {Fraction(4, 5) / 2}
    if correlation == "mle":
        assert release.correlation.rate == usual.correlation.rate / 2


def test_a_sample_is_paid_for_as_a_removal_and_an_addition():
    settings = {"correlation": "kendall", "ratio": Fraction(4), "sample": 50}
    release = publish(people(500), public_records=500, **settings)
    half = publish(people(500), Budget.seeded(Fraction(25, 49)), **settings)
    assert release.correlation.settings["sample_rate"] == "0.1"
    assert float(release.correlation.rate / half.correlation.rate) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("records", [0, 499, 501])
def test_another_number_of_records_is_refused(records):
    with pytest.raises(InvalidParameter, match="does not have 500 records"):
        publish(people(records), public_records=500)


def test_columns_that_leave_records_out_are_refused_before_anything_is_spent():
    budget = Budget.seeded("1")
    with pytest.raises(InvalidParameter, match="a, b may leave"):
        publish(people(500, "drop"), budget, public_records=500)
    assert not budget.is_used
    for wrong in (0, 1, 2.5, -3):
        with pytest.raises(InvalidParameter, match="public_records"):
            DPCopula(public_records=wrong)


def test_a_ledger_must_be_told_that_an_exchange_is_hidden(tmp_path):
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap="3")
        ledger.add("others", cap="3")
        granted = [
            ledger.grant(name, epsilon="1", purpose="test", hides=hides, rng=secure())
            for name, hides in (("people", AddRemoveRecord()), ("others", ReplaceRecord()))
        ]
    with pytest.raises(InvalidParameter, match="one record exchanged"):
        publish(people(500), granted[0], secure(), public_records=500)
    assert not granted[0].is_used
    release = publish(people(500), granted[1], secure(), public_records=500)
    assert "exchanged for another" in release.receipt.guarantee()


def test_the_plan_predicts_with_the_public_number_and_half_the_budget():
    schema = people(2).schema
    for correlation in METHODS:
        usual = DPCopula(correlation=correlation, ratio=Fraction(4))
        public = DPCopula(correlation=correlation, ratio=Fraction(4), public_records=10_000)
        found = public.expected_error(schema, None, Fraction(1)).figures
        whole = usual.expected_error(schema, 10_000, Fraction(50, 49)).figures
        half = usual.expected_error(schema, 10_000, Fraction(25, 49)).figures
        assert found["range_count_95"] == half["range_count_95"]
        expected = whole if correlation == "kendall" else half
        assert found["correlation_95"] == pytest.approx(expected["correlation_95"])


def test_rows_are_as_many_as_is_public():
    release = publish(people(500), public_records=500)
    rows = release.rows(seed=1)
    assert rows.num_rows == 500
    assert np.isin(rows["a"].to_numpy(), np.arange(10)).all()


def test_rows_count_whatever_is_missing_in_them():
    """The owner said that nothing is missing; whether that is so must not decide a refusal."""
    rows = pa.table({"a": [1, None, 3, None], "b": [1, 2, 3, 4]})
    release = publish(open_table(rows, people(2).schema), public_records=4)
    assert release.size.value == 4
    with pytest.raises(InvalidParameter, match="does not have 2 records"):
        publish(open_table(rows, people(2).schema), public_records=2)
