"""Publish a tree of boxes: cut at private medians first, then in the middle, counted at all depths.

Known as: PSD, private spatial decomposition, in its hybrid form (kd-hybrid).
Reference: G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu, "Differentially Private
Spatial Decompositions", ICDE 2012.  The number of records is a noisy one here, medians are
exact private choices, and the least squares allow for any variances.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log2
from typing import ClassVar

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.selection import selection_rate
from dpublish.methods.histogram.domain import require_names
from dpublish.methods.spatial.box_domain import MOST_BOXES, BoxDomain, release_size
from dpublish.methods.spatial.box_splits import Growth, cut_at_medians
from dpublish.methods.spatial.grid_sizes import wanted_cells
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.privacy.budget import Budget

SIZE_SHARE = Fraction(1, 50)
MOST_LEVELS = MOST_BOXES.bit_length() - 2  # so that all levels together have MOST_BOXES boxes
MOST_APART = 4  # columns whose missing values are cut off first
MOST_MEDIANS = 8  # levels with private medians; beyond, boxes are many and each choice is poor
_CONSTANT = 20  # twice that of a grid: the counts of a level have but a part of epsilon


@dataclass(frozen=True, kw_only=True)
class PSD(Method[SpatialRelease]):
    """Method: cut boxes in two, again and again, and perturb the count of every box."""

    name: ClassVar[str] = "psd"

    columns: tuple[str, ...] = setting(
        "Columns to cut; all numeric, integer and ordinal ones unless named.", default=()
    )
    median_share: Fraction = setting(
        "Part of epsilon, after the number of records is paid for, that buys the medians.",
        default=Fraction(3, 10),
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        if not 0 < self.median_share < 1:
            raise InvalidParameter(f"median_share ({self.median_share}) must lie between 0 and 1")

    def _release(self, run: Run) -> SpatialRelease:
        """Publish the boxes of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  A
            fiftieth buys the noisy number of records, which decides how many levels there
            are.  Each level of medians has a share; its boxes are disjoint and public, so
            the choices cost the largest (`cut_at_medians`).  Each level of counts has a
            share, too: a record lies in one box of it, so the counts of a level change by 1
            in all.  Every step holds for any outcome of those before it, so the shares add
            up (sequential composition).  Proof: docs/proofs/boxes.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        domain = self._domain(table.schema, budget.epsilon)
        # Opened before any row is read: a budget that is already used stops here.
        budgets = budget.split(size=SIZE_SHARE, tree=1 - SIZE_SHARE)
        size = release_size(table, domain, budget=budgets["size"], rng=rng)
        height = tree_height(domain, size.value, budgets["tree"].epsilon)
        medians = median_levels(height)
        shares = _share_out(budgets["tree"], self.median_share, medians, height)
        growth = Growth(domain)
        apart = set_apart(growth)
        for depth in range(height):
            if depth < medians:
                cut_at_medians(growth, table, budget=shares[f"median-{depth}"], rng=rng)
            else:
                columns = growth.last.next_columns(domain.sizes)
                growth.grow(columns, growth.last.middles(columns))
            if progress is not None:
                progress(depth + 1, height + 1, "boxes")
        exact = growth.sum_up(table.sum(growth.kernel(np.ones_like(growth.last.lows))))
        budget_of = {depth: shares[f"counts-{depth}"] for depth in counted_levels(height)}
        counts = [
            add_geometric(level, sensitivity=1, budget=budget_of[depth], rng=rng)
            if depth in budget_of
            else np.zeros_like(level)
            for depth, level in enumerate(exact, start=-apart)
        ]
        if progress is not None:
            progress(height + 1, height + 1, "counts")
        sizes = [level.parents.size for level in growth.levels]
        return SpatialRelease(
            receipt=run.receipt(),
            schema=domain.schema,
            lows=np.concatenate([level.lows for level in growth.levels]),
            highs=np.concatenate([level.highs for level in growth.levels]),
            parents=_parents(growth),
            levels=np.repeat(np.arange(len(sizes)), sizes),
            rates=tuple(
                budget_of[depth].epsilon if depth in budget_of else None
                for depth in range(-apart, height + 1)
            ),
            counts=np.concatenate(counts),
            size=size,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a box at the end, in the deepest tree that can come out."""
        domain = self._domain(schema, epsilon)
        tree = epsilon * (1 - SIZE_SHARE)
        shares = _count_weights(most_levels(domain))
        rate = tree * (1 - self.median_share) * shares[-1] / sum(shares)
        figures = {"one_box_95": float(sum_quantile(rate, 1, 0.95))}
        if n_records is not None:
            boxes = 2 ** tree_height(domain, n_records, tree)
            figures |= {"boxes": float(boxes), "records_per_box": n_records / boxes}
        summary = f"the count of a box within {figures['one_box_95']:,.0f} of the truth (95 %)"
        return ExpectedError(summary, figures, target="one_box_95")

    def _domain(self, schema: Schema, epsilon: Fraction) -> BoxDomain:
        """Find the columns, and refuse an epsilon too small for the deepest tree."""
        domain = BoxDomain.choose(self.columns, schema)
        require_rate(epsilon * SIZE_SHARE)
        tree = epsilon * (1 - SIZE_SHARE)
        height = most_levels(domain)
        weights = _count_weights(height)
        require_rate(tree * (1 - self.median_share) * weights[0] / sum(weights))
        selection_rate(tree * self.median_share / max(median_levels(height), 1), 2)
        return domain


def most_levels(domain: BoxDomain) -> int:
    """Say how deep a tree may become: until all boxes are single cells, or too many."""
    apart = len(_set_apart_columns(domain))
    return min(ceil(sum(log2(size) for size in domain.sizes)), MOST_LEVELS - apart)


def tree_height(domain: BoxDomain, size: int, epsilon: Fraction) -> int:
    """Say how many times to cut boxes in two, for a noisy number of records."""
    boxes = wanted_cells(np.array([size]), epsilon, domain.dimensions, _CONSTANT)[0]
    return min(floor(log2(boxes)), most_levels(domain))


def median_levels(height: int) -> int:
    """Say how many levels are cut at medians: the first half, where boxes hold many records."""
    return min(ceil(height / 2), MOST_MEDIANS)


def set_apart(growth: Growth) -> int:
    """Cut off the leaves of missing and unlisted values; say how many cuts that took.

    They stand after all others and have no place in the order, so no box should hold both.
    The cuts are public and cost nothing.  Of very many such columns only the first are cut.
    """
    places = _set_apart_columns(growth.domain)
    for place in places:
        boxes = growth.last.parents.size
        at = growth.domain.schema.columns[place].axis().ordinary_leaves
        growth.grow(np.full(boxes, place, dtype=np.int64), np.full(boxes, at, dtype=np.int64))
    return len(places)


def _set_apart_columns(domain: BoxDomain) -> list[int]:
    columns = enumerate(domain.schema.columns)
    return [place for place, column in columns if column.axis().special][:MOST_APART]


def counted_levels(height: int) -> range:
    """Say which levels have counts: all but the root, whose number of records is known."""
    return range(min(height, 1), height + 1)


def _count_weights(height: int) -> list[int]:
    """Weigh the levels of counts: each gets about 2^(1/3) times as much as the one above."""
    return [round(64 * 2 ** (depth / 3)) for depth in counted_levels(height)]


def _share_out(
    budget: Budget, median_share: Fraction, medians: int, height: int
) -> dict[str, Budget]:
    """Give each level of medians and each level of counts its budget."""
    weights = _count_weights(height)
    share = median_share if medians else Fraction(0)
    named = {f"median-{depth}": share / medians for depth in range(medians)}
    for depth, weight in zip(counted_levels(height), weights, strict=True):
        named[f"counts-{depth}"] = (1 - share) * Fraction(weight, sum(weights))
    return budget.split(**named)


def _parents(growth: Growth) -> np.ndarray:
    """Number the boxes through, and give the number of the box around each."""
    sizes = [level.parents.size for level in growth.levels]
    starts = np.cumsum([0, *sizes])
    below = [start + level.parents for start, level in zip(starts, growth.levels[1:], strict=False)]
    return np.concatenate([[-1], *below])
