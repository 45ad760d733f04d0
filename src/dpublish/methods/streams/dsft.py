"""DSFT: publish when the counts have moved by more than a fixed amount.

Known as: distance-based sampling with fixed threshold.
Reference: H. Li, L. Xiong, X. Jiang, J. Liu, "Differentially Private Histogram Publication for
Dynamic Datasets: An Adaptive Sampling Approach", CIKM 2015.  The printed algorithm is not
private; docs/proofs/stream.md says what was mended.

`ThresholdPolicy` is what all methods with a threshold share.  The distance of a snapshot from a
noisy estimate is large even if nothing has changed: noise alone gives it a floor of
bins * E|noise|.  So a policy says how far beyond that floor the counts must be, and the floor is
added here.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import ClassVar, Literal

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core.method import ExpectedError, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.sparse_vector.calibration import require_share
from dpublish.mechanisms.sparse_vector.stored import comparison_deviation
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.planning import comparison_terms
from dpublish.methods.streams.policy import (
    Compare,
    Comparisons,
    History,
    Plan,
    Publication,
    Publish,
    Repeat,
)
from dpublish.methods.streams.snapshot import Bins
from dpublish.methods.streams.usefulness import RIGHT, Decisions
from dpublish.privacy.epsilon import rational_weight

Auto = Literal["auto"]
SIZE = "size"  # total of the first publication, at least 1: the unit of relative thresholds
CLEARLY = 3  # standard deviations beyond which a distance is hardly noise
_LARGEST = 2**60  # where thresholds end; no distance is larger
_SHARE_UNITS = 1024


@dataclass(frozen=True, kw_only=True)
class ThresholdPolicy:
    """Policy: publish first, then whenever a comparison says that the counts are far away.

    Publications of a horizon that no comparison has called for are made at its last step,
    all in one.  Subclasses define `excess`; they may remember public numbers in
    `history.memory`, so a plan is made once for each step.

    Attributes:
        bins: Number of bins.
        contribution: Most rows of one person in a snapshot.
        epsilon_decisions: What comparisons cost, in the horizon or in any window.
        epsilon_publications: What publications cost, in the horizon or in any window.
        releases: Most publications in the horizon or in any window (C).
        horizon: Number of steps of the stream; None if it never ends.
        window: Number of steps of a window; None if people are hidden in all steps.
        burn_in: Up to this step (the first one excepted) nothing is compared.
    """

    bins: int
    contribution: int
    epsilon_decisions: Fraction
    epsilon_publications: Fraction
    releases: int
    horizon: int | None = None
    window: int | None = None
    burn_in: int = 1

    @property
    def quota(self) -> int:
        """Publications that are paid for."""
        return min(self.releases, span_of(self.horizon, self.window))

    @property
    def price(self) -> Fraction:
        """What one publication costs."""
        return self.epsilon_publications / self.quota

    @cached_property
    def comparisons(self) -> Comparisons | None:
        """Terms of the sparse vector; None if there is nothing to decide.

        The first publication of a horizon follows no comparison.  On a window stream every
        publication ends a run, and a window meets at most `releases` of them
        (docs/proofs/stream.md).
        """
        if not has_decisions(self.releases, self.horizon, self.window):
            return None
        if self.window is None:
            return Comparisons(self.epsilon_decisions, self.quota - 1)
        return Comparisons(self.epsilon_decisions / self.quota, 1)

    def plan(self, history: History) -> Plan:
        """Publish at first, then compare as long as publications are left."""
        if history.step == 1 or self.quota == span_of(self.horizon, self.window):
            return Publish(self.price)
        left = self.quota - self.count(history)
        if left <= 0:
            return Repeat()
        if history.step == self.horizon:
            return Publish(left * self.price)
        if history.step <= self.burn_in:
            return Repeat()
        return Compare(self._threshold(history), self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how many rows there were at first, as far as is public."""
        if not history.published:
            history.memory[SIZE] = max(1.0, history.total)

    def excess(self, history: History) -> float:
        """Return how far beyond the noise floor the counts must be to be published."""
        raise NotImplementedError

    def count(self, history: History) -> int:
        """Count the publications that share the horizon, or a window, with the step to come."""
        return history.published if self.window is None else len(history.recent)

    def deviation(self, history: History) -> float:
        """Standard deviation that noise gives a comparison: its own, and the floor's."""
        floor_variance = self.bins * absolute_noise(history.noise)[1]
        return sqrt(self._comparison_deviation**2 + floor_variance)

    def _threshold(self, history: History) -> int:
        floor = self.bins * absolute_noise(history.noise)[0]
        return round(min(floor + self.excess(history), _LARGEST))

    def decisions(self) -> Decisions | None:
        """Return what makes decisions uncertain after a usual publication; None without any."""
        terms = self.comparisons
        if terms is None:
            return None
        calibration = comparison_terms(terms.epsilon, terms.positives, self.contribution)
        noise = absolute_noise(noise_variance(self.price / self.contribution))[1]
        return Decisions(calibration, sqrt(self.bins * noise))

    @cached_property
    def _comparison_deviation(self) -> float:
        terms = self.comparisons
        if terms is None:
            return 0.0
        return comparison_deviation(
            comparison_terms(terms.epsilon, terms.positives, self.contribution)
        )


