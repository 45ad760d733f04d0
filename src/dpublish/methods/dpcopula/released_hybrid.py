"""A published table of numbers and categories: marginals of the numbers, and a network of all.

Numbers enter the network by classes of their ranks.  Within a class a number follows its own
marginal; or numbers come first, joined by their correlations, and categories depend on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.codecs import RATE, Codec
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import Metadata, Release, Tables, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.column import with_taxonomy
from dpublish.data.query.language import parse_query
from dpublish.data.schema import Schema
from dpublish.data.taxonomy import Level, Taxonomy
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.gaussian_copula import draw_codes
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.privbayes.network import NODES, JointNetwork, Node
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

Starts = tuple[int, ...]
"""The first code of each class."""
MOST_CLASSES = 32
_CLASSES = Codec(
    lambda classes: {name: [[*level] for level in levels] for name, levels in classes.items()},
    lambda plain, _: {
        name: tuple(tuple(level) for level in levels) for name, levels in plain.items()
    },
)
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
        classes: For each number the classes of its values, coarse to fine.
        nodes: The network; nodes of numbers are at levels of `classes`.
        counts: Noisy joint counts of the network.
        noise_rate: Rate of their noise.
        numbers_first: Whether numbers are drawn first, from correlations, and are not counted
            in the network.
    """

    kind: ClassVar[str] = "mixed-table"
    report: ClassVar[str] = "dpublish.methods.dpcopula.report:mixed_section"

    receipt: Receipt
    schema: Schema
    numbers: DPCopulaRelease
    classes: Mapping[str, Sequence[Starts]] = in_metadata(_CLASSES)
    nodes: tuple[Node, ...] = in_metadata(NODES)
    counts: IntArray = in_table("counts", "noisy_count")
    noise_rate: Fraction = in_metadata(RATE)
    numbers_first: bool = in_metadata()

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        names = self.numbers.schema.names
        if not set(names) <= set(self.schema.names) or not set() < set(self.classes) <= set(names):
            raise InvalidParameter("numbers are some of the columns with marginals, with classes")
        if type(self.numbers_first) is not bool:
            raise InvalidParameter("numbers_first must be yes or no")
        _ = self.network

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
        """Draw the codes of all numbers from their copula."""
        distributions = self.numbers.distributions
        joined = {name: distributions[name] for name in self.numbers.ordered}
        drawn = draw_codes(self.numbers.matrix, joined, n, rng)
        for name in self.classes:
            if name not in drawn:
                drawn[name] = distributions[name].choose(rng.standard_normal(n), rng)
        return drawn

    def marginal_counts(self, name: str) -> FloatArray:
        """Estimate the records in each cell of a column: values of numbers, cells of others."""
        if name in self.numbers.distributions:
            return np.asarray(self.records * self.numbers.distributions[name].probabilities)
        return self.network.marginal(name)

    def _number_cells(self, codes: Mapping[str, IntArray]) -> dict[str, IntArray]:
        return {name: self.network.axes[name].leaf_to_cell[own] for name, own in codes.items()}

    def marginal_axis(self, name: str) -> Axis:
        """Return the axis of the cells of `marginal_counts`."""
        return (
            self.schema[name].axis()
            if name in self.numbers.distributions
            else self.network.axes[name]
        )

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted."""
        wanted = round(self.records) if n is None else n
        rng = self.row_generator(n, seed, counted=wanted)
        codes = self._numbers(wanted, rng) if self.numbers_first else {}
        known = self._number_cells(codes)
        cells = self.network.draw(wanted, rng, known=known, probabilities=self.probabilities)
        for name in self.numbers.distributions:
            if name not in codes:
                codes[name] = self._within(name, cells[name], rng)
        drawn = {}
        for name in self.schema.names:
            own = codes[name] if name in codes else cells[name]
            drawn[name] = draw_column(self.marginal_axis(name), own.astype(np.intp), rng)
        return pa.table(drawn)

    def _within(self, name: str, cells: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a code within each class of a number, or cell of a category, by its marginal."""
        starts = self.network.axes[name].leaf_starts
        probabilities = self.numbers.distributions[name].probabilities
        sizes = np.diff(starts)
        masses = np.add.reduceat(probabilities, starts[:-1])
        # A class of probability 0 is entered by rounding only; its values are then equally likely.
        even = np.repeat(np.where(masses > 0, 0.0, 1.0 / sizes), sizes)
        cumulative = np.concatenate([[0.0], np.cumsum(probabilities + even)])
        low, high = cumulative[starts[cells]], cumulative[starts[cells + 1]]
        drawn = high - rng.random(cells.size) * (high - low)  # above low, up to high
        codes = np.searchsorted(cumulative, drawn, side="left") - 1
        return np.asarray(np.clip(codes, starts[cells], starts[cells + 1] - 1))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`; with an interval if one marginal has them."""
        named = parse_query(query).columns
        if len(named) <= 1 and set(named) <= set(self.numbers.schema.names):
            return self.numbers.count(query, confidence=confidence)
        return self.sample.answer(query, confidence)

    def count_boxes(self, columns: Sequence[str], lows: IntArray, highs: IntArray) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        return self.sample.boxes(columns, lows, highs)

    @cached_property
    def sample(self) -> SampledCount:
        """Rows to count in, always the same."""
        return SampledCount(self, self.records)

    def tables(self) -> dict[str, pa.Table]:
        """Return marginals and correlations of the numbers, and joint counts of the network."""
        return {**self.numbers.tables(), "counts": self.network.table()}

    def metadata(self) -> dict[str, Any]:
        """Return the numbers' metadata, the classes and the network."""
        return {
            "number_columns": [*self.numbers.schema.names],
            "numbers": self.numbers.metadata(),
            **super().metadata(),
        }

    def with_receipt(self, receipt: Receipt) -> Self:
        """Return the same value with another receipt; the copula of the numbers has it, too."""
        return replace(self, receipt=receipt, numbers=self.numbers.with_receipt(receipt))

    @classmethod
    def from_parts(
        cls, *, receipt: Receipt, schema: Schema, metadata: Metadata, tables: Tables
    ) -> Self:
        """Rebuild the value; the copula of the numbers has the same receipt."""
        columns = tuple(schema[name] for name in metadata["number_columns"])
        numbers = DPCopulaRelease.from_parts(
            receipt=receipt,
            schema=Schema(columns, name=schema.name),
            metadata=metadata["numbers"],
            tables=tables,
        )
        declared = cls.read_parts(schema, metadata, tables)
        return cls(receipt=receipt, schema=schema, numbers=numbers, **declared)

    def expected_error(self) -> dict[str, float]:
        """Return the half-widths (95 %) of the numbers' range counts and of a joint count."""
        return {
            **self.numbers.expected_error(),
            "one_cell_95": float(sum_quantile(self.noise_rate, 1, 0.95)),
            "joints": float(len(self.network.joints)),
        }

    def summary(self) -> dict[str, str]:
        """Describe the value and its error in a few words."""
        edges = sum(len(node.parents) for node in self.nodes)
        width = sum_quantile(self.noise_rate, 1, 0.95)
        order = "come first, joined by correlations" if self.numbers_first else "enter by classes"
        return {
            "numbers": f"{len(self.classes)}; they {order}",
            "marginals": f"of {len(self.numbers.marginals)} columns of their own",
            "network": f"{len(self.nodes)} columns, {edges} dependences, "
            f"{len(self.network.joints)} joint counts",
            "error": f"each joint count is within {width:,.0f} of the truth with probability 95 %",
        }


# --- Classes of a number --------------------------------------------------------------------------


def rank_levels(probabilities: FloatArray, listed: int) -> tuple[Starts, ...]:
    """Cut the first `listed` values into nested classes by rank; the others stay alone.

    Classes of neighboring values hold about as many records each: two, four, eight and so on,
    as long as the values have distinct ranks.  A value belongs to the class that holds the
    middle of its ranks.

    >>> rank_levels(np.full(4, 0.25), 4)
    ((0, 2),)
    >>> rank_levels(np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), 6)
    ((0, 1), (0, 1, 3), (0, 1, 2, 3, 5))
    """
    inner = probabilities[:listed]
    total = float(inner.sum())
    even = np.full(listed, 1 / listed)
    middles = np.cumsum(inner) - inner / 2
    ranks = middles / total if total > 0 else np.cumsum(even) - even / 2
    levels: list[Starts] = []
    classes = 2
    while classes <= MOST_CLASSES:
        class_of = np.minimum((ranks * classes).astype(np.int64), classes - 1)
        first = np.flatnonzero(np.diff(class_of, prepend=-1))
        starts = tuple(int(code) for code in (*first, *range(listed, probabilities.size)))
        if len(starts) > (len(levels[-1]) if levels else 1) and len(starts) < probabilities.size:
            levels.append(starts)
        classes *= 2
    return tuple(levels)


def classed_schema(schema: Schema, classes: Mapping[str, Sequence[Starts]]) -> Schema:
    """Return a schema whose named columns have taxonomies of their classes."""
    for name, levels in classes.items():
        for starts in levels:
            if not all(type(code) is int and 0 <= code < schema[name].size for code in starts):
                raise InvalidParameter(f"classes of {name!r} must start at its values")
    return replace(
        schema,
        columns=tuple(
            with_taxonomy(column, _taxonomy(column.axis(), classes[column.name]))
            if column.name in classes
            else column
            for column in schema.columns
        ),
    )


def _taxonomy(axis: Axis, levels: Sequence[Starts]) -> Taxonomy:
    labels = axis.leaf_labels
    between = tuple(
        Level(tuple(starts), _labels(labels, [*pairwise((*starts, len(labels)))]))
        for starts in levels
    )
    return Taxonomy((axis.taxonomy.levels[0], *between, axis.taxonomy.levels[-1]))


def _labels(values: Sequence[str], runs: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Name runs of values by their ends; a name that a value has already gets their numbers."""
    taken = set(values)
    labels = []
    for start, stop in runs:
        label = values[start]
        if stop - start > 1:
            label = f"{values[start]} to {values[stop - 1]}"
            while label in taken:
                label += f" ({start} to {stop - 1})"
        taken.add(label)
        labels.append(label)
    return tuple(labels)
