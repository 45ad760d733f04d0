"""Benchmarks: found where they are, described by schemas that fit them, simulated elsewhere."""

import pytest

from dpublish.data.check import check_table
from dpublish.datasets.benchmarks import BENCHMARKS, VARIABLE, find_data_folder
from dpublish.datasets.loans import loans
from dpublish.errors import InvalidParameter, UnreadableData

MADE_UP = [name for name, benchmark in BENCHMARKS.items() if benchmark.file is None]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_schema_fits_its_table(name, real_data):
    benchmark = BENCHMARKS[name]
    if benchmark.missing_file(real_data) is not None:
        pytest.skip("its file is not here")
    schema, rows = benchmark.schema(real_data), benchmark.rows(real_data)
    assert rows.num_rows == benchmark.records
    assert benchmark.target == schema.names[-1]
    assert [finding for finding in check_table(schema, rows) if finding.is_serious] == []
    assert all(c.height >= 1 for c in schema.columns)


@pytest.mark.parametrize("name", ["bank", "census", *MADE_UP])
def test_a_schema_without_trees_of_its_own_needs_no_folder(name):
    schema = BENCHMARKS[name].schema(None)
    assert BENCHMARKS[name].target in schema.names


def test_a_file_that_is_not_there_is_named():
    assert BENCHMARKS["adult"].missing_file(None) == "adult_ten_folds.parquet"
    assert [BENCHMARKS[name].missing_file(None) for name in MADE_UP] == [None]


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
