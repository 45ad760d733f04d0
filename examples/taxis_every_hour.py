"""Publish where taxis are, hour after hour, without overspending on any driver."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import dpublish
from dpublish import Schema, column
from dpublish.randomness import plain_generator

folder = Path(tempfile.mkdtemp())
zones = ["north", "east", "south", "west"]
schema = Schema((column("zone", "category", values=zones),), unit="driver")
method = dpublish.make_stream_method("dsat", {"columns": "zone", "horizon": 48})

with dpublish.Ledger.create(folder / "books.db") as ledger:
    ledger.add("taxis", cap="1")

rng = plain_generator(1)
odds, truth = np.array([0.4, 0.3, 0.2, 0.1]), []
with dpublish.StreamOperator.start(
    folder / "taxis.stream",
    method,
    schema,
    ledger=folder / "books.db",
    dataset="taxis",
    epsilon="1",  # for all 48 hours together
    output=folder / "taxis",
) as operator:
    for hour in range(48):
        if hour == 30:  # a match in the west begins
            odds = odds[::-1]
        drawn = rng.choice(4, 5_000, p=odds)
        truth.append(int((drawn == 3).sum()))
        rows = pa.table({"driver": np.arange(5_000), "zone": np.array(zones)[drawn]})
        operator.next(rows, f"hour-{hour:02}")

stream = dpublish.load(folder / "taxis")
for time, true in list(zip(stream.times, truth, strict=True))[24:36]:
    shown = stream.at(time)[3]
    print(f"{time}  {true:5,} in the west, shown {shown:8,.0f}  {'#' * max(0, int(shown) // 60)}")
print(stream.receipt.guarantee())
