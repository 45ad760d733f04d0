"""One private round of k-means: noisy counts and sums around centers, and where these move."""

from fractions import Fraction
from math import sqrt

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.accuracy.rounding import format_number
from dpublish.core.method import Run
from dpublish.data.box import UNIT, Box
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.kmeans.error_model import round_error
from dpublish.methods.kmeans.kernels import ClusterSums
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray, IntArray


def lloyd_round(
    run: Run, box: Box, centers: FloatArray, *, count_weight: int | Fraction, budget: Budget
) -> FloatArray:
    """Move centers (rows, between -1 and 1) to the noisy means of the records around them.

    Args:
        run: The release at work.
        box: Columns and bounds.
        centers: Where the round starts; public.
        count_weight: What the counts get of the budget, where the sums of each column get 1.
        budget: Budget to empty.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, for any
        public centers.  A record goes to one cluster, by a rule that looks at it alone: one
        count changes by 1, the sums by at most d * UNIT in L1 (`ClusterSums.sensitivity`).
        Both get geometric noise for that, from shares that add up to epsilon.  Every cluster
        gets noise, an empty one too.  Moving the centers is post-processing.
        Proof: docs/proofs/lloyd.md.
    """
    kernel = ClusterSums(box, centers)
    sensitivity = kernel.sensitivity(run.neighbors)
    budgets = budget.split(counts=count_weight, sums=box.dimensions)
    rate = budgets["counts"].epsilon
    exact = run.sum(kernel)
    counts = run.add_noise(exact[:, 0], sensitivity=sensitivity.counts, budget=budgets["counts"])
    sums = run.add_noise(exact[:, 1:], sensitivity=sensitivity.sums, budget=budgets["sums"])
    return move(centers, counts, sums, rate)


def move(centers: FloatArray, counts: IntArray, sums: IntArray, rate: Fraction) -> FloatArray:
    """Move each center to its noisy mean, within the box.

    A center stays where it is if its noisy count is below 1, or below a standard deviation of
    its noise: then the mean would be little but noise, and may be far away.

    >>> old, counts = np.array([[0.5], [0.5]]), np.array([-3, 40])
    >>> move(old, counts, np.array([[7], [10 * UNIT]]), Fraction(1, 10)).tolist()
    [[0.5], [0.25]]
    """
    moves = counts >= max(1.0, sqrt(noise_variance(rate)))
    means = sums / UNIT / np.where(moves, counts, 1)[:, None]
    return np.where(moves[:, None], np.clip(means, -1.0, 1.0), centers)


def round_errors(
    box: Box, clusters: int, epsilon: Fraction, count_weight: int | Fraction, n_records: int | None
) -> dict[str, float]:
    """Predict the noise of one round that spends `epsilon`, from public facts.

    The shift of a center is the noise of its mean, for a cluster of an average number of
    records whose mean is near the middle of the box; it is measured there, from -1 to 1.  The
    squared error of a center is summed over the columns (`error_model.round_error`).
    """
    part = epsilon / (box.dimensions + count_weight)
    rates = {"counts": part * count_weight, "sums": part / UNIT}
    for rate in rates.values():
        require_rate(rate)
    figures = {
        "cluster_count_95": float(sum_quantile(rates["counts"], 1, 0.95)),
        "coordinate_sum_95": sum_quantile(rates["sums"], 1, 0.95) / UNIT,
    }
    if n_records:
        figures["center_shift_95"] = min(figures["coordinate_sum_95"] * clusters / n_records, 2.0)
        spent = n_records * float(epsilon)
        error = round_error(spent, box.dimensions, clusters, count_weight=count_weight)
        figures["center_squared_error"] = min(error, 4.0 * box.dimensions)
    return figures


def describe_round(figures: dict[str, float]) -> str:
    """Describe the noise of a round in words, from what `round_errors` predicted."""
    described = (
        f"the count of a cluster is within {figures['cluster_count_95']:,.0f} and the sum of a "
        f"coordinate (from -1 to 1) within {figures['coordinate_sum_95']:,.1f} (95 %)"
    )
    if "center_squared_error" not in figures:
        return described
    shift = format_number(sqrt(figures["center_squared_error"]), 2)
    return f"{described}, which moves a center by about {shift}"
