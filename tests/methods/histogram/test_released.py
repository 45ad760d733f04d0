"""A published histogram answers range counts with intervals that hold, and draws rows."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from method_examples import SCHEMA


def people(count=4000):
    rng = plain_generator(8)
    return pa.table(
        {
            "age": rng.integers(0, 100, count),
            "sex": np.array(["Female", "Male"])[rng.integers(0, 2, count)],
            "height": pa.array(rng.uniform(100, 220, count), mask=rng.random(count) < 0.1),
            "town": np.array(["Ost", "West", "Nord", "Far away"])[rng.integers(0, 4, count)],
        }
    )


PEOPLE = people()


def publish(seed=1, epsilon="1", **settings):
    method = make_method("histogram", settings)
    return method.release(
        open_table(PEOPLE, SCHEMA), budget=Budget.seeded(epsilon), rng=seeded(seed)
    )


@pytest.mark.parametrize(
    ("query", "mask"),
    [
        ("", lambda t: pc.greater_equal(t["age"], 0)),
        ("age in 20..39", lambda t: pc.and_(pc.greater_equal(t["age"], 20), pc.less(t["age"], 40))),
        (
            "age >= 50 and sex = Male",
            lambda t: pc.and_(pc.greater_equal(t["age"], 50), pc.equal(t["sex"], "Male")),
        ),
        ("sex != Male", lambda t: pc.equal(t["sex"], "Female")),
        ("age > 89 and age <= 99", lambda t: pc.greater(t["age"], 89)),
        ("sex in {Male, Female} and age < 10", lambda t: pc.less(t["age"], 10)),
    ],
)
def test_the_interval_covers_the_truth_as_often_as_it_says(query, mask):
    truth = pc.sum(mask(PEOPLE)).as_py()
    hits = 0
    for seed in range(300):
        answer = publish(seed, "0.2", columns=("age", "sex")).count(query, confidence=0.8)
        hits += answer.low <= truth <= answer.high
        assert answer.assumption is None
    # 300 runs at 80 %: 240 expected, sd 7; the quantile is of integers, so a little more.
    assert 205 <= hits <= 285


def test_the_answer_is_unbiased():
    truth = pc.sum(pc.equal(PEOPLE["sex"], "Male")).as_py()
    answers = [
        publish(seed, "0.1", columns=("age", "sex")).count("sex = Male").value
        for seed in range(300)
    ]
    deviation = np.sqrt(10 * 2 / 0.1**2 / 300)
    assert abs(np.mean(answers) - truth) < 5 * deviation


def test_a_cell_covered_in_part_is_counted_in_part_and_says_so():
    histogram = publish(epsilon="1000", columns=("age",))
    half, whole = histogram.count("age in 30..34"), histogram.count("age in 30..39")
    assert half.value == whole.value / 2
    assert "evenly within partly covered cells" in half.assumption
    assert whole.assumption is None


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("height < 120", None),
        ("height >= 120 and height < 160", None),
        ("height <= 220", None),
        ("height < 220", "exactly at the end"),
        ("height >= 100", None),
        ("height > 100", "exactly at the end"),
        ("height <= 120", "exactly at the end"),
        ("height > 120", "exactly at the end"),
        ("height in 120..160", "exactly at the end"),
        ("height > 220", "beyond 100 to 220"),
        ("height < 90", "beyond 100 to 220"),
        ("height < 130", "evenly within partly covered cells"),
        ("age > 99", "beyond 0 to 99"),
        ("age >= 90", None),
        ("age <= 9", None),
    ],
)
def test_an_answer_says_what_it_assumes_beyond_the_noise(query, note):
    assumption = publish(columns=("age", "height")).count(query).assumption
    assert (assumption is None) if note is None else (note in assumption)


def test_two_conditions_on_one_number_are_one_range():
    histogram = publish(epsilon="1000", columns=("age",))
    assert histogram.count("age >= 33 and age < 38").value == histogram.count("age in 33..37").value
    assert histogram.count("age > 50 and age < 20").value == 0


def test_special_cells_are_counted_by_name_only():
    histogram = publish(epsilon="1000", columns=("height", "town"))
    missing = PEOPLE["height"].null_count
    assert histogram.count('height = "(missing)"').value == missing
    assert histogram.count("height >= 0").value == PEOPLE.num_rows - missing
    assert histogram.count("town = Elsewhere").value > 500


def test_coarser_levels_answer_for_groups():
    fine, coarse = (
        publish(epsilon="1000", columns=("age",)),
        publish(epsilon="1000", columns=("age@1",)),
    )
    assert coarse.size < fine.size
    assert coarse.count("").value == fine.count("").value == PEOPLE.num_rows


@pytest.mark.parametrize("query", ["income > 3", "sex < Male", "height = 170"])
def test_queries_without_an_answer_are_refused(query):
    with pytest.raises(InvalidQuery):
        publish(columns=("sex", "height")).count(query)


def test_a_sparse_histogram_bounds_the_truth_though_cells_are_hidden():
    truth = pc.sum(pc.and_(pc.less(PEOPLE["age"], 20), pc.equal(PEOPLE["sex"], "Male"))).as_py()
    for seed in range(100):
        histogram = publish(seed, "0.3", columns=("age", "sex", "height", "town"), threshold=12)
        answer = histogram.count("age < 20 and sex = Male", confidence=0.9)
        assert answer.low <= truth <= answer.high
        assert histogram.counts.min() >= 12


def test_rows_follow_the_estimates_and_stay_in_the_domain():
    histogram = publish(epsilon="1000", columns=("age", "sex", "height", "town"))
    rows = histogram.rows(seed=1)
    assert rows.num_rows == histogram.estimates.sum()
    assert pc.sum(pc.equal(rows["sex"], "Male")).as_py() == histogram.count("sex = Male").value
    assert rows["height"].null_count == histogram.count('height = "(missing)"').value
    assert 0 <= pc.min(rows["age"]).as_py() <= pc.max(rows["age"]).as_py() <= 99
    assert 100 <= pc.min(rows["height"]).as_py() <= pc.max(rows["height"]).as_py() <= 220
    assert set(rows["town"].unique().to_pylist()) <= {"Ost", "West", "Nord", "Sued", "Elsewhere"}


def test_rows_of_any_number_are_drawn_in_proportion():
    histogram = publish(epsilon="1000", columns=("age",))
    rows = histogram.rows(50_000, seed=2)
    drawn = np.bincount(rows["age"].to_numpy() // 10, minlength=10) / 50_000
    assert drawn == pytest.approx(histogram.counts / histogram.counts.sum(), abs=0.01)
    assert histogram.rows(0).num_rows == 0
    assert histogram.rows(7, seed=3) == histogram.rows(7, seed=3)
    with pytest.raises(InvalidParameter):
        histogram.rows(-1)


def test_an_empty_histogram_still_draws_from_its_domain():
    base = publish(epsilon="1", columns=("sex",))
    empty = HistogramRelease(
        base.receipt, base.schema, base.axes, base.cells, np.array([-3, -1]), Fraction(1)
    )
    assert empty.estimates.tolist() == [0, 0]
    assert empty.rows().num_rows == 0
    assert empty.rows(10, seed=1).num_rows == 10
    assert empty.count("").low == 0


def test_marginals_add_up():
    histogram = publish(columns=("age", "sex", "town"))
    marginal = histogram.marginal("sex")
    assert marginal.labels == ("Female", "Male")
    assert marginal.counts.sum() == histogram.counts.sum()
    assert (
        marginal.half_width
        == histogram.count("sex = Male").value - histogram.count("sex = Male").low
    )
    with pytest.raises(InvalidParameter):
        histogram.marginal("height")
