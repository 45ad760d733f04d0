"""Publish when the counts have moved far enough, for ever: users are hidden within windows.

Known as: DSAT under w-event privacy.
Reference: H. Li, L. Xiong, X. Jiang, J. Liu, "Differentially Private Histogram Publication for
Dynamic Datasets: An Adaptive Sampling Approach", CIKM 2015; G. Kellaris, S. Papadopoulos,
X. Xiao, D. Papadias, "Differentially Private Event Sequences over Infinite Streams", VLDB 2014.
The printed algorithm draws one noisy threshold for ever, which outcomes outside a window give
away; here each positive answer ends a run of questions and the next has fresh noise
(docs/proofs/stream.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import setting
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.contract import Comparisons
from dpublish.methods.streams.planned_window import PlannedWindow
from dpublish.methods.streams.steered_method import SteeredMethod

PLANNED_SHARE = Fraction(3, 100)
PLANNED_POSITIVES = 2
STEPS_OF_A_POSITIVE = 30  # long windows may see more jumps


@dataclass(frozen=True, kw_only=True)
class DSATw(SteeredMethod):
    """Method: histograms of an endless stream, published when it is worth while."""

    name: ClassVar[str] = "dsat-w"
    horizon: ClassVar[int | None] = None

    window: int = setting("Users are hidden within any so many consecutive steps (w).")

    def planned_comparisons(self, epsilon: Fraction) -> Comparisons:
        """Give the terms on which the default controller asks: one positive ends a run."""
        share = self.decision_share or PLANNED_SHARE
        return Comparisons(share * epsilon / self._positives, 1)

    def planned_policy(self, bins: Bins, epsilon: Fraction) -> PlannedWindow:
        """Give the policy of the default controller."""
        share = self.decision_share or PLANNED_SHARE
        return PlannedWindow(
            **self.planned_terms(bins, epsilon),
            window=self.window,
            publications=(1 - share) * epsilon,
            positives=self._positives,
        )

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Say what a publication costs; of `planned` the first, before anything is learned."""
        if self.controller == "planned":
            return self.planned_policy(bins, epsilon).first
        return self.steered_policy(bins, epsilon).price

    @property
    def _positives(self) -> int:
        return self.releases or max(PLANNED_POSITIVES, self.window // STEPS_OF_A_POSITIVE)
