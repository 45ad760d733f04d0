"""`dpublish export`."""

import json

import pytest


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
