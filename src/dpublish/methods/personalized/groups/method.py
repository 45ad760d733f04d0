"""Settings of the personalized methods that publish group by group, and their plans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Literal

from dpublish.core.method import ExpectedError, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.personalized.groups.objectives import GroupVariance
from dpublish.methods.personalized.groups.plan import (
    LEAST_LEFT,
    Grouping,
    Objective,
    PlannedGroup,
    plan_rounds,
    weigh,
)
from dpublish.methods.personalized.method import PersonalMethod

Plan = tuple[PlannedGroup, ...]
ASSUMED_PEOPLE = 1_000
"""People at each level for what is predicted where nobody says how many there are."""


@dataclass(frozen=True, kw_only=True)
class GroupMethod(PersonalMethod):
    """Settings of methods that run `inner` on each of several groups of levels."""

    exchangeable: bool = setting(
        "Assert that levels tell nothing about the other values, nor about who is present.",
        default=False,
    )
    objective: Objective = setting(
        "Form the groups that tell most (utility) or that waste least of people's numbers "
        "(privacy).",
        default="utility",
    )
    within: Literal["auto", "weigh", "draw", "least"] = setting(
        "What a group spends: the least of its levels (least), or the level that tells most, "
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
        "A group's variance is noise / (n epsilon)^2 + spread / n; 2 for counts.",
        default=Fraction(2),
    )
    spread: Fraction = setting(
        "The second part of a group's variance; q (1 - q) for counts of a share q, at most 1/4.",
        default=Fraction(1, 4),
    )
    size_share: Fraction = setting(
        "Share of everybody's number that buys the noisy number of people at each level; in the "
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
        _ = self.grouping  # refuses noise and spread that are none
        if self.within == "draw" and not self._may_draw:
            raise InvalidParameter(
                "people are drawn only for the objective utility, and only where groups are "
                "weighted; otherwise leave within at auto"
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
    def buys_sizes(self) -> bool:
        """Whether the release pays for the number of people at each level."""
        return self.mode == "levels" and self.size_share > 0 and self.needs_sizes

    @property
    def knows_sizes(self) -> bool:
        """Whether the release has numbers of people, exact or noisy."""
        return self.mode != "levels" or self.buys_sizes

    @property
    def is_planned_ahead(self) -> bool:
        """Whether groups are known, to everybody, before any row is read."""
        return self.mode == "frame" or not self.knows_sizes

    @property
    def grouping(self) -> Grouping:
        """How groups are formed; nothing is said of sizes that nobody knows."""
        variance = GroupVariance(float(self.noise), float(self.spread))
        return Grouping(
            objective=self.objective,
            groups=self.groups,
            least_size=self.least_size if self.knows_sizes else 0,
            variance=variance if self.knows_sizes else GroupVariance(variance.noise, 0.0),
            summed=self.is_summed,
            drawing=self.within != "least" and self._may_draw,
        )

    def available(self, epsilon: Fraction) -> list[Fraction]:
        """Say with which epsilon each level's records may be published, in all groups together.

        Less than their share if sizes are bought, half of it if values are exchanged.
        """
        rest = 1 - self.size_share if self.buys_sizes else Fraction(1)
        shares = self.preferences.amounts(epsilon).values()
        return [share * rest / self.halves for share in shares]

    def plan(self, epsilon: Fraction, sizes: Sequence[float]) -> Plan:
        """Form the groups of a release of `epsilon` among so many people at each level."""
        amounts = self.available(epsilon)
        is_certain = not self.buys_sizes
        if any(size > 0 for size in sizes) and (is_certain or not self.is_summed):
            # Levels without people need not hold a group back; a sum leaves out nobody in doubt.
            amounts = [
                a if size > 0 else Fraction(0) for a, size in zip(amounts, sizes, strict=True)
            ]
        return plan_rounds(tuple(amounts), tuple(sizes), self.grouping, self.round_limit)

    def public_sizes(self, n_records: int | None = None) -> tuple[float, ...]:
        """Give the number of people at each level; where it is not public, an even guess."""
        if self.mode == "frame":
            return tuple(map(float, self.sizes))
        count = len(self.levels)
        return (ASSUMED_PEOPLE if n_records is None else n_records / count,) * count

    def spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Say what each level pays: what its groups cost, or its share if they are not known."""
        shares = self.preferences.amounts(epsilon)
        if not self.is_planned_ahead:
            return shares
        paid = dict.fromkeys(self.levels, Fraction(0))
        for group in self.plan(epsilon, self.public_sizes()):
            for place, amount in zip(group.members, group.pays, strict=True):
                paid[self.levels[place]] += amount  # nothing is halved: values are not exchanged
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
        if self.buys_sizes:
            require_rate(self.size_share * min(self.preferences.amounts(epsilon).values()))
        heaviest = max(plan, key=lambda group: group.weight)
        drawn = round(heaviest.drawn) if self.mode == "frame" or n_records else None
        inner = self.inner.expected_error(inner_schema, drawn, heaviest.epsilon)
        figures = self.figures(plan, sizes, epsilon)
        assumed = "" if self.mode == "frame" else f" if {sum(sizes):,.0f} people are evenly spread"
        summary = (
            f"{len(plan)} groups; a count is off by about {figures['count_error']:,.1f}{assumed}; "
            f"the heaviest group: {inner.summary}"
        )
        return ExpectedError(summary, figures, target="count_error")

    def figures(self, plan: Plan, sizes: Sequence[float], epsilon: Fraction) -> Mapping[str, float]:
        """Predict the root mean square error of counting half of all people, and of its share."""
        people = max(sum(sizes), 1.0)
        variance = self.grouping.variance
        if self.is_summed:
            error = sqrt(sum(variance.noise / float(group.epsilon) ** 2 for group in plan))
        else:
            error = people * sqrt(weigh(plan, sizes, variance).variance)
        share = error / people
        if self.buys_sizes and not self.is_summed:
            error = sqrt(error**2 + sum(self._size_noise(epsilon)) / 4)
        return {"groups": float(len(plan)), "count_error": error, "share_error": share}

    def _size_noise(self, epsilon: Fraction) -> list[float]:
        """Give the variance of the bought size of each level."""
        shares = self.preferences.amounts(epsilon).values()
        return [2 / float(self.size_share * share) ** 2 for share in shares]

    def believed(self, sizes: Sequence[float], epsilon: Fraction) -> tuple[float, ...]:
        """Take noisy sizes within two standard deviations of nothing for nobody.

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
