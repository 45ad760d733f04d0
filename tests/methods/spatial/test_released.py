"""Published boxes: least squares on a tree, intervals that hold, range counts and rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.accuracy.intervals import mixed_half_width
from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.methods.spatial.box_tree import BoxTree
from dpublish.methods.spatial.released import EVENLY, SpatialRelease
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 15]),
        column("height", "numeric", bounds=[0, 8], bins=8, missing="category"),
    )
)
SIZES = np.array([16, 9])


def receipt():
    budget, rng = Budget.seeded(1), seeded(1)
    budget.spend()
    return Receipt.issue(
        method="test", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=rng
    )


def make(ends, parents, levels, rates, counts, **others):
    lows, highs = np.array(ends, dtype=np.int64).transpose(2, 0, 1)
    whole = [np.array(one, dtype=np.int64) for one in (parents, levels, counts)]
    return SpatialRelease(
        receipt=receipt(),
        schema=SCHEMA,
        lows=lows,
        highs=highs,
        parents=whole[0],
        levels=whole[1],
        rates=rates,
        counts=whole[2],
        **others,
    )


AGE, HEIGHT = (0, 16), (0, 9)
TREE = {
    "ends": [
        [AGE, HEIGHT],
        [(0, 6), HEIGHT],
        [(6, 16), HEIGHT],
        [(0, 6), (0, 4)],
        [(0, 6), (4, 9)],
        [(6, 7), HEIGHT],
        [(7, 16), HEIGHT],
    ],
    "parents": [-1, 0, 0, 1, 1, 2, 2],
    "levels": [0, 1, 1, 2, 2, 2, 2],
}
GRID = {
    "ends": [[(a, a + 4), (h, h + 3)] for a in range(0, 16, 4) for h in range(0, 9, 3)],
    "parents": [-1] * 12,
    "levels": [0] * 12,
}


def tree_boxes(counts=(0, 40, 60, 30, 10, 20, 40), rates=(None, Fraction(1), Fraction(2)), **more):
    return make(**TREE, counts=counts, rates=rates, **more)


# Least squares


def design(parents):
    """Which ends each node adds up, for every node."""
    ends = [node for node in range(len(parents)) if node not in parents]
    matrix = np.zeros((len(parents), len(ends)))
    for index, node in enumerate(ends):
        while node >= 0:
            matrix[node, index] = 1
            node = parents[node]
    return matrix


@st.composite
def trees(draw):
    size = draw(st.integers(1, 12))
    parents = [-1, *(draw(st.integers(0, node - 1)) for node in range(1, size))]
    variances = [draw(st.floats(0.01, 100)) for _ in parents]
    for node in set(parents) - {-1}:
        if draw(st.booleans()):
            variances[node] = np.inf
    counts = [draw(st.integers(-50, 50)) if np.isfinite(v) else 0 for v in variances]
    return np.array(parents), np.array(variances), np.array(counts, dtype=np.float64)


def solve(parents, variances, counts):
    weights = 1 / np.sqrt(variances)
    matrix = design(parents.tolist())
    found = np.linalg.lstsq(matrix * weights[:, None], counts * weights, rcond=None)[0]
    return matrix @ found


@given(trees())
def test_estimates_are_the_weighted_least_squares(tree):
    parents, variances, counts = tree
    estimates = BoxTree(parents, variances).estimate(counts)
    assert estimates == pytest.approx(solve(parents, variances, counts), abs=1e-6)


def test_weighing_all_counts_alike_would_be_noticed():
    parents, variances = np.array([-1, 0, 0]), np.array([1.0, 9.0, 1.0])
    counts = np.array([10.0, 2.0, 3.0])
    twin = BoxTree(parents, np.ones(3)).estimate(counts)
    assert twin != pytest.approx(solve(parents, variances, counts), abs=0.1)


@given(trees(), st.integers(0, 1000))
def test_the_adjoint_is_the_transpose_of_the_estimator(tree, seed):
    parents, variances, counts = tree
    shape = BoxTree(parents, variances)
    weights = plain_generator(seed).normal(size=parents.size)
    there = float(weights @ shape.estimate(counts))
    assert float(shape.adjoint(weights) @ counts) == pytest.approx(there, abs=1e-7)


@given(trees())
def test_plausible_counts_are_not_negative_and_add_up(tree):
    parents, variances, counts = tree
    shape = BoxTree(parents, variances)
    estimates = shape.estimate(counts)
    found = shape.nonnegative(estimates)
    assert found.min() >= 0
    assert found[0] == pytest.approx(max(estimates[0], 0))
    for node in set(parents.tolist()) - {-1}:
        assert found[parents == node].sum() == pytest.approx(found[node], abs=1e-7)
    if estimates.min() >= 0:
        assert found == pytest.approx(estimates, abs=1e-7)


def test_the_variance_of_the_total_is_that_of_its_weights():
    parents, variances = np.array([-1, 0, 0, 1, 1]), np.array([4.0, np.inf, 2.0, 3.0, 1.0])
    shape = BoxTree(parents, variances)
    weights = shape.adjoint(np.array([1.0, 0, 0, 0, 0]))
    counted = np.isfinite(variances)
    assert weights[~counted].tolist() == [0.0]
    assert shape.total_variance == pytest.approx(weights[counted] ** 2 @ variances[counted])


# Confidence intervals


def test_one_count_has_the_exact_interval_and_none_has_no_error():
    rate = Fraction(1, 7)
    assert mixed_half_width((rate,), (np.ones(3),), 0.9) == sum_quantile(rate, 3, 0.9)
    assert mixed_half_width((rate,), (np.zeros(3),), 0.9) == 0
    assert mixed_half_width((Fraction(2000),), (np.array([1.0, 2.0]),), 0.9) < 0.01


@pytest.mark.parametrize("rates", [(Fraction(1, 50), Fraction(1, 5)), (Fraction(1), Fraction(3))])
@pytest.mark.parametrize("many", [3, 3000])
def test_intervals_of_several_rates_hold_as_often_as_they_say(rates, many):
    rng, drawn = plain_generator(4), seeded(4)
    weights = tuple(rng.exponential(size=many) ** 3 for _ in rates)
    width = mixed_half_width(rates, weights, 0.9)
    repeats = 2000
    errors = sum(
        discrete_laplace(rate, repeats * many, drawn).reshape(repeats, many) @ along
        for rate, along in zip(rates, weights, strict=True)
    )
    held = np.mean(np.abs(errors) <= width)
    assert 0.88 <= held <= 0.97  # 90 %, give or take 3 deviations; rounded outwards
    deviation = np.sqrt(
        sum(noise_variance(r) * (w**2).sum() for r, w in zip(rates, weights, strict=True))
    )
    assert width > 1.2 * deviation


def simulate(shape, rates, size_rate, rng, drawn, records):
    """Draw records evenly, count them in boxes and perturb the counts."""
    codes = rng.integers(0, SIZES, (records, 2))
    ends = np.array(shape["ends"])
    inside = np.all((ends[:, None, :, 0] <= codes) & (codes < ends[:, None, :, 1]), axis=2)
    counts = inside.sum(axis=1)
    for box, level in enumerate(shape["levels"]):
        rate = rates[level]
        counts[box] = 0 if rate is None else counts[box] + discrete_laplace(rate, 1, drawn)[0]
    size = None
    if size_rate is not None:
        size = NoisySize(int(records + discrete_laplace(size_rate, 1, drawn)[0]), size_rate)
    return make(**shape, rates=rates, counts=counts, size=size), codes


QUERIES = {
    "": lambda c: np.full(len(c), True),
    "age in 0..5": lambda c: c[:, 0] < 6,
    "age in 3..9": lambda c: (c[:, 0] >= 3) & (c[:, 0] < 10),
    "age >= 9 and height < 2": lambda c: (c[:, 0] >= 9) & (c[:, 1] < 2),
    'height = "(missing)"': lambda c: c[:, 1] == 8,
}


@pytest.mark.parametrize(
    ("shape", "rates", "size_rate"),
    [
        (TREE, (None, Fraction(1, 4), Fraction(1, 2)), Fraction(1, 10)),
        (TREE, (None, Fraction(2), Fraction(2)), None),
        (GRID, (Fraction(1, 3),), Fraction(1, 20)),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(shape, rates, size_rate):
    rng, drawn = plain_generator(5), seeded(5)
    hits = dict.fromkeys(QUERIES, 0)
    runs = 200
    for _ in range(runs):
        boxes, codes = simulate(shape, rates, size_rate, rng, drawn, records=1500)
        for query, holds in QUERIES.items():
            answer = boxes.count(query)
            hits[query] += answer.low <= holds(codes).sum() <= answer.high
    together = sum(hits.values()) / (runs * len(QUERIES))
    assert together >= 0.93  # and more, where boxes are cut: any position is allowed for
    assert min(hits.values()) >= 0.9 * runs  # 95 %, less 3 deviations


def test_intervals_without_the_variance_of_records_would_be_noticed():
    rng, drawn = plain_generator(6), seeded(6)
    rates = (None, Fraction(2), Fraction(2))
    hits = 0
    for _ in range(200):
        boxes, codes = simulate(TREE, rates, None, rng, drawn, records=1500)
        shares = boxes._overlap.shares([np.repeat([0.0, 1.0, 0.0], [3, 7, 6]), np.ones(9)])
        truth = QUERIES["age in 3..9"](codes).sum()
        hits += abs(shares @ boxes.estimates - truth) <= boxes.noise_half_width(shares, 0.95)
    assert hits < 150


# Answers


def test_a_box_covered_in_part_counts_in_part_and_says_so():
    boxes = tree_boxes(rates=(None, Fraction(1), Fraction(1000)))
    whole, half = boxes.count("age >= 7"), boxes.count("age >= 7 and height >= 0")
    assert whole.value == pytest.approx(40)
    assert whole.assumption is None
    assert half.value == pytest.approx(40 * 8 / 9)  # records without a height are left out
    assert EVENLY in half.assumption
    assert half.high - half.low > whole.high - whole.low


def test_what_is_known_of_the_size_improves_the_total():
    size = NoisySize(150, Fraction(1000))
    assert tree_boxes(size=size).count().value == pytest.approx(150)
    assert tree_boxes().count().value == pytest.approx(100)
    assert tree_boxes(size=size).expected_error()["total_95"] < 1e-9


def test_many_boxes_are_answered_as_one_by_one():
    rng = plain_generator(7)
    ends = np.sort(rng.integers(0, [16, 8], (2, 40, 2)), axis=0)
    lows, highs = ends[0], ends[1] + 1
    grid = make(**GRID, rates=(Fraction(1),), counts=rng.integers(-5, 60, 12))
    for boxes in (tree_boxes(), grid, replace_order(grid)):
        found = boxes.count_boxes(["height", "age"], lows[:, ::-1], highs[:, ::-1])
        for index in range(40):
            (a, h), (b, g) = lows[index], highs[index]
            query = f"age in {a}..{b - 1} and height >= {h} and height < {g}"
            assert found[index] == pytest.approx(boxes.count(query).value)
    ages = grid.count_boxes(["age"], lows[:, :1], highs[:, :1])
    assert ages[0] == pytest.approx(grid.count(f"age in {lows[0, 0]}..{ends[1][0, 0]}").value)
    with pytest.raises(InvalidParameter, match="weight"):
        grid.count_boxes(["weight"], lows[:, :1], highs[:, :1])


def replace_order(boxes):
    """The same boxes in another order, so that they do not look like a grid."""
    order = np.arange(boxes.parents.size)[::-1].copy()
    return replace(
        boxes, lows=boxes.lows[order], highs=boxes.highs[order], counts=boxes.counts[order]
    )


def test_queries_about_other_columns_are_refused():
    with pytest.raises(InvalidQuery, match="knows nothing of 'town', only of age, height"):
        tree_boxes().count("town = Ost")
    with pytest.raises(InvalidParameter):
        tree_boxes().count("", confidence=1)


def test_partial_boxes_leave_the_rest_empty():
    some = {"ends": [[(0, 4), HEIGHT]], "parents": [-1], "levels": [0]}
    size = NoisySize(50, Fraction(1))
    boxes = make(**some, rates=(Fraction(1),), counts=[12], size=size, partial=True)
    assert boxes.count("age >= 4").value == 0
    assert boxes.count().value == 12  # the number of records speaks of all, the box of some
    with pytest.raises(InvalidParameter, match="unless the boxes are partial"):
        replace(boxes, partial=False)


# Rows


def test_rows_agree_with_the_counts():
    boxes = tree_boxes(rates=(None, Fraction(1000), Fraction(1000)))
    rows = boxes.rows(seed=1)
    assert rows.num_rows == 100
    ages = rows["age"].to_numpy()
    assert ((ages < 6).sum(), (ages == 6).sum(), (ages > 6).sum()) == (40, 20, 40)
    assert 0 <= ages.min() <= ages.max() <= 15
    many = boxes.rows(45_000, seed=2)
    assert many["age"].to_numpy().mean() == pytest.approx(0.4 * 2.5 + 0.2 * 6 + 0.4 * 11, abs=0.1)
    assert many["height"].null_count == pytest.approx(45_000 * (0.1 / 5 + 0.6 / 9), rel=0.1)
    assert boxes.rows(5, seed=3) == boxes.rows(5, seed=3)
    with pytest.raises(InvalidParameter):
        boxes.rows(-1)
    with pytest.raises(InvalidParameter, match="name a number"):
        tree_boxes(counts=(0, 1 << 40, 0, 1 << 40, 0, 0, 0)).rows()


def test_boxes_of_nothing_still_draw_from_the_domain():
    empty = tree_boxes(counts=(0, -3, -1, -2, -2, -1, -1))
    assert empty.rows().num_rows == 0
    assert empty.rows(1000, seed=1)["age"].to_numpy().mean() == pytest.approx(7.5, abs=1)
    assert empty.count().low == 0


# Folder


def test_it_loads_as_it_was_saved():
    for boxes in (tree_boxes(), tree_boxes(size=NoisySize(90, Fraction(1, 50)))):
        again = SpatialRelease.from_parts(
            receipt=boxes.receipt, schema=SCHEMA, metadata=boxes.metadata(), tables=boxes.tables()
        )
        assert again == boxes
        assert again.estimates.tolist() == boxes.estimates.tolist()
    assert tree_boxes() != tree_boxes(counts=(0, 40, 60, 30, 10, 20, 41))
    table = boxes.tables()["boxes"]
    assert table["last value of height"][0].as_py() == "(missing)"
    assert isinstance(table, pa.Table)
    assert "7 boxes, 4 of them without parts" in boxes.summary()["published"]


def changed(**fields):
    return lambda: replace(tree_boxes(), **fields)


def moved(name, box, along, value):
    array = getattr(tree_boxes(), name).copy()
    array[box, along] = value
    return changed(**{name: array})


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (changed(parents=np.array([-1, 0, 0, 1, 1, 2])), "one for each box|integers"),
        (changed(parents=np.array([-1, 0, 2, 1, 1, 2, 2])), "listed after"),
        (changed(parents=np.full(0, -1), lows=np.zeros((0, 2), np.int64)), "integers"),
        (moved("lows", 1, 0, -1), "at least one code"),
        (moved("highs", 1, 0, 0), "at least one code"),
        (moved("highs", 2, 0, 17), "at least one code"),
        (moved("highs", 3, 0, 7), "within its parent"),
        (moved("lows", 2, 0, 5), "do not overlap"),
        (moved("lows", 6, 0, 8), "fill it"),
        (changed(levels=np.array([0, 1, 1, 2, 2, 2, 3])), "one of the rates"),
        (changed(levels=np.array([0, 1, 1, 2, 2, 2, 0])), "has parts"),
        (changed(counts=np.array([1, 40, 60, 30, 10, 20, 40])), "counts 0"),
        (changed(counts=np.zeros(7)), "integers"),
        (changed(rates=(None, 0.5, Fraction(1))), "exact Fraction"),
        (changed(size=NoisySize(1.5, Fraction(1))), "integer"),
        (changed(size=NoisySize(1, 0.5)), "exact Fraction"),
    ],
)
def test_what_no_method_would_publish_is_refused(broken, reason):
    with pytest.raises(InvalidParameter, match=reason):
        broken()
