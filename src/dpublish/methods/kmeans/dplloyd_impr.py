"""Publish centers of clusters: as many rounds of k-means as the noise allows, well shared.

Known as: DPLloyd-Impr.
Reference: D. Su, PhD thesis, Purdue, 2016, section 4.4; D. Su, J. Cao, N. Li, E. Bertino and
H. Jin, "Differentially Private k-Means Clustering", CODASPY 2016.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, sqrt
from typing import ClassVar

import numpy as np

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import noisy_size
from dpublish.methods.kmeans.kernel_cluster_sums import ClusterSums
from dpublish.methods.kmeans.lloyd_round import (
    find_box,
    lloyd_round,
    require_clusters,
    round_errors,
)
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import public_generator, spread_centers
from dpublish.privacy.epsilon import rational_weight

SIZE_SHARE = Fraction(3, 100)
MEAN_COORDINATE = 0.225
"""How far from the middle of the box a cluster's mean lies, as a rule (rho)."""
LEAST_ROUNDS, MOST_ROUNDS = 2, 7


@dataclass(frozen=True, kw_only=True)
class DPLloydImpr(Method[KMeansRelease]):
    """Method: k-means with noise; rounds and shares follow from the noisy number of records."""

    name: ClassVar[str] = "dplloyd-impr"

    clusters: int = setting("Number of clusters (k).")
    columns: tuple[str, ...] = setting(
        "Columns of numbers to cluster by, all of them unless named.", default=()
    )

    def __post_init__(self) -> None:
        require_clusters(self.clusters)
        object.__setattr__(self, "clusters", int(self.clusters))  # a NumPy integer, too

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the centers after the last round.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for the number of rounds, which depends on it and on
            public facts alone.  The first centers are drawn without the records; each round
            starts from centers that earlier rounds published, moves all clusters at once, and
            costs its equal share (`lloyd_round`).  All shares add up to epsilon.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        box = find_box(table.schema, self.columns)
        budgets = budget.split(size=SIZE_SHARE, rounds=1 - SIZE_SHARE)
        everyone = ClusterSums(box, np.zeros((1, box.dimensions)))
        size = noisy_size(int(table.sum(everyone)[0, 0]), budget=budgets["size"], rng=rng)
        rounds = count_rounds(size, box.dimensions, self.clusters, budgets["rounds"].epsilon)
        centers = spread_centers(self.clusters, box.dimensions, public_generator(rng))
        weight = count_weight(box.dimensions)
        for number, share in enumerate(budgets["rounds"].split_evenly(rounds), start=1):
            centers = lloyd_round(table, box, centers, count_weight=weight, budget=share, rng=rng)
            if progress is not None:
                progress(number, rounds, "rounds")
        return KMeansRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=box.columns),
            centers=box.unscale(centers),
            expected=dict(expected.figures),
            notes=(f"{rounds} rounds, since there are about {max(size, 0):,} records",),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cluster's count, of its sums, and so of its center.

        It is that of seven rounds; fewer have less noise each.
        """
        box = find_box(schema, self.columns)
        require_rate(epsilon * SIZE_SHARE)
        each = epsilon * (1 - SIZE_SHARE) / MOST_ROUNDS
        figures = round_errors(box, self.clusters, each, count_weight(box.dimensions), n_records)
        summary = (
            f"{LEAST_ROUNDS} to {MOST_ROUNDS} rounds; in each, the count of a cluster is within "
            f"{figures['cluster_count_95']:,.0f} and the sum of a coordinate (from -1 to 1) within "
            f"{figures['coordinate_sum_95']:,.1f} (95 %), or less"
        )
        return ExpectedError(summary, figures, target="coordinate_sum_95")


def count_weight(dimensions: int) -> Fraction:
    """Say what the counts get, where the sums of each column get 1: (4 d rho^2)^(1/3).

    It makes the squared error of a mean least, up to rounding to an exact ratio.
    """
    return rational_weight(_best_weight(dimensions))


def count_rounds(size: int, dimensions: int, clusters: int, epsilon: Fraction) -> int:
    """Choose the number of rounds from a noisy number of records and public facts.

    >>> count_rounds(100_000, 2, 5, Fraction(1)), count_rounds(-3, 2, 5, Fraction(1))
    (7, 2)
    """
    affordable = float(epsilon) / least_epsilon(size, dimensions, clusters)
    return max(LEAST_ROUNDS, floor(min(affordable, MOST_ROUNDS)))


def least_epsilon(size: int, dimensions: int, clusters: int) -> float:
    """Find what a round must spend so that the squared error of a mean is below 0.004.

    >>> round(least_epsilon(107_091, 2, 5), 6)
    0.010587
    """
    spread = clusters * (dimensions + _best_weight(dimensions))
    return sqrt(500 * spread**3) / max(size, 1)


def _best_weight(dimensions: int) -> float:
    return float((4 * dimensions * MEAN_COORDINATE**2) ** (1 / 3))
