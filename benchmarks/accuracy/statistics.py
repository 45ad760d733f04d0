"""The error of six measures in groups of several sizes, against OpenDP and diffprivlib.

The same simulated groups and epsilon 1 for all.  Peers give each of the six measures a sixth;
ours has even shares, too (mean and variance share theirs), and the automatic ones beside it.
The mean absolute error of each cell over `--runs` releases; a number that we call unknown counts
as the middle of the bounds.  The last line says in how many cells ours is at most theirs.

Run: .venv/bin/python benchmarks/accuracy/statistics.py --peers PYTHON [--runs N]

PYTHON is an interpreter that has opendp and diffprivlib; without it only ours is measured.
"""

import sys

if __name__ == "statistics":
    # A library wants Python's own module of this name, or another script of this folder does.
    own = sys.path.pop(0)
    del sys.modules["statistics"]
    import statistics  # noqa: F401 - it replaces this one

    sys.path.insert(0, own)
else:
    import argparse
    import json
    import subprocess
    import tempfile
    from pathlib import Path

    import numpy as np
    import pyarrow as pa

    from dpublish.data.schema import Schema, column
    from dpublish.data.sources import open_table
    from dpublish.methods.statistics.statistics import Statistics
    from dpublish.privacy.budget import Budget
    from dpublish.randomness import plain_generator, seeded

SIZES = (200, 2_000, 20_000)
LIMITS = {"age": 99, "cost": 50_000, "stay": 60}
MEASURES = (
    "count", "sum(cost)", "mean(age)", "variance(age)", "median(stay)", "quantile(cost, 0.9)",
)  # fmt: skip


def make_groups():
    """Simulate visits: ages, costs with a long tail, days of stay."""
    rng = plain_generator(11)
    return [
        {
            "age": np.floor(np.clip(rng.normal(55, 20, size), 0, 99)),
            "cost": np.minimum(rng.lognormal(7, 1, size), 50_000),
            "stay": np.minimum(rng.geometric(0.2, size), 60).astype(float),
        }
        for size in SIZES
    ]


def truth(group):
    """Compute the six measures of a group."""
    return [
        group["age"].size,
        group["cost"].sum(),
        group["age"].mean(),
        group["age"].var(),
        np.quantile(group["stay"], 0.5, method="inverted_cdf"),
        np.quantile(group["cost"], 0.9, method="inverted_cdf"),
    ]


def own_errors(groups, runs, shares):
    """Measure the error of our releases: groups by measures."""
    names = [str(number) for number in range(len(groups))]
    schema = Schema(
        (
            column("group", "category", values=names),
            column("age", "integer", bounds=[0, LIMITS["age"]]),
            column("cost", "numeric", bounds=[0, LIMITS["cost"]]),
            column("stay", "integer", bounds=[0, LIMITS["stay"]]),
        )
    )
    rows = {name: np.concatenate([group[name] for group in groups]) for name in LIMITS}
    rows["group"] = np.repeat(names, [group["age"].size for group in groups])
    table = open_table(pa.table(rows), schema)
    method = Statistics(measures=MEASURES, by=("group",), shares=shares)
    middles = [0, 0, 49.5, 99**2 / 8, 30, 25_000]
    drawn = []
    for run in range(runs):
        release = method.release(table, budget=Budget.seeded("1"), rng=seeded(run + 1))
        values = np.array([release.estimates(one).values for one in MEASURES]).T
        drawn.append(np.where(np.isnan(values), middles, values))
    true = np.array([truth(group) for group in groups])
    return np.abs(np.array(drawn) - true).mean(axis=0)


def peer_errors(groups, runs, python):
    """Measure the errors of the peers, in an environment of their own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "groups.npz"
        arrays = {f"{name}_{i}": group[name] for i, group in enumerate(groups) for name in LIMITS}
        true = np.array([truth(group) for group in groups])
        limits = np.array([*LIMITS.values()], dtype=float)
        np.savez(path, truth=true, limits=limits, runs=runs, epsilon=1.0, **arrays)
        script = Path(__file__).with_name("statistics_peers.py")
        told = subprocess.run(
            [python, "-W", "ignore", "-P", str(script), str(path)],
            check=True,
            capture_output=True,
            text=True,
        )
    return {name: np.array(one) for name, one in json.loads(told.stdout).items()}


def main():
    """Compare, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", help="a Python that has opendp and diffprivlib")
    parser.add_argument("--runs", type=int, default=300)
    asked = parser.parse_args()
    groups = make_groups()
    even = tuple(f"{one}=1" for one in MEASURES)
    found = {
        "ours, even": own_errors(groups, asked.runs, even),
        "ours, auto": own_errors(groups, asked.runs, ()),
    }
    peers = peer_errors(groups, asked.runs, asked.peers) if asked.peers else {}
    found |= peers
    print("| Records | Measure | " + " | ".join(found) + " |")
    print("|---" * (2 + len(found)) + "|")
    wins = cells = 0
    for row, size in enumerate(SIZES):
        for number, measure in enumerate(MEASURES):
            errors = {name: one[row, number] for name, one in found.items()}
            print(f"| {size:,} | {measure} | " + " | ".join(f"{x:,.3g}" for x in errors.values()),
                  "|")  # fmt: skip
            for name in peers:
                cells += 1
                wins += errors["ours, even"] <= errors[name] * 1.05  # as far as so many runs tell
    print(f"RESULT at_most_theirs={wins} cells={cells}")


if __name__ == "__main__":
    main()
