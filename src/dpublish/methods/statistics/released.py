"""Published statistics: numbers of every group, their confidence intervals, and totals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isnan
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.accuracy.noise_distribution import Terms, quantile
from dpublish.accuracy.rounding import format_number
from dpublish.core.answer import Answer, IntervalKind
from dpublish.core.axis_rows import label_columns
from dpublish.core.beside_labels import label_positions, with_bins
from dpublish.core.codecs import AXES, BOOL, RATE, Codec
from dpublish.core.query.cells import CellCounts
from dpublish.core.released import CellRelease, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.schema import Schema
from dpublish.display import arrow_to_pandas
from dpublish.errors import InvalidParameter, InvalidQuery, require_known
from dpublish.methods.statistics.intervals import (
    SURE,
    Estimates,
    Moments,
    NoiseOf,
    group_noise,
    mean_intervals,
    total_noise,
    variance_intervals,
)
from dpublish.methods.statistics.kernels import GroupCells, GroupCounts, GroupMoments, GroupSums
from dpublish.methods.statistics.measures import Measure, read_measure, read_measures
from dpublish.methods.statistics.plan import (
    Plan,
    Share,
    bounds_of,
    make_plan,
    noise_half_width,
)
from dpublish.privacy.receipt import Receipt
from dpublish.types import BoolArray, FloatArray, IntArray

ALL = "(all)"
"""The label of a total in the column of an axis that was added up."""
UNKNOWN = "unknown"
LITTLE = "says little"
_RESERVED = frozenset(
    {
        "measure",
        "value",
        "low",
        "high",
        "interval",
        "value_date",
        "low_date",
        "high_date",
        "of",
        "note",
    }
)

TEXTS = Codec(list, lambda plain, _: tuple(map(str, plain)))
EPSILONS = Codec(
    lambda values: [RATE.write(one) for one in values],
    lambda plain, schema: tuple(RATE.read(one, schema) for one in plain),
)


class Statistic(NamedTuple):
    """One number of one group, with its interval."""

    group: tuple[str, ...]
    measure: str
    value: float | None
    low: float
    high: float
    of: str
    """Which records it is about."""
    note: str
    """Empty, or why the number says little."""
    interval: IntervalKind = "confidence"
    """On what the interval rests: all of them on the noise and the bounds, and on no model."""

    def __str__(self) -> str:
        value = UNKNOWN if self.value is None else format_number(self.value)
        return f"{self.measure} {value} ({format_number(self.low)} to {format_number(self.high)})"


@dataclass(frozen=True, eq=False, kw_only=True)
class StatisticsRelease(CellRelease):
    """Noisy numbers behind the measures of every group of `axes`.

    `numbers` lists, share after share, what was published of each group: noisy counts, sums
    and moments, and of a quantile the chosen cells.  Measures and intervals follow from them.
    Every interval holds the statistic of the table, after clipping to the bounds, with
    probability `confidence`; it does not speak of a population.
    """

    kind: ClassVar[str] = "statistics"
    report: ClassVar[str] = "dpublish.methods.statistics.report:section"

    receipt: Receipt
    schema: Schema
    axes: tuple[Axis, ...] = in_metadata(AXES)
    measures: tuple[str, ...] = in_metadata(TEXTS)
    numbers: IntArray = in_table("noisy", "number")
    epsilons: tuple[Fraction, ...] = in_metadata(EPSILONS)
    confidence: Fraction = in_metadata(RATE)
    interval_share: Fraction = in_metadata(RATE)
    suppress: bool = in_metadata(BOOL)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        if len({axis.column for axis in self.axes}) != len(self.axes):
            raise InvalidParameter("groups are made by different columns")
        if not 0 < self.confidence < 1 or not 0 < self.interval_share < 1:
            raise InvalidParameter("confidence and interval share lie between 0 and 1")
        shares = self.plan.shares
        if len(self.epsilons) != len(shares) or not all(x > 0 for x in self.epsilons):
            raise InvalidParameter("there must be an epsilon for each share")
        size = self.plan.groups * sum(share.numbers for share in shares)
        if self.numbers.dtype != np.int64 or self.numbers.shape != (size,):
            raise InvalidParameter("there must be integers for each share and group")
        for share in shares:
            if isinstance(share.part, GroupCells):
                cells = self._numbers[share]
                if np.any(cells < 0) or np.any(cells >= share.part.cells):
                    raise InvalidParameter("a quantile lies in one of the cells")

    @cached_property
    def plan(self) -> Plan:
        """What was added up for which measure."""
        return make_plan(self.schema, self.axes, read_measures(self.measures))

    @cached_property
    def _numbers(self) -> dict[Share, IntArray]:
        """The numbers of each share, by number and group."""
        groups, found, start = self.plan.groups, {}, 0
        for share in self.plan.shares:
            stop = start + share.numbers * groups
            found[share] = self.numbers[start:stop].reshape(share.numbers, groups)
            start = stop
        return found

    def _epsilon(self, share: Share) -> Fraction:
        return self.epsilons[self.plan.shares.index(share)]

    # --- Estimates ------------------------------------------------------------------------

    def estimates(self, measure: str) -> Estimates:
        """Return a measure of all groups, in row-major order, with the ends of its intervals."""
        return self._estimates[self._find(measure)]

    def _find(self, measure: str) -> Measure:
        found = read_measure(measure)
        require_known("measure", str(found), self.measures)
        return found

    @cached_property
    def _estimates(self) -> dict[Measure, Estimates]:
        return {one: self._estimate(one) for one in map(read_measure, self.measures)}

    def _estimate(self, measure: Measure) -> Estimates:
        share = self.plan.share_of(measure)
        numbers = self._numbers[share]
        if isinstance(share.part, GroupCells):
            return _of_cells(share.part, numbers, self._surely_filled(str(measure.column)))
        return self._of_sums(measure, share, numbers, merged=1)

    def _surely_filled(self, column: str) -> BoolArray | None:
        """Mark the groups that surely hold values: by moments of the column, else by counts.

        None if neither was published.
        """
        found = None
        for share in self.plan.shares:
            part, numbers = share.part, self._numbers[share]
            if isinstance(part, GroupMoments) and part.column == column:
                noise = group_noise(self._epsilon(share), part.scale)
                return Moments(numbers.T / part.scale, noise).known
            if isinstance(part, GroupCounts):
                found = numbers[0] > quantile(Terms.alike(self._epsilon(share), 1), SURE)
        return found

    def _of_sums(
        self, measure: Measure, share: Share, numbers: IntArray, *, merged: int
    ) -> Estimates:
        """Estimate from noisy sums, each of which holds the noise of `merged` groups."""
        epsilon, confidence = self._epsilon(share), float(self.confidence)
        if isinstance(share.part, GroupCounts | GroupSums):
            unit = share.part.unit if isinstance(share.part, GroupSums) else 1.0
            rate = epsilon / share.part.record_change
            width = quantile(Terms.alike(rate, merged), confidence)
            low = 0.0 if share.part.column is None else _least_sum(share.part)
            return _around(numbers[0] * unit, width * unit, low)
        if not isinstance(share.part, GroupMoments):
            raise InvalidParameter(f"{measure} does not follow from sums")
        return _of_moments(measure, share.part, numbers, epsilon, confidence, merged)

    # --- What is shown --------------------------------------------------------------------

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Refuse: statistics do not give synthetic rows."""
        raise InvalidQuery(
            "a release of statistics does not give synthetic rows; read it with to_pandas(), or "
            "with: dpublish statistics RELEASE"
        )

    def statistics(self) -> list[Statistic]:
        """List every measure of every group; with `suppress`, those that say something."""
        labels = list(self._group_labels())
        found = [
            self._statistic(labels[group], measure, estimates, group)
            for group in range(self.plan.groups)
            for measure, estimates in self._estimates.items()
        ]
        return [one for one in found if not (self.suppress and one.note)]

    def totals(self) -> list[Statistic]:
        """List measures along each axis and over all groups: what the groups add up to.

        A total of counts or sums is exactly the sum of the groups' numbers; a mean or variance
        of several groups follows from their summed moments.  Intervals allow for the noise of
        all groups that were added up.  Quantiles of groups do not add up, and have no total.
        """
        if not self.axes:
            return []
        found = []
        for kept in self._marginal_axes():
            size = 1 if kept is None else self.axes[kept].size
            merged = self.plan.groups // size
            for index in range(size):
                group = tuple(
                    axis.labels[index] if number == kept else ALL
                    for number, axis in enumerate(self.axes)
                )
                for measure in map(read_measure, self.measures):
                    estimates = self._total(measure, kept, merged)
                    if estimates is not None:
                        found.append(self._statistic(group, measure, estimates, index))
        return [one for one in found if not (self.suppress and one.note)]

    def _marginal_axes(self) -> list[int | None]:
        several: list[int | None] = list(range(len(self.axes))) if len(self.axes) > 1 else []
        return [*several, None]

    def _total(self, measure: Measure, kept: int | None, merged: int) -> Estimates | None:
        share = self.plan.share_of(measure)
        if isinstance(share.part, GroupCells):
            return None
        key = (measure, kept)
        if key not in self._totals:
            tensor = self._numbers[share].reshape(share.numbers, *self.shape)
            others = tuple(i + 1 for i in range(len(self.axes)) if i != kept)
            summed = tensor.sum(axis=others).reshape(share.numbers, -1)
            self._totals[key] = self._of_sums(measure, share, summed, merged=merged)
        return self._totals[key]

    @cached_property
    def _totals(self) -> dict[tuple[Measure, int | None], Estimates]:
        return {}

    def value(self, measure: str, group: Mapping[str, str] | None = None) -> Statistic:
        """Look up a measure of one group, named by the labels of its columns.

        A column that is not named is added up over: the number is a total.
        """
        wanted = dict(group or {})
        for name, label in wanted.items():
            require_known("group column", name, [axis.column for axis in self.axes])
            axis = next(x for x in self.axes if x.column == name)
            require_known(f"value of {name}:", str(label), axis.labels)
        found = self._look_up(self._find(measure), wanted)
        if found is None or (self.suppress and found.note):
            raise InvalidQuery(
                f"there is no {measure} of this group: name all columns of a group or one of them; "
                "quantiles have no totals, and what says little may be suppressed"
            )
        return found

    def _look_up(self, measure: Measure, wanted: Mapping[str, str]) -> Statistic | None:
        """Find a measure of a group, or a total along one axis or over all; None of others."""
        named = [number for number, axis in enumerate(self.axes) if axis.column in wanted]
        cell = [self.axes[i].labels.index(str(wanted[self.axes[i].column])) for i in named]
        group = tuple(str(wanted.get(axis.column, ALL)) for axis in self.axes)
        if len(named) == len(self.axes):
            index = int(np.ravel_multi_index(cell, self.shape)) if cell else 0
            return self._statistic(group, measure, self._estimates[measure], index)
        if len(named) > 1:
            return None
        merged = self.plan.groups // (self.axes[named[0]].size if named else 1)
        total = self._total(measure, named[0] if named else None, merged)
        return None if total is None else self._statistic(group, measure, total, sum(cell))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records of the groups that satisfy `query`, if `count` was measured."""
        share = next((x for x in self.plan.shares if isinstance(x.part, GroupCounts)), None)
        if share is None:
            raise InvalidQuery("these statistics have no count; add it to the measures")
        counts = self._numbers[share][0]
        return CellCounts(self.axes, counts, self._epsilon(share)).answer(query, confidence)

    def of(self, measure: Measure) -> str:
        """Say which records a measure is about."""
        by = [name for name in self.complete if self.schema[name].missing != "category"]
        names = list(dict.fromkeys([*by, *filter(None, [measure.column])]))
        return f"records with {_listed(names)}" if names else "all records"

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the columns that a record must have: those of the groups.

        What a measure needs besides is told by `of`.
        """
        return tuple(axis.column for axis in self.axes)

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """Names of the columns that measures are of, and that make no groups."""
        asked = {one.column for one in map(read_measure, self.measures)} - {*self.complete}
        return tuple(name for name in self.schema.names if name in asked)

    def _statistic(
        self, group: tuple[str, ...], measure: Measure, estimates: Estimates, index: int
    ) -> Statistic:
        value = float(estimates.values[index])
        low, high = float(estimates.lows[index]), float(estimates.highs[index])
        note = "" if self._is_informative(measure, value, low, high) else LITTLE
        if not estimates.known[index]:
            return Statistic(group, str(measure), None, low, high, self.of(measure), UNKNOWN)
        return Statistic(group, str(measure), value, low, high, self.of(measure), note)

    def _is_informative(self, measure: Measure, value: float, low: float, high: float) -> bool:
        """Whether an interval says something: by published numbers alone.

        A count or sum is known to be other than 0; a mean or quantile to within half of the
        bounds, a variance to within half of what is possible.
        """
        if isnan(value):
            return False
        if measure.is_additive:
            return low > 0 or high < 0
        width = bounds_of(self.schema, measure.column).width
        possible = {"variance": width**2 / 4, "std": width / 2}.get(measure.function, width)
        return high - low <= possible / 2

    def _group_labels(self) -> Iterator[tuple[str, ...]]:
        for group in range(self.plan.groups):
            index = np.unravel_index(group, self.shape) if self.axes else ()
            yield tuple(axis.labels[i] for axis, i in zip(self.axes, index, strict=True))

    def table(self, *, totals: bool = True) -> pa.Table:
        """Return groups, and totals unless told otherwise, as one table.

        Means and quantiles of dates are numbers of days or seconds since 1970-01-01; further
        columns write them as dates.
        """
        listed = [*self.statistics(), *(self.totals() if totals else ())]
        columns: dict[str, pa.Array] = {}
        for number, axis in enumerate(self.axes):
            name = f"{axis.column}_" if axis.column in _RESERVED else axis.column
            columns[name] = pa.array([one.group[number] for one in listed], pa.string())
        columns["measure"] = pa.array([one.measure for one in listed], pa.string())
        for name in ("value", "low", "high"):
            columns[name] = pa.array([getattr(one, name) for one in listed], pa.float64())
        columns["interval"] = pa.array([one.interval for one in listed], pa.string())
        if any(self._is_date(read_measure(one)) for one in self.measures):
            for name in ("value", "low", "high"):
                texts = [self._date(one.measure, getattr(one, name)) for one in listed]
                columns[f"{name}_date"] = pa.array(texts, pa.string())
        columns["of"] = pa.array([one.of for one in listed], pa.string())
        columns["note"] = pa.array([one.note for one in listed], pa.string())
        return pa.table(columns)

    def _is_date(self, measure: Measure) -> bool:
        is_value = measure.function in ("mean", "quantile")
        return is_value and isinstance(self.schema[str(measure.column)], DateColumn)

    def _date(self, measure: str, number: float | None) -> str | None:
        """Write a number that is a date; None for all others."""
        is_date = number is not None and self._is_date(read_measure(measure))
        return self.written(measure, number) if is_date and number is not None else None

    def to_arrow(self, table: str | None = None, *, totals: bool = True) -> pa.Table:
        """Return groups and totals as an Arrow table; or a published table by its name."""
        return self.table(totals=totals) if table is None else super().to_arrow(table)

    def to_pandas(self, table: str | None = None, *, totals: bool = True) -> Any:
        """Return groups and totals as a pandas frame; or a published table by its name."""
        return arrow_to_pandas(self.to_arrow(table, totals=totals))

    def written(self, measure: str, number: float) -> str:
        """Write a number of a measure as people read it: of a date column as a date."""
        found = read_measure(measure)
        column = None if found.column is None else self.schema[found.column]
        if isinstance(column, NumberColumn) and found.function in ("mean", "quantile"):
            return column.show(number)
        # No count is negative, though a noisy one may be.
        return format_number(max(number, 0.0) if found.function == "count" else number)

    def tables(self) -> dict[str, pa.Table]:
        """Return the noisy numbers, and the statistics that follow from them."""
        groups = np.arange(self.plan.groups)
        shares = self.plan.shares
        repeats = [share.numbers for share in shares]
        index = np.unravel_index(groups, self.shape) if self.axes else ()
        whole = tuple(np.tile(np.asarray(i, dtype=np.int64), sum(repeats)) for i in index)
        noisy = {
            "share": pa.array([s.name for s in shares for _ in range(s.numbers) for _ in groups]),
            "part": pa.array([k for s in shares for k in range(s.numbers) for _ in groups]),
            **label_columns(self.axes, whole),
            "number": pa.array(self.numbers),
        }
        return {
            "statistics": self._with_group_bins(self.table()),
            "noisy": with_bins(pa.table(noisy), self.axes, whole),
        }

    def _with_group_bins(self, table: pa.Table) -> pa.Table:
        """Put the ends of bins beside the names of groups; totals have none."""
        names = table.column_names[: len(self.axes)]
        cells = [
            label_positions(axis, table[name].to_pylist())
            for axis, name in zip(self.axes, names, strict=True)
        ]
        return with_bins(table, self.axes, cells, names)

    def expected_error(self) -> dict[str, float]:
        """Return the error of each measure (95 %), in groups of 1,000 records where it matters."""
        return {
            f"{measure}_95": noise_half_width(
                share.part,
                measure,
                self._epsilon(share),
                1000.0,
                interval_share=self.interval_share,
            )
            for share in self.plan.shares
            for measure in share.measures
        }

    def summary(self) -> dict[str, str]:
        """Describe measures, groups and intervals in a few words."""
        by = " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes)
        percent = format_number(100 * float(self.confidence))
        return {
            "measures": ", ".join(self.measures),
            "groups": f"{self.plan.groups:,}: {by}" if by else "one, of all records",
            "intervals": f"{percent} % confidence, for the statistic of the records in it, "
            "within the bounds",
        }


