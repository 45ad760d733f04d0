"""Losses of sets of centers: exact, blind to batches, and bounded over the box, not the data."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.batch import Batch
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans.kernels import (
    STEP,
    CenterLosses,
    largest_gap,
    largest_loss,
)
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord
from dpublish.randomness import plain_generator

PLANE = Box.of(Schema(tuple(column(name, "numeric", bounds=[-1, 1]) for name in "xy")))


def draw_sets(seed, sets=6, clusters=3, dimensions=2):
    rng = plain_generator(seed)
    return rng.integers(-UNIT, UNIT + 1, (sets, clusters, dimensions))


def true_losses(points, sets):
    """One record, one set, one center at a time, in Python's integers."""
    return [
        sum(
            min(sum((int(a) - int(b)) ** 2 for a, b in zip(p, c, strict=True)) for c in one) // STEP
            for p in points
        )
        for one in sets
    ]


def batch_of(points):
    return Batch(len(points), values=dict(zip("xy", np.asarray(points).T / UNIT, strict=True)))


def gap_over(points, sets):
    """How far losses of two sets can be pulled apart by a record at one of some points."""
    gaps = []
    for point in points:
        apart = [min(np.square(np.subtract(point, c)).sum() for c in one) for one in sets]
        gaps.append(max(apart) - min(apart))
    return max(gaps)


def test_losses_are_those_of_the_definition():
    sets = draw_sets(1)
    points = draw_sets(2, 1, 40)[0]
    kernel = CenterLosses(PLANE, sets)
    answer = kernel.zero()
    kernel.add(batch_of(points), answer)
    assert answer.tolist() == true_losses(points, sets)


def test_equal_sets_are_counted_once_and_answered_each():
    sets = draw_sets(3)[[0, 1, 0, 2, 1]]
    points = draw_sets(4, 1, 20)[0]
    kernel = CenterLosses(PLANE, sets)
    answer = kernel.zero()
    kernel.add(batch_of(points), answer)
    assert answer.tolist() == true_losses(points, sets)
    assert answer[0] == answer[2]


def test_the_answer_does_not_depend_on_how_the_records_are_cut():
    kernel = CenterLosses(PLANE, draw_sets(5, 30, 4))
    whole = batch_of(draw_sets(6, 1, 5000)[0])
    once, often, merged = kernel.zero(), kernel.zero(), kernel.zero()
    kernel.add(whole, once)
    for part in whole.cut(37):
        kernel.add(part, often)
    halves = [kernel.zero(), kernel.zero()]
    for number, part in enumerate(whole.cut(1100)):
        kernel.add(part, halves[number % 2])
    for half in halves:
        kernel.merge(merged, half)
    assert once.tolist() == often.tolist() == merged.tolist()


def test_a_table_without_complete_records_loses_nothing():
    schema = Schema(PLANE.columns)
    table = open_table(pa.table({"x": [None, 0.5], "y": [0.5, None]}), schema)
    assert table.sum(CenterLosses(PLANE, draw_sets(7))).tolist() == [0] * 6


def test_the_bounds_are_those_of_the_worked_examples():
    tenths = np.array([[[0, 0]], [[1, 0]]])
    assert Fraction(largest_gap(tenths, bound=10), 100) == Fraction(21, 100)
    assert Fraction(largest_loss(tenths, bound=10), 100) == Fraction(221, 100)
    # The domain 0..10 is -5..5 here, and the candidates 6, 7, 8 are 1, 2, 3.
    middle = np.array([[[1]], [[2]], [[3]]])
    assert (largest_loss(middle, bound=5), largest_gap(middle, bound=5)) == (64, 28)


small_sets = st.integers(1, 2).flatmap(
    lambda d: st.integers(1, 3).flatmap(
        lambda k: st.lists(
            st.lists(st.lists(st.integers(-4, 4), min_size=d, max_size=d), min_size=k, max_size=k),
            min_size=2,
            max_size=4,
        )
    )
)


@given(small_sets)
def test_no_point_of_the_box_pulls_two_sets_apart_by_more_than_the_bounds(sets):
    array = np.array(sets, dtype=np.int64)
    every = list(product(range(-4, 5), repeat=array.shape[2]))
    exact = gap_over(every, sets)
    assert exact <= largest_gap(array, bound=4)
    assert exact <= largest_loss(array, bound=4)


