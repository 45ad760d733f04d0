"""A published copula: each column's marginal, and how the columns hang together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.accuracy.intervals import require_confidence
from dpublish.core.answer import Answer
from dpublish.core.axis_rows import draw_column
from dpublish.core.noisy_size import MAX_ROWS, NoisySize
from dpublish.core.query.axes import read_boxes, read_query
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.correlation_repair import repair_correlation
from dpublish.methods.dpcopula.intervals import TotalEvidence, count_reach
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation
from dpublish.methods.dpcopula.query import Question, box_shares
from dpublish.methods.dpcopula.rows import LeafDistribution, draw_codes
from dpublish.methods.dpcopula.shrinkage import shrunk
from dpublish.methods.dpcopula.tables import read_correlation, read_marginals, tables_of
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.released import SMOOTHED
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

_BLOCK = 1 << 17  # rows drawn at once
_MODEL = (
    "the dependence between columns is assumed to be that of a Gaussian copula; if it is not, the "
    "bar is too narrow"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DPCopulaRelease(Release):
    """Noisy marginals of all columns, and the noisy correlations of those that have an order.

    Behind every column stands a normal variable that chooses among its leaves by the marginal;
    correlations join these variables.  A leaf for unlisted or missing values takes the place
    of any other at random, and a column without an order depends on none.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: The columns.
        marginals: Their marginals, in the same order.
        correlation: The correlations of the columns it names; the others are independent.
        size: Noisy number of records.
        shrink: Whether correlations are moved toward 0 by what is likely to be noise.
    """

    kind: ClassVar[str] = "copula"

    receipt: Receipt
    schema: Schema
    marginals: tuple[NoisyMarginal, ...]
    correlation: NoisyCorrelation | None
    size: NoisySize
    shrink: bool = True

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_rate(self.size.rate)
        if type(self.size.value) is not int or type(self.shrink) is not bool:
            raise InvalidParameter("size must be an integer, and shrink yes or no")
        if [marginal.leaves for marginal in self.marginals] != [
            c.size for c in self.schema.columns
        ]:
            raise InvalidParameter("a copula has a marginal for every column, with all its leaves")
        if len(set(self.ordered)) < len(self.ordered) or set(self.ordered) - set(self.schema.names):
            raise InvalidParameter("correlations join different columns of the schema")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DPCopulaRelease)
            and self.receipt == other.receipt
            and self.schema == other.schema
            and self.marginals == other.marginals
            and self.correlation == other.correlation
            and (self.size, self.shrink) == (other.size, other.shrink)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """Each column at its leaves."""
        return {column.name: column.axis() for column in self.schema.columns}

    @cached_property
    def distributions(self) -> dict[str, LeafDistribution]:
        """Probabilities of each column's leaves."""
        return {
            name: LeafDistribution(marginal.probabilities, self.axes[name].ordinary_leaves)
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
    def ordered(self) -> tuple[str, ...]:
        """Names of the columns that correlations join."""
        return () if self.correlation is None else self.correlation.columns

    @cached_property
    def spread(self) -> FloatArray:
        """Standard deviation that noise gives each correlation of the `ordered` columns."""
        if self.correlation is None:
            return np.zeros((0, 0))
        probabilities = [self.distributions[name].ordinary_probabilities for name in self.ordered]
        return self.correlation.spread(probabilities, self.records)

    @cached_property
    def matrix(self) -> FloatArray:
        """Correlations of the normal variables behind the `ordered` columns."""
        if self.correlation is None:
            return np.zeros((0, 0))
        probabilities = [self.distributions[name].ordinary_probabilities for name in self.ordered]
        found = self.correlation.latent(probabilities, self.records)
        return repair_correlation(shrunk(found, self.spread) if self.shrink else found)

    def _among(self, names: Sequence[str], pairs: FloatArray, own: float) -> FloatArray:
        """Pick the numbers of pairs of columns; columns that nothing joins have 0."""
        found = own * np.eye(len(names))
        inside = [i for i, name in enumerate(names) if name in self.ordered]
        places = [self.ordered.index(names[i]) for i in inside]
        found[np.ix_(inside, inside)] = pairs[np.ix_(places, places)]
        return found

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval.

        A question about one column is answered by its marginal, without any model.  Several
        columns are joined by the copula, and the confidence interval holds if they are in truth.
        """
        require_confidence(confidence)
        asked = read_query(list(self.axes.values()), query)
        named = zip(self.schema.names, asked.weights, strict=True)
        weights = {name: along for name, along in named if np.any(along != 1)}
        value, reach = self._estimate(weights, confidence)
        notes = [asked.assumption, *self._assumed(list(weights))]
        if reach is None:
            notes.append(SMOOTHED)
        told = "; ".join(note for note in notes if note) or None
        if reach is None:
            return Answer(value, None, None, confidence, told)
        return Answer(value, max(value - reach, 0.0), max(value + reach, 0.0), confidence, told)

    def _assumed(self, names: Sequence[str]) -> list[str]:
        """Say what is taken for granted when several columns are joined."""
        if len(names) < 2:
            return []
        alone = [name for name in names if name not in self.ordered]
        notes = [_MODEL] if len(names) - len(alone) > 1 else []
        return [*notes, *(f"{name} is assumed to depend on no other column" for name in alone)]

    def _estimate(
        self, weights: Mapping[str, FloatArray], confidence: float
    ) -> tuple[float, float | None]:
        """Count records by the weights of some columns' leaves, and find the count's reach."""
        names = list(weights)
        if not names:
            return self.records, self.evidence.reach(confidence)
        places = [self.schema.names.index(name) for name in names]
        if len(names) == 1:
            marginal, along = self.marginals[places[0]], weights[names[0]]
            return float(along @ marginal.bins), marginal.half_width(along, confidence)
        matrix = self._among(names, self.matrix, 1.0)
        question = Question(
            matrix, [self.distributions[name] for name in names], list(weights.values())
        )
        spread = self._among(names, self.spread, 0.0)
        reach = count_reach(question, places, spread, self.evidence, confidence)
        return self.records * question.share, reach

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> FloatArray:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        boxes = read_boxes(list(self.axes.values()), columns, lows, highs)
        if not columns:
            return np.full(len(lows), self.records)
        places = [self.schema.names.index(name) for name in columns]
        low, high = boxes.lows[:, places], boxes.highs[:, places]
        if len(columns) == 1:
            sums = np.concatenate([[0.0], np.cumsum(self.marginals[places[0]].bins)])
            return np.asarray(sums[high[:, 0]] - sums[low[:, 0]])
        distributions = [self.distributions[name] for name in columns]
        return self.records * box_shares(
            self._among(columns, self.matrix, 1.0), distributions, low, high
        )

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows: `n` of them, or as many as were counted.

        Values are spread evenly in a leaf.
        """
        require_count(seed=0 if seed is None else seed, at_least=0)
        wanted = round(self.records) if n is None else n
        require_count(n=wanted, at_least=0)
        if wanted > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        rng = plain_generator(seed)
        matrix = self._among(self.schema.names, self.matrix, 1.0)
        blocks = []
        for start in range(0, max(wanted, 1), _BLOCK):
            codes = draw_codes(matrix, self.distributions, min(_BLOCK, wanted - start), rng)
            drawn = {
                name: draw_column(self.axes[name], leaves.astype(np.intp), rng)
                for name, leaves in codes.items()
            }
            blocks.append(pa.table(drawn))
        return pa.concat_tables(blocks)

    def tables(self) -> dict[str, pa.Table]:
        """Give the noisy numbers, and the probabilities and correlations that follow from them."""
        return tables_of(self)

    def metadata(self) -> dict[str, Any]:
        """Give how marginals, correlations and size were counted."""
        return {
            "marginals": [marginal.metadata() for marginal in self.marginals],
            "correlation": None if self.correlation is None else self.correlation.metadata(),
            "size": {"count": self.size.value, "rate": format_epsilon(self.size.rate)},
            "shrink": self.shrink,
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
        """Rebuild the copula of a release folder."""
        return cls(
            receipt=receipt,
            schema=schema,
            marginals=read_marginals(metadata["marginals"], schema.names, tables["marginals"]),
            correlation=read_correlation(metadata["correlation"], tables["correlations"]),
            size=NoisySize(metadata["size"]["count"], parse_epsilon(metadata["size"]["rate"])),
            shrink=metadata["shrink"],
        )

    def expected_error(self) -> dict[str, float]:
        """Give the errors of the total and of half of a column, with probability 95 %."""
        halves = [
            marginal.half_width(
                (np.arange(marginal.leaves) < marginal.leaves / 2).astype(float), 0.95
            )
            for marginal in self.marginals
        ]
        found = {"records_95": self.evidence.reach(0.95)}
        if None not in halves:
            found["half_of_a_column_95"] = max(half for half in halves if half is not None)
        return found

    def summary(self) -> dict[str, str]:
        """Describe columns, correlations and error in a few words."""
        leaves = sum(marginal.leaves for marginal in self.marginals)
        pairs = len(self.ordered) * (len(self.ordered) - 1) // 2
        told = {
            "columns": f"{len(self.marginals)} marginals with {leaves:,} leaves in all",
            "dependence": f"{pairs:,} correlations between {len(self.ordered)} columns"
            if pairs
            else "none; columns are independent",
            "records": f"about {self.records:,.0f}",
        }
        if "half_of_a_column_95" in (errors := self.expected_error()):
            reach = errors["half_of_a_column_95"]
            claim = f"counts of half of a column are within {reach:,.0f} with probability 95 %"
            told["error"] = claim
        return told
