"""Choose and count a network over categories and classes of numbers, for a mixed table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.dependence import Score, shares_score
from dpublish.core.method import Run
from dpublish.data.schema import Schema
from dpublish.methods.dpcopula.released_hybrid import Starts, classed_schema, rank_levels
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.privbayes.network import Node, joint_sets, without
from dpublish.methods.privbayes.structure import Plan, choose_network, make_plan
from dpublish.privacy.budget import Budget

STRUCTURE_SHARE = Fraction(1, 5)
"""Part of the network's budget for choosing its edges; the rest is for the counts."""


class CountedNetwork(NamedTuple):
    """A network, its noisy joint counts, and the classes of the numbers in it."""

    nodes: tuple[Node, ...]
    counts: NDArray[np.int64]
    rate: Fraction
    classes: dict[str, tuple[Starts, ...]]
    apart: bool
    """Whether columns without parents were left to their own marginals."""


def release_network(
    run: Run,
    schema: Schema,
    marginals: Mapping[str, NoisyMarginal],
    *,
    numbers: Sequence[str],
    numbers_first: bool,
    records: float,
    theta: Fraction,
    max_degree: int,
    budget: Budget,
) -> CountedNetwork:
    """Publish a network over the columns of `schema` and its noisy joint counts.

    Args:
        run: The release at work.
        schema: The columns of the network.
        marginals: Released marginals of all columns.
        numbers: Columns that enter by classes of their values, which follow from marginals.
        numbers_first: Whether numbers come first and are not counted.
        records: Number of records, as released before.
        theta: Least average count of a joint cell, in units of its noise.
        max_degree: Most parents of a column.
        budget: Budget to empty.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed, given
        what was released before: classes, plan and the shares in the scores follow from it and
        from the schema.  The network costs its share (`choose_network`); one record moves two
        scores apart by at most `SHARES_RANGE`.  A record lies in one cell of each of the m
        joints, so their counts move by m in all and get two-sided geometric noise of rate
        (their share) / m.  If the records allow no network, its share goes to the counts.
    """
    classes = _classes(schema, marginals, numbers)
    classed = classed_schema(schema, classes)
    given = tuple(numbers) if numbers_first else ()
    plan = _plan(classed, given, classes, records, budget.epsilon, theta, max_degree)
    if plan.degree == 0:
        nodes = tuple(Node(name, plan.own(name)[0]) for name in (*given, *_others(plan, given)))
        share = budget.split(counts=1)["counts"]
    else:
        budgets = budget.split(structure=STRUCTURE_SHARE, counts=1 - STRUCTURE_SHARE)
        nodes = choose_network(
            run,
            plan,
            schema=classed,
            first=given,
            score=_scores(classed, plan, marginals),
            budget=budgets["structure"],
        )
        share = budgets["counts"]
    apart = any(node.parents for node in nodes)
    counted = tuple(node for node in nodes if node.column not in given)
    sets = joint_sets(without(counted, schema.names) if apart else counted)
    kernel = CompleteCounts(classed, sets, schema.names)
    rate = share.epsilon / len(sets)
    counts = run.add_noise(run.sum(kernel), sensitivity=len(sets), budget=share)
    return CountedNetwork(nodes, counts, rate, classes, apart)


def no_network(
    schema: Schema, marginals: Mapping[str, NoisyMarginal], numbers: Sequence[str], rate: Fraction
) -> CountedNetwork:
    """Return the network in which no column depends on another; nothing more is counted."""
    classes = _classes(schema, marginals, numbers)
    columns = classed_schema(schema, classes).columns
    nodes = tuple(Node(column.name, column.height) for column in columns)
    return CountedNetwork(nodes, np.zeros(0, dtype=np.int64), rate, classes, apart=True)


def _classes(
    schema: Schema, marginals: Mapping[str, NoisyMarginal], numbers: Sequence[str]
) -> dict[str, tuple[Starts, ...]]:
    """Cut the values of each number into classes by its released marginal."""
    return {
        name: rank_levels(marginals[name].probabilities, schema[name].axis().ordinary_leaves)
        for name in numbers
    }


def _scores(
    classed: Schema, plan: Plan, marginals: Mapping[str, NoisyMarginal]
) -> dict[str, Score]:
    """Score each column by the distance from its released shares."""
    found = {}
    for name, marginal in marginals.items():
        starts = classed[name].axis(plan.own(name)[0]).leaf_starts[:-1]
        found[name] = shares_score(np.add.reduceat(marginal.probabilities, starts))
    return found


def _plan(
    classed: Schema,
    given: Sequence[str],
    classes: Mapping[str, Sequence[Starts]],
    records: float,
    epsilon: Fraction,
    theta: Fraction,
    max_degree: int,
) -> Plan:
    """Limit the network, and the classes of a number to what leaves room for parents as fine."""
    plan = make_plan(
        classed.columns,
        size=round(records),
        joint_budget=epsilon * (1 - STRUCTURE_SHARE),
        whole_budget=epsilon,
        theta=theta,
        max_degree=max_degree,
        given=len(given),
    )
    most = max(isqrt(max(plan.most_cells, 0)), 2)
    levels = {
        name: [level for level in ladder if level[1] <= most] or [ladder[0]]
        if name in classes
        else ladder
        for name, ladder in plan.levels.items()
    }
    return replace(plan, levels=levels)


def _others(plan: Plan, given: Sequence[str]) -> list[str]:
    return [name for name in plan.levels if name not in given]
