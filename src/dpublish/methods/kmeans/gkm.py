"""Publish centers that are means of the centers of random blocks of records.

Known as: GkM, k-means by sample and aggregate (GUPT).
Reference: P. Mohan, A. Thakurta, E. Shi, D. Song, D. Culler, "GUPT: Privacy Preserving Data
Analysis Made Easy", SIGMOD 2012; D. Su, PhD thesis, Purdue, 2016, section 4.3.2.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.quantile import rank_range
from dpublish.methods.kmeans.block_centers import (
    TAIL,
    block_centers,
    find_ranges,
    mean_of_blocks,
)
from dpublish.methods.kmeans.dplloyd_impr import SIZE_SHARE
from dpublish.methods.kmeans.eugkm import count_records
from dpublish.methods.kmeans.kernel_cluster_sums import require_columns
from dpublish.methods.kmeans.lloyd_round import require_clusters
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import public_generator, spread_centers

FEWEST_BLOCKS, MOST_BLOCKS = 2, 20_000
_RANGES = ("tight", "loose")


@dataclass(frozen=True, kw_only=True)
class GkM(Method[KMeansRelease]):
    """Method: deal the records into blocks, cluster each, publish the noisy mean."""

    name: ClassVar[str] = "gkm"

    clusters: int = setting("Number of clusters (k).")
    columns: tuple[str, ...] = setting(
        "Columns of numbers to cluster by; all of them unless named.", default=()
    )
    blocks: int | None = setting(
        "Number of blocks; the noisy number of records to the power 0.4 unless given.",
        default=None,
    )
    output_range: Literal["tight", "loose"] = setting(
        "Where centers may lie: tight is within the public bounds; loose spends half of the "
        "budget on quantiles of each column, as in the paper.",
        default="tight",
    )
    rounds: int = setting("Most rounds of k-means in each block.", default=20)

    def __post_init__(self) -> None:
        require_clusters(self.clusters)
        require_count(rounds=self.rounds)
        require_known("output range", self.output_range, _RANGES)
        if self.blocks is not None:
            require_count(blocks=self.blocks, at_least=FEWEST_BLOCKS)
            if self.blocks > MOST_BLOCKS:
                raise InvalidParameter(f"blocks must be at most {MOST_BLOCKS:,}")
            object.__setattr__(self, "blocks", int(self.blocks))
        object.__setattr__(self, "clusters", int(self.clusters))  # a NumPy integer, too

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the noisy mean of the blocks' centers.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed: shares
            for the noisy number of records, for quantiles (loose only), and for the mean, one
            after the other.  Every record draws its block independently, so fix the draws of
            the others: the one record changes one block, whatever is computed there.  A
            block's centers are whole lattice numbers clipped to a public range, so the sums
            over blocks of the k coordinates of column j change by at most k (high_j - low_j)
            in all, and get geometric noise for that.  Proof: docs/proofs/block_centers.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        expected = self.expected_error(table.schema, None, budget.epsilon)
        box = Box.of(table.schema, self.columns)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(**self._shares())
        blocks = self.blocks or count_blocks(
            count_records(table, box, budget=budgets["size"], rng=rng).value
        )
        ranges = np.tile([-UNIT, UNIT], (box.dimensions, 1))
        if self.output_range == "loose":
            ranges = find_ranges(table, box, budget=budgets["ranges"], rng=rng)
        start = spread_centers(self.clusters, box.dimensions, public_generator(rng))
        found = []
        for number, block in enumerate(table.split(blocks, rng, box.names), start=1):
            found.append(block_centers(block, box, start, self.rounds))
            if progress is not None:
                progress(number, blocks, "blocks")
        mean = mean_of_blocks(found, ranges, budget=budgets["mean"], rng=rng)
        return KMeansRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=box.columns),
            centers=box.unscale(mean),
            expected=dict(expected.figures),
            notes=(f"{blocks:,} blocks",),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a coordinate; how good the blocks' centers are, nobody knows.

        If neither the blocks nor the records are known to be many, the fewest are assumed.
        """
        box = Box.of(schema, self.columns)
        require_columns(box)
        shares = self._shares()
        unit = epsilon / sum(shares.values(), Fraction(0))
        mean = unit * shares["mean"] / box.dimensions
        require_rate(mean / (self.clusters * 2 * UNIT))
        if "size" in shares:
            require_rate(unit * shares["size"])
        if "ranges" in shares:
            require_rate(unit * shares["ranges"] / (2 * box.dimensions * rank_range(TAIL)))
        blocks = self.blocks or count_blocks(n_records or 0)
        # Of sums of coordinates that are 1 wide each.
        deviation = sqrt(2) * self.clusters / float(mean) / blocks
        figures = {"blocks": float(blocks), "coordinate_deviation": deviation}
        summary = (
            f"each coordinate of each center with noise of {deviation:.2g} of its column's width "
            f"(standard deviation) for {blocks:,} blocks, before it is moved into the bounds"
        )
        return ExpectedError(summary, figures, target="coordinate_deviation")

    def _shares(self) -> dict[str, Fraction]:
        size = {} if self.blocks else {"size": SIZE_SHARE}
        rest = 1 - sum(size.values(), Fraction(0))
        if self.output_range == "tight":
            return {**size, "mean": rest}
        return {**size, "ranges": rest / 2, "mean": rest / 2}


def count_blocks(records: int) -> int:
    """Choose how many blocks there are, from a public or noisy number of records.

    >>> count_blocks(-5), count_blocks(48_842)
    (2, 75)
    """
    return int(min(max(round(max(records, 1) ** 0.4), FEWEST_BLOCKS), MOST_BLOCKS))
