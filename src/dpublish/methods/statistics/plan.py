"""The plan: which sums pay for which measures, and which share of epsilon each gets.

It follows from the schema and the settings alone.  Measures of one column share sums: mean, sum
and count of a column come from two, with the variance from three, and a sum by itself from one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from typing import Literal

import numpy as np

from dpublish.accuracy.noise_distribution import Terms, quantile
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.statistics.intervals import laplace_bound, rank_distance
from dpublish.methods.statistics.kernels import (
    Bounds,
    GroupCells,
    GroupCounts,
    GroupMoments,
    GroupStatistics,
    GroupSums,
    Part,
)
from dpublish.methods.statistics.measures import Measure
from dpublish.types import FloatArray

MOST_GROUPS = 100_000
MOST_NUMBERS = 1 << 25
MOST_CELLS, FEWEST_CELLS = 4096, 256
"""Cells of a column whose quantiles are published, in each group."""
_TYPICAL_RISK = 0.05


@dataclass(frozen=True)
class Share:
    """A share of epsilon, and the measures that follow from what it pays for.

    Attributes:
        name: The name of the share in the receipt.
        part: What is added up over records.
        measures: The measures that follow.
        weight: How much of epsilon it gets, in proportion.
    """

    name: str
    part: Part
    measures: tuple[Measure, ...]
    weight: int

    @property
    def numbers(self) -> int:
        """Published numbers of each group; of a quantile the cell, and the interval's ends."""
        return 3 if isinstance(self.part, GroupCells) else self.part.rows


