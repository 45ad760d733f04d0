"""Counts and means of Tumult Analytics on local Spark: run by compare.py in its environment.

Usage: python tumult_figures.py INPUT.npz OUTPUT.npz

Its time is not measured: Spark works in other processes.
"""

import sys

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session


def main(source, result):
    """Publish some times, and write what came out."""
    given = np.load(source, allow_pickle=False)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    names = [f"{group:02}" for group in range(int(given["group_count"]))]
    labels = np.array(names)[given["groups"]]
    rows = spark.createDataFrame(pd.DataFrame({"area": labels, "amount": given["values"]}))
    keys = KeySet.from_dict({"area": names})
    bounds = float(given["low"]), float(given["high"])
    half = PureDPBudget(float(given["epsilon"]) / 2)
    counts, averages = [], []
    for _ in range(int(given["runs"])):
        session = Session.from_dataframe(
            privacy_budget=PureDPBudget(float(given["epsilon"])),
            source_id="people",
            dataframe=rows,
            protected_change=AddOneRow(),
        )
        grouped = QueryBuilder("people").groupby(keys)
        count = session.evaluate(grouped.count(name="n"), half).toPandas()
        mean = session.evaluate(grouped.average("amount", *bounds, name="m"), half).toPandas()
        counts.append(count.sort_values("area")["n"].to_numpy())
        averages.append(mean.sort_values("area")["m"].to_numpy())
    np.savez(result, counts=np.array(counts), means=np.array(averages))


if __name__ == "__main__":
    main(*sys.argv[1:])
