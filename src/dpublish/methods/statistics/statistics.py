"""Statistics: counts, sums, means, variances and quantiles of every group."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.core.noisy_size import RESERVED
from dpublish.data.schema import Schema, parse_columns, refuse_unit
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.statistics.kernels import GroupCells
from dpublish.methods.statistics.measures import (
    Measure,
    read_measures,
    read_shares,
    require_measurable,
    split_outside,
)
from dpublish.methods.statistics.plan import (
    INTERVAL_SHARE,
    Plan,
    Share,
    choice_range,
    make_plan,
    noise_half_width,
    rank_steps,
    typical_size,
)
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

TYPICAL_GROUP = 1_000
"""Records of a group for which errors are predicted if their number is not known."""


@dataclass(frozen=True, kw_only=True)
class Statistics(Method[StatisticsRelease]):
    """Publish counts, sums, means, variances and quantiles by group, each with an interval.

    All groups of the public domain are published, none is revealed or hidden by the data.  One
    pass over the records serves all measures and groups.  Choose it for a table of numbers;
    choose `Histogram` for counts of many cells, and `Marginals` for whole distributions.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/statistics.md.

    Parameters:
        measures: `count` (records of the group), `count(x)` (those with a value of x),
            `sum(x)`, `mean(x)`, `variance(x)`, `std(x)`, `median(x)`, `quantile(x, 0.9)`.
        by: Columns that make the groups; `"ward@1"` takes level 1 of the taxonomy.
        shares: How much of epsilon measures get, in proportion, as `mean(age)=2`; measures that
            are not named get 1.  Without any, shares make the worst relative error least.
        interval_share: The part of a quantile's share that pays for its interval (a third).
        confidence: Level of the intervals.
        suppress: Leave out numbers whose interval says nothing, by what was published alone.

    Returns:
        A `StatisticsRelease` with `rows()`, `totals()`, `value(measure, group)`, `to_pandas()`,
        `count(query)`, `tables()`.  Intervals are for the statistic of this very table, after
        clipping to the schema's bounds; not for a population from which it was drawn.

    Example:
        >>> from dpublish import Budget, Statistics, datasets, seeded
        >>> people = datasets.table("census", 20_000)
        >>> method = Statistics(measures=("count", "mean(age)"), by=("sex",))
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.value("mean(age)", {"sex": "Female"}))
        mean(age) 44.18 (44.15 to 44.21)

    Reference:
        A. Kulesza, A. T. Suresh, Y. Wang, "Mean Estimation in the Add-Remove Model of
        Differential Privacy", ICML 2024, for the sums behind a mean; A. Smith, "Privacy-
        preserving Statistical Estimation with Optimal Convergence Rates", STOC 2011, for
        quantiles; E. C. Fieller, "Some Problems in Interval Estimation", JRSS B 16(2), 1954.
    """

    name: ClassVar[str] = "statistics"
    proofs: ClassVar[tuple[str, ...]] = ("statistics", "selection", "exact")
    task: ClassVar[str] = "counting"
    publishes: ClassVar[str] = (
        "counts, sums, means, variances and quantiles by group, each with a confidence interval"
    )
    prefer_when: ClassVar[str] = "a table of numbers by group is what is wanted"
    standing: ClassVar[Standing] = "default"

    measures: tuple[str, ...] = setting(
        "What to compute in each group: count, count(x), sum(x), mean(x), variance(x), std(x), "
        "median(x), quantile(x, 0.9)."
    )
    by: tuple[str, ...] = setting(
        "Columns that make the groups; ward@1 takes the column at level 1 of its taxonomy. None: "
        "one group of all records.",
        default=(),
    )
    shares: tuple[str, ...] = setting(
        "How much of epsilon measures get, in proportion: mean(age)=2,count=1; those not named "
        "get 1. None: such that the worst relative error is least.",
        default=(),
    )
    interval_share: Fraction = setting(
        "The part of a quantile's share that pays for its confidence interval.",
        default=INTERVAL_SHARE,
    )
    confidence: Fraction = setting("Level of the confidence intervals.", default=Fraction(95, 100))
    suppress: bool = setting(
        "Leave out numbers whose interval says nothing; decided by published numbers alone.",
        default=False,
    )

    def __post_init__(self) -> None:
        for name in ("measures", "by", "shares"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        measures = read_measures(self.measures)
        object.__setattr__(self, "measures", tuple(map(str, measures)))
        object.__setattr__(self, "shares", tuple(split_outside(self.shares)))
        read_shares(self.shares, measures)
        for name in ("interval_share", "confidence"):
            value = getattr(self, name)
            if not isinstance(value, Fraction) or not 0 < value < 1:
                raise InvalidParameter(f"{name} must be a Fraction between 0 and 1")
        if self.confidence > Fraction(9999, 10000):
            raise InvalidParameter("confidence must be at most 0.9999")
        if not isinstance(self.suppress, bool):
            raise InvalidParameter("suppress must be true or false")

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads: groups and measured columns."""
        require_measurable(schema, read_measures(self.measures))  # named, not left out
        by = [name for name, _ in parse_columns(self.by, schema)]
        measured = [x.column for x in read_measures(self.measures) if x.column is not None]
        wanted = {*by, *measured} or {schema.names[0]}  # some column counts the rows
        return tuple(name for name in schema.names if name in wanted)

    def complete_columns(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a record must have to be in some measure: those of the groups.

        One without a measured value still counts, with units as without.
        """
        by = {name for name, _ in parse_columns(self.by, schema)}
        return tuple(name for name in schema.names if name in by)

    def _release(self, run: Run) -> StatisticsRelease:
        """Publish the statistics.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed: the
            shares add up to it (sequential composition).  A record lies in one group.  It
            changes counts by 1, sums by at most the larger bound, and moments by their scale
            in all, whatever its value (`GroupMoments`); geometric noise hides that.  A
            quantile is three choices among public cells, each of scores that one record pulls
            apart by at most `choice_range`; groups are disjoint, so one choice for each costs
            as much as one (`run.select_each`).  Everything else follows from these numbers.
            Proof: docs/proofs/statistics.md.
        """
        plan = self._plan(run.schema, run.epsilon)
        budgets = run.split(**{share.name: share.weight for share in plan.shares})
        epsilons = tuple(budgets[share.name].epsilon for share in plan.shares)
        kernel = plan.kernel(run.schema)
        sums = dict(zip(kernel.parts, kernel.split(run.sum(kernel)), strict=True))
        numbers = []
        for done, share in enumerate(plan.shares):
            exact, budget = sums[share.part], budgets[share.name]
            if isinstance(share.part, GroupCells):
                numbers.append(self._choose(run, share, exact, budget))
            else:
                numbers.append(run.add_noise(exact, of=share.part, budget=budget))
            run.step(done + 1, len(plan.shares), "statistics")
        columns = tuple(run.schema[name] for name in self.reads(run.schema))
        return StatisticsRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=columns),
            axes=plan.axes,
            measures=self.measures,
            numbers=np.concatenate([part.ravel() for part in numbers]),
            epsilons=epsilons,
            confidence=self.confidence,
            interval_share=self.interval_share,
            suppress=self.suppress,
        )

    def _choose(self, run: Run, share: Share, cells: IntArray, budget: Budget) -> IntArray:
        """Choose the cell of a quantile in every group, and the ends of its interval.

        Privacy:
            Costs `budget`: three choices, each from a share of it, for all groups at once.
        """
        measure = share.measures[0]
        ends = self.interval_share / 2
        parts = budget.split(estimate=1 - self.interval_share, low=ends, high=ends)
        steps = rank_steps(
            _cells_part(share), measure, parts["low"].epsilon, float(self.confidence)
        )
        chosen = [
            run.select_each(
                _scores(cells, measure, aim),
                sensitivity_range=choice_range(measure),
                budget=parts[name],
            )
            for name, aim in (("estimate", 0), ("low", -steps), ("high", steps))
        ]
        return np.array(chosen, dtype=np.int64)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of each measure in its own unit.

        For a group of average size (of 1,000 records, if their number is not given), with
        values that are evenly distributed between the bounds.
        """
        plan = self._plan(schema, epsilon)
        records = max(n_records / plan.groups, 1.0) if n_records else float(TYPICAL_GROUP)
        epsilons = plan.epsilons(epsilon)
        figures: dict[str, float] = {"groups": float(plan.groups), "records_per_group": records}
        worst = 0.0
        for share in plan.shares:
            for measure in share.measures:
                width = noise_half_width(
                    share.part,
                    measure,
                    epsilons[share.name],
                    records,
                    interval_share=self.interval_share,
                )
                figures[f"{measure}_95"] = width
                worst = max(worst, width / typical_size(share.part, measure, records))
        figures["worst_relative_error_95"] = worst
        summary = (
            f"{plan.groups:,} groups; in a group of {records:,.0f} records the least precise "
            f"number is within {100 * worst:,.1f} % of a typical size (95 %)"
        )
        return ExpectedError(summary, figures, target="worst_relative_error_95")

    def _plan(self, schema: Schema, epsilon: Fraction) -> Plan:
        """Plan the release; refuse what does not fit the schema or epsilon."""
        refuse_unit(schema)
        measures = read_measures(self.measures)
        require_measurable(schema, measures)
        chosen = parse_columns(self.by, schema)
        if RESERVED & {name for name, _ in chosen}:
            raise InvalidParameter(f"rename the columns {', '.join(sorted(RESERVED))} first")
        axes = tuple(schema[name].axis(level) for name, level in chosen)
        plan = make_plan(schema, axes, measures, read_shares(self.shares, measures))
        for share in plan.shares:
            self._require_epsilon(share, plan.epsilons(epsilon)[share.name])
        return plan

    def _require_epsilon(self, share: Share, epsilon: Fraction) -> None:
        if not isinstance(share.part, GroupCells):
            require_rate(epsilon / share.part.record_change)
            return
        least = epsilon * min(1 - self.interval_share, self.interval_share / 2)
        require_rate(least / choice_range(share.measures[0]))


def _texts(name: str, given: object) -> tuple[str, ...]:
    """Read a setting that is a list of texts, or one text with commas."""
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    if isinstance(given, tuple | list) and all(isinstance(one, str) for one in given):
        return tuple(given)
    raise InvalidParameter(f"{name} must be a list of texts")


def _cells_part(share: Share) -> GroupCells:
    if not isinstance(share.part, GroupCells):
        raise TypeError("a quantile is chosen among cells")
    return share.part


def _scores(cells: IntArray, measure: Measure, aim: int) -> Iterator[IntArray]:
    """Score the cells of each group: how far the wanted rank lies outside of a cell.

    In steps of 1 / denominator of the quantile's part.  The wanted rank is `aim` steps off; the
    first cell also stands for all ranks below, the last for all above, so that one cell is
    always right.
    """
    part = measure.part or Fraction(1, 2)
    for counts in cells.T:
        after = np.cumsum(counts) * part.denominator - part.numerator * counts.sum() - aim
        yield -quantile_distances(after)


def quantile_distances(after: IntArray) -> IntArray:
    """Measure how far 0 lies from the ranks before and after each cell.

    >>> quantile_distances(np.array([-3, 1, 4]))
    array([3, 0, 1])
    """
    above = np.maximum(-after, 0)
    above[-1] = 0
    below = np.zeros_like(after)
    below[1:] = np.maximum(after[:-1], 0)
    return np.asarray(np.maximum(above, below))
