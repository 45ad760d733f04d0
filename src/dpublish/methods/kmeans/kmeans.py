"""Publish centers of clusters by the method that suits the number of columns.

Up to three columns: a noisy grid, finer than the papers', whose centers are found from starts
that follow its counts.  More: a tree of noisy marginals, whose centers one private round of
k-means then moves.  Both synopses are published with the centers.

Known as: nothing; it builds on EUGkM, Hybrid (D. Su, PhD thesis, Purdue, 2016, chapter 4) and
PrivBayes.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.dependence import DISTANCE
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.kmeans.dplloyd_impr import SIZE_SHARE, count_weight
from dpublish.methods.kmeans.eugkm import count_records, release_grid
from dpublish.methods.kmeans.grid_size import (
    DENSE_RECORDS_PER_CELL,
    even_sizes,
    grid_side,
)
from dpublish.methods.kmeans.lloyd_round import (
    find_box,
    lloyd_round,
    require_clusters,
    round_errors,
)
from dpublish.methods.kmeans.marginal_tree import COUNTS, STRUCTURE, publish_tree, require_pairs
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.released_tree import TreeKMeansRelease, cluster_tree
from dpublish.methods.kmeans.starting_centers import public_generator
from dpublish.methods.kmeans.synopsis_clusters import cluster_synopsis
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

TREE, ROUND = 2, 3
"""Weights of the tree of marginals and of the round of k-means after it."""
MOST_GRID_COLUMNS = 3
STARTS = 30
_MOST_CELLS = 1_000_000  # more would take minutes to search


@dataclass(frozen=True, kw_only=True)
class KMeans(Method[KMeansRelease]):
    """Method: find `clusters` centers in a synopsis that suits the number of columns."""

    name: ClassVar[str] = "kmeans"

    clusters: int = setting("Number of clusters (k).")
    columns: tuple[str, ...] = setting(
        "Columns of numbers to cluster by, all of them unless named.", default=()
    )

    def __post_init__(self) -> None:
        require_clusters(self.clusters)
        object.__setattr__(self, "clusters", int(self.clusters))  # a NumPy integer, too

    def _release(self, run: Run) -> KMeansRelease:
        """Publish centers, and the synopsis in which they were found.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for how fine the synopsis is; which synopsis it is
            depends on the number of columns.  A record lies in one cell of the grid, whose
            counts get geometric noise for that; or `publish_tree` and one `lloyd_round` from
            centers found in the tree pay for themselves.  The shares add up to epsilon.
            Clustering a synopsis is post-processing.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        box = find_box(table.schema, self.columns)
        budgets = budget.split(size=SIZE_SHARE, rest=1 - SIZE_SHARE)
        records = count_records(table, box, budget=budgets["size"], rng=rng)
        publish = self._from_grid if box.dimensions <= MOST_GRID_COLUMNS else self._from_tree
        kind, parts = publish(table, box, records, budget=budgets["rest"], rng=rng)
        if progress is not None:
            progress(1, 1, "centers")
        return kind(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=box.columns),
            expected=dict(expected.figures),
            **parts,
        )

    def _from_grid(
        self, table: Table, box: Box, records: NoisySize, *, budget: Budget, rng: RandomSource
    ) -> tuple[type[KMeansRelease], dict[str, Any]]:
        """Publish a grid and the centers of the cells that stand out from the noise.

        Privacy:
            That of `release_grid`; its sizes follow from the noisy number of records and the
            public bounds.
        """
        side = dense_side(records.value, box.dimensions, self.clusters, budget.epsilon)
        sizes = even_sizes(box, side)
        grid = release_grid(table, box, sizes, records, budget=budget, rng=rng)
        found = cluster_synopsis(
            grid, self.clusters, starts=STARTS, rng=public_generator(rng), only_dense=True
        )
        told = " x ".join(f"{size:,}" for size in sizes)
        note = f"a grid of {told} cells: few enough columns for one"
        return KMeansRelease, {
            "centers": box.unscale(found.centers),
            "synopsis": grid,
            "notes": (note,),
        }

    def _from_tree(
        self, table: Table, box: Box, records: NoisySize, *, budget: Budget, rng: RandomSource
    ) -> tuple[type[KMeansRelease], dict[str, Any]]:
        """Publish a tree of marginals and the centers that one round finds from it.

        Privacy:
            That of `publish_tree` and of `lloyd_round`, whose shares add up.
        """
        budgets = budget.split(tree=TREE, round=ROUND)
        tree = publish_tree(table, box, records, budget=budgets["tree"], rng=rng)
        first = cluster_tree(tree, self.clusters, STARTS, public_generator(rng)).centers
        weight = count_weight(box.dimensions)
        centers = lloyd_round(
            table, box, first, count_weight=weight, budget=budgets["round"], rng=rng
        )
        note = (
            f"a tree of marginals and one round: {box.dimensions} columns are too many for a grid"
        )
        return TreeKMeansRelease, {"centers": box.unscale(centers), "tree": tree, "notes": (note,)}

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cell's count, or of a cluster's count and sums."""
        box = find_box(schema, self.columns)
        require_rate(epsilon * SIZE_SHARE)
        rest = epsilon * (1 - SIZE_SHARE)
        if box.dimensions <= MOST_GRID_COLUMNS:
            require_rate(rest)
            figures = {"one_cell_95": float(sum_quantile(rest, 1, 0.95))}
            summary = f"a grid; each count within {figures['one_cell_95']:,.0f} (95 %)"
            if n_records:
                side = dense_side(n_records, box.dimensions, self.clusters, rest)
                figures["cells"] = float(prod(even_sizes(box, side)))
            return ExpectedError(summary, figures, target="one_cell_95")
        require_pairs(box)
        tree = rest * TREE / (TREE + ROUND)
        choice = tree * STRUCTURE / (STRUCTURE + COUNTS) / (box.dimensions - 1)
        require_rate(choice / DISTANCE.sensitivity_range)
        each = rest * ROUND / (TREE + ROUND)
        figures = round_errors(box, self.clusters, each, count_weight(box.dimensions), n_records)
        summary = (
            "a tree of marginals, then one round in which the count of a cluster is within "
            f"{figures['cluster_count_95']:,.0f} and the sum of a coordinate (from -1 to 1) within "
            f"{figures['coordinate_sum_95']:,.1f} (95 %)"
        )
        return ExpectedError(summary, figures, target="coordinate_sum_95")


def dense_side(size: int, dimensions: int, clusters: int, epsilon: Fraction) -> int:
    """Choose the cells along each column: EUGkM's rule, for a finer grid.

    >>> dense_side(5_000, 2, 15, Fraction(1, 10)), dense_side(-7, 2, 15, Fraction(1, 10))
    (16, 4)
    """
    side = grid_side(
        "eug", size, dimensions, clusters, epsilon, records_per_cell=DENSE_RECORDS_PER_CELL
    )
    return min(side, int(_MOST_CELLS ** (1 / dimensions) + 1e-9))
