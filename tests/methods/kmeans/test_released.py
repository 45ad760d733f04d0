"""Published centers: labels, new clusters, rows, and what no method would publish."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema, column
from dpublish.errors import DPublishError, InvalidParameter, InvalidQuery, InvalidType
from dpublish.methods.kmeans import released as module
from dpublish.methods.kmeans.released import NOWHERE, KMeansRelease
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 100], bins=10),
        column("height", "numeric", bounds=[100, 200], missing="category"),
    )
)
POINTS = np.array([[10.0, 120.0], [90.0, 180.0], [50.0, 150.0]])
COUNTS = np.array([60, -3, 2, 0, 1, 0, -2, 4, 50])
GRID = GridSynopsis((3, 3), COUNTS, Fraction(1, 2), NoisySize(117, Fraction(1, 3)))


def make(**changes):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="dplloyd", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=seeded(1)
    )
    settings = {"receipt": receipt, "schema": SCHEMA, "centers": POINTS, "synopsis": GRID}
    return KMeansRelease(**{**settings, **changes})


def reload(release):
    return KMeansRelease.from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata=release.metadata(),
        tables=release.tables(),
    )


# --- labels -------------------------------------------------------------------------------------


def test_rows_get_the_nearest_center_and_rows_with_gaps_get_none():
    rows = pa.table(
        {
            "height": [121.0, 900.0, 150.0, None, 100.0],
            "note": list("abcde"),
            "age": [9, 250, 51, 50, None],
        }
    )
    found = make().label(rows)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 1, 2, NOWHERE, NOWHERE]


def test_rows_are_labeled_from_a_file_too(tmp_path):
    rows = pa.table({"height": [121.0, None, 150.0], "age": [9, 250, 51]})
    csv.write_csv(rows, tmp_path / "new.csv")
    expected = make().label(rows).tolist()
    assert make().label(str(tmp_path / "new.csv")).tolist() == expected
    assert make().label(tmp_path / "new.csv").tolist() == expected
    with pytest.raises(InvalidType, match="type int"):
        make().label(3)


def test_of_equally_near_centers_the_first_counts():
    release = make(centers=np.array([[40.0, 150.0], [60.0, 150.0], [60.0, 150.0]]))
    assert release.label(pa.table({"age": [50, 60], "height": [150.0, 150.0]})).tolist() == [0, 1]


def test_distances_are_measured_in_the_box_not_in_the_owners_units():
    wide = Schema(
        (column("a", "numeric", bounds=[0, 1]), column("b", "numeric", bounds=[0, 10_000]))
    )
    release = make(schema=wide, centers=np.array([[0.0, 0.0], [1.0, 600.0]]), synopsis=None)
    assert release.label(pa.table({"a": [0.1, 0.9], "b": [600.0, 0.0]})).tolist() == [0, 1]


def test_labels_do_not_depend_on_how_rows_are_cut(monkeypatch):
    rows = pa.table({"age": list(range(100)), "height": [100.0 + n for n in range(100)]})
    whole = make().label(rows)
    monkeypatch.setattr(module, "_BLOCK", 18)
    assert np.array_equal(make().label(rows), whole)
    assert make().label(rows.slice(0, 0)).tolist() == []


def test_rows_without_a_column_are_refused():
    with pytest.raises(InvalidQuery, match="height"):
        make().label(pa.table({"age": [3]}))


# --- the grid -----------------------------------------------------------------------------------


def test_the_grid_can_be_clustered_again():
    found = make().recluster(2, seed=1)
    expected = np.array([[100 / 6, 100 + 100 / 6], [500 / 6, 100 + 500 / 6]])
    assert found[np.argsort(found[:, 0])] == pytest.approx(expected, abs=6)
    assert make().recluster(40, n_init=2, seed=1).shape == (40, 2)
    assert np.array_equal(make().recluster(3, seed=7), make().recluster(3, seed=7))


def test_rows_are_drawn_from_the_cells():
    release = make()
    rows = release.rows(2000, seed=3)
    assert rows.column_names == ["age", "height"]
    assert rows["age"].type == pa.int64()
    age, height = (rows[name].to_numpy() for name in rows.column_names)
    assert age.min() >= 0
    assert age.max() <= 100
    low = np.mean((age <= 33) & (height <= 100 + 100 / 3 + 1e-9))
    estimates = GRID.estimates()
    assert low == pytest.approx(estimates[0] / estimates.sum(), abs=0.05)
    assert release.rows(seed=1).num_rows == round(GRID.total)
    assert release.rows(0).num_rows == 0
    assert release.rows(5, seed=2).equals(release.rows(5, seed=2))


def test_too_many_rows_are_refused():
    with pytest.raises(InvalidParameter, match="at most"):
        make().rows(10**9)
    huge = GridSynopsis((1, 1), np.array([10**12]), Fraction(1))
    with pytest.raises(InvalidParameter, match="at most"):
        make(synopsis=huge).rows()


def test_without_a_grid_there_is_nothing_to_draw_or_cluster():
    release = make(synopsis=None)
    with pytest.raises(InvalidQuery, match="no grid"):
        release.recluster(3)
    with pytest.raises(InvalidQuery, match="no grid"):
        release.rows(3)


# --- saving and describing ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"synopsis": None},
        {"synopsis": replace(GRID, records=None)},
        {"notes": ("chosen, since there are 2 columns",), "expected": {"cluster_count_95": 3.0}},
    ],
)
def test_it_loads_as_it_was_saved(changes):
    release = make(**changes)
    assert reload(release) == release


def test_columns_named_like_ours_are_renamed_in_the_tables():
    names = ("cluster", "cluster_", "noisy_count")
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 1]) for name in names))
    grid = GridSynopsis((1, 2, 1), np.array([3, 4]), Fraction(1))
    release = make(schema=schema, centers=np.array([[0.1, 0.2, 0.3]]), synopsis=grid)
    assert release.tables()["centers"].column_names == [
        "cluster",
        "cluster__",
        "cluster_",
        "noisy_count_",
    ]
    assert reload(release) == release


def test_tables_hold_centers_and_cells_in_the_owners_units():
    tables = make().tables()
    assert tables["centers"].to_pylist()[1] == {"cluster": 1, "age": 90.0, "height": 180.0}
    cell = tables["cells"].to_pylist()[5]
    assert cell["age"] == pytest.approx(50)
    assert cell["height"] == pytest.approx(500 / 6 + 100)
    assert (cell["cell_number"], cell["noisy_count"]) == (5, 0)
    assert set(make(synopsis=None).tables()) == {"centers"}


def test_the_summary_names_columns_grid_and_notes():
    text = make(notes=("two rounds",)).summary()
    assert text["centers"] == "3 in age, height"
    assert text["grid"].startswith("3 x 3 cells, about ")
    assert text["notes"] == "two rounds"
    assert set(make(synopsis=None).summary()) == {"centers"}


def test_releases_differ_if_anything_published_does():
    release = make()
    assert release == replace(release)
    assert release != replace(release, centers=POINTS + 0.5)
    assert release != replace(release, notes=("other",))
    assert release != replace(release, synopsis=replace(GRID, counts=COUNTS + 1))
    assert release != 7


@pytest.mark.parametrize(
    "changes",
    [
        {"centers": np.zeros((0, 2))},
        {"centers": np.array([[10.0, 120.0, 3.0]])},
        {"centers": np.array([10.0, 120.0])},
        {"centers": np.array([[10, 120]])},
        {"centers": np.array([[10.0, 99.0]])},
        {"centers": np.array([[np.nan, 120.0]])},
        {"synopsis": GridSynopsis((2,), np.array([1, 2]), Fraction(1))},
        {"expected": {"center_shift_95": float("inf")}},
        {"expected": {"center_shift_95": "0.1"}},
        {"notes": (3,)},
        {"schema": Schema((*SCHEMA.columns, column("sex", "category", values=["F", "M"])))},
        {"schema": Schema((column("sex", "category", values=["F", "M"]),))},
    ],
)
def test_what_no_method_publishes_is_refused(changes):
    with pytest.raises(InvalidParameter):
        make(**changes)


def test_tables_that_hold_no_numbers_are_corrupt():
    release = make()
    texts = pa.table({"cluster": [0], "age": ["x"], "height": [120.0]})
    gaps = pa.table({"cluster": [0], "age": [None], "height": [120.0]})
    for centers in (texts, gaps):
        with pytest.raises(DPublishError):
            KMeansRelease.from_parts(
                receipt=release.receipt,
                schema=release.schema,
                metadata=release.metadata(),
                tables={**release.tables(), "centers": centers},
            )
