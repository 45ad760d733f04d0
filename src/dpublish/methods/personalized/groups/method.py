"""Personalized methods that publish group by group: their settings, plans and releases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Literal

import numpy as np

from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.personalized.groups.optimizer import GroupVariance
from dpublish.methods.personalized.groups.plan import (
    LEAST_LEFT,
    Grouping,
    Objective,
    PlannedGroup,
    plan_rounds,
    weigh,
)
from dpublish.methods.personalized.method import (
    ASSUMED_PEOPLE,
    PersonalMethod,
    inner_release,
    known_sizes,
    level_counts,
    personal_receipt,
)
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.released_parts import Part
from dpublish.privacy.amplification import sampling_rate
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_short

Plan = tuple[PlannedGroup, ...]


@dataclass(frozen=True, kw_only=True)
class GroupMethod(PersonalMethod):
    """Settings of methods that run `inner` on each of several groups of levels.

    Parameters:
        objective: `"utility"` forms the most precise groups, `"privacy"` those that waste least
            of people's numbers.
        within: What a group spends: `"auto"`, `"weigh"`, `"draw"` or `"least"`.
        groups: Most groups to form at a time; without it the objective decides.
        least_size: Smallest number of people in a group, where sizes are known.
        noise: A group's variance is noise / (n epsilon)^2 + person_variance / n.
        person_variance: Variance of one person's value, q (1 - q) for counts of a share q.
        size_share: Share of each level's number that measures how many people it has, in the
            mode `"levels"`.
    """

    exchangeable: bool = setting(
        "Assert that levels tell nothing about the other values, nor about who is present.",
        default=False,
    )
    objective: Objective = setting(
        "Form the most precise groups (utility) or those that waste least of people's numbers "
        "(privacy).",
        default="utility",
    )
    within: Literal["auto", "weigh", "draw", "least"] = setting(
        "What a group spends: the least of its levels (least), or the level that is most precise, "
        "while people below it are drawn with the probability that their level allows (draw), or "
        "count by what they accept (weigh: partitioning of histograms, in one group). auto takes "
        "what serves best.",
        default="auto",
    )
    groups: int | None = setting(
        "Most groups to form at a time; without it the objective decides.", default=None
    )
    least_size: int = setting(
        "Smallest number of people in a group, where sizes are known.", default=500
    )
    noise: Fraction = setting(
        "A group's variance is noise / (n epsilon)^2 + person_variance / n; 2 for counts.",
        default=Fraction(2),
    )
    person_variance: Fraction = setting(
        "Variance of one person's value; q (1 - q) for counts of a share q, at most 1/4.",
        default=Fraction(1, 4),
    )
    size_share: Fraction = setting(
        "Share of each level's number that measures how many people it has, with noise; in the "
        "mode levels only. 0 takes the levels to be equally frequent.",
        default=Fraction(1, 20),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(least_size=self.least_size, at_least=0)
        if self.groups is not None:
            require_count(groups=self.groups)
        if not 0 <= self.size_share < 1:
            raise InvalidParameter("size_share must be at least 0 and below 1")
        _ = self.grouping  # refuses variances that are none
        if self.within == "draw" and not self._may_draw:
            raise InvalidParameter(
                "people are drawn only with --objective utility and --combine weighted; otherwise "
                "leave --within at auto"
            )

    @property
    def is_summed(self) -> bool:
        """Whether what groups publish is added up, rather than averaged."""
        return False

    @property
    def round_limit(self) -> int:
        """The most rounds that a plan has."""
        return 1

    @property
    def _may_draw(self) -> bool:
        return self.objective == "utility" and not self.is_summed

    @property
    def needs_sizes(self) -> bool:
        """Whether groups depend on sizes; a sum has one group unless more are asked for."""
        return not self.is_summed or (self.objective == "privacy" and self.groups is not None)

    @property
    def measures_sizes(self) -> bool:
        """Whether the release pays for the number of people at each level."""
        return self.mode == "levels" and self.size_share > 0 and self.needs_sizes

    @property
    def knows_sizes(self) -> bool:
        """Whether the release has numbers of people, exact or noisy."""
        return self.mode != "levels" or self.measures_sizes

    @property
    def is_planned_ahead(self) -> bool:
        """Whether groups are public knowledge before any row is read."""
        return self.mode == "frame" or not self.knows_sizes

    @property
    def grouping(self) -> Grouping:
        """How groups are formed; sizes that are not known play no part."""
        variance = GroupVariance(float(self.noise), float(self.person_variance))
        return Grouping(
            objective=self.objective,
            groups=self.groups,
            least_size=self.least_size if self.knows_sizes else 0,
            variance=variance if self.knows_sizes else GroupVariance(variance.noise, 0.0),
            summed=self.is_summed,
            drawing=self.within != "least" and self._may_draw,
        )

    def _for_rows(self, rows: int) -> dict[str, Any]:
        """Let people with several rows vary more than single records do.

        A person of a frame adds up to m to a count, and its square up to m^2.  Where sizes are
        measured they are numbers of rows, of which up to m go together: m for each row.
        """
        return {"person_variance": self.person_variance * rows ** (2 if self.sizes else 1)}

    def available(self, epsilon: Fraction) -> list[Fraction]:
        """Return the epsilon of each level's records in all groups together.

        Less than their share if sizes are measured, half of it if values are exchanged.
        """
        rest = 1 - self.size_share if self.measures_sizes else Fraction(1)
        shares = self.preferences.amounts(epsilon).values()
        return [share * rest / self.halves for share in shares]

    def plan(self, epsilon: Fraction, sizes: Sequence[float]) -> Plan:
        """Form the groups of a release of `epsilon` among so many people at each level."""
        amounts = self.available(epsilon)
        is_certain = not self.measures_sizes
        if any(size > 0 for size in sizes) and (is_certain or not self.is_summed):
            # Levels without people need not hold a group back; a sum leaves no one out in doubt.
            amounts = [
                a if size > 0 else Fraction(0) for a, size in zip(amounts, sizes, strict=True)
            ]
        return plan_rounds(tuple(amounts), tuple(sizes), self.grouping, self.round_limit)

    def public_sizes(self, n_records: int | None = None) -> tuple[float, ...]:
        """Return the number of people at each level; where it is not public, an even guess."""
        if self.mode == "frame":
            return tuple(map(float, self.sizes))
        count = len(self.levels)
        return (ASSUMED_PEOPLE if n_records is None else n_records / count,) * count

    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level pays: what its groups cost, or its share if they are not known."""
        shares = self.preferences.amounts(epsilon)
        if not self.is_planned_ahead:
            return shares
        paid = dict.fromkeys(self.levels, Fraction(0))
        for group in self.plan(epsilon, self.public_sizes()):
            for position, amount in zip(group.members, group.pays, strict=True):
                paid[self.levels[position]] += amount  # nothing is halved: values are not exchanged
        return paid

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of a count of half of all people, and that of the heaviest group."""
        sizes = self.public_sizes(n_records)
        plan = self.plan(epsilon, sizes)
        inner_schema = self.inner_schema(schema)
        for amount in self._possible(plan, epsilon):
            self.inner.expected_error(inner_schema, None, amount)  # refuses what it cannot do
        if self.measures_sizes:
            require_rate(self.size_share * min(self.preferences.amounts(epsilon).values()))
        heaviest = max(plan, key=lambda group: group.weight)
        drawn = round(heaviest.drawn) if self.mode == "frame" or n_records else None
        inner = self.inner.expected_error(inner_schema, drawn, heaviest.epsilon)
        figures = self.figures(plan, sizes, epsilon)
        assumed = (
            "" if self.mode == "frame" else f" if {sum(sizes):,.0f} people are evenly distributed"
        )
        summary = (
            f"{len(plan)} groups; a count is off by about {figures['count_error']:,.1f}{assumed}; "
            f"the heaviest group: {inner.summary}"
        )
        return ExpectedError(summary, figures, target="count_error", is_of_goal=inner.is_of_goal)

    def figures(self, plan: Plan, sizes: Sequence[float], epsilon: Fraction) -> Mapping[str, float]:
        """Predict the root mean square error of counting half of all people, and of its share."""
        people = max(sum(sizes), 1.0)
        variance = self.grouping.variance
        if self.is_summed:
            error = sqrt(sum(variance.noise / float(group.epsilon) ** 2 for group in plan))
        else:
            error = people * sqrt(weigh(plan, sizes, variance).variance)
        share = error / people
        if self.measures_sizes and not self.is_summed:
            error = sqrt(error**2 + sum(self._size_noise(epsilon)) / 4)
        return {"groups": float(len(plan)), "count_error": error, "share_error": share}

    def _size_noise(self, epsilon: Fraction) -> list[float]:
        """Return the variance of the measured size of each level."""
        shares = self.preferences.amounts(epsilon).values()
        return [2 / float(self.size_share * share) ** 2 for share in shares]

    def believed(self, sizes: Sequence[float], epsilon: Fraction) -> tuple[float, ...]:
        """Replace noisy sizes within two standard deviations of 0 by 0.

        A low level pays little for its size, whose noise would drown the people of others.
        """
        noise = self._size_noise(epsilon)
        found = [n if n > 2 * sqrt(v) else 0.0 for n, v in zip(sizes, noise, strict=True)]
        return tuple(found if any(found) else [max(n, 0.0) for n in sizes])

    def _possible(self, plan: Plan, epsilon: Fraction) -> set[Fraction]:
        """List what groups spend; if that is not known yet, the least and the most.

        A later round spends what is left of some level's amount.
        """
        known = {group.epsilon for group in plan}
        if self.is_planned_ahead:
            return known
        amounts = self.available(epsilon)
        least = min(amounts) * (LEAST_LEFT if self.round_limit > 1 else 1)
        return known | {least, max(amounts)}


# --- The release ----------------------------------------------------------------------------------


MEASURED = "the numbers of people at each level are noisy"
UNKNOWN = "the levels were taken to be equally frequent"
ONE_GROUP = "added up, more groups would only add noise, so there is one"


def publish_groups(run: Run, method: GroupMethod) -> PersonalizedRelease:
    """Run the inner method of `method` on each of its groups.

    Privacy:
        As `Partitioning._release` and `TRound._release` argue: groups are planned from public
        or measured sizes, a record's level alone decides in which groups it is, and what they
        cost adds up to what its level pays.
    """
    epsilon = method.epsilon_of(run.budget)
    # Opened before any row is read: a budget that is already used stops here.
    measured = {"sizes": method.size_share} if method.measures_sizes else {}
    budgets = run.split(**measured, groups=1 - sum(measured.values(), Fraction(0)))
    if method.measures_sizes:
        noisy = _measure_sizes(run, method, budget=budgets["sizes"])
        sizes = noisy if method.is_summed else method.believed(noisy, epsilon)
    else:
        sizes = tuple(map(float, known_sizes(run, method) or method.public_sizes()))
    plan = method.plan(epsilon, sizes)
    shares = _share(method, plan, epsilon, budgets["groups"])
    parts = []
    for number, (group, paying) in enumerate(zip(plan, shares, strict=True)):
        parts.append(_publish(run, method, group, paying))
        run.step(number + 1, len(plan), "groups")
    is_weighted = not method.is_summed
    return PersonalizedRelease(
        receipt=personal_receipt(run, method),
        schema=method.preferences.without(run.schema),
        combine="weighted" if is_weighted else "sum",
        parts=tuple(parts),
        notes=_notes(method, plan),
        expected=dict(method.figures(plan, sizes, epsilon)),
        total=float(sum(sizes)) if is_weighted and method.knows_sizes else None,
    )


def _measure_sizes(run: Run, method: GroupMethod, *, budget: Budget) -> tuple[float, ...]:
    """Count the people of each level, with noise by what the level pays for it.

    Privacy:
        A record adds 1 to the count of its own level and to no other (parallel composition).
        The noise there has the rate that the level pays: size_share of its own share.
    """
    amounts = method.preferences.amounts(budget.epsilon)
    budgets = budget.share_groups(
        {f"level-{number}": amount for number, amount in enumerate(amounts.values(), start=1)}
    )
    exact = run.sum(level_counts(method, run.schema))
    noisy = [
        run.add_noise(exact[position : position + 1], sensitivity=1, budget=share)
        for position, share in enumerate(budgets.values())
    ]
    return tuple(np.concatenate(noisy).astype(np.float64).tolist())


def _share(
    method: GroupMethod, plan: Plan, epsilon: Fraction, budget: Budget
) -> list[list[Budget]]:
    """Return the budgets of each group: one from every set of levels that take the same groups.

    A level pays for its groups.  Where it was debited more, as groups were not known, the rest
    is spent on nothing.
    """
    paths: dict[tuple[int, ...], list[int]] = {}
    for position in range(len(method.levels)):
        taken = tuple(i for i, group in enumerate(plan) if position in group.members)
        paths.setdefault(taken, []).append(position)
    if method.is_planned_ahead:
        paths.pop((), None)
    available = method.available(epsilon)
    split: dict[str, dict[str, Fraction]] = {}
    for taken, positions in paths.items():
        costs = {f"group-{i + 1}": _most(plan[i], positions) * method.halves for i in taken}
        if not method.is_planned_ahead:
            held = max(available[position] for position in positions) * method.halves
            costs["rest"] = held - sum(costs.values(), Fraction(0))
        split[_name(positions)] = {name: cost for name, cost in costs.items() if cost}
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


def _most(group: PlannedGroup, positions: Sequence[int]) -> Fraction:
    """Return what the level pays that pays most, of some members of a group."""
    pays = dict(zip(group.members, group.pays, strict=True))
    return max(pays[position] for position in positions)


def _publish(run: Run, method: GroupMethod, group: PlannedGroup, budgets: Sequence[Budget]) -> Part:
    """Run the inner method on the people of a group, or on those drawn."""
    *others, richest = sorted(budgets, key=lambda budget: budget.epsilon)
    for budget in others:
        budget.spend()
    levels = [method.levels[position] for position in group.members]
    rates = {
        level: sampling_rate(paid, group.epsilon)
        for level, paid in zip(levels, group.pays, strict=True)
    }
    if all(rate == 1 for rate in rates.values()):
        people = run.on(method.preferences.group(run.table, levels))
    else:
        people = method.preferences.sample(run, rates, method.inner_reads(run.schema))
    released = inner_release(people, method.inner, richest, group.epsilon, shows_progress=False)
    return Part(
        levels=tuple(levels),
        epsilon=group.epsilon,
        weight=group.weight,
        scale=group.size / group.drawn,
        size=group.size if method.knows_sizes else None,
        release=released,
    )


def _name(positions: Sequence[int]) -> str:
    first, last = positions[0] + 1, positions[-1] + 1
    return f"level-{first}" if len(positions) == 1 else f"levels-{first}-to-{last}"


def _notes(method: GroupMethod, plan: Plan) -> tuple[str, ...]:
    notes = []
    used = {position for group in plan for position in group.members}
    if len(used) < len(method.levels):
        out = [method.levels[b] for b in range(len(method.levels)) if b not in used]
        shown = ", ".join(map(format_short, out)) if len(out) <= 5 else f"{len(out)} levels"
        notes.append(f"left out, as hardly worth their budget or empty: {shown}")
    if any(group.drawn < group.size for group in plan):
        notes.append("people below what their group spends were drawn by their level")
    if method.measures_sizes:
        notes.append(MEASURED)
    elif not method.knows_sizes and method.needs_sizes:
        notes.append(UNKNOWN)
    if method.is_summed and len(plan) == 1:
        notes.append(ONE_GROUP)
    return tuple(notes)
