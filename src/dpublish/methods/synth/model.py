"""The model of a table: classes of every column, and their joint distribution on a tree.

It is computed from what was released: marginals, noisy tables, and what the schema says is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.projection import project_nonnegative
from dpublish.data.statements import Combination, KnownTotal
from dpublish.errors import InvalidParameter
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.synth.classes import ColumnClasses, class_counts
from dpublish.methods.synth.fit import LAST_STEPS, Fitted, Measured, fit
from dpublish.methods.synth.junction_tree import Columns, JunctionTree
from dpublish.types import FloatArray, IntArray

_SMOOTHING = 0.5
"""Records added to every class of a start, so that nothing is impossible by noise alone."""
_TOTALS_DEVIATION = 0.0005
"""How far a known total may be missed during the fit, as a part of all records."""
_RAKINGS = 200
_CLOSE = 1e-9
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class CountedTable:
    """A noisy table: its columns, on a level of classes each, and its noisy counts.

    Attributes:
        columns: Numbers of the columns, in rising order.
        levels: The level of each.
        counts: The noisy counts, shaped by the classes.
        rate: Rate of their two-sided geometric noise.
    """

    columns: Columns
    levels: tuple[int, ...]
    counts: IntArray
    rate: Fraction


@dataclass(frozen=True, eq=False)
class PriorTable:
    """What a public prior says of some columns: the probability of every combination."""

    columns: Columns
    levels: tuple[int, ...]
    probabilities: FloatArray


@dataclass(frozen=True, eq=False)
class Known:
    """What was released or is public, in the terms of numbered columns.

    Attributes:
        classes: The classes of each column.
        marginals: The noisy marginal of each column.
        tables: The noisy tables.
        prior: Tables of a public prior, if one was chosen.
        impossible: Combinations that do not occur.
        totals: Known numbers of records.
        names: Names of the columns.
        fixed_levels: The level of each column in a model that was fitted before.
    """

    names: tuple[str, ...]
    classes: tuple[ColumnClasses, ...]
    marginals: tuple[NoisyMarginal, ...]
    tables: tuple[CountedTable, ...] = ()
    prior: tuple[PriorTable, ...] = ()
    impossible: tuple[Combination, ...] = ()
    totals: tuple[KnownTotal, ...] = ()
    fixed_levels: tuple[int, ...] | None = None

    @cached_property
    def total(self) -> float:
        """Estimate the number of records: a known one, or from the totals of all marginals."""
        for one in self.totals:
            if not one.columns:
                return float(max(one.count, 1))
        variances = np.array([one.total_variance for one in self.marginals])
        weights = 1 / np.maximum(variances, 1e-9)
        found = np.average([one.total for one in self.marginals], weights=weights)
        return max(float(found), 1.0)

    @cached_property
    def values(self) -> tuple[FloatArray, ...]:
        """Estimate how many records have each value of each column."""
        return tuple(map(self._values, self.marginals))

    def _values(self, marginal: NoisyMarginal) -> FloatArray:
        if marginal.method == "hierarchical":
            return self.total * marginal.probabilities
        return project_nonnegative(marginal.bins, self.total)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The level of each column in the model: the finest one that any table has."""
        if self.fixed_levels is not None:
            return self.fixed_levels
        found = [-1] * len(self.names)
        for columns, levels in self._shapes:
            for column, level in zip(columns, levels, strict=True):
                found[column] = max(found[column], level)
        within = {name for one in self._statements for name in one.columns}
        return tuple(
            level if level >= 0 else (0 if name in within else one.joined)
            for level, name, one in zip(found, self.names, self.classes, strict=True)
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of classes of each column in the model."""
        return tuple(one.sizes[level] for one, level in zip(self.classes, self.levels, strict=True))

    @property
    def _shapes(self) -> list[tuple[Columns, tuple[int, ...]]]:
        """The columns and levels of all tables, those of a prior included."""
        counted = [(table.columns, table.levels) for table in self.tables]
        return counted + [(table.columns, table.levels) for table in self.prior]

    @property
    def _statements(self) -> list[Combination | KnownTotal]:
        return [*self.impossible, *self.totals]

    @cached_property
    def sets(self) -> tuple[Columns, ...]:
        """The sets of columns that must lie in one clique."""
        stated = [self.numbers(one) for one in self._statements]
        return (*(columns for columns, _ in self._shapes), *stated)

    def numbers(self, statement: Combination | KnownTotal) -> Columns:
        """Number the columns of a statement, in rising order."""
        return tuple(sorted(self.names.index(name) for name in statement.columns))

    def masks(self, statement: Combination | KnownTotal) -> list[FloatArray]:
        """Say of each class of each column of a statement whether it is meant: 1 or 0."""
        found = []
        for column in self.numbers(statement):
            mask = statement.codes[statement.columns.index(self.names[column])]
            along = np.zeros(self.sizes[column])
            along[self.classes[column].levels[self.levels[column]]] = mask
            found.append(along)
        return found

    def shares(self, column: int, level: int) -> FloatArray:
        """Say how the records of a class of the model lie in the classes of a level.

        A row for each class of the model; rows add up to 1.
        """
        classes = self.classes[column]
        own, other = classes.levels[self.levels[column]], classes.levels[level]
        found = np.zeros((self.sizes[column], classes.sizes[level]))
        np.add.at(found, (own, other), self.values[column] + 1e-9)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def on_levels(self, table: FloatArray, columns: Columns, levels: Sequence[int]) -> FloatArray:
        """Move a table over the model's classes to other levels."""
        for axis, (column, level) in enumerate(zip(columns, levels, strict=True)):
            if level != self.levels[column]:
                moved = np.tensordot(table, self.shares(column, level), axes=(axis, 0))
                table = np.moveaxis(moved, -1, axis)
        return table


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model: a tree, and the distribution of each of its cliques."""

    known: Known
    tree: JunctionTree
    fitted: Fitted = field(repr=False)

    @property
    def tables(self) -> tuple[FloatArray, ...]:
        """The distribution of each clique."""
        return self.fitted.tables

    @cached_property
    def pairs(self) -> dict[tuple[int, int], FloatArray]:
        """The joint distribution of every pair of columns, on the model's classes."""
        return self.tree.pairs(self.tables)

    def expected(self, columns: Columns, levels: Sequence[int]) -> FloatArray:
        """Compute how many records the model expects in each cell of a table."""
        pair = columns if len(columns) == 2 else None
        found = self.pairs[pair] if pair else self.tree.joint(self.tables, columns)
        return self.known.total * self.known.on_levels(found, columns, levels)


def fit_model(known: Known, before: Model | None = None, *, steps: int = LAST_STEPS) -> Model:
    """Fit the model to all that is known; start where an earlier one ended."""
    tree = JunctionTree.of(known.sizes, known.sets)
    found = fit(
        tree,
        _measured(known),
        _start(known, tree),
        known.total,
        duals=None if before is None else before.fitted.duals,
        steps=steps,
    )
    raked = _rake(known, tree, found)
    if not all(np.all(np.isfinite(table)) for table in raked.tables):
        # Known from what was released alone, so refused before any count is compared with it.
        raise InvalidParameter(
            "no distribution fits what is known: do the totals or impossible combinations of the "
            "schema contradict each other?"
        )
    return Model(known, tree, raked)


def _measured(known: Known) -> list[Measured]:
    """List all noisy tables, marginals included, and the known totals."""
    found = []
    for number, table in enumerate(known.tables):
        variance = np.array(noise_variance(table.rate) + 1e-9)
        counts = table.counts.astype(np.float64)
        maps = _maps(known, table.columns, table.levels)
        found.append(Measured(table.columns, maps, counts, variance, ("table", number)))
    for column, (marginal, level) in enumerate(zip(known.marginals, known.levels, strict=True)):
        counts, variances = class_counts(marginal, known.classes[column].levels[level])
        found.append(
            Measured((column,), (None,), counts, variances + 1e-9, ("marginal", column, level))
        )
    for number, total in enumerate(known.totals):
        if total.columns:
            found.append(_known_total(known, total, number))
    return found


def _maps(known: Known, columns: Columns, levels: Sequence[int]) -> tuple[IntArray | None, ...]:
    return tuple(
        known.classes[column].coarser(known.levels[column], level)
        for column, level in zip(columns, levels, strict=True)
    )


def _known_total(known: Known, total: KnownTotal, number: int) -> Measured:
    """Write a known total as a table of which one cell is known."""
    columns = known.numbers(total)
    shape = (2,) * len(columns)
    counts, variance = np.zeros(shape), np.full(shape, np.inf)
    counts[(1,) * len(columns)] = total.count
    variance[(1,) * len(columns)] = (_TOTALS_DEVIATION * known.total) ** 2 + 0.25
    maps = tuple(mask.astype(np.int64) for mask in known.masks(total))
    return Measured(columns, maps, counts, variance, ("total", number))


def _start(known: Known, tree: JunctionTree) -> list[FloatArray]:
    """Start from independent columns, a prior if there is one, and what is impossible."""
    found = tree.start()
    for column, (classes, level) in enumerate(zip(known.classes, known.levels, strict=True)):
        counts = np.bincount(classes.levels[level], weights=known.values[column]) + _SMOOTHING
        home = tree.find((column,))
        found[home] = found[home] + tree.shaped(home, (column,), np.log(counts / counts.sum()))
    for table in known.prior:
        home = tree.find(table.columns)
        maps = _maps(known, table.columns, table.levels)
        shape = Measured(table.columns, maps, table.probabilities, np.ones(()))
        ratio = shape.refine(_dependence(table.probabilities))
        found[home] = found[home] + tree.shaped(home, table.columns, ratio)
    for one in known.impossible:
        columns = known.numbers(one)
        home = tree.find(columns)
        meant = _outer(known.masks(one)) > 0
        found[home] = found[home] + tree.shaped(home, columns, np.where(meant, -np.inf, 0.0))
    return found


def _dependence(probabilities: FloatArray) -> FloatArray:
    """Return the logarithm of how much more frequent each cell is than if independent."""
    axes = range(probabilities.ndim)
    alone = [probabilities.sum(axis=tuple(k for k in axes if k != axis)) for axis in axes]
    expected = _outer(alone)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, np.log(probabilities / expected), 0.0)


