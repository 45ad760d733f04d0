"""Published clusters of cells: what they say of new rows, and what they refuse to be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import DPublishError, InvalidParameter, InvalidQuery, InvalidType
from dpublish.methods.wavecluster.privthr import PrivTHR
from dpublish.methods.wavecluster.released import WaveClusterRelease, WaveGrid
from dpublish.methods.wavecluster.report import section
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 80], missing="drop"),
        column("<height>", "numeric", bounds=[100, 200], missing="category"),
    )
)
GRID = WaveGrid(
    box=Box.of(SCHEMA),
    sizes=(4, 4),
    shape=(2, 2),
    owners=((0, 0, 1, 1), (1, 0, 0, 1)),  # the second axis wraps around
    wavelet="db2",
    levels=1,
    percentile=Fraction(1, 10),
    adjacency="full",
)
LABELS = np.array([[0, -1], [-1, 1]])
COUNTS = np.arange(16.0) - 2


def make(**changes):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="privthr",
        settings={},
        budget=budget,
        neighbors=AddRemoveRecord(),
        rng=seeded(1),
    )
    settings = {
        "receipt": receipt,
        "schema": SCHEMA,
        "grid": GRID,
        "counts": COUNTS,
        "labels": LABELS,
        "noise_rate": Fraction(1, 2),
        "chosen": 2,
        "expected": {"one_cell_95": 6.0},
    }
    return WaveClusterRelease(**{**settings, **changes})


def reload(release, **changes):
    tables = {**release.tables(), **changes.pop("tables", {})}
    return WaveClusterRelease.from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata={**release.metadata(), **changes},
        tables=tables,
    )


def test_a_cell_has_the_label_of_the_coefficient_it_belongs_to():
    expected = [[-1, 0, 0, -1]] * 2 + [[1, -1, -1, 1]] * 2
    assert make().cell_labels.reshape(4, 4).tolist() == expected
    assert (make().clusters, make().significant) == (2, 2)


def test_rows_are_labeled_by_look_up_and_missing_ones_get_none():
    rows = pa.table(
        {
            "age": [5, 5, 75, 75, -9, None, 5],
            "<height>": [140.0, 110.0, 110.0, 140.0, 150.5, 140.0, None],
        }
    )
    assert make().label(rows).tolist() == [0, -1, 1, -1, 0, -1, -1]
    assert make().label(rows.to_pandas()).tolist() == make().label(rows).tolist()
    with pytest.raises(InvalidQuery, match="age"):
        make().label(rows.drop(["age"]))


def test_rows_are_labeled_from_a_file_too(tmp_path):
    rows = pa.table({"<height>": [140.0, 110.0, None], "age": [5, 75, 5]})
    csv.write_csv(rows, tmp_path / "new.csv")
    assert make().label(str(tmp_path / "new.csv")).tolist() == make().label(rows).tolist()
    assert make().label(tmp_path / "new.csv").tolist() == make().label(rows).tolist()
    with pytest.raises(InvalidType, match="type int"):
        make().label(3)


def test_masses_add_up_the_noisy_counts_of_each_cluster():
    cells = make().cell_labels
    assert make().masses().tolist() == [COUNTS[cells == k].sum() for k in (0, 1)]


def test_no_cluster_is_a_release_too():
    none = make(labels=np.full((2, 2), -1), chosen=0)
    assert none.clusters == none.significant == 0
    assert none.masses().size == 0
    assert none.tables()["clusters"].num_rows == 0
    assert reload(none) == none
    drawn = section(none, True)
    assert drawn.listings[0].caption == "There are no clusters."
    assert none.label(pa.table({"age": [1], "<height>": [150.0]})).tolist() == [-1]


def test_it_loads_as_it_was_saved():
    for release in (make(), make(threshold=2.5, chosen=None, noise_rate=None)):
        assert reload(release) == release
    assert make() != make(labels=np.full((2, 2), -1))
    assert make() != make(counts=COUNTS + 1)
    assert make() != make(threshold=1.0)


def test_rows_are_drawn_from_the_cells_that_hold_some():
    counts = np.zeros(16)
    counts[5], counts[10] = 30.0, 10.0
    release = make(counts=counts)
    rows = release.rows(seed=1)
    assert rows.num_rows == 40
    assert rows.schema.types == [pa.int64(), pa.float64()]
    numbers = GRID.locate({n: rows[n].to_numpy().astype(float) for n in rows.column_names}, 40)
    assert np.bincount(numbers, minlength=16)[[5, 10]].sum() >= 36  # ages are rounded
    assert release.rows(7, seed=1).num_rows == 7
    assert release.rows(7, seed=1) == release.rows(7, seed=1)
    with pytest.raises(InvalidParameter):
        make(counts=counts * 1e9).rows()


def test_rows_of_a_grid_without_records_are_none_or_drawn_evenly():
    empty = make(counts=np.full(16, -3.0))
    assert empty.rows().num_rows == 0
    assert empty.rows(50, seed=1).num_rows == 50


@pytest.mark.parametrize(
    "changes",
    [
        {"counts": COUNTS[:-1]},
        {"counts": COUNTS.astype(int)},
        {"counts": np.where(COUNTS > 0, np.nan, COUNTS)},
        {"labels": LABELS * 2},
        {"labels": LABELS.astype(np.int32)},
        {"labels": LABELS.ravel()},
        {"labels": np.array([[-2, 0], [0, 0]])},
        {"noise_rate": Fraction(0)},
        {"threshold": float("inf")},
        {"chosen": 2.0},
        {"expected": {"one_cell_95": float("nan")}},
        {"schema": replace(SCHEMA, columns=SCHEMA.columns[::-1])},
    ],
)
def test_what_no_method_would_publish_is_refused(changes):
    with pytest.raises(InvalidParameter):
        make(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": (4, 2)},
        {"sizes": (4,)},
        {"sizes": (4, 10**9)},
        {"shape": (2, 5)},
        {"shape": (2, 0)},
        {"owners": ((0, 0, 1, 1), (0, 0, 1, 2))},
        {"owners": ((0, 0, 1, 1), (0, 0, 1, -1))},
        {"owners": ((0, 0, 1, 1), (0, 0, 1, 1.0))},
        {"owners": ((0, 0, 1, 1),)},
        {"levels": 0},
        {"percentile": Fraction(1)},
        {"wavelet": 3},
    ],
)
def test_a_grid_that_does_not_fit_is_refused(changes):
    with pytest.raises(InvalidParameter):
        replace(GRID, **changes)


@pytest.mark.parametrize("numbers", [[3, 0], [0, 0], [-1, 3], [0, 4]])
def test_coefficients_out_of_order_or_outside_are_refused(numbers):
    table = pa.table({"coefficient_number": numbers, "cluster": [0, 1]})
    with pytest.raises(DPublishError):
        reload(make(), tables={"coefficients": table})


def test_a_column_that_the_tables_use_themselves_is_refused():
    schema = Schema((column("cluster", "numeric", bounds=[0, 1]),))
    table = open_table(pa.table({"cluster": [0.5]}), schema)
    with pytest.raises(InvalidParameter, match="rename"):
        PrivTHR().release(table, budget=Budget.seeded(1), rng=seeded(1))


def test_the_report_shows_the_clusters_in_colors_and_escapes_names():
    shown = section(make(), True)
    assert len(shown.figures) == 1
    assert "hsl(" in shown.figures[0].svg
    assert "&lt;height&gt;" in shown.figures[0].svg
    assert "<height>" not in shown.figures[0].svg
    assert len(shown.listings[0].rows) == 2
    assert not section(make(), False).figures


def test_the_report_says_which_coefficients_make_clusters_in_plain_numbers():
    haar = replace(GRID, wavelet="haar", owners=((0, 0, 1, 1), (0, 0, 1, 1)))
    release = make(grid=haar, threshold=4.000000000000001)
    (listing,) = section(release, False).listings
    assert "coefficients of 4 or more: 8 records in 2 x 2 cells." in listing.caption
    assert release.metadata()["threshold"] == 4.000000000000001
    other = section(make(threshold=2.5000000000000004), False).listings[0].caption
    assert "of 2.5 or more, in the scale of the wavelet db2." in other
    none = make(grid=haar, threshold=1.0, labels=np.full((2, 2), -1), chosen=0)
    assert "There are no clusters. " in section(none, False).listings[0].caption
    assert "coefficients" not in section(make(), False).listings[0].caption


def test_the_words_of_a_picture_say_where_the_clusters_are():
    (figure,) = section(make(), True).figures
    assert "2 clusters in a grid of 4 x 4 cells." in figure.alt
    assert "1: 38 records, age 50 to 70, <height> 112.5 to 187.5" in figure.alt
    (empty,) = section(make(labels=np.full((2, 2), -1), chosen=0), True).figures
    assert empty.alt.endswith("No cluster in a grid of 4 x 4 cells.")


@pytest.mark.parametrize(("dimensions", "figures"), [(1, 1), (2, 1), (3, 3), (5, 3)])
def test_more_columns_are_shown_by_pairs(dimensions, figures):
    names = [f"c{i}" for i in range(dimensions)]
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 1]) for name in names))
    table = open_table(pa.table({name: [0.1, 0.1, 0.9] * 30 for name in names}), schema)
    release = PrivTHR(cells=4).release(table, budget=Budget.seeded(9), rng=seeded(1))
    shown = section(release, True)
    assert len(shown.figures) == figures
    assert all("hsl(" in figure.svg for figure in shown.figures)
