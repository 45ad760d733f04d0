"""NICV and the reference without privacy."""

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics import clustering
from dpublish.evaluation.metrics.clustering import normalized_intra_cluster_variance
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.randomness import plain_generator


def test_nicv_is_the_mean_squared_distance_from_the_nearest_center(monkeypatch):
    rng = plain_generator(1)
    points, centers = rng.uniform(-1, 1, (200, 3)), rng.uniform(-1, 1, (4, 3))
    expected = np.mean(
        [min(sum((a - b) ** 2 for a, b in zip(p, c, strict=True)) for c in centers) for p in points]
    )
    assert normalized_intra_cluster_variance(points, centers) == pytest.approx(expected)
    monkeypatch.setattr(clustering, "_BLOCK", 30)
    assert normalized_intra_cluster_variance(points, centers) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("points", "centers"), [((0, 2), (1, 2)), ((3, 2), (0, 2)), ((3, 2), (1, 3)), ((3,), (1, 3))]
)
def test_nicv_of_nothing_or_of_other_columns_is_refused(points, centers):
    with pytest.raises(InvalidParameter):
        normalized_intra_cluster_variance(np.zeros(points), np.zeros(centers))


def test_the_reference_finds_heaps_that_are_apart():
    rng = plain_generator(2)
    heaps = np.array([[-0.8, -0.8], [-0.8, 0.8], [0.8, -0.8], [0.8, 0.8], [0.0, 0.0]])
    points = heaps[rng.integers(5, size=1000)] + rng.normal(0, 0.02, (1000, 2))
    found = plain_centers(points, 5)
    apart = np.linalg.norm(heaps[:, None] - found, axis=2).min(axis=1)
    assert apart.max() < 0.01


def test_the_reference_works_where_there_are_fewer_points_than_centers():
    found = plain_centers(np.array([[0.5, 0.5], [0.5, 0.5]]), 4)
    assert found.shape == (4, 2)
    assert normalized_intra_cluster_variance(np.array([[0.5, 0.5]]), found) == 0
