"""Largest error of a marginal's cumulative distribution: every marginal method, several shapes.

Run: .venv/bin/python benchmarks/accuracy/marginals.py [RUNS [METHOD ...]]
"""

import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.marginals.one_marginal import release_marginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

NO_RECORDS = open_table(
    pa.table({"x": pa.array([], pa.int64())}), Schema((column("x", "integer", bounds=[0, 9]),))
)
RECORDS = 50_000
METHODS = ("identity", "hierarchical", "efpa", "noise-first")
CASES = [
    *((128, "0.11", shape) for shape in ("Gaussian", "Zipf", "spiky")),
    *((1000, "0.01", shape) for shape in ("Gaussian", "uniform", "Zipf", "spiky")),
    *((1000, "0.11", shape) for shape in ("Gaussian", "uniform", "Zipf", "spiky")),
    (1000, "1", "Gaussian"),
    *((4096, "0.11", shape) for shape in ("Gaussian", "Zipf", "spiky")),
]


def probabilities(shape, values):
    positions = np.arange(values)
    if shape == "Gaussian":
        weights = np.exp(-(((positions - values / 2) / (values / 8)) ** 2) / 2)
    elif shape == "Zipf":
        weights = (positions + 1.0) ** -1.5
    elif shape == "spiky":  # 92 % in one value, the rest in a twentieth of the others
        weights = np.zeros(values)
        weights[::20] = 0.08 / len(positions[::20])
        weights[values // 3] += 0.92
    else:
        weights = np.ones(values)
    return weights / weights.sum()


def error(shape, values, epsilon, method, run):
    counts = plain_generator(run).multinomial(RECORDS, probabilities(shape, values))
    marginal = release_marginal(
        Run(NO_RECORDS, rng=seeded(run + 1)),
        counts,
        method=method,
        budget=Budget.seeded(Fraction(epsilon)),
    )
    truth = np.cumsum(counts) / RECORDS
    return float(np.abs(np.cumsum(marginal.probabilities) - truth).max())


def main(runs, methods):
    print(f"{'values':>6} {'epsilon':>7} {'shape':>9} " + " ".join(f"{m:>12}" for m in methods))
    results = {}
    for values, epsilon, shape in CASES:
        means = [
            np.mean([error(shape, values, epsilon, method, run) for run in range(runs)])
            for method in methods
        ]
        for method, mean in zip(methods, means, strict=True):
            results[f"{method}_{values}_{epsilon}_{shape}"] = mean
        print(
            f"{values:>6} {epsilon:>7} {shape:>9} " + " ".join(f"{mean:>12.4f}" for mean in means)
        )
    print("RESULT " + " ".join(f"{name}={value:.5f}" for name, value in results.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12, sys.argv[2:] or METHODS)
