"""Publish the best-selling items of baskets, hiding whole baskets however full they are."""

import tomllib

import dpublish
from dpublish.data.schema_file import from_dict
from dpublish.datasets.baskets import baskets, baskets_schema

schema = from_dict(tomllib.loads(baskets_schema()))
table = dpublish.open_table(baskets(5_000), schema)
method = dpublish.TopK(column="item", count=5, with_counts=True)

# A budget made by hand is not accounted for by any ledger, and the release says so.
release = method.release(table, budget=dpublish.Budget.seeded("1"), rng=dpublish.secure())
print(*release.receipt.stamps, sep="\n")
print("hidden:", release.receipt.neighbors.describe())
for rank, (value, count) in enumerate(zip(release.values, release.counts, strict=True), start=1):
    print(f"{rank}. {value}  about {count:,}")
print(release.summary()["error"])
