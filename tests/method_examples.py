"""A small table with a secret, for the suites that run on all methods."""

import pyarrow as pa

from dpublish.auditing.examples import EXAMPLES, RULE, SCHEMA, SCHEMA_TEXT

__all__ = ["CASES", "EXAMPLES", "ROWS", "RULE", "SCHEMA", "SCHEMA_TEXT", "SECRET", "arrow_table"]

SECRET = "zq-secret-marker"
ROWS = [
    {"age": 31, "sex": "Female", "height": 171.5, "town": "Ost", "note": SECRET},
    {"age": 8, "sex": "Male", "height": None, "town": "West", "note": SECRET},
    {"age": 250, "sex": "Male", "height": 1e300, "town": SECRET, "note": SECRET},
    {"age": 64, "sex": None, "height": float("nan"), "town": None, "note": SECRET},
    {"age": 31, "sex": "Female", "height": 160.0, "town": "Ost", "note": SECRET},
]

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
