"""Sums of products of features, and of features with a response: what least squares needs.

Many of these sums are redundant.  Two indicators of one column are never both on,
so their product is 0; the square of an indicator is the indicator itself, so its sum stands
in the intercept's column already.  Only the others have to be published.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.kernel import CodeSums, unbounded
from dpublish.data.batch import Batch
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import IntArray

RESPONSE_UNIT = FEATURE_UNIT
"""Responses are integers from -RESPONSE_UNIT to RESPONSE_UNIT, as features are."""
_CELLS = 1 << 21  # of a matrix of features that is held at once


@dataclass(frozen=True, eq=False)
class LinearMoments(CodeSums):
    """Kernel: sums over records of x xᵀ and of r x, for features x and responses r.

    Attributes:
        schema: What is publicly known about the records.
        features: How a record's features are looked up, in units of 1 / FEATURE_UNIT.
        target: Column that decides the responses.
        responses: For each value of the target (a row) its responses, integers in units
            of 1 / RESPONSE_UNIT.

    The answer has a row for each feature: the products with every feature, then with every
    response.  All are integers below 2**53 for every part of a batch, so that floats
    multiply and add them exactly, in whatever order.
    """

    schema: Schema
    features: Features
    target: str
    responses: IntArray

    def __post_init__(self) -> None:
        require_known("column", self.target, self.schema.names)
        if self.responses.dtype.kind != "i" or self.responses.ndim != 2:
            raise InvalidParameter("responses must be integers, a row for each value")
        if len(self.responses) != self.schema[self.target].size:
            raise InvalidParameter("responses must have a row for each value of the target")
        if int(np.abs(self.responses).max(initial=0)) > RESPONSE_UNIT:
            raise InvalidParameter(f"responses must be at most {RESPONSE_UNIT:,}")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return (*self.features.columns, self.target)

    def zero(self) -> IntArray:
        """Build the answer for no records."""
        size = self.features.size
        return np.zeros((size, size + self.responses.shape[1]), dtype=np.int64)

    def add(self, batch: Batch, out: IntArray) -> None:
        """Add the records of `batch` to `out`."""
        responses = self.responses.astype(np.float64)
        for part in batch.cut(max(1, _CELLS // self.features.size)):
            rows = self.features.matrix({name: part.codes(name) for name in self.features.columns})
            both = np.concatenate([rows, responses[part.codes(self.target)]], axis=1)
            out += (rows.T @ both).astype(np.int64)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Pairs of features (first <= second) whose sums are to be published.

        The intercept's square, the number of records, is the last of them.
        """
        needed = np.triu(np.ones((self.features.size,) * 2, dtype=np.bool_))
        for group, table in self._blocks():
            needed[np.ix_(group, group)] = _needed(table)
        first, second = np.nonzero(needed)
        return first.astype(np.int64), second.astype(np.int64)

    def fill(self, published: NDArray[np.float64]) -> NDArray[np.float64]:
        """Build the whole symmetric matrix of products from those of `pairs`."""
        matrix = np.zeros((self.features.size,) * 2)
        matrix[self.pairs] = published
        for feature in self.indicators:
            matrix[feature, feature] = matrix[feature, -1]
        return matrix + np.triu(matrix, 1).T

    @cached_property
    def indicators(self) -> IntArray:
        """Features that are 0 or 1 (the intercept left out), whose squares follow from them."""
        found = [
            index
            for group, table in self._blocks()
            for index, values in zip(group, table.T, strict=True)
            if _is_indicator(values)
        ]
        return np.array(found, dtype=np.int64)

    def matrix_sensitivity(self, neighbors: Neighbors) -> int:
        """Return how much the sums of `pairs` change at most, in sum (L1); it is attained.

        A record has one value in each column, which gives the column a sum u of sizes of
        its features and a sum s of sizes of its published squares.  All sums together
        change by Σ_{c<c'} u_c u_c' + Σ s_c = ((Σ u)² + Σ (2 s - u²)) / 2.  For all values
        (Σ u)² = max over τ of 2 τ Σ u - τ², attained at the integer τ = Σ u, so the
        largest change is found by going through τ, with each column choosing by itself.
        """
        self._require_records(neighbors)
        fronts = [_front(table) for _, table in self._blocks()]
        # The intercept is a column with one value, whose square is published.
        fronts.append(np.array([[FEATURE_UNIT, FEATURE_UNIT**2]]))
        slopes = np.arange(sum(int(front[:, 0].max()) for front in fronts) + 1)
        doubled = -(slopes**2)
        for front in fronts:
            doubled += np.max([2 * slopes * u + rest for u, rest in front.tolist()], axis=0)
        return int(doubled.max()) // 2

    def vector_sensitivity(self, neighbors: Neighbors) -> int:
        """Return how much the sums with the responses change at most, in sum (L1); attained."""
        self._require_records(neighbors)
        sizes = [int(np.abs(table).sum(axis=1).max()) for _, table in self._blocks()]
        return (sum(sizes) + FEATURE_UNIT) * int(np.abs(self.responses).sum(axis=1).max())

    def _blocks(self) -> list[tuple[list[int], IntArray]]:
        """List the features of each column, with a row for each value; not the intercept."""
        groups = self.features.groups[: len(self.features.tables)]
        return [(list(g), t) for g, t in zip(groups, self.features.tables, strict=True)]

    @staticmethod
    def _require_records(neighbors: Neighbors) -> None:
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "multiply features of single records")


def _is_indicator(values: IntArray) -> bool:
    return bool(np.isin(values, (0, FEATURE_UNIT)).all())


def _needed(table: IntArray) -> NDArray[np.bool_]:
    """Mark the pairs within one column whose products are neither 0 nor known otherwise."""
    # Counting values in which both are on is enough, and never overflows.
    together = (table != 0).astype(np.int64).T @ (table != 0).astype(np.int64)
    needed = np.triu(together > 0)
    for index, values in enumerate(table.T):
        needed[index, index] &= not _is_indicator(values)
    return np.asarray(needed)


def _front(table: IntArray) -> IntArray:
    """List u and 2 s - u² of the values that no other value exceeds in both."""
    sizes = np.abs(table)
    needed = _needed(table).astype(np.int64)
    squares = np.einsum("ij,jk,ik->i", sizes, needed, sizes)
    pairs = np.unique(np.stack([sizes.sum(axis=1), 2 * squares - sizes.sum(axis=1) ** 2]), axis=1)
    most = np.maximum.accumulate(pairs[1, ::-1])[::-1]
    later = np.append(most[1:], np.iinfo(np.int64).min)
    return np.asarray(pairs[:, pairs[1] > later].T)
