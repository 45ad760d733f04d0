"""A small world for interactive runs: a table whose counts are known, a schema, a ledger."""

import pyarrow as pa
import pyarrow.parquet as pq

from dpublish.data.schema import Schema, column
from dpublish.ledger.ledger import Ledger
from dpublish.publishing.svt.run import InteractiveRun

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("ward", "category", values=["north", "south", "west"]),
    ),
    name="visits",
)
AGES = range(90)
"""Thirty visits of each age: `count_from(age)` of them are at least so old."""
QUERIES = [f"age >= {age}" for age in (85, 60, 80, 30, 75, 10, 70, 65)]
THRESHOLD = 600


def count_from(age):
    return 30 * (90 - age)


def write_table(folder, extra=0):
    ages = [age for age in AGES for _ in range(30)] + [50] * extra
    wards = ["north" if number % 3 else "south" for number in range(len(ages))]
    pq.write_table(pa.table({"age": ages, "ward": wards}), folder / "visits.parquet")


def make_world(folder, cap="5"):
    write_table(folder)
    with Ledger.create(folder / "books.db") as ledger:
        ledger.add("visits", cap=cap)


def start(folder, **changes):
    """Start a run that the ledger pays for, or a seeded one if a seed is given."""
    given = {"epsilon": 1, "max_positives": 3, "threshold": THRESHOLD}
    if changes.get("seed") is None:
        given |= {"ledger": folder / "books.db", "dataset": "visits"}
    return InteractiveRun.start(
        folder / "run", folder / "visits.parquet", SCHEMA, **given | changes
    )
