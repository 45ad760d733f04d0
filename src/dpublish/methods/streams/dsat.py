"""Publish when the counts have moved far enough, by a threshold that adapts.

Known as: DSAT, distance-based sampling with adaptive threshold.
Reference: H. Li, L. Xiong, X. Jiang, J. Liu, "Differentially Private Histogram Publication for
Dynamic Datasets: An Adaptive Sampling Approach", CIKM 2015.  The printed algorithm is not
private; docs/proofs/stream.md says what was mended.  Users are hidden in all steps of a finite
stream; `window_threshold` hides them within windows of an endless one.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import setting
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.contract import Comparisons
from dpublish.methods.streams.planned_horizon import FIRST_PARTS, PlannedHorizon
from dpublish.methods.streams.steered_method import SteeredMethod

PLANNED_SHARE = Fraction(1, 30)
PLANNED_POSITIVES = 8


@dataclass(frozen=True, kw_only=True)
class DSAT(SteeredMethod):
    """Method: histograms of a finite stream, published when it is worth while."""

    name: ClassVar[str] = "dsat"
    window: ClassVar[int | None] = None

    horizon: int = setting("Number of steps of the stream; users are hidden in all of them.")

    def planned_comparisons(self, epsilon: Fraction) -> Comparisons:
        """Give the terms on which the default controller asks."""
        share = self.decision_share or PLANNED_SHARE
        return Comparisons(share * epsilon, self.releases or PLANNED_POSITIVES)

    def planned_policy(self, bins: Bins, epsilon: Fraction) -> PlannedHorizon:
        """Give the policy of the default controller."""
        terms = self.planned_comparisons(epsilon)
        return PlannedHorizon(
            **self.planned_terms(bins, epsilon),
            horizon=self.horizon,
            publications=epsilon - terms.epsilon,
            positives=terms.positives,
        )

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Say what a publication costs; of `planned` the first, before anything is learned."""
        if self.controller == "planned":
            policy = self.planned_policy(bins, epsilon)
            return policy.metadata.exact(
                float(policy.publications) / min(FIRST_PARTS, self.horizon)
            )
        return self.steered_policy(bins, epsilon).price
