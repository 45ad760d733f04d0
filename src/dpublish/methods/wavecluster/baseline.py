"""The baseline of the WaveCluster paper: the plain algorithm on a noisy adaptive grid.

The grid is made without regard to clusters: it is finer where there are more records (AG).  For
other than two columns it is a uniform one (UG).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy import sparse

from dpublish.accuracy.intervals import half_width
from dpublish.aggregates.box_grid import MOST_CELLS, BoxGrid
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.wavecluster.kernels import SplitGrid
from dpublish.methods.wavecluster.plan import WaveMethod, WavePlan, require_share
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.methods.wavecluster.wavecluster import MOST_PER_CELL, significant_cells
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray, IntArray

Points = Literal["even", "drawn"]
POINTS = ("even", "drawn")
ALPHA = Fraction(1, 2)
_PARTS = 1 << 10  # estimates are whole multiples of this part of a record
_FIRST_CONSTANT, _SECOND_CONSTANT = 10, 5
_LEAST_FIRST = 10
_MOST_SPLIT = 64


@dataclass(frozen=True, kw_only=True)
class WaveBaseline(WaveMethod):
    """Publish clusters of any shape, found by WaveCluster in a noisy adaptive grid.

    The adaptive grid is finer where there are more records.  Its estimates are distributed over
    WaveCluster's own grid, evenly or as points that are drawn, and the plain algorithm runs
    there.  Choose it to compare with the paper's baseline; choose `PrivTHR` otherwise.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  The number of
        records, the first counts and those of their parts spend one share each.
        Proof: docs/proofs/wavecluster.md.

    Parameters:
        columns, cells, wavelet, levels: The grid and how it is smoothed, as for `PrivTHR`.
        percentile, adjacency, min_cells: What makes a cluster, as for `PrivTHR`.
        points: How an estimate gets into WaveCluster's own grid: `"even"` divides it in
            proportion to the area; `"drawn"` rounds it and draws as many points, as printed.
        size_share: Part of epsilon that the number of records spends.

    Returns:
        A `WaveClusterRelease` with `clusters`, `label(rows)`, `masses()`, `count(query)`
        (without a confidence interval), `rows(n)` and `tables()`.

    Example:
        >>> from dpublish import Budget, WaveBaseline, datasets, seeded
        >>> points = datasets.table("shapes", 5_000)
        >>> method = WaveBaseline(min_cells=5)
        >>> release = method.release(points, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["clusters"]
        '1, made of 266 of 400 coefficients'

    Reference:
        L. Chen, T. Yu, R. Chirkova, "WaveCluster with Differential Privacy", CIKM 2015;
        W. Qardaji, W. Yang, N. Li, "Differentially Private Grids for Geospatial Data", ICDE
        2013, with a noisy number of records.  As printed with `points` drawn.
    """

    name: ClassVar[str] = "wave-baseline"
    proofs: ClassVar[tuple[str, ...]] = ("wavecluster", "exact")
    publishes: ClassVar[str] = "clusters of any shape, found in an adaptive grid"
    prefer_when: ClassVar[str] = "you want the baseline that other shape methods have to beat"
    standing: ClassVar[Standing] = "baseline"

    points: Points = setting(
        "How an estimate gets into WaveCluster's own grid: even divides it in proportion to the "
        "area, drawn rounds it and draws as many points.",
        default="even",
    )
    size_share: Fraction = setting(
        "Part of epsilon that pays for the number of records.", default=Fraction(2, 100)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("points", self.points, POINTS)
        require_share("size_share", self.size_share)

    def _release(self, run: Run) -> WaveClusterRelease:
        """Publish clusters of the records.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed, by
            sequential composition: the number of records, the counts of the first cells and
            those of their parts each move by 1 in all and get noise of rate their share.  The
            first cells depend on the noisy number, their parts on the noisy counts; where
            they lie is not learned from rows.  All else is computed from the noisy counts;
            points are drawn from these, by a generator that no record decides.
        """
        plan = WavePlan.of(run.schema, self)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = run.split(size=self.size_share, grid=1 - self.size_share)
        everyone = BoxGrid(plan.box, (1,) * plan.box.dimensions)
        size = run.noisy_size(int(run.sum(everyone)[0]), budget=budgets["size"])
        make = adaptive_estimates if plan.box.dimensions == 2 else uniform_estimates
        estimates = make(run, plan, size, budget=budgets["grid"])
        if self.points == "drawn":
            whole, unit = draw_points(estimates, plan.transform.sizes, run.public_generator()), 1
        else:
            shares = distribute(estimates, plan.transform.sizes)
            whole, unit = np.rint(shares * _PARTS).astype(np.int64), _PARTS
        significant = significant_cells(plan.transform.apply(whole), self.percentile)
        run.step(1, 1, "grid")
        return plan.publish(run, significant, whole / unit)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the errors of the number of records and of one count of the grid."""
        plan = WavePlan.of(schema, self)
        size_rate = epsilon * self.size_share
        is_adaptive = plan.box.dimensions == 2
        rest = epsilon - size_rate
        rate = rest * (1 - ALPHA) if is_adaptive else rest
        require_rate(size_rate)
        require_rate(rate)
        figures = plan.figures() | {
            "one_part_95": half_width(rate, np.ones(1), 0.95),
            "number_of_records_95": half_width(size_rate, np.ones(1), 0.95),
        }
        if n_records:
            cut = (
                first_size(n_records, rest)
                if is_adaptive
                else uniform_size(n_records, rest, plan.box.dimensions)
            )
            figures["first_cells_along"] = float(cut)
        summary = (
            f"each part of the grid within {figures['one_part_95']:,.0f} of the truth (95 %) "
            f"before it is distributed over {plan.kernel.cells:,} cells"
        )
        return ExpectedError(summary, figures, target="one_part_95", is_of_goal=False)


class Pieces(NamedTuple):
    """Estimates of pieces of the box, all equally large.

    Attributes:
        estimates: How many records each piece holds; at least 0.
        positions: For each column, the number of each piece along it.
        fine: Pieces that would lie along each column, were all of the box cut so.
    """

    estimates: FloatArray
    positions: tuple[IntArray, ...]
    fine: int


def adaptive_estimates(run: Run, plan: WavePlan, size: int, *, budget: Budget) -> list[Pieces]:
    """Estimate the parts of an adaptive grid of two columns, those of each size together.

    Privacy:
        `run.epsilon`-differentially private when one record is added or removed, for any
        `size`: two vectors of counts over partitions of the box, each of sensitivity 1, with
        noise of rate its share.  The second partition depends on the first noisy counts.
    """
    epsilon = budget.epsilon
    budgets = budget.split(first=ALPHA, parts=1 - ALPHA)
    along = first_size(size, epsilon)
    cells = BoxGrid(plan.box, (along, along))
    exact = run.sum(cells)
    first = run.add_noise(exact, of=cells, budget=budgets["first"])
    splits = split_sizes(first, epsilon)
    fine = SplitGrid(plan.box, along, splits)
    parts = run.add_noise(run.sum(fine), of=fine, budget=budgets["parts"])
    return pieces_of(np.maximum(combine(first, parts, splits), 0), splits, along)


def uniform_estimates(run: Run, plan: WavePlan, size: int, *, budget: Budget) -> list[Pieces]:
    """Estimate the cells of an equal grid, for any number of columns.

    Privacy:
        `run.epsilon`-differentially private when one record is added or removed, for any
        `size`: counts over a partition of the box have sensitivity 1 and get noise of rate
        epsilon.
    """
    along = uniform_size(size, budget.epsilon, plan.box.dimensions)
    cells = BoxGrid(plan.box, (along,) * plan.box.dimensions)
    counts = run.add_noise(run.sum(cells), of=cells, budget=budget)
    positions = np.unravel_index(np.arange(cells.cells), cells.sizes)
    estimates = np.maximum(counts, 0).astype(np.float64)
    return [Pieces(estimates, tuple(np.asarray(p, dtype=np.int64) for p in positions), along)]


# --- Grids that are finer where there are more records ---------------------------------------


def uniform_size(size: int, epsilon: Fraction, dimensions: int) -> int:
    """Compute into how many cells to cut each column, for a noisy number of records.

    >>> uniform_size(40_000, Fraction(1), 3), uniform_size(-5, Fraction(1), 3)
    (28, 1)
    """
    filled = max(size, 0) * float(epsilon) / _FIRST_CONSTANT
    along = ceil(filled ** (2 / (2 + dimensions))) if filled > 0 else 1
    return max(min(along, _largest_side(dimensions)), 1)


def first_size(size: int, epsilon: Fraction) -> int:
    """Compute into how many cells to cut each of two columns first, for a noisy number of records.

    >>> first_size(31_200, Fraction(98, 100)), first_size(-5, Fraction(1))
    (14, 10)
    """
    wanted = ceil(sqrt(max(size, 0) * float(epsilon) / _FIRST_CONSTANT) / 4)
    return min(max(wanted, _LEAST_FIRST), _largest_side(2))


def split_sizes(counts: IntArray, epsilon: Fraction) -> IntArray:
    """Compute into how many parts to cut each side of each cell, from the noisy counts.

    >>> split_sizes(np.array([-3, 0, 100, 10**9]), Fraction(1)).tolist()
    [1, 1, 4, 64]
    """
    share = float((1 - ALPHA) * epsilon) / _SECOND_CONSTANT
    wanted = np.ceil(np.sqrt(np.maximum(counts, 0) * share))
    most = _MOST_SPLIT
    while True:  # one part each is never too many
        splits = np.clip(wanted, 1, most).astype(np.int64)
        if int((splits**2).sum()) <= MOST_CELLS:
            return splits
        most -= 1


def combine(first: IntArray, parts: IntArray, splits: IntArray) -> FloatArray:
    """Estimate the parts from both levels, so that the parts of a cell add up to its estimate.

    The count of a cell and the sum of its parts are weighed by each other's variance; what
    that changes is shared evenly among the parts.
    """
    parts_each = splits**2
    of_cell = np.repeat(np.arange(splits.size), parts_each)
    sums = np.bincount(of_cell, weights=parts, minlength=splits.size)
    alpha = float(ALPHA)
    weight = alpha**2 * parts_each / ((1 - alpha) ** 2 + alpha**2 * parts_each)
    surplus = (weight * (first - sums)) / parts_each
    return np.asarray(parts + surplus[of_cell], dtype=np.float64)


def pieces_of(estimates: FloatArray, splits: IntArray, along: int) -> list[Pieces]:
    """Group the parts of a grid of two columns by their size.

    Args:
        estimates: Parts of all cells, cell by cell.
        splits: Parts along each side of each cell.
        along: First cells along each column.
    """
    starts = np.concatenate(([0], np.cumsum(splits**2)))
    found = []
    for split in np.unique(splits).tolist():
        cells = np.flatnonzero(splits == split)
        inside = np.arange(split * split)
        rows = (cells // along * split)[:, None] + inside // split
        columns = (cells % along * split)[:, None] + inside % split
        values = estimates[starts[cells][:, None] + inside]
        found.append(Pieces(values.ravel(), (rows.ravel(), columns.ravel()), along * split))
    return found


def distribute(pieces: list[Pieces], sizes: tuple[int, ...]) -> FloatArray:
    """Distribute pieces over the cells of a grid, in proportion to the volume."""
    found = np.zeros(sizes)
    for several in pieces:
        if len(sizes) == 2:
            shape = (several.fine, several.fine)
            part = sparse.csr_array((several.estimates, several.positions), shape=shape)
            across, up = (overlaps(size, several.fine) for size in sizes)
            found += (across @ part @ up.T).toarray()
        else:
            dense = np.zeros((several.fine,) * len(sizes))
            dense[several.positions] = several.estimates
            found += distribute_cells(dense, sizes)
    return found


def distribute_cells(counts: FloatArray, sizes: tuple[int, ...]) -> FloatArray:
    """Distribute a grid of cells over another grid, in proportion to the volume."""
    found = counts
    for axis, size in enumerate(sizes):
        along = np.moveaxis(found, axis, 0)
        flat = overlaps(size, along.shape[0]) @ along.reshape(along.shape[0], -1)
        found = np.moveaxis(flat.reshape(size, *along.shape[1:]), 0, axis)
    return found


def draw_points(pieces: list[Pieces], sizes: tuple[int, ...], rng: np.random.Generator) -> IntArray:
    """Round the estimate of each piece, draw as many points evenly in it, and count by cell.

    A point's coordinates are independent, so counting the points of a piece along one column
    after the other is the same as drawing each of them, and huge counts take no longer.
    """
    found = np.zeros(sizes, dtype=np.int64)
    for several in pieces:
        whole = np.minimum(np.rint(several.estimates), MOST_PER_CELL).astype(np.int64)
        filled = np.flatnonzero(whole)
        counts, cells = whole[filled], np.zeros(filled.size, dtype=np.int64)
        positions = [along[filled] for along in several.positions]
        for axis, size in enumerate(sizes):
            cells, counts, source = _draw_along(
                cells * size, counts, positions[axis], overlaps(size, several.fine), rng
            )
            positions = [along[source] for along in positions]
        np.add.at(found.reshape(-1), cells, counts)
    return found


def _draw_along(
    cells: IntArray, counts: IntArray, positions: IntArray, overlap: Any, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Split counts over the cells that their pieces meet along one column, by their lengths.

    Returns the cells, the counts, and from which of the given ones each comes.
    """
    table = overlap.tocsc()
    starts = table.indptr[positions].astype(np.int64)
    meets = table.indptr[positions + 1] - starts
    left, rest = counts.copy(), np.ones(counts.size)
    found: list[tuple[IntArray, IntArray, IntArray]] = []
    for step in range(int(meets.max(initial=0))):
        here = np.flatnonzero((step < meets) & (left > 0))
        share = table.data[starts[here] + step]
        is_last = meets[here] == step + 1
        odds = np.where(is_last, 1.0, np.clip(share / np.maximum(rest[here], 1e-12), 0, 1))
        drawn = rng.binomial(left[here], odds)
        left[here] -= drawn
        rest[here] -= share
        kept = drawn > 0
        target = cells[here] + table.indices[starts[here] + step]
        found.append((target[kept], drawn[kept], here[kept]))
    if not found:
        return cells[:0], counts[:0], cells[:0]
    targets, drawns, sources = zip(*found, strict=True)
    return np.concatenate(targets), np.concatenate(drawns), np.concatenate(sources)


def overlaps(coarse: int, fine: int) -> Any:
    """Compute the part of each of `fine` equal intervals that lies in each of `coarse` ones.

    >>> overlaps(2, 3).toarray().tolist()
    [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
    """
    # Between two neighboring edges of either kind lies a piece of one interval of each kind.
    edges = np.unique(np.concatenate((np.arange(coarse + 1) * fine, np.arange(fine + 1) * coarse)))
    rows, columns = edges[:-1] // fine, edges[:-1] // coarse
    return sparse.csr_array((np.diff(edges) / coarse, (rows, columns)), shape=(coarse, fine))


def _largest_side(dimensions: int) -> int:
    side = int(MOST_CELLS ** (1 / dimensions))
    return side + 1 if (side + 1) ** dimensions <= MOST_CELLS else side