# --- From numbers to estimates ----------------------------------------------------------------


def _around(values: FloatArray, width: float, least: float) -> Estimates:
    """Return intervals of the same width; nothing lies below what is possible."""
    lows, highs = np.maximum(values - width, least), np.maximum(values + width, least)
    return Estimates(values, lows, highs, np.ones(values.size, dtype=np.bool_))


def _least_sum(part: GroupSums) -> float:
    return 0.0 if part.bounds.low >= 0 else -np.inf


def _of_moments(
    measure: Measure,
    part: GroupMoments,
    numbers: IntArray,
    epsilon: Fraction,
    confidence: float,
    merged: int,
) -> Estimates:
    """Estimate what follows from the moments of a column."""
    bounds = part.bounds
    rounding = 0.0 if part.is_exact else 1 / part.scale
    noise: NoiseOf = (
        group_noise(epsilon, part.scale)
        if merged == 1
        else total_noise(epsilon, part.scale, merged)
    )
    moments = Moments(numbers.T / part.scale, noise)
    if measure.is_additive:
        return _of_weights(measure, part, moments, epsilon, confidence, merged)
    if measure.function == "mean":
        found = mean_intervals(moments, confidence)
        return Estimates(
            bounds.low + bounds.width * found.values,
            bounds.low + bounds.width * np.maximum(found.lows - rounding, 0),
            bounds.low + bounds.width * np.minimum(found.highs + rounding, 1),
            found.known,
        )
    found = variance_intervals(moments, confidence)
    scaled = Estimates(
        bounds.width**2 * found.values,
        bounds.width**2 * np.maximum(found.lows - 3 * rounding, 0),
        bounds.width**2 * np.minimum(found.highs + 3 * rounding, 0.25),
        found.known,
    )
    if measure.function == "variance":
        return scaled
    roots = [np.sqrt(ends) for ends in (scaled.values, scaled.lows, scaled.highs)]
    return Estimates(roots[0], roots[1], roots[2], scaled.known)


