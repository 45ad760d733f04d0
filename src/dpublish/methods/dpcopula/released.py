"""A published copula: each column's marginal, and the correlations of the columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.beside_labels import every_cell, with_listed_bins
from dpublish.core.codecs import NOISY_SIZE
from dpublish.core.noisy_size import NoisySize
from dpublish.core.query.axes import Coverage, read_boxes, read_query
from dpublish.core.query.cells import around
from dpublish.core.query.dependence import ANY_DEPENDENCE, joint_bounds
from dpublish.core.released import Metadata, Release, Tables, in_metadata, whole_column
from dpublish.data.axis import Axis
from dpublish.data.query.language import Query, parse_query
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.correlation import NoisyCorrelation, repair_correlation, shrink
from dpublish.methods.dpcopula.gaussian_copula import (
    CopulaQuery,
    ValueDistribution,
    box_shares,
    draw_codes,
)
from dpublish.methods.dpcopula.intervals import TotalEvidence, count_half_width
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.released import SMOOTHED, marginal_table, with_value_intervals
from dpublish.privacy.neighbors import ReplaceRecord
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray

_BLOCK = 1 << 17  # rows drawn at once
_JOINED = "the estimate assumes that columns depend on each other as in a Gaussian copula"
_MODEL = "the interval rests on that, and is too narrow if it is not so"


@dataclass(frozen=True, eq=False, kw_only=True)
class DPCopulaRelease(Release):
    """Noisy marginals of all columns, and the noisy correlations of those that have an order.

    Behind every column is a normal variable that chooses among its values by the marginal;
    correlations join these variables.  Unlisted and missing values replace others at random,
    and a column without an order depends on none.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: The columns.
        marginals: Their marginals, in the same order.
        correlation: The correlations of the columns it names; the others are independent.
        size: Noisy number of records; without noise, if it is public.
        shrink: Whether correlations are moved toward 0 by what is likely to be noise.
    """

    kind: ClassVar[str] = "copula"
    report: ClassVar[str] = "dpublish.methods.dpcopula.report:section"

    receipt: Receipt
    schema: Schema
    marginals: tuple[NoisyMarginal, ...]
    correlation: NoisyCorrelation | None
    size: NoisySize = in_metadata(NOISY_SIZE)
    shrink: bool = in_metadata(default=True)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.size.rate)
        if type(self.size.value) is not int or type(self.shrink) is not bool:
            raise InvalidParameter("size must be an integer, and shrink yes or no")
        if [marginal.leaves for marginal in self.marginals] != [
            c.size for c in self.schema.columns
        ]:
            raise InvalidParameter("a copula has a marginal for every column, with all its values")
        if len(set(self.ordered)) < len(self.ordered) or set(self.ordered) - set(self.schema.names):
            raise InvalidParameter("correlations join different columns of the schema")

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """Each column at its finest level."""
        return {column.name: column.axis() for column in self.schema.columns}

    @cached_property
    def distributions(self) -> dict[str, ValueDistribution]:
        """Probabilities of each column's values."""
        return {
            name: ValueDistribution(marginal.probabilities, self.axes[name].ordinary_leaves)
            for name, marginal in zip(self.schema.names, self.marginals, strict=True)
        }

    @cached_property
    def evidence(self) -> TotalEvidence:
        """All that was published about the number of records."""
        return TotalEvidence(self.marginals, self.size.value, self.size.rate)

    @property
    def records(self) -> float:
        """Best estimate of the number of records."""
        return self.evidence.records

    @property
    def is_size_public(self) -> bool:
        """Whether the number of records is public: the release then hides values alone."""
        return isinstance(self.receipt.neighbors, ReplaceRecord)

    @property
    def ordered(self) -> tuple[str, ...]:
        """Names of the columns that correlations join."""
        return () if self.correlation is None else self.correlation.columns

    @property
    def _listed_probabilities(self) -> list[FloatArray]:
        return [self.distributions[name].listed_probabilities for name in self.ordered]

    @cached_property
    def deviations(self) -> FloatArray:
        """Standard deviation that noise gives each correlation of the `ordered` columns."""
        if self.correlation is None:
            return np.zeros((0, 0))
        return self.correlation.deviations(self._listed_probabilities, self.records)

    @cached_property
    def matrix(self) -> FloatArray:
        """Correlations of the normal variables behind the `ordered` columns."""
        if self.correlation is None:
            return np.zeros((0, 0))
        found = self.correlation.latent(self._listed_probabilities, self.records)
        return repair_correlation(shrink(found, self.deviations) if self.shrink else found)

    def _among(self, names: Sequence[str], pairs: FloatArray, own: float) -> FloatArray:
        """Pick the numbers of pairs of columns; columns that nothing joins have 0."""
        found = own * np.eye(len(names))
        inside = [i for i, name in enumerate(names) if name in self.ordered]
        columns = [self.ordered.index(names[i]) for i in inside]
        found[np.ix_(inside, inside)] = pairs[np.ix_(columns, columns)]
        return found

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval.

        A query about one column is answered by its marginal, without any model.  Several
        columns are joined by the copula; the interval is what the marginals allow, however the
        columns depend on each other.  `count_by_model` has a narrower one, which holds if the
        copula is right.
        """
        require_confidence(confidence)
        read = read_query(list(self.axes.values()), query)
        limited = self._limited(read.weights, read.inner)
        if len(limited) < 2:
            return self._from_marginals(read, limited, confidence)
        value = self._joined(limited).share * self.records
        bounds = joint_bounds(parse_query(query), self._count_of, confidence)
        notes = [read.note, *self._assumed(list(limited)), ANY_DEPENDENCE]
        if any(self._marginal(name).noise_weights(limited[name]) is None for name in limited):
            notes.append(SMOOTHED)
        low, high = bounds or (0.0, inf)  # there is a total, so there are bounds
        return around(value, low, high, confidence, "; ".join(note for note in notes if note))

    def count_by_model(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with the interval of the copula.

        The interval of several columns covers the noise and the sampling error if the columns
        depend on each other as a Gaussian copula says; nothing in the release tells whether they
        do.  The bounds beside it are the interval of `count`.
        """
        sure = self.count(query, confidence=confidence)
        read = read_query(list(self.axes.values()), query)
        limited = self._limited(read.weights, read.inner)
        if len(limited) < 2 or sure.low is None or sure.high is None:
            return sure
        names = list(limited)
        columns = [self.schema.names.index(name) for name in names]
        deviations = self._among(names, self.deviations, 0.0)
        joined = self._joined(limited)
        width = count_half_width(joined, columns, deviations, self.evidence, confidence)
        if width is None:
            return sure
        low, high = (min(max(sure.value + w, sure.low), sure.high) for w in (-width, width))
        note = "; ".join([*filter(None, [read.assumption]), *self._assumed(names), _MODEL])
        bounds = (sure.low, sure.high)
        return replace(sure, low=low, high=high, assumption=note, kind="model", bounds=bounds)

    def _limited(
        self, weights: Sequence[FloatArray], inner: Sequence[FloatArray]
    ) -> dict[str, FloatArray]:
        """Pick the columns some of whose values a query leaves out, be it a record at an end."""
        named = zip(self.schema.names, weights, inner, strict=True)
        return {name: along for name, along, whole in named if not whole.all() or np.any(along < 1)}

    def _from_marginals(
        self, read: Coverage, limited: Mapping[str, FloatArray], confidence: float
    ) -> Answer:
        """Count all records, or those with some values of one column."""
        if not limited:
            width = self.evidence.half_width(confidence)
            return around(self.records, self.records - width, self.records + width, confidence)
        (name,) = limited
        which, marginal = self.schema.names.index(name), self._marginal(name)
        low = marginal.bound(read.inner[which], confidence, -1)
        high = marginal.bound(read.outer[which], confidence, 1)
        is_biased = marginal.noise_weights(limited[name]) is None
        note = "; ".join(filter(None, [read.note, SMOOTHED if is_biased else None])) or None
        return around(float(limited[name] @ marginal.bins), low, high, confidence, note)

    def _marginal(self, name: str) -> NoisyMarginal:
        return self.marginals[self.schema.names.index(name)]

    def _count_of(self, query: Query, confidence: float) -> Answer:
        read = read_query(list(self.axes.values()), str(query))
        return self._from_marginals(read, self._limited(read.weights, read.inner), confidence)

    def _assumed(self, names: Sequence[str]) -> list[str]:
        """List what the estimate assumes when several columns are joined."""
        alone = [name for name in names if name not in self.ordered]
        notes = [_JOINED] if len(names) - len(alone) > 1 else []
        return [*notes, *(f"{name} is assumed to depend on no other column" for name in alone)]

    def _joined(self, limited: Mapping[str, FloatArray]) -> CopulaQuery:
        names = list(limited)
        return CopulaQuery(
            self._among(names, self.matrix, 1.0),
            [self.distributions[name] for name in names],
            list(limited.values()),
        )

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> FloatArray:
        """Estimate how many records lie in each of many boxes of codes at once."""
        boxes = read_boxes(list(self.axes.values()), columns, lows, highs)
        if not columns:
            return np.full(len(lows), self.records)
        indices = [self.schema.names.index(name) for name in columns]
        low, high = boxes.lows[:, indices], boxes.highs[:, indices]
        if len(columns) == 1:
            sums = np.concatenate([[0.0], np.cumsum(self.marginals[indices[0]].bins)])
            return np.asarray(sums[high[:, 0]] - sums[low[:, 0]])
        distributions = [self.distributions[name] for name in columns]
        return self.records * box_shares(
            self._among(columns, self.matrix, 1.0), distributions, low, high
        )

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Values are uniform within a bin.
        """
        wanted = round(self.records) if n is None else n
        rng = self.row_generator(n, seed, counted=wanted)
        matrix = self._among(self.schema.names, self.matrix, 1.0)
        blocks = []
        for start in range(0, max(wanted, 1), _BLOCK):
            codes = draw_codes(matrix, self.distributions, min(_BLOCK, wanted - start), rng)
            drawn = {
                name: draw_column(self.axes[name], own.astype(np.intp), rng)
                for name, own in codes.items()
            }
            blocks.append(pa.table(drawn))
        return pa.concat_tables(blocks)

    def tables(self) -> dict[str, pa.Table]:
        """Return the noisy numbers, and the probabilities and correlations that they imply."""
        names = self.schema.names
        probabilities = [distribution.probabilities for distribution in self.distributions.values()]
        every = np.concatenate(probabilities)
        values = pa.table(
            {
                "column": _repeated(names, [part.size for part in probabilities]),
                "cell": [label for name in names for label in self.axes[name].labels],
                "probability": every,
                "expected_count": every * self.records,
            }
        )
        return {
            "marginals": marginal_table(names, self.marginals),
            "probabilities": with_value_intervals(
                with_listed_bins(values, "cell", every_cell([self.axes[name] for name in names])),
                self.marginals,
                of="expected_count",
            ),
            "correlations": correlation_table(
                self.ordered, self.correlation, self.matrix, self.deviations
            ),
        }

    def metadata(self) -> dict[str, Any]:
        """Return how marginals, correlations and size were counted."""
        return {
            "marginals": [marginal.metadata() for marginal in self.marginals],
            "correlation": None if self.correlation is None else self.correlation.metadata(),
            **super().metadata(),
        }

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields, the marginals and the correlations."""
        return {
            **super().read_parts(schema, metadata, tables),
            "marginals": _read_marginals(metadata["marginals"], schema.names, tables["marginals"]),
            "correlation": read_correlation(metadata["correlation"], tables["correlations"]),
        }

    def expected_error(self) -> dict[str, float]:
        """Return the half-widths (95 %) of the total and of a count of half of a column."""
        halves = [
            marginal.half_width(
                (np.arange(marginal.leaves) < marginal.leaves / 2).astype(float), 0.95
            )
            for marginal in self.marginals
        ]
        found = {"records_95": self.evidence.half_width(0.95)}
        if None not in halves:
            found["half_of_a_column_95"] = max(half for half in halves if half is not None)
        return found

    def summary(self) -> dict[str, str]:
        """Describe columns, correlations and error in a few words."""
        values = sum(marginal.leaves for marginal in self.marginals)
        pairs = len(self.ordered) * (len(self.ordered) - 1) // 2
        found = {
            "columns": f"{len(self.marginals)} marginals with {values:,} values in all",
            "dependence": f"{pairs:,} correlations between {len(self.ordered)} columns"
            if pairs
            else "none; columns are independent",
            "records": f"{self.size.value:,}, which is public"
            if self.is_size_public
            else f"about {self.records:,.0f}",
        }
        if "half_of_a_column_95" in (errors := self.expected_error()):
            width = errors["half_of_a_column_95"]
            claim = f"counts of half of a column are within {width:,.0f} with probability 95 %"
            found["error"] = claim
        return found


