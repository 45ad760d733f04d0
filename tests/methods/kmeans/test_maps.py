"""Maps: most cells are empty, and no center may follow their noise; integers give no stripes."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.kmeans.eugkm import even_sizes
from dpublish.methods.kmeans.kmeans import KMeans
from dpublish.methods.kmeans.report import section
from dpublish.methods.kmeans.starting_centers import dense_cells, standing_out
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded


def publish_map(seed, epsilon="0.5", clusters=12):
    """Publish centers of two cities on a map that is empty elsewhere."""
    rng = plain_generator(seed)
    cities = np.array([[-0.8, -0.7], [-0.6, -0.75]])
    points = cities[rng.integers(0, 2, 30_000)] + rng.normal(0, 0.02, (30_000, 2))
    schema = Schema(tuple(column(name, "numeric", bounds=[-1, 1]) for name in "xy"))
    table = open_table(pa.table({"x": points[:, 0], "y": points[:, 1]}), schema)
    method = KMeans(n_clusters=clusters)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed)), points


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_center_lands_in_the_void_of_a_map(seed):
    release, points = publish_map(seed)
    assert release.synopsis.size > 5_000, "most of the cells must be empty"
    members = np.bincount(release.label({"x": points[:, 0], "y": points[:, 1]}), minlength=12)
    apart = np.abs(release.centers[:, None] - points[None, ::20]).max(axis=2).min(axis=1)
    assert apart.max() < 0.1, "a center lies far from any record"
    assert members.min() > 0


SMALL = np.array([[0.5, -0.6], [0.5, 0.6], [0.9, -0.7], [0.9, 0.55], [0.7, 0.0]])


def small_clusters_found(seed):
    """Count the small clusters near a center: 100 records each, far from three of 2,000."""
    rng = plain_generator(seed)
    large = np.array([[-0.95, -0.1], [-0.7, -0.1], [-0.85, 0.3]])
    points = np.concatenate(
        [
            np.repeat(large, 2_000, axis=0) + rng.normal(0, 0.03, (6_000, 2)),
            np.repeat(SMALL, 100, axis=0) + rng.normal(0, 0.08, (500, 2)),
        ]
    )
    schema = Schema(tuple(column(name, "numeric", bounds=[-1, 1]) for name in "xy"))
    table = open_table(pa.table({"x": points[:, 0], "y": points[:, 1]}), schema)
    release = KMeans(n_clusters=8).release(table, budget=Budget.seeded("0.2"), rng=seeded(seed))
    apart = np.linalg.norm(SMALL[:, None] - release.centers[None], axis=2).min(axis=1)
    return np.count_nonzero(apart < 0.2)


def test_small_clusters_far_from_large_ones_are_found_where_records_may_be_missing():
    # With the threshold for many cells alone, most of the 30 are lost.
    found = [small_clusters_found(seed) for seed in range(6)]
    assert sum(found) >= 18


@pytest.mark.parametrize("side", [20, 60, 250])
def test_hardly_any_cell_of_noise_stands_out_however_many_there_are(side):
    kept = [
        np.count_nonzero(
            dense_cells((side, side), plain_generator(seed).laplace(0, 10, side * side), 14.142)
        )
        for seed in range(10)
    ]
    # A false region has a few cells, for neighbors share most of their mean.
    assert np.mean(kept) < 5
    assert standing_out(side * side) == pytest.approx(np.sqrt(2 * np.log(side * side)))


def integer_box(*values):
    columns = (column(f"c{i}", "integer", bounds=[0, v - 1]) for i, v in enumerate(values))
    return Box.of(Schema(tuple(columns)))


@pytest.mark.parametrize(("values", "side"), [(100, 37), (100, 30), (64, 50), (24, 30), (365, 60)])
def test_cells_of_integer_columns_hold_equally_many_integers(values, side):
    [size] = even_sizes(integer_box(values), side)
    cells = np.minimum(np.arange(values) * size // (values - 1), size - 1)
    assert len(set(np.bincount(cells, minlength=size).tolist())) == 1
    assert min(side, values) / 1.5 <= size <= side * 1.5


def test_where_no_even_grid_is_near_the_wanted_one_stays():
    assert even_sizes(integer_box(101, 10_000), 40) == (40, 40)


def publish_ages(epsilon="5"):
    """Publish a grid over 100 ages, each of which 60 people have."""
    schema = Schema((column("age", "integer", bounds=[0, 99]),))
    table = open_table(pa.table({"age": np.repeat(np.arange(100), 60)}), schema)
    method = KMeans(n_clusters=2)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(1))


def test_grid_and_rows_of_an_integer_column_show_no_stripes():
    release = publish_ages()
    counts = release.synopsis.counts
    assert counts.size > 10
    assert counts.max() / counts.min() < 1.2
    drawn = np.bincount(release.rows(100_000, seed=1)["age"].to_numpy(), minlength=100)
    assert drawn.shape == (100,)
    assert drawn.min() > 0.8 * 1_000
    assert drawn.max() < 1.2 * 1_000


def test_sizes_come_with_an_interval_and_centers_of_noise_are_marked():
    release, _ = publish_map(4, clusters=2)
    sizes = release.cluster_sizes
    assert sum(size.records for size in sizes) == pytest.approx(30_000, abs=600)
    for size in sizes:
        assert abs(size.records - 15_000) < 600
        assert 0 < size.half_width < 300
        assert not size.may_be_noise
    shown = section(release, True).listings[0]
    assert shown.headers[-1] == "records"  # and no notes, where there are none
    assert all("±" in row[-1] for row in shown.rows)

    lost = type(release)(
        receipt=release.receipt,
        schema=release.schema,
        centers=np.array([*release.centers, [0.9, 0.9]]),
        synopsis=release.synopsis,
    )
    assert [size.may_be_noise for size in lost.cluster_sizes] == [False, False, True]
    page = section(lost, True)
    assert [row[-1] for row in page.listings[0].rows] == ["", "", "may be noise"]
    assert page.figures[0].svg.count('fill="#ffffff" stroke="#c0392b"') == 1


def test_without_a_grid_no_sizes_are_shown():
    schema = Schema(tuple(column(f"x{i}", "numeric", bounds=[-1, 1]) for i in range(5)))
    points = plain_generator(1).uniform(-1, 1, (500, 5))
    table = open_table(pa.table({f"x{i}": points[:, i] for i in range(5)}), schema)
    release = KMeans(n_clusters=2).release(table, budget=Budget.seeded(Fraction(1)), rng=seeded(1))
    assert release.cluster_sizes is None
    assert section(release, False).listings[0].headers == ["cluster", *release.box.names]
