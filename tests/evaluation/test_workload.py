"""Range-count queries, their true counts, and the answers of a release."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.prediction import encode_rows
from dpublish.core.released import Release
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.queries import relative_errors, summarize_errors
from dpublish.evaluation.workload import (
    Workload,
    answers,
    independent_counts,
    random_ranges,
    ranges_between_records,
    true_counts,
)
from dpublish.methods.histogram.histogram import Histogram
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 299], missing="category"),
        column("size", "integer", bounds=[0, 4]),
        column("town", "category", values=["A", "B"], missing="drop"),
    )
)


def one_by_one(codes, workload):
    """Count as the definition says, record by record."""
    found = []
    for low, high in zip(workload.lows, workload.highs, strict=True):
        ends = list(zip(workload.columns, low, high, strict=True))
        records = range(len(codes["age"]))
        found.append(sum(all(a <= codes[n][r] < b for n, a, b in ends) for r in records))
    return found


def test_a_random_range_runs_between_two_leaves_drawn_evenly():
    drawn = random_ranges(SCHEMA, ["size", "town"], 40_000, plain_generator(1))
    pairs = np.stack([drawn.lows[:, 0], drawn.highs[:, 0] - 1], axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    assert len(found) == 15  # five ranges of one leaf, ten of several
    for (low, high), count in zip(found, counts, strict=True):
        probability = (1 if low == high else 2) / 25
        assert abs(count / 40_000 - probability) < 5 * (probability / 40_000) ** 0.5
    assert set(map(tuple, np.stack([drawn.lows[:, 1], drawn.highs[:, 1]], axis=1))) == {
        (0, 1), (1, 2), (0, 2),
    }  # fmt: skip


def test_leaves_of_missing_values_are_in_no_range():
    drawn = random_ranges(SCHEMA, ["age"], 5_000, plain_generator(1))
    assert SCHEMA["age"].size == 301
    assert drawn.highs.max() == 300
    assert random_ranges(SCHEMA, ["age"], 50, plain_generator(1), coverage=1).highs.max() == 300


def test_a_query_covers_the_wanted_part_of_the_domain():
    drawn = random_ranges(SCHEMA, ["age", "size"], 200, plain_generator(1), coverage=0.16)
    assert (drawn.highs - drawn.lows == [120, 2]).all()
    assert drawn.lows.min() == 0
    assert drawn.lows[:, 0].max() <= 180
    tiny = random_ranges(SCHEMA, ["age", "size"], 5, plain_generator(1), coverage=1e-9)
    assert (tiny.highs - tiny.lows == 1).all()


@pytest.mark.parametrize("largest", [4, 250, 298])
def test_true_counts_are_those_of_a_count_record_by_record(largest):
    rng = plain_generator(largest)
    codes = {
        "age": rng.integers(-1, largest + 1, 300),
        "size": rng.integers(-1, 5, 300),
        "town": rng.integers(-1, 2, 300),
    }
    workload = random_ranges(SCHEMA, ["size", "age", "town"], 200, rng)
    found = true_counts(codes, workload)
    assert found.tolist() == one_by_one(codes, workload)
    assert found.sum() > 0


def test_a_range_of_one_leaf_and_the_whole_column_are_counted():
    codes = {"age": np.array([-1, 0, 299, 299, 300])}
    ends = np.array([[0], [299], [0], [0]]), np.array([[1], [300], [300], [301]])
    assert true_counts(codes, Workload(("age",), *ends)).tolist() == [1, 2, 3, 4]
    assert true_counts({"age": codes["age"][:0]}, Workload(("age",), *ends)).tolist() == [0] * 4


def test_ranges_between_records_end_at_values_that_are_there():
    codes = {"age": np.array([-1, 7, 7, 290]), "size": np.array([1, 1, 1, 1])}
    drawn = ranges_between_records(codes, ["age", "size"], 9_000, plain_generator(1))
    found, counts = np.unique(np.stack([drawn.lows, drawn.highs]), axis=1, return_counts=True)
    assert found[:, :, 0].T.tolist() == [[7, 8], [7, 291], [290, 291]]
    assert counts / 9_000 == pytest.approx([4 / 9, 4 / 9, 1 / 9], abs=0.03)
    assert (found[:, :, 1].T == [1, 2]).all()
    with pytest.raises(InvalidParameter, match="age"):
        ranges_between_records({"age": codes["age"][:1]}, ["age"], 1, plain_generator(1))


def test_independent_counts_are_products_of_marginals():
    codes = {"age": np.array([0, 0, 1, 7]), "size": np.array([0, 1, 0, 1])}
    box = np.array([[0, 0]]), np.array([[2, 1]])
    assert independent_counts(codes, Workload(("age", "size"), *box))[0] == pytest.approx(1.5)
    unknown = {"age": np.array([-1, 0, 1, 7]), "size": np.array([0, 1, 0, 1])}
    assert independent_counts(unknown, Workload(("age", "size"), *box))[0] == pytest.approx(1.0)


def test_a_release_that_gives_rows_only_is_asked_by_its_rows(monkeypatch):
    rows = pa.table({"age": [5, 6, None, 299] * 500, "size": [1, 2, 3, 4] * 500})
    rows = rows.append_column("town", pa.array(["A"] * 2_000))
    method = Histogram(columns=("size",))
    release = method.release(open_table(rows, SCHEMA), budget=Budget.seeded(50), rng=seeded(1))
    monkeypatch.setattr(type(release), "count_boxes", Release.count_boxes)
    workload = Workload(("size",), np.array([[1], [0]]), np.array([[3], [1]]))
    drawn = encode_rows(release.rows(seed=4), SCHEMA, ["size"])
    assert answers(release, workload, seed=4).tolist() == true_counts(drawn, workload).tolist()
    assert answers(release, workload)[0] == pytest.approx(1_000, abs=5)


def test_a_release_that_answers_itself_is_not_asked_for_rows():
    class Answering:
        def count_boxes(self, columns, lows, highs):
            return (highs - lows).sum(axis=1) * 1.5

    workload = Workload(("size",), np.array([[1]]), np.array([[3]]))
    assert answers(Answering(), workload).tolist() == [3.0]


def test_errors_are_relative_to_the_count_or_to_the_sanity_bound():
    found = relative_errors(np.array([90.0, 7.0, -1.0]), np.array([100, 5, 0]), 10.0)
    assert found.tolist() == [0.1, 0.2, 0.1]
    summary = summarize_errors(np.array([90.0, 7.0, -4.0]), np.array([100, 5, 0]), 10.0)
    assert summary.mean_relative == pytest.approx(0.7 / 3)
    assert summary.median_relative == pytest.approx(0.2)
    assert summary.mean_absolute == pytest.approx(16 / 3)


def test_what_makes_no_sense_is_refused():
    rng = plain_generator(1)
    empty = np.empty((0, 1), dtype=np.int64)
    for call, word in [
        (lambda: random_ranges(SCHEMA, ["ages"], 1, rng), "age"),
        (lambda: random_ranges(SCHEMA, [], 1, rng), "at least one"),
        (lambda: random_ranges(SCHEMA, ["age"], -1, rng), "queries"),
        (lambda: random_ranges(SCHEMA, ["age"], 1, rng, coverage=0.0), "coverage"),
        (lambda: random_ranges(SCHEMA, ["age"], 1, rng, coverage=1.5), "coverage"),
        (lambda: Workload(("age", "size"), empty, empty), "low and a high"),
        (lambda: relative_errors(np.ones(1), np.ones(1), 0.0), "sanity"),
        (lambda: summarize_errors(np.ones(0), np.ones(0), 1.0), "no queries"),
    ]:
        with pytest.raises(InvalidParameter, match=word):
            call()
    assert len(random_ranges(SCHEMA, ["age"], 0, rng)) == 0
