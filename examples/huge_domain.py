"""Count a domain of billions of cells: only cells that reach a public threshold are published."""

import tomllib

import dpublish
from dpublish.data.schema_file import from_dict
from dpublish.datasets.census import SCHEMA, census

schema = from_dict(tomllib.loads(SCHEMA))
table = dpublish.open_table(census(50_000), schema)
columns = ("age", "sex", "education", "work", "hours", "region", "income")
method = dpublish.Histogram(columns=columns, threshold="auto")
release = method.release(table, budget=dpublish.Budget.seeded("1"), rng=dpublish.secure())

for name, text in release.summary().items():
    print(f"{name}: {text}")
print("five synthetic people:")
for row in release.rows(5, seed=1).to_pylist():
    print(" ", row)
