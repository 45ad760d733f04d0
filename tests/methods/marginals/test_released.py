"""Published marginals answer about one column at a time, with bars that hold, and draw rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery
from dpublish.methods.marginals.marginals import Marginals
from dpublish.methods.marginals.released import MarginalsRelease
from dpublish.methods.marginals.report import section
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99]),
        column("pay", "numeric", bounds=[0, 1000], bins=500, missing="category"),
        column("grade", "ordinal", values=["low", "middle", "high"]),
        column("town", "category", values=["Ost", "West", "Nord"], other="elsewhere"),
    )
)


def people(count=3000):
    rng = plain_generator(8)
    pay = rng.uniform(0, 1000, count)
    return pa.table(
        {
            "age": rng.binomial(99, 0.4, count),
            "pay": pa.array(pay, mask=rng.random(count) < 0.1),
            "grade": np.array(["low", "middle", "high"])[rng.integers(0, 3, count)],
            "town": np.array(["Ost", "West", "Far away"])[rng.integers(0, 3, count)],
        }
    )


PEOPLE = people()
TABLE = open_table(PEOPLE, SCHEMA)


def publish(seed=1, epsilon="4", **settings):
    return Marginals(**settings).release(TABLE, budget=Budget.seeded(epsilon), rng=seeded(seed))


# --- counts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "truth"),
    [
        (
            "age in 30..44",
            pc.sum(pc.and_(pc.greater(PEOPLE["age"], 29), pc.less(PEOPLE["age"], 45))),
        ),
        ("pay < 250", pc.sum(pc.less(PEOPLE["pay"], 250))),
        ("grade >= middle", pc.sum(pc.not_equal(PEOPLE["grade"], "low"))),
        ("town = elsewhere", pc.sum(pc.equal(PEOPLE["town"], "Far away"))),
        ("", pa.scalar(3000)),
    ],
)
def test_the_interval_covers_the_truth_as_often_as_it_says(query, truth):
    hits = 0
    for seed in range(1000):
        answer = publish(seed, "0.4").count(query)
        hits += answer.low <= truth.as_py() <= answer.high
        assert answer.assumption is None
    # The standard deviation is 7 in 1,000; the quantile is of integers, so a little more.
    assert 930 <= hits <= 990


def test_a_query_about_several_columns_is_refused_with_advice():
    with pytest.raises(InvalidQuery, match="synth"):
        publish().count("age > 30 and town = Ost")
    with pytest.raises(InvalidQuery, match="knows nothing of 'height'"):
        publish().count("height > 3")


@pytest.mark.parametrize("method", ["efpa", "noise-first"])
def test_where_estimates_are_biased_the_interval_is_that_of_what_was_published(method):
    release = publish(columns=("pay",), marginal=method)
    if release.marginals[0].kept or method == "noise-first":
        answer = release.count("pay < 250")
        assert answer.interval == "confidence"
        assert answer.low <= answer.value <= answer.high
        assert "so the estimate is biased" in answer.assumption
    total = release.count("")
    assert total.low < total.value < total.high
    assert total.assumption is None
    assert np.isfinite(release.expected_error()["total_95"])


def test_a_bin_covered_in_part_is_counted_in_part_and_says_so():
    release = publish(columns=("pay",), marginal="identity")
    half, whole = release.count("pay < 1"), release.count("pay < 2")
    assert half.value == pytest.approx(whole.value / 2)
    assert "evenly distributed within partly covered cells" in half.assumption


def test_boxes_are_counted_as_if_columns_were_independent():
    release = publish(epsilon="400")
    lows, highs = np.array([[0, 1], [30, 0]]), np.array([[100, 2], [45, 3]])
    found = release.count_boxes(["age", "grade"], lows, highs)
    ages = np.asarray(PEOPLE["age"])
    middle = np.mean(np.asarray(PEOPLE["grade"]) == "middle")
    inside = np.mean((ages >= 30) & (ages < 45))
    np.testing.assert_allclose(found, [3000 * middle, 3000 * inside], rtol=0.01)


# --- quantiles and rows ------------------------------------------------------------------------


def test_quantiles_are_those_of_the_records():
    release = publish(epsilon="40")
    ages, pay = np.asarray(PEOPLE["age"]), PEOPLE["pay"].drop_null().to_numpy()
    for part in (0.1, 0.5, 0.9):
        assert abs(release.quantile("age", part) - np.quantile(ages, part)) <= 1
        assert abs(release.quantile("pay", part) - np.quantile(pay, part)) < 20
    assert isinstance(release.quantile("age", 0.5), int)
    assert release.quantile("grade", 0.5) == "middle"
    assert release.quantile("pay", 0) >= 0
    assert release.quantile("pay", 1) <= 1000


def test_quantiles_need_an_order_and_a_part():
    with pytest.raises(InvalidQuery, match="no order"):
        publish().quantile("town", 0.5)
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        publish().quantile("age", 1.5)
    with pytest.raises(InvalidParameter):
        publish().quantile("height", 0.5)


def test_rows_have_the_marginals_and_as_many_records_as_were_counted():
    release = publish(epsilon="40")
    rows = release.rows(seed=3)
    assert abs(rows.num_rows - 3000) < 30
    assert rows.column_names == list(SCHEMA.names)
    assert abs(np.mean(np.asarray(rows["age"])) - np.mean(np.asarray(PEOPLE["age"]))) < 1
    assert abs(rows["pay"].null_count / rows.num_rows - 0.1) < 0.03
    assert release.rows(7, seed=1) == release.rows(7, seed=1)
    with pytest.raises(InvalidParameter):
        release.rows(-1)
    with pytest.raises(InvalidParameter):
        release.rows(10**9)


def test_an_empty_table_gives_rows_of_some_kind():
    empty = open_table(PEOPLE.slice(0, 0), SCHEMA)
    for seed in range(10):
        release = Marginals().release(empty, budget=Budget.seeded(1), rng=seeded(seed))
        assert release.records >= 0
        assert release.rows(5).num_rows == 5


# --- how it is kept and shown ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "efpa", "noise-first"])
def test_it_is_rebuilt_from_its_parts(method):
    release = publish(marginal=method)
    again = MarginalsRelease.from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata=release.metadata(),
        tables=release.tables(),
    )
    assert again == release
    assert again != publish(2, marginal=method)


def test_parts_that_do_not_fit_are_refused():
    release = publish()
    tables, metadata = release.tables(), release.metadata()
    parts = {"receipt": release.receipt, "schema": release.schema}
    with pytest.raises(CorruptRelease):
        MarginalsRelease.from_parts(
            **parts, metadata={"marginals": metadata["marginals"][:2]}, tables=tables
        )
    short = {**tables, "marginals": tables["marginals"].slice(0, 50)}
    with pytest.raises((CorruptRelease, InvalidParameter)):
        MarginalsRelease.from_parts(**parts, metadata=metadata, tables=short)
    with pytest.raises(InvalidParameter, match="marginal for each column"):
        replace(release, marginals=release.marginals[:3])


def test_marginals_are_listed_with_their_half_width():
    release = publish()
    ages = release.marginal("age")
    assert ages.labels[:2] == ("0", "1")
    np.testing.assert_array_equal(ages.counts, release.marginals[0].units)
    assert ages.half_width == release.marginals[0].half_width(np.eye(100)[0], 0.95)
    assert np.isnan(publish(marginal="noise-first").marginal("age").half_width)


def test_the_report_draws_every_column_and_merges_long_ones():
    shown = section(publish(), with_charts=True)
    assert [figure.svg.startswith("<svg") for figure in shown.figures] == [True] * 4
    assert "in runs of 6 values, with 95 % confidence intervals" in shown.figures[1].caption
    assert (
        "confidence intervals"
        not in section(publish(marginal="noise-first"), True).figures[1].caption
    )
    assert section(publish(), with_charts=False).figures == ()
    assert shown.listings[0].rows[1][:3] == ["pay", "501", "hierarchical"]
