"""Cluster sums: who goes where, how far one record moves them, and listings that go wrong."""

import pickle
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.batch import Batch
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans import kernels
from dpublish.methods.kmeans.kernels import MOST_COLUMNS, ClusterSums
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord
from dpublish.randomness import plain_generator
from methods.kmeans.broken_cluster_sums import InAllOfEquals, InTheFarthest

RECORDS = AddRemoveRecord()
COORDINATES = (-1.0, -0.25, 0.0, 0.5, 1.0)


@cache
def box_of(dimensions):
    return Box.of(
        Schema(tuple(column(f"x{j}", "numeric", bounds=[-1, 1]) for j in range(dimensions)))
    )


def batch_of(points):
    points = np.asarray(points, dtype=float)
    return Batch(len(points), values={f"x{j}": values for j, values in enumerate(points.T)})


def add_up(kernel, points, cuts=()):
    answer = kernel.zero()
    for part in np.split(np.asarray(points, dtype=float), cuts):
        kernel.add(batch_of(part), answer)
    return answer


def nearest(point, centers):
    """The nearest center on the lattice in exact arithmetic, the first of equals."""
    exact = [[Fraction(round(c * UNIT)) for c in center] for center in centers]
    lattice = [Fraction(round(x * UNIT)) for x in point]
    return min(
        range(len(exact)),
        key=lambda i: sum((x - c) ** 2 for x, c in zip(lattice, exact[i], strict=True)),
    )


def assigns_to_the_nearest(kernel_type, points, centers):
    """Whether each record alone is counted once, at its nearest center, with its coordinates."""
    kernel = kernel_type(box_of(len(centers[0])), np.array(centers))
    for point in points:
        wanted = kernel.zero()
        wanted[nearest(point, centers)] = [1, *(round(x * UNIT) for x in point)]
        if not np.array_equal(add_up(kernel, [point]), wanted):
            return False
    return True


def worlds(dimensions):
    """Points and centers on a coarse grid, centers that coincide among them."""
    points = list(product(COORDINATES, repeat=dimensions))
    corners = list(product((-1.0, 0.5), repeat=dimensions))
    return points, [list(pair) for pair in product(corners, repeat=2)]


def largest_change(kernel_type, dimensions):
    """Search all records and pairs of centers for the largest change of counts and of sums."""
    points, sets = worlds(dimensions)
    changes = [
        np.abs(add_up(kernel_type(box_of(dimensions), np.array(centers)), [point]))
        for centers in sets
        for point in points
    ]
    return max(c[:, 0].sum() for c in changes), max(c[:, 1:].sum() for c in changes)


# --- who goes where -----------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_record_goes_to_the_nearest_center_the_first_of_equals(dimensions):
    points, sets = worlds(dimensions)
    assert all(assigns_to_the_nearest(ClusterSums, points, centers) for centers in sets)


def test_the_listings_that_take_the_farthest_or_all_of_equals_are_caught():
    points, sets = worlds(2)
    for broken in (InAllOfEquals, InTheFarthest):
        assert not all(assigns_to_the_nearest(broken, points, centers) for centers in sets)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 999))
def test_random_records_go_to_their_nearest_centers(clusters, dimensions, seed):
    rng = plain_generator(seed)
    centers = rng.uniform(-1, 1, (clusters, dimensions))
    points = rng.uniform(-1, 1, (20, dimensions))
    assert assigns_to_the_nearest(ClusterSums, points.tolist(), centers.tolist())


def test_near_ties_are_decided_exactly_in_many_dimensions():
    # One lattice step apart in one of 1024 columns, at the far end of the box.
    here = np.ones((1, MOST_COLUMNS))
    there = here.copy()
    there[0, -1] -= 1 / UNIT
    kernel = ClusterSums(box_of(MOST_COLUMNS), np.vstack([there, here]))
    assert add_up(kernel, -here)[:, 0].tolist() == [1, 0]
    assert add_up(kernel, here)[:, 0].tolist() == [0, 1]


# --- what one record does -----------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_sensitivity_is_attained_and_never_exceeded(dimensions):
    declared = ClusterSums(box_of(dimensions), np.zeros((1, dimensions))).sensitivity(RECORDS)
    assert declared == (1, dimensions * UNIT)
    assert largest_change(ClusterSums, dimensions) == declared


def test_counting_in_all_of_equals_doubles_the_sensitivity():
    assert largest_change(InAllOfEquals, 2) == (2, 4 * UNIT)


@pytest.mark.parametrize("neighbors", [ReplaceRecord(), AddRemoveUnit("person")])
def test_other_neighbors_are_refused(neighbors):
    with pytest.raises(InvalidParameter, match="single records"):
        ClusterSums(box_of(1), np.zeros((1, 1))).sensitivity(neighbors)


# --- nothing but the records counts -------------------------------------------------------------


@given(st.integers(0, 99), st.lists(st.integers(0, 60), max_size=3).map(sorted))
def test_the_answer_does_not_depend_on_order_or_cuts(seed, cuts):
    rng = plain_generator(seed)
    points = rng.choice(COORDINATES, (60, 2))
    kernel = ClusterSums(box_of(2), rng.choice(COORDINATES, (4, 2)))
    whole = add_up(kernel, points)
    assert np.array_equal(add_up(kernel, rng.permutation(points), cuts), whole)
    assert np.array_equal(whole, sum(add_up(kernel, [point]) for point in points))


def test_long_batches_are_cut_without_a_trace(monkeypatch):
    points = plain_generator(5).uniform(-1, 1, (50, 2))
    kernel = ClusterSums(box_of(2), np.array([[0.0, 0.0], [0.5, 0.5]]))
    whole = add_up(kernel, points)
    monkeypatch.setattr(kernels, "_PART", 7)
    assert np.array_equal(add_up(kernel, points), whole)


def test_partial_answers_of_copies_can_be_merged():
    points = plain_generator(6).uniform(-1, 1, (40, 2))
    kernel = ClusterSums(box_of(2), np.array([[-0.5, 0.0], [0.5, 0.0], [1.0, 1.0]]))
    copied = pickle.loads(pickle.dumps(kernel))
    answer = add_up(kernel, points[:13])
    kernel.merge(answer, add_up(copied, points[13:]))
    assert np.array_equal(answer, add_up(kernel, points))


def test_no_records_give_zeros():
    kernel = ClusterSums(box_of(2), np.zeros((3, 2)))
    assert not add_up(kernel, np.empty((0, 2))).any()
    assert (kernel.codes, kernel.values) == ((), ("x0", "x1"))


@pytest.mark.parametrize(
    "centers",
    [np.zeros((0, 1)), np.zeros((2, 2)), np.zeros(1), np.array([[1.01]]), np.array([[np.nan]])],
)
def test_centers_outside_the_box_are_refused(centers):
    with pytest.raises(InvalidParameter):
        ClusterSums(box_of(1), centers)


def test_more_columns_than_scores_are_exact_for_are_refused():
    with pytest.raises(InvalidParameter, match="too many"):
        ClusterSums(box_of(MOST_COLUMNS + 1), np.zeros((1, MOST_COLUMNS + 1)))
