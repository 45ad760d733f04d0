"""Choose the structure of a network: the limits first, then each column's parents.

The limits (how many parents, at which levels) follow from public facts and the noisy number of
records.  A count is called useful if it holds, on average, at least theta times the scale of its
noise.  Parents are then chosen one column at a time, by how strongly they predict it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, floor, prod

import numpy as np

from dpublish.aggregates.cells import ColumnSet
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.dependence import Score
from dpublish.core.method import Run
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.privbayes.network import Node
from dpublish.privacy.budget import Budget

MOST_CELLS = 20_000
MOST_PARENT_SETS = 100_000
MOST_CANDIDATES = 2_000
MOST_ALONE = 128
"""Up to so many cells, a column is drawn as finely as it can be where it has no parents."""
_MOST_ORDERED = 32
_CELLS_PER_PASS = 1 << 22
Level = tuple[int, int]
"""A level of a column and the number of its cells."""
Parents = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Plan:
    """Limits of a network.

    Attributes:
        degree: Most parents of a node; 0 if no pair of columns can be counted usefully.
        most_cells: Most cells of a node with its parents.
        levels: For each column its levels, coarse to fine; it is drawn from the last one.
    """

    degree: int
    most_cells: int
    levels: Mapping[str, Sequence[Level]]

    def own(self, name: str) -> Level:
        """Return the level from which a column is drawn."""
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

    The counts cost `joint_budget` if parents are chosen, `whole_budget` if not.  The first
    `given` columns come from elsewhere and are not counted.
    """
    count = len(columns)
    for degree in range(min(max_degree, affordable_degree(count)), 0, -1):
        most = _useful_cells(size, joint_budget, theta, count - max(degree, given))
        if most >= 2 ** (degree + 1):
            plan = Plan(degree, most, {c.name: _levels(c, most // 2, target) for c in columns})
            if _has_pair(plan):
                return plan
    most = max(_useful_cells(size, whole_budget, theta, count - given), MOST_ALONE)
    return Plan(0, most, {c.name: _levels(c, most, target) for c in columns})


def records_per_cell(columns: Sequence[Column], size: int, epsilon: Fraction) -> Fraction:
    """Estimate what a marginal's cell would hold, in units of its noise.

    It is the average over all cells, if all of epsilon went to marginals.  Of a column with an
    order at most 32 cells count: neighbors may be added up.

    >>> from dpublish.data.schema import column
    >>> sex = column("sex", "category", values=["F", "M"])
    >>> age = column("age", "integer", bounds=[0, 99])
    >>> records_per_cell([sex, age], 3400, Fraction(1, 10))
    Fraction(10, 1)
    """
    cells = sum(c.size if c.kind == "category" else min(c.size, _MOST_ORDERED) for c in columns)
    return max(size, 0) * epsilon / cells


def affordable_degree(count: int) -> int:
    """Find the most parents for which all candidates can be listed."""
    degree = 0
    while degree + 1 < count and count * comb(count - 1, degree + 1) <= MOST_PARENT_SETS:
        degree += 1
    return degree


def require_countable(column: Column, target: str | None) -> None:
    """Refuse a column that has too many values even at its coarsest level."""
    if _levels(column, 0, target)[0][1] > MOST_CELLS:
        raise InvalidParameter(
            f"column {column.name!r} has more than {MOST_CELLS:,} values; give it fewer bins, or a "
            "taxonomy"
        )


def parent_sets(used: Sequence[str], room: int, plan: Plan) -> list[Parents]:
    """List the sets of at most `degree` of the `used` columns that fit into `room` cells.

    Each set comes once, at levels as fine as fit, and only if no further column fits beside
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
    """List the levels that refine the one before, up to the finest with at most `most` cells."""
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
    """Check whether some column can have some other as its parent."""
    return any(
        plan.own(child)[1] * plan.levels[parent][0][1] <= plan.most_cells
        for child in plan.levels
        for parent in plan.levels
        if child != parent
    )


def _refine(levels: Sequence[Sequence[Level]], room: int) -> list[Level]:
    """Refine the coarsest column that can be refined, until nothing more fits."""
    steps = [0] * len(levels)
    refinable = set(range(len(levels)))
    while refinable:
        index = min(refinable, key=lambda i: (levels[i][steps[i]][1], i))
        finer = [ladder[step] for ladder, step in zip(levels, steps, strict=True)]
        if steps[index] + 1 < len(levels[index]):
            finer[index] = levels[index][steps[index] + 1]
            if prod(size for _, size in finer) <= room:
                steps[index] += 1
                continue
        refinable.remove(index)
    return [ladder[step] for ladder, step in zip(levels, steps, strict=True)]


# --- The choice of parents ---------------------------------------------------------------------


def choose_network(
    run: Run,
    plan: Plan,
    *,
    schema: Schema,
    first: Sequence[str] = (),
    score: Score | Mapping[str, Score],
    budget: Budget,
) -> tuple[Node, ...]:
    """Choose the network, beginning with the columns `first` (any one column, if none).

    These depend on no other column.  Columns may have different scores, with the same range.
    `schema` has the levels that the plan names; it may
    differ from the table's, with the same values, if it follows from earlier releases.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: one
        selection for each column after the first, each with an equal share.  Candidates
        follow from the plan (public, or of earlier releases) and from earlier choices; one
        record changes the difference of two scores by at most their `sensitivity_range` steps
        (docs/proofs/bayes_network.md).  Scores are remembered within this call and never
        published.
    """
    names = list(plan.levels)
    scored = dict.fromkeys(names, score) if isinstance(score, Score) else score
    widest = max(one.sensitivity_range for one in scored.values())
    start = first or (names[int(run.uniform_integers(len(names), 1)[0])],)
    budgets = budget.split_evenly(len(names) - len(start))
    nodes = [Node(name, plan.own(name)[0]) for name in start]
    scores: dict[Node, int] = {}
    for done, share in enumerate(budgets, start=1):
        candidates = _thin(_candidates(nodes, plan), run)
        _measure(run, schema, [c for c in candidates if c not in scores], scored, names, scores)
        chosen = run.select(
            np.array([scores[candidate] for candidate in candidates], dtype=np.int64),
            sensitivity_range=widest,
            budget=share,
        )
        nodes.append(candidates[chosen])
        run.step(done, len(budgets), "network")
    return tuple(nodes)


def _candidates(nodes: Sequence[Node], plan: Plan) -> list[Node]:
    """List the unused columns with the sets of parents that fit them."""
    used = [node.column for node in nodes]
    by_room: dict[int, list[Parents]] = {}
    found = []
    for name in plan.levels:
        if name in used:
            continue
        level, size = plan.own(name)
        room = plan.most_cells // size
        if room not in by_room:
            by_room[room] = parent_sets(used, room, plan)
        found += [Node(name, level, parents) for parents in by_room[room] or [()]]
    return found


def _thin(candidates: list[Node], run: Run) -> list[Node]:
    """Keep a random few of too many candidates; no record decides which."""
    if len(candidates) <= MOST_CANDIDATES:
        return candidates
    kept = run.random_order(len(candidates))[:MOST_CANDIDATES]
    return [candidates[index] for index in np.sort(kept)]


def _measure(
    run: Run,
    schema: Schema,
    candidates: Sequence[Node],
    scored: Mapping[str, Score],
    columns: Sequence[str],
    scores: dict[Node, int],
) -> None:
    """Score candidates, many in one pass over the rows."""
    for part in _passes(schema, candidates):
        sets: tuple[ColumnSet, ...] = tuple(node.columns for node in part)
        kernel = CompleteCounts(schema, sets, tuple(columns))
        for node, counts in zip(part, kernel.split(run.sum(kernel)), strict=True):
            measure = scored[node.column].measure
            scores[node] = measure(counts.reshape(counts.shape[0], -1))


def _passes(schema: Schema, candidates: Sequence[Node]) -> Iterator[list[Node]]:
    """Cut the candidates so that the counts of one pass stay small."""
    part: list[Node] = []
    cells = 0
    for node in candidates:
        size = prod(axis.size for axis in node.axes(schema))
        if part and cells + size > _CELLS_PER_PASS:
            yield part
            part, cells = [], 0
        part.append(node)
        cells += size
    if part:
        yield part
