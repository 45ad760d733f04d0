"""Published cells of small columns, and copulas of the other columns inside groups of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.accuracy.projection import round_to_total
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.beside_labels import (
    cell_width,
    every_cell,
    with_bins,
    with_interval,
    with_listed_bins,
)
from dpublish.core.query.axes import read_boxes, read_query
from dpublish.core.query.cells import around
from dpublish.core.query.dependence import ANY_DEPENDENCE, frechet_bounds
from dpublish.core.released import Metadata, Release, Tables, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.methods.dpcopula.cell_groups import CellGroups, GroupReading, read_group_correlation
from dpublish.methods.dpcopula.correlation import NoisyCorrelation
from dpublish.methods.dpcopula.gaussian_copula import CopulaQuery, box_shares, draw_codes
from dpublish.methods.dpcopula.released import correlation_table, read_correlation
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal, joint_bound
from dpublish.methods.marginals.released import with_value_intervals
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

RESERVED = frozenset({"cell_number", "group_number", "noisy_count", "estimated_count"})
"""Column names that the published table of cells uses itself."""
_MODEL = (
    "the estimate assumes that values follow the marginals and a Gaussian copula in each group of "
    "cells"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellCopulasRelease(Release):
    """Noisy counts of all cells of small columns; marginals of the others in groups of cells.

    Behind every column with many values is a normal variable that chooses among its values by
    the marginal of the record's group.  One matrix of correlations joins these variables in
    all groups, or each group has one.  Inside the group of all small cells, the small columns
    and the others are independent.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: The columns.
        groups: Cells, groups and marginals.
        correlation: Sums of products of the groups' scores; None for fewer than two columns
            with many values, or if each group has its own.
        correlations: Those of each group, if it has its own.
    """

    kind: ClassVar[str] = "cell-copulas"
    report: ClassVar[str] = "dpublish.methods.dpcopula.report:cells_section"

    receipt: Receipt
    schema: Schema
    groups: CellGroups
    correlation: NoisyCorrelation | None
    correlations: tuple[NoisyCorrelation, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        names = {axis.column for axis in (*self.groups.categories, *self.groups.numbers)}
        if names != set(self.schema.names):
            raise InvalidParameter("the columns of cells and marginals must be those of the schema")
        shared = () if self.correlation is None else (self.correlation,)
        if self.correlations and (shared or len(self.correlations) != self.groups.groups):
            raise InvalidParameter("correlations are those of all groups together or of each")
        joined = {one.columns for one in (*shared, *self.correlations)}
        if joined != ({self.numbers} if len(self.numbers) > 1 else set()):
            raise InvalidParameter("correlations must join all columns that have marginals")

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that have marginals in each group."""
        return tuple(axis.column for axis in self.groups.numbers)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Each column at its finest level, in the schema's order."""
        return tuple(column.axis() for column in self.schema.columns)

    @property
    def records(self) -> float:
        """Best estimate of the number of records."""
        return self.groups.records

    @cached_property
    def readings(self) -> tuple[GroupReading, ...]:
        """Correlations inside each group, and their deviations."""
        if not self.correlations:
            return (self.reading,) * self.groups.groups
        parts = zip(self.correlations, self.groups.distributions, self.groups.sizes, strict=True)
        return tuple(
            read_group_correlation(one, [row], np.array([size])) for one, row, size in parts
        )

    @cached_property
    def reading(self) -> GroupReading:
        """Correlations of the columns with many values inside groups, and their deviations.

        If each group has its own, their mean, weighted by the groups' sizes.
        """
        if self.correlations:
            sizes = np.maximum(self.groups.sizes, 0) + 1e-9
            parts = sizes / sizes.sum()
            matrices, deviations = (np.array(part) for part in zip(*self.readings, strict=True))
            squares = np.tensordot(parts**2, np.minimum(deviations, 1) ** 2, axes=1)
            return GroupReading(np.tensordot(parts, matrices, axes=1), np.sqrt(squares))
        if self.correlation is None:
            few = len(self.numbers)
            return GroupReading(np.eye(few), np.zeros((few, few)))
        return read_group_correlation(
            self.correlation, self.groups.distributions, self.groups.sizes
        )

    @property
    def matrix(self) -> FloatArray:
        """Correlations of the normal variables behind `numbers`."""
        return self.reading.matrix

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`.

        Counts of cells are sums of noisy counts, and counts by one column inside whole groups
        are sums of noisy marginals: both have confidence intervals.  Other queries are answered
        by the model; the interval is what the noisy counts of their cells, and of each other
        column, allow.
        """
        require_confidence(confidence)
        read = read_query(self.axes, query)
        value, is_model = self._estimate(*self._parted(read.weights))
        (inner, least), (outer, most) = self._parted(read.inner), self._parted(read.outer)
        # A column is limited if any record may be left out, by an end of a range alone even.
        most = {name: most.get(name, np.ones(along.size)) for name, along in least.items()}
        if is_model or len(least) > 1:
            low, high = self._any_dependence((inner, least), (outer, most), confidence)
            notes = [read.note, _MODEL, ANY_DEPENDENCE]
        else:
            low = self._bound(inner, least, confidence, -1)
            high = self._bound(outer, most, confidence, 1)
            notes = [read.note]
        note = "; ".join(note for note in notes if note) or None
        return around(max(value, 0.0) if is_model else value, low, high, confidence, note)

    def _parted(self, per_axis: Sequence[FloatArray]) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Part the weights of all columns into those of the cells and of the limited others."""
        weights = {axis.column: along for axis, along in zip(self.axes, per_axis, strict=True)}
        cells = reduce(np.multiply.outer, [weights[a.column] for a in self.groups.categories])
        limited = {name: weights[name] for name in self.numbers if np.any(weights[name] != 1)}
        return np.ravel(cells), limited

    def _any_dependence(
        self,
        inner: tuple[FloatArray, Mapping[str, FloatArray]],
        outer: tuple[FloatArray, Mapping[str, FloatArray]],
        confidence: float,
    ) -> tuple[float, float]:
        """Bound a count by those of its cells and of each other column by itself."""
        (cells, least), (touched, most) = inner, outer
        each = 1 - (1 - confidence) / (len(least) + 2)
        every = np.ones(cells.size)
        parts = [(self._bound(cells, {}, each, -1), self._bound(touched, {}, each, 1))]
        for name in least:
            low = self._bound(every, {name: least[name]}, each, -1)
            parts.append((low, self._bound(every, {name: most[name]}, each, 1)))
        return frechet_bounds(parts, self._bound(every, {}, each, 1))

    def _bound(
        self, cells: FloatArray, limited: Mapping[str, FloatArray], confidence: float, sign: int
    ) -> float:
        """Bound the records in some cells (1, others 0), with some values of at most one column.

        Both bounds, from below (-1) and from above (1), hold together with this probability.
        """
        groups = self.groups
        if not cells.any():
            return 0.0
        if not limited:
            width = half_width(groups.rate, cells, confidence)
            return max(float(cells @ groups.counts) + sign * width, 0.0)
        ((name, chosen),) = limited.items()
        # Marginals are those of groups; the last is the group of all small cells.
        rest = cells[groups.group_of == groups.kept.size]
        has_rest = (rest.all() if sign < 0 else rest.any()) if rest.size else False
        each = np.append(cells[groups.kept], [float(has_rest)])[: groups.groups]
        marginals = [row[self.numbers.index(name)] for row in groups.marginals]
        pairs = [(m, p * chosen) for m, p in zip(marginals, each, strict=True) if p]
        return joint_bound(pairs, confidence, sign)

    def _estimate(self, cells: FloatArray, limited: Mapping[str, FloatArray]) -> tuple[float, bool]:
        """Count records by the weights of their cell and of their values in some columns.

        Tell as well whether the model was needed.
        """
        groups = self.groups
        if not limited:
            return float(cells @ groups.counts), False
        rest = cells[groups.group_of == groups.kept.size]
        if len(limited) == 1 and np.all(rest == rest[:1]):
            each = np.append(cells[groups.kept], rest[:1])
            return self._one_column(each, *next(iter(limited.items()))), False
        masses = np.bincount(groups.group_of, cells * groups.estimates, groups.groups)
        columns = [self.numbers.index(name) for name in limited]
        value = sum(
            masses[g]
            * CopulaQuery(
                self.readings[g].matrix[np.ix_(columns, columns)],
                [distribution[j] for j in columns],
                list(limited.values()),
            ).share
            for g, distribution in enumerate(groups.distributions)
            if masses[g] > 0
        )
        return float(value), True

    def _one_column(self, each: FloatArray, name: str, weights: FloatArray) -> float:
        """Add up one column's marginals, whole groups at a time."""
        column = self.numbers.index(name)
        marginals = [row[column] for row in self.groups.marginals]
        parts = zip(each.tolist(), marginals, strict=True)
        return float(sum(part * float(weights @ marginal.bins) for part, marginal in parts))

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes, as `rows` would."""
        boxes = read_boxes(self.axes, columns, lows, highs)
        small, large = (
            [self.schema.names.index(axis.column) for axis in axes]
            for axes in (self.groups.categories, self.groups.numbers)
        )
        masses = self.groups.box_masses(boxes.lows[:, small], boxes.highs[:, small])
        numbers = [j for j, name in enumerate(self.numbers) if name in columns]
        if not numbers:
            return np.asarray(masses.sum(axis=1))
        indices = [large[j] for j in numbers]
        low, high = boxes.lows[:, indices], boxes.highs[:, indices]
        found = np.zeros(len(low))
        for group, distribution in enumerate(self.groups.distributions):
            some = np.flatnonzero(masses[:, group] > 0)
            if some.size:
                matrix = self.readings[group].matrix[np.ix_(numbers, numbers)]
                distributions = [distribution[j] for j in numbers]
                shares = box_shares(matrix, distributions, low[some], high[some])
                found[some] += masses[some, group] * shares
        return found

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Without `n` every cell gives its estimated count; with `n`, cells are drawn in
        proportion (uniformly if nothing was counted).  Values are uniform within a bin.
        """
        estimates = self.groups.estimates
        rng = self.row_generator(n, seed, counted=round(float(estimates.sum())))
        if n is None:
            cells = np.repeat(np.arange(estimates.size), round_to_total(estimates))
        else:
            total = estimates.sum()
            cells = rng.choice(estimates.size, size=n, p=estimates / total if total else None)
        codes = self._draw_codes(cells, rng)
        return pa.table(
            {
                axis.column: draw_column(axis, codes[axis.column].astype(np.intp), rng)
                for axis in self.axes
            }
        )

    def _draw_codes(
        self, cells: NDArray[np.integer[Any]], rng: np.random.Generator
    ) -> dict[str, NDArray[np.integer[Any]]]:
        """Draw the codes of a row in each of `cells`, which may be listed many times.

        The columns with many values are drawn from the copula of each cell's group.
        """
        groups = self.groups
        along = np.unravel_index(cells, groups.shape)
        codes: dict[str, NDArray[np.integer[Any]]] = {
            axis.column: index for axis, index in zip(groups.categories, along, strict=True)
        }
        if not groups.numbers:
            return codes
        codes |= {name: np.empty(cells.size, dtype=np.int64) for name in self.numbers}
        own = groups.group_of[cells]
        for group, row in enumerate(groups.distributions):
            here = np.flatnonzero(own == group)
            distributions = dict(zip(self.numbers, row, strict=True))
            matrix = self.readings[group].matrix
            for name, drawn in draw_codes(matrix, distributions, here.size, rng).items():
                codes[name][here] = drawn
        return codes

    def tables(self) -> dict[str, pa.Table]:
        """Return the noisy numbers, and the probabilities and correlations that they imply."""
        return {
            "cells": _cells(self.groups),
            "marginals": _marginals(self.groups),
            "probabilities": _probabilities(self.groups),
            "correlations": self._correlation_table(),
        }

    def _correlation_table(self) -> pa.Table:
        """List the noisy numbers of all groups together, or group by group."""
        if not self.correlations:
            return correlation_table(
                self.numbers, self.correlation, self.matrix, self.reading.deviations
            )
        each = [
            correlation_table(self.numbers, one, *reading)
            for one, reading in zip(self.correlations, self.readings, strict=True)
        ]
        owners = np.repeat(np.arange(len(each)), each[0].num_rows)
        return pa.concat_tables(each).append_column("group_number", pa.array(owners))

    def metadata(self) -> dict[str, Any]:
        """Return how cells, marginals and correlations were counted."""
        groups = self.groups
        return {
            "categories": [axis.column for axis in groups.categories],
            "numbers": [axis.column for axis in groups.numbers],
            "rate": format_epsilon(groups.rate),
            "kept": groups.kept.tolist(),
            "marginals": [[marginal.metadata() for marginal in row] for row in groups.marginals],
            "correlation": None if self.correlation is None else self.correlation.metadata(),
        } | (
            {"correlations": [one.metadata() for one in self.correlations]}
            if self.correlations
            else {}
        )

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the groups and the correlations."""
        counts = whole_column(tables["cells"], "noisy_count")
        if not np.array_equal(whole_column(tables["cells"], "cell_number"), np.arange(counts.size)):
            raise CorruptRelease("the cells are out of order")
        groups = CellGroups(
            categories=tuple(schema[name].axis() for name in metadata["categories"]),
            numbers=tuple(schema[name].axis() for name in metadata["numbers"]),
            counts=counts,
            rate=parse_epsilon(metadata["rate"], "rate"),
            kept=np.array(metadata["kept"], dtype=np.int64),
            marginals=_read_marginals(metadata["marginals"], tables["marginals"]),
        )
        if "correlations" in metadata:
            each = _read_each(metadata["correlations"], tables["correlations"])
            return {"groups": groups, "correlation": None, "correlations": each}
        correlation = read_correlation(metadata["correlation"], tables["correlations"])
        return {"groups": groups, "correlation": correlation}

    def expected_error(self) -> dict[str, float]:
        """Return the half-widths (95 %) of one cell's count and of the total."""
        return {
            "one_cell_95": float(sum_quantile(self.groups.rate, 1, 0.95)),
            "total_95": 1.96 * self.groups.records_deviation,
        }

    def summary(self) -> dict[str, str]:
        """Describe cells, groups and error in a few words."""
        groups, errors = self.groups, self.expected_error()
        found = {
            "cells": " x ".join(f"{axis.column} ({axis.size})" for axis in groups.categories)
            + f"; {groups.counts.size:,} in all",
            "records": f"about {self.records:,.0f}",
            "error": f"each cell's count is within {errors['one_cell_95']:,.0f} of the truth with "
            "probability 95 %",
        }
        if self.numbers:
            rest = " and one for all other cells" if groups.groups > groups.kept.size else ""
            found["marginals of"] = ", ".join(self.numbers)
            own = "marginals and correlations" if self.correlations else "marginals"
            found["groups"] = f"{groups.kept.size:,} cells with {own} of their own{rest}"
        return found


# --- Tables of a release folder, and back ---------------------------------------------------------


def _cells(groups: CellGroups) -> pa.Table:
    columns: dict[str, Any] = {"cell_number": np.arange(groups.counts.size)}
    along = np.unravel_index(np.arange(groups.counts.size), groups.shape)
    for axis, index in zip(groups.categories, along, strict=True):
        columns[axis.column] = _named(axis.labels, index)
    columns["group_number"] = groups.group_of
    columns["noisy_count"] = groups.counts
    columns["estimated_count"] = groups.estimates
    table = with_bins(pa.table(columns), groups.categories, along)
    return with_interval(table, cell_width(groups.rate))


def _marginals(groups: CellGroups) -> pa.Table:
    """List the noisy numbers group by group, and in a group column by column."""
    marginals = [marginal for row in groups.marginals for marginal in row]
    sizes = [marginal.units.size for marginal in marginals]
    return pa.table(
        {
            **_owners(groups, sizes),
            "position": _joined([np.arange(size) for size in sizes]),
            "noisy_number": _joined([marginal.units for marginal in marginals]),
        }
    )


def _probabilities(groups: CellGroups) -> pa.Table:
    probabilities = [
        distribution.probabilities for row in groups.distributions for distribution in row
    ]
    labels = [
        label for _ in groups.distributions for axis in groups.numbers for label in axis.labels
    ]
    every = np.concatenate([np.empty(0), *probabilities])
    owners = _owners(groups, [part.size for part in probabilities])
    sizes = np.maximum(groups.sizes, 0)[owners["group_number"]]
    table = pa.table(
        {
            **owners,
            "value": pa.array(labels, pa.string()),
            "probability": every,
            "expected_count": every * sizes,
        }
    )
    table = with_listed_bins(table, "value", every_cell(groups.numbers) * len(groups.marginals))
    marginals = [marginal for row in groups.marginals for marginal in row]
    return with_value_intervals(table, marginals, of="expected_count")


def _owners(groups: CellGroups, sizes: Sequence[int]) -> dict[str, Any]:
    """Name group and column of each number; `sizes` go by group, then by column."""
    names = [axis.column for axis in groups.numbers]
    owners = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    return {
        "group_number": owners // max(len(names), 1),
        "column": _named(names, owners % max(len(names), 1)),
    }


def _named(names: Sequence[str], index: NDArray[np.integer[Any]]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(index.astype(np.int32)), pa.array(list(names), pa.string())
    )


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _read_marginals(
    metadata: Sequence[Sequence[Mapping[str, Any]]], table: pa.Table
) -> tuple[tuple[NoisyMarginal, ...], ...]:
    positions, units = whole_column(table, "position"), whole_column(table, "noisy_number")
    starts = np.flatnonzero(positions == 0)
    parts = np.split(units, starts[1:]) if starts.size else []
    if len(parts) != sum(len(row) for row in metadata):
        raise CorruptRelease("the noisy numbers are not those of the groups' marginals")
    left = iter(parts)
    return tuple(
        tuple(NoisyMarginal.from_metadata(one, next(left)) for one in row) for row in metadata
    )


def _read_each(
    metadata: Sequence[Mapping[str, Any]], table: pa.Table
) -> tuple[NoisyCorrelation, ...]:
    """Rebuild the correlations of each group."""
    owners = whole_column(table, "group_number")
    size = table.num_rows // max(len(metadata), 1)
    if not np.array_equal(owners, np.repeat(np.arange(len(metadata)), size)):
        raise CorruptRelease("the correlations are not those of the groups")
    found = []
    for group, plain in enumerate(metadata):
        one = read_correlation(plain, table.slice(group * size, size))
        if one is None:
            raise CorruptRelease("a group has no correlations")
        found.append(one)
    return tuple(found)
