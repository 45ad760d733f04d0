"""Growing a private tree, one level of all branches at a time, by a public plan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from dpublish.core.run import Run
from dpublish.data.axis import Axis
from dpublish.methods.trees.kernels import MAX_CELLS, TreeCounts, cells_per_node
from dpublish.methods.trees.splits import CellScore, Room, Split, score_splits
from dpublish.methods.trees.tree import Branches, Routes
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

LEAF_WEIGHT = 2
"""Shares that the counts of the deepest leaves get, where a choice gets one."""


@dataclass(frozen=True)
class Plan:
    """The public settings of a tree.

    Attributes:
        axes: The predictors, each on the level that it may be split into.
        target: Column of the classes.
        classes: How many there are.
        depth: Most splits on any path.
        score: What makes a good split.
        staged: Whether each number column first chooses its cut, with a share of its own.
    """

    axes: tuple[Axis, ...]
    target: str
    classes: int
    depth: int
    score: CellScore
    staged: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the predictors."""
        return tuple(axis.column for axis in self.axes)

    @property
    def choice_weight(self) -> int:
        """Shares that a node's choice of a split gets."""
        return 1 + (sum(axis.edges is not None for axis in self.axes) if self.staged else 0)

    def weight_from(self, depth: int) -> int:
        """Count the shares that a path gets from a node at `depth` down to its leaf."""
        return (1 + self.choice_weight) * (self.depth - depth) + LEAF_WEIGHT

    def share(self, epsilon: Fraction) -> Fraction:
        """Compute one share of `epsilon`."""
        return epsilon / self.weight_from(0)

    def count_rates(self, epsilon: Fraction) -> tuple[Fraction, ...]:
        """Compute the noise rates of the counts of leaves, by depth: all their path has left."""
        above = [self.weight_from(depth) - 1 for depth in range(self.depth)]
        return tuple(self.share(epsilon) * weight for weight in (*above, LEAF_WEIGHT))


def goes_on(room: Room, noisy_size: int, classes: int, share: Fraction) -> bool:
    """Decide whether a node is large enough to be split, from its noisy size.

    Divided evenly among the cells of a usual split and all classes, its records must be at
    least the standard deviation of the noise that one share adds to a count: sqrt(2) / share.
    """
    if not room.splits or noisy_size <= 0:
        return False
    # Squared, so that it is exact.
    return (noisy_size * share) ** 2 >= 2 * (room.usual_branches * classes) ** 2


@dataclass(frozen=True, eq=False)
class Node:
    """A node that is not settled yet, with exact and therefore private counts.

    Attributes:
        number: Its number in the tree.
        room: What it can still split.
        classes: Counts by class.
        counts: Counts by code and class, for each column; None until they are needed.
    """

    number: int
    room: Room
    classes: IntArray = field(repr=False)
    counts: Mapping[str, IntArray] | None = field(default=None, repr=False)


@dataclass
class Growth:
    """The public tree as far as it has grown; nodes are numbered level by level."""

    parents: list[int] = field(default_factory=lambda: [-1])
    branches: dict[int, Branches] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    counts: dict[int, IntArray] = field(default_factory=dict)

    def branch(self, number: int, split: Split) -> range:
        """Add children to the node `number`, and return their numbers."""
        first = len(self.parents)
        self.branches[number] = Branches(split.column, split.starts, first)
        self.parents += [number] * len(split.starts)
        return range(first, len(self.parents))


def grow(run: Run, plan: Plan, *, budget: Budget) -> Growth:
    """Grow a tree from its root, level by level, and count the classes in its leaves.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  Routes
        are public, so a record lies in one node of each level.  A level measures one after
        the other: the sizes of its nodes (one vector, of which the record changes one entry, by
        1); then counts by class for the nodes that stop (one vector again), beside a choice
        for each of those that go on, which hold other records.  Nodes stop by noisy sizes
        and public facts only.  So a path from the root to a leaf spends epsilon and no more,
        and disjoint parts cost the largest.  Proof: docs/proofs/diffpid3.md.
    """
    growth = Growth()
    share = plan.share(budget.epsilon)
    rest = budget
    level: Sequence[Node] = ()
    for depth in range(plan.depth):
        # Opened before the level is looked at: at the root, before the first row is read.
        budgets = rest.split(sizes=1, below=plan.weight_from(depth) - 1)
        level = level or [_root(run, plan)]
        _publish_sizes(run, growth, level, budget=budgets["sizes"])
        going = [node for node in level if _goes_on(node, growth, share)]
        stopped = [node for node in level if not _goes_on(node, growth, share)]
        below = _part(budgets["below"], leaves=stopped, inner=going)
        if stopped:
            _publish_counts(run, growth, stopped, budget=below["leaves"])
        run.step(depth + 1, plan.depth, "tree")
        if not going:
            return growth
        inner = below["inner"].split(choices=plan.choice_weight, below=plan.weight_from(depth + 1))
        level = _branch(run, plan, growth, going, budget=inner["choices"])
        rest = inner["below"]
    _publish_counts(run, growth, level, budget=rest)
    return growth


