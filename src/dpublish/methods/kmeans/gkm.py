"""GkM: centers that are means of the centers of random blocks of records."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.quantile import rank_range
from dpublish.methods.histogram.released import few
from dpublish.methods.kmeans.kernels import ClusterSums
from dpublish.methods.kmeans.method import SIZE_SHARE, CenterMethod, count_records, publish_centers
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.starting_centers import separated_centers
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray, IntArray

FEWEST_BLOCKS, MOST_BLOCKS = 2, 20_000
RANGE_CELLS = 1024
"""Cells of a column among which its quantiles are looked for."""
TAIL = Fraction(1, 20)
"""Part of the records that a loose range leaves out at either end."""
_RANGES = ("tight", "loose")


@dataclass(frozen=True, kw_only=True)
class GkM(CenterMethod):
    """Publish centers of clusters that are the noisy mean of the centers of random blocks.

    Every record joins one block at random, each block is clustered by itself, and the centers
    of all blocks are averaged with noise (sample and aggregate).  Choose it to compare with
    GUPT; choose `KMeans` for the best centers.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/block_centers.md.

    Parameters:
        n_clusters: Number of clusters (k), at most 1,000.
        columns: Columns of numbers to cluster by; all of them unless named.
        blocks: Number of blocks, from 2 to 20,000.  Unless given, 3 % of epsilon pays for the
            noisy number of records, and there are as many blocks as that to the power 0.4.
        output_range: `"tight"` averages within the public bounds; `"loose"` spends half of the
            budget on quantiles of each column first, as in the paper.
        max_iter: Number of rounds of k-means in each block.

    Returns:
        A `KMeansRelease` with `centers`, `label(rows)` and `notes`, which state the number of
        blocks.  It holds no grid, so that it answers no counts.

    Example:
        >>> from dpublish import Budget, GkM, datasets, seeded
        >>> points = datasets.table("points", 5_000)
        >>> method = GkM(n_clusters=5, columns=("x1", "x2"), blocks=30)
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.centers.round(2).tolist()
        [[-1.0, 0.1], [0.24, 0.99], [-0.03, -0.12], [0.29, 1.0], [-0.51, -0.33]]

    Reference:
        P. Mohan, A. Thakurta, E. Shi, D. Song, D. Culler, "GUPT: Privacy Preserving Data
        Analysis Made Easy", SIGMOD 2012; D. Su, PhD thesis, Purdue, 2016, section 4.3.2.
    """

    name: ClassVar[str] = "gkm"
    proofs: ClassVar[tuple[str, ...]] = ("block_centers", "selection", "exact")
    publishes: ClassVar[str] = "cluster centers, averaged over random blocks of records"
    prefer_when: ClassVar[str] = "you compare with sample-and-aggregate"
    standing: ClassVar[Standing] = "baseline"

    blocks: int | None = setting(
        "Number of blocks; the noisy number of records to the power 0.4 unless given.",
        default=None,
    )
    output_range: Literal["tight", "loose"] = setting(
        "Where centers may lie: tight is within the public bounds; loose spends half of the "
        "budget on quantiles of each column, as in the paper.",
        default="tight",
    )
    max_iter: int = setting("Number of rounds of k-means in each block.", default=20)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(max_iter=self.max_iter)
        require_known("output range", self.output_range, _RANGES)
        if self.blocks is not None:
            require_count(blocks=self.blocks, at_least=FEWEST_BLOCKS)
            if self.blocks > MOST_BLOCKS:
                raise InvalidParameter(f"blocks must be at most {MOST_BLOCKS:,}")
            object.__setattr__(self, "blocks", int(self.blocks))

    def _release(self, run: Run) -> KMeansRelease:
        """Publish the noisy mean of the blocks' centers.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed: shares
            for the noisy number of records, for quantiles (loose only), and for the mean, one
            after the other.  Every record draws its block independently, so fix the draws of
            the others: the one record changes one block, whatever is computed there.  A
            block's centers are whole lattice numbers clipped to a public range, so the sums
            over blocks of the k coordinates of column j change by at most k (high_j - low_j)
            in all, and get geometric noise for that.  Proof: docs/proofs/block_centers.md.
        """
        box = self.box(run.schema)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = run.split(**self._shares())
        blocks = self.blocks
        if blocks is None:
            blocks = count_blocks(count_records(run, box, budget=budgets["size"]).value)
        ranges = np.tile([-UNIT, UNIT], (box.dimensions, 1))
        if self.output_range == "loose":
            ranges = find_ranges(run, box, budget=budgets["ranges"])
        start = separated_centers(self.n_clusters, box.dimensions, run.public_generator())
        found = []
        for number, block in enumerate(run.split_rows(blocks, box.names), start=1):
            found.append(block_centers(run.on(block), box, start, self.max_iter))
            run.step(number, blocks, "blocks")
        mean = mean_of_blocks(run, found, ranges, budget=budgets["mean"])
        return publish_centers(run, box, mean, notes=(f"{blocks:,} blocks",))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a coordinate; not how good the centers of the blocks are.

        If neither the blocks nor the records are known to be many, the fewest are assumed.
        """
        box = self.box(schema)
        shares = self._shares()
        unit = epsilon / sum(shares.values(), Fraction(0))
        mean = unit * shares["mean"] / box.dimensions
        require_rate(mean / (self.n_clusters * 2 * UNIT))
        if "size" in shares:
            require_rate(unit * shares["size"])
        if "ranges" in shares:
            require_rate(unit * shares["ranges"] / (2 * box.dimensions * rank_range(TAIL)))
        blocks = self.blocks or count_blocks(n_records or 0)
        # Of sums of coordinates that are 1 wide each.
        deviation = sqrt(2) * self.n_clusters / float(mean) / blocks
        figures = {"blocks": float(blocks), "coordinate_deviation": deviation}
        summary = (
            f"each coordinate of each center with noise of {few(deviation)} of its column's width "
            f"(standard deviation) for {blocks:,} blocks, before it is moved into the bounds"
        )
        return ExpectedError(summary, figures, target="coordinate_deviation", is_of_goal=False)

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


