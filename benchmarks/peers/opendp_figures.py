"""What OpenDP reaches with numbers: run by compare.py in the environment of OpenDP.

Usage: python opendp_figures.py INPUT.npz OUTPUT.npz
"""

import sys
import time

import numpy as np
import opendp.prelude as dp


def means(given):
    """Publish a count and a sum of every group with half of epsilon each, and divide."""
    low, high, half = float(given["low"]), float(given["high"]), float(given["epsilon"]) / 2
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    exact_sum = dp.t.make_clamp(*space, (low, high)) >> dp.t.then_sum()
    exact_count = dp.t.make_count(*space)

    def calibrate(exact):
        def make(scale):
            return exact >> dp.m.then_laplace(scale)

        return make(dp.binary_search_param(make, d_in=1, d_out=half, T=float))

    noisy_sum, noisy_count = calibrate(exact_sum), calibrate(exact_count)
    codes, size = given["groups"], int(given["group_count"])
    groups = [given["values"][codes == group].tolist() for group in range(size)]
    counts, averages, seconds = [], [], []
    for _ in range(int(given["runs"])):
        start = time.process_time()
        count = np.array([noisy_count(group) for group in groups], dtype=float)
        total = np.array([noisy_sum(group) for group in groups])
        counts.append(count)
        averages.append(total / np.maximum(count, 1))
        seconds.append(time.process_time() - start)
    return {"counts": np.array(counts), "means": np.array(averages), "seconds": np.array(seconds)}


def histogram(given):
    """Add noise to a million counts at once."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = dp.m.make_laplace(*space, scale=1 / float(given["epsilon"]))
    seconds = []
    for _ in range(3):
        start = time.process_time()
        mechanism(given["counts"])
        seconds.append(time.process_time() - start)
    return {"seconds": np.array(seconds)}


def topk(given):
    """Choose the most frequent items; a basket raises every count by at most 1."""
    space = dp.vector_domain(dp.atom_domain(T="u64")), dp.linf_distance(T="u64", monotonic=True)

    def make(scale):
        return dp.m.make_noisy_top_k(*space, dp.max_divergence(), int(given["count"]), scale)

    scale = dp.binary_search_param(make, d_in=1, d_out=float(given["epsilon"]), T=float)
    mechanism = make(scale)
    counts = given["counts"].tolist()
    chosen, seconds = [], []
    for _ in range(int(given["list_runs"])):
        start = time.process_time()
        chosen.append(mechanism(counts))
        seconds.append(time.process_time() - start)
    return {"chosen": np.array(chosen), "seconds": np.array(seconds)}


TASKS = {"means": means, "histogram": histogram, "topk": topk}


def main(source, result):
    """Run the task that the input names."""
    dp.enable_features("contrib")
    given = np.load(source, allow_pickle=False)
    np.savez(result, **TASKS[str(given["task"])](given))


if __name__ == "__main__":
    main(*sys.argv[1:])
