"""The method of statistics: what it refuses, shares out, reads and publishes."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpublish
from dpublish.core.settings import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.statistics.measures import read_measures
from dpublish.methods.statistics.plan import make_plan
from dpublish.methods.statistics.statistics import Statistics
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.statistics.statistics_rows import ALL, SCHEMA, make_rows, publish


def test_with_much_epsilon_every_number_is_the_true_one():
    rows = make_rows(4_000)
    release = publish(rows, "100000", measures=ALL, by="ward,sex", confidence="0.9999")
    frame = rows.to_pandas()
    frame["age"] = frame["age"].clip(0, 99)
    frame["sex"] = frame["sex"].where(frame["sex"].notna(), "(missing)")
    for (ward, sex), group in frame[frame.ward != "Z"].groupby(["ward", "sex"]):
        where = {"ward": ward, "sex": sex}
        costs, ages = group["cost"].dropna(), group["age"]
        truth = {
            "count": len(group),
            "sum(cost)": costs.sum(),
            "mean(age)": ages.mean(),
            "variance(age)": ages.var(ddof=0),
            "median(cost)": np.quantile(costs, 0.5, method="inverted_cdf"),
            "quantile(age, 0.9)": np.quantile(ages, 0.9, method="inverted_cdf"),
        }
        for measure, true in truth.items():
            found = release.value(measure, where)
            tolerance = {"median(cost)": 1000 / 4096, "sum(cost)": 0.5}.get(measure, 1e-2)
            # Of an even number of values, all between the two in the middle are medians.
            most = np.quantile(costs, 0.5, method="higher") if "median" in measure else true
            assert true - tolerance <= found.value <= most + tolerance, (measure, where)
            assert found.low - 1e-6 <= true <= found.high + 1e-6


def test_a_record_without_a_cost_counts_but_has_no_part_in_its_sum():
    rows = pa.table(
        {
            "ward": ["A", "A"],
            "sex": ["F", "F"],
            "age": [10, 20],
            "cost": pa.array([None, 50.0], pa.float64()),
        }
    )
    release = publish(
        rows, "100000", measures="count, count(cost), mean(age), sum(cost)", by="ward"
    )
    where = {"ward": "A"}
    assert release.value("count", where).value == 2
    assert release.value("count(cost)", where).value == pytest.approx(1, abs=1e-3)
    assert release.value("sum(cost)", where).value == pytest.approx(50, abs=1e-1)
    assert release.value("mean(age)", where).value == pytest.approx(15, abs=1e-2)
    assert release.value("count", where).of == "records with ward"
    assert release.value("sum(cost)", where).of == "records with ward and cost"


def test_all_groups_of_the_domain_are_published_whatever_the_rows():
    groups = {
        tuple(one.group for one in publish(make_rows(n), measures="count", by="ward").statistics())
        for n in (0, 1, 500)
    }
    assert groups == {(("A",), ("B",), ("C",))}


def test_groups_may_be_on_a_level_and_there_may_be_none():
    assert len(publish(make_rows(9), measures="count", by="ward@0").statistics()) == 1
    whole = publish(make_rows(9), measures="count, mean(age)")
    assert [one.group for one in whole.statistics()] == [(), ()]
    assert whole.totals() == []


def test_one_scan_serves_all_measures():
    table = open_table(make_rows(50), SCHEMA)
    sums = []
    exact = table.sum
    table.sum = lambda kernel: sums.append(kernel) or exact(kernel)
    method = Statistics(measures=(ALL,), by=("ward",))
    method.release(table, budget=Budget.seeded("1"), rng=seeded(1))
    assert len(sums) == 1


def test_measures_of_one_column_share_its_moments():
    measures = read_measures("mean(age), sum(age), count(age), variance(age), std(age)")
    assert [share.name for share in make_plan(SCHEMA, (), measures).shares] == ["moments of age"]
    measures = read_measures("sum(age), sum(cost), mean(cost)")
    names = [share.name for share in make_plan(SCHEMA, (), measures).shares]
    assert names == ["sum of age", "moments of cost"]


def test_shares_are_for_the_worst_relative_error_unless_they_are_given():
    expected = Statistics(measures=(ALL,)).expected_error(SCHEMA, 1_000, Fraction(1)).figures
    sizes = {
        "count": 1000, "sum(cost)": 500_000, "mean(age)": 49.5, "variance(age)": 99**2 / 12,
        "median(cost)": 500, "quantile(age, 0.9)": 49.5,
    }  # fmt: skip
    relative = {name: expected[f"{name}_95"] / size for name, size in sizes.items()}
    shared = {name: x for name, x in relative.items() if name != "mean(age)"}
    assert max(shared.values()) <= 1.05 * min(shared.values())
    assert relative["mean(age)"] < min(shared.values())  # it comes with the variance
    release = publish(
        make_rows(5), measures="count, quantile(age, 0.9)", shares="quantile(age, 0.9)=3"
    )
    assert release.epsilons == (Fraction(1, 4), Fraction(3, 4))


def test_the_budget_is_spent_once_and_the_receipt_says_on_what():
    budget = Budget.seeded("0.7")
    method = Statistics(measures=(ALL,), by=("ward",))
    release = method.release(open_table(make_rows(9), SCHEMA), budget=budget, rng=seeded(1))
    assert budget.cost() == release.receipt.epsilon == Fraction(7, 10)
    assert sum(share for _, share in release.receipt.shares) == Fraction(7, 10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"measures": ""}, "at least one"),
        ({"measures": "mean"}, "needs a column"),
        ({"measures": "average(age)"}, "measure"),
        ({"measures": "mean(ward)"}, "needs numbers"),
        ({"measures": "mean(weight)"}, "weight"),
        ({"measures": "count, count"}, "listed twice"),
        ({"measures": "median(age), quantile(age, 0.5)"}, "listed twice"),
        ({"measures": "quantile(age)"}, "needs a part"),
        ({"measures": "quantile(age, 0)"}, "between 0 and 1"),
        ({"measures": "quantile(age, 1)"}, "between 0 and 1"),
        ({"measures": "quantile(age, 90)"}, "between 0 and 1"),
        ({"measures": "quantile(age, x)"}, "between 0 and 1"),
        ({"measures": "mean(age"}, "cannot be read"),
        ({"measures": "count", "by": "weight"}, "weight"),
        ({"measures": "count", "by": "ward,ward"}, "listed twice"),
        ({"measures": "count", "shares": "mean(age)=2"}, "mean"),
        ({"measures": "count", "shares": "count"}, "integer"),
        ({"measures": "count", "shares": "count=0"}, "from 1"),
        ({"measures": "count", "confidence": "1"}, "between 0 and 1"),
        ({"measures": "count", "confidence": "0.99999"}, "at most"),
        ({"measures": "median(age)", "interval_share": "1"}, "between 0 and 1"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_debit(settings, message, tmp_path):
    with dpublish.Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("visits", cap="1")
        with pytest.raises(InvalidParameter, match=message):
            dpublish.statistics(
                open_table(make_rows(3), SCHEMA),
                epsilon="1",
                ledger=ledger,
                dataset="visits",
                output=tmp_path / "out",
                **settings,
            )
        assert ledger.status("visits").spent == 0


def test_too_many_groups_are_refused():
    wide = Schema(tuple(column(name, "integer", bounds=[0, 999]) for name in "xy"))
    with pytest.raises(InvalidParameter, match="1,000,000 groups are too many"):
        Statistics(measures=("count",), by=("x", "y")).expected_error(wide, None, Fraction(1))
    long = Schema((column("x", "integer", bounds=[0, 99_999]), SCHEMA["cost"]))
    method = Statistics(measures=("median(cost)", "median(x)"), by=("x",))
    with pytest.raises(InvalidParameter, match="too many for quantiles"):
        method.expected_error(long, None, Fraction(1))


def test_only_the_columns_that_are_named_are_read():
    method = Statistics(measures=("mean(cost)",), by=("ward",))
    assert method.reads(SCHEMA) == ("ward", "cost")


def test_a_mistyped_column_is_named_before_a_table_is_opened():
    with pytest.raises(InvalidParameter, match="did you mean 'cost'"):
        Statistics(measures=("mean(cots)",)).reads(SCHEMA)


def test_text_and_lists_of_settings_mean_the_same():
    one = make_method("statistics", {"measures": "count,quantile(age, 0.90)", "by": "ward, sex"})
    other = Statistics(measures=["count", "quantile(age, 0.9)"], by=["ward", "sex"])
    assert one == other
    assert hash(one) == hash(other)
    assert one.measures == ("count", "quantile(age, 0.9)")


@pytest.mark.parametrize(("given", "name"), [("avg(age)", "mean"), ("var(age)", "variance")])
def test_measures_by_names_of_other_tools_are_told_ours(given, name):
    with pytest.raises(InvalidParameter, match=f"is called '{name}' here"):
        Statistics(measures=(given,))


def test_a_decimal_comma_in_a_quantile_is_named():
    with pytest.raises(InvalidParameter, match="written with a point"):
        Statistics(measures=("quantile(age, 0,9)",))