def choose(run: Run, node: Node, plan: Plan, *, budget: Budget) -> Split:
    """Choose a split of `node`, all columns at once or, staged, in two steps.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The
        splits are public.  Adding a record to a node changes one cell of every split, so
        the scores move by amounts that lie within the range sensitivity of the cell score
        (`CellScore`), and `select` costs what it is given.  Staged, each number column
        chooses its best cut with a share, and the last share chooses among the columns.
    """
    counts = node.counts or {}
    options = node.room.splits
    scores = {
        column: score_splits(splits, counts[column], plan.score)
        for column, splits in options.items()
    }
    widest = plan.score.sensitivity_range
    share = budget
    if plan.staged:
        several = [column for column, splits in options.items() if len(splits) > 1]
        weights = {f"cut-{column}": 1 for column in several}
        budgets = budget.split(**weights, column=plan.choice_weight - len(several))
        for column in several:
            cut_budget = budgets[f"cut-{column}"]
            best = run.select(scores[column], sensitivity_range=widest, budget=cut_budget)
            options = {**options, column: (options[column][best],)}
            scores[column] = scores[column][best : best + 1]
        share = budgets["column"]
    listed = [split for splits in options.values() for split in splits]
    every = np.concatenate(list(scores.values()))
    return listed[run.select(every, sensitivity_range=widest, budget=share)]


def _goes_on(node: Node, growth: Growth, share: Fraction) -> bool:
    return goes_on(node.room, growth.sizes[node.number], node.classes.size, share)


def _part(budget: Budget, **parts: Sequence[Node]) -> Mapping[str, Budget]:
    """Share a budget over disjoint sets of nodes, those that are not empty."""
    return budget.share_disjoint(name for name, nodes in parts.items() if nodes)


def _publish_sizes(run: Run, growth: Growth, nodes: Sequence[Node], *, budget: Budget) -> None:
    """Add noise to the sizes of nodes.

    Privacy:
        That of `run.add_noise`: a record lies in one of the nodes at most, so the sizes
        change by 1 in all.
    """
    exact = np.array([node.classes.sum() for node in nodes])
    noisy = run.add_noise(exact, sensitivity=1, budget=budget)
    growth.sizes |= {node.number: int(size) for node, size in zip(nodes, noisy, strict=True)}


def _publish_counts(run: Run, growth: Growth, nodes: Sequence[Node], *, budget: Budget) -> None:
    """Add noise to the class counts of leaves.

    Privacy:
        That of `run.add_noise`: a record lies in one of the leaves at most and has one
        class, so the counts change by 1 in all.
    """
    exact = np.stack([node.classes for node in nodes])
    noisy = run.add_noise(exact, sensitivity=1, budget=budget)
    growth.counts |= {node.number: row for node, row in zip(nodes, noisy, strict=True)}


def _branch(
    run: Run, plan: Plan, growth: Growth, nodes: Sequence[Node], *, budget: Budget
) -> list[Node]:
    """Choose a split for each node, and return the children.

    Privacy:
        Each node's choice is paid for in full by `choose`; no two nodes can hold the same
        record, for records are routed by the public tree, so the choices cost the largest.
    """
    budgets = budget.share_disjoint(f"node-{node.number}" for node in nodes)
    children = []
    for node in _counted(run, plan, growth, nodes):
        split = choose(run, node, plan, budget=budgets[f"node-{node.number}"])
        cells = split.cells((node.counts or {})[split.column])
        below = zip(growth.branch(node.number, split), node.room.below(split), cells, strict=True)
        children += [Node(number, room, classes) for number, room, classes in below]
    return children


def _root(run: Run, plan: Plan) -> Node:
    counts = next(_count(run, plan, {}, (0,)))
    return Node(0, Room(plan.axes), counts[plan.columns[0]].sum(axis=0), counts)


def _counted(run: Run, plan: Plan, growth: Growth, nodes: Sequence[Node]) -> Iterator[Node]:
    """Count the records of nodes by code and class, in one pass or as many as memory takes."""
    if nodes[0].counts is not None:
        yield from nodes
        return
    room = max(1, MAX_CELLS // cells_per_node(run.schema, plan.columns, plan.target))
    routes = dict(growth.branches)  # as they are now: the tree grows while they are counted
    for start in range(0, len(nodes), room):
        part = nodes[start : start + room]
        numbers = tuple(node.number for node in part)
        every = _count(run, plan, routes, numbers)
        yield from (replace(node, counts=counts) for node, counts in zip(part, every, strict=True))


def _count(
    run: Run, plan: Plan, branches: Mapping[int, Branches], nodes: tuple[int, ...]
) -> Iterator[Mapping[str, IntArray]]:
    """Count by code and class in each of `nodes`, in one pass over the rows."""
    kernel = TreeCounts(Routes(run.schema, branches), nodes, plan.columns, plan.target)
    by_column = kernel.split(run.sum(kernel))
    for index in range(len(nodes)):
        yield {column: counts[index] for column, counts in by_column.items()}
