"""Count a domain of billions of cells: only cells that reach a public threshold are published."""

import tomllib

import dpublish
from dpublish.data.schema_file import from_plain
from dpublish.datasets.census import SCHEMA, census

schema = from_plain(tomllib.loads(SCHEMA))
table = dpublish.open_table(census(50_000), schema)
columns = ("age", "sex", "education", "work", "hours", "region", "income")
recipe = dpublish.NoisyHistogram(columns=columns, threshold="auto")
release = recipe.release(table, budget=dpublish.Budget("1"), rng=dpublish.secure())

for name, text in release.summary().items():
    print(f"{name}: {text}")
print("five synthetic people:")
for row in release.rows(5, seed=1).to_pylist():
    print(" ", row)
