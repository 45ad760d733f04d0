"""A folder with a table, a schema and a ledger, and a way to run the command in it."""

import json
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyarrow import csv

from dpublish.cli import main
from dpublish.ledger.ledger import Ledger

SCHEMA = """
[columns.age]
kind = "integer"
bounds = [0, 99]
bins = 10

[columns.sex]
kind = "category"
values = ["Female", "Male"]
"""


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in `tmp_path`; give its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=left.value.code, out=out, err=err, json=lambda: json.loads(out))

    return call


@pytest.fixture
def workdir(tmp_path):
    (tmp_path / "people.toml").write_text(SCHEMA)
    rows = {
        "age": [31, 8, 64, 99, 31] * 40,
        "sex": ["Female", "Male", "Male", "Female", "Male"] * 40,
    }
    csv.write_csv(pa.table(rows), tmp_path / "people.csv")
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap="2")
    return tmp_path


@pytest.fixture
def release(run, workdir):
    """Publish a histogram with any option replaced."""

    def call(output="out", **changes):
        options = {
            "method": "histogram",
            "columns": "age,sex",
            "data": "people.csv",
            "schema": "people.toml",
            "epsilon": "1",
            "ledger": "books.db",
            "dataset": "people",
        }
        options |= {name.replace("_", "-"): value for name, value in changes.items()}
        words = [w for k, v in options.items() if v is not None for w in (f"--{k}", v)]
        return run("release", *words, "-o", output)

    return call
