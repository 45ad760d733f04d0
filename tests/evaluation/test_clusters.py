"""What the owner learns of a clustering: distances, sizes, and how near the best ones come."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish import Budget, DPLloyd, EUGkM, seeded
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.evaluation import clusters
from dpublish.evaluation.clusters import cluster_finding
from dpublish.evaluation.evaluate import evaluate
from dpublish.evaluation.metrics.clustering import (
    cluster_fit,
    normalized_intra_cluster_variance,
)
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("x", "numeric", bounds=[0, 10], missing="drop"),
        column("n", "integer", bounds=[-5, 5], missing="drop"),
    )
)
HEAPS = np.array([[2.0, -3.0], [8.0, 3.0]])


def rows(count=900, seed=1):
    rng = plain_generator(seed)
    which = (np.arange(count) % 3 == 0).astype(int)  # twice as many in the first heap
    drawn = HEAPS[which] + rng.normal(0, 0.3, (count, 2))
    return pa.table({"x": drawn[:, 0], "n": np.rint(drawn[:, 1]).astype(np.int64)})


def publish(method):
    return method.release(open_table(rows(), SCHEMA), budget=Budget.seeded(50), rng=seeded(3))


def test_sizes_and_distances_are_those_of_the_nearest_rows():
    rng = plain_generator(4)
    points, centers = rng.uniform(-1, 1, (500, 2)), rng.uniform(-1, 1, (4, 2))
    found = cluster_fit(points, np.concatenate([centers, [[0.999, -0.999]]]))
    apart = np.square(points[:, None] - np.concatenate([centers, [[0.999, -0.999]]])).sum(axis=2)
    nearest = apart.argmin(axis=1)
    assert found.sizes.tolist() == [int((nearest == number).sum()) for number in range(5)]
    for number in range(5):
        own = apart[nearest == number, number]
        assert found.distances[number] == pytest.approx(own.mean() if len(own) else 0)
    assert found.nicv == pytest.approx(apart.min(axis=1).mean())


@pytest.mark.parametrize("method", [EUGkM(n_clusters=2), DPLloyd(n_clusters=2)])
def test_nicv_and_true_sizes_are_told_to_the_owner(method):
    release, true = publish(method), rows()
    finding = cluster_finding(release, true, seed=0)
    points = np.stack([true["x"].to_numpy() / 5 - 1, true["n"].to_numpy() / 5], axis=1)
    expected = normalized_intra_cluster_variance(points, release.box.scale(release.centers))
    assert finding.figures["nicv"] == pytest.approx(expected)
    assert finding.figures["nicv_without_privacy"] <= expected
    assert sorted(finding.figures["sizes"]) == [300, 600]
    assert finding.figures["sizes_without_privacy"] == [600, 300]
    assert f"{expected:.4f}" in finding.title
    assert {row[3] for row in finding.rows} == {"300", "600"}
    assert all(bool(row[-1]) == (release.synopsis is not None) for row in finding.rows)


def test_rows_without_a_number_are_left_out_and_nothing_else_is_needed():
    release = publish(EUGkM(n_clusters=2))
    true = pa.table({"x": [2.0, None, 8.0], "n": [-3, -3, 3]})
    assert cluster_finding(release, true, seed=0).figures["rows"] == 2
    with pytest.raises(InvalidParameter, match="no row has a number"):
        cluster_finding(release, pa.table({"x": pa.array([None], pa.float64()), "n": [1]}), seed=0)


def test_the_reference_is_looked_for_in_some_of_many_rows(monkeypatch):
    release, true = publish(EUGkM(n_clusters=2)), rows()
    whole = cluster_finding(release, true, seed=0)
    monkeypatch.setattr(clusters, "MOST_ROWS", 200)
    part = cluster_finding(release, true, seed=0)
    assert part.figures["nicv_without_privacy"] == pytest.approx(
        whole.figures["nicv_without_privacy"], rel=0.05
    )
    assert part.notes[-1] == "the best centers are looked for in 200 of the rows"
    assert len(whole.notes) == len(part.notes) - 1


def test_a_clustering_is_measured_first_and_centers_alone_suffice():
    with_grid = [finding.name for finding in evaluate(publish(EUGkM(n_clusters=2)), rows())]
    assert with_grid == ["clusters", "marginals", "association", "queries", "shares"]
    alone = [finding.name for finding in evaluate(publish(DPLloyd(n_clusters=2)), rows())]
    assert alone == ["clusters"]
