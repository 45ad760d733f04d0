"""Publish centers of clusters after some rounds of k-means with noise.

Known as: DPLloyd (also SuLQ k-means).
Reference: A. Blum, C. Dwork, F. McSherry and K. Nissim, "Practical Privacy: The SuLQ
Framework", PODS 2005; D. Su, PhD thesis, Purdue, 2016, Algorithm 3.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.methods.kmeans.lloyd_round import (
    find_box,
    lloyd_round,
    require_clusters,
    round_errors,
)
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import (
    public_generator,
    spread_centers,
    uniform_centers,
)

MOST_ROUNDS = 100
COUNT_WEIGHT = 1
"""Counts get as much noise as sums: (d + 1) / epsilon on each number of a round."""


@dataclass(frozen=True, kw_only=True)
class DPLloyd(Method[KMeansRelease]):
    """Method: in each round, move centers to the noisy means of the records around them."""

    name: ClassVar[str] = "dplloyd"

    clusters: int = setting("Number of clusters (k).")
    columns: tuple[str, ...] = setting(
        "Columns of numbers to cluster by, all of them unless named.", default=()
    )
    rounds: int = setting("Number of rounds; each gets an equal part of epsilon.", default=5)
    start: Literal["spread", "uniform"] = setting(
        "Where to start: spread keeps centers far from each other, uniform draws them anywhere; "
        "neither looks at the records.",
        default="spread",
    )

    def __post_init__(self) -> None:
        require_clusters(self.clusters)
        require_count(rounds=self.rounds)
        if self.rounds > MOST_ROUNDS:
            raise InvalidParameter(f"rounds ({self.rounds}) must be at most {MOST_ROUNDS}")
        require_known("start", self.start, ("spread", "uniform"))
        object.__setattr__(self, "clusters", int(self.clusters))  # a NumPy integer, too
        object.__setattr__(self, "rounds", int(self.rounds))

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the centers after the last round.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            first centers are drawn without the records; each round starts from centers that
            earlier rounds published, and costs its equal share (`lloyd_round`).  Rounds
            compose sequentially.  The number of rounds is a public setting.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        box = find_box(table.schema, self.columns)
        budgets = budget.split_evenly(self.rounds)
        draw = spread_centers if self.start == "spread" else uniform_centers
        centers = draw(self.clusters, box.dimensions, public_generator(rng))
        for number, share in enumerate(budgets, start=1):
            centers = lloyd_round(
                table, box, centers, count_weight=COUNT_WEIGHT, budget=share, rng=rng
            )
            if progress is not None:
                progress(number, self.rounds, "rounds")
        return KMeansRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=box.columns),
            centers=box.unscale(centers),
            expected=dict(expected.figures),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cluster's count, of its sums, and so of its center."""
        box = find_box(schema, self.columns)
        figures = round_errors(box, self.clusters, epsilon / self.rounds, COUNT_WEIGHT, n_records)
        summary = (
            f"{self.rounds} rounds; in each, the count of a cluster is within "
            f"{figures['cluster_count_95']:,.0f} and the sum of a coordinate (from -1 to 1) within "
            f"{figures['coordinate_sum_95']:,.1f} (95 %)"
        )
        return ExpectedError(summary, figures, target="coordinate_sum_95")
