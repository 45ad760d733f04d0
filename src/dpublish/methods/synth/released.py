"""A published model of a table: noisy marginals and tables, and the distribution fitted to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.accuracy.intervals import mixed_half_width, require_confidence
from dpublish.accuracy.noise_distribution import noise_variance, quantile, sum_quantile
from dpublish.core.answer import Answer
from dpublish.core.beside_labels import (
    Along,
    as_derived,
    cell_width,
    with_interval,
    with_joints,
)
from dpublish.core.codecs import NOISY_SIZE, RATE, Codec, optional
from dpublish.core.noisy_size import MAX_STREAMED_ROWS, NoisySize
from dpublish.core.query.axes import read_query
from dpublish.core.query.cells import around, bounded
from dpublish.core.query.dependence import ANY_DEPENDENCE, frechet_bounds
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import (
    BATCH_ROWS,
    Metadata,
    Release,
    Tables,
    describe_field,
    in_batches,
    in_metadata,
    whole_column,
)
from dpublish.data.query.language import Query, parse_query, require_columns
from dpublish.data.query.weights import assumption, axis_extent, axis_weights, is_partial
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.released import Marginal
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.released import marginal_table, read_marginals, value_table
from dpublish.methods.synth.class_names import class_names, with_class_values
from dpublish.methods.synth.classes import ColumnClasses
from dpublish.methods.synth.fit import Fitted
from dpublish.methods.synth.function_counts import source_extent
from dpublish.methods.synth.junction_tree import Columns, JunctionTree
from dpublish.methods.synth.model import CountedTable, Known, Model
from dpublish.methods.synth.quality import UNKNOWN, Distance, Quality, QualityIntervals, size_terms
from dpublish.methods.synth.rows import RowSource, as_texts
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

_MOST_CELLS = 1 << 24
_TOLERANCE = 1e-6


def _write_quality(quality: Quality) -> dict[str, Any]:
    return {
        "pairs": quality.pairs,
        "summed_distance": quality.summed,
        "worst_distance": quality.worst,
        "summed_rate": RATE.write(quality.summed_rate),
        "worst_rate": RATE.write(quality.worst_rate),
        "rounding": quality.rounding,
    }


def _read_quality(plain: Mapping[str, Any], schema: Schema) -> Quality:
    return Quality(
        pairs=plain["pairs"],
        summed=plain["summed_distance"],
        worst=plain["worst_distance"],
        summed_rate=RATE.read(plain["summed_rate"], schema),
        worst_rate=RATE.read(plain["worst_rate"], schema),
        rounding=float(plain["rounding"]),
    )


QUALITY = optional(Codec(_write_quality, _read_quality))


class _Estimate(NamedTuple):
    """A count from noisy tables: its value, and how much each noisy number counts in it."""

    value: float
    rates: list[Fraction]
    weights: list[FloatArray]


@dataclass(frozen=True, eq=False, kw_only=True)
class SynthRelease(Release):
    """Noisy marginals and tables, and one distribution that fits them all.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: The columns, those that are filled in by rule included.
        size: Noisy number of records, which the plan was made from.
        marginals: The noisy marginal of each counted column.
        classes: The classes of each counted column.
        counted: The noisy tables: columns (by number), level of each, counts and noise.
        cliques: The columns (by number) of each clique of the fitted distribution.
        parents: The number of each clique's parent; -1 for the first.
        levels: The level of each counted column in the fitted distribution.
        probabilities: The fitted distribution of each clique.
        quality: Noisy distances from the truth, if they were measured.
        prior: Whether a public prior was chosen, if one was offered.
    """

    kind: ClassVar[str] = "junction-tree"
    report: ClassVar[str] = "dpublish.methods.synth.report:section"

    receipt: Receipt
    schema: Schema
    size: NoisySize = in_metadata(NOISY_SIZE)
    marginals: tuple[NoisyMarginal, ...]
    classes: tuple[ColumnClasses, ...]
    counted: tuple[CountedTable, ...]
    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    levels: tuple[int, ...]
    probabilities: tuple[FloatArray, ...]
    quality: Quality | None = in_metadata(QUALITY, default=None)
    prior: str | None = in_metadata(default=None)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.size.rate)
        number = len(self.names)
        if not len(self.marginals) == len(self.classes) == len(self.levels) == number > 0:
            raise InvalidParameter("each counted column needs a marginal, classes and a level")
        for name, marginal, classes in zip(self.names, self.marginals, self.classes, strict=True):
            size = self.schema[name].size
            if marginal.leaves != size or classes.levels[0].size != size:
                raise InvalidParameter(f"the marginal or classes of {name!r} are not those of it")
        for classes, level in zip(self.classes, self.levels, strict=True):
            if not (type(level) is int and 0 <= level < len(classes.levels)):
                raise InvalidParameter("the model takes each column on one of its levels")
        for table in self.counted:
            self._check_table(table)
        self._check_model()

    def _check_table(self, table: CountedTable) -> None:
        require_rate(table.rate)
        _check_columns(table.columns, len(self.names))
        shape = tuple(
            self.classes[i].sizes[level] if 0 <= level < len(self.classes[i].levels) else -1
            for i, level in zip(table.columns, table.levels, strict=True)
        )
        if table.counts.shape != shape or table.counts.dtype != np.int64:
            raise InvalidParameter("a table has a count for each combination of classes")

    def _check_model(self) -> None:
        if len(self.cliques) != len(self.parents) or len(self.cliques) != len(self.probabilities):
            raise InvalidParameter("each clique has a parent and a distribution")
        self._check_cliques()
        if sum(prod(shape) for shape in self.tree.shapes) > _MOST_CELLS:
            raise InvalidParameter("the cliques have too many cells")
        for shape, table in zip(self.tree.shapes, self.probabilities, strict=True):
            is_sound = table.shape == shape and table.dtype == np.float64
            if not is_sound or not np.all(np.isfinite(table)) or np.any(table < 0):
                raise InvalidParameter("a clique's distribution has a probability for each cell")
            if abs(float(table.sum()) - 1) > _TOLERANCE:
                raise InvalidParameter("probabilities add up to 1")

    def _check_cliques(self) -> None:
        for clique in self.cliques:
            _check_columns(clique, len(self.names))
        if {i for clique in self.cliques for i in clique} != set(range(len(self.names))):
            raise InvalidParameter("every column lies in a clique")
        for number, parent in enumerate(self.parents):
            if not (
                type(parent) is int and (parent == -1 if number == 0 else 0 <= parent < number)
            ):
                raise InvalidParameter("a clique follows its parent")
        self._check_running()

    def _check_running(self) -> None:
        """Refuse cliques that share a column without all cliques between them sharing it."""
        seen: set[int] = set()
        for clique, shared in zip(self.cliques, self.tree.separators, strict=True):
            if ({*clique} & seen) - {*shared}:
                raise InvalidParameter("the cliques are not those of a tree")
            seen |= {*clique}

    # --- What it is made of -------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that were counted; the others are filled in by rule."""
        filled = {one.column for one in self.schema.functions}
        return tuple(name for name in self.schema.names if name not in filled)

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the columns whose missing rules decide which records are in the release."""
        return self.names

    @cached_property
    def known(self) -> Known:
        """All that was released, in the terms of numbered columns."""
        kept = set(self.names)
        return Known(
            names=self.names,
            classes=self.classes,
            marginals=self.marginals,
            tables=self.counted,
            impossible=tuple(x for x in self.schema.impossible if {*x.columns} <= kept),
            totals=tuple(x for x in self.schema.totals if {*x.columns} <= kept),
            fixed_levels=self.levels,
        )

    @cached_property
    def tree(self) -> JunctionTree:
        """The cliques of the fitted distribution."""
        sizes = [x.sizes[level] for x, level in zip(self.classes, self.levels, strict=True)]
        return JunctionTree(tuple(sizes), self.cliques, self.parents)

    @cached_property
    def model(self) -> Model:
        """The fitted distribution."""
        fitted = Fitted((), self.probabilities, {}, 0)
        return Model(self.known, self.tree, fitted)

    @property
    def total(self) -> float:
        """Estimate the number of records from the totals of all marginals."""
        return self.known.total

    @cached_property
    def _source(self) -> RowSource:
        return RowSource(self.schema, self.known, self.tree, self.probabilities)

    # --- How good it is -----------------------------------------------------------------------

    @cached_property
    def _intervals(self) -> QualityIntervals | None:
        return None if self.quality is None else QualityIntervals(self.quality, self.known)

    def mean_distance(self, confidence: float = 0.95) -> Distance | None:
        """Return the measured mean distance of a pair of columns from the truth, if it was."""
        return None if self._intervals is None else self._intervals.mean(confidence)

    def worst_distance(self, confidence: float = 0.95) -> Distance | None:
        """Return the measured largest distance of a pair of columns, if it was measured."""
        return None if self._intervals is None else self._intervals.worst(confidence)

    def quality_sentence(self) -> str:
        """Say how far pairs of columns are from the truth."""
        mean = self.mean_distance()
        if len(self.names) == 1:
            return "not measured: one column has no pairs"
        if mean is None:
            return "the distance from the truth was not measured"
        if mean.high - mean.low > 2 * UNKNOWN or mean.high - mean.low >= 1:
            return (
                f"pairs of columns are on average at most {mean.high:.2f} from the truth "
                f"({100 * mean.confidence:g} %); epsilon is too small to measure it better"
            )
        return f"pairs of columns are on average {_told(mean)} from the truth (95 %)"

    # --- Rows ---------------------------------------------------------------------------------

    def rows(self, n: int | None = None, *, seed: int | None = None, where: str = "") -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        With `where`, all rows satisfy its conditions; none is drawn in vain.
        """
        wanted, source = self._request(n, where)
        rng = self.row_generator(n, seed, counted=wanted)
        found = [as_texts(block) for block in source.blocks(wanted, rng)]
        return pa.concat_tables(found)

    def row_batches(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: str = "",
        batch_size: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Draw synthetic rows batch by batch; texts come as dictionaries."""
        wanted, source = self._request(n, where)
        rng = self.row_generator(n, seed, counted=wanted, most=MAX_STREAMED_ROWS)

        def batches() -> Iterator[pa.RecordBatch]:
            for block in source.blocks(wanted, rng):
                yield from in_batches(block, batch_size)

        return batches()

    def _request(self, n: int | None, where: str) -> tuple[int, RowSource]:
        """Find how many rows are wanted, and where they come from."""
        query = parse_query(where)
        require_columns(query, self.schema.names)
        if not query.conditions:
            return (round(self.total) if n is None else n), self._source
        source, part = self._source.satisfying(query)
        if part <= 0 and n != 0:
            raise InvalidQuery(f"no row of this release satisfies {str(query)!r}")
        return (round(self.total * part) if n is None else n), source

    # --- Counts -------------------------------------------------------------------------------

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`.

        Where noisy tables hold all columns of the query, in classes that it does not cut, their
        weighted mean answers, with a confidence interval that covers the noise.  A query of one
        column that cuts bins is answered by its marginal: records in a bin that is covered in
        part are taken to lie evenly in it, and the interval allows for all else.  Other queries
        are answered by the model.  Their interval rests on its measured quality, and the bounds
        beside it on the noise alone; if the quality was not measured, the bounds are the interval.
        """
        require_confidence(confidence)
        parsed = parse_query(query)
        require_columns(parsed, self.schema.names)
        if set(parsed.columns) - set(self.names):
            return self.sample.answer(query, confidence, self._count_of)
        if not parsed.columns:
            return self._count_all(confidence)
        stated = self._stated(parsed, confidence)
        if stated is not None:
            return stated
        found = self._measured(parsed)
        if found is not None:
            return self._from_tables(parsed, found, confidence)
        return self._by_model(parsed, confidence)

    def _count_all(self, confidence: float) -> Answer:
        for one in self.known.totals:
            if not one.columns:
                count = float(one.count)
                return Answer(count, count, count, confidence, one.describe())
        width = quantile(size_terms(self.known), confidence)
        return bounded(self.total, self.total - width, self.total + width, confidence)

    def _stated(self, query: Query, confidence: float) -> Answer | None:
        """Answer what the schema says: what is impossible, and what was counted elsewhere."""
        extents = {
            name: axis_extent(self.schema[name].axis(), query.about(name)) for name in query.columns
        }
        masks = {name: extent.outer for name, extent in extents.items()}
        is_cut = any(np.any(extent.inner != extent.outer) for extent in extents.values())
        if any(not mask.any() for mask in masks.values()):
            return self._beyond(query, confidence)
        for one in self.known.impossible:
            within = all(
                name in masks and not np.any(masks[name] & ~mask)
                for name, mask in zip(one.columns, one.codes, strict=True)
            )
            if within:
                return Answer(0.0, 0.0, 0.0, confidence, one.describe())
        for total in self.known.totals:
            if total.columns and {*total.columns} == {*masks} and not is_cut:
                pairs = zip(total.columns, total.codes, strict=True)
                if all(np.array_equal(masks[name], mask) for name, mask in pairs):
                    count = float(total.count)
                    return Answer(count, count, count, confidence, total.describe())
        return None

    def _beyond(self, query: Query, confidence: float) -> Answer:
        """Answer a query that covers no cell: 0, or unknown where clipped values may satisfy it."""
        notes = []
        for name in query.columns:
            axis, conditions = self.schema[name].axis(), query.about(name)
            notes.append(assumption(axis, conditions, axis_weights(axis, conditions)))
        said = "; ".join(dict.fromkeys(note for note in notes if note)) or None
        if said is None:
            return Answer(0.0, 0.0, 0.0, confidence)
        return Answer(0.0, None, None, confidence, said)

    def _measured(self, query: Query) -> _Estimate | None:
        """Average the noisy tables that answer a query, weighted by the inverse of their noise."""
        weights = {
            name: axis_weights(self.schema[name].axis(), query.about(name))
            for name in query.columns
        }
        is_cut = any(np.any(is_partial(along)) for along in weights.values())
        found: list[tuple[float, Fraction, FloatArray, FloatArray]] = []
        for table in () if is_cut else self.counted:
            covered = self._covered(table, weights)
            if covered is not None:
                variance = noise_variance(table.rate) * float(covered.sum())
                found.append((variance, table.rate, covered, table.counts.astype(np.float64)))
        if len(weights) == 1:
            (name,) = weights
            marginal = self.marginals[self.names.index(name)]
            noise = marginal.noise_weights(weights[name])
            if noise is not None:
                variance = noise_variance(marginal.rate) * float(noise @ noise)
                units = marginal.units.astype(np.float64)
                found.append((variance, marginal.rate, noise, units))
        if not found:
            return None
        shares = np.array([1 / max(variance, 1e-12) for variance, *_ in found])
        shares = shares / shares.sum()
        value = sum(
            share * float((part * counts).sum())
            for share, (_, _, part, counts) in zip(shares, found, strict=True)
        )
        rates = [rate for _, rate, _, _ in found]
        parts = [
            (share * part).ravel() for share, (_, _, part, _) in zip(shares, found, strict=True)
        ]
        return _Estimate(float(value), rates, parts)

    def _covered(self, table: CountedTable, weights: Mapping[str, FloatArray]) -> FloatArray | None:
        """Say which cells of a table a query covers; None if it cuts a class or is not in it."""
        names = [self.names[i] for i in table.columns]
        if not set(weights) <= set(names):
            return None
        found = np.ones(())
        for name, column, level in zip(names, table.columns, table.levels, strict=True):
            classes = self.classes[column]
            along = np.ones(classes.sizes[level])
            if name in weights:
                lookup = classes.levels[level]
                along[lookup] = weights[name]
                if np.any(along[lookup] != weights[name]):
                    return None
            found = np.multiply.outer(found, along)
        return found

    def _count_of(self, query: Query, confidence: float) -> Answer | None:
        """Count by one column, or by the column that it is a function of, for bounds alone."""
        if not query.columns:
            return self._count_all(confidence)
        (name,) = query.columns
        if name in self.names:
            found = name, axis_extent(self.schema[name].axis(), query.about(name))
        else:
            known = source_extent(self.schema, query)
            if known is None or known[0] not in self.names:
                return None
            found = known
        marginal = self.marginals[self.names.index(found[0])]
        inner, outer = (mask.astype(np.float64) for mask in found[1])
        low, high = marginal.bound(inner, confidence, -1), marginal.bound(outer, confidence, 1)
        return Answer((low + high) / 2, low, high, confidence)

    def _from_tables(self, query: Query, found: _Estimate, confidence: float) -> Answer:
        covered = read_query([self.schema[name].axis() for name in query.columns], str(query))
        if not covered.is_cut:
            width = mixed_half_width(found.rates, found.weights, confidence)
            low, high = found.value - width, found.value + width
        elif len(query.columns) == 1:
            marginal = self.marginals[self.names.index(query.columns[0])]
            low = marginal.bound(covered.inner[0], confidence, -1)
            high = marginal.bound(covered.outer[0], confidence, 1)
        else:
            low, high = self._outer_bounds(query, confidence)
        return around(found.value, low, high, confidence, covered.note)

    def _by_model(self, query: Query, confidence: float) -> Answer:
        """Estimate a count by the model, between what the marginals alone allow."""
        _, part = self._source.satisfying(query)
        value = self.total * part
        low, high = self._outer_bounds(query, confidence)
        value = min(max(value, low), high)
        mean = self.mean_distance(confidence)
        columns = max(len(query.columns), 2)
        if mean is None or mean.high >= 0.5:
            return Answer(value, low, high, confidence, f"{_BY_BOUNDS}; {ANY_DEPENDENCE}")
        width = (columns - 1) * mean.high * self.total
        near, far = max(low, value - width), min(high, value + width)
        rests = _BY_MODEL.format(distance=f"{mean.high:.3f}", times=_times(columns - 1))
        return Answer(value, near, far, confidence, rests, kind="model", bounds=(low, high))

    def _outer_bounds(self, query: Query, confidence: float) -> tuple[float, float]:
        """Bound a count by those of its columns alone (Fréchet): these cover the noise.

        Cells that a query cuts count as outside for the lower bound and inside for the upper.
        """
        each = 1 - (1 - confidence) / (len(query.columns) + 1)
        is_known = any(not one.columns for one in self.known.totals)
        most = self.total + (0 if is_known else quantile(size_terms(self.known), each))
        parts = []
        for name in query.columns:
            marginal = self.marginals[self.names.index(name)]
            inner, outer = axis_extent(self.schema[name].axis(), query.about(name))
            low = marginal.bound(inner.astype(np.float64), each, -1)
            parts.append((low, marginal.bound(outer.astype(np.float64), each, 1)))
        return frechet_bounds(parts, max(most, 0.0))

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        return self.sample.boxes(columns, lows, highs)

    @cached_property
    def sample(self) -> SampledCount:
        """Rows to count in, always the same."""
        return SampledCount(self, self.total)

    def marginal(self, column: str) -> Marginal:
        """Return a column's noisy counts, with the half-width of their intervals (95 %)."""
        require_known("column", column, self.names)
        marginal = self.marginals[self.names.index(column)]
        one = np.zeros(marginal.leaves)
        one[0] = 1
        width = marginal.half_width(one, 0.95)
        counts = np.rint(marginal.bins).astype(np.int64)
        return Marginal(self.schema[column].axis().labels, counts, float(width or 0.0))

    # --- Files --------------------------------------------------------------------------------

    def tables(self) -> dict[str, pa.Table]:
        """Return marginals, classes, noisy tables and the fitted distribution as tables."""
        axes = [self.schema[name].axis() for name in self.names]
        counts, model = self._count_table(), self._model_table()
        widths = [np.full(one.counts.size, cell_width(one.rate)) for one in self.counted]
        counts = with_joints(
            counts,
            "cell_number",
            [self._along(one.columns, one.levels) for one in self.counted],
            self.names,
        )
        model = with_joints(
            model,
            "cell_number",
            [self._along(one, [self.levels[i] for i in one]) for one in self.cliques],
            self.names,
        )
        return {
            "values": as_derived(value_table(axes, self.marginals)),
            "marginals": marginal_table(self.names, self.marginals),
            "classes": with_class_values(_class_table(self.names, self.classes), axes),
            "counts": with_interval(counts, np.concatenate([np.empty(0), *widths])),
            "model": model,
        }

    def _along(self, columns: Sequence[int], levels: Sequence[int]) -> list[Along]:
        """Name the classes of each column of a table on the level that it takes."""
        return [
            class_names(self.schema[self.names[number]], self.classes[number].levels[level])
            for number, level in zip(columns, levels, strict=True)
        ]

    def _count_table(self) -> pa.Table:
        sizes = [table.counts.size for table in self.counted]
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        empty = np.zeros(0, dtype=np.int64)
        cells = np.concatenate([empty, *(np.arange(size) for size in sizes)])
        counts = np.concatenate([empty, *(table.counts.ravel() for table in self.counted)])
        return pa.table(
            [numbers, cells, counts],
            schema=pa.schema(
                [
                    describe_field(pa.field("table", pa.int64()), "number of the noisy table"),
                    describe_field(
                        pa.field("cell_number", pa.int64()),
                        "combination of classes, the last column's counting fastest",
                    ),
                    describe_field(pa.field("noisy_count", pa.int64()), "records, with noise"),
                ]
            ),
        )

    def _model_table(self) -> pa.Table:
        sizes = [table.size for table in self.probabilities]
        return pa.table(
            [
                np.repeat(np.arange(len(sizes)), sizes),
                np.concatenate([np.arange(size) for size in sizes]),
                np.concatenate([table.ravel() for table in self.probabilities]),
            ],
            schema=pa.schema(
                [
                    describe_field(pa.field("clique", pa.int64()), "number of the clique"),
                    describe_field(
                        pa.field("cell_number", pa.int64()),
                        "combination of classes, the last column's counting fastest",
                    ),
                    describe_field(pa.field("probability", pa.float64()), "fitted probability"),
                ]
            ),
        )

    def metadata(self) -> dict[str, Any]:
        """Return whatever else is needed to load the value again, as plain values."""
        return {
            **super().metadata(),
            "marginals": [marginal.metadata() for marginal in self.marginals],
            "joined_levels": [one.joined for one in self.classes],
            "tables": [
                {
                    "columns": [self.names[i] for i in table.columns],
                    "levels": [*table.levels],
                    "rate": RATE.write(table.rate),
                }
                for table in self.counted
            ],
            "cliques": [[self.names[i] for i in clique] for clique in self.cliques],
            "parents": [*self.parents],
            "model_levels": [*self.levels],
        }

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields, by name."""
        filled = {one.column for one in schema.functions}
        names = [name for name in schema.names if name not in filled]
        classes = _read_classes(schema, names, metadata["joined_levels"], tables["classes"])
        counted = _read_counts(names, classes, metadata["tables"], tables["counts"], schema)
        cliques = tuple(tuple(_find(names, one) for one in x) for x in metadata["cliques"])
        levels = tuple(metadata["model_levels"])
        return {
            **super().read_parts(schema, metadata, tables),
            "marginals": read_marginals(metadata["marginals"], tables["marginals"]),
            "classes": classes,
            "counted": counted,
            "cliques": cliques,
            "parents": tuple(metadata["parents"]),
            "levels": levels,
            "probabilities": _read_model(cliques, classes, levels, tables["model"]),
        }

    def expected_error(self) -> dict[str, float]:
        """Return the half-width of a table's counts (95 %), and how much was counted."""
        found = {
            "tables": float(len(self.counted)),
            "cells": float(sum(table.counts.size for table in self.counted)),
        }
        if self.counted:
            rate = min(table.rate for table in self.counted)
            found["one_cell_95"] = float(sum_quantile(rate, 1, 0.95))
        return found

    def summary(self) -> dict[str, str]:
        """Describe the model and its error in a few words."""
        cells = sum(table.counts.size for table in self.counted)
        filled = [one.column for one in self.schema.functions]
        said = {
            "columns": f"{len(self.names)} counted"
            + (f", {len(filled)} filled in by rule" if filled else ""),
            "published": f"{_number(len(self.marginals), 'marginal')} and "
            f"{_number(len(self.counted), 'table')} ({cells:,} cells)",
            "quality": self.quality_sentence(),
        }
        worst = self.worst_distance()
        if worst is not None and worst.high - worst.low <= 2 * UNKNOWN and len(self.names) > 2:
            said["worst pair"] = f"{_told(worst)} from the truth (95 %)"
        if self.prior is not None:
            said["prior"] = f"{self.prior}, by how well it fits the rows (chosen with noise)"
        if not self.counted:
            said["note"] = (
                "too few records for this epsilon to join columns: they are independent"
                if len(self.names) > 1
                else "one column: its marginal is all there is"
            )
        return said


_BY_BOUNDS = "the value is the fitted model's"
_BY_MODEL = (
    "the value and the interval rest on the fitted model: they assume that this count is no "
    "further off than {times}the mean distance of pairs of columns (at most {distance} of all "
    "records)"
)


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _times(number: int) -> str:
    return "" if number == 1 else f"{number} times "


def _told(distance: Distance) -> str:
    """Write a distance with as many digits as its interval has."""
    width = max(distance.high - distance.value, distance.value - distance.low)
    digits = 3 if width < 0.02 else 2
    return f"{distance.value:.{digits}f} ± {max(width, 10.0**-digits):.{digits}f}"


def _check_columns(columns: Columns, number: int) -> None:
    whole = all(type(i) is int and 0 <= i < number for i in columns)
    if not whole or not columns or any(b <= a for a, b in pairwise(columns)):
        raise InvalidParameter("a table names columns, each once and in their order")


def _find(names: Sequence[str], name: object) -> int:
    if name not in names:
        raise CorruptRelease(f"there is no counted column {name!r}")
    return names.index(str(name))


def _class_table(names: Sequence[str], classes: Sequence[ColumnClasses]) -> pa.Table:
    """List where a class begins along the codes of a column, for each of its levels."""
    columns: list[int] = []
    parts: list[IntArray] = []
    for column, one in enumerate(classes):
        for level, along in enumerate(one.levels):
            starts = np.flatnonzero(np.r_[True, np.diff(along) != 0])
            columns += [column] * starts.size
            parts.append(np.stack([np.full(starts.size, level), starts, along[starts]]))
    found = np.concatenate(parts, axis=1)
    return pa.table(
        {
            "column": pa.DictionaryArray.from_arrays(
                pa.array(columns, pa.int32()), pa.array(list(names))
            ),
            "level": found[0],
            "first_code": found[1],
            "class": found[2],
        }
    )


def _read_classes(
    schema: Schema, names: Sequence[str], joined: Sequence[int], table: pa.Table
) -> tuple[ColumnClasses, ...]:
    """Read the classes back: a class holds all codes up to where the next one begins."""
    if len(joined) != len(names) or not all(type(level) is int for level in joined):
        raise CorruptRelease("each column has a finest level that is counted")
    levels, firsts, classes = (whole_column(table, x) for x in ("level", "first_code", "class"))
    owner = np.asarray(table["column"].cast(pa.string()).to_pylist(), dtype=object)
    found = []
    for name, finest in zip(names, joined, strict=True):
        mine, size = owner == name, schema[name].size
        along = []
        for level in range(int(levels[mine].max(initial=-1)) + 1):
            at = mine & (levels == level)
            starts, lengths = firsts[at], np.diff(np.r_[firsts[at], size])
            if not starts.size or starts[0] != 0 or np.any(lengths <= 0):
                raise CorruptRelease(f"the classes of {name!r} do not hold all of its values")
            along.append(np.repeat(classes[at], lengths))
        found.append(ColumnClasses(tuple(along), finest))
    return tuple(found)


def _read_counts(
    names: Sequence[str],
    classes: Sequence[ColumnClasses],
    plain: Sequence[Mapping[str, Any]],
    table: pa.Table,
    schema: Schema,
) -> tuple[CountedTable, ...]:
    """Read the noisy tables back."""
    counts = whole_column(table, "noisy_count")
    found, start = [], 0
    for one in plain:
        columns = tuple(_find(names, name) for name in one["columns"])
        levels = tuple(one["levels"])
        shape = _shape(classes, columns, levels)
        stop = start + prod(shape)
        if stop > counts.size:
            raise CorruptRelease("there are fewer noisy counts than cells")
        rate = RATE.read(one["rate"], schema)
        found.append(CountedTable(columns, levels, counts[start:stop].reshape(shape), rate))
        start = stop
    if start != counts.size:
        raise CorruptRelease("there are more noisy counts than cells")
    return tuple(found)


def _read_model(
    cliques: Sequence[Columns],
    classes: Sequence[ColumnClasses],
    levels: Sequence[int],
    table: pa.Table,
) -> tuple[FloatArray, ...]:
    column = table["probability"]
    if column.type != pa.float64() or column.null_count:
        raise CorruptRelease("the column 'probability' does not hold numbers")
    numbers = np.asarray(column.to_numpy(), dtype=np.float64)
    found, start = [], 0
    for clique in cliques:
        if len(levels) != len(classes):
            raise CorruptRelease("the model takes each column on one level")
        shape = _shape(classes, clique, [levels[i] for i in clique])
        stop = start + prod(shape)
        if stop > numbers.size:
            raise CorruptRelease("there are fewer probabilities than cells")
        found.append(numbers[start:stop].reshape(shape))
        start = stop
    if start != numbers.size:
        raise CorruptRelease("there are more probabilities than cells")
    return tuple(found)


def _shape(
    classes: Sequence[ColumnClasses], columns: Columns, levels: Sequence[Any]
) -> tuple[int, ...]:
    if len(columns) != len(levels):
        raise CorruptRelease("each column of a table is on one level")
    found = []
    for column, level in zip(columns, levels, strict=True):
        if type(level) is not int or not 0 <= level < len(classes[column].levels):
            raise CorruptRelease("a table names a level that is not there")
        found.append(classes[column].sizes[level])
    return tuple(found)
