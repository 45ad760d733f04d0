"""Choosing the number of clusters: the ratio is as defined, and clear clusters are counted."""

from math import inf

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.kmeans.choose_k import Validity, best_of, judge_clusters
from dpublish.methods.kmeans.dplloyd import DPLloyd
from dpublish.methods.kmeans.eugkm import EUGkM
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(tuple(column(name, "numeric", bounds=[-1, 1]) for name in ("x", "y")))
FIVE = np.array([[-0.7, -0.7], [0.7, -0.6], [-0.6, 0.7], [0.7, 0.6], [0.0, 0.0]])


def publish(method, count=20_000, epsilon=1):
    rng = plain_generator(8)
    points = FIVE[rng.integers(0, 5, count)] + rng.normal(0, 0.06, (count, 2))
    table = open_table(pa.table({"x": points[:, 0], "y": points[:, 1]}), SCHEMA)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(2))


@pytest.fixture(scope="module")
def grid():
    return publish(EUGkM(n_clusters=9))


def test_five_clear_clusters_are_counted(grid):
    found = judge_clusters(grid, range(2, 10), seed=1)
    assert [one.n_clusters for one in found] == list(range(2, 10))
    assert best_of(found).n_clusters == 5


def test_the_ratio_is_variance_within_by_distance_between(grid):
    (one,) = judge_clusters(grid, [2], seed=4)
    first, second = grid.box.scale(grid.recluster(2, seed=4))
    assert one.between == pytest.approx(np.square(first - second).sum())
    cells, weights = grid.synopsis.cell_centers(), grid.synopsis.estimates()
    apart = [np.square(cells - center).sum(axis=1) for center in (first, second)]
    within = (np.minimum(*apart) * weights).sum() / weights.sum()
    assert one.within == pytest.approx(within)
    assert one.ratio == one.within / one.between


def test_two_centers_at_one_point_are_worst_of_all():
    together = Validity(4, 0.1, 0.0)
    assert together.ratio == inf
    assert best_of([together, Validity(5, 3.0, 0.01)]).n_clusters == 5
    assert best_of([Validity(6, 1.0, 2.0), Validity(3, 0.5, 1.0)]).n_clusters == 3


def test_the_same_seed_judges_the_same(grid):
    assert judge_clusters(grid, [3, 7], seed=6) == judge_clusters(grid, [3, 7], seed=6)


def test_progress_is_told(grid):
    steps = []
    judge_clusters(grid, [2, 3], n_init=1, progress=lambda *step: steps.append(step[:2]))
    assert steps == [(1, 2), (2, 2)]


def test_an_empty_table_still_gets_an_answer():
    release = publish(EUGkM(n_clusters=2), count=0)
    assert best_of(judge_clusters(release, range(2, 40, 9), n_init=2)).n_clusters >= 2


@pytest.mark.parametrize("candidates", [[], [1], [2, 0], [2, 10_000]])
def test_impossible_numbers_are_refused(grid, candidates):
    with pytest.raises(InvalidParameter):
        judge_clusters(grid, candidates)


def test_a_release_without_a_grid_is_refused():
    with pytest.raises(InvalidQuery, match=r"dplloyd .* holds no grid"):
        judge_clusters(publish(DPLloyd(n_clusters=2), count=100), [2])
