"""How good a synthetic table is: marginals, pairs of columns and range counts beside true ones.

NOT PRIVATE: everything here looks at true rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.prediction import UNKNOWN, encode_rows
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.queries import (
    SANITY,
    QueryErrors,
    relative_errors,
    summarize_errors,
)
from dpublish.evaluation.metrics.tables import (
    Contingency,
    cramers_v,
    largest_cdf_gap,
    mid_ranks,
    rank_correlations,
    total_variation,
)
from dpublish.evaluation.workload import Workload, answers, random_ranges, true_counts
from dpublish.randomness import plain_generator

Codes = Mapping[str, NDArray[np.int64]]
QUANTILES = 8
QUERIES = 1_000
DEPTHS = (1, 2, 3, 4)
"""How many columns a range count is about."""
_SUBSETS = 25  # of columns for each depth, at most: estimates are made for one subset at a time


class MarginalDifference(NamedTuple):
    """How far a column's synthetic marginal is from the true one; no CDF without an order."""

    column: str
    total_variation: float
    cdf_gap: float | None


class Association(NamedTuple):
    """How far two columns depend on each other in the true and in the synthetic rows."""

    first: str
    second: str
    measure: str
    true: float
    synthetic: float

    @property
    def difference(self) -> float:
        """How far the two are apart."""
        return abs(self.true - self.synthetic)


class Answered(NamedTuple):
    """Range counts about so many columns: true ones, and those of the release.

    `even` are those of as many rows that are divided evenly over all values.
    """

    depth: int
    truth: NDArray[np.int64]
    estimates: NDArray[np.float64]
    sanity: float
    even: NDArray[np.float64]

    def capped(self, estimates: NDArray[Any]) -> float:
        """Average the relative errors of estimates, each of them 1 at most."""
        errors = relative_errors(estimates.astype(np.float64), self.truth, self.sanity)
        return float(np.minimum(errors, 1.0).mean())

    @property
    def relative(self) -> NDArray[np.float64]:
        """The relative error of each answer."""
        return relative_errors(self.estimates, self.truth, self.sanity)

    @property
    def errors(self) -> QueryErrors:
        """The errors in a few numbers."""
        return summarize_errors(self.estimates, self.truth, self.sanity)


