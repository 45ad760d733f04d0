"""The same statistics by OpenDP and diffprivlib: run by statistics.py in their own environment.

Reads a .npz file of groups, and prints the mean absolute error of each cell as JSON.  Every
measure gets an even share of epsilon.  Where a library has no mean or variance for an unknown
number of records (OpenDP), it follows from its noisy sums and its noisy count.
"""

import json
import sys

import numpy as np

MEASURES = 6


def opendp_cells(ages, costs, stays, epsilon, limits):
    """Publish the six measures of one group with OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def calibrated(make):
        return make(dp.binary_search_param(make, d_in=1, d_out=epsilon, T=float))

    def noisy_sum(low, high):
        exact = dp.t.make_clamp(*space, (float(low), float(high))) >> dp.t.then_sum()
        return calibrated(lambda scale: exact >> dp.m.then_laplace(scale))

    def noisy_quantile(candidates, part):
        measure = dp.max_divergence()
        return calibrated(
            lambda scale: dp.m.make_private_quantile(*space, measure, candidates, part, scale)
        )

    counter = calibrated(lambda scale: dp.t.make_count(*space) >> dp.m.then_laplace(scale))
    of_costs, of_ages = noisy_sum(0, limits["cost"]), noisy_sum(0, limits["age"])
    of_squares = noisy_sum(0, limits["age"] ** 2)
    median = noisy_quantile([float(x) for x in range(int(limits["stay"]) + 1)], 0.5)
    upper = noisy_quantile(np.linspace(0, limits["cost"], 4097)[1:-1].tolist(), 0.9)
    ages, costs, stays = ages.tolist(), costs.tolist(), stays.tolist()
    squares = [age * age for age in ages]

    def publish():
        count = max(counter(ages), 1)
        mean = min(max(of_ages(ages) / count, 0), limits["age"])
        variance = min(max(of_squares(squares) / count - mean**2, 0), limits["age"] ** 2 / 4)
        return [count, of_costs(costs), mean, variance, median(stays), upper(costs)]

    return publish


def diffprivlib_cells(ages, costs, stays, epsilon, limits):
    """Publish the six measures of one group with diffprivlib, which takes its size for public."""
    from diffprivlib import tools

    age, cost, stay = ((0, limits[name]) for name in ("age", "cost", "stay"))

    def publish():
        return [
            tools.count_nonzero(np.ones(ages.size), epsilon=epsilon),
            tools.sum(costs, epsilon=epsilon, bounds=cost),
            tools.mean(ages, epsilon=epsilon, bounds=age),
            tools.var(ages, epsilon=epsilon, bounds=age),
            tools.median(stays, epsilon=epsilon, bounds=stay),
            tools.quantile(costs, 0.9, epsilon=epsilon, bounds=cost),
        ]

    return publish


def main(path):
    """Print the errors of both libraries."""
    stored = np.load(path, allow_pickle=False)
    limits = dict(zip(("age", "cost", "stay"), stored["limits"].tolist(), strict=True))
    runs, epsilon = int(stored["runs"]), float(stored["epsilon"]) / MEASURES
    found = {}
    for name, make in (("OpenDP", opendp_cells), ("diffprivlib", diffprivlib_cells)):
        errors = []
        for group in range(len(stored["truth"])):
            values = [stored[f"{column}_{group}"] for column in ("age", "cost", "stay")]
            publish = make(*values, epsilon, limits)
            drawn = np.array([publish() for _ in range(runs)], dtype=float)
            errors.append(np.abs(drawn - stored["truth"][group]).mean(axis=0).tolist())
        found[name] = errors
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
