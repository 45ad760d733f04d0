"""One distribution from many noisy tables: weighted least squares on a junction tree.

The distribution p that is looked for minimizes

    1/2 * sum of weight * (N * p(cell) - noisy count)^2 + tau * N * KL(p, start)

over all distributions on the tree, where N is the number of records and a weight is one over the
variance of its noise.  The second part is small: it says what is left open by the first one.
The dual of this problem has one number for each noisy count and no constraints, so that a
quasi-Newton method (L-BFGS) solves it in a few dozen steps.  All of it is post-processing: floats
are computed from what was released, by a fixed number of steps at most, never by the clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpublish.methods.synth.junction_tree import Columns, JunctionTree, Potentials
from dpublish.types import FloatArray, IntArray

Number = TypeVar("Number", np.float64, np.int64)
TAU = 2.5e-4
"""How much the start counts, beside a table of average variance: the less, the more steps."""
LOOK_STEPS = 80
"""Most steps of a fit that only the next choice depends on."""
LAST_STEPS = 300
"""Most steps of the fit that is published."""
_MEMORY = 12
_LEAST_GRADIENT = 1e-3
_LEAST_GAIN = 1e-9


@dataclass(frozen=True, eq=False)
class Measured:
    """A noisy table of some columns, whose classes are coarser than those of the tree, or equal.

    Attributes:
        columns: Its columns.
        maps: For each column the table's class of every class of the tree; None if equal.
        counts: The noisy counts.
        variance: Variance of the noise of each count, or of all; infinite where nothing is known.
        name: What a start of the next fit is found by.
    """

    columns: Columns
    maps: tuple[IntArray | None, ...]
    counts: FloatArray
    variance: FloatArray
    name: object = None

    @cached_property
    def scale(self) -> FloatArray:
        """One over the standard deviation of each count."""
        return np.broadcast_to(1 / np.sqrt(self.variance), self.counts.shape)

    def coarsen(self, table: FloatArray) -> FloatArray:
        """Add up a table over the tree's classes to that of this one."""
        for axis, lookup in enumerate(self.maps):
            if lookup is not None:
                table = add_classes(table, lookup, self.counts.shape[axis], axis)
        return table

    def refine(self, table: FloatArray) -> FloatArray:
        """Repeat the numbers of a table for each of the tree's classes."""
        for axis, lookup in enumerate(self.maps):
            if lookup is not None:
                table = np.take(table, lookup, axis=axis)
        return table


def add_classes(table: NDArray[Number], lookup: IntArray, size: int, axis: int) -> NDArray[Number]:
    """Add up a table along an axis, by the coarser class of each class.

    >>> add_classes(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), 2, 0).tolist()
    [5.0, 2.0]
    """
    one_hot = np.zeros((size, lookup.size), dtype=table.dtype)
    one_hot[lookup, np.arange(lookup.size)] = 1
    return np.moveaxis(np.tensordot(one_hot, table, axes=(1, axis)), 0, axis)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted distribution.

    Attributes:
        potentials: Logarithms of potentials, one array for each clique.
        tables: Marginal distribution of each clique.
        duals: What to start the next fit with, by name of the table.
        steps: How many steps were taken.
    """

    potentials: tuple[FloatArray, ...]
    tables: tuple[FloatArray, ...]
    duals: dict[object, FloatArray]
    steps: int


class _Dual:
    """The dual problem: a function of one number for each noisy count, and its gradient."""

    def __init__(
        self, tree: JunctionTree, measured: Sequence[Measured], start: Potentials, total: float
    ) -> None:
        self.tree, self.measured, self.start, self.total = tree, measured, start, total
        self.homes = [tree.find(one.columns) for one in measured]
        self.axes = [
            tree.others(home, one.columns) for home, one in zip(self.homes, measured, strict=True)
        ]
        ends = np.cumsum([one.counts.size for one in measured])
        self.parts = [
            slice(end - one.counts.size, end) for end, one in zip(ends, measured, strict=True)
        ]
        self.size = int(ends[-1]) if len(ends) else 0
        scales = [float((one.scale**2).mean()) for one in measured]
        self.tau = TAU * total * (sum(scales) / len(scales) if scales else 1.0)

    def potentials(self, duals: FloatArray) -> list[FloatArray]:
        found = [table.copy() for table in self.start]
        for one, home, part in zip(self.measured, self.homes, self.parts, strict=True):
            step = one.scale * duals[part].reshape(one.counts.shape) / -self.tau
            found[home] += self.tree.shaped(home, one.columns, one.refine(step))
        return found

    def __call__(self, duals: FloatArray) -> tuple[float, FloatArray]:
        beliefs = self.tree.beliefs(self.potentials(duals))
        value = self.tau * self.total * beliefs.log_sum + 0.5 * float(duals @ duals)
        gradient = np.empty(self.size)
        for one, home, axes, part in zip(
            self.measured, self.homes, self.axes, self.parts, strict=True
        ):
            model = one.coarsen(beliefs.tables[home].sum(axis=axes))
            value += float((one.scale * one.counts).ravel() @ duals[part])
            gap = one.scale * (one.counts - self.total * model)
            gradient[part] = gap.ravel() + duals[part]
        return value, gradient


def fit(
    tree: JunctionTree,
    measured: Sequence[Measured],
    start: Potentials,
    total: float,
    *,
    duals: dict[object, FloatArray] | None = None,
    steps: int = LAST_STEPS,
) -> Fitted:
    """Fit one distribution to noisy tables, each of which lies in one clique of the tree.

    Args:
        tree: The cliques.
        measured: The noisy tables.
        start: Logarithms of potentials of the distribution to start from.
        total: Number of records.
        duals: What an earlier fit ended with, to start where it stopped.
        steps: Most steps.

    >>> tree = JunctionTree.of([2, 2], [(0, 1)])
    >>> counts = np.array([[60.0, 0.0], [0.0, 40.0]])
    >>> table = Measured((0, 1), (None, None), counts, np.array(4.0))
    >>> fit(tree, [table], tree.start(), 100.0).tables[0].round(2).tolist()
    [[0.6, 0.0], [0.0, 0.4]]
    """
    from scipy.optimize import minimize

    problem = _Dual(tree, measured, start, max(total, 1.0))
    known = duals or {}
    first = [
        known[one.name]
        if one.name in known and known[one.name].size == one.counts.size
        else np.zeros(one.counts.size)
        for one in measured
    ]
    options = {
        "maxiter": steps,
        "maxcor": _MEMORY,
        "gtol": _LEAST_GRADIENT,
        "ftol": _LEAST_GAIN,
    }
    with np.errstate(all="ignore"):  # a step that is far too long is shortened
        found = minimize(
            problem,
            np.concatenate([np.zeros(0), *first]),
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
        ended = found.x if np.all(np.isfinite(found.x)) else np.zeros(problem.size)
        potentials = tuple(problem.potentials(ended))
        tables = tree.beliefs(potentials).tables
    duals = {one.name: ended[part] for one, part in zip(measured, problem.parts, strict=True)}
    return Fitted(potentials, tables, duals, int(found.nit))
