"""A small table, its schema, and settings of every recipe, for the suites that run on all."""

import tomllib

import pyarrow as pa

from dpublish.data.schema_file import from_plain

SCHEMA_TEXT = """
[columns.age]
kind = "integer"
bounds = [0, 99]
bins = 10
branching = 2

[columns.sex]
kind = "category"
values = ["Female", "Male"]

[columns.height]
kind = "numeric"
bounds = [100, 220]
bins = 6
missing = "category"

[columns.town]
kind = "category"
values = ["Ost", "West", "Nord", "Sued"]
other = "Elsewhere"
missing = "drop"
"""
SCHEMA = from_plain(tomllib.loads(SCHEMA_TEXT))

SECRET = "zq-secret-marker"
ROWS = [
    {"age": 31, "sex": "Female", "height": 171.5, "town": "Ost", "note": SECRET},
    {"age": 8, "sex": "Male", "height": None, "town": "West", "note": SECRET},
    {"age": 250, "sex": "Male", "height": 1e300, "town": SECRET, "note": SECRET},
    {"age": 64, "sex": None, "height": float("nan"), "town": None, "note": SECRET},
    {"age": 31, "sex": "Female", "height": 160.0, "town": "Ost", "note": SECRET},
]

EXAMPLES = {
    "histogram": [
        {"columns": ("age", "sex")},
        {"columns": ("height", "town@0")},
        {"columns": ("age@2", "sex", "height", "town"), "threshold": 3},
        {"columns": ("age", "town"), "threshold": "auto"},
    ],
    "topc": [
        {"column": "town", "count": 2},
        {"column": "age", "count": 3, "with_counts": True},
        {"column": "town", "count": 2, "selection": "peel-exponential"},
        {"column": "age", "count": 2, "selection": "peel-permute-and-flip"},
        {"column": "age@2", "count": 2, "selection": "sparse-vector", "with_counts": True},
    ],
}
CASES = [(name, settings) for name, many in EXAMPLES.items() for settings in many]


def arrow_table(rows=ROWS):
    types = {"age": pa.int64(), "height": pa.float64()}
    names = ["age", "sex", "height", "town", "note"]
    return pa.table(
        {
            name: pa.array([row[name] for row in rows], types.get(name, pa.string()))
            for name in names
        }
    )
