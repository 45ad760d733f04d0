"""Publish when the counts have moved far: what all methods with a threshold have in common.

The distance of a snapshot from a noisy estimate is large even if nothing has changed: noise
alone gives it a floor of bins * E|noise|.  So a policy says how far beyond that floor the
counts must be, and the floor is added here.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

from dpublish.errors import require_count
from dpublish.mechanisms.sparse_vector.calibration import Calibration
from dpublish.mechanisms.sparse_vector.calibration import plan as plan_comparisons
from dpublish.mechanisms.sparse_vector.stored import comparison_deviation
from dpublish.methods.streams.contract import Comparisons
from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.plan import Ask, Plan, Publish, Repeat
from dpublish.privacy.epsilon import rational_weight

SIZE = "size"  # total of the first publication, at least 1: the unit of relative thresholds
CLEARLY = 3  # standard deviations beyond which a distance is hardly noise
_LARGEST = 2**60  # where thresholds end; no distance is larger
_SHARE_UNITS = 1024


@dataclass(frozen=True, kw_only=True)
class ThresholdPolicy:
    """Policy: publish first, then whenever a comparison says that the counts are far away.

    Of a horizon's last publications, those that nobody asked for are made at its last step,
    all in one.  Subclasses give `margin`; they may remember public numbers in
    `history.memory`, so a plan is made once for each step.

    Attributes:
        bins: Number of bins.
        contribution: Most rows of one user in a snapshot.
        epsilon_decisions: What comparisons cost, in the horizon or in any window.
        epsilon_publications: What publications cost, in the horizon or in any window.
        releases: Most publications in the horizon or in any window (C).
        horizon: Number of steps of the stream; None if it never ends.
        window: Number of steps of a window; None for a user who is hidden in all steps.
        burn_in: Up to this step (the first one excepted) the estimate is repeated unasked.
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

        The first publication of a horizon is not asked for.  On a window stream every
        publication ends a run, and a window meets at most `releases` of them
        (docs/proofs/stream.md).
        """
        if not has_decisions(self.releases, self.horizon, self.window):
            return None
        if self.window is None:
            return Comparisons(self.epsilon_decisions, self.quota - 1)
        return Comparisons(self.epsilon_decisions / self.quota, 1)

    def plan(self, history: History) -> Plan:
        """Publish at first, then ask as long as publications are left."""
        if history.step == 1 or self.quota == span_of(self.horizon, self.window):
            return Publish(self.price)
        left = self.quota - self.count(history)
        if left <= 0:
            return Repeat()
        if history.step == self.horizon:
            return Publish(left * self.price)
        if history.step <= self.burn_in:
            return Repeat()
        return Ask(self._threshold(history), self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how many rows there were at first, as far as is public."""
        if not history.published:
            history.memory[SIZE] = max(1.0, history.total)

    def margin(self, history: History) -> float:
        """Say how far beyond the noise's floor the counts must be to be published."""
        raise NotImplementedError

    def count(self, history: History) -> int:
        """Count the publications that are in sight of the step to come."""
        return history.published if self.window is None else len(history.recent)

    def deviation(self, history: History) -> float:
        """Standard deviation that noise gives a comparison: its own, and the floor's."""
        floor_variance = self.bins * absolute_noise(history.noise)[1]
        return sqrt(self._comparison_deviation**2 + floor_variance)

    def _threshold(self, history: History) -> int:
        floor = self.bins * absolute_noise(history.noise)[0]
        return round(min(floor + self.margin(history), _LARGEST))

    @cached_property
    def _comparison_deviation(self) -> float:
        terms = self.comparisons
        if terms is None:
            return 0.0
        weights, moves = plan_comparisons(
            sensitivity=self.contribution,
            max_positives=terms.positives,
            monotonic=False,
            epsilon=terms.epsilon,
        )
        unit = terms.epsilon / sum(weights.values())
        rates = {name: unit * weight / moves[name] for name, weight in weights.items()}
        return comparison_deviation(
            Calibration("exponential", rates["threshold"], rates["answers"])
        )


def absolute_noise(variance: float) -> tuple[float, float]:
    """Mean and variance of |N|, for two-sided geometric noise N of a given variance.

    With a = e^-rate, the mean is 2a / (1 - a^2) and the variance of N is v = 2a / (1 - a)^2;
    eliminating a gives v / sqrt(1 + 2v).

    >>> absolute_noise(4.0)
    (1.3333333333333333, 2.2222222222222223)
    """
    mean = variance / sqrt(1 + 2 * variance)
    return mean, variance - mean**2


def span_of(horizon: int | None, window: int | None) -> int:
    """Give the number of steps that share a budget."""
    return horizon or window or 1


def has_decisions(releases: int, horizon: int | None, window: int | None) -> bool:
    """Say whether there is anything to decide: not if all steps publish, or only the first."""
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
    spread = 1.0 if window is None else releases ** (2 / 3)
    ratio = (1 + (2 * positives) ** (2 / 3)) * spread / (bins * releases**2) ** (1 / 3)
    best = rational_weight(ratio / (1 + ratio), _SHARE_UNITS)
    return min(best, 1 - Fraction(releases, span_of(horizon, window)))