@dataclass(frozen=True, eq=False)
class Comparison:
    """True rows and synthetic rows of one release, as codes of the same columns.

    Records that lack a value in some column, where the schema leaves such records out, are
    left out as in the release.
    """

    release: Release
    seed: int
    axes: tuple[Axis, ...]
    true: Codes
    synthetic: Codes
    records: int

    @classmethod
    def of(cls, release: Release, against: pa.Table, seed: int = 0) -> "Comparison":
        """Draw synthetic rows and find the codes of both."""
        rows = release.rows(seed=seed)
        names = [name for name in release.schema.names if name in rows.column_names]
        true = _complete(encode_rows(against, release.schema, names))
        records = len(next(iter(true.values())))
        if not records:
            raise InvalidParameter("none of the true rows has a value in every column")
        synthetic = _complete(encode_rows(rows, release.schema, names))
        axes = tuple(release.schema[name].axis() for name in names)
        return cls(release, seed, axes, true, synthetic, records)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the synthetic rows."""
        return tuple(axis.column for axis in self.axes)

    def counts(self, axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the true and the synthetic records of every value of a column."""
        size, name = axis.taxonomy.size, axis.column
        true = np.bincount(self.true[name], minlength=size)
        return true, np.bincount(self.synthetic[name], minlength=size)

    @cached_property
    def marginals(self) -> tuple[MarginalDifference, ...]:
        """Compare every column by itself."""
        found = []
        for axis in self.axes:
            true, synthetic = self.counts(axis)
            inner = slice(0, axis.ordinary_leaves)
            gap = None if _is_nominal(axis) else largest_cdf_gap(true[inner], synthetic[inner])
            found.append(MarginalDifference(axis.column, total_variation(true, synthetic), gap))
        return tuple(found)

    @cached_property
    def associations(self) -> tuple[Association, ...]:
        """Compare every pair of columns.

        Two columns with an order are compared by rank correlation (Spearman), others by
        Cramer's V, for which columns with many values are cut at the true quantiles.
        """
        ordered = [axis for axis in self.axes if not _is_nominal(axis)]
        indices = {axis.column: index for index, axis in enumerate(ordered)}
        ranks = [_correlations(codes, ordered) for codes in (self.true, self.synthetic)]
        grouped = [
            {a.column: _grouped(a, codes, self.true) for a in self.axes}
            for codes in (self.true, self.synthetic)
        ]
        found = []
        for first, second in combinations(self.columns, 2):
            if first in indices and second in indices:
                pair = indices[first], indices[second]
                true, synthetic = (float(matrix[pair]) for matrix in ranks)
                found.append(Association(first, second, "rank correlation", true, synthetic))
            else:
                true, synthetic = (_cramers_v(groups[first], groups[second]) for groups in grouped)
                found.append(Association(first, second, "Cramer's V", true, synthetic))
        return tuple(found)

    @cached_property
    def answered(self) -> tuple[Answered, ...]:
        """Answer range counts about one, two, three and four columns.

        Answers are scaled to the number of true rows, so that these may be rows which the
        release was not made from.
        """
        rng = plain_generator(self.seed)
        sanity = max(SANITY * self.records, 1.0)
        depths = [depth for depth in DEPTHS if depth <= len(self.axes)]
        scale = self._scale()
        found = []
        for depth in depths:
            truth, estimates, even = [], [], []
            for columns, number in _subsets(self.columns, depth, QUERIES // len(depths), rng):
                workload = random_ranges(self.release.schema, columns, number, rng)
                truth.append(true_counts(self.true, workload))
                estimates.append(scale * self._answers(workload))
                even.append(self.records * self._part_of_domain(workload))
            found.append(
                Answered(
                    depth,
                    np.concatenate(truth),
                    np.concatenate(estimates),
                    sanity,
                    np.concatenate(even),
                )
            )
        return tuple(found)

    @property
    def has_estimates(self) -> bool:
        """Whether the release answers range counts itself, rather than by its rows."""
        return type(self.release).count_boxes is not Release.count_boxes

    def _answers(self, workload: Workload) -> NDArray[np.float64]:
        if self.has_estimates:
            return answers(self.release, workload)
        return true_counts(self.synthetic, workload).astype(np.float64)

    def _part_of_domain(self, workload: Workload) -> NDArray[np.float64]:
        """Compute the part of all combinations of values that lies in each box."""
        sizes = {axis.column: axis.taxonomy.size for axis in self.axes}
        widths = workload.highs - workload.lows
        parts = widths / np.array([sizes[name] for name in workload.columns])
        return np.asarray(parts.prod(axis=1), dtype=np.float64)

    def _scale(self) -> float:
        """Compute how many true rows there are for each one of the release."""
        first = self.axes[0]
        everything = np.array([[0]]), np.array([[first.taxonomy.size]])
        total = float(self._answers(Workload((first.column,), *everything))[0])
        return self.records / total if total > 0 else 0.0


def _complete(codes: Codes) -> Codes:
    keep = np.all([column != UNKNOWN for column in codes.values()], axis=0)
    return {name: column[keep] for name, column in codes.items()}


def _is_nominal(axis: Axis) -> bool:
    return axis.kind == "category"


def _correlations(codes: Codes, axes: Sequence[Axis]) -> NDArray[np.float64]:
    if not axes:
        return np.empty((0, 0))
    ranks = [mid_ranks(codes[axis.column], axis.ordinary_leaves) for axis in axes]
    return rank_correlations(np.stack(ranks, axis=1))


def _grouped(axis: Axis, codes: Codes, true: Codes) -> tuple[NDArray[np.int64], int]:
    """Cut a column with an order and many values into a few groups; special values stay."""
    own, size = codes[axis.column], axis.taxonomy.size
    if _is_nominal(axis) or axis.ordinary_leaves <= QUANTILES:
        return own, size
    counts = np.bincount(true[axis.column], minlength=size)[: axis.ordinary_leaves]
    below = (np.cumsum(counts) - counts) / max(counts.sum(), 1)
    groups = np.minimum((below * QUANTILES).astype(np.int64), QUANTILES - 1)
    table = np.concatenate([groups, QUANTILES + np.arange(axis.special)])
    return table[own], QUANTILES + axis.special


def _cramers_v(
    first: tuple[NDArray[np.int64], int], second: tuple[NDArray[np.int64], int]
) -> float:
    return cramers_v(Contingency(first[0], second[0], (first[1], second[1])))


def _subsets(
    columns: Sequence[str], depth: int, queries: int, rng: np.random.Generator
) -> list[tuple[tuple[str, ...], int]]:
    """Distribute queries over some sets of columns."""
    if len(columns) <= 2 * max(DEPTHS):
        possible = list(combinations(columns, depth))
        order = rng.permutation(len(possible))[:_SUBSETS]
        chosen = [possible[index] for index in order]
    else:
        drawn = (rng.choice(len(columns), depth, replace=False) for _ in range(_SUBSETS))
        chosen = list(dict.fromkeys(tuple(columns[i] for i in sorted(some)) for some in drawn))
    parts = np.diff(np.linspace(0, queries, len(chosen) + 1).astype(np.int64))
    return [(names, int(part)) for names, part in zip(chosen, parts, strict=True)]
