"""Counts and means of PipelineDP without Beam or Spark: run by compare.py in its environment.

Usage: python pipelinedp_figures.py INPUT.npz OUTPUT.npz
"""

import sys
import time

import numpy as np
import pipeline_dp

DELTA = 1e-10
"""It wants one above 0; with Laplace noise and public groups nothing spends it."""


def publish(rows, given):
    """Publish a count and a mean of each group."""
    accountant = pipeline_dp.NaiveBudgetAccountant(
        total_epsilon=float(given["epsilon"]), total_delta=DELTA
    )
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    wanted = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.MEAN],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=float(given["low"]),
        max_value=float(given["high"]),
    )
    parts = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    groups = list(range(int(given["group_count"])))
    result = engine.aggregate(rows, wanted, parts, public_partitions=groups)
    accountant.compute_budgets()
    found = dict(result)
    return [found[group].count for group in groups], [found[group].mean for group in groups]


def main(source, result):
    """Publish some times, and write what came out."""
    given = np.load(source, allow_pickle=False)
    values = given["values"].tolist()
    rows = list(zip(range(len(values)), given["groups"].tolist(), values, strict=True))
    counts, averages, seconds = [], [], []
    for _ in range(int(given["runs"])):
        start = time.process_time()
        count, average = publish(rows, given)
        counts.append(count)
        averages.append(average)
        seconds.append(time.process_time() - start)
    np.savez(result, counts=counts, means=averages, seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
