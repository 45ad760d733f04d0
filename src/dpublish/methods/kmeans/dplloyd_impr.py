"""DPLloyd-Impr: as many rounds of k-means as the noise allows, with epsilon well shared."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, sqrt
from typing import ClassVar

from dpublish.core.method import ExpectedError, Run, Standing
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.kmeans.error_model import MEAN_COORDINATE
from dpublish.methods.kmeans.lloyd_round import describe_round, lloyd_round, round_errors
from dpublish.methods.kmeans.method import SIZE_SHARE, CenterMethod, count_records, publish_centers
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import separated_centers
from dpublish.privacy.epsilon import rational_weight

LEAST_ROUNDS, MOST_ROUNDS = 2, 7


@dataclass(frozen=True, kw_only=True)
class DPLloydImpr(CenterMethod):
    """Publish centers of clusters after as many noisy rounds of k-means as the noise allows.

    The noisy number of records decides between two and seven rounds, and epsilon is shared
    between counts and sums so that the error of a mean is least.  Choose it where there are
    too many columns for a grid and the papers' own method is wanted; choose `KMeans` for the
    best centers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  The noisy number
        of records spends 3 % of epsilon, the rounds spend the rest.
        Proof: docs/proofs/lloyd.md.

    Parameters:
        n_clusters: Number of clusters (k), at most 1,000.
        columns: Columns of numbers to cluster by; all of them unless named.

    Returns:
        A `KMeansRelease` with `centers`, `label(rows)` and `notes`, which state the number of
        rounds.  It holds no grid, so that it answers no counts.

    Example:
        >>> from dpublish import Budget, DPLloydImpr, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = DPLloydImpr(n_clusters=5, columns=("x1", "x2"))
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.notes
        ('4 rounds, since there are about 4,995 records',)

    Reference:
        D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially Private k-Means Clustering",
        CODASPY 2016; D. Su, PhD thesis, Purdue, 2016, section 4.4.
    """

    name: ClassVar[str] = "dplloyd-impr"
    proofs: ClassVar[tuple[str, ...]] = ("lloyd", "exact")
    publishes: ClassVar[str] = (
        "cluster centers after a few noisy rounds of k-means; labels follow for free"
    )
    prefer_when: ClassVar[str] = "only centers matter, and there are too many columns for a grid"
    standing: ClassVar[Standing] = "baseline"

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the centers after the last round.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for the number of rounds, which depends on it and on
            public facts alone.  The first centers are drawn without the records; each round
            starts from centers that earlier rounds published, moves all clusters at once, and
            costs its equal share (`lloyd_round`).  All shares add up to epsilon.
        """
        box = self.box(run.schema)
        budgets = run.split(size=SIZE_SHARE, rounds=1 - SIZE_SHARE)
        size = count_records(run, box, budget=budgets["size"]).value
        rounds = count_rounds(size, box.dimensions, self.n_clusters, budgets["rounds"].epsilon)
        centers = separated_centers(self.n_clusters, box.dimensions, run.public_generator())
        weight = count_weight(box.dimensions)
        for number, share in enumerate(budgets["rounds"].split_evenly(rounds), start=1):
            centers = lloyd_round(run, box, centers, count_weight=weight, budget=share)
            run.step(number, rounds, "rounds")
        note = f"{rounds} rounds, since there are about {max(size, 0):,} records"
        return publish_centers(run, box, centers, notes=(note,))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cluster's count, of its sums, and so of its center.

        It is that of seven rounds; fewer have less noise each.
        """
        box = self.box(schema)
        require_rate(epsilon * SIZE_SHARE)
        each = epsilon * (1 - SIZE_SHARE) / MOST_ROUNDS
        figures = round_errors(box, self.n_clusters, each, count_weight(box.dimensions), n_records)
        rounds = f"{LEAST_ROUNDS} to {MOST_ROUNDS} rounds"
        summary = f"{rounds}; in each, {describe_round(figures)}, or less"
        return ExpectedError(summary, figures, target="coordinate_sum_95", is_of_goal=False)


def count_weight(dimensions: int) -> Fraction:
    """Return what the counts get, where the sums of each column get 1: (4 d rho^2)^(1/3).

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
    """Compute what a round must spend so that the squared error of a mean is below 0.004.

    >>> round(least_epsilon(107_091, 2, 5), 6)
    0.010587
    """
    weights = clusters * (dimensions + _best_weight(dimensions))
    return sqrt(500 * weights**3) / max(size, 1)


def _best_weight(dimensions: int) -> float:
    return float((4 * dimensions * MEAN_COORDINATE**2) ** (1 / 3))
