"""Ends of bins of dates and times are saved, loaded and described as what they are."""

import json
from datetime import date, datetime

import frictionless
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

SCHEMA = Schema(
    (
        column("hour", "datetime", bounds=["2024-01-01", "2024-01-02"], bins="hour"),
        column("day", "date", bounds=["2024-01-01", "2024-03-31"], bins="month"),
        column("cost", "numeric", bounds=[0, 9], bins=3, missing="category"),
        column("sex", "category", values=["F", "M"]),
    )
)
ROWS = pa.table(
    {
        "hour": [f"2024-01-01T{hour:02}:30" for hour in range(24)],
        "day": [f"2024-{month:02}-15" for month in (1, 2, 3)] * 8,
        "cost": [1.0, None, 8.0, 5.0] * 6,
        "sex": ["F", "M"] * 12,
    }
)


def saved(name, settings, folder):
    release = make_method(name, settings).release(
        open_table(ROWS, SCHEMA), budget=Budget.seeded(2), rng=seeded(1)
    )
    return release, release.save(folder / "out")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("histogram", {"columns": ("hour", "day")}),
        ("histogram", {"columns": ("hour", "sex"), "threshold": 1}),
        ("statistics", {"measures": ("count",), "by": ("hour",)}),
        ("synth", {}),
        ("marginals", {}),
        ("privbayes", {}),
        ("topk", {"column": "hour", "count": 3}),
        ("privelet", {"columns": ("hour", "sex")}),
    ],
)
def test_dates_and_times_survive_a_folder(name, settings, tmp_path):
    release, folder = saved(name, settings, tmp_path)
    again = load(folder)
    assert again == release
    found = frictionless.validate(str(folder / "datapackage.json"))
    assert [e.message for part in (found, *found.tasks) for e in part.errors] == []
    kinds = {
        field["type"]
        for resource in json.loads((folder / "datapackage.json").read_text())["resources"]
        for field in resource["schema"]["fields"]
    }
    assert "datetime" in kinds


def test_ends_in_the_file_are_the_first_and_the_last_of_the_bin(tmp_path):
    _, folder = saved("histogram", {"columns": ("hour", "day")}, tmp_path)
    table = pq.read_table(folder / "data" / "counts.parquet")
    first = table.slice(4, 1).to_pylist()[0]
    assert (first["hour_low"], first["hour_high"]) == (
        datetime(2024, 1, 1, 1),
        datetime(2024, 1, 1, 1, 59, 59),
    )
    assert (first["day_low"], first["day_high"]) == (date(2024, 2, 1), date(2024, 2, 29))
    assert load(folder).count("hour >= 2024-01-01T12:00").value is not None
