"""A published decision tree: classify with it, count in its leaves, or read its rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import isfinite, prod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpublish.accuracy.intervals import mixed_half_width, require_confidence
from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core.answer import Answer
from dpublish.core.beside_labels import (
    Ends,
    bin_ends,
    cell_width,
    with_interval,
    with_listed_ends,
)
from dpublish.core.codecs import BOOL, FIGURES, RATE, Codec, optional
from dpublish.core.prediction import encode_rows, label_rows
from dpublish.core.query.axes import NOT_IN_INTERVAL, read_query
from dpublish.core.query.cells import around
from dpublish.core.released import Metadata, Release, Tables, in_metadata, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.trees.tree import Branches, Routes, TreeShape, branch_conditions, write_rules
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

_RATES = Codec(
    lambda rates: [format_epsilon(rate) for rate in rates],
    lambda plain, _: tuple(parse_epsilon(rate) for rate in plain),
)
_EVENLY = "records are assumed to be evenly distributed within partly covered leaves of the tree"


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionTreeRelease(Release):
    """A tree of public splits, with noisy class counts in its leaves, or a single class.

    `predict(rows)` classifies, `rules()` writes the tree in words, `count(query)` counts
    records by the columns that split it.

    Attributes:
        receipt: What was guaranteed.
        schema: The predictors and the target.
        target: Column of the classes.
        branches: How inner nodes part their records.  Node 0 is the root; children are
            numbered level by level, in the order of their parents.
        counts: Noisy counts of each leaf (in the order of their numbers) by class; None if
            the tree is one leaf, whose class was chosen without counts.
        label: That class; None if there are counts.
        sizes: Noisy sizes of the nodes that were considered for a split.
        size_rate: Noise rate of the sizes, if there are any.
        count_rates: Noise rates of the counts of leaves, by their depth.
        prune: Whether branches predict what their parents do, unless noise cannot explain it.
        expected: The error predicted from public facts.
    """

    kind: ClassVar[str] = "decision-tree"
    report: ClassVar[str] = "dpublish.methods.trees.report:section"

    receipt: Receipt
    schema: Schema
    target: str = in_metadata()
    branches: Mapping[int, Branches] = field(default_factory=dict)
    counts: IntArray | None = None
    label: int | None = in_metadata(default=None)
    sizes: Mapping[int, int] = field(default_factory=dict)
    size_rate: Fraction | None = in_metadata(optional(RATE), default=None)
    count_rates: tuple[Fraction, ...] = in_metadata(_RATES, default=())
    prune: bool = in_metadata(BOOL, default=False)
    expected: Mapping[str, float] = in_metadata(FIGURES, default=dict)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_known("column", self.target, self.schema.names)
        self.shape.require_columns(self.schema, self.target)
        self._require_counts()
        if any(type(v) is not int or not 0 <= v < self.shape.size for v in self.sizes):
            raise InvalidParameter("sizes must belong to nodes of the tree")
        if any(type(size) is not int for size in self.sizes.values()):
            raise InvalidParameter("sizes must be integers")
        if bool(self.sizes) != (self.size_rate is not None):
            raise InvalidParameter("sizes come with the rate of their noise")
        for rate in (*self.count_rates, *([self.size_rate] if self.size_rate else [])):
            require_rate(rate)
        if not all(isinstance(v, float) and isfinite(v) for v in self.expected.values()):
            raise InvalidParameter("expected errors must be finite numbers")

    def _require_counts(self) -> None:
        classes = self.classes.size
        if self.counts is None:
            if self.branches or type(self.label) is not int or not 0 <= self.label < classes:
                raise InvalidParameter("a tree without counts is one leaf with a class")
            return
        if self.label is not None or self.counts.dtype != np.int64:
            raise InvalidParameter("a tree has integer counts, or else one class")
        if self.counts.shape != (len(self.shape.leaves), classes):
            raise InvalidParameter("there must be a count for each leaf and class")
        if len(self.count_rates) <= max(self.shape.depths):
            raise InvalidParameter("counts come with the rate of their noise, for every depth")

    @property
    def classes(self) -> Axis:
        """The classes: all values of the target."""
        return self.schema[self.target].axis()

    @cached_property
    def shape(self) -> TreeShape:
        """Which node is whose child."""
        return TreeShape(self.branches)

    @cached_property
    def node_counts(self) -> IntArray:
        """Noisy class counts of all nodes: inner ones add up their leaves."""
        if self.counts is None:
            return np.array([[n == self.label for n in range(self.classes.size)]], dtype=np.int64)
        sums = np.zeros((self.shape.size, self.classes.size), dtype=np.int64)
        sums[list(self.shape.leaves)] = self.counts
        for node in range(self.shape.size - 1, 0, -1):
            sums[self.shape.parents[node]] += sums[node]
        return sums

    @cached_property
    def predicted(self) -> IntArray:
        """The class that each node predicts: that of the highest count, the first of equals.

        In a pruned tree a node predicts what its parent does, unless another class leads
        that one by more than the standard deviation of the lead's noise.
        """
        counts = self.node_counts
        own: IntArray = counts.argmax(axis=1)
        if not self.prune:
            return own
        for node, parent in enumerate(self.shape.parents[1:], start=1):
            lead = counts[node].max() - counts[node, own[parent]]
            if lead * lead <= 2 * self._variances[node]:
                own[node] = own[parent]
        return own

    @cached_property
    def _variances(self) -> FloatArray:
        """Variance of the noise in each count of each node: the sum over its leaves."""
        variances = np.zeros(self.shape.size)
        if self.counts is None:
            return variances
        for node in range(self.shape.size - 1, -1, -1):
            if node not in self.branches:
                variances[node] = noise_variance(self.count_rates[self.shape.depths[node]])
            if node:
                variances[self.shape.parents[node]] += variances[node]
        return variances

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class of each of `rows`.

        A row with a missing or unknown value stops at the node that splits by it, which
        predicts the majority class of all its leaves.
        """
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        codes = encode_rows(table, self.schema, self.routes.columns)
        return label_rows(self.classes, self.predict_codes(codes, table.num_rows))

    def predict_codes(self, codes: Mapping[str, IntArray], size: int | None = None) -> IntArray:
        """Predict classes from codes; `size` is their number, needed if there is no column."""
        lengths = {len(column) for column in codes.values()}
        lengths |= set() if size is None else {size}
        if len(lengths) != 1:
            raise InvalidQuery("the columns must be of one length, which is size if it is given")
        for name in self.routes.columns:
            if name not in codes:
                raise InvalidQuery(f"the codes of column {name!r} are missing")
        return np.asarray(self.predicted[self.routes.follow(codes, lengths.pop())])

    @cached_property
    def routes(self) -> Routes:
        """The way of a record down the tree."""
        return Routes(self.schema, self.branches)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, from the leaves' noisy counts.

        The query may name the columns that split the tree, and the class.
        """
        require_confidence(confidence)
        if self.counts is None:
            raise InvalidQuery("this tree is one leaf whose class was chosen without counts")
        axes = [*(self.schema[name].axis() for name in self.routes.columns), self.classes]
        query_weights = read_query(axes, query)
        weights = self._leaf_weights(axes, query_weights.weights)
        inner = (self._leaf_weights(axes, query_weights.inner) >= 1).astype(np.float64)
        outer = (self._leaf_weights(axes, query_weights.outer) > 0).astype(np.float64)
        is_cut = bool(np.any(inner != outer))
        low = float((inner * self.counts).sum()) - self._half_width(inner, confidence)
        high = float((outer * self.counts).sum()) + self._half_width(outer, confidence)
        note = f"{_EVENLY}; {NOT_IN_INTERVAL}" if is_cut else query_weights.assumption
        return around(float((weights * self.counts).sum()), low, high, confidence, note)

    def _leaf_weights(self, axes: Sequence[Axis], per_axis: Sequence[FloatArray]) -> FloatArray:
        """Compute which part of each leaf a query covers, by class."""
        shares = [_Shares(a, w) for a, w in zip(axes[:-1], per_axis, strict=False)]
        by_leaf = np.array([self._covered(leaf, shares) for leaf in self.shape.leaves])
        return np.asarray(by_leaf[:, None] * per_axis[-1])

    def _half_width(self, weights: FloatArray, confidence: float) -> float:
        """Bound the noise of a weighted sum of the leaves' counts."""
        if not weights.any():
            return 0.0
        depths = np.array([self.shape.depths[leaf] for leaf in self.shape.leaves])
        parts = [weights[depths == depth].ravel() for depth in range(len(self.count_rates))]
        return mixed_half_width(self.count_rates, parts, confidence)

    def _covered(self, leaf: int, shares: "list[_Shares]") -> float:
        """Compute which part of a leaf a query covers, by its runs along the columns above it."""
        runs = {share.column: (0, share.size) for share in shares}
        node = leaf
        while node:
            parent = self.shape.parents[node]
            branches = self.branches[parent]
            size = self.schema[branches.column].size
            start, stop = branches.runs(size)[node - branches.first_child]
            low, high = runs[branches.column]
            runs[branches.column] = (max(low, start), min(high, stop))
            node = parent
        return float(prod(share.of(*runs[share.column]) for share in shares))

    def rules(self) -> str:
        """Write the tree as indented rules; branches that predict the same class are one line."""
        return write_rules(self.schema, self.branches, self.predicted.tolist(), self.classes.labels)

    def tables(self) -> dict[str, pa.Table]:
        """Return the nodes and, where there are any, the noisy counts of the leaves."""
        numbers = range(self.shape.size)
        columns = [b.column if (b := self.branches.get(n)) else None for n in numbers]
        starts = [start for b in self.branches.values() for start in b.starts]
        nodes = {
            "node": pa.array(numbers, pa.int64()),
            "parent": pa.array([None, *self.shape.parents[1:]], pa.int64()),
            "first_code": pa.array([None, *starts], pa.int64()),
            "condition": pa.array(
                [None, *branch_conditions(self.schema, self.branches)], pa.string()
            ),
            "split_by": pa.array(columns, pa.string()),
            "noisy_size": pa.array([self.sizes.get(n) for n in numbers], pa.int64()),
            "predicted": label_rows(self.classes, self.predicted),
        }
        table = self._with_condition_ends(pa.table(nodes))
        if self.counts is None:
            return {"nodes": table}
        width = self.classes.size
        class_numbers = np.tile(np.arange(width, dtype=np.int64), len(self.shape.leaves))
        counts = {
            "node": np.repeat(np.array(self.shape.leaves, dtype=np.int64), width),
            "class_number": class_numbers,
            "class": pa.array(self.classes.labels, pa.string()).take(pa.array(class_numbers)),
            "noisy_count": self.counts.ravel(),
        }
        rates = [self.count_rates[self.shape.depths[leaf]] for leaf in self.shape.leaves]
        widths = np.repeat([cell_width(rate) for rate in rates], width)
        return {"nodes": table, "counts": with_interval(pa.table(counts), widths)}

    def _with_condition_ends(self, table: pa.Table) -> pa.Table:
        """Put the ends of a node's range beside its condition, if that is about numbers."""
        runs: list[tuple[Axis | None, Ends | None, int]] = [(None, None, 1)]
        for branches in self.branches.values():
            axis = self.schema[branches.column].axis()
            first, after = np.array(branches.runs(axis.size)).T
            runs.append((axis, bin_ends(axis, first, after - 1), first.size))
        return with_listed_ends(table, "condition", runs)

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the tree of a release folder."""
        found = super().read_parts(schema, metadata, tables)
        nodes = tables["nodes"].select(["parent", "first_code", "split_by", "noisy_size"])
        rows = nodes.to_pylist()
        sizes = enumerate(row["noisy_size"] for row in rows)
        counts = None
        if "counts" in tables:
            classes = schema[found["target"]].size
            counts = whole_column(tables["counts"], "noisy_count").reshape(-1, classes)
        return found | {
            "branches": TreeShape.from_rows(rows).branches,
            "counts": counts,
            "sizes": {node: size for node, size in sizes if size is not None},
        }

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Describe the tree in a few words."""
        text = {"predicts": f"{self.target}, one of {self.classes.size} classes"}
        if self.counts is None:
            return text | {"always": self.classes.labels[self.predicted[0]]} | self._claim()
        used = ", ".join(self.routes.columns) or "no other column"
        leaves = (
            f"{len(self.shape.leaves):,} leaves, at most {max(self.shape.depths)} splits above each"
        )
        return text | {"from": used, "tree": leaves} | self._claim()

    def _claim(self) -> dict[str, str]:
        """Describe the error, if the method predicted it."""
        claims = {
            "choice_shortfall_95": "a choice scores at most {:,.0f} records less than the best",
            "leaf_count_95": "a count of a leaf is within {:,.0f} of the truth",
        }
        known = [claims[n].format(v) for n, v in self.expected.items() if n in claims]
        return {"error": "; ".join(known) + ", each with probability 95 %"} if known else {}


class _Shares:
    """Which part of a run of a column's codes a query covers."""

    def __init__(self, axis: Axis, weights: FloatArray) -> None:
        sizes = np.ones(axis.size)
        if axis.leaf_edges is not None:
            widths = np.diff(axis.leaf_edges)
            sizes[: widths.size] = widths / widths.mean()
        self.column = axis.column
        self.size = axis.size
        self._covered = np.concatenate([[0.0], np.cumsum(sizes * weights)])
        self._all = np.concatenate([[0.0], np.cumsum(sizes)])

    def of(self, first: int, past: int) -> float:
        """Measure a run; one without codes holds no records."""
        if first >= past:
            return 0.0
        part = (self._covered[past] - self._covered[first]) / (self._all[past] - self._all[first])
        # Running sums round: a run that is covered as a whole, or not at all, is so.
        return float(np.clip(np.round(part, 12), 0, 1))