@dataclass(frozen=True, kw_only=True)
class FixedThreshold(ThresholdPolicy):
    """Policy: the excess is a part of the first total, or what noise hardly reaches."""

    threshold: Fraction | Auto

    def excess(self, history: History) -> float:
        """Return how far beyond the noise floor the counts must be to be published."""
        if self.threshold == "auto":
            return CLEARLY * self.deviation(history)
        return float(self.threshold) * history.memory[SIZE]


@dataclass(frozen=True, kw_only=True)
class DSFT(StreamMethod):
    """Publish a fresh histogram when the counts have moved by a fixed amount.

    DSFT is distance-based sampling with a fixed threshold.  A sparse vector compares the distance
    of each snapshot from the last estimate with the threshold.  Choose it when you know how much
    change matters; choose `DSAT` when you do not.

    Guarantee:
        Pure epsilon-differential privacy for one person in the whole stream: all of the person's
        rows, at most `contribution` in a snapshot.  The noisy threshold is drawn once, and is
        secret.  Proof: docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        horizon: Number of steps of the stream.
        releases: Most histograms to publish; each costs an equal share.
        threshold: Publish when bins have changed by this part of the first total, in sum over
            all bins; `"auto"` takes three standard deviations of the noise.
        decision_share: Share of epsilon that pays for comparisons; by default what gives
            distances the least noise.
        contribution, static, smoothing, trust_rows: Settings of every stream: the bound on a
            person's rows and how one histogram is published (`help(StreamMethod)`).

    Returns:
        A `Stream`, from `start`.  Its `next(table, rng=...)` returns a `Step`; `action` is
        `"published"` when the counts have moved, and `"repeated"` when they have not.

    Example:
        >>> from fractions import Fraction
        >>> import numpy as np
        >>> from dpublish import DSFT, Budget, Schema, column, seeded
        >>> schema = Schema((column("zone", "category", values=["north", "south"]),), unit="user")
        >>> method = DSFT(columns=("zone",), horizon=6, releases=3, threshold=Fraction(1, 10))
        >>> rng = seeded(7)
        >>> stream = method.start(schema, budget=Budget.seeded("2"), rng=rng)
        >>> moved = [[900, 100]] * 3 + [[500, 500]] * 3
        >>> steps = [stream.next_counts(np.array(counts), rng=rng) for counts in moved]
        >>> [step.action for step in steps]  # what is left is published at the last step
        ['published', 'repeated', 'repeated', 'published', 'repeated', 'published']

    Reference:
        H. Li, L. Xiong, X. Jiang, J. Liu (2015), "Differentially Private Histogram Publication
        for Dynamic Datasets: An Adaptive Sampling Approach", CIKM.
    """

    name: ClassVar[str] = "dsft"
    proofs: ClassVar[tuple[str, ...]] = ("stream", "sparse_vector", "exact")
    publishes: ClassVar[str] = "a fresh histogram when the counts have moved by a fixed amount"
    prefer_when: ClassVar[str] = "you know how much change matters"
    window: ClassVar[int | None] = None

    horizon: int = setting("Number of steps of the stream.")
    releases: int = setting("Most histograms to publish; each costs an equal share.", default=10)
    threshold: Fraction | Auto = setting(
        "Publish when bins have changed by this part of the first total, in sum over all bins; "
        "auto: when by three standard deviations of the noise.",
        default=Fraction(1, 40),
    )
    decision_share: Fraction | None = setting(
        "Share of epsilon for comparisons; by default what gives distances the least noise.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(horizon=self.horizon, releases=self.releases)
        if self.decision_share is not None:
            require_share(decision_share=self.decision_share)
        require_threshold(self.threshold)

    def policy(self, bins: Bins, epsilon: Fraction) -> FixedThreshold:
        """Return the policy for a stream of `epsilon`."""
        share = share_for_decisions(
            self.decision_share,
            bins=bins.size,
            releases=self.releases,
            horizon=self.horizon,
            window=None,
        )
        return FixedThreshold(
            bins=bins.size,
            contribution=self.contribution,
            epsilon_decisions=share * epsilon,
            epsilon_publications=(1 - share) * epsilon,
            releases=self.releases,
            horizon=self.horizon,
            threshold=self.threshold,
        )

    def comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons | None:
        """Return the terms of the sparse vector, if there is anything to decide."""
        return self.policy(bins, epsilon).comparisons

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what a publication costs; the last one may cost more."""
        return self.policy(bins, epsilon).price

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a publication, and how many people decisions need."""
        found = super().expected_error(schema, n_records, epsilon)
        policy = self.policy(Bins.of(schema, self.columns), epsilon)
        share = None if self.threshold == "auto" else float(self.threshold)
        return with_people(found, policy, share)


def with_people(
    found: ExpectedError, policy: ThresholdPolicy, threshold: float | None
) -> ExpectedError:
    """Add how many people a stream needs for its decisions; nothing if there are none."""
    decisions = policy.decisions()
    if decisions is None or threshold is None:
        return found
    people = decisions.people(threshold)
    words = f"a decision is right with {RIGHT:.0%}".replace("%", " %")
    return replace(
        found,
        summary=f"{found.summary}; {words} if there are at least {people:,} people",
        figures={**found.figures, "people_for_decisions": float(people)},
    )


def require_threshold(threshold: Fraction | Auto) -> None:
    """Refuse a threshold that is neither auto nor a positive exact number."""
    is_exact = isinstance(threshold, (int, Fraction)) and not isinstance(threshold, bool)
    if threshold != "auto" and not (is_exact and threshold > 0):
        raise InvalidParameter(f"threshold ({threshold}) must be auto or a positive exact number")


def absolute_noise(variance: float) -> tuple[float, float]:
    """Compute mean and variance of |N|, for two-sided geometric noise N of a given variance.

    With a = e^-rate, the mean is 2a / (1 - a^2) and the variance of N is v = 2a / (1 - a)^2;
    eliminating a gives v / sqrt(1 + 2v).

    >>> absolute_noise(4.0)
    (1.3333333333333333, 2.2222222222222223)
    """
    mean = variance / sqrt(1 + 2 * variance)
    return mean, variance - mean**2


def span_of(horizon: int | None, window: int | None) -> int:
    """Return the number of steps that share a budget."""
    return horizon or window or 1


def has_decisions(releases: int, horizon: int | None, window: int | None) -> bool:
    """Return whether there is anything to decide: not if all steps publish, or only the first."""
    return releases < span_of(horizon, window) and (releases > 1 or window is not None)


def share_for_decisions(
    given: Fraction | None, *, bins: int, releases: int, horizon: int | None, window: int | None
) -> Fraction:
    """Return the share of epsilon for comparisons: as given, or with the least noise on distances.

    The variance of a comparison is A / e1^2 and that of the floor B / e2^2, in units of the
    contribution; their sum is least at e1 : e2 = (A/B)^(1/3).  For C publications
    B = bins * C^2, and A is (1 + (2C - 2)^(2/3))^3 for a horizon and C^2 (1 + 2^(2/3))^3 for
    windows (one-sided noise; two-sided noise would double A).  It is at most 1 - C / steps,
    what publishing at C steps instead of at every one saves.

    >>> share_for_decisions(None, bins=100, releases=10, horizon=500, window=None)
    Fraction(137, 512)
    """
    if not has_decisions(releases, horizon, window):
        return Fraction(0)
    require_count(bins=bins)
    if given is not None:
        return given
    positives = releases - 1 if window is None else 1
    scale = 1.0 if window is None else releases ** (2 / 3)
    ratio = (1 + (2 * positives) ** (2 / 3)) * scale / (bins * releases**2) ** (1 / 3)
    best = rational_weight(ratio / (1 + ratio), _SHARE_UNITS)
    return min(best, 1 - Fraction(releases, span_of(horizon, window)))
