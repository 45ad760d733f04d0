"""Where the command reads rows from, and where its ledger is: files, databases, Spark."""

import os
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dpublish.core.folder.folder import load
from dpublish.ledger.ledger import Ledger

SURE = ("--confidence", "0.999999", "--json")


def counts_80(run, folder):
    """Check that a release holds 80 people in their thirties."""
    answer = run("count", folder, "age in 30..39", *SURE).json()
    return answer["low"] <= 80 <= answer["high"] and answer["high"] - answer["low"] < 80


@pytest.fixture
def clinic(postgres_server, postgres_database, workdir):
    """A database that has the same people."""
    name = postgres_database.rpartition("/")[2]
    people = csv.read_csv(workdir / "people.csv").to_pylist()
    values = ", ".join(f"({row['age']}, '{row['sex']}')" for row in people)
    postgres_server.execute(
        "CREATE TABLE people (age int, sex text)",
        f"INSERT INTO people VALUES {values}",
        database=name,
    )
    return postgres_database


def spent(ledger):
    with Ledger(ledger) as books:
        return books.status("people").spent


def test_rows_of_a_database_are_published(release, run, clinic):
    done = release(data=clinic, table="people")
    assert done.code == 0, done.err
    assert counts_80(run, "out")


def test_a_query_of_a_database_is_published(release, run, clinic):
    done = release(data=clinic, sql="SELECT age, sex FROM people WHERE sex = 'Male'")
    assert done.code == 0, done.err
    answer = run("count", "out", "sex = Male", *SURE).json()
    assert answer["low"] <= 120 <= answer["high"]


def test_a_missing_table_is_refused_before_the_debit(release, clinic, workdir):
    done = release(data=clinic, table="visits")
    assert done.code != 0
    assert "visits" in done.err
    assert "people" in done.err
    assert spent(workdir / "books.db") == 0


def test_a_password_on_the_command_line_is_refused_and_not_repeated(release, clinic, workdir):
    done = release(data=clinic.replace("@", ":hunter2@"), table="people")
    assert done.code != 0
    assert "hunter2" not in done.err + done.out
    assert "PGPASSFILE" in done.err
    assert spent(workdir / "books.db") == 0


def test_a_shared_ledger_pays(release, run, postgres_database, workdir):
    assert run("ledger", "create", postgres_database).code == 0
    assert run("ledger", "add", postgres_database, "people", "--cap", "1.5").code == 0
    done = release(ledger=postgres_database)
    assert done.code == 0, done.err
    assert "left for people: 0.5" in done.out
    assert "0.5" in run("ledger", "show", postgres_database).out
    refused = release(output="more", ledger=postgres_database)
    assert refused.code != 0
    assert not (workdir / "more").exists()
    verified = run("ledger", "verify", postgres_database, "--release", "out")
    assert verified.code == 0, verified.err
    assert "the chain is whole" in verified.out


def test_the_schema_of_a_database_table_is_drafted_and_checked(run, clinic, workdir):
    drafted = run("schema", "draft", clinic, "--table", "people", "-o", "draft.toml")
    assert drafted.code == 0, drafted.err
    assert f"schema check draft.toml {clinic} --table people" in drafted.out
    assert "[columns.age]" in (workdir / "draft.toml").read_text()
    checked = run("schema", "check", "people.toml", clinic, "--table", "people")
    assert checked.code == 0, checked.err
    assert "the table fits the schema" in checked.out


def test_the_number_of_cores_is_chosen(release, run):
    assert release(threads="1").code == 0
    assert counts_80(run, "out")
    assert release(output="none", threads="0").code != 0
    assert release(output="none", threads="many").code != 0


def test_rows_must_be_named(release):
    assert "--data" in release(data=None).err


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"spark_master": "local[2]"}, "--engine spark"),
        ({"engine": "spark", "sql": "SELECT 1"}, "--table"),
        ({"engine": "spark", "threads": "2"}, "--spark-master"),
        ({"engine": "spark", "data": None}, "--table"),
        ({"engine": "spark"}, "reads Parquet"),
        ({"engine": "spark", "data": "none.parquet"}, "there is no file"),
        ({"engine": "spark", "data": "postgresql://host/db"}, "without Spark"),
        ({"engine": "spark", "data": ".", "spark_set": "memory"}, "spark.name=value"),
        ({"engine": "dask"}, "spark"),
    ],
)
def test_options_that_do_not_go_together_are_refused(release, workdir, changes, word):
    done = release(**changes)
    assert done.code != 0
    assert word in done.err
    assert spent(workdir / "books.db") == 0


@pytest.mark.xdist_group("spark")
def test_a_release_runs_on_spark(workdir):
    if shutil.which("java") is None:
        if os.environ.get("CI"):
            pytest.fail("Java is not installed on this machine")
        pytest.skip("Java is not installed on this machine")
    rows = csv.read_csv(workdir / "people.csv")
    (workdir / "parts").mkdir()
    for number in range(2):
        part = rows.slice(100 * number, 100)
        pq.write_table(part, workdir / "parts" / f"part-{number}.parquet")
    command = (
        f"{sys.executable} -m dpublish release --method histogram --columns age,sex "
        "--engine spark --spark-master local[2] --data parts/part-*.parquet --schema people.toml "
        "--epsilon 1 --ledger books.db --dataset people -o out"
    )
    done = subprocess.run(
        command.split(), cwd=workdir, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert load(workdir / "out").count("age in 30..39").value == pytest.approx(80, abs=40)
    assert spent(workdir / "books.db") == 1
