"""Threshold: publish from the people who accept at least a certain epsilon."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.method import (
    EXCHANGEABLE_COUNTS,
    PersonalMethod,
    inner_release,
    known_sizes,
    personal_receipt,
)
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.released_parts import Part
from dpublish.privacy.epsilon import format_short

NOT_SCALED = "answers are about the people of these levels only"
SCALED = (
    "answers are scaled up to all eligible people: the owner asserts that levels tell nothing "
    "about the other values"
)


@dataclass(frozen=True, kw_only=True)
class Threshold(PersonalMethod):
    """Publish from the people at or above one level, with that level's epsilon.

    The second baseline of personalized differential privacy: people below the threshold are
    left out and lose nothing.  Choose it when few people are below the threshold, or when only
    the people above it are of interest.  Choose `Sampling` to use some of the people below,
    and `Partitioning` when no threshold is obvious.

    Guarantee:
        Personalized pure differential privacy for one record added or removed (or its values
        exchanged, in the mode `values-only`): a record below the threshold loses nothing, any
        other one the share of the threshold.

    Parameters:
        preference, levels, mode, sizes, rule, derived: How much each person accepts, and what is
            public about it; see `PersonalSettings`.
        exchangeable: Asserts that levels tell nothing about the other values, so that counts
            are scaled up to all eligible people.
        inner: Method to run on the people used, with its settings.
        threshold: One of the levels; people at or above it are used.

    Returns:
        A `PersonalizedRelease` with one part, the people used; it answers what `inner` answers.

    Example:
        >>> from dpublish import datasets, make_method, seeded
        >>> settings = {"inner": "histogram columns=sex", "threshold": "1", "levels": "0.1,1"}
        >>> by_region = {"preference": "region", "rule": "North=0.1, *=1", "derived": True}
        >>> method = make_method("threshold", settings | by_region)
        >>> people = datasets.table("census", 10_000)
        >>> release = method.release(people, budget=method.budget(1), rng=seeded(7))
        >>> print(release.count("sex = Female"))
        4,070 (95 % confidence interval 4,067 to 4,073)
        >>> release.notes[-1]
        'answers are about the people of these levels only'

    Reference:
        Jorgensen, Yu and Cormode (ICDE 2015), section 4, as for `Minimum`.
    """

    name: ClassVar[str] = "threshold"
    proofs: ClassVar[tuple[str, ...]] = ("exact",)
    publishes: ClassVar[str] = "the release of another method for the people at or above one level"
    prefer_when: ClassVar[str] = "few people are below that level"

    threshold: Fraction = setting(
        "One of the levels: people at or above it are used, with its epsilon; others are not."
    )
    exchangeable: bool = setting(EXCHANGEABLE_COUNTS, default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold not in self.levels:
            raise InvalidParameter(
                f"threshold ({format_short(self.threshold)}) must be one of the levels"
            )
        if self.exchangeable:
            require_scalable(self, self.threshold)

    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level pays: those below the threshold nothing, the others its share."""
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
        return publish_group(run, self, self.threshold, exchangeable=self.exchangeable)

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
    run: Run, method: PersonalMethod, lowest: Fraction, *, exchangeable: bool
) -> PersonalizedRelease:
    """Run the inner method on the records from level `lowest` on, with its share.

    Privacy:
        As `Threshold._release` argues: a public rule picks the records, and every record in
        the group has a share of at least what the group spends.
    """
    levels = tuple(level for level in method.levels if level >= lowest)
    # Opened before any row is read: a share that is already used stops here.
    share = run.split(group=1)["group"]
    sizes = known_sizes(run, method)
    amount = share.epsilon / method.halves
    group = run.on(method.preferences.group(run.table, levels))
    published = inner_release(group, method.inner, share, amount)
    size = None if sizes is None else float(sum(sizes[-len(levels) :]))
    scale = 1.0
    if exchangeable and sizes is not None and size:
        scale = sum(sizes) / size
    shown = ", ".join(map(format_short, levels)) if len(levels) <= 5 else "the upper levels"
    notes = (f"levels used: {shown}", SCALED if exchangeable else NOT_SCALED)
    part = Part(
        levels=levels, epsilon=amount, weight=1.0, scale=scale, size=size, release=published
    )
    return one_part(run, method, part, notes)


def one_part(
    run: Run, method: PersonalMethod, part: Part, notes: tuple[str, ...]
) -> PersonalizedRelease:
    """Make the release of a method that runs `inner` once, when the whole budget is spent."""
    return PersonalizedRelease(
        receipt=personal_receipt(run, method),
        schema=method.preferences.without(run.schema),
        combine="sum",
        parts=(part,),
        notes=notes,
        expected=run.expected,
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
    eligible = sum(method.sizes)
    if n_records is not None and eligible > 0:
        n_records = n_records * sum(method.sizes[-used:]) // eligible
    inner = method.inner.expected_error(method.inner_schema(schema), n_records, amount)
    share = f"{used} of {len(method.levels)} levels with epsilon {format_short(amount)}"
    summary = f"{share}: {inner.summary}"
    return ExpectedError(summary, inner.figures, inner.target, inner.is_of_goal)


def require_scalable(method: PersonalMethod, lowest: Fraction) -> None:
    """Refuse to scale up to all people where their number is not public."""
    if method.mode == "levels":
        raise InvalidParameter(
            "--exchangeable scales up to all people, so their number at each level must be "
            "public: give --sizes, or use --mode values-only"
        )
    chosen = [
        size for level, size in zip(method.levels, method.sizes, strict=False) if level >= lowest
    ]
    if method.mode == "frame" and not sum(chosen):
        raise InvalidParameter("no one is eligible at the levels used, so nothing can be scaled up")
