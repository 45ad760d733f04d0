"""Keep each record with a probability that grows with its level, then publish from those kept.

Known as: the Sampling mechanism of personalized differential privacy (SM).
Reference: Z. Jorgensen, T. Yu and G. Cormode, "Conservative or liberal? Personalized
differential privacy", ICDE 2015.  Proof: docs/proofs/personal_sampling.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.methods.personalized.method import (
    PersonalMethod,
    inner_release,
    known_sizes,
    personal_receipt,
)
from dpublish.methods.personalized.released import Part, PersonalizedRelease
from dpublish.methods.personalized.threshold import require_scalable
from dpublish.privacy.amplification import sampling_rate
from dpublish.privacy.epsilon import format_short, parse_epsilon

NOT_CORRECTED = (
    "answers are about the people who were drawn, each with the probability of her level; they "
    "are not scaled up to all"
)
CORRECTED = (
    "answers are scaled up by the public sampling rates: the owner asserts that levels tell "
    "nothing about the other values"
)


@dataclass(frozen=True, kw_only=True)
class Sampling(PersonalMethod):
    """Method: draw people by their levels, then run `inner` on those drawn."""

    name: ClassVar[str] = "sampling"

    threshold: Fraction | Literal["max", "mean"] = setting(
        "Epsilon of the inner method: people at or above it are all used, the others are drawn. "
        "A number up to the largest level, max (the largest level) or mean (over the public "
        "sizes, else over the levels), which is usually good for counts.",
        default="max",
    )
    exchangeable: bool = setting(
        "Assert that levels tell nothing about the other values: counts are then scaled up to "
        "all eligible people, whose number at each level must be public.",
        default=False,
    )

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
        """The level from which on everybody is used; public."""
        if not isinstance(self.threshold, str):
            return self.threshold
        if self.threshold == "max":
            return self.levels[-1]
        sizes = self.sizes if sum(self.sizes) else (1,) * len(self.levels)
        people = zip(self.levels, sizes, strict=True)
        return sum((level * size for level, size in people), Fraction(0)) / sum(sizes)

    def spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Say what each level pays: its share, or that of the threshold if that is less."""
        shares = self.preferences.amounts(epsilon)
        most = self.limit * epsilon / self.levels[-1]
        return {level: min(share, most) for level, share in shares.items()}

    def rates(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Give the probability with which a record of each level is drawn; public."""
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
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        epsilon = self.epsilon_of(budget)
        rates = self.rates(epsilon)
        # Opened before any row is read: a share that is already used stops here.
        share = budget.split(sample=1)["sample"]
        sizes = known_sizes(self, table)
        amount = share.epsilon / self.halves
        drawn = self.preferences.sample(table, rates, rng)
        published = inner_release(self.inner, drawn, share, amount, rng, progress)
        return PersonalizedRelease(
            receipt=personal_receipt(self, epsilon, table.schema, budget=budget, rng=rng),
            schema=self.preferences.without(table.schema),
            combine="sum",
            parts=(
                Part(
                    levels=self.levels,
                    epsilon=amount,
                    weight=1.0,
                    scale=self._scale(sizes, rates),
                    size=None if sizes is None else _drawn(sizes, rates),
                    release=published,
                ),
            ),
            notes=(_tell_rates(rates), CORRECTED if self.exchangeable else NOT_CORRECTED),
            expected=dict(self.expected_error(table.schema, None, epsilon).figures),
        )

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
        drawn = f"a sample (rates from {float(min(rates.values())):.3g} to 1)"
        summary = f"{drawn} with epsilon {format_short(amount)}: {inner.summary}"
        return ExpectedError(summary, figures, inner.target)

    def _scale(self, sizes: Sequence[int] | None, rates: dict[Fraction, Fraction]) -> float:
        if not self.exchangeable or sizes is None:
            return 1.0
        mean = _mean_rate(sizes, rates)
        return float(1 / mean) if mean else 1.0


def _mean_rate(sizes: Sequence[int], rates: dict[Fraction, Fraction]) -> Fraction:
    """Average the rates over people, or over levels if nobody knows how many there are."""
    weights = sizes if sum(sizes) else (1,) * len(rates)
    drawn = zip(weights, rates.values(), strict=True)
    return sum((size * rate for size, rate in drawn), Fraction(0)) / sum(weights)


def _drawn(sizes: Sequence[int], rates: dict[Fraction, Fraction]) -> float:
    """Say how many people are drawn if all are present, on average."""
    return float(sum(sizes) * _mean_rate(sizes, rates))


def _tell_rates(rates: dict[Fraction, Fraction]) -> str:
    drawn = {level: rate for level, rate in rates.items() if rate < 1}
    if not drawn:
        return "everybody was used"
    told = [f"{float(rate):.3g} at level {format_short(level)}" for level, rate in drawn.items()]
    if len(told) > 5:
        told = [told[0], "...", told[-1]]
    return f"records were drawn with probability {', '.join(told)}; others were all used"
