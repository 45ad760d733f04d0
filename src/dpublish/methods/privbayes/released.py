"""A published network: noisy joint counts of a few columns each; draw rows, or classify."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.accuracy.noise_distribution import Terms, noise_variance, sum_quantile
from dpublish.aggregates.cells import ColumnSet
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.codecs import RATE
from dpublish.core.prediction import UNKNOWN, encode_rows, label_rows
from dpublish.core.probabilities import add_up, cell_numbers
from dpublish.core.query.axes import read_query
from dpublish.core.query.cells import CellCounts, bounded
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import Release, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.query.language import Query, parse_query, require_columns
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.released import Marginal
from dpublish.methods.privbayes.network import NODES, JointNetwork, Node, joint_of
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

_SEED = 20_240_229  # calibration is a function of the release, so its draws are always the same
_LEAST_PROBABILITY = 1e-3
"""A single value that noise made nearly impossible must not outvote all others."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivBayesRelease(Release):
    """Columns in an order, each depending on a few earlier ones, and their noisy counts.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: The columns of the network.
        nodes: The columns with their parents, every parent before its children.
        counts: Noisy counts of the sets of `joint_sets(nodes)`, one set after the other, each
            in row-major order, with two-sided geometric noise of rate `noise_rate`.
        noise_rate: Rate of the noise on every count.
        size: Noisy number of records.
        size_rate: Rate of its noise.
        target: Column to predict with `predict`, if one was named.
    """

    kind: ClassVar[str] = "bayes-network"
    report: ClassVar[str] = "dpublish.methods.privbayes.report:section"

    receipt: Receipt
    schema: Schema
    nodes: tuple[Node, ...] = in_metadata(NODES)
    counts: NDArray[np.int64] = in_table("counts", "noisy_count")
    noise_rate: Fraction = in_metadata(RATE)
    size: int = in_metadata(key="noisy_size")
    size_rate: Fraction = in_metadata(RATE)
    target: str | None = in_metadata(default=None)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.size_rate)
        if type(self.size) is not int:
            raise InvalidParameter("size must be an integer")
        _ = self._uncounted  # refuses what is no network
        if self.target is not None:
            require_known("column", self.target, self.schema.names)
            if self.axes[self.target].level != self.schema[self.target].height:
                raise InvalidParameter("the target must be at its finest level")

    @cached_property
    def _uncounted(self) -> JointNetwork:
        """The network before it is known how many records there are."""
        return JointNetwork(self.schema, self.nodes, self.counts, self.noise_rate, total=0.0)

    @cached_property
    def network(self) -> JointNetwork:
        """The network, its joint counts and probabilities."""
        return replace(self._uncounted, total=self.total)

    @property
    def joint_sets(self) -> tuple[ColumnSet, ...]:
        """The sets of columns that were counted."""
        return self._uncounted.joint_sets

    @property
    def joint_axes(self) -> tuple[tuple[Axis, ...], ...]:
        """The axes of each counted set."""
        return self._uncounted.joint_axes

    @property
    def axes(self) -> dict[str, Axis]:
        """The axis from which each column is drawn."""
        return self._uncounted.axes

    @property
    def joints(self) -> tuple[NDArray[np.int64], ...]:
        """The noisy counts of each set, shaped by its axes."""
        return self._uncounted.joints

    @cached_property
    def total(self) -> float:
        """Estimate the number of records from all that was published of it."""
        values = [float(self.size), *(float(joint.sum()) for joint in self.joints)]
        cell = noise_variance(self.noise_rate)
        variances = [noise_variance(self.size_rate), *(joint.size * cell for joint in self.joints)]
        # All are unbiased and independent: weight them by the inverse of their variances.
        weights = 1 / np.maximum(variances, 1e-9)
        return max(float(np.average(values, weights=weights)), 0.0)

    @cached_property
    def probabilities(self) -> dict[str, NDArray[np.float64]]:
        """Probabilities of each column's cells: a row for every combined cell of its parents."""
        marginals = {name: self.network.marginal(name) for name in self.axes}
        shares = {name: own / own.sum() for name, own in marginals.items() if own.sum() > 0}
        return self.network.calibrated(shares, plain_generator(_SEED))

    def marginal(self, column: str) -> Marginal:
        """Add up a column's noisy counts, with the half-width of their intervals (95 %)."""
        require_known("column", column, self.axes)
        axis = self.axes[column]
        node = Node(column, axis.level)
        joint = joint_of(node, self.joint_sets)
        counts = add_up(self.joints[joint].astype(np.float64), self.joint_axes[joint], (axis,))
        merged = self.joints[joint].size // axis.size
        width = float(sum_quantile(self.noise_rate, merged, 0.95))
        return Marginal(axis.labels, np.rint(counts).astype(np.int64), width)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Columns are drawn one after the other, each given its parents; values are uniform
        in a cell.
        """
        wanted = round(self.total) if n is None else n
        rng = self.row_generator(n, seed, counted=wanted)
        cells = self.network.draw(wanted, rng, probabilities=self.probabilities)
        return pa.table(
            {
                name: draw_column(self.axes[name], cells[name].astype(np.intp), rng)
                for name in self.schema.names
            }
        )

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`.

        A joint count that has all columns of the query answers with a confidence interval:
        the one of least noise, preferably one whose cells need not be cut.  Which that is
        depends on the query and the network, not on the noise.  Other queries are counted in
        synthetic rows; their interval is what the joint counts of each column allow.
        """
        require_confidence(confidence)
        parsed = parse_query(query)
        require_columns(parsed, self.schema.names)
        found = self._count_of(parsed, confidence)
        return self.sample.answer(query, confidence, self._count_of) if found is None else found

    def _count_of(self, query: Query, confidence: float) -> Answer | None:
        """Count by a joint count that has all columns of the query, if there is one."""
        text = str(query)
        joints = [
            CellCounts(axes, joint.ravel(), self.noise_rate)
            for axes, joint in zip(self.joint_axes, self.joints, strict=True)
            if set(query.columns) <= {axis.column for axis in axes}
        ]
        if not joints:
            return None
        best = min(joints, key=lambda joint: _uncertainty(joint, text))
        if not query.columns and noise_variance(self.size_rate) <= _uncertainty(best, text)[1]:
            width = half_width(self.size_rate, np.ones(1), confidence)
            return bounded(self.size, self.size - width, self.size + width, confidence)
        return best.answer(text, confidence)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of codes at once."""
        return self.sample.boxes(columns, lows, highs)

    @cached_property
    def sample(self) -> SampledCount:
        """Rows to count in, always the same."""
        return SampledCount(self, self.total)

    def predict(self, rows: Any) -> pa.Array:
        """Predict the most probable target of each of `rows`, given all other columns."""
        target = self._require_target()
        names = [name for name in self.schema.names if name != target]
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        codes = encode_rows(table, self.schema, names)
        if not names:
            codes = {target: np.zeros(table.num_rows, dtype=np.int64)}  # for the number of rows
        return label_rows(self.axes[target], self.predict_codes(codes))

    def predict_codes(self, codes: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Predict the target's codes from those of other columns; unknown values are -1."""
        return np.asarray(np.argmax(self.score_codes(codes), axis=1), dtype=np.int64)

    def score_codes(self, codes: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float64]:
        """Score each class (a column) by its log-probability, up to a constant of each record."""
        target = self._require_target()
        return _log_scores(target, self.nodes, self.probabilities, self.schema, codes)

    def _require_target(self) -> str:
        if self.target is None:
            raise InvalidQuery("this network was published without a target; name one, or use rows")
        return self.target

    def tables(self) -> dict[str, pa.Table]:
        """Return the noisy counts of all joints, with the labels of their cells."""
        return {"counts": self._uncounted.table()}

    def expected_error(self) -> dict[str, float]:
        """Return the half-width of a count's interval (95 %), and how much was counted."""
        return {
            "one_cell_95": float(sum_quantile(self.noise_rate, 1, 0.95)),
            "joints": float(len(self.joints)),
            "cells": float(self.counts.size),
        }

    def summary(self) -> dict[str, str]:
        """Describe the network and its error in a few words."""
        edges = sum(len(node.parents) for node in self.nodes)
        width = sum_quantile(self.noise_rate, 1, 0.95)
        return {
            "network": f"{len(self.nodes)} columns, {edges} dependences",
            "published": f"{len(self.joints)} joint counts, {self.counts.size:,} cells",
            "error": f"each count is within {width:,.0f} of the truth with probability 95 %",
        }


