"""Publish centers found by a private genetic search.

Known as: PGkM, PrivGene for k-means.
Reference: J. Zhang et al., "PrivGene: Differentially Private Model Fitting Using Genetic
Algorithms", SIGMOD 2013; D. Su, PhD thesis, Purdue, 2016, section 4.3.1.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from typing import ClassVar

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.genetic_search import (
    FEWEST_ROUNDS,
    MOST_ROUNDS,
    RECORDS_PER_ROUND,
    SHRINK,
    Breeding,
    Scores,
    count_rounds,
    draw_uniform,
    search,
)
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.kmeans.dplloyd_impr import SIZE_SHARE
from dpublish.methods.kmeans.eugkm import count_records
from dpublish.methods.kmeans.kernel_center_losses import STEP, CenterLosses
from dpublish.methods.kmeans.kernel_cluster_sums import require_columns
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.types import IntArray

MOST_COORDINATES = 1_000_000
"""Of all candidates of a generation together."""


@dataclass(frozen=True, kw_only=True)
class PGkM(Method[KMeansRelease]):
    """Method: breed sets of centers, choosing the best of each generation privately."""

    name: ClassVar[str] = "pgkm"

    clusters: int = setting("Number of clusters (k).")
    columns: tuple[str, ...] = setting(
        "Columns of numbers to cluster by; all of them unless named.", default=()
    )
    rounds: int | None = setting(
        "Number of generations; 1 for every 800 records and epsilon of 1, and from 8 to 500, "
        "unless given.",
        default=None,
    )
    population: int = setting("Sets of centers in a generation.", default=200)
    parents: int = setting("How many sets each generation is bred from.", default=1)

    def __post_init__(self) -> None:
        require_count(clusters=self.clusters)
        Breeding(
            bound=UNIT, rounds=self.rounds or 1, population=self.population, parents=self.parents
        )
        if self.rounds is not None:
            require_count(rounds=self.rounds)
            if self.rounds > MOST_ROUNDS:
                raise InvalidParameter(f"rounds ({self.rounds}) must be at most {MOST_ROUNDS}")
        for name in ("clusters", "population", "parents"):
            object.__setattr__(self, name, int(getattr(self, name)))  # a NumPy integer, too

    def _release(self, run: Run) -> KMeansRelease:
        """Publish a set of centers that lies near the records.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: a
            share for the noisy number of records, which sets the number of rounds, and the
            rest for `search`.  A set's score is minus the sum over records of the squared
            distance from the nearest center; its range sensitivity is taken over all points
            of the box and the sets of the generation (`CenterLosses.range_sensitivity`,
            docs/proofs/center_losses.md), not over the records.  No score is published.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        box = Box.of(table.schema, self.columns)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(**self._shares())
        rounds = self.rounds
        if rounds is None:
            records = count_records(table, box, budget=budgets["size"], rng=rng)
            rounds = count_rounds(records.value, budgets["search"].epsilon, self.parents)
        plan = self._breeding(rounds)

        def score(generation: IntArray) -> Scores:
            sets = generation.reshape(len(generation), self.clusters, box.dimensions)
            kernel = CenterLosses(box, sets)
            return Scores(-table.sum(kernel), kernel.range_sensitivity(table.neighbors))

        def watch(done: int, total: int) -> None:
            if progress is not None:
                progress(done, total, "generations")

        first = draw_uniform(plan.population, self.clusters * box.dimensions, UNIT, rng)
        best = search(score, first, plan, budget=budgets["search"], rng=rng, watcher=watch)
        return KMeansRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=box.columns),
            centers=box.unscale(best.reshape(self.clusters, box.dimensions) / UNIT),
            expected=dict(expected.figures),
            notes=(f"{rounds:,} generations",),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict by how much the last choice may miss the best set of its generation.

        With one parent, two sets of a late generation are pulled apart by at most 8 times
        the step of the mutation.  How near the search comes to the best centers of all is not
        predicted.
        """
        box = Box.of(schema, self.columns)
        require_columns(box)
        size = self.population * self.clusters * box.dimensions
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
        rounds = float(self.rounds or _predicted_rounds(n_records or 0, share, self.parents))
        reach = float(4 * box.dimensions)
        if self.parents == 1 and rounds > 1:
            reach = min(reach, 8 * 0.1 * float(SHRINK) ** (rounds - 2))
        shortfall = reach * log(self.population / 0.05) * rounds / float(share)
        figures = {"rounds": rounds, "choice_shortfall_95": shortfall}
        if n_records:
            figures["choice_shortfall_per_record"] = shortfall / n_records
        summary = (
            f"about {rounds:,.0f} generations; the last choice misses the best of its generation "
            f"by a sum of squared distances of at most {shortfall:,.0f} (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95")

    def _breeding(self, rounds: int) -> Breeding:
        return Breeding(bound=UNIT, rounds=rounds, population=self.population, parents=self.parents)

    def _shares(self) -> dict[str, Fraction]:
        if self.rounds is not None:
            return {"search": Fraction(1)}
        return {"size": SIZE_SHARE, "search": 1 - SIZE_SHARE}


def _predicted_rounds(records: int, share: Fraction, parents: int) -> float:
    """Give the number of rounds without rounding, so that more budget never predicts worse."""
    wanted = records * float(share) / (RECORDS_PER_ROUND * parents)
    return min(max(wanted, float(FEWEST_ROUNDS)), float(MOST_ROUNDS))
