"""Centers of weighted points: the fast sums are the plain ones, and the rounds do as they say."""

import time
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.accuracy.projection import project_nonnegative
from dpublish.core.noisy_size import NoisySize
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.kmeans import clustering
from dpublish.methods.kmeans.clustering import (
    MOST_ROUNDS,
    GridSums,
    PointSums,
    grid_summer,
    middles,
    search_effort,
    weighted_lloyd,
)
from dpublish.methods.kmeans.starting_centers import (
    dense_cells,
    dense_weights,
    likely_cells,
    likely_starts,
)
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded


def cell_points(sizes):
    grids = np.meshgrid(*map(middles, sizes), indexing="ij")
    return np.stack([one.ravel() for one in grids], axis=1)


def plain_sums(points, weights, centers):
    """Number, weight and weighted coordinates by nearest center, point by point."""
    found = np.zeros((len(centers), points.shape[1] + 2))
    for point, weight in zip(points, weights, strict=True):
        nearest = int(np.argmin(np.square(centers - point).sum(axis=1)))
        found[nearest] += [1, weight, *(weight * point)]
    return found


GRIDS = [((5, 7), 4), ((11,), 3), ((3, 4, 2), 6), ((1, 1), 3), ((2,) * 7, 5), ((9, 8), 30)]


@pytest.mark.parametrize(("sizes", "clusters"), GRIDS)
def test_sums_by_lines_are_the_sums_by_cells(sizes, clusters, monkeypatch):
    rng = plain_generator(len(sizes))
    points = cell_points(sizes)
    weights = np.rint(rng.normal(3, 10, len(points)))
    centers = rng.uniform(-1, 1, (6, clusters, len(sizes)))
    centers[1, -1] = centers[1, 0]  # the same center twice
    centers[2, :, -1] = 0.37  # all on one height
    expected = np.stack([plain_sums(points, weights, one) for one in centers])
    assert np.allclose(GridSums(sizes, weights).sums(centers), expected)
    assert np.allclose(PointSums(points, weights).sums(centers), expected)
    assert np.isclose(GridSums(sizes, weights).square, (np.square(points).T * weights).sum())
    monkeypatch.setattr(clustering, "_MOST_NUMBERS", 1)  # one set of centers at a time
    assert np.allclose(GridSums(sizes, weights).sums(centers), expected)


def test_a_cell_between_two_centers_belongs_to_one_of_them():
    centers = np.array([[[-0.5], [0.5]]])
    sums = GridSums((3,), np.array([1.0, 1.0, 1.0])).sums(centers)
    assert sums[0, :, 0].tolist() == [2, 1]  # the cell in the middle is as near to both


@pytest.mark.parametrize("sizes", [(6, 5), (13,), (3, 3, 3)])
def test_points_and_grid_give_the_same_centers(sizes):
    rng = plain_generator(3)
    points = cell_points(sizes)
    weights = rng.integers(-5, 40, len(points))
    starts = rng.uniform(-1, 1, (8, 4, len(sizes)))
    options = {"cell_deviation": 4.0, "total": 300.0}
    by_points = weighted_lloyd(points, weights, starts, **options)
    by_grid = weighted_lloyd(sizes, weights, starts, **options)
    assert np.allclose(by_points.centers, by_grid.centers)
    assert np.isclose(by_points.score, by_grid.score)


def test_the_start_that_fits_best_is_taken_and_its_score_is_the_mean_squared_distance():
    points = np.array([[-0.9], [-0.7], [0.7], [0.9]])
    weights = np.array([1.0, 1.0, 1.0, 1.0])
    bad, good = [[0.0], [0.0]], [[-0.5], [0.5]]
    found = weighted_lloyd(points, weights, np.array([bad, good, good]))
    assert np.allclose(found.centers, [[-0.8], [0.8]])
    assert np.isclose(found.score, 0.01)


def test_negative_weights_cancel_noise_in_the_rounds_but_not_in_the_choice():
    points, start = np.array([[-0.5], [0.5], [0.9]]), np.array([[[0.0]]])
    weights = np.array([10.0, 5.0, -5.0])
    found = weighted_lloyd(points, weights, start)
    assert np.isclose(found.centers[0, 0], (-5 + 2.5 - 4.5) / 10)
    plausible = project_nonnegative(weights, 10.0)
    expected = (plausible * np.square(points[:, 0] - found.centers[0, 0])).sum() / 10
    assert np.isclose(found.score, expected)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-4.0, -9.0], [0.4, 0.4]])
def test_a_center_without_enough_weight_stays(weights):
    start = np.array([[[0.25]]])
    found = weighted_lloyd((2,), np.array(weights), start)
    assert found.centers.tolist() == [[0.25]]


def test_a_center_with_no_more_than_noise_stays():
    start = np.array([[[-0.6], [0.6]]])
    weights = np.array([5.0, 0.0, 0.0, 30.0])
    found = weighted_lloyd((4,), weights, start, cell_deviation=10.0)
    assert np.allclose(found.centers, [[-0.6], [0.75]])


def test_centers_never_leave_the_box_and_circles_end():
    rng = plain_generator(11)
    weights = rng.integers(-60, 61, 64)
    starts = rng.uniform(-1, 1, (40, 5, 2))
    found = weighted_lloyd((8, 8), weights, starts)
    assert np.all(np.abs(found.centers) <= 1)
    assert np.isfinite(found.score)


