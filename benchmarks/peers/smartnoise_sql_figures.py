"""Counts and means of SmartNoise SQL: run by compare.py in its environment.

Usage: python smartnoise_sql_figures.py INPUT.npz OUTPUT.npz

What it is given as epsilon each noisy column spends, and AVG has two of them.  So the share is
what makes the whole query spend the epsilon that was asked for, by its own account.
"""

import sys
import time

import numpy as np
import pandas as pd
from snsql import Privacy, from_df

QUERY = "SELECT area, COUNT(*) AS n, AVG(amount) AS average FROM People GROUP BY area"


def main(source, result):
    """Publish some times, and write what came out."""
    given = np.load(source, allow_pickle=False)
    size = int(given["group_count"])
    rows = pd.DataFrame({"area": given["groups"].astype(str), "amount": given["values"]})
    low, high = float(given["low"]), float(given["high"])
    table = {
        "row_privacy": True,
        "rows": len(rows),
        "censor_dims": False,  # the groups are public
        "clamp_counts": False,
        "area": {"type": "string"},
        "amount": {"type": "float", "lower": low, "upper": high},
    }
    metadata = {"": {"": {"People": table}}}
    probe = from_df(rows, privacy=Privacy(epsilon=1.0, delta=0.0), metadata=metadata)
    spent, delta = probe.get_privacy_cost(QUERY)
    share = float(given["epsilon"]) / float(spent)
    counts, averages, seconds = [], [], []
    for _ in range(int(given["runs"])):
        start = time.process_time()
        reader = from_df(rows, privacy=Privacy(epsilon=share, delta=0.0), metadata=metadata)
        _, *found = reader.execute(QUERY)
        by_group = {int(group): (count, average) for group, count, average in found}
        counts.append([by_group[group][0] for group in range(size)])
        averages.append([by_group[group][1] for group in range(size)])
        seconds.append(time.process_time() - start)
    averages = np.array(averages, dtype=float)
    np.savez(result, counts=counts, means=averages, seconds=seconds, spent=spent, delta=delta)


if __name__ == "__main__":
    main(*sys.argv[1:])