# --- Tables of a release folder, and back ---------------------------------------------------------


def _repeated(names: Sequence[str], repeats: Sequence[int]) -> pa.DictionaryArray:
    numbers = np.repeat(np.arange(len(names), dtype=np.int32), repeats)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(names))


def correlation_table(
    columns: tuple[str, ...],
    correlation: NoisyCorrelation | None,
    matrix: FloatArray,
    deviations: FloatArray,
) -> pa.Table:
    """List the noisy number of every two columns, and the correlation that it implies."""
    first, second = np.triu_indices(len(columns), 1)
    units = np.empty(0, dtype=np.int64) if correlation is None else correlation.units
    return pa.table(
        {
            "first": pa.array([columns[i] for i in first], pa.string()),
            "second": pa.array([columns[i] for i in second], pa.string()),
            "noisy_number": units,
            "correlation": matrix[first, second],
            "noise_deviation": deviations[first, second],
        }
    )


def _read_marginals(
    metadata: Sequence[Mapping[str, Any]], names: Sequence[str], table: pa.Table
) -> tuple[NoisyMarginal, ...]:
    """Rebuild the marginals of all columns from the table of their numbers."""
    columns = np.array(table["column"].cast(pa.string()).to_pylist(), dtype=object)
    positions, units = whole_column(table, "position"), whole_column(table, "noisy_number")
    found = []
    for name, plain in zip(names, metadata, strict=True):
        own = columns == name
        if not np.array_equal(positions[own], np.arange(np.count_nonzero(own))):
            raise CorruptRelease(f"the numbers of the marginal of {name!r} are out of order")
        found.append(NoisyMarginal.from_metadata(plain, units[own]))
    if sum(marginal.units.size for marginal in found) != units.size:
        raise CorruptRelease("there are numbers of a marginal that no column has")
    return tuple(found)


def read_correlation(
    metadata: Mapping[str, Any] | None, table: pa.Table
) -> NoisyCorrelation | None:
    """Rebuild the correlations from the table of their numbers."""
    units = whole_column(table, "noisy_number")
    if metadata is None:
        if units.size:
            raise CorruptRelease("there are correlations that the release does not describe")
        return None
    found = NoisyCorrelation.from_metadata(metadata, units)
    first, second = np.triu_indices(len(found.columns), 1)
    named = zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True)
    if list(named) != [
        (found.columns[i], found.columns[j]) for i, j in zip(first, second, strict=True)
    ]:
        raise CorruptRelease("the correlations are out of order")
    return found
