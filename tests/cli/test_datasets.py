"""`dpublish datasets` writes tables that its schema fits, and a ledger to try with."""

import pytest
from pyarrow import csv, parquet

from dpublish import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.files import SAMPLES, STREAMS
from dpublish.ledger.ledger import Ledger


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - set(STREAMS)))
def test_the_schema_fits_the_table(name, run, tmp_path):
    assert run("datasets", name, "--records", 60).code == 0
    schema = Schema.read(tmp_path / f"{name}.toml")
    rows = csv.read_csv(tmp_path / f"{name}.csv")
    assert set(schema.names) <= set(rows.column_names)
    assert open_table(tmp_path / f"{name}.csv", schema).schema.names == schema.names
    assert run("schema", "check", f"{name}.toml").code == 0


def test_a_stream_is_a_folder_of_snapshots(run, tmp_path):
    assert "72 rows to hours/" in run("datasets", "taxis", "--records", 3).out
    assert len(list((tmp_path / "hours").glob("hour-*.csv"))) == 24


def test_a_ledger_is_kept_and_added_to(run, tmp_path):
    run("datasets", "census", "--records", 5, "--ledger", "books.db")
    assert "by levels" in run("datasets", "town", "--records", 5, "--ledger", "books.db").out
    again = run("datasets", "census", "--records", 5, "--ledger", "books.db", "--fresh")
    assert "already" in again.out
    with Ledger(tmp_path / "books.db") as ledger:
        assert ledger.datasets() == ("census", "town")


def test_parquet_and_the_same_seed(run, tmp_path):
    run("datasets", "census", "-o", "a.parquet", "--records", 9, "--seed", 4)
    run("datasets", "census", "-o", "b.parquet", "--records", 9, "--seed", 4)
    assert parquet.read_table(tmp_path / "a.parquet").equals(
        parquet.read_table(tmp_path / "b.parquet")
    )


def test_files_that_are_there_are_kept(run, tmp_path):
    (tmp_path / "census.toml").write_text("mine")
    refused = run("datasets", "census")
    assert refused.code == 1
    assert "census.toml exists" in refused.err
    assert (tmp_path / "census.toml").read_text() == "mine"
    assert not (tmp_path / "census.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("censsus",), "census"),
        (("census", "-o", "people.xlsx"), ".csv or .parquet"),
        (("census", "--records", "-1"), "records"),
        (("census", "-o", "file/people.csv"), "cannot write"),
    ],
)
def test_wrong_requests_say_what_to_do(words, said, run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    refused = run("datasets", *words)
    assert refused.code in (1, 3)
    assert said in refused.err


def test_without_a_name_all_are_listed(run):
    assert all(name in run("datasets").out for name in SAMPLES)
