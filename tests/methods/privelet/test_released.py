"""A histogram of coefficients answers like the counts behind it, with bars that hold."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.privelet.haar import invert, transform
from dpublish.methods.privelet.privelet import Privelet
from dpublish.methods.privelet.released import PriveletRelease, box_sums
from dpublish.methods.privelet.report import section
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.report.axis_marginals import marginal_figures

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 19]),
        column("height", "numeric", bounds=[100, 200], bins=5, missing="category"),
        column("sex", "category", values=["F", "M"]),
    )
)


def people(count=600):
    rng = plain_generator(8)
    return pa.table(
        {
            "age": np.minimum(rng.geometric(0.15, count) - 1, 19),
            "height": pa.array(rng.uniform(100, 200, count), mask=rng.random(count) < 0.1),
            "sex": np.array(["F", "M"])[rng.integers(0, 2, count)],
        }
    )


PEOPLE = people()
ALL = ("age", "height", "sex")


def publish(epsilon="1", seed=1, source=PEOPLE, **settings):
    method = Privelet(**{"columns": ALL, "transform": "haar"} | settings)
    return method.release(
        open_table(source, SCHEMA), budget=Budget.seeded(epsilon), rng=seeded(seed)
    )


def truth_of(inside):
    return int(np.sum(inside(PEOPLE.to_pandas())))


QUERIES = {
    "": lambda t: t["age"] >= 0,
    "age in 3..11": lambda t: t["age"].between(3, 11),
    "age >= 5 and sex = M": lambda t: (t["age"] >= 5) & (t["sex"] == "M"),
    "age in 2..8 and height >= 120 and height < 180": lambda t: (
        t["age"].between(2, 8) & (t["height"] >= 120) & (t["height"] < 180)
    ),
    'height = "(missing)"': lambda t: t["height"].isna(),
    "age > 5 and age < 3": lambda t: t["age"] < 0,
}


def test_the_interval_covers_the_truth_as_often_as_it_says():
    truths = {query: truth_of(inside) for query, inside in QUERIES.items()}
    hits = dict.fromkeys(QUERIES, 0)
    runs = 400
    for seed in range(runs):
        release = publish("1/2", seed)
        for query, truth in truths.items():
            answer = release.count(query)
            hits[query] += answer.low <= truth <= answer.high
    del hits["age > 5 and age < 3"]  # nothing is asked for, so there is no noise
    for query, hit in hits.items():
        # 95 % of 400 is 380, sd 4.4; bars are widened by about 1 %.
        assert 366 <= hit <= 396, query


def test_without_noise_every_answer_is_the_truth():
    release = publish("100000")
    for query, inside in QUERIES.items():
        assert release.count(query).value == pytest.approx(truth_of(inside), abs=1e-6)
        assert release.count(query).assumption is None
    assert "evenly within partly covered cells" in release.count("height < 130").assumption
    rows = release.rows(seed=2)
    assert rows.num_rows == 600
    assert rows["height"].null_count == PEOPLE["height"].null_count
    assert sorted(rows["age"].to_pylist()) == sorted(PEOPLE["age"].to_pylist())


@pytest.mark.parametrize("settings", [{}, {"transform": "auto"}, {"columns": ("height", "age")}])
def test_boxes_counts_marginals_and_estimates_agree(settings):
    release = publish(**settings)
    lows, highs = np.array([[3, 1], [0, 0]]), np.array([[12, 4], [20, 6]])
    boxes = release.count_boxes(("age", "height"), lows, highs)
    asked = release.count("age in 3..11 and height >= 120 and height < 180").value
    assert boxes[0] == pytest.approx(asked)
    assert boxes[1] == pytest.approx(release.count().value)
    for age in (0, 19):
        one = release.count(f"age = {age}").value
        assert one == pytest.approx(release.marginal("age").counts[age])


def test_the_transform_is_inverted_along_any_axis():
    counts = plain_generator(1).integers(0, 9, (3, 8, 4))
    turned = transform(transform(counts, 1), 2)
    assert np.array_equal(invert(invert(turned, 2), 1), counts)


@pytest.mark.parametrize("dimensions", [1, 3, 11])
def test_box_sums_are_sums_over_the_cells_of_boxes(dimensions):
    rng = plain_generator(4)
    counts = rng.normal(size=(2,) * dimensions if dimensions > 3 else (5, 4, 3)[:dimensions])
    ends = np.sort(rng.integers(0, np.array(counts.shape) + 1, (2, 20, dimensions)), axis=0)
    brute = [
        counts[tuple(slice(a, b) for a, b in zip(low, high, strict=True))].sum()
        for low, high in zip(*ends, strict=True)
    ]
    assert np.allclose(box_sums(counts, *ends), brute)


def test_empty_tables_and_negative_totals_still_give_rows():
    for seed in range(6):
        release = publish("1/100", seed, PEOPLE.slice(0, 0))
        assert release.rows(7, seed=1).num_rows == 7
        assert release.rows(seed=1).num_rows == release.plausible.sum()
        assert release.count().low >= 0


def test_queries_without_an_answer_are_refused():
    release = publish()
    for query in ("income = 3", "sex < M", "age ="):
        with pytest.raises(InvalidQuery):
            release.count(query)
    with pytest.raises(InvalidQuery):
        release.count_boxes(("income",), np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64))
    with pytest.raises(InvalidQuery):
        release.count_boxes(("age",), np.zeros((1, 2), np.int64), np.ones((1, 2), np.int64))
    with pytest.raises(InvalidParameter):
        release.rows(10**12)


def test_it_is_rebuilt_from_its_parts_and_refuses_others():
    release = publish()
    parts = {"receipt": release.receipt, "schema": release.schema}
    again = PriveletRelease.from_parts(
        **parts, metadata=release.metadata(), tables=release.tables()
    )
    assert again == release
    assert release != publish(seed=2)
    for bad in (
        {"haar": (True, True)},
        {"coefficients": release.coefficients[:3]},
        {"coefficients": release.coefficients.astype(np.float64)},
        {"noise_rate": Fraction(1, 2**50)},
        {"haar": (True, False, False)},
    ):
        with pytest.raises(InvalidParameter):
            replace(release, **bad)
    fewer = {"coefficients": release.tables()["coefficients"].slice(1)}
    with pytest.raises(InvalidParameter):
        PriveletRelease.from_parts(**parts, metadata=release.metadata(), tables=fewer)


def test_the_report_shows_a_marginal_of_every_column():
    shown = section(publish(), with_charts=True)
    assert [figure.caption for figure in shown.figures] == [
        f"Estimated counts by {name}." for name in ALL
    ]
    assert shown.listings[0].rows[2] == ["sex", "2", "no"]


def test_columns_that_are_not_drawn_are_said_to_be():
    axes = [column(f"c{j}", "integer", bounds=[0, 3]).axis() for j in range(10)]
    for shown, rest in ((8, ""), (9, " 1 more column is not shown."), (10, " 2 more columns are")):
        figures = marginal_figures(axes[:shown], [np.ones(4)] * shown, "Counts")
        assert len(figures) == 8
        assert figures[-1].caption.startswith(f"Counts by c7.{rest}")
        assert figures[-2].caption == "Counts by c6."
