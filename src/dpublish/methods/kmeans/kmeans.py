"""KMeans, the default: centers of clusters, from the synopsis that suits the number of columns."""

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.dependence import DISTANCE
from dpublish.core.method import ExpectedError, Run, Standing
from dpublish.core.noisy_size import NoisySize
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.kmeans.clustering import cluster_grid, cluster_tree
from dpublish.methods.kmeans.dplloyd_impr import count_weight
from dpublish.methods.kmeans.eugkm import (
    DENSE_RECORDS_PER_CELL,
    even_sizes,
    grid_side,
    release_grid,
)
from dpublish.methods.kmeans.kernels import PairCounts
from dpublish.methods.kmeans.lloyd_round import describe_round, lloyd_round, round_errors
from dpublish.methods.kmeans.method import SIZE_SHARE, CenterMethod, count_records, publish_centers
from dpublish.methods.kmeans.released import KMeansRelease, TreeKMeansRelease
from dpublish.methods.kmeans.synopsis import ROOT, MarginalTree
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

TREE, ROUND = 2, 3
"""Weights of the tree of marginals and of the round of k-means after it."""
STRUCTURE, COUNTS = 3, 7
"""Weights of the choice of the tree's pairs and of their counts."""
MOST_GRID_COLUMNS = 3
STARTS = 30
PairTables = dict[tuple[int, int], IntArray]
"""Counts by parent and child."""
_MOST_CELLS = 1_000_000  # more would take minutes to search
_USEFUL = 4  # average count of a cell of the tree, in units of its noise
_FEW, _MANY = 16, 32  # fine bins of the tree