def _outer(parts: Sequence[FloatArray]) -> FloatArray:
    found = np.ones(())
    for part in parts:
        found = np.multiply.outer(found, part)
    return found


def _rake(known: Known, tree: JunctionTree, fitted: Fitted) -> Fitted:
    """Scale a distribution until it has the known totals, as near as it can."""
    stated = [one for one in known.totals if one.columns]
    if not stated:
        return fitted
    potentials, tables = list(fitted.potentials), fitted.tables
    for _ in range(_RAKINGS):
        worst = 0.0
        for one in stated:
            columns = known.numbers(one)
            home, meant = tree.find(columns), _outer(known.masks(one))
            now = float((tree.joint(tables, columns) * meant).sum())
            wanted = min(one.count / known.total, 1.0)
            worst = max(worst, abs(now - wanted))
            if _TINY < now < 1:
                with np.errstate(divide="ignore"):
                    inside, outside = np.log([wanted / now, (1 - wanted) / (1 - now)])
                step = np.asarray(np.where(meant > 0, inside, outside))
                potentials[home] = potentials[home] + tree.shaped(home, columns, step)
                tables = tree.beliefs(potentials).tables
        if worst < _CLOSE:
            break
    return Fitted(tuple(potentials), tables, fitted.duals, fitted.steps)
