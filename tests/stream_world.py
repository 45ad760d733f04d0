"""A small world for streams: a schema with users, snapshots as files, a ledger."""

import pyarrow as pa
import pyarrow.parquet as pq

from dpublish.data.schema import Schema, column
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.bd import BD
from dpublish.methods.streams.dsft import DSFT
from dpublish.methods.streams.per_snapshot import PerSnapshot

SCHEMA = Schema(
    (
        column("zone", "category", values=["north", "south"]),
        column("hour", "integer", bounds=[0, 3]),
    ),
    unit="user",
    name="rides",
)
METHOD = PerSnapshot(columns=("zone", "hour"), window=4)
ASKING = BD(columns=("zone", "hour"), window=4)
"""A method that decides by noisy comparisons whether to publish."""
THRESHOLD = DSFT(columns=("zone", "hour"), horizon=24, releases=5)
"""A method that keeps one noisy threshold from its first comparison to its end."""
EPSILON = "2"


def rows(number):
    """Snapshot `number`: 12 users, each with one ride."""
    users = range(12)
    return pa.table(
        {
            "user": [f"u{user}" for user in users],
            "zone": ["north" if (user + number) % 3 else "south" for user in users],
            "hour": [(user * number) % 4 for user in users],
        }
    )


def write_snapshots(folder, count):
    folder.mkdir()
    for number in range(1, count + 1):
        pq.write_table(rows(number), folder / f"t{number}.parquet")


def make_ledger(folder):
    with Ledger.create(folder / "books.db") as ledger:
        ledger.add("rides", cap="5")


def arguments(folder, **changes):
    """What a start in `folder` is called with, besides path, method and schema."""
    given = {
        "ledger": folder / "books.db",
        "dataset": "rides",
        "epsilon": EPSILON,
        "output": folder / "out",
    }
    return given | changes