@dataclass(frozen=True, kw_only=True)
class KMeans(CenterMethod):
    """Publish centers of clusters, and a synopsis of the records in which they were found.

    Up to three columns it publishes a noisy grid, finer than the papers', and searches it for
    centers from cells that stand out from the noise.  For more columns it publishes a tree of
    noisy marginals, whose centers one private round of k-means then moves.  Choose it for the
    best centers of round clusters; choose `PrivTHR` for clusters of any shape.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  The noisy number
        of records spends 3 % of epsilon, the synopsis and the round spend the rest.
        Proofs: docs/proofs/lloyd.md (the round), docs/proofs/bayes_network.md (the tree).

    Parameters:
        n_clusters: Number of clusters (k), at most 1,000.
        columns: Columns of numbers to cluster by; all of them unless named.

    Returns:
        A `KMeansRelease` with `centers`, `label(rows)`, `recluster(n_clusters)`,
        `count(query)`, `rows(n)` and `tables()`; from a grid also `cluster_sizes`.

    Example:
        >>> from dpublish import Budget, KMeans, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = KMeans(n_clusters=5, columns=("x1", "x2"))
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.centers.round(2).tolist()
        [[0.66, -0.36], [0.38, -0.25], [0.06, 0.12], [-0.29, 0.03], [0.45, -0.55]]
        >>> release.label({"x1": [0.5, -0.5], "x2": [0.5, -0.5]}).tolist()
        [2, 3]

    Reference:
        Our own, built on EUGkM and Hybrid (D. Su, PhD thesis, Purdue, 2016, chapter 4) and on
        PrivBayes (J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes:
        Private Data Release via Bayesian Networks", SIGMOD 2014).
    """

    name: ClassVar[str] = "kmeans"
    proofs: ClassVar[tuple[str, ...]] = ("lloyd", "bayes_network", "selection", "exact")
    publishes: ClassVar[str] = (
        "cluster centers, and a noisy synopsis in which they were found; rows, labels and other "
        "numbers of clusters follow for free"
    )
    prefer_when: ClassVar[str] = "you want good centers with nothing to tune"
    standing: ClassVar[Standing] = "default"

    def _release(self, run: Run) -> KMeansRelease:
        """Publish centers, and the synopsis in which they were found.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            noisy number of records pays for how fine the synopsis is; which synopsis it is
            depends on the number of columns.  A record lies in one cell of the grid, whose
            counts get geometric noise for that; or `publish_tree` and one `lloyd_round` from
            centers found in the tree pay for themselves.  The shares add up to epsilon.
            Clustering a synopsis is post-processing.
        """
        box = self.box(run.schema)
        budgets = run.split(size=SIZE_SHARE, rest=1 - SIZE_SHARE)
        records = count_records(run, box, budget=budgets["size"])
        publish = self._from_grid if box.dimensions <= MOST_GRID_COLUMNS else self._from_tree
        released = publish(run, box, records, budget=budgets["rest"])
        run.step(1, 1, "centers")
        return released

    def _from_grid(
        self, run: Run, box: Box, records: NoisySize, *, budget: Budget
    ) -> KMeansRelease:
        """Publish a grid and the centers of the cells that stand out from the noise.

        Privacy:
            That of `release_grid`; its sizes follow from the noisy number of records and the
            public bounds.
        """
        side = dense_side(records.value, box.dimensions, self.n_clusters, budget.epsilon)
        sizes = even_sizes(box, side)
        grid = release_grid(run, box, sizes, records, budget=budget)
        generator = run.public_generator()
        found = cluster_grid(grid, self.n_clusters, n_init=STARTS, rng=generator, only_dense=True)
        shape = " x ".join(f"{size:,}" for size in sizes)
        note = f"a grid of {shape} cells: few enough columns for one"
        return publish_centers(
            run, box, found.centers, synopsis=grid, searched="dense", notes=(note,)
        )

    def _from_tree(
        self, run: Run, box: Box, records: NoisySize, *, budget: Budget
    ) -> KMeansRelease:
        """Publish a tree of marginals and the centers that one round finds from it.

        Privacy:
            That of `publish_tree` and of `lloyd_round`, whose shares add up.
        """
        budgets = budget.split(tree=TREE, round=ROUND)
        tree = publish_tree(run, box, records, budget=budgets["tree"])
        generator = run.public_generator()
        first = cluster_tree(tree, self.n_clusters, n_init=STARTS, rng=generator).centers
        weight = count_weight(box.dimensions)
        centers = lloyd_round(run, box, first, count_weight=weight, budget=budgets["round"])
        note = (
            f"a tree of marginals and one round: {box.dimensions} columns are too many for a grid"
        )
        return publish_centers(run, box, centers, TreeKMeansRelease, tree=tree, notes=(note,))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a cell's count, or of a cluster's count and sums."""
        box = self.box(schema)
        require_rate(epsilon * SIZE_SHARE)
        rest = epsilon * (1 - SIZE_SHARE)
        if box.dimensions <= MOST_GRID_COLUMNS:
            require_rate(rest)
            figures = {"one_cell_95": float(sum_quantile(rest, 1, 0.95))}
            summary = f"a grid; each count within {figures['one_cell_95']:,.0f} (95 %)"
            if n_records:
                side = dense_side(n_records, box.dimensions, self.n_clusters, rest)
                figures["cells"] = float(prod(even_sizes(box, side)))
            return ExpectedError(summary, figures, target="one_cell_95", is_of_goal=False)
        require_pairs(box)
        tree = rest * TREE / (TREE + ROUND)
        choice = tree * STRUCTURE / (STRUCTURE + COUNTS) / (box.dimensions - 1)
        require_rate(choice / DISTANCE.sensitivity_range)
        each = rest * ROUND / (TREE + ROUND)
        figures = round_errors(box, self.n_clusters, each, count_weight(box.dimensions), n_records)
        summary = f"a tree of marginals, then one round in which {describe_round(figures)}"
        return ExpectedError(summary, figures, target="coordinate_sum_95", is_of_goal=False)


def dense_side(size: int, dimensions: int, clusters: int, epsilon: Fraction) -> int:
    """Choose the cells along each column: EUGkM's rule, for a finer grid.

    >>> dense_side(5_000, 2, 15, Fraction(1, 10)), dense_side(-7, 2, 15, Fraction(1, 10))
    (16, 4)
    """
    side = grid_side(
        "eug", size, dimensions, clusters, epsilon, records_per_cell=DENSE_RECORDS_PER_CELL
    )
    return min(side, int(_MOST_CELLS ** (1 / dimensions) + 1e-9))


# --- The tree of marginals ----------------------------------------------------------------


class Bins(NamedTuple):
    """How many equal bins a column has in its own table, and in those of its children."""

    fine: int
    coarse: int


def choose_bins(size: int, dimensions: int, epsilon: Fraction) -> Bins:
    """Choose the bins so that a count stands out of its noise on average.

    Both numbers are powers of two, so that coarse bins are made of whole fine ones.

    >>> choose_bins(48_842, 6, Fraction(1, 5)), choose_bins(100, 6, Fraction(1, 5))
    (Bins(fine=16, coarse=16), Bins(fine=16, coarse=1))
    """
    counts = epsilon * COUNTS / (STRUCTURE + COUNTS)
    cells = int(max(size, 0) * counts / (_USEFUL * dimensions))
    fine = _MANY if cells >= _MANY**2 else _FEW
    coarse = 1
    while coarse < fine and 2 * coarse * fine <= cells:
        coarse *= 2
    return Bins(fine, coarse)


def require_pairs(box: Box) -> None:
    """Refuse more columns than can be compared two by two; from public facts."""
    PairCounts(box, _MANY)


def publish_tree(run: Run, box: Box, records: NoisySize, *, budget: Budget) -> MarginalTree:
    """Choose a tree over the columns of `box`, and add noise to the counts of its pairs.

    It is the network of degree one that PrivBayes would choose, over equal bins of a box.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The bins
        follow from the noisy number of records.  Each column but the first costs one choice
        among pairs, whose scores a record pulls apart by at most `DISTANCE.sensitivity_range`
        (docs/proofs/bayes_network.md).  A record lies in one cell of each of the d tables, so
        their counts move by d in all and get geometric noise for that.  The first column is
        drawn at random, whatever the rows hold; where a parent has one bin only, so is the
        tree, and all of the budget goes to the counts.
    """
    dimensions = box.dimensions
    bins = choose_bins(records.value, dimensions, budget.epsilon)
    kernel = PairCounts(box, bins.fine)
    if bins.coarse == 1:
        budgets = budget.split(counts=1)
        choices: list[Budget] = []
    else:
        budgets = budget.split(structure=STRUCTURE, counts=COUNTS)
        choices = budgets["structure"].split_evenly(dimensions - 1)
    tables = _roll_up(kernel, run.sum(kernel), bins)
    order, parents = _choose(run, tables, dimensions, choices)
    edges = list(zip(parents[1:], order[1:], strict=True))
    above = tables[order[1], order[0]].sum(axis=0)
    exact = np.concatenate([above, *(tables[edge].ravel() for edge in edges)])
    sensitivity = dimensions * kernel.sensitivity(run.neighbors)
    rate = budgets["counts"].epsilon / sensitivity
    noisy = run.add_noise(exact, sensitivity=sensitivity, budget=budgets["counts"])
    shape = (dimensions - 1, bins.coarse, bins.fine)
    return MarginalTree(
        tuple(order),
        tuple(parents),
        noisy[: bins.fine],
        noisy[bins.fine :].reshape(shape),
        rate,
        records,
    )


def _roll_up(kernel: PairCounts, counts: IntArray, bins: Bins) -> PairTables:
    """Compute, for all parents and children, counts by coarse bin of the one, fine of the other."""
    found = {}
    for (first, second), one in zip(kernel.pairs, counts, strict=True):
        for parent, child, table in ((first, second, one), (second, first, one.T)):
            merged = table.reshape(bins.coarse, -1, bins.fine).sum(axis=1)
            found[parent, child] = merged
    return found


def _choose(
    run: Run, tables: PairTables, dimensions: int, budgets: list[Budget]
) -> tuple[list[int], list[int]]:
    """Choose a column and one above it, again and again; without budgets, at random."""
    scores = {pair: DISTANCE.measure(counts) for pair, counts in tables.items()}
    order = [int(run.uniform_integers(dimensions, 1)[0])]
    parents = [ROOT]
    while len(order) < dimensions:
        options = [
            (above, below) for above in order for below in range(dimensions) if below not in order
        ]
        if budgets:
            chosen = run.select(
                np.array([scores[option] for option in options], dtype=np.int64),
                sensitivity_range=DISTANCE.sensitivity_range,
                budget=budgets[len(order) - 1],
            )
        else:
            chosen = int(run.uniform_integers(len(options), 1)[0])
        parents.append(options[chosen][0])
        order.append(options[chosen][1])
    return order, parents
