"""A Bayesian network: which columns each depends on, and the noisy joint counts of them.

Probabilities follow from the noisy counts; rows are drawn column after column.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.accuracy.projection import project_nonnegative
from dpublish.aggregates.cells import ColumnSet
from dpublish.core.beside_labels import Along, cell_width, with_interval, with_joints
from dpublish.core.codecs import Codec
from dpublish.core.even_draws import draw_evenly
from dpublish.core.probabilities import add_up, cell_numbers, conditional
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.types import FloatArray, IntArray

_CALIBRATION = 1 << 16
_ROUNDS = 30
_LEAST = 1e-4  # part of every probability that comes from the marginal alone


@dataclass(frozen=True)
class Node:
    """A column at a level, and the columns, each at a level, on which it depends."""

    column: str
    level: int
    parents: tuple[tuple[str, int], ...] = ()

    @property
    def columns(self) -> ColumnSet:
        """The column itself, and after it its parents."""
        return ((self.column, self.level), *self.parents)

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """Find the axes of the column and its parents."""
        return tuple(schema[name].axis(level) for name, level in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Turn the node into plain values for a file."""
        parents = [{"column": name, "level": level} for name, level in self.parents]
        return {"column": self.column, "level": self.level, "parents": parents}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        parents = tuple((parent["column"], parent["level"]) for parent in plain["parents"])
        return cls(plain["column"], plain["level"], parents)


NODES = Codec(
    lambda nodes: [node.to_dict() for node in nodes],
    lambda plain, _: tuple(map(Node.from_dict, plain)),
)
"""The nodes of a network, as a declared field of a release."""


def joint_sets(nodes: Sequence[Node]) -> tuple[ColumnSet, ...]:
    """List the sets of columns to count; what can be added up from a later set is left out.

    >>> first, second = Node("sex", 1), Node("town", 1, (("sex", 1),))
    >>> joint_sets([first, second])
    ((('town', 1), ('sex', 1)),)
    """
    sets = [node.columns for node in nodes]
    return tuple(
        one
        for index, one in enumerate(sets)
        if not any(covers(later, one) for later in sets[index + 1 :])
    )


def without(nodes: Sequence[Node], apart: Collection[str]) -> tuple[Node, ...]:
    """Leave out the nodes that depend on nothing and whose columns are counted elsewhere."""
    return tuple(node for node in nodes if node.parents or node.column not in apart)


def joint_of(node: Node, sets: Sequence[ColumnSet]) -> int:
    """Find the first of the counted sets from which a node's counts can be added up."""
    return next(index for index, one in enumerate(sets) if covers(one, node.columns))


def covers(one: ColumnSet, other: ColumnSet) -> bool:
    """Check whether the counts of `other` can be added up from those of `one`."""
    levels = {name: level or 0 for name, level in one}
    return all(levels.get(name, -1) >= (level or 0) for name, level in other)


def require_network(nodes: Sequence[Node], schema: Schema) -> None:
    """Refuse nodes that are no network: every parent comes earlier, and at a level as fine."""
    if not nodes or [node.column for node in nodes] != list(
        dict.fromkeys(node.column for node in nodes)
    ):
        raise InvalidParameter("a network has at least one node, each column once")
    earlier: dict[str, int] = {}
    for node in nodes:
        if any(type(level) is not int or level < 1 for _, level in node.columns):
            raise InvalidParameter(f"the node {node.column!r} has a level that is no level")
        node.axes(schema)  # refuses columns and levels that the schema does not have
        names = [name for name, _ in node.parents]
        if len(set(names)) < len(names):
            raise InvalidParameter(f"the node {node.column!r} lists a parent twice")
        for name, level in node.parents:
            if level > earlier.get(name, 0):
                raise InvalidParameter(f"the node {node.column!r} has a parent that is not earlier")
        earlier[node.column] = node.level


def cell_labels(axes: Sequence[Axis]) -> list[str]:
    """Name the combined cells of several axes, the last counting fastest.

    >>> from dpublish.data.schema import column
    >>> cell_labels([column("sex", "category", values=["F", "M"]).axis()])
    ['sex: F', 'sex: M']
    """
    labels = [""]
    for axis in axes:
        labels = [
            f"{start}, {axis.column}: {label}" if start else f"{axis.column}: {label}"
            for start in labels
            for label in axis.labels
        ]
    return labels


