"""DPLloyd: centers of clusters after some rounds of k-means with noise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.methods.kmeans.lloyd_round import describe_round, lloyd_round, round_errors
from dpublish.methods.kmeans.method import CenterMethod, publish_centers, require_at_most
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import separated_centers, uniform_centers

MOST_ROUNDS = 200
COUNT_WEIGHT = 1
"""Counts get as much noise as sums: (d + 1) / epsilon on each number of a round."""


@dataclass(frozen=True, kw_only=True)
class DPLloyd(CenterMethod):
    """Publish centers of clusters after some rounds of k-means with noise.

    Each round moves every center to the noisy mean of the records around it.  Choose it to
    compare with SuLQ k-means, or to set the number of rounds yourself.  Choose `DPLloydImpr`
    for rounds that share epsilon better, and `KMeans` for the best centers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  Each round spends
        its share of epsilon, and the shares add up to it.  Proof: docs/proofs/lloyd.md.

    Parameters:
        n_clusters: Number of clusters (k), at most 1,000.
        columns: Columns of numbers to cluster by; all of them unless named.
        max_iter: Number of rounds, at most 200.  All of them are made.
        start: `"separated"` draws first centers that keep far from each other, `"uniform"`
            draws them anywhere in the bounds; neither looks at the records.
        schedule: `"even"` gives each round an equal share of epsilon; `"halving"` gives the
            first a half, the next a quarter and so on, and the last as much as the one before.

    Returns:
        A `KMeansRelease` with `centers` and `label(rows)`.  It holds no grid, so that it
        answers no counts.

    Example:
        >>> from dpublish import Budget, DPLloyd, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = DPLloyd(n_clusters=5, columns=("x1", "x2"))
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.centers.round(2).tolist()
        [[-0.04, 0.16], [0.55, -0.43], [-0.19, -0.26], [0.3, -0.15], [-0.68, -0.44]]

    Reference:
        A. Blum, C. Dwork, F. McSherry, K. Nissim, "Practical Privacy: The SuLQ Framework", PODS
        2005; D. Su, PhD thesis, Purdue, 2016, Algorithm 3.
    """

    name: ClassVar[str] = "dplloyd"
    proofs: ClassVar[tuple[str, ...]] = ("lloyd", "exact")
    publishes: ClassVar[str] = (
        "cluster centers after noisy rounds of k-means; labels follow for free"
    )
    prefer_when: ClassVar[str] = "you want the baseline that other methods are compared with"
    standing: ClassVar[Standing] = "baseline"

    max_iter: int = setting("Number of rounds; all of them are made.", default=5)
    start: Literal["separated", "uniform"] = setting(
        "Where to start: separated keeps centers far from each other, uniform draws them "
        "anywhere; neither looks at the records.",
        default="separated",
    )
    schedule: Literal["even", "halving"] = setting(
        "What rounds get of epsilon: equal parts (even), or a half, a quarter and so on (halving).",
        default="even",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_most("max_iter", self.max_iter, MOST_ROUNDS)
        require_known("start", self.start, ("separated", "uniform"))
        require_known("schedule", self.schedule, ("even", "halving"))
        object.__setattr__(self, "max_iter", int(self.max_iter))

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the centers after the last round.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            first centers are drawn without the records; each round starts from centers that
            earlier rounds published, and costs its share (`lloyd_round`).  Rounds compose
            sequentially, and their shares add up to epsilon.  The number of rounds and their
            shares are public settings.
        """
        box = self.box(run.schema)
        shares = list(run.split(**self._weights()).values())
        draw = separated_centers if self.start == "separated" else uniform_centers
        centers = draw(self.n_clusters, box.dimensions, run.public_generator())
        for number, share in enumerate(shares, start=1):
            centers = lloyd_round(run, box, centers, count_weight=COUNT_WEIGHT, budget=share)
            run.step(number, self.max_iter, "rounds")
        return publish_centers(run, box, centers)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cluster's count, of its sums, and so of its center."""
        weights = self._weights()
        last = epsilon * list(weights.values())[-1] / sum(weights.values())
        figures = round_errors(self.box(schema), self.n_clusters, last, COUNT_WEIGHT, n_records)
        which = "in each" if self.schedule == "even" else "in the last"
        summary = f"{self.max_iter} rounds; {which}, {describe_round(figures)}"
        return ExpectedError(summary, figures, target="coordinate_sum_95", is_of_goal=False)

    def _weights(self) -> dict[str, int]:
        """Weigh the rounds: equally, or each twice as much as the next but for the last two."""
        names = [f"round-{number}" for number in range(1, self.max_iter + 1)]
        if self.schedule == "even":
            return dict.fromkeys(names, 1)
        return {name: 1 << max(len(names) - 2 - index, 0) for index, name in enumerate(names)}