# --- Centers of the blocks, and what is published of all of them ----------------------------


def block_centers(block: Run, box: Box, start: FloatArray, max_iter: int) -> IntArray:
    """Find centers of a block in lattice coordinates, in the order of `start`.

    The answer is exact and private: only what one record changes in all blocks together may
    be published.  A block with fewer records than centers returns the start; a center that no
    record is nearest to stays where it is.  Every block takes all rounds, whatever it holds,
    so that their number depends on no record.
    """
    centers, enough = start, False
    for _ in range(max_iter):
        sums = block.sum(ClusterSums(box, centers))
        counts = sums[:, :1]
        enough = bool(counts.sum() >= len(start))
        means = sums[:, 1:] / (np.maximum(counts, 1) * UNIT)
        centers = np.where(counts > 0, means, centers)
    return _on_lattice(centers if enough else start)


def mean_of_blocks(
    run: Run, centers: Sequence[IntArray], ranges: IntArray, *, budget: Budget
) -> FloatArray:
    """Publish the mean of lattice centers (k, d), one set per block, between -1 and 1.

    Args:
        run: The release at work.
        centers: The centers of each block; as many sets as there are blocks.
        ranges: Public lowest and highest lattice coordinate of each column.
        budget: Budget to empty, in equal shares over the columns.

    Privacy:
        `budget.epsilon`-differentially private for neighbors that differ in one block's
        centers, in whatever way.  Of the sums over blocks each coordinate in column j moves
        by at most high_j - low_j, since all are clipped to that range, so the k of them move
        by k times that in sum (L1), and get geometric noise for it.
    """
    budgets = budget.split_evenly(len(ranges), "column")
    total = np.zeros_like(centers[0])
    for block in centers:
        total += np.clip(block, ranges[:, 0], ranges[:, 1])
    found = np.empty(total.shape)
    for column, ((low, high), share) in enumerate(zip(ranges.tolist(), budgets, strict=True)):
        sensitivity = len(total) * (high - low)
        noisy = run.add_noise(total[:, column], sensitivity=sensitivity, budget=share)
        found[:, column] = np.clip(noisy / (len(centers) * UNIT), low / UNIT, high / UNIT)
    return found


def find_ranges(run: Run, box: Box, *, budget: Budget) -> IntArray:
    """Publish where the middle nine tenths of each column lie, in lattice coordinates.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: two
        quantiles of each column, each for an equal share (`quantile`).  Records are put into
        public cells one by one.  A range that is none (the noise crossed its ends) is
        replaced by the public bounds, which looks at the noisy ends only.
    """
    width = 2 * UNIT // RANGE_CELLS
    budgets = iter(budget.split_evenly(2 * box.dimensions, "end"))
    ranges = np.empty((box.dimensions, 2), dtype=np.int64)
    for number, column in enumerate(box.columns):
        counts = run.sum(BoxGrid(Box((column,)), (RANGE_CELLS,)))
        values = np.repeat(np.arange(RANGE_CELLS), counts)
        low, high = (
            int(
                run.quantile(
                    values,
                    probability=probability,
                    lower=0,
                    upper=RANGE_CELLS - 1,
                    cells=RANGE_CELLS - 1,
                    budget=next(budgets),
                )
            )
            for probability in (TAIL, 1 - TAIL)
        )
        inside = (low, high + 1) if low <= high else (0, RANGE_CELLS)
        ranges[number] = [end * width - UNIT for end in inside]
    return ranges


def _on_lattice(centers: FloatArray) -> IntArray:
    return np.clip(np.rint(centers * UNIT), -UNIT, UNIT).astype(np.int64)
