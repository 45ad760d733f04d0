"""Publish when the counts have moved by more than a fixed amount.

Known as: DSFT (distance-based sampling with fixed threshold).
Reference: H. Li, L. Xiong, X. Jiang, J. Liu, "Differentially Private Histogram Publication for
Dynamic Datasets: An Adaptive Sampling Approach", CIKM 2015.  The printed algorithm is not
private; docs/proofs/stream.md says what was mended.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from dpublish.core.method import setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.sparse_vector.calibration import require_share
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.contract import Comparisons
from dpublish.methods.streams.history import History
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.threshold_policy import (
    CLEARLY,
    SIZE,
    ThresholdPolicy,
    share_for_decisions,
)

Auto = Literal["auto"]


@dataclass(frozen=True, kw_only=True)
class FixedMargin(ThresholdPolicy):
    """Policy: the margin is a part of the rows at first, or what noise hardly reaches."""

    threshold: Fraction | Auto

    def margin(self, history: History) -> float:
        """Say how far beyond the noise's floor the counts must be to be published."""
        if self.threshold == "auto":
            return CLEARLY * self.deviation(history)
        return float(self.threshold) * history.memory[SIZE]


@dataclass(frozen=True, kw_only=True)
class DSFT(StreamMethod):
    """Method: up to `releases` histograms within a horizon, when the counts have moved."""

    name: ClassVar[str] = "dsft"
    window: ClassVar[int | None] = None

    horizon: int = setting("Number of steps of the stream.")
    releases: int = setting("Most histograms to publish; each gets an equal part.", default=10)
    threshold: Fraction | Auto = setting(
        "Publish when bins have changed by this part of the first total, in sum over all bins; "
        "auto: when by three standard deviations of the noise.",
        default=Fraction(1, 40),
    )
    decision_share: Fraction | None = setting(
        "Part of epsilon for deciding when to publish; by default what perturbs distances least.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(horizon=self.horizon, releases=self.releases)
        if self.decision_share is not None:
            require_share(decision_share=self.decision_share)
        require_threshold(self.threshold)

    def policy(self, bins: Bins, epsilon: Fraction) -> FixedMargin:
        """Give the policy for a stream of `epsilon`."""
        share = share_for_decisions(
            self.decision_share,
            bins=bins.size,
            releases=self.releases,
            horizon=self.horizon,
            window=None,
        )
        return FixedMargin(
            bins=bins.size,
            contribution=self.contribution,
            epsilon_decisions=share * epsilon,
            epsilon_publications=(1 - share) * epsilon,
            releases=self.releases,
            horizon=self.horizon,
            threshold=self.threshold,
        )

    def comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons | None:
        """Give the terms of the sparse vector, if there is anything to decide."""
        return self.policy(bins, epsilon).comparisons

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Say what a publication costs; the last one may get more."""
        return self.policy(bins, epsilon).price


def require_threshold(threshold: Fraction | Auto) -> None:
    """Refuse a threshold that is neither auto nor a positive exact number."""
    is_exact = isinstance(threshold, (int, Fraction)) and not isinstance(threshold, bool)
    if threshold != "auto" and not (is_exact and threshold > 0):
        raise InvalidParameter(f"threshold ({threshold}) must be auto or a positive exact number")
