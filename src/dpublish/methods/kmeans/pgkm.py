"""PGkM: centers found by a private genetic search."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar, Literal

from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.box import UNIT
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.genetic_search import (
    MOST_ROUNDS,
    SHRINK,
    Breeding,
    Scores,
    count_rounds,
    predict_rounds,
)
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.kmeans.kernels import STEP, CenterLosses
from dpublish.methods.kmeans.method import (
    SIZE_SHARE,
    CenterMethod,
    count_records,
    publish_centers,
    require_at_most,
)
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.privacy.neighbors import Neighbors
from dpublish.types import IntArray

MOST_COORDINATES = 1_000_000
"""Of all candidates of a generation together."""


@dataclass(frozen=True, kw_only=True)
class PGkM(CenterMethod):
    """Publish centers of clusters that a genetic search finds by private choices.

    A generation of sets of centers is scored by the records, one set is chosen privately, and
    its mutated copies are the next generation.  Choose it to compare with PrivGene; choose
    `KMeans` for the best centers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/center_losses.md.

    Parameters:
        n_clusters: Number of clusters (k).
        columns: Columns of numbers to cluster by; all of them unless named.
        rounds: Number of generations, at most 500.  Unless given, 3 % of epsilon pays for the
            noisy number of records, from which it follows.
        population: Sets of centers in a generation.
        parents: How many sets each generation is bred from.
        choice: `"range"` sets the noise of a choice by how far one record can pull two sets of
            the generation apart; `"plain"` by the largest loss that a set of the generation can
            have, as in the paper, which takes ten parents with it.

    Returns:
        A `KMeansRelease` with `centers`, `label(rows)` and `notes`, which state the number of
        generations.  It holds no grid, so that it answers no counts.

    Example:
        >>> from dpublish import Budget, PGkM, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = PGkM(n_clusters=5, columns=("x1", "x2"), rounds=8)
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.centers.round(2).tolist()
        [[0.4, -0.29], [0.59, -0.62], [0.82, -0.24], [0.52, 0.12], [-0.18, -0.06]]

    Reference:
        J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: Differentially Private
        Model Fitting Using Genetic Algorithms", SIGMOD 2013; D. Su, PhD thesis, Purdue, 2016,
        section 4.3.1.
    """

    name: ClassVar[str] = "pgkm"
    proofs: ClassVar[tuple[str, ...]] = ("center_losses", "top_k", "selection", "exact")
    publishes: ClassVar[str] = "cluster centers, found by a genetic algorithm"
    prefer_when: ClassVar[str] = "you compare with PrivGene on few clusters in two columns"
    standing: ClassVar[Standing] = "baseline"

    rounds: int | None = setting(
        "Number of generations; 1 for every 800 records and epsilon of 1, and from 8 to 500, "
        "unless given.",
        default=None,
    )
    population: int = setting("Sets of centers in a generation.", default=200)
    parents: int = setting("How many sets each generation is bred from.", default=1)
    choice: Literal["range", "plain"] = setting(
        "Whether noise follows how far one record pulls two sets apart (range), or the largest "
        "loss of a set, as in the paper (plain).",
        default="range",
    )

    def __post_init__(self) -> None:
        require_count(n_clusters=self.n_clusters)
        require_known("way to choose", self.choice, ("range", "plain"))
        self._breeding(self.rounds or 1)
        if self.rounds is not None:
            require_at_most("rounds", self.rounds, MOST_ROUNDS)
        for name in ("n_clusters", "population", "parents"):
            object.__setattr__(self, name, int(getattr(self, name)))  # a NumPy integer, too

    def _release(self, run: Run) -> KMeansRelease:
        """Publish a set of centers that lies near the records.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed: a
            share for the noisy number of records, which sets the number of rounds, and the
            rest for `search`.  A set's score is minus the sum over records of the squared
            distance from the nearest center; its range sensitivity is taken over all points
            of the box and the sets of the generation (`CenterLosses.range_sensitivity`, or its
            larger bound `CenterLosses.largest_change`; docs/proofs/center_losses.md), not over
            the records.  No score is published.
        """
        box = self.box(run.schema)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = run.split(**self._shares())
        rounds = self.rounds
        if rounds is None:
            records = count_records(run, box, budget=budgets["size"])
            rounds = count_rounds(records.value, budgets["search"].epsilon, self.parents)
        plan = self._breeding(rounds)

        def score(generation: IntArray) -> Scores:
            sets = generation.reshape(len(generation), self.n_clusters, box.dimensions)
            kernel = CenterLosses(box, sets)
            return Scores(-run.sum(kernel), self._range(kernel, run.neighbors))

        def watch(done: int, total: int) -> None:
            run.step(done, total, "generations")

        first = run.draw_uniform(plan.population, self.n_clusters * box.dimensions, UNIT)
        best = run.genetic_search(score, first, plan, budget=budgets["search"], watcher=watch)
        centers = best.reshape(self.n_clusters, box.dimensions) / UNIT
        return publish_centers(run, box, centers, notes=(f"{rounds:,} generations",))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict by how much the last choice may miss the best set of its generation.

        With one parent, two sets of a late generation are pulled apart by at most 8 times
        the step of the mutation.  How near the search comes to the best centers of all is not
        predicted.
        """
        box = self.box(schema)
        size = self.population * self.n_clusters * box.dimensions
        if size > MOST_COORDINATES:
            raise InvalidParameter(
                f"{size:,} coordinates in a generation are too many (at most "
                f"{MOST_COORDINATES:,}); take fewer clusters, columns or candidates"
            )
        shares = self._shares()
        share = epsilon * shares["search"]
        if "size" in shares:
            require_rate(epsilon * shares["size"])
        most = self.rounds or MOST_ROUNDS
        farthest = 4 * box.dimensions * UNIT**2 // STEP
        selection_rate(share / (most * self.parents), farthest)
        rounds = float(self.rounds or predict_rounds(n_records or 0, share, self.parents))
        apart = float(4 * box.dimensions)
        if self.parents == 1 and rounds > 1 and self.choice == "range":
            apart = min(apart, 8 * 0.1 * float(SHRINK) ** (rounds - 2))
        shortfall = apart * log(self.population / 0.05) * rounds / float(share)
        figures = {"rounds": rounds, "choice_shortfall_95": shortfall}
        if n_records:
            figures["choice_shortfall_per_record"] = shortfall / n_records
        summary = (
            f"about {rounds:,.0f} generations; the last choice misses the best of its generation "
            f"by a sum of squared distances of at most {shortfall:,.0f} (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95", is_of_goal=False)

    def _range(self, kernel: CenterLosses, neighbors: Neighbors) -> int:
        """Return by how much one record can pull two scores apart at most, in steps."""
        if self.choice == "plain":
            return kernel.largest_change(neighbors)
        return kernel.range_sensitivity(neighbors)

    def _breeding(self, rounds: int) -> Breeding:
        return Breeding(bound=UNIT, rounds=rounds, population=self.population, parents=self.parents)

    def _shares(self) -> dict[str, Fraction]:
        if self.rounds is not None:
            return {"search": Fraction(1)}
        return {"size": SIZE_SHARE, "search": 1 - SIZE_SHARE}
