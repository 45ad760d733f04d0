"""Releases of each kind that the studio's pages treat in a way of their own, and snapshots."""

import pyarrow as pa
import pyarrow.parquet as pq

from dpublish import open_table, publish
from dpublish.core.folder.folder import sign_folder
from dpublish.core.folder.signing import SigningKey, create_key
from dpublish.core.registry import make_method
from dpublish.ledger.ledger import Ledger
from studio_world import CANARY, SCHEMA, write_files

METHODS = {
    "wards": ("histogram", {"columns": "ward,ill"}),
    "table": ("synth", {}),
    "means": ("statistics", {"measures": "mean(age),count", "by": "ward"}),
    "points": ("kmeans", {"columns": "age", "n_clusters": "3"}),
    "tree": ("diffpid3", {"target": "ill"}),
}


def make_release(folder, name, method, settings, schema=SCHEMA):
    """Publish a table of the world's folder, paid for by its ledger."""
    made = make_method(method, settings)
    source = folder / "visits.parquet"
    with Ledger(folder / "books.db") as ledger:
        table = open_table(source, schema, columns=made.reads(schema))
        output = folder / "releases" / name
        publish(made, table, output, ledger=ledger, dataset="visits", epsilon="1")
        table.close()


NAMES = tuple(METHODS)


def make_releases(folder):
    """Write the files of a studio and one release of each kind; sign one of them."""
    write_files(folder, cap="9")
    (folder / "releases").mkdir()
    for name, (method, settings) in METHODS.items():
        make_release(folder, name, method, settings)
    create_key(folder / "owner.key")
    sign_folder(folder / "releases" / "wards", SigningKey.read(folder / "owner.key"))


STREAM = {
    "dataset": "visits",
    "schema": "visits.toml",
    "method": "per-snapshot",
    "epsilon": "1",
    "set-columns": "ward",
    "set-horizon": "3",
    "set-trust_rows": "true",
}
"""What the form of a stream is sent with, but for its key, its name and its confirmation."""


def write_snapshots(folder, days=(1, 2, 3)):
    """Write a table for each of some days."""
    for day in days:
        wards = ["north"] * 100 * day + ["south"] * 40 + [CANARY]
        pq.write_table(pa.table({"ward": wards}), folder / f"2024-05-0{day}.parquet")
