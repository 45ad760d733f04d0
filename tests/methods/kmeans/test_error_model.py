"""Models of errors against centers that really were moved by noise."""

from fractions import Fraction
from math import log

import numpy as np
import pytest

from dpublish.core.run import Run
from dpublish.data.box import UNIT, Box
from dpublish.datasets.point_clouds import cloud_schema, uniform_cubes
from dpublish.experiments.kmeans_runs import (
    Task,
    mean_squared_error,
    means_after_round,
    means_in_grid,
    noisy_grid,
    true_means,
)
from dpublish.methods.kmeans.dplloyd import DPLloyd
from dpublish.methods.kmeans.error_model import (
    block_error,
    blocks_like_rounds,
    grid_bias,
    grid_cells,
    grid_error,
    grid_variance,
    round_error,
)
from dpublish.methods.kmeans.eugkm import EUGkM
from dpublish.methods.kmeans.gkm import mean_of_blocks
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from methods.kmeans.lloyd_audit import schema_of

RECORDS = 4_000
EPSILON = Fraction(1, 2)


def cubes(dimensions):
    """Points that fill the box, and the middles of its 2^d cubes: a quarter from the middle."""
    rows, schema = uniform_cubes(dimensions, RECORDS), cloud_schema(dimensions)
    points = np.stack([column.to_numpy() for column in rows.columns], axis=1)
    sides = np.meshgrid(*[[-0.5, 0.5]] * dimensions, indexing="ij")
    middles = np.stack([side.ravel() for side in sides], axis=1)
    return Task(schema, rows, len(middles), points, middles)


@pytest.mark.parametrize("weight", [1, Fraction(3, 4), 3])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_round_moves_centers_as_far_as_its_model_says(dimensions, weight):
    task = cubes(dimensions)
    true = true_means(task.points, task.best)
    found = [
        mean_squared_error(means_after_round(task, task.best, EPSILON, seeded(n), weight), true)
        for n in range(200)
    ]
    model = round_error(
        RECORDS * float(EPSILON), dimensions, task.clusters, count_weight=weight,
        mean_coordinate=0.25,
    )  # fmt: skip
    assert np.mean(found) == pytest.approx(model, rel=0.12)
    assert np.mean(found) < 0.5 * round_error(
        RECORDS * float(EPSILON) / 2, dimensions, task.clusters, count_weight=weight
    )


@pytest.mark.parametrize(("dimensions", "side"), [(1, 64), (2, 32), (3, 12)])
def test_a_grid_moves_centers_as_far_as_its_model_says(dimensions, side):
    task = cubes(dimensions)
    exact = means_in_grid(noisy_grid(task, side, Fraction(10**9), seeded(0)), task.best)
    found = [
        mean_squared_error(
            means_in_grid(noisy_grid(task, side, EPSILON, seeded(n)), task.best), exact
        )
        for n in range(200)
    ]
    spent = RECORDS * float(EPSILON)
    model = grid_variance(spent, side**dimensions, dimensions, task.clusters)
    assert np.mean(found) == pytest.approx(model, rel=0.12)


@pytest.mark.parametrize("side", [2, 4, 10])
@pytest.mark.parametrize("seed", range(5))
def test_the_width_of_cells_moves_centers_by_less_than_the_bound(side, seed):
    """Within its cells a record may lie anywhere: piles at the edges of cells come near."""
    rng = plain_generator(seed)
    task = cubes(2)
    edge = np.floor((task.points + 1) / 2 * side) / side * 2 - 1
    pulled = edge + (task.points - edge) * rng.uniform(0, 0.2)
    rows = task.rows
    for number in range(2):
        rows = rows.set_column(number, rows.column_names[number], [pulled[:, number]])
    piled = task._replace(rows=rows, points=pulled)
    cells = means_in_grid(noisy_grid(piled, side, Fraction(10**9), seeded(0)), task.best)
    bias = mean_squared_error(cells, true_means(pulled, task.best))
    assert bias <= grid_bias(side**2, 2)
    assert bias > 0.5 * grid_bias(side**2, 2)


def test_errors_fall_as_the_thesis_says():
    """A round's as (N ε)^-2, a grid's as (N ε)^(-4 / (2 + d))."""

    def slope(error):
        return log(error(2e5) / error(1e5)) / log(2)

    for dimensions in (1, 2, 4, 10):
        assert slope(lambda n, d=dimensions: round_error(n, d, 5)) == pytest.approx(-2)
        power = -4 / (2 + dimensions)
        assert slope(lambda n, d=dimensions: grid_error(n, d, 5)) == pytest.approx(power)
        bias = slope(lambda n, d=dimensions: grid_bias(grid_cells(n, d, 10), d))
        assert bias == pytest.approx(power)


def test_the_mean_over_blocks_has_the_noise_of_its_model():
    dimensions, clusters, blocks = 3, 4, 50
    box, ranges = Box.of(schema_of(dimensions)), np.tile([-UNIT, UNIT], (dimensions, 1))
    at = [np.zeros((clusters, dimensions), dtype=np.int64)] * blocks
    found = [
        np.square(
            mean_of_blocks(Run(_Nothing(), rng=seeded(n)), at, ranges, budget=Budget.seeded(9))
        )
        .sum(axis=1)
        .mean()
        for n in range(300)
    ]
    assert box.dimensions == dimensions
    assert np.mean(found) == pytest.approx(block_error(blocks, 9, dimensions, clusters), rel=0.1)


class _Nothing:
    """A table that is not read."""


def test_blocks_have_the_noise_of_rounds_at_about_records_over_rounds():
    """Not at N / (t sqrt d), where the thesis compares one coordinate with all of them."""
    for dimensions in (2, 6, 10):
        for rounds in (1, 5):
            blocks = blocks_like_rounds(50_000, rounds, dimensions)
            rounds_error = round_error(50_000 / rounds, dimensions, 7)
            assert block_error(blocks, 1.0, dimensions, 7) == pytest.approx(rounds_error)
            assert 1 < blocks / (50_000 / rounds) < 2
            printed = 50_000 / (rounds * dimensions**0.5)
            assert block_error(printed, 1.0, dimensions, 7) > 1.8 * dimensions * 0.5 * rounds_error


def test_owners_are_told_how_far_noise_moves_a_center():
    schema = schema_of(2)
    rounds = DPLloyd(n_clusters=5).expected_error(schema, 10_000, Fraction(1))
    assert rounds.figures["center_squared_error"] == pytest.approx(round_error(2_000, 2, 5))
    assert "moves a center by about 0.016" in rounds.summary
    grid = EUGkM(n_clusters=5).expected_error(schema, 10_000, Fraction(1))
    cells = grid.figures["cells"]
    assert grid.figures["center_squared_error"] == pytest.approx(grid_variance(9_700, cells, 2, 5))
    assert grid.figures["center_squared_bias"] == pytest.approx(grid_bias(cells, 2))
    assert "noise moves a center by about" in grid.summary
    for kind in (DPLloyd, EUGkM):
        without = kind(n_clusters=5).expected_error(schema, None, Fraction(1))
        assert "center_squared_error" not in without.figures
