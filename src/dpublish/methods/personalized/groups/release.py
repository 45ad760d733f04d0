"""Publish from planned groups: open a budget for each, run the inner method, collect the parts."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpublish.core.method import Progress
from dpublish.data.table import Table
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.personalized.groups.method import GroupMethod, Plan
from dpublish.methods.personalized.groups.plan import PlannedGroup
from dpublish.methods.personalized.method import (
    inner_release,
    known_sizes,
    level_counts,
    personal_receipt,
)
from dpublish.methods.personalized.parts import Part
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.privacy.amplification import sampling_rate
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_short
from dpublish.randomness import RandomSource

BOUGHT = "the numbers of people at each level are noisy"
UNKNOWN = "the levels were taken to be equally frequent"
ONE_GROUP = "added up, more groups would only add noise, so there is one"


def publish_groups(
    method: GroupMethod,
    table: Table,
    *,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
) -> PersonalizedRelease:
    """Run the inner method of `method` on each of its groups.

    Privacy:
        As `Partitioning.release` and `TRound.release` argue: groups are planned from public or
        bought sizes, a record's level alone says in which groups it is, and what they cost
        adds up to what its level pays.
    """
    epsilon = method.epsilon_of(budget)
    # Opened before any row is read: a budget that is already used stops here.
    bought = {"sizes": method.size_share} if method.buys_sizes else {}
    budgets = budget.split(**bought, groups=1 - sum(bought.values(), Fraction(0)))
    if method.buys_sizes:
        noisy = _buy_sizes(method, table, budget=budgets["sizes"], rng=rng)
        sizes = noisy if method.is_summed else method.believed(noisy, epsilon)
    else:
        sizes = tuple(map(float, known_sizes(method, table) or method.public_sizes()))
    plan = method.plan(epsilon, sizes)
    shares = _share(method, plan, epsilon, budgets["groups"])
    parts = []
    for number, (group, paying) in enumerate(zip(plan, shares, strict=True)):
        parts.append(_publish(method, group, table, paying, rng))
        if progress is not None:
            progress(number + 1, len(plan), "groups")
    is_weighted = not method.is_summed
    return PersonalizedRelease(
        receipt=personal_receipt(method, epsilon, table.schema, budget=budget, rng=rng),
        schema=method.preferences.without(table.schema),
        combine="weighted" if is_weighted else "sum",
        parts=tuple(parts),
        notes=_notes(method, plan),
        expected=dict(method.figures(plan, sizes, epsilon)),
        total=float(sum(sizes)) if is_weighted and method.knows_sizes else None,
    )


def _buy_sizes(
    method: GroupMethod, table: Table, *, budget: Budget, rng: RandomSource
) -> tuple[float, ...]:
    """Count the people of each level, with noise by what the level pays for it.

    Privacy:
        A record adds 1 to the count of its own level and to no other (parallel composition).
        The noise there has the rate that the level pays: size_share of its own share.
    """
    amounts = method.preferences.amounts(budget.epsilon)
    budgets = budget.share_groups(
        {f"level-{number}": amount for number, amount in enumerate(amounts.values(), start=1)}
    )
    exact = table.sum(level_counts(method, table.schema))
    noisy = [
        add_geometric(exact[place : place + 1], sensitivity=1, budget=share, rng=rng)
        for place, share in enumerate(budgets.values())
    ]
    return tuple(np.concatenate(noisy).astype(np.float64).tolist())


def _share(
    method: GroupMethod, plan: Plan, epsilon: Fraction, budget: Budget
) -> list[list[Budget]]:
    """Give each group its budgets: one from every set of levels that take the same groups.

    A level pays for its groups.  Where it was debited more, as groups were not known, the rest
    is spent on nothing.
    """
    paths: dict[tuple[int, ...], list[int]] = {}
    for place in range(len(method.levels)):
        taken = tuple(i for i, group in enumerate(plan) if place in group.members)
        paths.setdefault(taken, []).append(place)
    if method.is_planned_ahead:
        paths.pop((), None)
    available = method.available(epsilon)
    split: dict[str, dict[str, Fraction]] = {}
    for taken, places in paths.items():
        costs = {f"group-{i + 1}": _most(plan[i], places) * method.halves for i in taken}
        if not method.is_planned_ahead:
            held = max(available[place] for place in places) * method.halves
            costs["rest"] = held - sum(costs.values(), Fraction(0))
        split[_name(places)] = {name: cost for name, cost in costs.items() if cost}
    shares: list[list[Budget]] = [[] for _ in plan]
    opened = budget.share_groups(
        {name: sum(costs.values(), Fraction(0)) for name, costs in split.items()}
    )
    for (taken, _), (name, costs) in zip(paths.items(), split.items(), strict=True):
        children = opened[name].split(**costs)
        for i in taken:
            shares[i].append(children[f"group-{i + 1}"])
        if "rest" in children:
            children["rest"].spend()
    return shares


def _most(group: PlannedGroup, places: Sequence[int]) -> Fraction:
    """Say what the level pays that pays most, of some members of a group."""
    pays = dict(zip(group.members, group.pays, strict=True))
    return max(pays[place] for place in places)


def _publish(
    method: GroupMethod,
    group: PlannedGroup,
    table: Table,
    budgets: Sequence[Budget],
    rng: RandomSource,
) -> Part:
    """Run the inner method on the people of a group, or on those drawn."""
    *others, richest = sorted(budgets, key=lambda budget: budget.epsilon)
    for budget in others:
        budget.spend()
    levels = [method.levels[place] for place in group.members]
    rates = {
        level: sampling_rate(paid, group.epsilon)
        for level, paid in zip(levels, group.pays, strict=True)
    }
    if all(rate == 1 for rate in rates.values()):
        people = method.preferences.group(table, levels)
    else:
        people = method.preferences.sample(table, rates, rng)
    return Part(
        levels=tuple(levels),
        epsilon=group.epsilon,
        weight=group.weight,
        scale=group.size / group.drawn,
        size=group.size if method.knows_sizes else None,
        release=inner_release(method.inner, people, richest, group.epsilon, rng),
    )


def _name(places: Sequence[int]) -> str:
    first, last = places[0] + 1, places[-1] + 1
    return f"level-{first}" if len(places) == 1 else f"levels-{first}-to-{last}"


def _notes(method: GroupMethod, plan: Plan) -> tuple[str, ...]:
    notes = []
    used = {place for group in plan for place in group.members}
    if len(used) < len(method.levels):
        out = [method.levels[b] for b in range(len(method.levels)) if b not in used]
        told = ", ".join(map(format_short, out)) if len(out) <= 5 else f"{len(out)} levels"
        notes.append(f"left out, as hardly worth their budget or empty: {told}")
    if any(group.drawn < group.size for group in plan):
        notes.append("people below what their group spends were drawn by their level")
    if method.buys_sizes:
        notes.append(BOUGHT)
    elif not method.knows_sizes and method.needs_sizes:
        notes.append(UNKNOWN)
    if method.is_summed and len(plan) == 1:
        notes.append(ONE_GROUP)
    return tuple(notes)
