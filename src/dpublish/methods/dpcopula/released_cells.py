"""Published cells of small columns, and copulas of the other columns inside groups of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.accuracy.projection import round_to_total
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.query.axes import read_boxes, read_query
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.dpcopula.cell_groups import CellGroups
from dpublish.methods.dpcopula.cell_rows import draw_cells
from dpublish.methods.dpcopula.cell_tables import groups_from, metadata_of, tables_of
from dpublish.methods.dpcopula.group_correlation import GroupReading, read_correlation
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation
from dpublish.methods.dpcopula.query import Question, box_shares
from dpublish.methods.dpcopula.tables import read_correlation as correlation_from
from dpublish.methods.marginals.noisy_marginal import joint_half_width
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

_MODEL = (
    "in each group of cells, values are assumed to follow its marginals and a Gaussian copula; "
    "how far that is from the truth is not known, so there is no confidence interval"
)


class _Found(NamedTuple):
    """An estimate, and how far noise reaches in it; None where nobody knows."""

    value: float
    reach: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class CellCopulasRelease(Release):
    """Noisy counts of all cells of small columns; marginals of the others in groups of cells.

    Behind every column with many values stands a normal variable that chooses among its
    leaves by the marginal of the record's group.  One matrix of correlations joins these
    variables in all groups.  Inside the group of all small cells, the small columns and the
    others have nothing to do with each other.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: The columns.
        groups: Cells, groups and marginals.
        correlation: Sums of products of the groups' scores; None for fewer than two columns
            with many values.
    """

    kind: ClassVar[str] = "cell-copulas"

    receipt: Receipt
    schema: Schema
    groups: CellGroups
    correlation: NoisyCorrelation | None

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        names = {axis.column for axis in (*self.groups.categories, *self.groups.numbers)}
        if names != set(self.schema.names):
            raise InvalidParameter("the columns of cells and marginals must be those of the schema")
        joined = () if self.correlation is None else self.correlation.columns
        if joined != (self.numbers if len(self.numbers) > 1 else ()):
            raise InvalidParameter("correlations must join all columns that have marginals")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CellCopulasRelease)
            and self.receipt == other.receipt
            and self.schema == other.schema
            and self.groups == other.groups
            and self.correlation == other.correlation
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that have marginals in each group."""
        return tuple(axis.column for axis in self.groups.numbers)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Each column at its leaves, in the schema's order."""
        return tuple(column.axis() for column in self.schema.columns)

    @property
    def records(self) -> float:
        """Best estimate of the number of records."""
        return self.groups.records

    @cached_property
    def reading(self) -> GroupReading:
        """Correlations of the columns with many values inside groups, and their deviations."""
        if self.correlation is None:
            few = len(self.numbers)
            return GroupReading(np.eye(few), np.zeros((few, few)))
        return read_correlation(self.correlation, self.groups.distributions, self.groups.sizes)

    @property
    def matrix(self) -> FloatArray:
        """Correlations of the normal variables behind `numbers`."""
        return self.reading.matrix

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`.

        Questions about cells are sums of noisy counts, and one column inside whole groups a
        sum of noisy marginals: both have confidence intervals.  Anything else is answered by the
        model.
        """
        require_confidence(confidence)
        asked = read_query(self.axes, query)
        weights = {axis.column: along for axis, along in zip(self.axes, asked.weights, strict=True)}
        cells = reduce(np.multiply.outer, [weights[a.column] for a in self.groups.categories])
        limited = [name for name in self.numbers if np.any(weights[name] != 1)]
        found = self._estimate(cells.ravel(), {name: weights[name] for name in limited}, confidence)
        if found.reach is None:
            told = "; ".join(note for note in (asked.assumption, _MODEL) if note)
            return Answer(max(found.value, 0.0), None, None, confidence, told)
        low, high = found.value - found.reach, found.value + found.reach
        return Answer(found.value, max(low, 0.0), max(high, 0.0), confidence, asked.assumption)

    def _estimate(
        self, cells: FloatArray, limited: Mapping[str, FloatArray], confidence: float
    ) -> _Found:
        """Count records by the weights of their cell and of their leaves in some columns."""
        groups = self.groups
        if not limited:
            reach = half_width(groups.rate, cells, confidence)
            return _Found(float(cells @ groups.counts), reach)
        rest = cells[groups.group_of == groups.kept.size]
        if len(limited) == 1 and np.all(rest == rest[:1]):
            each = np.append(cells[groups.kept], rest[:1])
            return self._one_column(each, *next(iter(limited.items())), confidence)
        masses = np.bincount(groups.group_of, cells * groups.estimates, groups.groups)
        places = [self.numbers.index(name) for name in limited]
        matrix = self.matrix[np.ix_(places, places)]
        value = sum(
            masses[g]
            * Question(matrix, [distribution[j] for j in places], list(limited.values())).share
            for g, distribution in enumerate(groups.distributions)
            if masses[g] > 0
        )
        return _Found(float(value), None)

    def _one_column(
        self, each: FloatArray, name: str, weights: FloatArray, confidence: float
    ) -> _Found:
        """Add up one column's marginals, whole groups at a time."""
        place = self.numbers.index(name)
        marginals = [row[place] for row in self.groups.marginals]
        value = sum(
            part * float(weights @ marginal.bins)
            for part, marginal in zip(each, marginals, strict=True)
        )
        return _Found(value, joint_half_width(marginals, [p * weights for p in each], confidence))

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of leaves, as `rows` would."""
        boxes = read_boxes(self.axes, columns, lows, highs)
        small, large = (
            [self.schema.names.index(axis.column) for axis in axes]
            for axes in (self.groups.categories, self.groups.numbers)
        )
        masses = self.groups.box_masses(boxes.lows[:, small], boxes.highs[:, small])
        numbers = [j for j, name in enumerate(self.numbers) if name in columns]
        if not numbers:
            return np.asarray(masses.sum(axis=1))
        places = [large[j] for j in numbers]
        low, high = boxes.lows[:, places], boxes.highs[:, places]
        matrix = self.matrix[np.ix_(numbers, numbers)]
        found = np.zeros(len(low))
        for group, distribution in enumerate(self.groups.distributions):
            some = np.flatnonzero(masses[:, group] > 0)
            if some.size:
                distributions = [distribution[j] for j in numbers]
                shares = box_shares(matrix, distributions, low[some], high[some])
                found[some] += masses[some, group] * shares
        return found

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Without `n` every cell gives its estimated count; with `n`, cells are drawn in
        proportion (evenly if nothing was counted).  Values are spread evenly in a leaf.
        """
        require_count(seed=0 if seed is None else seed, at_least=0)
        estimates = self.groups.estimates
        wanted = round(float(estimates.sum())) if n is None else n
        require_count(n=wanted, at_least=0)
        if wanted > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        if n is None:
            cells = np.repeat(np.arange(estimates.size), round_to_total(estimates))
        else:
            total = estimates.sum()
            cells = rng.choice(estimates.size, size=n, p=estimates / total if total else None)
        codes = draw_cells(self.groups, self.matrix, cells, rng)
        return pa.table(
            {
                axis.column: draw_column(axis, codes[axis.column].astype(np.intp), rng)
                for axis in self.axes
            }
        )

    def tables(self) -> dict[str, pa.Table]:
        """Give the noisy numbers, and the probabilities and correlations that follow from them."""
        return tables_of(self)

    def metadata(self) -> dict[str, Any]:
        """Give how cells, marginals and correlations were counted."""
        return metadata_of(self)

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the cells and copulas of a release folder."""
        return cls(
            receipt=receipt,
            schema=schema,
            groups=groups_from(schema, metadata, tables),
            correlation=correlation_from(metadata["correlation"], tables["correlations"]),
        )

    def expected_error(self) -> dict[str, float]:
        """Give the errors of one cell's count and of the total, with probability 95 %."""
        return {
            "one_cell_95": float(sum_quantile(self.groups.rate, 1, 0.95)),
            "total_95": 1.96 * self.groups.records_deviation,
        }

    def summary(self) -> dict[str, str]:
        """Describe cells, groups and error in a few words."""
        groups, errors = self.groups, self.expected_error()
        told = {
            "cells": " x ".join(f"{axis.column} ({axis.size})" for axis in groups.categories)
            + f"; {groups.counts.size:,} in all",
            "records": f"about {self.records:,.0f}",
            "error": f"each cell's count is within {errors['one_cell_95']:,.0f} of the truth with "
            "probability 95 %",
        }
        if self.numbers:
            rest = " and one for all other cells" if groups.groups > groups.kept.size else ""
            told["marginals of"] = ", ".join(self.numbers)
            told["groups"] = f"{groups.kept.size:,} cells with marginals of their own{rest}"
        return told
