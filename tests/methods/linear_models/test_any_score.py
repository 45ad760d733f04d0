"""Any score that is a sum over records: its range from a list of qualities, and what is found."""

from fractions import Fraction
from math import exp

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.method import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.genetic_search import Breeding
from dpublish.methods.linear_models.any_score import list_cells, quality_range, score_cells
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(
    (
        column("x", "integer", bounds=[0, 10], bins=11),
        column("sex", "category", values=["F", "M"]),
    )
)


def table_of(xs):
    sexes = np.resize(["F", "M"], len(xs))
    return open_table(
        pa.table({"x": pa.array(xs, pa.int64()), "sex": pa.array(sexes, pa.string())}), SCHEMA
    )


def squares(cells, candidates):
    """Minus the squared distance from a point: the example of the paper."""
    return -((cells["x"][:, None] - candidates[:, 0]) ** 2)


def test_the_range_of_the_papers_example_is_half_of_what_it_prints():
    """56 for a replaced record, so 28 for an added one; the largest loss is 64."""
    run = Run(table_of([]), rng=seeded(1))
    found = score_cells(run, ("x",), squares)(np.array([[6], [7], [8]]))
    assert found.sensitivity_range == 28
    assert found.values.tolist() == [0, 0, 0]


def test_no_record_of_the_domain_moves_two_candidates_further_apart_and_one_does():
    draws = plain_generator(1)
    for _ in range(20):
        candidates = draws.integers(-3, 14, (5, 1))
        empty = score_cells(Run(table_of([]), rng=seeded(1)), ("x",), squares)(candidates)
        moved = []
        for x in range(11):
            one = score_cells(Run(table_of([x]), rng=seeded(1)), ("x",), squares)(candidates)
            moved.append(int(np.ptp(one.values - empty.values)))
        assert max(moved) <= empty.sensitivity_range
        assert max(moved) in (empty.sensitivity_range, 0) or (
            empty.sensitivity_range == np.abs(squares({"x": np.arange(11)}, candidates)).max()
        )


def odds(xs, candidates, epsilon, sensitivity_range):
    scores = score_cells(Run(table_of(xs), rng=seeded(1)), ("x",), squares)(candidates).values
    weights = np.array(
        [exp(float(epsilon) * (s - scores.max()) / sensitivity_range) for s in scores]
    )
    return weights / weights.sum()


def test_a_twin_whose_range_is_that_of_the_records_present_is_caught():
    candidates = np.array([[6], [7], [8]])
    present = quality_range(squares({"x": np.array([7])}, candidates))
    for stated, is_private in ((28, True), (present, False)):
        ratio = odds([7], candidates, 1, stated) / odds([7, 0], candidates, 1, stated)
        assert (max(ratio.max(), 1 / ratio.min()) <= exp(1) * (1 + 1e-9)) == is_private


def test_the_range_is_the_lesser_of_both_bounds():
    assert quality_range(np.array([[-5, -5], [-9, -1]])) == 8
    assert quality_range(np.array([[-3, 4]])) == 7
    assert quality_range(np.array([[0, 0]])) == 1


@pytest.mark.parametrize(
    "row",
    [[-(2**62) - 5, 2**62 + 5], [-(2**63), 0], [2**30 + 1, 0], [-(2**30) - 1, 0]],
)
def test_qualities_that_are_too_large_to_be_summed_are_refused(row):
    """Their differences, and sums over records, would wrap: the first two had a range of 1."""
    with pytest.raises(InvalidParameter, match="at most 2\\^30"):
        quality_range(np.array([row]))
    run = Run(table_of([]), rng=seeded(1))
    with pytest.raises(InvalidParameter, match="at most 2\\^30"):
        score_cells(run, ("sex",), lambda cells, c: np.array([row, row]))(np.zeros((2, 1)))


