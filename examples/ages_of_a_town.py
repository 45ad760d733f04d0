"""Publish a town's ages, count a range of them, and see the confidence interval."""

import tempfile
import tomllib
from pathlib import Path

import dpublish
from dpublish.data.schema_file import from_dict
from dpublish.datasets.census import SCHEMA, census

folder = Path(tempfile.mkdtemp())
schema = from_dict(tomllib.loads(SCHEMA))
table = dpublish.open_table(census(20_000), schema)

with dpublish.Ledger.create(folder / "books.db") as ledger:
    ledger.add("town", cap="1")
    method = dpublish.Histogram(columns=("age", "sex"))
    release = dpublish.publish(
        method, table, folder / "ages", ledger=ledger, dataset="town", epsilon="0.5"
    )
    print("left of the cap:", ledger.status("town").left)

print(release.receipt.guarantee())
for label, count in zip(*dpublish.load(folder / "ages").marginal("age")[:2], strict=True):
    print(f"{label:>8} {count:6,} {'#' * max(0, count // 60)}")
print("women of 30 to 39:", release.count("age in 30..39 and sex = Female"))
