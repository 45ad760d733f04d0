"""Time a noisy histogram of a million cells, ours against OpenDP's vector mechanism.

Both draw exact two-sided geometric noise from a cryptographic source.  Times are processor
seconds of this process.
"""

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
from rich.console import Console
from rich.table import Table

from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.mechanisms.noise import add_geometric, add_laplace
from dpublish.mechanisms.sparse_counts import auto_threshold, sparse_counts
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, secure

CELLS = 1_000_000
EPSILON = Fraction(1, 10)


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Time `work` and keep the best of `repeats`."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def our_rows(counts: np.ndarray) -> list[tuple[str, float]]:
    """Time our mechanisms at several sizes and rates."""
    rng = secure()

    def histogram(size: int) -> object:
        return add_geometric(counts[:size], sensitivity=1, budget=Budget.seeded(EPSILON), rng=rng)

    def sparse() -> object:
        size = 10**15
        return sparse_counts(
            np.arange(CELLS) * 10**9,
            counts,
            domain_size=size,
            threshold=auto_threshold(size, EPSILON, 1000),
            budget=Budget.seeded(EPSILON),
            rng=rng,
        )

    rows = [("histogram, first use of this epsilon, 1 cell", seconds(lambda: histogram(1)))]
    for size in (1, 1000, 100_000, CELLS):
        rows.append((f"histogram, {size:,} cells", seconds(lambda n=size: histogram(n), 7)))
    for rate in (Fraction(1), Fraction(1, 1000), Fraction(1, 10**6)):
        draw = seconds(lambda r=rate: discrete_laplace(r, CELLS, rng), 3)
        rows.append((f"noise alone, {CELLS:,} draws, rate {rate}", draw))
    reals = counts / 7
    real_noise = seconds(
        lambda: add_laplace(
            reals, sensitivity=1, touched=1, budget=Budget.seeded(EPSILON), rng=rng
        ),
        3,
    )
    rows.append((f"reals on a lattice, {CELLS:,} values", real_noise))
    rows.append((f"sparse counts, {CELLS:,} of 10^15 cells", seconds(sparse, 3)))
    return rows


def opendp_seconds(counts: np.ndarray) -> float:
    """Time OpenDP's mechanism for the same histogram, once."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = dp.m.make_laplace(*space, scale=float(1 / EPSILON))
    mechanism(counts[:1000])
    return seconds(lambda: mechanism(counts))


def main() -> None:
    counts = plain_generator(0).integers(0, 1000, CELLS)
    rows = our_rows(counts)
    theirs = opendp_seconds(counts)
    ours = dict(rows)[f"histogram, {CELLS:,} cells"]
    table = Table("what", "milliseconds", title=f"exact noise, epsilon {EPSILON}")
    table.columns[1].justify = "right"
    for name, spent in [*rows, (f"OpenDP: histogram, {CELLS:,} cells", theirs)]:
        table.add_row(name, f"{1000 * spent:,.2f}")
    Console().print(table)
    print(f"RESULT ratio={theirs / ours:.1f} ours_s={ours:.4f} opendp_s={theirs:.3f}")


if __name__ == "__main__":
    main()
