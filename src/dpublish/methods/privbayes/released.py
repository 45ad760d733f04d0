"""A published network: noisy joint counts of a few columns each; draw rows, or classify."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.aggregates.cells import ColumnSet
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.prediction import encode_rows, label_rows
from dpublish.core.probabilities import add_up
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.released import Marginal
from dpublish.methods.privbayes.counts import count_network
from dpublish.methods.privbayes.joint_network import JointNetwork
from dpublish.methods.privbayes.nodes import Node, joint_of
from dpublish.methods.privbayes.prediction import predict
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivBayesRelease(Release):
    """Columns in an order in which each depends on a few earlier ones, and their noisy counts.

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

    receipt: Receipt
    schema: Schema
    nodes: tuple[Node, ...]
    counts: NDArray[np.int64]
    noise_rate: Fraction
    size: int
    size_rate: Fraction
    target: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.size_rate)
        if type(self.size) is not int:
            raise InvalidParameter("size must be an integer")
        _ = self._uncounted  # refuses what is no network
        if self.target is not None:
            require_known("column", self.target, self.schema.names)
            if self.axes[self.target].level != self.schema[self.target].height:
                raise InvalidParameter("the target must be on its leaves")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PrivBayesRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.schema == other.schema
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

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
        """The axis on which each column is drawn."""
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
        # All are unbiased and independent: weigh them by the inverse of their variances.
        weights = 1 / np.maximum(variances, 1e-9)
        return max(float(np.average(values, weights=weights)), 0.0)

    @property
    def probabilities(self) -> dict[str, NDArray[np.float64]]:
        """Probabilities of each column's cells: a row for every combined cell of its parents."""
        return self.network.probabilities

    def marginal(self, column: str) -> Marginal:
        """Add up a column's noisy counts, and say how far noise may have moved each (95 %)."""
        require_known("column", column, self.axes)
        axis = self.axes[column]
        node = Node(column, axis.level)
        joint = joint_of(node, self.joint_sets)
        counts = add_up(self.joints[joint].astype(np.float64), self.joint_axes[joint], (axis,))
        merged = self.joints[joint].size // axis.size
        reach = float(sum_quantile(self.noise_rate, merged, 0.95))
        return Marginal(axis.labels, np.rint(counts).astype(np.int64), reach)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Columns are drawn one after the other, each given its parents; values are spread
        evenly in a cell.
        """
        require_count(seed=0 if seed is None else seed, at_least=0)
        wanted = round(self.total) if n is None else n
        require_count(n=wanted, at_least=0)
        if wanted > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        cells = self.network.draw(wanted, rng)
        return pa.table(
            {
                name: draw_column(self.axes[name], cells[name].astype(np.intp), rng)
                for name in self.schema.names
            }
        )

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`; with an interval if one joint has them."""
        return count_network(self, query, confidence)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        return self.sample.boxes(columns, lows, highs)

    @cached_property
    def sample(self) -> SampledCount:
        """Rows to count in, always the same."""
        return SampledCount(self, self.total)

    def predict(self, rows: Any) -> pa.Array:
        """Predict the target of each of `rows`: its likeliest value, given all other columns."""
        target = self._require_target()
        names = [name for name in self.schema.names if name != target]
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        codes = encode_rows(table, self.schema, names)
        if not names:
            codes = {target: np.zeros(table.num_rows, dtype=np.int64)}  # says how many rows
        return label_rows(self.axes[target], self.predict_codes(codes))

    def predict_codes(self, codes: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Predict the target's codes from leaf codes; unknown values (-1) say nothing."""
        target = self._require_target()
        return predict(target, self.nodes, self.probabilities, self.schema, codes)

    def _require_target(self) -> str:
        if self.target is None:
            raise InvalidQuery("this network was published without a target; name one, or use rows")
        return self.target

    def tables(self) -> dict[str, pa.Table]:
        """Give the noisy counts of all joints, with the labels of their cells."""
        return {"counts": self._uncounted.table()}

    def metadata(self) -> dict[str, Any]:
        """Give the network, noise rates, noisy size and target."""
        return {
            "nodes": [node.to_dict() for node in self.nodes],
            "noise_rate": format_epsilon(self.noise_rate),
            "noisy_size": self.size,
            "size_rate": format_epsilon(self.size_rate),
            "target": self.target,
        }

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the network of a release folder."""
        return cls(
            receipt=receipt,
            schema=schema,
            nodes=tuple(map(Node.from_dict, metadata["nodes"])),
            counts=whole_column(tables["counts"], "noisy_count"),
            noise_rate=parse_epsilon(metadata["noise_rate"]),
            size=metadata["noisy_size"],
            size_rate=parse_epsilon(metadata["size_rate"]),
            target=metadata["target"],
        )

    def expected_error(self) -> dict[str, float]:
        """Give the errors of the counts, with probability 95 %."""
        return {
            "one_cell_95": float(sum_quantile(self.noise_rate, 1, 0.95)),
            "joints": float(len(self.joints)),
            "cells": float(self.counts.size),
        }

    def summary(self) -> dict[str, str]:
        """Describe the network and its error in a few words."""
        edges = sum(len(node.parents) for node in self.nodes)
        reach = sum_quantile(self.noise_rate, 1, 0.95)
        return {
            "network": f"{len(self.nodes)} columns, {edges} dependences",
            "published": f"{len(self.joints)} joint counts, {self.counts.size:,} cells",
            "error": f"each count is within {reach:,.0f} of the truth with probability 95 %",
        }
