"""`dpublish wavecluster` on releases and on public rows."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.shapes import simulated_shapes
from dpublish.methods.wavecluster.plain import PlainWaveCluster
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

SCHEMA = Schema(tuple(column(n, "numeric", bounds=[0, 100], bins=32) for n in ("x", "y")))
TOML = """
[columns.x]
kind = "numeric"
bounds = [0, 100]
bins = 32

[columns.y]
kind = "numeric"
bounds = [0, 100]
bins = 32
"""


@pytest.fixture
def folder(tmp_path):
    method = make_method("privelet", {})
    table = open_table(simulated_shapes(8000, 1), SCHEMA)
    release = method.release(table, budget=Budget.seeded(8), rng=seeded(1))
    return release.save(tmp_path / "grid")


def test_a_release_is_clustered_for_free(run, folder, tmp_path):
    cells = tmp_path / "cells.parquet"
    done = run("wavecluster", folder, "--cells", "32,16", "--percentile", "0.3", "-o", cells)
    assert done.code == 0
    assert "of 128 coefficients of 32 x 16 cells" in done.out
    assert "as private as the release" in done.out
    written = pq.read_table(cells)
    assert written.num_rows == 32 * 16
    assert {"x", "y", "noisy_count", "cluster"} <= set(written.column_names)


def test_public_rows_are_clustered_with_a_schema(run, tmp_path):
    rows, schema = tmp_path / "points.parquet", tmp_path / "points.toml"
    pq.write_table(simulated_shapes(8000, 1), rows)
    schema.write_text(TOML)
    done = run(
        "wavecluster", rows, "--schema", schema, "--cells", "48", "--percentile", "0.3", "--json"
    )
    assert done.code == 0
    found = done.json()
    plain = PlainWaveCluster(cells=48, percentile=PlainWaveCluster().percentile * 3)
    expected = plain.of_rows(simulated_shapes(8000, 1), SCHEMA)
    assert found["is_public"]
    assert len(found["clusters"]) == expected.clusters
    assert sum(one["coefficients"] for one in found["clusters"]) == expected.significant
    done = run("wavecluster", rows, "--schema", schema)
    assert "for public rows only" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cells", "31"], "multiple of 2"),
        (["--cells", "8,8,8"], "3 numbers for the 2 columns"),
        (["--percentile", "2"], "percentile"),
        (["--columns", "z"], "no column"),
        (["-o", "cells.txt"], "ending in"),
    ],
)
def test_what_does_not_fit_is_refused(run, folder, options, words):
    done = run("wavecluster", folder, *options)
    assert done.code == 1
    assert words in done.err


def test_rows_of_a_file_are_not_drawn(run, tmp_path):
    rows, schema = tmp_path / "points.parquet", tmp_path / "points.toml"
    pq.write_table(pa.table({"x": [1.0], "y": [2.0]}), rows)
    schema.write_text(TOML)
    done = run("wavecluster", rows, "--schema", schema, "--from-rows")
    assert done.code == 1
    assert "--from-rows" in done.err
