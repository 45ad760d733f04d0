"""What the two forms of DSAT share: three ways to steer, and the settings of each."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any, Literal

from dpublish.core.method import setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.sparse_vector.calibration import require_share
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.contract import Comparisons, Policy
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.paper_controller import PaperController
from dpublish.methods.streams.planning import Facts, comparison_margin
from dpublish.methods.streams.schedule import ScheduledThreshold
from dpublish.methods.streams.threshold_policy import ThresholdPolicy, share_for_decisions, span_of

USUAL_RELEASES = 10
MOST_GAIN = 1000  # thresholds move by factors of e to the gain, so more makes no difference


@dataclass(frozen=True, kw_only=True)
class SteeredMethod(StreamMethod):
    """Settings of DSAT; the forms say what a budget is shared over: a horizon or a window."""

    controller: Literal["planned", "schedule", "paper"] = setting(
        "Who steers: planned publishes in a rhythm that it learns, and early after a jump; "
        "schedule keeps to `releases` by moving the threshold; paper is the thesis's, repaired.",
        default="planned",
    )
    releases: int | None = setting(
        "schedule, paper: most publications (C), 10 unless given; planned: most early ones.",
        default=None,
    )
    decision_share: Fraction | None = setting(
        "Part of epsilon that pays for questions; by default what serves the controller best.",
        default=None,
    )
    burn_in: int = setting("schedule, paper: ask nothing up to this step (M).", default=2)
    gain: Fraction | None = setting(
        "schedule: what a publication ahead adds to the threshold's logarithm (P); ln 4.",
        default=None,
    )
    integral_gain: Fraction | None = setting(
        "schedule: what being ahead adds at each step, within bounds (I); 0.", default=None
    )
    slope_gain: Fraction | None = setting(
        "schedule: what getting further ahead adds (D); 0.", default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(burn_in=self.burn_in)
        if self.releases is not None:
            require_count(releases=self.releases)
        if self.decision_share is not None:
            require_share(decision_share=self.decision_share)
        for name, steps in (("horizon", self.horizon), ("window", self.window)):
            if steps is not None:
                require_count(**{name: steps})
        for name in ("gain", "integral_gain", "slope_gain"):
            if abs(getattr(self, name) or 0) > MOST_GAIN:
                raise InvalidParameter(f"{name} must be at most {MOST_GAIN:,}")

    @property
    def smooths(self) -> bool:
        """Whether publications are weighed against each other over time."""
        return self.controller == "planned" if self.smoothing is None else self.smoothing

    def comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons | None:
        """Give the terms of the sparse vector."""
        if self.controller == "planned":
            return self.planned_comparisons(epsilon)
        return self.steered_policy(bins, epsilon).comparisons

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy for a stream of `epsilon`."""
        if self.controller == "planned":
            return self.planned_policy(bins, epsilon)
        return self.steered_policy(bins, epsilon)

    def planned_policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy of the default controller."""
        raise NotImplementedError

    def planned_comparisons(self, epsilon: Fraction) -> Comparisons:
        """Give the terms on which the default controller asks."""
        raise NotImplementedError

    def planned_terms(self, bins: Bins, epsilon: Fraction) -> dict[str, Any]:
        """Give what the default controllers of both forms are made from."""
        terms = self.planned_comparisons(epsilon)
        span = span_of(self.horizon, self.window)
        return {
            "metadata": Facts(bins.size, self.contribution, epsilon),
            "margin": comparison_margin(terms.epsilon, terms.positives, self.contribution, span),
        }

    def steered_policy(self, bins: Bins, epsilon: Fraction) -> ThresholdPolicy:
        """Give the policy of one of the thesis's controllers."""
        releases = self.releases or USUAL_RELEASES
        share = share_for_decisions(
            self.decision_share,
            bins=bins.size,
            releases=releases,
            horizon=self.horizon,
            window=self.window,
        )
        terms: dict[str, Any] = {
            "bins": bins.size,
            "contribution": self.contribution,
            "epsilon_decisions": share * epsilon,
            "epsilon_publications": (1 - share) * epsilon,
            "releases": releases,
            "horizon": self.horizon,
            "window": self.window,
            "burn_in": self.burn_in,
        }
        if self.controller == "paper":
            return PaperController(**terms)
        return ScheduledThreshold(
            **terms,
            gain=log(4) if self.gain is None else float(self.gain),
            integral_gain=float(self.integral_gain or 0),
            slope_gain=float(self.slope_gain or 0),
        )
