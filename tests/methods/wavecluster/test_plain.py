"""WaveCluster without noise: on public rows, and on what other methods have published."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish import datasets
from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.registry import make_method
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.shapes import simulated_shapes
from dpublish.errors import DPublishError, InvalidParameter, InvalidType
from dpublish.methods.wavecluster.plain import PlainWaveCluster, cell_estimates
from dpublish.methods.wavecluster.plan import WavePlan
from dpublish.methods.wavecluster.wavecluster import WaveTransform, wave_clusters
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

PLAIN = PlainWaveCluster(cells=48, percentile=Fraction(3, 10))


def schema_with(bins):
    return Schema(tuple(column(name, "numeric", bounds=[0, 100], bins=bins) for name in ("x", "y")))


@pytest.fixture(scope="module")
def rows():
    return simulated_shapes(20_000, 3)


def release_of(name, rows, schema, epsilon=10, **settings):
    method = make_method(name, settings)
    table = open_table(rows, schema)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(2))


def test_public_rows_are_clustered_as_the_algorithm_says(rows):
    schema = schema_with(16)
    found = PLAIN.of_rows(rows, schema)
    counts = open_table(rows, schema).sum(BoxGrid(Box.of(schema), (48, 48)))
    expected = wave_clusters(counts, WaveTransform((48, 48)), Fraction(3, 10))
    assert np.array_equal(found.labels, expected)
    assert found.clusters == 5
    assert found.counts.sum() == 20_000
    assert np.bincount(found.label(rows) + 1).sum() == 20_000


def test_open_tables_are_clustered_as_their_rows(rows):
    schema = schema_with(16)
    expected = PLAIN.of_rows(rows, schema)
    for found in (
        PLAIN.of_rows(open_table(rows, schema)),
        PLAIN.of_rows(open_table(rows, schema), schema),
        PLAIN.of_rows(datasets.table("shapes", 20_000, seed=3), datasets.schema("shapes")),
    ):
        assert found.clusters == expected.clusters
        assert found.counts.sum() == 20_000
    assert np.array_equal(PLAIN.of_rows(open_table(rows, schema)).labels, expected.labels)
    with pytest.raises(InvalidParameter, match="opened with another schema"):
        PLAIN.of_rows(open_table(rows, schema), schema_with(8))
    with pytest.raises(InvalidType, match="schema must be"):
        PLAIN.of_rows(rows)


def test_a_table_whose_units_own_many_rows_is_refused(rows):
    schema = Schema(schema_with(16).columns, unit="who")
    owned = rows.append_column("who", pa.array(np.arange(rows.num_rows) // 5))
    with pytest.raises(InvalidParameter, match="may have several"):
        PLAIN.of_rows(open_table(owned, schema))


def test_one_record_can_merge_two_clusters():
    """Figure 1 of the paper: what a single individual shows without noise."""
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 10], bins=10) for name in ("x", "y")))
    left = [(x + 0.5, y + 0.5) for x in range(4) for y in range(10)] * 3
    right = [(x + 0.5, y + 0.5) for x in range(6, 10) for y in range(10)] * 3
    bridge = [(4.5, 4.5)]

    def clusters(points):
        x, y = zip(*points, strict=True)
        table = pa.table({"x": list(x), "y": list(y)})
        return PlainWaveCluster(cells=10, percentile=Fraction(1, 100)).of_rows(table, schema)

    assert clusters(left + right).clusters == 2
    assert clusters(left + right + bridge).clusters == 1


@pytest.mark.parametrize("name", ["psd", "privelet", "ug", "ag", "histogram", "privbayes"])
def test_any_release_that_counts_is_clustered(rows, name):
    settings = {"columns": "x,y"} if name == "histogram" else {}
    release = release_of(name, rows, schema_with(48), **settings)
    found = PLAIN.of_release(release)
    true = PLAIN.of_rows(rows, schema_with(48))
    assert found.labels.shape == true.labels.shape == (24, 24)
    agree = np.mean((found.labels >= 0) == (true.labels >= 0))
    assert agree > (0.95 if name in ("privelet", "histogram") else 0.5)


def test_a_release_without_boxes_is_clustered_by_its_rows(rows):
    release = release_of("histogram", rows, schema_with(48), columns="x,y")
    by_rows = PLAIN.of_release(release, from_rows=True, seed=1)
    assert np.array_equal(
        by_rows.labels, PLAIN.of_rows(release.rows(seed=1), release.schema).labels
    )
    by_counts = PLAIN.of_release(release)
    assert np.mean(by_rows.labels >= 0) == pytest.approx(np.mean(by_counts.labels >= 0), abs=0.05)


def test_estimates_of_codes_are_divided_over_cells_by_their_lengths():
    schema = Schema(
        (
            column("x", "numeric", bounds=[0, 12], bins=3),
            column("n", "integer", bounds=[0, 9], bins=5),
        )
    )

    class Release:
        def count_boxes(self, columns, lows, highs):
            assert columns == ("x", "n")
            assert np.all(highs == lows + 1)
            return 100.0 * lows[:, 0] + lows[:, 1] + 1

    plan = WavePlan.of(schema, PlainWaveCluster(cells=4))
    found = cell_estimates(Release(), plan)
    codes = 100.0 * np.arange(3)[:, None] + np.arange(5) + 1
    assert found.shape == (4, 4)
    assert found.sum() == pytest.approx(codes.sum())
    # The first cell of x has three of the four units of its first code.
    assert found[0].sum() == pytest.approx(0.75 * codes[0].sum())
    # Integers go where they were counted: 0 to 2 into the first of four cells.
    assert found[:, 0].sum() == pytest.approx(codes[:, 0].sum() + codes[:, 1].sum() / 2)


def test_what_cannot_be_clustered_is_refused(rows):
    text = Schema((column("t", "category", values=["a", "b"]),))
    release = release_of("histogram", pa.table({"t": ["a", "b"]}), text, columns="t")
    with pytest.raises(InvalidParameter, match="no column of numbers"):
        PLAIN.of_release(release)
    fitted = release_of(
        "histogram", rows.select(["x"]), Schema((schema_with(4)["x"],)), columns="x"
    )
    with pytest.raises(DPublishError):
        PlainWaveCluster(columns=("y",)).of_release(fitted)
    with pytest.raises(InvalidParameter):
        PlainWaveCluster(percentile=Fraction(2))


def test_much_noise_is_no_reason_to_fail():
    rng = plain_generator(1)
    table = pa.table({"x": rng.uniform(0, 100, 50), "y": rng.uniform(0, 100, 50)})
    release = release_of("psd", table, schema_with(16), epsilon="0.01")
    assert PlainWaveCluster(cells=8).of_release(release).labels.shape == (4, 4)
