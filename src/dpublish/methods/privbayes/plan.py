"""What a network may look like: how many parents, on which levels.  Nothing here reads rows.

A count is called useful if it holds, on average, at least θ times the scale of its noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, floor, prod

from dpublish.data.column import Column
from dpublish.errors import InvalidParameter

MOST_CELLS = 20_000
MOST_PARENT_SETS = 100_000
Level = tuple[int, int]
"""A level of a column and the number of its cells."""
Parents = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Plan:
    """Limits of a network.

    Attributes:
        degree: Most parents of a node; 0 if no pair of columns can be counted usefully.
        most_cells: Most cells of a node with its parents.
        levels: For each column its levels, coarse to fine; the last is the one it is drawn on.
    """

    degree: int
    most_cells: int
    levels: Mapping[str, Sequence[Level]]

    def own(self, name: str) -> Level:
        """Give the level on which a column is drawn."""
        return self.levels[name][-1]


def make_plan(
    columns: Sequence[Column],
    *,
    size: int,
    joint_budget: Fraction,
    whole_budget: Fraction,
    theta: Fraction,
    max_degree: int,
    target: str | None = None,
    given: int = 0,
) -> Plan:
    """Find the limits for about `size` records.

    `joint_budget` pays for the counts if a structure is bought, `whole_budget` if not.  So
    many columns as are `given` come first and are not counted.
    """
    count = len(columns)
    for degree in range(min(max_degree, affordable_degree(count)), 0, -1):
        most = _useful_cells(size, joint_budget, theta, count - max(degree, given))
        if most >= 2 ** (degree + 1):
            plan = Plan(degree, most, {c.name: _levels(c, most // 2, target) for c in columns})
            if _has_pair(plan):
                return plan
    most = _useful_cells(size, whole_budget, theta, count - given)
    return Plan(0, most, {c.name: _levels(c, most, target) for c in columns})


def affordable_degree(count: int) -> int:
    """Find the most parents for which all candidates can be listed."""
    degree = 0
    while degree + 1 < count and count * comb(count - 1, degree + 1) <= MOST_PARENT_SETS:
        degree += 1
    return degree


def require_countable(column: Column, target: str | None) -> None:
    """Refuse a column that has too many values even on its coarsest level."""
    if _levels(column, 0, target)[0][1] > MOST_CELLS:
        raise InvalidParameter(
            f"column {column.name!r} has more than {MOST_CELLS:,} values; give it fewer bins, or a "
            "taxonomy"
        )


def parent_sets(used: Sequence[str], room: int, plan: Plan) -> list[Parents]:
    """List the sets of at most `degree` of the `used` columns that fit into `room` cells.

    Each set comes once, on levels as fine as fit, and only if no further column fits beside
    it: more parents, or finer ones, never lower the dependence.
    """
    coarsest = {name: plan.levels[name][0][1] for name in used}
    found = []
    for count in range(min(plan.degree, len(used)) + 1):
        for names in combinations(used, count):
            if prod(coarsest[name] for name in names) > room:
                continue
            chosen = _refine([plan.levels[name] for name in names], room)
            cells = prod(size for _, size in chosen)
            others = (coarsest[name] for name in used if name not in names)
            if count < plan.degree and any(cells * other <= room for other in others):
                continue
            found.append(tuple(zip(names, (level for level, _ in chosen), strict=True)))
    return found


def _useful_cells(size: int, budget: Fraction, theta: Fraction, joints: int) -> int:
    return min(floor(max(size, 0) * budget / (theta * joints)), MOST_CELLS)


def _levels(column: Column, most: int, target: str | None) -> Sequence[Level]:
    """List the levels that tell values apart, up to the finest with at most `most` cells."""
    if column.name == target:
        return [(column.height, column.size)]
    every: list[Level] = []
    for level in range(1, column.height + 1):
        size = column.axis(level).size
        if size > (every[-1][1] if every else 1):
            every.append((level, size))
    useful = [x for x in every if x[1] <= most]
    return useful or every[:1] or [(column.height, column.size)]


def _has_pair(plan: Plan) -> bool:
    """Say whether some column can have some other as its parent."""
    return any(
        plan.own(child)[1] * plan.levels[parent][0][1] <= plan.most_cells
        for child in plan.levels
        for parent in plan.levels
        if child != parent
    )


def _refine(levels: Sequence[Sequence[Level]], room: int) -> list[Level]:
    """Refine the coarsest column that can be refined, until nothing more fits."""
    steps = [0] * len(levels)
    open_places = set(range(len(levels)))
    while open_places:
        place = min(open_places, key=lambda p: (levels[p][steps[p]][1], p))
        finer = [ladder[step] for ladder, step in zip(levels, steps, strict=True)]
        if steps[place] + 1 < len(levels[place]):
            finer[place] = levels[place][steps[place] + 1]
            if prod(size for _, size in finer) <= room:
                steps[place] += 1
                continue
        open_places.remove(place)
    return [ladder[step] for ladder, step in zip(levels, steps, strict=True)]
