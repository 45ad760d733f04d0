"""A published copula: each column's margin, and how the columns hang together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact import require_rate
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.release.answer import Answer
from dpublish.release.axis_question import read_boxes, read_question
from dpublish.release.axis_rows import draw_column
from dpublish.release.copula_bars import TotalEvidence, count_reach
from dpublish.release.copula_question import Question, box_shares
from dpublish.release.copula_rows import LeafLaw, draw_codes
from dpublish.release.copula_shrinkage import shrunk
from dpublish.release.copula_tables import read_correlation, read_margins, tables_of
from dpublish.release.correlation_repair import repair_correlation
from dpublish.release.error_bars import require_confidence
from dpublish.release.histogram import MAX_ROWS
from dpublish.release.labelled_histogram import NoisySize
from dpublish.release.margins import SMOOTHED
from dpublish.release.noisy_correlation import NoisyCorrelation
from dpublish.release.noisy_margin import NoisyMargin
from dpublish.release.release import Release

FloatArray = NDArray[np.float64]

_BLOCK = 1 << 17  # rows drawn at once
_MODEL = (
    "the dependence between columns is assumed to be that of a Gaussian copula; if it is not, the "
    "bar is too narrow"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Copula(Release):
    """Noisy margins of all columns, and the noisy correlations of those that have an order.

    Behind every column stands a normal variable that chooses among its leaves by the margin;
    correlations join these variables.  A leaf for unlisted or missing values takes the place
    of any other by chance alone, and a column without an order depends on none.

    Attributes:
        receipt: What was promised and paid.
        schema: The columns.
        margins: Their margins, in the same order.
        correlation: The correlations of the columns it names; the others are independent.
        size: Noisy number of records.
        shrink: Whether correlations are moved towards 0 by what is likely to be noise.
    """

    kind: ClassVar[str] = "copula"

    receipt: Receipt
    schema: Schema
    margins: tuple[NoisyMargin, ...]
    correlation: NoisyCorrelation | None
    size: NoisySize
    shrink: bool = True

    def __post_init__(self) -> None:
        """Refuse what no recipe would publish: a release may come from anywhere."""
        require_rate(self.size.rate)
        if type(self.size.value) is not int or type(self.shrink) is not bool:
            raise InvalidParameter("size must be a whole number, and shrink yes or no")
        if [margin.leaves for margin in self.margins] != [c.size for c in self.schema.columns]:
            raise InvalidParameter("a copula has a margin for every column, with all its leaves")
        if len(set(self.ordered)) < len(self.ordered) or set(self.ordered) - set(self.schema.names):
            raise InvalidParameter("correlations join different columns of the schema")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Copula)
            and self.receipt == other.receipt
            and self.schema == other.schema
            and self.margins == other.margins
            and self.correlation == other.correlation
            and (self.size, self.shrink) == (other.size, other.shrink)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """Each column at its leaves."""
        return {column.name: column.axis() for column in self.schema.columns}

    @cached_property
    def laws(self) -> dict[str, LeafLaw]:
        """Chances of each column's leaves."""
        return {
            name: LeafLaw(margin.chances, self.axes[name].ordinary_leaves)
            for name, margin in zip(self.schema.names, self.margins, strict=True)
        }

    @cached_property
    def evidence(self) -> TotalEvidence:
        """All that was published about the number of records."""
        return TotalEvidence(self.margins, self.size.value, self.size.rate)

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
        chances = [self.laws[name].ordinary_chances for name in self.ordered]
        return self.correlation.spread(chances, self.records)

    @cached_property
    def matrix(self) -> FloatArray:
        """Correlations of the normal variables behind the `ordered` columns."""
        if self.correlation is None:
            return np.zeros((0, 0))
        chances = [self.laws[name].ordinary_chances for name in self.ordered]
        found = self.correlation.latent(chances, self.records)
        return repair_correlation(shrunk(found, self.spread) if self.shrink else found)

    def _among(self, names: Sequence[str], pairs: FloatArray, own: float) -> FloatArray:
        """Pick the numbers of pairs of columns; columns that nothing joins have 0."""
        found = own * np.eye(len(names))
        inside = [i for i, name in enumerate(names) if name in self.ordered]
        places = [self.ordered.index(names[i]) for i in inside]
        found[np.ix_(inside, inside)] = pairs[np.ix_(places, places)]
        return found

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with an error bar.

        A question about one column is answered by its margin, without any model.  Several
        columns are joined by the copula, and the error bar holds if they are in truth.
        """
        require_confidence(confidence)
        asked = read_question(list(self.axes.values()), query)
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
            margin, along = self.margins[places[0]], weights[names[0]]
            return float(along @ margin.bins), margin.half_width(along, confidence)
        matrix = self._among(names, self.matrix, 1.0)
        question = Question(matrix, [self.laws[name] for name in names], list(weights.values()))
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
            sums = np.concatenate([[0.0], np.cumsum(self.margins[places[0]].bins)])
            return np.asarray(sums[high[:, 0]] - sums[low[:, 0]])
        laws = [self.laws[name] for name in columns]
        return self.records * box_shares(self._among(columns, self.matrix, 1.0), laws, low, high)

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
            codes = draw_codes(matrix, self.laws, min(_BLOCK, wanted - start), rng)
            drawn = {
                name: draw_column(self.axes[name], leaves.astype(np.intp), rng)
                for name, leaves in codes.items()
            }
            blocks.append(pa.table(drawn))
        return pa.concat_tables(blocks)

    def tables(self) -> dict[str, pa.Table]:
        """Give the noisy numbers, and the chances and correlations that follow from them."""
        return tables_of(self)

    def facts(self) -> dict[str, Any]:
        """Give how margins, correlations and size were counted."""
        return {
            "margins": [margin.facts() for margin in self.margins],
            "correlation": None if self.correlation is None else self.correlation.facts(),
            "size": {"count": self.size.value, "rate": format_epsilon(self.size.rate)},
            "shrink": self.shrink,
        }

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        facts: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the copula of a release folder."""
        return cls(
            receipt=receipt,
            schema=schema,
            margins=read_margins(facts["margins"], schema.names, tables["margins"]),
            correlation=read_correlation(facts["correlation"], tables["correlations"]),
            size=NoisySize(facts["size"]["count"], parse_epsilon(facts["size"]["rate"])),
            shrink=facts["shrink"],
        )

    def expected_error(self) -> dict[str, float]:
        """Give the errors of the total and of half of a column, with probability 95 %."""
        halves = [
            margin.half_width((np.arange(margin.leaves) < margin.leaves / 2).astype(float), 0.95)
            for margin in self.margins
        ]
        found = {"records_95": self.evidence.reach(0.95)}
        if None not in halves:
            found["half_of_a_column_95"] = max(half for half in halves if half is not None)
        return found

    def summary(self) -> dict[str, str]:
        """Describe columns, correlations and error in a few words."""
        leaves = sum(margin.leaves for margin in self.margins)
        pairs = len(self.ordered) * (len(self.ordered) - 1) // 2
        told = {
            "columns": f"{len(self.margins)} margins with {leaves:,} leaves in all",
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
