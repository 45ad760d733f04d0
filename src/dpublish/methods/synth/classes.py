"""Classes of a column's values: nested, coarse to fine, cut by what was already released.

A table of two columns with all their values would drown in noise, so that values are joined
into classes: neighbors of an ordered column, rare values of the others.  All of it follows from
the column's noisy marginal and the schema, so it is free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.projection import project_nonnegative
from dpublish.data.axis import Axis
from dpublish.data.statements import Combination, KnownTotal
from dpublish.errors import InvalidParameter
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.types import FloatArray, IntArray

JOINED_BELOW = 2.5
"""Values whose estimate is below so many standard deviations of its noise are joined."""


@dataclass(frozen=True, eq=False)
class ColumnClasses:
    """The classes of one column on several levels, each within one class of the level before.

    Attributes:
        levels: For each level the class of every value (leaf code), coarse to fine.  On the
            last level quality is measured; tables take one of the others, or it.
        joined: Number of the finest level whose classes are worth counting.
    """

    levels: tuple[IntArray, ...]
    joined: int

    def __post_init__(self) -> None:
        """Refuse what are no nested classes: a release may come from anywhere."""
        if not self.levels or not 0 <= self.joined < len(self.levels):
            raise InvalidParameter("a column needs at least one level of classes")
        size = self.levels[0].size
        for level in self.levels:
            if level.shape != (size,) or level.dtype != np.int64 or size == 0:
                raise InvalidParameter("each level has a class for every value")
            if level.min() != 0 or np.unique(level).size != level.max() + 1:
                raise InvalidParameter("classes are numbered from 0 on, and none is empty")
        for coarse, fine in zip(self.levels, self.levels[1:], strict=False):
            if np.unique(fine * (int(coarse.max()) + 1) + coarse).size != fine.max() + 1:
                raise InvalidParameter("a class lies within one class of the coarser level")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of classes on each level."""
        return tuple(int(level.max()) + 1 for level in self.levels)

    def coarser(self, fine: int, coarse: int) -> IntArray | None:
        """Return the class on a coarser level of each class; None if the levels are the same."""
        if fine == coarse:
            return None
        found = np.zeros(self.sizes[fine], dtype=np.int64)
        found[self.levels[fine]] = self.levels[coarse]
        return found


def make_classes(
    axis: Axis, marginal: NoisyMarginal, *, most: int, kept_apart: Sequence[NDArray[np.bool_]] = ()
) -> ColumnClasses:
    """Cut a column into classes by its noisy marginal.

    Args:
        axis: The column on its finest level.
        marginal: What was released of it.
        most: Most classes of the last level, special ones and `kept_apart` aside.
        kept_apart: Sets of values, as masks, that no class may cross.
    """
    counts = project_nonnegative(marginal.bins, max(marginal.total, 1.0))
    base = _base(axis, counts, most)
    base = _apart(base, kept_apart)
    sums = _add_up(base, counts)
    deviations = np.array(
        [_deviation(marginal, base == cell) for cell in range(sums.size)], dtype=np.float64
    )
    ordered = axis.kind != "category"
    special = np.zeros(sums.size, dtype=np.bool_)
    special[base[axis.ordinary_leaves :]] = True
    if ordered:
        joined = _join_runs(sums, deviations, special)
        coarse = _halve(joined, sums, special)
    else:
        groups = _taxonomy_groups(axis, base)
        joined = _join_rare(sums, deviations, groups)
        coarse = [*groups, *_most_frequent(joined, sums, groups)]
    found = [_number(_apart(level[base], kept_apart)) for level in (*coarse, joined)]
    levels = _nested([*found, _number(base)])
    size = int(found[-1].max()) + 1
    return ColumnClasses(levels, next(i for i, x in enumerate(levels) if x.max() + 1 >= size))