def test_some_weights_would_go_round_in_circles_for_ever():
    rng = plain_generator(11)
    weights = rng.integers(-60, 61, 64)
    starts = rng.uniform(-1, 1, (40, 5, 2))

    def moves(start):
        late = [
            weighted_lloyd((8, 8), weights, start, max_iter=rounds).centers
            for rounds in (999, 1000)
        ]
        return not np.array_equal(*late)

    assert any(moves(starts[[number]]) for number in range(40))


# --- dense regions ------------------------------------------------------------------------------


def test_noise_alone_is_mostly_taken_for_empty_and_a_dense_region_is_not():
    rng = plain_generator(2)
    noise = np.rint(rng.laplace(0, 10, (40, 40)))
    assert np.count_nonzero(dense_cells((40, 40), noise.ravel(), 14.1)) < 0.005 * 1600
    noise[10:14, 20:24] += 60
    dense = np.zeros((40, 40), dtype=np.bool_)
    dense[10:14, 20:24] = True
    kept = dense_cells((40, 40), noise.ravel(), 14.1).reshape(40, 40)
    assert kept[dense].all()
    assert not kept[:8].any()
    assert not kept[17:].any()


@pytest.mark.parametrize(("records", "elsewhere"), [(9_600, 0.0), (9_900, 0.0), (19_200, 9_600.0)])
def test_records_that_stand_out_nowhere_are_distributed_and_a_little_that_is_missing_is_not(
    records, elsewhere
):
    counts = np.zeros((40, 40), dtype=np.int64)
    counts[10:14, 20:24] = 600
    size = NoisySize(records, Fraction(50))  # beside it, the sum of the counts is mere noise
    grid = GridSynopsis((40, 40), counts.ravel(), Fraction(1), size)
    weights = dense_weights(grid).reshape(40, 40)
    assert weights.min() >= 0
    void = weights[30:]
    assert np.ptp(void) == pytest.approx(0)
    assert void.sum() == pytest.approx(elsewhere / 4, rel=0.02)


@pytest.mark.parametrize(("records", "found"), [(9_600, False), (10_600, True)])
def test_a_weak_cluster_counts_only_where_records_may_be_missing(records, found):
    counts = np.zeros((40, 40), dtype=np.int64)
    counts[10:14, 20:24] = 600
    counts[30:33, 5:8] = 4  # a mean of about three deviations of its noise
    grid = GridSynopsis((40, 40), counts.ravel(), Fraction(3, 5), NoisySize(records, Fraction(50)))
    assert not dense_cells(grid.sizes, counts.ravel().astype(float), grid.deviation)[31 * 40 + 6]
    marked, nearly_all = likely_cells(grid)
    assert marked.reshape(40, 40)[31, 6] == found
    assert nearly_all != found
    assert not marked.reshape(40, 40)[:, 30:].any()


def test_starts_are_drawn_where_the_weight_is_and_far_apart():
    points = np.array([[-0.9, 0], [-0.8, 0], [0.9, 0], [0.0, 0.9]])
    starts = likely_starts(points, np.array([5.0, 5.0, 5.0, 0.0]), 2, 50, plain_generator(1))
    assert starts.shape == (50, 2, 2)
    assert not np.any(starts[:, :, 1])  # never the point without weight
    sides = np.sort(np.sign(starts[:, :, 0]), axis=1)
    assert np.all(sides == [-1, 1])


@pytest.mark.parametrize("weights", [[0.0, 0.0], [3.0, 0.0]])
def test_there_are_starts_for_more_clusters_than_points(weights):
    points = np.array([[0.5], [-0.5]])
    starts = likely_starts(points, np.array(weights), 5, 3, plain_generator(1))
    assert starts.shape == (3, 5, 1)
    assert np.all(np.abs(starts) <= 1)


def test_a_search_for_very_many_clusters_is_limited_by_public_sizes():
    for starts, clusters, points in ((30, 51, 10), (30, 1000, 10_000), (30, 1000, 1_000_000)):
        effort = search_effort(starts, clusters, points)
        assert 1 <= effort.n_init <= starts
        assert 10 <= effort.max_iter <= MOST_ROUNDS
        if effort.max_iter > 10:
            assert effort.n_init * effort.max_iter * clusters * points <= 2_000_000_000
    assert search_effort(30, 50, 1_000_000) == (30, MOST_ROUNDS)


def test_many_centers_on_few_cells_are_added_up_as_on_lines():
    noise = plain_generator(5)
    sizes, weights = (5, 6), noise.normal(size=30)
    centers = noise.uniform(-1, 1, (2, 40, 2))
    summer = grid_summer(sizes, weights, 40)
    assert isinstance(summer, PointSums)
    np.testing.assert_allclose(
        summer.sums(centers), GridSums(sizes, weights).sums(centers), atol=1e-12
    )
    assert isinstance(grid_summer(sizes, weights, 20), GridSums)


def test_a_thousand_clusters_of_a_small_table_take_seconds():
    names = ("x", "y")
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 1]) for name in names))
    points = plain_generator(1).uniform(0, 1, (500, 2))
    table = open_table(pa.table({n: points[:, i] for i, n in enumerate(names)}), schema)
    method = make_method("kmeans", {"n_clusters": "1000"})
    begun = time.process_time()
    release = method.release(table, budget=Budget.seeded("1"), rng=seeded(1))
    assert time.process_time() - begun < 60  # it took many minutes
    assert release.centers.shape == (1000, 2)