def test_the_largest_qualities_have_an_exact_range():
    assert quality_range(np.array([[-(2**30), 2**30]])) == 2**31
    assert quality_range(np.array([[-(2**30), -1]])) == 2**30 - 1


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint64, np.float64])
def test_a_range_of_other_numbers_than_int64_is_refused(kind):
    """The difference of -100 and 100 is -56 in eight bits."""
    with pytest.raises(InvalidParameter, match="int64"):
        quality_range(np.array([[100, 0]]).astype(kind))


def test_sums_are_exact_up_to_the_number_of_records_that_is_promised(monkeypatch):
    """2^27 records, the largest qualities and public parts, against Python's integers."""
    run = Run(table_of([]), rng=seeded(1))
    counts = np.array([2**27 - 3, 3])
    monkeypatch.setattr(run, "sum", lambda kernel: counts)
    rows = [[2**30, -(2**30), 1], [2**30, -(2**30), -(2**30)]]
    public = [2**60, -(2**60), 7]
    score = score_cells(
        run, ("sex",), lambda cells, c: np.array(rows), public=lambda c: np.array(public)
    )
    exact = [
        public[i] + sum(int(count) * row[i] for count, row in zip(counts, rows, strict=True))
        for i in range(3)
    ]
    assert score(np.zeros((3, 1), dtype=np.int64)).values.tolist() == exact


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (np.array([0.5, 1.0]), "int64"),
        (np.array([1, 2], dtype=np.uint64), "int64"),
        (np.array([True, False]), "int64"),
        ([0.5, 1], "int64"),
        (np.array([1]), "every candidate"),
        (np.array([[1, 2]]), "every candidate"),
        (np.array([2**60 + 1, 0]), "at most 2\\^60"),
        (np.array([-(2**63), 0]), "at most 2\\^60"),
    ],
)
def test_a_public_part_that_cannot_be_added_exactly_is_refused(part, words):
    run = Run(table_of([1]), rng=seeded(1))
    score = score_cells(run, ("x",), squares, public=lambda c: part)
    with pytest.raises(InvalidParameter, match=words):
        score(np.array([[1], [2]]))


def test_a_search_finds_the_middle_of_the_records():
    """A median in two dimensions of weights: |x - a|, with a public pull to even numbers."""
    run = Run(table_of(plain_generator(2).binomial(10, 0.3, 3000)), rng=seeded(5))

    def distances(cells, candidates):
        return -np.abs(100 * cells["x"][:, None] - candidates[:, 0])

    score = score_cells(run, ("x",), distances, public=lambda c: -(c[:, 0] % 2))
    plan = Breeding(bound=1000, rounds=20, population=50)
    budget = Budget.seeded("2")
    found = run.genetic_search(score, run.draw_uniform(50, 1, 1000), plan, budget=budget)
    assert abs(found[0] - 300) < 60
    assert budget.cost() == Fraction(2)
    assert all(share.is_used for share in budget.account())


def test_what_cannot_be_scored_is_refused():
    run = Run(table_of([1]), rng=seeded(1))
    candidates = np.array([[1]])
    for wrong in (
        lambda cells, c: np.zeros((3, 1), dtype=np.int64),
        lambda cells, c: np.zeros((11, 1)),
    ):
        with pytest.raises(InvalidParameter):
            score_cells(run, ("x",), wrong)(candidates)
    for columns in ((), ("age",)):
        with pytest.raises(InvalidParameter):
            score_cells(run, columns, squares)
    wide = Schema(tuple(column(name, "integer", bounds=[0, 255], bins=256) for name in "abc"))
    with pytest.raises(InvalidParameter):
        list_cells(wide, ("a", "b", "c"))
    units = Schema(SCHEMA.columns, unit="person")
    rows = pa.table({"x": [1], "sex": ["F"], "person": ["p"]})
    with pytest.raises(InvalidParameter):
        score_cells(Run(open_table(rows, units), rng=seeded(1)), ("x",), squares)
