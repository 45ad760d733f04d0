"""Sampling: draw each record with a probability that grows with its level, then publish."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.accuracy.rounding import format_number
from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.personalized.method import (
    EXCHANGEABLE_COUNTS,
    PersonalMethod,
    inner_release,
    known_sizes,
)
from dpublish.methods.personalized.released import ALL_USED, DRAWN, PersonalizedRelease
from dpublish.methods.personalized.released_parts import Part
from dpublish.methods.personalized.threshold import one_part, require_scalable
from dpublish.privacy.amplification import sampling_rate
from dpublish.privacy.epsilon import format_short, parse_epsilon

NOT_CORRECTED = f"{DRAWN}, each with the probability of their level; they are not scaled up to all"
CORRECTED = (
    "answers are scaled up by the public sampling rates: the owner asserts that levels tell "
    "nothing about the other values"
)


@dataclass(frozen=True, kw_only=True)
class Sampling(PersonalMethod):
    """Publish from a sample of the people, in which those who accept more are more likely.

    The sampling mechanism (SM) of personalized differential privacy: `inner` runs with the
    epsilon of a threshold, and people below it are drawn with the probability that makes up
    for the difference.  Choose it when `inner` gains more from a larger epsilon than it loses
    with fewer records.  Choose `Weighting` for counts and `Partitioning` when no threshold is
    obvious.

    Guarantee:
        Personalized pure differential privacy for one record added or removed (or its values
        exchanged, in the mode `values-only`): a record loses its own share, or that of the
        threshold if it is less.  Proof: docs/proofs/personal_sampling.md.

    Parameters:
        preference, levels, mode, sizes, rule, derived: How much each person accepts, and what is
            public about it; see `PersonalSettings`.
        threshold: Epsilon of the inner method: a number up to the largest level, `"max"` (the
            largest level) or `"mean"`; people at or above it are all used.
        exchangeable: Asserts that levels tell nothing about the other values, so that counts
            are scaled up to all eligible people.
        inner: Method to run on the sample, with its settings.

    Returns:
        A `PersonalizedRelease` with one part, the sample.  `rates(epsilon)` of the method lists
        the public sampling rates.

    Example:
        >>> from dpublish import Histogram, Sampling, datasets, seeded
        >>> method = Sampling(
        ...     preference="region",
        ...     rule="North=0.1, *=1",
        ...     derived=True,
        ...     levels=("0.1", "1"),
        ...     inner=Histogram(columns=("sex",)),
        ... )
        >>> {float(level): round(float(rate), 3) for level, rate in method.rates(1).items()}
        {0.1: 0.061, 1.0: 1.0}
        >>> people = datasets.table("census", 10_000)
        >>> release = method.release(people, rng=seeded(7), budget=method.budget(1))
        >>> print(release.count("sex = Female"))
        4,126 (95 % confidence interval 4,123 to 4,129)

    Reference:
        The sampling mechanism of Z. Jorgensen, T. Yu and G. Cormode, "Conservative or liberal?
        Personalized differential privacy", ICDE 2015.
    """

    name: ClassVar[str] = "sampling"
    proofs: ClassVar[tuple[str, ...]] = ("personal_sampling", "exact")
    publishes: ClassVar[str] = (
        "the release of another method for a sample that favors people who accept more"
    )
    prefer_when: ClassVar[str] = "a larger epsilon gains more than fewer records lose"

    threshold: Fraction | Literal["max", "mean"] = setting(
        "Epsilon of the inner method: people at or above it are all used, the others are drawn. "
        "A number up to the largest level, max (the largest level) or mean (over the public "
        "sizes, else over the levels), which is usually good for counts.",
        default="max",
    )
    exchangeable: bool = setting(EXCHANGEABLE_COUNTS, default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.threshold, str):
            require_known("value for threshold:", self.threshold, ("max", "mean"))
        else:
            object.__setattr__(self, "threshold", parse_epsilon(self.threshold, "threshold"))
        if not self.levels[0] <= self.limit <= self.levels[-1]:
            raise InvalidParameter(
                f"threshold ({format_short(self.limit)}) must lie between the smallest level "
                "and the largest"
            )
        if self.exchangeable:
            require_scalable(self, self.levels[0])

    @property
    def limit(self) -> Fraction:
        """The level from which on all people are used; public."""
        if not isinstance(self.threshold, str):
            return self.threshold
        if self.threshold == "max":
            return self.levels[-1]
        sizes = self.sizes if sum(self.sizes) else (1,) * len(self.levels)
        people = zip(self.levels, sizes, strict=True)
        return sum((level * size for level, size in people), Fraction(0)) / sum(sizes)

    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level pays: its share, or that of the threshold if that is less."""
        shares = self.preferences.amounts(epsilon)
        most = self.limit * epsilon / self.levels[-1]
        return {level: min(share, most) for level, share in shares.items()}

    def rates(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return the probability with which a record of each level is drawn; public.

        Of a person with several rows, each row is drawn by itself, for its part of epsilon.
        """
        if self.contribution is not None:
            return self.for_records().rates(parse_epsilon(epsilon) / self.rows_each)
        spent = self.spending(epsilon)
        most = max(spent.values()) / self.halves
        return {level: sampling_rate(amount / self.halves, most) for level, amount in spent.items()}

    def _release(self, run: Run) -> PersonalizedRelease:
        """Publish from a sample of the records.

        Privacy:
            A record of share a below the inner epsilon t is drawn with probability
            p <= (e^a - 1) / (e^t - 1), exactly and independently.  If P and Q are the distributions
            of the output without it and with it drawn, e^-t P <= Q <= e^t P; with the record in
            the table the distribution is (1 - p) P + p Q, which is at most (1 + p (e^t - 1)) P <=
            e^a P and at least (1 - p (1 - e^-t)) P >= e^-a P, the latter since a <= t.  A
            record of share t or more is used as it is and loses t.  Rates are public and
            never weigh records inside `inner`.  If values are exchanged, all is halved.
            Proof: docs/proofs/personal_sampling.md.
        """
        rates = self.rates(self.epsilon_of(run.budget))
        # Opened before any row is read: a share that is already used stops here.
        share = run.split(sample=1)["sample"]
        sizes = known_sizes(run, self)
        amount = share.epsilon / self.halves
        drawn = self.preferences.sample(run, rates, self.inner_reads(run.schema))
        published = inner_release(drawn, self.inner, share, amount)
        part = Part(
            levels=self.levels,
            epsilon=amount,
            weight=1.0,
            scale=self._scale(sizes, rates),
            size=None if sizes is None else _drawn(sizes, rates),
            release=published,
        )
        notes = (_describe_rates(rates), CORRECTED if self.exchangeable else NOT_CORRECTED)
        return one_part(run, self, part, notes)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of `inner` on the sample; what drawing adds is not in it."""
        rates = self.rates(epsilon)
        amount = max(self.spending(epsilon).values()) / self.halves
        if n_records is not None:
            n_records = int(n_records * _mean_rate(self.sizes, rates))
        inner = self.inner.expected_error(self.inner_schema(schema), n_records, amount)
        figures = dict(inner.figures) | {"smallest_sampling_rate": float(min(rates.values()))}
        drawn = f"a sample (rates from {format_number(float(min(rates.values())), 3)} to 1)"
        summary = f"{drawn} with epsilon {format_short(amount)}: {inner.summary}"
        return ExpectedError(summary, figures, inner.target, inner.is_of_goal)

    def _scale(self, sizes: Sequence[int] | None, rates: dict[Fraction, Fraction]) -> float:
        if not self.exchangeable or sizes is None:
            return 1.0
        mean = _mean_rate(sizes, rates)
        return float(1 / mean) if mean else 1.0


def _mean_rate(sizes: Sequence[int], rates: dict[Fraction, Fraction]) -> Fraction:
    """Average the rates over people, or over levels if the number of people is not known."""
    weights = sizes if sum(sizes) else (1,) * len(rates)
    drawn = zip(weights, rates.values(), strict=True)
    return sum((size * rate for size, rate in drawn), Fraction(0)) / sum(weights)


def _drawn(sizes: Sequence[int], rates: dict[Fraction, Fraction]) -> float:
    """Return how many people are drawn if all are present, on average."""
    return float(sum(sizes) * _mean_rate(sizes, rates))


def _describe_rates(rates: dict[Fraction, Fraction]) -> str:
    drawn = {level: rate for level, rate in rates.items() if rate < 1}
    if not drawn:
        return ALL_USED
    shown = [
        f"{format_number(float(rate), 3)} at level {format_short(level)}"
        for level, rate in drawn.items()
    ]
    if len(shown) > 5:
        shown = [shown[0], "...", shown[-1]]
    return f"records were drawn with probability {', '.join(shown)}; others were all used"
