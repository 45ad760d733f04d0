"""Choose a network's parents one column at a time, by how strongly they predict it."""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from dpublish.aggregates.cells import ColumnSet
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.dependence import Score
from dpublish.core.method import Progress
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.mechanisms.selection import select
from dpublish.methods.privbayes.nodes import Node
from dpublish.methods.privbayes.plan import Parents, Plan, parent_sets
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

MOST_CANDIDATES = 2_000
_CELLS_PER_PASS = 1 << 22


def choose_network(
    table: Table,
    plan: Plan,
    *,
    schema: Schema,
    first: Sequence[str] = (),
    score: Score,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
) -> tuple[Node, ...]:
    """Choose the network, beginning with the columns `first` (any one column, if none).

    These depend on nothing.  `schema` has the levels of which the plan speaks; it may be
    another than the table's, over the same leaves, if it follows from earlier releases.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: one
        selection for each column after the first, each with an equal share.  Candidates
        follow from the plan (public, or of earlier releases) and from earlier choices; one
        record pulls two of their scores apart by at most `score.sensitivity_range` steps
        (docs/proofs/bayes_network.md).  Scores are remembered within this call and never
        published.
    """
    names = list(plan.levels)
    start = first or (names[int(uniform_below(len(names), 1, rng)[0])],)
    budgets = budget.split_evenly(len(names) - len(start))
    nodes = [Node(name, plan.own(name)[0]) for name in start]
    scores: dict[Node, int] = {}
    for done, share in enumerate(budgets, start=1):
        candidates = _thin(_candidates(nodes, plan), rng)
        _measure(table, schema, [c for c in candidates if c not in scores], score, names, scores)
        chosen = select(
            np.array([scores[candidate] for candidate in candidates], dtype=np.int64),
            sensitivity_range=score.sensitivity_range,
            budget=share,
            rng=rng,
        )
        nodes.append(candidates[chosen])
        if progress is not None:
            progress(done, len(budgets), "network")
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


def _thin(candidates: list[Node], rng: RandomSource) -> list[Node]:
    """Keep a random few of too many candidates; probability decides, not the rows."""
    if len(candidates) <= MOST_CANDIDATES:
        return candidates
    order = np.argsort(rng.words(len(candidates)), kind="stable")[:MOST_CANDIDATES]
    return [candidates[place] for place in np.sort(order)]


def _measure(
    table: Table,
    schema: Schema,
    candidates: Sequence[Node],
    score: Score,
    columns: Sequence[str],
    scores: dict[Node, int],
) -> None:
    """Score candidates, many in one pass over the rows."""
    for part in _passes(schema, candidates):
        sets: tuple[ColumnSet, ...] = tuple(node.columns for node in part)
        kernel = CompleteCounts(schema, sets, tuple(columns))
        for node, counts in zip(part, kernel.split(table.sum(kernel)), strict=True):
            scores[node] = score.measure(counts.reshape(counts.shape[0], -1))


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
