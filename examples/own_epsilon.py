"""Let each person choose their own epsilon, and waste little of it."""

import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa

import dpublish
from dpublish.data.schema_file import from_dict
from dpublish.datasets.census import SCHEMA, census
from dpublish.randomness import plain_generator

folder = Path(tempfile.mkdtemp())
people = census(20_000)
levels = ["0.01", "0.1", "1"]
sizes = [2_000, 8_000, 10_000]  # public: how many of the eligible chose each level
own = plain_generator(1).permutation(np.repeat([0.01, 0.1, 1.0], sizes))
rows = people.append_column("own", pa.array(own))

settings = {
    "inner": "histogram columns=sex",
    "preference": "own",
    "levels": levels,
    "mode": "frame",
    "sizes": sizes,
}
asserted = {"exchangeable": True, "combine": "weighted"}  # levels say nothing about the values
methods = {
    "smallest epsilon for all": dpublish.make_method("minimum", settings),
    "groups": dpublish.make_method("partitioning", settings | asserted),
}

schema = from_dict(tomllib.loads(SCHEMA))
with dpublish.Ledger.create(folder / "books.db") as ledger:
    ledger.add("town", levels=levels)
    for number, (name, method) in enumerate(methods.items()):
        table = dpublish.open_table(rows, method.prepare(schema))
        release = dpublish.publish(
            method, table, folder / str(number), ledger=ledger, dataset="town", epsilon="0.5"
        )
        print(f"{name}: {release.count('sex = Female')}")
    for level in ledger.status("town").levels:
        spent, left = float(level.spent), float(level.left)
        print(f"people of {float(level.level):g}: spent {spent:g}, left {left:g}")
print("true:", people["sex"].to_pylist().count("Female"))
