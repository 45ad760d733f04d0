"""How far shares of values, pairs and triples of values are from the true ones.

NOT PRIVATE: everything here looks at true rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from statistics import fmean

import numpy as np

from dpublish.data.axis import Axis
from dpublish.evaluation.score import Part
from dpublish.evaluation.synthetic_table import Codes, Comparison
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

GROUPS = {1: 32, 2: 8, 3: 8}
"""Into how many groups of values a column is cut at most, by how many columns are crossed."""
MOST_SUBSETS = 150
"""How many pairs or triples of columns are looked at."""
LEAST_GAP = 0.05
"""Of total variation, between what scores 100 and 0."""
_DRAWS = 4  # samples that the reference is averaged over
_NAMES = {1: "marginals", 2: "pairs", 3: "triples"}
_PURPOSES = {
    1: "shares of single columns",
    2: "pairs of columns",
    3: "triples of columns",
}


@dataclass(frozen=True, eq=False)
class _Groups:
    """Values of a column, taken together in groups."""

    group_of: IntArray
    size: int
    even: FloatArray
    """Share of each group if all values were equally frequent."""

    @classmethod
    def of(cls, axis: Axis, true: IntArray, most: int) -> "_Groups":
        """Cut an order at true quantiles; of other values keep the most frequent apart."""
        counts = np.bincount(true, minlength=axis.taxonomy.size)
        ordinary = axis.ordinary_leaves
        groups = np.arange(axis.taxonomy.size)
        if ordinary > most:
            inner = counts[:ordinary]
            if axis.kind == "category":
                ranks = np.empty(ordinary, dtype=np.int64)
                ranks[np.argsort(-inner, kind="stable")] = np.arange(ordinary)
                inside = np.minimum(ranks, most - 1)
            else:
                below = (np.cumsum(inner) - inner) / max(inner.sum(), 1)
                inside = np.minimum((below * most).astype(np.int64), most - 1)
            groups = np.concatenate([inside, most + np.arange(axis.special)])
        size = int(groups.max()) + 1
        return cls(groups, size, np.bincount(groups, minlength=size) / len(groups))


@dataclass(frozen=True)
class ShareErrors:
    """Mean total variation over sets of so many columns.

    Attributes:
        depth: How many columns are crossed.
        subsets: How many sets of columns were looked at.
        release: Of the release.
        sample: Of a fresh sample of as many rows.
        uninformed: Of evenly frequent values (one column) or independent columns (several).
    """

    depth: int
    subsets: int
    release: float
    sample: float
    uninformed: float

    def part(self, records: int) -> Part:
        """Score it."""
        return Part.of(
            _NAMES[self.depth],
            _PURPOSES[self.depth],
            "the part of the rows that would have to change (total variation)",
            self.release,
            reference=(f"a fresh sample of {records:,} rows", self.sample),
            baseline=(
                "all values equally frequent" if self.depth == 1 else "independent columns",
                self.uninformed,
            ),
            least_gap=LEAST_GAP,
        )


def share_errors(comparison: Comparison) -> list[ShareErrors]:
    """Compare shares of values, pairs and triples of values, as far as there are columns."""
    rng = plain_generator(comparison.seed)
    return [_errors(comparison, depth, rng) for depth in GROUPS if depth <= len(comparison.axes)]


def _errors(comparison: Comparison, depth: int, rng: np.random.Generator) -> ShareErrors:
    groups = {
        axis.column: _Groups.of(axis, comparison.true[axis.column], GROUPS[depth])
        for axis in comparison.axes
    }
    subsets = _subsets(comparison.columns, depth, rng)
    found = [_subset_errors(comparison, subset, groups, rng) for subset in subsets]
    release, sample, uninformed = (fmean(one) for one in zip(*found, strict=True))
    return ShareErrors(depth, len(subsets), release, sample, uninformed)


def _subset_errors(
    comparison: Comparison,
    subset: Sequence[str],
    groups: dict[str, _Groups],
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    chosen = [groups[name] for name in subset]
    true = _joint(comparison.true, subset, chosen)
    synthetic = _joint(comparison.synthetic, subset, chosen)
    fresh = rng.multinomial(comparison.records, true.ravel(), size=_DRAWS) / comparison.records
    return (
        _distance(true.ravel(), synthetic.ravel()),
        fmean(_distance(true.ravel(), one) for one in fresh),
        _distance(true, chosen[0].even if len(chosen) == 1 else _independent(true)),
    )


def _joint(codes: Codes, subset: Sequence[str], groups: Sequence[_Groups]) -> FloatArray:
    """Compute the shares of all combinations of groups; zeros if there are no rows."""
    shape = tuple(one.size for one in groups)
    cells = np.zeros(len(codes[subset[0]]), dtype=np.int64)
    for name, one in zip(subset, groups, strict=True):
        cells = cells * one.size + one.group_of[codes[name]]
    counts = np.bincount(cells, minlength=prod(shape))
    return np.asarray(counts / max(counts.sum(), 1)).reshape(shape)


def _independent(joint: FloatArray) -> FloatArray:
    """Cross the marginals of a joint as if its columns were independent."""
    found = np.ones(())
    for axis in range(joint.ndim):
        others = tuple(other for other in range(joint.ndim) if other != axis)
        found = np.multiply.outer(found, joint.sum(axis=others))
    return np.asarray(found)


def _distance(first: FloatArray, second: FloatArray) -> float:
    """Compute the total variation of two distributions; 1 from one without any rows."""
    if not second.any():
        return 1.0
    return float(np.abs(first - second).sum() / 2)


def _subsets(columns: Sequence[str], depth: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """List sets of columns: all of them, or some drawn at random."""
    if comb(len(columns), depth) <= 4 * MOST_SUBSETS:
        every = list(combinations(columns, depth))
        order = rng.permutation(len(every))[:MOST_SUBSETS]
        return [every[index] for index in np.sort(order)]
    drawn = (rng.choice(len(columns), depth, replace=False) for _ in range(MOST_SUBSETS))
    return list(dict.fromkeys(tuple(columns[i] for i in sorted(some)) for some in drawn))