def masks_of(
    statements: Sequence[Combination | KnownTotal], column: str
) -> tuple[NDArray[np.bool_], ...]:
    """List the sets of a column's values that statements speak of."""
    return tuple(
        mask
        for one in statements
        for name, mask in zip(one.columns, one.codes, strict=True)
        if name == column
    )


def class_counts(marginal: NoisyMarginal, classes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Estimate the count of each class from a noisy marginal, and its variance."""
    size = int(classes.max()) + 1
    counts = _add_up(classes, marginal.bins)
    if marginal.method == "identity":
        lengths = np.bincount(classes, minlength=size)
        return counts, noise_variance(marginal.rate) * lengths.astype(np.float64)
    found = [_deviation(marginal, classes == one) ** 2 for one in range(size)]
    return counts, np.array(found, dtype=np.float64)


def _add_up(classes: IntArray, numbers: FloatArray) -> FloatArray:
    """Add up numbers by class."""
    return np.bincount(classes, weights=numbers).astype(np.float64)


def _deviation(marginal: NoisyMarginal, inside: NDArray[np.bool_]) -> float:
    """Return the standard deviation of the noise of a sum of values."""
    variance = noise_variance(marginal.rate)
    if marginal.method == "identity":
        return sqrt(variance * int(inside.sum()))
    weights = marginal.noise_weights(inside.astype(np.float64))
    return sqrt(variance * float(weights @ weights)) if weights is not None else 0.0


# --- The finest classes: single values, if there are not too many ------------------------------


def _base(axis: Axis, counts: FloatArray, most: int) -> IntArray:
    """Number the finest classes: values, or of many values runs or the most frequent ones."""
    size, ordinary = axis.taxonomy.size, axis.ordinary_leaves
    if ordinary <= most:
        return np.arange(size)
    special = np.arange(size - ordinary)
    if axis.kind == "category":
        kept = np.sort(np.argsort(-counts[:ordinary], kind="stable")[: most - 1])
        base = np.full(ordinary, most - 1, dtype=np.int64)
        base[kept] = np.arange(kept.size)
    else:
        # Runs of about the same number of records, and none longer than a part of the range.
        shares = counts[:ordinary] / max(float(counts[:ordinary].sum()), 1.0) + 1 / ordinary
        middle = np.cumsum(shares) - shares / 2
        base = np.minimum(middle / 2 * most, most - 1).astype(np.int64)
        base = _number(base)
    return np.concatenate([base, int(base.max()) + 1 + special])


def _apart(classes: IntArray, masks: Sequence[NDArray[np.bool_]]) -> IntArray:
    """Divide classes such that each lies within or outside of each of the masks."""
    for mask in masks:
        classes = _number(2 * classes + mask)
    return classes


def _number(classes: IntArray) -> IntArray:
    """Number classes from 0 on, in their order."""
    return np.unique(classes, return_inverse=True)[1].ravel().astype(np.int64)


# --- Joined classes: what is worth counting ----------------------------------------------------


def _join_runs(sums: FloatArray, deviations: FloatArray, special: NDArray[np.bool_]) -> IntArray:
    """Join neighbors until their sum stands out of its noise; special classes stay alone."""
    found = np.zeros(sums.size, dtype=np.int64)
    number, total, variance = 0, 0.0, 0.0
    ordinary = np.flatnonzero(~special)
    for cell in ordinary:
        found[cell] = number
        total, variance = total + sums[cell], variance + deviations[cell] ** 2
        if total >= JOINED_BELOW * sqrt(variance):
            number, total, variance = number + 1, 0.0, 0.0
    if variance and number:  # what is left over joins the run before
        found[ordinary] = np.minimum(found[ordinary], number - 1)
    after = int(found[ordinary].max(initial=-1)) + 1
    found[special] = after + np.arange(int(special.sum()))
    return found


def _join_rare(sums: FloatArray, deviations: FloatArray, groups: Sequence[IntArray]) -> IntArray:
    """Join the rare classes, within each group of the finest level of a taxonomy."""
    within = groups[-1] if groups else np.zeros(sums.size, dtype=np.int64)
    rare = sums < JOINED_BELOW * deviations
    return _number(np.where(rare, sums.size + within, np.arange(sums.size)))


# --- Coarser levels ----------------------------------------------------------------------------


def _halve(joined: IntArray, sums: FloatArray, special: NDArray[np.bool_]) -> list[IntArray]:
    """Cut runs into 2, 4, 8 ... parts, always the heaviest one at its median."""
    weights = _add_up(joined, sums)
    alone = np.bincount(joined, weights=special) > 0
    ordinary = int((~alone).sum())
    parts = [(0, ordinary)] if ordinary else []
    found, wanted = [], 1
    while parts and len(parts) < ordinary:
        wanted *= 2
        while len(parts) < min(wanted, ordinary):
            _cut_heaviest(parts, weights)
        level = np.arange(weights.size) - ordinary + len(parts)  # special ones follow
        for number, (start, stop) in enumerate(parts):
            level[start:stop] = number
        found.append(level[joined])
    if alone.any() and ordinary > 1:
        level = np.arange(weights.size) - ordinary + 1
        level[:ordinary] = 0
        found.insert(0, level[joined])
    return found


def _cut_heaviest(parts: list[tuple[int, int]], weights: FloatArray) -> None:
    """Cut the heaviest part that can be cut, where its halves are most equal."""
    able = [i for i, (start, stop) in enumerate(parts) if stop - start > 1]
    heaviest = max(able, key=lambda i: (weights[slice(*parts[i])].sum(), -i))
    start, stop = parts[heaviest]
    below = np.cumsum(weights[start:stop])
    cut = start + 1 + int(np.argmin(np.abs(below[:-1] - below[-1] / 2)))
    parts[heaviest : heaviest + 1] = [(start, cut), (cut, stop)]


def _taxonomy_groups(axis: Axis, base: IntArray) -> list[IntArray]:
    """List the levels of the schema's own taxonomy that no class crosses, coarse to fine."""
    found = []
    for number in range(1, axis.taxonomy.height):
        starts = np.asarray(axis.taxonomy.levels[number].starts)
        groups = np.searchsorted(starts, np.arange(base.size), side="right") - 1
        level = np.zeros(int(base.max()) + 1, dtype=np.int64)
        level[base] = groups
        if np.array_equal(level[base], groups) and 1 < np.unique(level).size <= base.max():
            found.append(_number(level))
    return found


def _most_frequent(
    joined: IntArray, sums: FloatArray, groups: Sequence[IntArray]
) -> list[IntArray]:
    """Keep the 1, 3, 7, 15 ... most frequent classes apart from a rest, without a taxonomy."""
    weights = _add_up(joined, sums)
    order = np.argsort(-weights, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    most = weights.size if not groups else int(groups[0].max()) + 1
    kept = [1 << k for k in range(1, 20) if 1 << k < most]
    if groups:  # below the taxonomy's first level, its most frequent groups
        heavy = np.bincount(groups[0], weights=sums)
        rank = np.argsort(np.argsort(-heavy, kind="stable"), kind="stable")
        return [np.minimum(rank[groups[0]], size - 1) for size in kept]
    return [np.minimum(rank[joined], size - 1) for size in kept]


def _nested(levels: Sequence[IntArray]) -> tuple[IntArray, ...]:
    """Put levels in order, coarse to fine, each once, and refine them until they are nested."""
    found: list[IntArray] = []
    for level in sorted(levels, key=lambda x: int(x.max())):
        fine = level if not found else _number(found[-1] * (int(level.max()) + 1) + level)
        if fine.max() > 0 and (not found or fine.max() > found[-1].max()):
            found.append(fine)
    return tuple(found) or (np.zeros(levels[0].size, dtype=np.int64),)
