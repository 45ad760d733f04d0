"""Points to cluster: clouds that are as far apart as guaranteed, tables that fit their bounds."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.check import check_table
from dpublish.datasets import point_clouds
from dpublish.datasets.point_clouds import (
    POINT_SETS,
    cloud_schema,
    point_cloud,
    sample_cells,
    separated_cloud,
    uniform_cubes,
)
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.evaluation.metrics.clustering import (
    cluster_fit,
    normalized_intra_cluster_variance,
)
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.randomness import plain_generator


def points_of(rows):
    return np.stack([column.to_numpy() for column in rows.columns], axis=1)


@pytest.mark.parametrize(("clusters", "dimensions"), [(1, 1), (2, 10), (10, 2), (4, 3)])
def test_a_cloud_fits_its_schema_and_follows_from_its_seed(clusters, dimensions):
    rows = point_cloud(clusters, dimensions, 500)
    assert rows == point_cloud(clusters, dimensions, 500)
    assert rows != point_cloud(clusters, dimensions, 500, seed=1)
    assert rows.num_rows == 500
    assert check_table(cloud_schema(dimensions), rows) == []
    assert np.abs(points_of(rows)).max() <= 1


def test_a_cloud_may_be_empty():
    assert point_cloud(3, 2, 0).num_rows == 0


@pytest.mark.parametrize("bad", [(0, 2, 5), (2, 0, 5), (2, 2, -1)])
def test_a_cloud_of_no_sense_is_refused(bad):
    with pytest.raises(InvalidParameter):
        point_cloud(*bad)


def test_the_nearest_two_clusters_are_as_far_apart_as_requested():
    rng = plain_generator(3)
    shapes = [point_clouds._shape(3, rng) for _ in range(5)]
    means = point_clouds._means(shapes, 0.2, rng)
    found = []
    for i, j in combinations(range(5), 2):
        between = means[i] - means[j]
        distance = np.linalg.norm(between)
        radii = sum(
            1.96 * np.sqrt(between @ shapes[n] @ shapes[n].T @ between) / distance for n in (i, j)
        )
        found.append((distance - radii) / (distance + radii))
    assert min(found) == pytest.approx(0.2)


def test_clouds_have_clusters_to_find():
    points = points_of(point_cloud(5, 4, 3000))
    whole = normalized_intra_cluster_variance(points, points.mean(axis=0)[None])
    best = normalized_intra_cluster_variance(points, plain_centers(points, 5))
    fewer = normalized_intra_cluster_variance(points, plain_centers(points, 4))
    assert best < 0.75 * fewer
    assert best < 0.3 * whole


@pytest.mark.parametrize("name", POINT_SETS)
def test_a_schema_fits_its_table(name, real_data):
    points = POINT_SETS[name]
    if points.missing_file(real_data) is not None:
        pytest.skip("its file is not here")
    rows = points.rows(real_data)
    assert rows.num_rows == points.records
    assert [finding for finding in check_table(points.schema, rows) if finding.is_serious] == []


def test_a_file_that_is_not_there_or_no_table_is_named(tmp_path):
    assert POINT_SETS["simulated"].missing_file(None) is None
    assert POINT_SETS["s1"].missing_file(None) == "clustering_s_sets.parquet"
    assert POINT_SETS["s1"].missing_file(tmp_path) == "clustering_s_sets.parquet"
    with pytest.raises(UnreadableData, match="needs a data folder"):
        POINT_SETS["s1"].rows(None)
    (tmp_path / "adult.parquet").write_text("no table")
    with pytest.raises(UnreadableData, match="Parquet"):
        POINT_SETS["adult-num"].rows(tmp_path)


def test_clouds_for_tuning_are_equally_large_and_well_separated():
    rows = separated_cloud(4, 3, 1000)
    assert rows == separated_cloud(4, 3, 1000)
    assert rows != separated_cloud(4, 3, 1000, seed=1)
    assert check_table(cloud_schema(3), rows) == []
    points = points_of(rows)
    fit = cluster_fit(points, plain_centers(points, 4))
    assert fit.sizes.tolist() == [250] * 4
    overlapping = points_of(point_cloud(4, 3, 1000))
    nearer = cluster_fit(overlapping, plain_centers(overlapping, 4))
    assert fit.nicv < nearer.nicv
    with pytest.raises(InvalidParameter):
        separated_cloud(0, 2)


def test_cubes_are_filled_evenly():
    points = points_of(uniform_cubes(2, 4000))
    quarters = np.bincount((points > 0) @ [1, 2], minlength=4)
    assert quarters.min() > 900
    assert np.abs(points.mean(axis=0)).max() < 0.05


def test_points_are_drawn_from_cells_by_their_counts():
    cells = pa.table({"row": [0, 0, 1], "col": [0, 1, 1], "count": [100, 0, 300]})
    points = points_of(sample_cells(cells, 8000))
    found = np.bincount((np.floor(points) @ [2, 1]).astype(int), minlength=4) / 8000
    assert found == pytest.approx([0.25, 0, 0, 0.75], abs=0.02)
    within = points - np.floor(points)
    assert within.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.02)
    assert sample_cells(cells, 10) == sample_cells(cells, 10)