@dataclass(frozen=True)
class Plan:
    """What is added up, published and paid for."""

    axes: tuple[Axis, ...]
    shares: tuple[Share, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of groups along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return prod(self.shape)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What is added up over records, each once."""
        return tuple(dict.fromkeys(share.part for share in self.shares))

    def kernel(self, schema: Schema) -> GroupStatistics:
        """Return the kernel that adds up all parts in one pass."""
        by = tuple((axis.column, axis.level) for axis in self.axes)
        return GroupStatistics(schema, by, self.parts)

    def share_of(self, measure: Measure) -> Share:
        """Find the share that pays for a measure."""
        return next(share for share in self.shares if measure in share.measures)

    def epsilons(self, epsilon: Fraction) -> dict[str, Fraction]:
        """Return the epsilon of each share, as `Budget.split` shares it out."""
        total = sum(share.weight for share in self.shares)
        return {share.name: epsilon * share.weight / total for share in self.shares}


def make_plan(
    schema: Schema,
    axes: tuple[Axis, ...],
    measures: Sequence[Measure],
    shares: Mapping[Measure, int] | None = None,
) -> Plan:
    """Plan what is added up for the measures; refuse more than can be held."""
    groups = prod(axis.size for axis in axes)
    if groups > MOST_GROUPS:
        raise InvalidParameter(
            f"{groups:,} groups are too many (at most {MOST_GROUPS:,}); take fewer columns, or "
            "coarser levels with name@level"
        )
    cells = _choose_cells(groups, measures)
    found: dict[Part, list[Measure]] = {}
    separate: list[tuple[Part, Measure]] = []
    for measure in measures:
        if measure.function == "quantile":
            separate.append((_cells_of(schema, measure, cells), measure))
        else:
            found.setdefault(_part_of(schema, measure, measures), []).append(measure)
    listed = [(part, tuple(some)) for part, some in found.items()]
    listed += [(part, (one,)) for part, one in separate]
    return Plan(axes, tuple(_share(part, some, shares or {}) for part, some in listed))


def _choose_cells(groups: int, measures: Sequence[Measure]) -> int:
    columns = {one.column for one in measures if one.function == "quantile"}
    cells = MOST_CELLS
    while columns and cells * groups * len(columns) > MOST_NUMBERS:
        cells //= 2
    if cells < FEWEST_CELLS:
        raise InvalidParameter(
            f"{groups:,} groups are too many for quantiles of {len(columns)} columns; take fewer "
            "groups, or no quantiles"
        )
    return cells


def bounds_of(schema: Schema, name: str | None) -> Bounds:
    """Return the bounds of a measured column."""
    column = schema[str(name)]
    if not isinstance(column, NumberColumn):
        raise InvalidParameter(f"column {column.name!r} holds no numbers")
    return Bounds.of(column)


def _cells_of(schema: Schema, measure: Measure, cells: int) -> GroupCells:
    bounds = bounds_of(schema, measure.column)
    if bounds.whole:
        cells = min(cells, int(bounds.width) + 1)
    return GroupCells(str(measure.column), bounds, cells)


def _part_of(schema: Schema, measure: Measure, measures: Sequence[Measure]) -> Part:
    if measure.column is None:
        return GroupCounts()
    bounds = bounds_of(schema, measure.column)
    asked = {one.function for one in measures if one.column == measure.column}
    if asked & {"variance", "std"}:
        return GroupMoments(measure.column, bounds, 2)
    if asked - {"quantile"} == {"sum"}:
        return GroupSums(measure.column, bounds)
    return GroupMoments(measure.column, bounds, 1)


def _share(part: Part, measures: tuple[Measure, ...], given: Mapping[Measure, int]) -> Share:
    name = str(measures[0]) if isinstance(part, GroupCells) else _name(part)
    if given:
        return Share(name, part, measures, sum(given[one] for one in measures))
    worst = max(relative_error(part, one) for one in measures)
    return Share(name, part, measures, max(round(10 * worst), 1))


def _name(part: Part) -> str:
    if part.column is None:
        return "count"
    kind: Literal["sum", "moments"] = "sum" if isinstance(part, GroupSums) else "moments"
    return f"{kind} of {part.column}"


# --- How large the error will be -------------------------------------------------------------


def relative_error(part: Part, measure: Measure) -> float:
    """Predict the error of a measure at epsilon 1 relative to its size, times records of a group.

    Half of the range stands for the size of a value, and values are taken to be evenly
    distributed.  Every error shrinks with 1 / epsilon, so shares in proportion to these make
    all relative errors the same: the worst is least.
    """
    typical = typical_size(part, measure, 1.0)
    return noise_half_width(part, measure, Fraction(1), 1.0) / typical


def typical_size(part: Part, measure: Measure, records: float) -> float:
    """Return the size that a measure of so many records has, roughly."""
    if measure.function == "count":
        return records
    bounds = part.bounds  # type: ignore[attr-defined]
    sizes = {
        "sum": records * bounds.largest / 2,
        "mean": bounds.width / 2,
        "variance": bounds.width**2 / 12,
        "std": bounds.width / sqrt(12),
        "quantile": bounds.width / 2,
    }
    return float(sizes[measure.function])


def noise_half_width(
    part: Part,
    measure: Measure,
    epsilon: Fraction,
    records: float,
    *,
    interval_share: Fraction = Fraction(1, 2),
) -> float:
    """Predict how far a measure is from the truth (95 %), in its own unit.

    Of a group of so many records with values that are evenly distributed between the bounds.
    """
    if isinstance(part, GroupCounts):
        return quantile(Terms.alike(epsilon, 1), 1 - _TYPICAL_RISK)
    if isinstance(part, GroupSums):
        rate = epsilon / part.record_change
        return part.unit * quantile(Terms.alike(rate, 1), 1 - _TYPICAL_RISK)
    if isinstance(part, GroupCells):
        steps = choice_error(measure, epsilon * (1 - interval_share))
        return part.bounds.width * steps / records
    if not isinstance(part, GroupMoments):
        raise InvalidParameter("this part has no known noise")
    weights = _typical_weights(part, measure, records)
    return float(laplace_bound(weights[None, :], _TYPICAL_RISK)[0]) / float(epsilon)


def _typical_weights(part: GroupMoments, measure: Measure, records: float) -> FloatArray:
    """Weigh the noise of the moments as the measure does, at the middle of the bounds."""
    bounds, positions = part.bounds, np.linspace(0.0, 1.0, part.rows)
    if measure.function == "count":
        return np.ones(part.rows)
    if measure.function == "sum":
        return np.asarray(bounds.low + bounds.width * positions)
    if measure.function == "mean":
        return np.asarray(bounds.width * (positions - 0.5) / records)
    squares = np.array([0.25, -0.25, 0.25]) - 1 / 12
    if measure.function == "variance":
        return np.asarray(bounds.width**2 * squares / records)
    return np.asarray(bounds.width * squares * sqrt(12) / 2 / records)


def choice_range(measure: Measure) -> int:
    """Return how far one record pulls two scores of cells apart, in steps of 1 / denominator.

    A score is the distance of the wanted rank from a cell's; one record moves each rank by
    the part p, or by 1 - p the other way.
    """
    part = measure.part or Fraction(1, 2)
    return 2 * max(part.numerator, part.denominator - part.numerator)


def choice_error(measure: Measure, epsilon: Fraction) -> float:
    """Predict by how many records a chosen cell misses the wanted rank (95 %)."""
    part = measure.part or Fraction(1, 2)
    return choice_range(measure) / part.denominator * 3.0 / float(epsilon)


def rank_steps(part: GroupCells, measure: Measure, epsilon: Fraction, confidence: float) -> int:
    """Return how far from the wanted rank the ends of an interval aim; `epsilon` pays for one."""
    rate = epsilon / choice_range(measure)
    return rank_distance(part.cells, rate, (1 - confidence) / 2)
