"""A published table of numbers and categories: marginals of the numbers, and a network of all.

Numbers enter the network by classes of their ranks.  Within a class a number follows its own
marginal; or numbers come first, joined by their correlations, and categories depend on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.query.language import parse_query
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import Release, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.dpcopula.rank_classes import Starts, classed_schema
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.dpcopula.rows import draw_codes
from dpublish.methods.privbayes.joint_network import JointNetwork
from dpublish.methods.privbayes.nodes import Node
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

_SEED = 20_240_229  # calibration is a function of the release, so its draws are always the same
_CALIBRATION = 1 << 16


@dataclass(frozen=True, eq=False, kw_only=True)
class DPCopulaHybridRelease(Release):
    """Numbers with their marginals, and a network over categories and classes of numbers.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: All columns.
        numbers: Marginals of the columns that count as numbers, and of long categories, and the
            noisy size; with correlations of the numbers if they come first.
        classes: For each number the classes of its leaves, coarse to fine.
        nodes: The network; nodes of numbers look at levels of `classes`.
        counts: Noisy joint counts of the network.
        noise_rate: Rate of their noise.
        numbers_first: Whether numbers are drawn first, from correlations, and are not counted
            in the network.
    """

    kind: ClassVar[str] = "mixed-table"

    receipt: Receipt
    schema: Schema
    numbers: DPCopulaRelease
    classes: Mapping[str, Sequence[Starts]]
    nodes: tuple[Node, ...]
    counts: IntArray
    noise_rate: Fraction
    numbers_first: bool

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        names = self.numbers.schema.names
        if not set(names) <= set(self.schema.names) or not set() < set(self.classes) <= set(names):
            raise InvalidParameter("numbers are some of the columns with marginals, with classes")
        if type(self.numbers_first) is not bool:
            raise InvalidParameter("numbers_first must be yes or no")
        _ = self.network

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DPCopulaHybridRelease)
            and self.schema == other.schema
            and self.numbers == other.numbers
            and self.metadata() == other.metadata()
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def network(self) -> JointNetwork:
        """The network, with the number of records that all evidence together suggests."""
        return JointNetwork(
            schema=classed_schema(self.schema, self.classes),
            nodes=self.nodes,
            counts=self.counts,
            rate=self.noise_rate,
            total=self.records,
            given=tuple(self.classes) if self.numbers_first else (),
        )

    @property
    def records(self) -> float:
        """Best estimate of the number of records."""
        return self.numbers.records

    @cached_property
    def probabilities(self) -> dict[str, FloatArray]:
        """Probabilities of the network's cells, raked to the marginals of all columns."""
        rng = plain_generator(_SEED)
        known = self._number_cells(self._numbers(_CALIBRATION, rng)) if self.numbers_first else None
        return self.network.calibrated(self._cell_shares(), rng, known=known)

    def _cell_shares(self) -> dict[str, FloatArray]:
        """Estimate the share of each cell of every column: from its marginal, else the joints."""
        distributions, axes = self.numbers.distributions, self.network.axes
        shares = {
            name: np.add.reduceat(distribution.probabilities, axes[name].leaf_starts[:-1])
            for name, distribution in distributions.items()
        }
        for node in self.network.counted:
            counts = None if node.column in distributions else self.network.marginal(node.column)
            if counts is not None and counts.sum() > 0:
                shares[node.column] = counts / counts.sum()
        return shares

    def _numbers(self, n: int, rng: np.random.Generator) -> dict[str, IntArray]:
        """Draw the leaves of all numbers from their copula."""
        distributions = self.numbers.distributions
        joined = {name: distributions[name] for name in self.numbers.ordered}
        drawn = draw_codes(self.numbers.matrix, joined, n, rng)
        for name in self.classes:
            if name not in drawn:
                drawn[name] = distributions[name].choose(rng.standard_normal(n), rng)
        return drawn

    def marginal_counts(self, name: str) -> FloatArray:
        """Estimate the records in each cell of a column: leaves of numbers, cells of others."""
        if name in self.numbers.distributions:
            return np.asarray(self.records * self.numbers.distributions[name].probabilities)
        return self.network.marginal(name)

    def _number_cells(self, leaves: Mapping[str, IntArray]) -> dict[str, IntArray]:
        return {name: self.network.axes[name].leaf_to_cell[codes] for name, codes in leaves.items()}

    def marginal_axis(self, name: str) -> Axis:
        """Give the axis of whose cells `marginal_counts` speaks."""
        return (
            self.schema[name].axis()
            if name in self.numbers.distributions
            else self.network.axes[name]
        )

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted."""
        require_count(seed=0 if seed is None else seed, at_least=0)
        wanted = round(self.records) if n is None else n
        require_count(n=wanted, at_least=0)
        if wanted > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        leaves = self._numbers(wanted, rng) if self.numbers_first else {}
        known = self._number_cells(leaves)
        cells = self.network.draw(wanted, rng, known=known, probabilities=self.probabilities)
        for name in self.numbers.distributions:
            if name not in leaves:
                leaves[name] = self._within(name, cells[name], rng)
        drawn = {}
        for name in self.schema.names:
            places = leaves[name] if name in leaves else cells[name]
            drawn[name] = draw_column(self.marginal_axis(name), places.astype(np.intp), rng)
        return pa.table(drawn)

    def _within(self, name: str, cells: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a leaf within each class of a number, or cell of a category, by its marginal."""
        starts = self.network.axes[name].leaf_starts
        probabilities = self.numbers.distributions[name].probabilities
        sizes = np.diff(starts)
        masses = np.add.reduceat(probabilities, starts[:-1])
        # A class without any probability is entered by rounding at most; its leaves are then alike.
        even = np.repeat(np.where(masses > 0, 0.0, 1.0 / sizes), sizes)
        reached = np.concatenate([[0.0], np.cumsum(probabilities + even)])
        low, high = reached[starts[cells]], reached[starts[cells + 1]]
        drawn = high - rng.random(cells.size) * (high - low)  # above low, up to high
        leaves = np.searchsorted(reached, drawn, side="left") - 1
        return np.asarray(np.clip(leaves, starts[cells], starts[cells + 1] - 1))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`; with an interval if one marginal has them."""
        asked = parse_query(query).columns
        if len(asked) <= 1 and set(asked) <= set(self.numbers.schema.names):
            return self.numbers.count(query, confidence=confidence)
        return self.sample.answer(query, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        return self.sample.boxes(columns, lows, highs)

    @cached_property
    def sample(self) -> SampledCount:
        """Rows to count in, always the same."""
        return SampledCount(self, self.records)

    def tables(self) -> dict[str, pa.Table]:
        """Give marginals and correlations of the numbers, and the joint counts of the network."""
        return {**self.numbers.tables(), "counts": self.network.table()}

    def metadata(self) -> dict[str, Any]:
        """Give the numbers' metadata, the classes and the network."""
        return {
            "number_columns": [*self.numbers.schema.names],
            "numbers": self.numbers.metadata(),
            "classes": {name: [[*level] for level in x] for name, x in self.classes.items()},
            "nodes": [node.to_dict() for node in self.nodes],
            "noise_rate": format_epsilon(self.noise_rate),
            "numbers_first": self.numbers_first,
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
        """Rebuild the value of a release folder."""
        numbers = Schema(
            tuple(schema[name] for name in metadata["number_columns"]), name=schema.name
        )
        return cls(
            receipt=receipt,
            schema=schema,
            numbers=DPCopulaRelease.from_parts(
                receipt=receipt, schema=numbers, metadata=metadata["numbers"], tables=tables
            ),
            classes={
                name: tuple(tuple(level) for level in levels)
                for name, levels in metadata["classes"].items()
            },
            nodes=tuple(map(Node.from_dict, metadata["nodes"])),
            counts=whole_column(tables["counts"], "noisy_count"),
            noise_rate=parse_epsilon(metadata["noise_rate"]),
            numbers_first=metadata["numbers_first"],
        )

    def expected_error(self) -> dict[str, float]:
        """Give the errors of the numbers' range counts and of a joint count (95 %)."""
        return {
            **self.numbers.expected_error(),
            "one_cell_95": float(sum_quantile(self.noise_rate, 1, 0.95)),
            "joints": float(len(self.network.joints)),
        }

    def summary(self) -> dict[str, str]:
        """Describe the value and its error in a few words."""
        edges = sum(len(node.parents) for node in self.nodes)
        reach = sum_quantile(self.noise_rate, 1, 0.95)
        order = "come first, joined by correlations" if self.numbers_first else "enter by classes"
        return {
            "numbers": f"{len(self.classes)}; they {order}",
            "marginals": f"of {len(self.numbers.marginals)} columns of their own",
            "network": f"{len(self.nodes)} columns, {edges} dependences, "
            f"{len(self.network.joints)} joint counts",
            "error": f"each joint count is within {reach:,.0f} of the truth with probability 95 %",
        }
