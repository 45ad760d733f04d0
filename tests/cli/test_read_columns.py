"""The command reads the columns that a method names, and looks for them before the debit."""

import os
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dpublish.cli import release as release_module
from dpublish.ledger.ledger import Ledger
from dpublish.publishing import table as publishing


def spent(folder):
    with Ledger(folder / "books.db") as books:
        return books.status("people").spent


@pytest.fixture
def sources(workdir, postgres_server, postgres_database):
    """The people, without their sex, as files and in a database."""
    ages = csv.read_csv(workdir / "people.csv").select(["age"])
    csv.write_csv(ages, workdir / "ages.csv")
    pq.write_table(ages, workdir / "ages.parquet")
    values = ", ".join(f"({age})" for age in ages["age"].to_pylist())
    postgres_server.execute(
        "CREATE TABLE ages (age int)",
        f"INSERT INTO ages VALUES {values}",
        database=postgres_database.rpartition("/")[2],
    )
    return {
        "csv": {"data": "ages.csv"},
        "parquet": {"data": "ages.parquet"},
        "postgresql": {"data": postgres_database, "table": "ages"},
        "sql": {"data": None, "sql": "SELECT age FROM 'ages.parquet'"},
    }


@pytest.mark.parametrize("kind", ["csv", "parquet", "postgresql", "sql"])
def test_a_release_needs_the_columns_that_it_names_and_no_others(release, run, sources, kind):
    done = release(**sources[kind], columns="age")
    assert done.code == 0, done.err
    answer = run("count", "out", "age in 30..39", "--confidence", "0.999999", "--json").json()
    assert answer["low"] <= 80 <= answer["high"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "postgresql", "sql"])
def test_a_lacking_column_is_named_before_the_debit(release, workdir, sources, kind):
    done = release(**sources[kind])
    assert done.code != 0
    assert "column 'sex' of " in done.err
    assert spent(workdir) == 0
    assert not (workdir / "out").exists()


def test_an_unknown_column_is_named_before_the_table_is_looked_for(release, workdir):
    done = release(columns="agee", data="nowhere.csv")
    assert "there is no column 'agee'; did you mean 'age'?" in done.err
    assert spent(workdir) == 0


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(shutil.which("java") is None and "CI" not in os.environ, reason="needs Java")
def test_spark_looks_for_the_columns_too(sources, workdir):
    words = [sys.executable, "-m", "dpublish", "release", "--method", "histogram"]
    words += ["--data", "ages.parquet", "--schema", "people.toml", "--epsilon", "1"]
    words += ["--ledger", "books.db", "--dataset", "people", "-o", "out", "--engine", "spark"]
    words += ["--spark-master", "local[1]"]

    def call(columns):
        return subprocess.run(
            [*words, "--columns", columns], cwd=workdir, capture_output=True, text=True, check=False
        )

    refused = call("age,sex")
    assert "column 'sex' of ages.parquet is not there" in refused.stderr
    assert spent(workdir) == 0
    done = call("age")
    assert done.returncode == 0, done.stderr


def test_an_interrupt_before_the_debit_speaks_of_no_debit(release, workdir, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(release_module, "publish", interrupted)
    done = release()
    assert done.err.strip() == "dpublish: interrupted"
    assert spent(workdir) == 0


def test_an_interrupt_while_the_ledger_is_asked_says_where_to_look(release, workdir, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(publishing, "_grant", interrupted)
    assert "interrupted (the ledger may have been debited: dpublish ledger show" in release().err


STREAM = """
unit = "user"

[columns.job]
kind = "category"
values = ["nurse", "smith"]

[columns.education]
kind = "ordinal"
values = ["school", "college"]
"""


@pytest.fixture
def stream(run, workdir):
    """Start a stream that counts jobs, with any words added."""
    (workdir / "jobs.toml").write_text(STREAM)

    def call(*words):
        return run(
            *("stream", "start", "jobs.stream", "--method", "per-snapshot", "--columns", "job"),
            *("--window", "3", "--schema", "jobs.toml", "--epsilon", "1", "--ledger", "books.db"),
            *("--dataset", "people", "-o", "jobs", *words),
        )

    return call


def test_a_stream_that_counts_jobs_takes_a_snapshot_without_education(stream, run, workdir):
    (workdir / "t1.csv").write_text("user,job\na,nurse\nb,smith\n")
    done = stream("--try", "t1.csv")
    assert done.code == 0, done.err
    assert "tried: t1.csv has the columns that are read; it is not published yet" in done.out
    done = run("stream", "next", "jobs.stream", "t1.csv")
    assert "published" in done.out, done.err


@pytest.mark.parametrize(
    ("header", "lacking"), [("user,jobs", "job"), ("job,education", "user"), ("", "header")]
)
def test_a_first_snapshot_that_lacks_a_column_stops_the_stream_unpaid(
    stream, workdir, header, lacking
):
    (workdir / "t1.csv").write_text(f"{header}\na,nurse\n")
    done = stream("--try", "t1.csv")
    assert done.code != 0
    assert lacking in done.err
    assert "nurse" not in done.err
    assert spent(workdir) == 0
    assert not (workdir / "jobs.stream").exists()


def test_a_first_snapshot_that_is_not_there_stops_the_stream_unpaid(stream, workdir):
    done = stream("--try", "t1.csv")
    assert "there is no file t1.csv" in done.err
    assert spent(workdir) == 0


def test_a_snapshot_that_lacks_a_counted_column_is_no_step(stream, run, workdir):
    assert stream().code == 0
    (workdir / "t1.csv").write_text("user,education\na,school\n")
    done = run("stream", "next", "jobs.stream", "t1.csv")
    assert "column 'job' of t1.csv is not there" in done.err
    assert run("stream", "status", "jobs.stream", "--json").json()["steps"] == 0
