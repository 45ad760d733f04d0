"""The examples of docs/how-to/read-a-release.md read a release without dpublish."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from dpublish import Budget, Histogram, Schema, column, open_table, seeded

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "read-a-release.md"
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("sex", "category", values=["Female", "Male"]),
    )
)
ROWS = pa.table({"age": [31, 64, 70, 99], "sex": ["Female", "Male", "Male", "Female"]})


def block(language):
    return re.search(rf"```{language}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]


@pytest.fixture
def wanted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    method = Histogram(columns=("age", "sex"))
    release = method.release(open_table(ROWS, SCHEMA), budget=Budget.seeded(1), rng=seeded(3))
    release.save("people")
    rows = release.tables()["counts"].to_pylist()
    return {
        sex: sum(r["noisy_count"] for r in rows if r["sex"] == sex and r["age_low"] >= 60)
        for sex in ("Female", "Male")
    }


def test_pandas(wanted, capsys):
    found = {}
    exec(block("python").replace("print(", "found = (").strip(), found)
    assert found["found"].to_dict() == wanted


def test_duckdb(wanted):
    assert dict(duckdb.sql(block("sql")).fetchall()) == wanted
