"""`dpublish export`."""

import csv
import json

import pytest

from dpublish.data.schema_file import dumps_toml
from dpublish.methods.streams.folder import load_stream
from stream_world import SCHEMA as RIDES
from stream_world import make_ledger, write_snapshots


@pytest.fixture
def published(release, workdir):
    assert release(epsilon="1").code == 0
    return workdir


def test_tables_are_written_beside_the_release(run, published):
    done = run("export", "out", "--to", "csv")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"wrote counts (20 rows) to {published / 'out-csv'}\n"
    header = (published / "out-csv" / "counts.csv").read_text().splitlines()[0]
    assert header == (
        "cell_number,age,age_low,age_high,sex,noisy_count,count_low,count_high,estimated_count"
    )
    assert run("verify", "out").code == 0


def test_json_says_what_was_written(run, published):
    done = run("export", "out", "--to", "json", "-o", "tables", "--json")
    assert done.json() == {"output": "tables", "format": "json", "tables": {"counts": 20}}
    assert len(json.loads((published / "tables" / "counts.json").read_text())["records"]) == 20


@pytest.fixture
def stream(run, tmp_path):
    """A stream that was started, and snapshots that wait for it."""
    make_ledger(tmp_path)
    (tmp_path / "rides.toml").write_text(dumps_toml(RIDES))
    write_snapshots(tmp_path / "in", 3)
    options = ["--method", "per-snapshot", "--columns", "zone,hour", "--window", "4"]
    options += ["--schema", "rides.toml", "--epsilon", "2", "--ledger", "books.db"]
    done = run("stream", "start", "rides.stream", *options, "--dataset", "rides", "-o", "out")
    assert done.code == 0, done.err
    return tmp_path


@pytest.mark.parametrize("to", ["csv", "json", "parquet", "xlsx"])
def test_all_steps_of_a_stream_are_one_table(run, stream, to):
    for number in (1, 2, 3):
        assert run("stream", "next", "rides.stream", f"in/t{number}.parquet").code == 0
    done = run("export", "out", "--to", to, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json()["tables"] == {"counts": 24, "steps": 3}
    if to == "csv":
        with (stream / "out-csv" / "counts.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        found = load_stream(stream / "out")
        for time in found.times:
            counts = [int(row["noisy_count"]) for row in rows if row["time"] == time]
            assert counts == found.table(time)["noisy_count"].to_pylist()
        assert {row["time"] for row in rows} == {"t1", "t2", "t3"}
    assert run("verify", "out").code == 0


def test_a_stream_without_steps_has_a_list_without_rows(run, stream):
    assert run("export", "out", "--to", "csv", "--json").json()["tables"] == {"steps": 0}
    header = (stream / "out-csv" / "steps.csv").read_text().split("\n")[0]
    assert header.startswith("number,time,action,epsilon")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["out"], "--to is missing"),
        (["out", "--to", "excel"], "not one of"),
        (["nothing", "--to", "csv"], "nothing is not there"),
        (["people.csv", "--to", "csv"], "not a release folder"),
        (["out", "--to", "csv", "-o", "out"], "exists already"),
        (["out", "--to", "csv", "-o", "no/where"], "is not a folder; create it first"),
        (["out", "--to", "csv", "--table", "cells"], "there is no table 'cells'"),
    ],
)
def test_wrong_requests_are_told_in_one_line(run, published, words, message):
    done = run("export", *words)
    assert done.code in (1, 3)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (published / "out-csv").exists()