def _of_weights(
    measure: Measure,
    part: GroupMoments,
    moments: Moments,
    epsilon: Fraction,
    confidence: float,
    merged: int,
) -> Estimates:
    """Estimate a count or a sum: a weighted sum of the moments."""
    bounds, rounding = part.bounds, 0.0
    weights = np.ones(part.rows)
    if measure.function == "sum":
        weights = bounds.low + bounds.width * moments.positions
        rounding = 0.0 if part.is_exact else bounds.width / part.scale
    rates = np.full(part.rows, float(epsilon) / part.scale)
    terms = Terms.gather(weights / part.scale, rates)
    terms = terms._replace(repeats=terms.repeats * merged)
    width = quantile(terms, confidence)
    least = 0.0 if measure.function == "count" or bounds.low >= 0 else -np.inf
    # Rounding moves the sum by at most that for each record, of which there are hardly more.
    found = _around(moments.sums @ weights, width, least)
    records = moments.count + moments.noise(np.ones((1, part.rows)), 1 - SURE)[0]
    extra = rounding * np.maximum(records, 0)
    return found._replace(lows=np.maximum(found.lows - extra, least), highs=found.highs + extra)


def _of_cells(part: GroupCells, chosen: IntArray, filled: BoolArray | None) -> Estimates:
    """Estimate a quantile: the middle of its cell, from the start of one end to the last value.

    Unknown where the group may be empty, and then the interval is all that is possible.  If
    nothing published says which groups may be, an interval that is all that is possible does:
    that of an empty group is, with the probability of its level.
    """
    edges, bounds = part.edges, part.bounds
    ordered = np.sort(chosen, axis=0)  # the estimate is put between the ends of the interval
    starts, lasts = edges[ordered], edges[ordered + 1]
    if bounds.whole:
        # Where a cell is not one integer, one that lies at an edge may be on either side of it.
        is_single = part.cells == bounds.width + 1
        apart = max(1e-6, bounds.largest * 2.0**-50)  # as far as floats of this size are off
        starts = starts if is_single else np.ceil(starts - apart)
        lasts = lasts - 1 if is_single else np.floor(lasts + apart)
    values = (starts[1] + lasts[1]) / 2
    if bounds.whole:
        values = np.floor(values)
    lows, highs = np.maximum(starts[0], bounds.low), np.minimum(lasts[2], bounds.high)
    known = (ordered[0] > 0) | (ordered[2] < part.cells - 1) if filled is None else filled
    return Estimates(
        np.where(known, values, np.nan),
        np.where(known, lows, bounds.low),
        np.where(known, highs, bounds.high),
        known,
    )


def _listed(names: Sequence[str]) -> str:
    """Write a list of names.

    >>> _listed(["ward", "sex", "cost"])
    'ward, sex and cost'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
