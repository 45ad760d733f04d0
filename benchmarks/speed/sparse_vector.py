"""Time 100,000 comparisons of a sparse vector, ours against a loop over OpenDP's Laplace noise.

OpenDP has no sparse vector, so its loop is written by hand: one measurement for the threshold,
one for each answer.  It is timed on fewer comparisons and scaled up.  Both draw exact integer
noise from a cryptographic source.  Times are processor seconds of this process, best of three.
"""

import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp
from rich.console import Console
from rich.table import Table

from dpublish.mechanisms.sparse_vector.calibration import Calibration, NoiseKind
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure

COMPARISONS = 100_000
FEWER = 5_000
THRESHOLD = 10**9  # no answer gets near it, so that nothing ends early


def new_vector(noise: NoiseKind) -> SparseVector:
    """Start a run with ten positives at epsilon 0.1."""
    return SparseVector(
        sensitivity=1, max_positives=10, noise=noise, budget=Budget.seeded("0.1"), rng=secure()
    )


def seconds(work: Callable[[], object]) -> float:
    """Time `work` three times and keep the best."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def one_at_a_time(noise: NoiseKind) -> None:
    vector = new_vector(noise)
    for answer in range(COMPARISONS):
        vector.above(answer, THRESHOLD)


def in_a_block(noise: NoiseKind) -> None:
    new_vector(noise).above_each(np.arange(COMPARISONS), THRESHOLD)


def opendp_loop(calibration: Calibration) -> None:
    domain, metric = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    perturb_threshold = dp.m.make_laplace(
        domain, metric, scale=float(1 / calibration.threshold_rate)
    )
    perturb_answer = dp.m.make_laplace(domain, metric, scale=float(1 / calibration.answer_rate))
    noisy_threshold = perturb_threshold(THRESHOLD)
    for answer in range(FEWER):
        if perturb_answer(answer) >= noisy_threshold:
            break


def main() -> None:
    dp.enable_features("contrib")
    calibration = new_vector("laplace").calibration
    theirs = seconds(lambda: opendp_loop(calibration)) * COMPARISONS / FEWER
    table = Table(title=f"{COMPARISONS:,} comparisons, processor seconds")
    for column in ("noise", "one at a time", "in a block", "by hand on OpenDP", "ratio"):
        table.add_column(column, justify="right")
    times = {}
    for noise in ("exponential", "laplace"):
        single = seconds(lambda kind=noise: one_at_a_time(kind))
        block = seconds(lambda kind=noise: in_a_block(kind))
        times[noise] = single, block
        cells = [
            f"{single:.4f}",
            f"{block:.4f}",
            f"{theirs:.2f} (scaled)",
            f"{theirs / single:.0f}",
        ]
        table.add_row(noise, *cells)
    Console().print(table)
    single, block = times["exponential"]
    print(f"RESULT one_at_a_time_s={single:.4f} block_s={block:.4f} ratio={theirs / single:.1f}")


if __name__ == "__main__":
    main()