def test_with_one_center_the_bound_is_attained():
    for seed in range(20):
        rng = plain_generator(seed)
        array = rng.integers(-4, 5, (2, 1, 2))
        corners = product((-4, 4), repeat=2)
        assert gap_over(list(corners), array.tolist()) == largest_gap(array, bound=4)


def test_the_bound_follows_the_mutation_not_the_size_of_the_box():
    parent = draw_sets(8, 1, 3)[0]
    sets = np.stack([parent] * 12)
    step = UNIT // 100
    for number, (index, sign) in enumerate(product(range(6), (-1, 1))):
        sets[number].reshape(-1)[index] += sign * step
    inside = np.clip(sets, -UNIT, UNIT)
    width = CenterLosses(PLANE, inside).range_sensitivity(AddRemoveRecord())
    assert width <= 8 * (step / UNIT) * UNIT**2 / STEP + 1
    assert width < CenterLosses(PLANE, draw_sets(8)).range_sensitivity(AddRemoveRecord()) / 20


def loss_of(points, sets):
    kernel = CenterLosses(PLANE, sets)
    answer = kernel.zero()
    kernel.add(batch_of(points), answer)
    return answer


@pytest.mark.parametrize("seed", range(10))
def test_one_more_record_never_moves_rounded_losses_apart_by_more_than_r(seed):
    sets = draw_sets(seed, sets=5, clusters=2)
    if seed % 2:  # near each other, so that rounding counts
        sets = np.clip(sets[:1] + draw_sets(seed + 50, 5, 2) // 2**12, -UNIT, UNIT)
    width = CenterLosses(PLANE, sets).range_sensitivity(AddRemoveRecord())
    corners = list(product((-UNIT, 0, UNIT), repeat=2))
    for point in [*corners, *draw_sets(seed + 90, 1, 60)[0].tolist()]:
        added = loss_of([point], sets)
        assert added.max() - added.min() <= width


def test_the_supremum_over_the_data_is_no_bound():
    """The thesis takes it over the records: a record elsewhere then moves scores by more."""
    sets = np.array([[[0, 0]], [[UNIT // 10, 0]]])
    data = [[UNIT // 20, 0], [UNIT // 20, UNIT // 2]]  # equally far from both
    local = gap_over(data, sets.tolist()) // STEP
    added = loss_of([[-UNIT, 0]], sets)
    assert added.max() - added.min() > 100 * max(local, 1)
    kernel = CenterLosses(PLANE, sets)
    assert added.max() - added.min() <= kernel.range_sensitivity(AddRemoveRecord())


def test_a_record_that_counts_for_two_sets_of_centers_would_break_the_bound():
    """Twin: a tie counted for every nearest center, which doubles the record's loss."""
    sets = np.array([[[-UNIT, 0], [UNIT, 0]], [[0, UNIT], [0, UNIT]]])
    tie = [0, -UNIT]
    apart = [[np.square(np.subtract(tie, c)).sum() // STEP for c in one] for one in sets.tolist()]
    doubled = [sum(value for value in one if value == min(one)) for one in apart]
    single = loss_of([tie], sets)
    width = CenterLosses(PLANE, sets).range_sensitivity(AddRemoveRecord())
    assert single.max() - single.min() <= width < max(doubled)


def test_equal_sets_leave_a_range_to_choose_by():
    sets = draw_sets(1)[[0, 0]]
    assert CenterLosses(PLANE, sets).range_sensitivity(AddRemoveRecord()) == 1


@pytest.mark.parametrize("neighbors", [ReplaceRecord(), AddRemoveUnit("person")])
def test_other_neighbors_are_refused(neighbors):
    with pytest.raises(InvalidParameter):
        CenterLosses(PLANE, draw_sets(1)).range_sensitivity(neighbors)


@pytest.mark.parametrize(
    "sets",
    [
        np.zeros((2, 3), dtype=np.int64),
        np.zeros((2, 3, 2)),
        np.zeros((0, 3, 2), dtype=np.int64),
        np.zeros((2, 3, 1), dtype=np.int64),
        np.full((2, 3, 2), UNIT + 1),
    ],
)
def test_sets_that_do_not_fit_the_box_are_refused(sets):
    with pytest.raises(InvalidParameter):
        CenterLosses(PLANE, sets)