class Evidence(NamedTuple):
    """What joint counts tell of the cells of a column, without bias, and its precision."""

    sums: FloatArray
    precision: float
    """Inverse of the variance of each sum; 0 if no joint has the column."""


@dataclass(frozen=True, eq=False)
class JointNetwork:
    """Nodes in an order in which each depends on a few earlier ones, and their noisy counts.

    Attributes:
        schema: The columns, with the levels at which nodes use them.
        nodes: The nodes, every parent before its children.
        counts: Noisy counts of the joint sets, one set after the other, row-major.
        rate: Rate of the noise of every count.
        total: Estimate of the number of records.
        given: Columns that come from elsewhere: they have nodes, but no counts.
        apart: Columns with marginals of their own, which are not counted alone once more.
    """

    schema: Schema
    nodes: tuple[Node, ...]
    counts: IntArray
    rate: Fraction
    total: float
    given: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a network may come from anywhere."""
        require_rate(self.rate)
        require_network(self.nodes, self.schema)
        if {node.column for node in self.nodes} != set(self.schema.names):
            raise InvalidParameter("a network has a node for every column")
        if any(node.parents for node in self.nodes if node.column in self.given):
            raise InvalidParameter("a column that is given does not depend on others")
        cells = sum(prod(axis.size for axis in axes) for axes in self.joint_axes)
        if self.counts.dtype != np.int64 or self.counts.shape != (cells,):
            raise InvalidParameter("a network has a whole count for every cell of its joints")

    @property
    def counted(self) -> tuple[Node, ...]:
        """The nodes whose probabilities were counted."""
        return tuple(node for node in self.nodes if node.column not in self.given)

    @cached_property
    def joint_sets(self) -> tuple[ColumnSet, ...]:
        """The sets of columns that were counted."""
        return joint_sets(without(self.counted, self.apart))

    @cached_property
    def joint_axes(self) -> tuple[tuple[Axis, ...], ...]:
        """The axes of each counted set."""
        return tuple(
            tuple(self.schema[name].axis(level) for name, level in one) for one in self.joint_sets
        )

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """The axis from which each column is drawn."""
        return {node.column: self.schema[node.column].axis(node.level) for node in self.nodes}

    @cached_property
    def joints(self) -> tuple[IntArray, ...]:
        """The noisy counts of each set, shaped by its axes."""
        shapes = [tuple(axis.size for axis in axes) for axes in self.joint_axes]
        ends = np.cumsum([prod(shape) for shape in shapes], dtype=np.int64)
        parts = np.split(self.counts, ends)[:-1]
        return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))

    @cached_property
    def estimates(self) -> tuple[FloatArray, ...]:
        """Counts nearest to the noisy ones that are not negative and add up to `total`."""
        return tuple(project_nonnegative(joint, self.total) for joint in self.joints)

    @cached_property
    def probabilities(self) -> dict[str, FloatArray]:
        """Probabilities of each counted column: a row for every combined cell of its parents."""
        found = {}
        for node in self.counted:
            if not any(covers(one, node.columns) for one in self.joint_sets):
                found[node.column] = conditional(np.zeros(self.axes[node.column].size))
                continue
            joint = joint_of(node, self.joint_sets)
            counts = add_up(self.estimates[joint], self.joint_axes[joint], node.axes(self.schema))
            found[node.column] = conditional(counts)
        return found

    def table(self) -> pa.Table:
        """Return the noisy counts of all joints, with the labels of their cells."""
        sizes = [joint.size for joint in self.joints]
        labels = [label for axes in self.joint_axes for label in cell_labels(axes)]
        table = pa.table(
            {
                "joint": pa.array(np.repeat(np.arange(len(sizes)), sizes), pa.int64()),
                "cell_number": pa.array(
                    [cell for size in sizes for cell in range(size)], pa.int64()
                ),
                "cell": pa.array(labels, pa.string()),
                "noisy_count": pa.array(self.counts),
            }
        )
        joints = [[Along.of(axis) for axis in axes] for axes in self.joint_axes]
        names = [n for n in self.schema.names if any(x.column == n for one in joints for x in one)]
        return with_interval(with_joints(table, "cell", joints, names), cell_width(self.rate))

    def marginal(self, name: str) -> FloatArray:
        """Estimate the records in each cell of a counted column from all joints that have it.

        The noisy counts of a joint add up to an unbiased estimate; one that was made
        non-negative cell by cell would move records from frequent values to rare ones.
        """
        return project_nonnegative(self.evidence(name).sums, self.total)

    def evidence(self, name: str) -> Evidence:
        """Add up a column's cells in all joints that have it.

        The estimates of several joints have independent noise, so each is weighted by the
        inverse of its variance, that is of the number of cells added up.
        """
        axis = self.axes[name]
        node = Node(name, axis.level)
        sums = np.zeros(axis.size)
        weight = 0.0
        for columns, axes, joint in zip(self.joint_sets, self.joint_axes, self.joints, strict=True):
            if covers(columns, node.columns):
                cells = joint.size / axis.size
                sums += add_up(joint.astype(np.float64), axes, (axis,)) / cells
                weight += 1 / cells
        return Evidence(sums / max(weight, 1e-300), weight / max(noise_variance(self.rate), 1e-9))

    def draw(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        known: Mapping[str, IntArray] | None = None,
        probabilities: Mapping[str, FloatArray] | None = None,
    ) -> dict[str, IntArray]:
        """Draw the cells of `n` rows, column after column; `known` has those of given ones."""
        cells = dict(known or {})
        tables = self.probabilities if probabilities is None else probabilities
        for node in self.counted:
            rows = self._rows_of_probabilities(node, cells, n)
            cells[node.column] = draw_evenly(tables[node.column], rows, rng)
        return cells

    def calibrated(
        self,
        marginals: Mapping[str, FloatArray],
        rng: np.random.Generator,
        *,
        known: Mapping[str, IntArray] | None = None,
    ) -> dict[str, FloatArray]:
        """Scale probabilities so that columns with a marginal of their own follow it.

        A marginal that was measured with a share of its own is more accurate than the sum of a
        joint's noisy counts.  The probabilities of such a column are scaled, cell by cell,
        until they match its marginal; the parents are distributed as in rows drawn from the
        network.  `known` holds rows of the given columns: as many are drawn, else a fixed
        number.
        """
        cells = dict(known or {})
        rows = len(next(iter(cells.values()))) if cells else _CALIBRATION
        found = dict(self.probabilities)
        for node in self.counted:
            above = self._rows_of_probabilities(node, cells, rows)
            table = found[node.column]
            if node.column in marginals:
                weights = np.bincount(above, minlength=len(table)) / rows
                table = found[node.column] = _match(table, weights, marginals[node.column])
            cells[node.column] = draw_evenly(table, above, rng)
        return found

    def _rows_of_probabilities(self, node: Node, cells: Mapping[str, IntArray], n: int) -> IntArray:
        axes = node.axes(self.schema)[1:]
        above = [self._coarser(axis, cells[axis.column]) for axis in axes]
        return cell_numbers(above, axes, n)

    def _coarser(self, axis: Axis, cells: IntArray) -> IntArray:
        """Move the drawn cells of a column to a coarser level."""
        own = self.axes[axis.column]
        return np.asarray(axis.leaf_to_cell[own.leaf_starts[:-1]][cells])


def _match(table: FloatArray, weights: FloatArray, marginal: FloatArray) -> FloatArray:
    """Scale probabilities (rows) by cells (columns) until their weighted sum is `marginal`."""
    found = (1 - _LEAST) * table + _LEAST * marginal
    for _ in range(_ROUNDS):
        sums = weights @ found
        found = found * np.divide(marginal, sums, out=np.ones_like(sums), where=sums > 0)
        totals = found.sum(axis=1, keepdims=True)
        found = np.divide(found, totals, out=np.tile(marginal, (len(found), 1)), where=totals > 0)
    return found
