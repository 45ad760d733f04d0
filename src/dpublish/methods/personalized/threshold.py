"""Publish from the people who accept at least a certain epsilon, and leave the others out.

Known as: Threshold, the second baseline of personalized differential privacy.
Reference: Z. Jorgensen, T. Yu and G. Cormode, "Conservative or liberal? Personalized
differential privacy", ICDE 2015.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import ExpectedError, Progress, Run, setting
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.method import (
    PersonalMethod,
    inner_release,
    known_sizes,
    personal_receipt,
)
from dpublish.methods.personalized.released import Part, PersonalizedRelease
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_short
from dpublish.randomness import RandomSource

NOT_SCALED = "answers are about the people of these levels only"
SCALED = (
    "answers are scaled up to all eligible people: the owner asserts that levels tell nothing "
    "about the other values"
)


@dataclass(frozen=True, kw_only=True)
class Threshold(PersonalMethod):
    """Method: run `inner` on everybody at or above a level, with that level's epsilon."""

    name: ClassVar[str] = "threshold"

    threshold: Fraction = setting(
        "One of the levels: people at or above it are used, with its epsilon; others are not."
    )
    exchangeable: bool = setting(
        "Assert that levels tell nothing about the other values: counts are then scaled up to "
        "all eligible people, whose number at each level must be public.",
        default=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold not in self.levels:
            raise InvalidParameter(
                f"threshold ({format_short(self.threshold)}) must be one of the levels"
            )
        if self.exchangeable:
            require_scalable(self, self.threshold)

    def spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Say what each level pays: those below the threshold nothing, the others its share."""
        return group_spending(self, self.threshold, epsilon)

    def _release(self, run: Run) -> PersonalizedRelease:
        """Publish from the records at or above the threshold.

        Privacy:
            A record of level e loses at most what `spending` says there: nothing below the
            threshold t, since a public rule on the record alone leaves it out, and a_t <= a_e
            at or above it, where `inner` hides one record added or removed with epsilon a_t.
            With `values-only` a record's values are exchanged, which is a removal and an
            addition: `inner` then runs with a_t / 2.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        parts = (self.threshold, self.exchangeable)
        return publish_group(self, *parts, table=table, budget=budget, rng=rng, progress=progress)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of `inner` on the people at or above the threshold."""
        return group_error(self, self.threshold, schema, n_records, epsilon)


def group_spending(
    method: PersonalMethod, lowest: Fraction, epsilon: Fraction
) -> dict[Fraction, Fraction]:
    """Let every level from `lowest` on pay the share of `lowest`."""
    shares = method.preferences.amounts(epsilon)
    return {level: shares[lowest] if level >= lowest else Fraction(0) for level in method.levels}


def publish_group(
    method: PersonalMethod,
    lowest: Fraction,
    exchangeable: bool,
    *,
    table: Table,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None,
) -> PersonalizedRelease:
    """Run the inner method on the records from level `lowest` on, with its share.

    Privacy:
        As `Threshold.release` argues: a public rule picks the records, and every record in the
        group has a share of at least what the group spends.
    """
    epsilon = method.epsilon_of(budget)
    levels = tuple(level for level in method.levels if level >= lowest)
    # Opened before any row is read: a share that is already used stops here.
    share = budget.split(group=1)["group"]
    sizes = known_sizes(method, table)
    amount = share.epsilon / method.halves
    group = method.preferences.group(table, levels)
    published = inner_release(method.inner, group, share, amount, rng, progress)
    size = None if sizes is None else float(sum(sizes[-len(levels) :]))
    scale = 1.0
    if exchangeable and sizes is not None and size:
        scale = sum(sizes) / size
    told = ", ".join(map(format_short, levels)) if len(levels) <= 5 else "the upper levels"
    return PersonalizedRelease(
        receipt=personal_receipt(method, epsilon, table.schema, budget=budget, rng=rng),
        schema=method.preferences.without(table.schema),
        combine="sum",
        parts=(
            Part(
                levels=levels,
                epsilon=amount,
                weight=1.0,
                scale=scale,
                size=size,
                release=published,
            ),
        ),
        notes=(f"levels used: {told}", SCALED if exchangeable else NOT_SCALED),
        expected=dict(method.expected_error(table.schema, None, epsilon).figures),
    )


def group_error(
    method: PersonalMethod,
    lowest: Fraction,
    schema: Schema,
    n_records: int | None,
    epsilon: Fraction,
) -> ExpectedError:
    """Predict the error of the inner method on the records from level `lowest` on."""
    amount = method.spending(epsilon)[lowest] / method.halves
    used = sum(level >= lowest for level in method.levels)
    everybody = sum(method.sizes)
    if n_records is not None and everybody > 0:
        n_records = n_records * sum(method.sizes[-used:]) // everybody
    inner = method.inner.expected_error(method.inner_schema(schema), n_records, amount)
    share = f"{used} of {len(method.levels)} levels with epsilon {format_short(amount)}"
    return ExpectedError(f"{share}: {inner.summary}", inner.figures, inner.target)


def require_scalable(method: PersonalMethod, lowest: Fraction) -> None:
    """Refuse to scale up to all people where their number is not public."""
    if method.mode == "levels":
        raise InvalidParameter(
            "exchangeable scales up to all people, so their number at each level must be "
            "public: give sizes, or use the mode values-only"
        )
    chosen = [
        size for level, size in zip(method.levels, method.sizes, strict=False) if level >= lowest
    ]
    if method.mode == "frame" and not sum(chosen):
        raise InvalidParameter("nobody is eligible at the levels used, so nothing can be scaled up")
