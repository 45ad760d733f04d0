"""A published grid with class counts, made into a classifier: smoothed, and refined if paid for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.prediction import encode_rows, label_rows
from dpublish.core.query.cells import around
from dpublish.core.query.sampled import WHY, SampledCount
from dpublish.core.released import Metadata, Tables, in_table, whole_column
from dpublish.data.axis import Axis
from dpublish.data.query.language import Query, parse_query
from dpublish.data.query.weights import axis_weights, is_partial
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, require_known
from dpublish.methods.histogram.released import LabeledHistogramRelease, fill_columns
from dpublish.methods.privpfc.refined_rows import Drawn, draw_evenly, draw_refined
from dpublish.methods.privpfc.released_columns import (
    Refinement,
    ValueCounts,
    read_values,
    table_of,
    values_table,
)
from dpublish.methods.privpfc.score_card import LIMIT, STEP, ScoreCard, ScoreTerm, to_probabilities
from dpublish.methods.privpfc.smoothing import grid_weights, smooth_probabilities
from dpublish.types import FloatArray, IntArray

Rule = Literal["scores", "counts"]
SCORES = "class_score"
"""Name of the published column of scores."""
_BY_GRID = "the interval is what the noisy counts of the grid allow, whatever the records are"
DOUBT = 5
"""How many deviations of noise a cell's records have to outweigh to be believed over the model."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivPfCRelease(LabeledHistogramRelease):
    """Noisy counts of a grid by class, scores that follow from them, and refinements.

    `scores` has the log-odds of each class in each cell, in the order of `cells`: the noisy
    counts, smoothed by an additive model.  They are published so that a release predicts the
    same wherever it is opened.  Refinements add scores of further columns.
    """

    kind: ClassVar[str] = "grid-classifier"
    report: ClassVar[str] = "dpublish.methods.privpfc.report:section"

    scores: IntArray = in_table("counts", SCORES)
    refinements: tuple[Refinement, ...] = ()
    values: tuple[ValueCounts, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None or self.scores.shape != self.counts.shape:
            raise InvalidParameter("a grid classifier has counts and scores for every cell")
        about = {self.classes.size, *(one.classes for one in self.refinements)}
        if self.scores.dtype != np.int64 or len(about) != 1:
            raise InvalidParameter("scores and refinements must be about the same classes")
        if self.classes.column in {one.axis.column for one in self.refinements}:
            raise InvalidParameter("the class column cannot refine what predicts it")
        counted = [one.axis.column for one in self.values]
        known = {axis.column for axis in self.predictors}
        if len(set(counted)) != len(counted) or not set(counted) <= known:
            raise InvalidParameter("values are counted once for each column, of the grid only")
        _ = self.card  # refuses scores that are out of range

    @cached_property
    def card(self) -> ScoreCard:
        """The score card of the grid and its refinements."""
        grid = grid_term(self.predictors, self.counts, self.scores)
        return ScoreCard((grid, *(refinement.term for refinement in self.refinements)))

    def predict(self, rows: Any, *, rule: Rule = "scores") -> pa.Array:
        """Predict the class of each of `rows`.

        Args:
            rows: Anything that is Arrow-compatible, with the columns that the rule looks at.
            rule: "scores" adds up the published scores; "counts" takes the class with the
                highest noisy count in a row's cell, and nothing else.
        """
        require_known("rule", rule, ("scores", "counts"))
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        grid = tuple(axis.column for axis in self.predictors)
        names, by_rule = (
            (self.card.columns, self.predict_codes)
            if rule == "scores"
            else (grid, super().predict_codes)
        )
        codes = encode_rows(table, self.schema, names)
        return label_rows(self.classes, by_rule(codes, table.num_rows))

    def predict_codes(self, codes: Mapping[str, IntArray], size: int) -> IntArray:
        """Predict classes from leaf codes: the highest score, the first of equals."""
        return np.asarray(self.card.score(codes, size).argmax(axis=1))

    def predict_proba(self, rows: Any) -> FloatArray:
        """Predict the probability of each class, a row for each of `rows`."""
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        codes = encode_rows(table, self.schema, self.card.columns)
        probabilities = to_probabilities(self.card.score(codes, table.num_rows)).astype(np.float64)
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))

    def rows(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        fill: bool = False,
        rule: Rule = "scores",
    ) -> pa.Table:
        """Draw synthetic rows to train on.

        With the rule "scores", predictors are drawn from the grid, those of refinements so
        that they agree with the published sums, values within a cell by their published counts,
        and the class from the probabilities that the scores give, so that a classifier trained
        on the rows learns what the release knows.  With "counts", rows are drawn from the
        grid's noisy counts alone, and values evenly within a cell.
        """
        require_known("rule", rule, ("scores", "counts"))
        if rule == "counts":
            return super().rows(n, seed=seed, fill=fill)
        size = int(self.estimates.sum()) if n is None else n
        rng = self.row_generator(n, seed, counted=size)
        columns = self._draw_predictors(size, n is None, rng)
        codes = encode_rows(pa.table(columns), self.schema, self.card.columns)
        cells, _ = self.locate(codes, size)
        classes = draw_evenly(self.card.score(codes, size), cells, rng)
        columns[self.classes.column] = draw_column(self.classes, classes, rng)
        rows = pa.table(columns)
        return fill_columns(rows, self.schema, seed) if fill else rows

    def _draw_predictors(
        self, size: int, as_counted: bool, rng: np.random.Generator
    ) -> dict[str, pa.Array]:
        shape = tuple(axis.size for axis in self.predictors)
        noisy = self.counts.reshape(*shape, -1).sum(axis=-1)
        weights = grid_weights(noisy, int(self.estimates.sum())).ravel()
        if as_counted:
            cells = np.repeat(np.arange(weights.size), weights)
        else:
            total = weights.sum()
            cells = rng.choice(weights.size, size=size, p=weights / total if total else None)
        indices = np.unravel_index(cells, shape) if shape else ()
        drawn = {
            axis.column: Drawn(axis, index.astype(np.int64))
            for axis, index in zip(self.predictors, indices, strict=True)
        }
        grid = ScoreCard(self.card.terms[:1])
        drawn = draw_refined(drawn, grid, self.refinements, size, self.total, rng)
        for one in self.values:
            known = drawn[one.axis.column]
            drawn[one.axis.column] = Drawn(one.axis, one.draw(known.axis, known.cells, rng))
        return {
            name: draw_column(one.axis, one.cells.astype(np.intp), rng)
            for name, one in drawn.items()
        }

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the grid's columns: a record that lacks another one is in its counts."""
        return tuple(axis.column for axis in self.axes)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`.

        Columns of the grid are counted in it, with a confidence interval.  Synthetic rows are
        counted if columns of refinements are asked about, or a part of a cell whose values
        were counted on their own; the interval is what the grid allows.
        """
        parsed = parse_query(query)
        if self._has_grid_of(parsed.columns) and not self._cuts_counted_cells(parsed):
            return super().count(query, confidence=confidence)
        found = self._sample.answer(query, confidence)
        grid = Query(tuple(c for c in parsed.conditions if self._has_grid_of((c.column,))))
        within = super().count(str(grid), confidence=confidence)
        if found.low is not None or within.low is None or within.high is None:
            return found
        low = within.low if len(grid.conditions) == len(parsed.conditions) else 0.0
        return around(found.value, low, within.high, confidence, f"{WHY}; {_BY_GRID}")

    def _cuts_counted_cells(self, query: Query) -> bool:
        counted = {one.axis.column for one in self.values}
        return any(
            is_partial(axis_weights(axis, query.about(axis.column))).any()
            for axis in self.predictors
            if axis.column in counted
        )

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of leaves at once.

        As `count`: from the grid if it has all the columns and all boxes are made of its cells
        where values were counted on their own, else from synthetic rows.
        """
        if self._has_grid_of(columns) and not self._box_cuts_cells(columns, lows, highs):
            return super().count_boxes(columns, lows, highs)
        return self._sample.boxes(columns, lows, highs)

    def _box_cuts_cells(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> bool:
        counted = {one.axis.column for one in self.values}
        starts = {a.column: a.leaf_starts for a in self.predictors if a.column in counted}
        return any(
            not np.isin(ends[:, number], starts[name]).all()
            for number, name in enumerate(columns)
            if name in starts
            for ends in (lows, highs)
        )

    def _has_grid_of(self, columns: Sequence[str]) -> bool:
        return set(columns) <= {axis.column for axis in self.axes}

    @cached_property
    def _sample(self) -> SampledCount:
        return SampledCount(self, self.total)

    def tables(self) -> dict[str, pa.Table]:
        """Return the cells with counts and scores, and the sums of the refinements."""
        counts = super().tables()["counts"]
        return {
            "counts": counts.append_column(SCORES, pa.array(self.scores)),
            "refinements": table_of(self.refinements, self.classes.labels),
            "values": values_table(self.values),
        }

    def metadata(self) -> dict[str, Any]:
        """Return axes, noise rates, and what was refined and counted by value."""
        return super().metadata() | {
            "refinements": [one.metadata() for one in self.refinements],
            "values": [one.metadata() for one in self.values],
        }

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the classifier of a release folder."""
        classes = schema.columns[-1].size
        table = tables["refinements"]
        numbers = whole_column(table, "refinement")
        if np.setdiff1d(numbers, np.arange(len(metadata["refinements"]))).size:
            raise CorruptRelease("the release lists sums of refinements that it does not name")
        return super().read_parts(schema, metadata, tables) | {
            "refinements": tuple(
                Refinement.from_parts(
                    schema, one, classes, table.filter(pa.array(numbers == number))
                )
                for number, one in enumerate(metadata["refinements"])
            ),
            "values": read_values(schema, metadata["values"], tables["values"]),
        }

    def summary(self) -> dict[str, str]:
        """Describe target, grid, refinements and error in a few words."""
        described = super().summary()
        if self.refinements:
            names = dict.fromkeys(one.axis.column for one in self.refinements)
            described["refined by"] = ", ".join(names)
        return described


def grid_term(predictors: tuple[Axis, ...], counts: IntArray, scores: IntArray) -> ScoreTerm:
    """Make the first term of the score card; an unknown value is as likely as all records."""
    classes = scores.size // prod(axis.size for axis in predictors)
    totals = np.maximum(counts.reshape(-1, classes).sum(axis=0), 0) + 1.0
    unknown = to_scores(totals[None, :] / totals.sum())[0]
    return ScoreTerm(predictors, scores.reshape(-1, classes), unknown)


def grid_scores(noisy: IntArray, shape: tuple[int, ...], total: float, rate: float) -> IntArray:
    """Make scores of noisy counts (cells x classes) of a grid of the given shape."""
    return to_scores(smooth_probabilities(noisy, shape, total, DOUBT / rate))


def to_scores(probabilities: FloatArray) -> IntArray:
    """Write probabilities as whole log-odds: how far each class lies above their mean.

    >>> to_scores(np.array([[0.5, 0.5], [0.9, 0.1]])).tolist()
    [[0, 0], [1125, -1125]]
    """
    logs = np.log(np.maximum(probabilities, 1e-9))
    centered = logs - logs.mean(axis=1, keepdims=True)
    return np.asarray(np.clip(np.rint(centered * STEP), -LIMIT, LIMIT), dtype=np.int64)
