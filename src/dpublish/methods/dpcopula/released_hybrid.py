"""A published table of numbers and categories: marginals of the numbers, and a network of all.

Numbers enter the network by classes of their ranks.  Within a class a number follows its own
marginal; or numbers come first, joined by their correlations, and categories depend on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.accuracy.projection import project_nonnegative
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.codecs import RATE, Codec
from dpublish.core.even_draws import even_parts
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import Metadata, Release, Tables, in_metadata, in_table
from dpublish.data.axis import Axis
from dpublish.data.column import with_taxonomy
from dpublish.data.query.language import Query, parse_query
from dpublish.data.schema import Schema
from dpublish.data.taxonomy import Level, Taxonomy
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.gaussian_copula import draw_codes
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.privbayes.network import NODES, Evidence, JointNetwork, Node
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
_MOST_WEIGHTS = 1 << 22
_NO_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class DPCopulaHybridRelease(Release):
    """Numbers with their marginals, and a network over categories and classes of numbers.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: All columns.
        numbers: Marginals of the columns and the noisy size; with correlations of the numbers
            if they come first.  Older releases have no marginals of short categories.
        classes: For each number the classes of its values, coarse to fine.
        nodes: The network; nodes of numbers are at levels of `classes`.
        counts: Noisy joint counts of the network.
        noise_rate: Rate of their noise.
        numbers_first: Whether numbers are drawn first, from correlations, and are not counted
            in the network.
        apart: Whether a column that depends on nothing is left to its own marginal, so that the
            joint counts do not hold it alone.
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
    apart: bool = in_metadata(default=False)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        names = self.numbers.schema.names
        if not set(names) <= set(self.schema.names) or not set() < set(self.classes) <= set(names):
            raise InvalidParameter("numbers are some of the columns with marginals, with classes")
        if type(self.numbers_first) is not bool or type(self.apart) is not bool:
            raise InvalidParameter("numbers_first and apart must be yes or no")
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
            apart=self.numbers.schema.names if self.apart else (),
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
        return self.network.calibrated(self.cell_shares, rng, known=known)

    @cached_property
    def cell_shares(self) -> dict[str, FloatArray]:
        """Share of each cell of every column, from its own marginal and from all joints."""
        shares = {name: self._share(name) for name in self.network.axes}
        return {name: share for name, share in shares.items() if share is not None}

    def _share(self, name: str) -> FloatArray | None:
        """Estimate the shares of a column's cells; None where nothing is known of them.

        Noisy counts and sums of joints are unbiased, so they are averaged by the inverse of
        their variances before they are made non-negative: a rare cell neither vanishes nor
        grows but by noise.
        """
        joint = self.network.evidence(name)
        own = self._own_counts(name)
        if own is not None and (joint.precision or self.schema[name].kind == "category"):
            counts = own.mix(joint)
        elif name in self.numbers.distributions:
            probabilities = self.numbers.distributions[name].probabilities
            return np.add.reduceat(probabilities, self.network.axes[name].leaf_starts[:-1])
        else:
            counts = joint.sums
        found = project_nonnegative(counts, self.records)
        return found / found.sum() if found.sum() > 0 else None

    def _own_counts(self, name: str) -> "_CellCounts | None":
        """Add a column's own marginal up to its cells; None where their noise is not known."""
        if name not in self.numbers.distributions or name in self.network.given:
            return None
        marginal = self.numbers.marginals[self.numbers.schema.names.index(name)]
        return _CellCounts.of(marginal, self.network.axes[name])

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
        if name not in self.numbers.distributions:
            return self.network.marginal(name)
        probabilities = self.numbers.distributions[name].probabilities
        starts = self.network.axes[name].leaf_starts
        if name not in self.cell_shares or name in self.network.given:
            return np.asarray(self.records * probabilities)
        masses, sizes = np.add.reduceat(probabilities, starts[:-1]), np.diff(starts)
        within = np.where(
            np.repeat(masses > 0, sizes),
            probabilities / np.repeat(np.where(masses > 0, masses, 1), sizes),
            1 / np.repeat(sizes, sizes),
        )
        return np.asarray(self.records * within * np.repeat(self.cell_shares[name], sizes))

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
        drawn = high - even_parts(cells, rng) * (high - low)  # above low, up to high
        codes = np.searchsorted(cumulative, drawn, side="left") - 1
        return np.asarray(np.clip(codes, starts[cells], starts[cells + 1] - 1))

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`.

        One column is counted by its own marginal.  Several are counted in synthetic rows; the
        interval is what the marginals allow, however the columns depend on each other.
        """
        parsed = parse_query(query)
        known = set(self.numbers.schema.names)
        if len(parsed.columns) <= 1 and set(parsed.columns) <= known:
            return self.numbers.count(query, confidence=confidence)
        return self.sample.answer(query, confidence, self._count_of)

    def _count_of(self, query: Query, confidence: float) -> Answer | None:
        if not set(query.columns) <= set(self.numbers.schema.names):
            return None
        return self.numbers.count(str(query), confidence=confidence)

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
        # Older releases counted every column of the network and do not say so.
        declared = cls.read_parts(schema, {"apart": False, **metadata}, tables)
        return cls(receipt=receipt, schema=schema, numbers=numbers, **declared)

    def expected_error(self) -> dict[str, float]:
        """Return the half-widths (95 %) of the numbers' range counts and of a joint count."""
        found = {**self.numbers.expected_error(), "joints": float(len(self.network.joints))}
        if self.network.joints:
            found["one_cell_95"] = float(sum_quantile(self.noise_rate, 1, 0.95))
        return found

    def summary(self) -> dict[str, str]:
        """Describe the value and its error in a few words."""
        edges = sum(len(node.parents) for node in self.nodes)
        order = "come first, joined by correlations" if self.numbers_first else "enter by classes"
        found = {
            "numbers": f"{len(self.classes)}; they {order}",
            "marginals": f"of {len(self.numbers.marginals)} columns of their own",
            "network": f"{len(self.nodes)} columns, {edges} dependences, "
            f"{len(self.network.joints)} joint counts",
        }
        if not self.network.joints:
            width = self.numbers.expected_error().get("half_of_a_column_95")
            found["network"] = "none; there are too few records for it"
            if width is not None:
                claim = f"counts of half of a column are within {width:,.0f} with probability 95 %"
                found["error"] = claim
            return found
        width = sum_quantile(self.noise_rate, 1, 0.95)
        claim = f"each joint count is within {width:,.0f} of the truth with probability 95 %"
        return {**found, "error": claim}


class _CellCounts(NamedTuple):
    """Noisy counts of the cells of a column, and their variances."""

    counts: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, marginal: NoisyMarginal, axis: Axis) -> "_CellCounts | None":
        """Add a marginal up to the cells of an axis; None where smoothing has biased it."""
        sizes = np.diff(axis.leaf_starts)
        variance = noise_variance(marginal.rate)
        if marginal.method == "identity":
            sums = np.add.reduceat(marginal.bins, axis.leaf_starts[:-1])
            return cls(sums, variance * sizes)
        if axis.size * axis.leaf_starts[-1] > _MOST_WEIGHTS:
            return None
        cells = np.repeat(np.eye(axis.size), sizes, axis=1)
        noise = [marginal.noise_weights(weights) for weights in cells]
        known = [weights @ weights for weights in noise if weights is not None]
        if len(known) < axis.size:
            return None
        return cls(cells @ marginal.bins, variance * np.array(known))

    def mix(self, joint: Evidence) -> FloatArray:
        """Average these counts with those of joints, each by the inverse of its variance."""
        precisions = 1 / np.maximum(self.variances, _NO_VARIANCE)
        weighted = self.counts * precisions + joint.sums * joint.precision
        return np.asarray(weighted / (precisions + joint.precision))


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