def _uncertainty(joint: CellCounts, query: str) -> tuple[bool, float]:
    """Return whether an answer has to cut cells, and the variance of its noise."""
    covered = read_query(joint.axes, query)
    terms = Terms.of_products(covered.weights, float(joint.rate or 0))
    return covered.is_cut, float(terms.variances.sum())


def _log_scores(
    target: str,
    nodes: Sequence[Node],
    probabilities: Mapping[str, NDArray[np.float64]],
    schema: Schema,
    codes: Mapping[str, NDArray[np.int64]],
) -> NDArray[np.float64]:
    """Score the codes of `target` for each record, given codes of other columns.

    Only the target's own node and its children matter.  A child is left out where its own
    value, or that of another parent, is unknown; where a parent of the target is unknown,
    the average over its parents' cells is taken.
    """
    size = len(next(iter(codes.values()), ()))
    classes = schema[target].size
    logs = np.zeros((size, classes))
    for node in nodes:
        if target not in (name for name, _ in node.columns):
            continue
        cells, known = _cells(node, target, schema, codes, size)
        axes = node.axes(schema)
        table = np.log(np.maximum(probabilities[node.column], _LEAST_PROBABILITY))
        for value in range(classes):
            at = [
                np.full(size, value) if axis.column == target else cells[axis.column]
                for axis in axes
            ]
            found = table[cell_numbers(at[1:], axes[1:], size), at[0]]
            logs[:, value] += np.where(known, found, _without(node, target, table, value))
    return logs


def _cells(
    node: Node,
    target: str,
    schema: Schema,
    codes: Mapping[str, NDArray[np.int64]],
    size: int,
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.bool_]]:
    """Find the cells of a node's other columns, and which records have all of them."""
    known = np.ones(size, dtype=np.bool_)
    cells = {}
    others: list[Axis] = [axis for axis in node.axes(schema) if axis.column != target]
    for axis in others:
        leaf = codes[axis.column]
        known &= leaf != UNKNOWN
        cells[axis.column] = axis.leaf_to_cell[np.maximum(leaf, 0)]
    return cells, known


def _without(node: Node, target: str, table: NDArray[np.float64], value: int) -> float:
    """Return what a node adds for a class where another of its columns is unknown."""
    if node.column != target:
        return 0.0
    return float(np.log(np.exp(table[:, value]).mean()))
