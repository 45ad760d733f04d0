"""Benchmarks: found where they are, described by schemas that fit them, simulated elsewhere."""

import numpy as np
import pytest

from dpublish.data.check import check_table
from dpublish.datasets.benchmarks import (
    ALL_BENCHMARKS,
    BENCHMARKS,
    VARIABLE,
    find_data_folder,
)
from dpublish.datasets.labeled_points import labeled_points
from dpublish.datasets.loans import loans
from dpublish.errors import InvalidParameter, UnreadableData

MADE_UP = [name for name, benchmark in ALL_BENCHMARKS.items() if benchmark.file is None]


@pytest.mark.parametrize("name", ALL_BENCHMARKS)
def test_a_schema_fits_its_table(name, real_data):
    benchmark = ALL_BENCHMARKS[name]
    if benchmark.missing_file(real_data) is not None:
        pytest.skip("its file is not here")
    schema, rows = benchmark.schema(real_data), benchmark.rows(real_data)
    assert rows.num_rows == benchmark.records
    assert benchmark.target == schema.names[-1]
    assert [finding for finding in check_table(schema, rows) if finding.is_serious] == []
    assert all(c.height >= 1 for c in schema.columns)


@pytest.mark.parametrize("name", ["bank", "census", *MADE_UP])
def test_a_schema_without_trees_of_its_own_needs_no_folder(name):
    schema = ALL_BENCHMARKS[name].schema(None)
    assert ALL_BENCHMARKS[name].target in schema.names


def test_a_file_that_is_not_there_is_named():
    assert BENCHMARKS["adult"].missing_file(None) == "adult_ten_folds.parquet"
    assert {ALL_BENCHMARKS[name].missing_file(None) for name in MADE_UP} == {None}


def test_a_table_without_its_taxonomies_is_not_complete(tmp_path):
    (tmp_path / "adult_ten_folds.parquet").touch()
    assert BENCHMARKS["adult"].missing_file(tmp_path) == "adult_taxonomies.json"
    with pytest.raises(UnreadableData, match="Parquet"):
        BENCHMARKS["adult"].rows(tmp_path)
    (tmp_path / "adult_taxonomies.json").write_text("[1]")
    with pytest.raises(UnreadableData, match="object"):
        BENCHMARKS["adult"].schema(tmp_path)


def test_the_folder_is_the_named_one_or_that_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find_data_folder() is None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert find_data_folder() == tmp_path
    (tmp_path / "other").mkdir()
    assert find_data_folder(tmp_path / "other") == tmp_path / "other"
    with pytest.raises(UnreadableData, match="no data folder"):
        find_data_folder(tmp_path / "nowhere")


def test_loans_are_simulated_from_their_seed_and_fit_their_schema():
    assert loans(50) == loans(50)
    assert loans(50) != loans(50, seed=1)
    assert loans(0).num_rows == 0
    assert check_table(BENCHMARKS["simulated"].schema(None), loans(2_000)) == []
    with pytest.raises(InvalidParameter):
        loans(-1)


def shares(name, folder):
    """Return the part of each class."""
    benchmark = ALL_BENCHMARKS[name]
    classes = benchmark.rows(folder)[benchmark.target].to_pandas().astype(str)
    return classes.value_counts(normalize=True).round(3).to_dict()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adult-all", {"<=50K": 0.761, ">50K": 0.239}),
        ("acs", {">25K": 0.52, "<=25K": 0.48}),
        ("privbayes-acs", {"0": 0.519, "1": 0.481}),
        ("bank-poutcome", {"unknown": 0.817, "failure": 0.108, "other": 0.041, "success": 0.033}),
        (
            "census-school",
            {"Not in universe": 0.936, "High school": 0.035, "College or university": 0.028},
        ),
        (
            "census-employment",
            {
                "Not asked": 0.618,
                "Employed": 0.231,
                "Not in labor force": 0.134,
                "Unemployed": 0.016,
            },
        ),
    ],
)
def test_classes_are_as_frequent_as_their_public_tables_say(name, expected, real_data):
    if ALL_BENCHMARKS[name].missing_file(real_data) is not None:
        pytest.skip("its file is not here")
    assert shares(name, real_data) == expected


def test_what_gives_the_class_away_is_not_among_the_predictors():
    acs, employment = (ALL_BENCHMARKS[name].schema(None) for name in ("acs", "census-employment"))
    assert not {"PINCP", "PINCP_DECILE", "POVPIP", "PWGTP", "WGTP"} & set(acs.names)
    assert "reason_for_unemployment" not in employment.names
    assert "reason_for_unemployment" in ALL_BENCHMARKS["census-school"].schema(None).names


@pytest.mark.parametrize("classes", [2, 5])
def test_points_of_every_seed_are_of_the_same_classes(classes):
    assert labeled_points(50, classes=classes) == labeled_points(50, classes=classes)
    one, two = (labeled_points(4_000, seed, classes=classes).to_pandas() for seed in (1, 2))
    assert not one.equals(two)
    means = [table.groupby("label").mean() for table in (one, two)]
    assert np.abs(means[0] - means[1]).to_numpy().max() < 0.3
    apart = means[0].max() - means[0].min()
    assert apart[:8].max() > 1  # the first columns decide or follow
    assert apart[8:].max() < 0.3  # the others tell nothing
    assert one["label"].value_counts(normalize=True).max() < 1.2 / classes
    with pytest.raises(InvalidParameter):
        labeled_points(-1)
