"""The public plan of a private tree: its depth, its shares of epsilon, and when a node stops."""

from dataclasses import dataclass
from fractions import Fraction

from dpublish.data.axis import Axis
from dpublish.methods.trees.scores import CellScore
from dpublish.methods.trees.splits import Room

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
        """Shares that a path gets from a node at `depth` down to its leaf."""
        return (1 + self.choice_weight) * (self.depth - depth) + LEAF_WEIGHT

    def share(self, epsilon: Fraction) -> Fraction:
        """What one share of `epsilon` is worth."""
        return epsilon / self.weight_from(0)

    def count_rates(self, epsilon: Fraction) -> tuple[Fraction, ...]:
        """Noise rates of the counts of leaves, by depth: all that is left of their path."""
        above = [self.weight_from(depth) - 1 for depth in range(self.depth)]
        return tuple(self.share(epsilon) * weight for weight in (*above, LEAF_WEIGHT))


def goes_on(room: Room, noisy_size: int, classes: int, share: Fraction) -> bool:
    """Say whether a node is large enough to be split.

    Spread over the cells of a usual split and over all classes, its records must not be fewer
    than the noise of a count that one share buys: a standard deviation of sqrt(2) / share.
    """
    if not room.splits or noisy_size <= 0:
        return False
    # Squared, so that it is exact.
    return (noisy_size * share) ** 2 >= 2 * (room.usual_branches * classes) ** 2
