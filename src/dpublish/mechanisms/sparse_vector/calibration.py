"""How much noise the sparse vector technique needs, and how its budget is best split.

The proof is about the rates, so they are computed apart from the sampling and can be tested
without it.
"""

from fractions import Fraction
from math import expm1, sinh, sqrt
from typing import Literal, NamedTuple, TypedDict

from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import discrete_laplace, geometric, require_rate
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import rational_weight

NoiseKind = Literal["exponential", "laplace"]
SAMPLERS = {"exponential": geometric, "laplace": discrete_laplace}

_VERY_STEEP = Fraction(40)  # at this rate noise is zero but once in 10**17 draws


class Calibration(NamedTuple):
    """How fast the noise falls off (all public): P(z) is in proportion to exp(-rate |z|).

    `offset` is added to every threshold.  It makes up for the mean of one-sided noise, so
    that an answer at its threshold is on average at its noisy threshold too.
    """

    noise: NoiseKind
    threshold_rate: Fraction
    answer_rate: Fraction
    value_rate: Fraction | None = None
    offset: int = 0

    @property
    def answer_deviation(self) -> float:
        """Standard deviation of the noise on each answer."""
        one_sided = 0.5 / sinh(min(self.answer_rate, _VERY_STEEP) / 2)
        return one_sided if self.noise == "exponential" else sqrt(2) * one_sided


class Settings(TypedDict):
    """The public settings that a run is calibrated for; `calibrate` explains them."""

    sensitivity: int
    max_positives: int
    monotonic: bool
    noise: NoiseKind
    ratio: int | Fraction | None


class Plan(NamedTuple):
    """What a budget is split into, and the sensitivities that each share must hide at once."""

    weights: dict[str, int | Fraction]
    moves: dict[str, int]


def plan(
    *,
    sensitivity: int,
    max_positives: int,
    monotonic: bool,
    noise: NoiseKind = "exponential",
    ratio: int | Fraction | None = None,
    values_share: Fraction | None = None,
    epsilon: Fraction,
) -> Plan:
    """Check the settings of `calibrate` and lay out its split, before any budget is opened."""
    require_count(sensitivity=sensitivity, max_positives=max_positives)
    require_known("noise", noise, SAMPLERS)
    moves = (1 if monotonic else 2) * max_positives
    answers = rational_weight(moves ** (2 / 3)) if ratio is None else ratio
    _require_exact(ratio=answers)
    weights: dict[str, int | Fraction] = {"threshold": 1, "answers": answers}
    hidden = {"threshold": sensitivity, "answers": moves * sensitivity}
    if values_share is not None:
        require_share(values_share=values_share)
        weights["values"] = (1 + answers) * values_share / (1 - values_share)
        hidden["values"] = max_positives * sensitivity
    for name, weight in weights.items():
        require_rate(Fraction(weight) / sum(weights.values()) * epsilon / hidden[name])
    return Plan(weights, hidden)


def calibrate(
    *,
    sensitivity: int,
    max_positives: int,
    monotonic: bool,
    noise: NoiseKind = "exponential",
    ratio: int | Fraction | None = None,
    values_share: Fraction | None = None,
    budget: Budget,
) -> Calibration:
    """Spend `budget` on the noise that makes the comparison most accurate.

    One record moves the gap between an answer and the threshold by up to two sensitivities
    (one if `monotonic`), once for each positive: m moves in all.  The variance of the gap is in
    proportion to (1/e1)^2 + (m/e2)^2, least at e1 : e2 = 1 : m^(2/3) (thesis, Eq. 5.12).
    One-sided noise halves both terms (two-sided noise is the difference of two one-sided
    draws), so the best split is the same.

    Args:
        sensitivity: Most that one record can change any single answer.
        max_positives: Number of positive outcomes that are paid for (c).
        monotonic: Whether one record moves all answers one way (counts under add-or-remove).
        noise: "exponential" (one-sided, half the variance) or "laplace".
        ratio: The answers' share for each unit of the threshold's; the best one if not given.
        values_share: Part of the budget that pays for publishing the answers found above.
        budget: Budget to split by name and spend.

    >>> calibrate(sensitivity=1, max_positives=4, monotonic=False, budget=Budget.seeded(1))[1:3]
    (Fraction(1, 5), Fraction(1, 10))
    """
    weights, hidden = plan(
        sensitivity=sensitivity,
        max_positives=max_positives,
        monotonic=monotonic,
        noise=noise,
        ratio=ratio,
        values_share=values_share,
        epsilon=budget.epsilon,
    )
    shares = budget.split(**weights)
    rates = {name: share.spend() / hidden[name] for name, share in shares.items()}
    excess = _mean(rates["answers"]) - _mean(rates["threshold"])
    return Calibration(
        noise=noise,
        threshold_rate=rates["threshold"],
        answer_rate=rates["answers"],
        value_rate=rates.get("values"),
        offset=round(excess) if noise == "exponential" else 0,
    )


def require_share(**shares: Fraction) -> None:
    """Refuse parts of a budget that are not exact or not between none and all of it."""
    _require_exact(**shares)
    for name, share in shares.items():
        if share >= 1:
            raise InvalidParameter(f"{name} ({share}) must be less than 1, the whole budget")


def _require_exact(**settings: int | Fraction) -> None:
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, (int, Fraction)) or value <= 0:
            raise InvalidParameter(f"{name} ({value}) must be a positive integer or Fraction")


def _mean(rate: Fraction) -> float:
    """Mean of one-sided noise."""
    return 1 / expm1(min(rate, _VERY_STEEP))
