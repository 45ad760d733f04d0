"""DSATw: publish when the counts have moved far enough; people are hidden within windows.

Known as: DSAT under w-event privacy.
Reference: H. Li, L. Xiong, X. Jiang, J. Liu, "Differentially Private Histogram Publication for
Dynamic Datasets: An Adaptive Sampling Approach", CIKM 2015; G. Kellaris, S. Papadopoulos,
X. Xiao, D. Papadias, "Differentially Private Event Sequences over Infinite Streams", VLDB 2014.
The printed algorithm draws one noisy threshold for ever, which outcomes outside a window
reveal; here each positive ends a run of comparisons and the next has fresh noise
(docs/proofs/stream.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import Standing, setting
from dpublish.methods.streams.dsat import AdaptiveSampling
from dpublish.methods.streams.planning import PlannedWindow
from dpublish.methods.streams.policy import Comparisons
from dpublish.methods.streams.snapshot import Bins

PLANNED_POSITIVES = 2
STEPS_OF_A_POSITIVE = 30  # long windows may see more jumps


@dataclass(frozen=True, kw_only=True)
class DSATw(AdaptiveSampling):
    """Publish a fresh histogram of an endless stream when the counts have moved far enough.

    It is DSAT under w-event privacy.  Choose it when the stream never ends and people must be
    hidden within any so many steps; choose `DSAT` when the stream has an end.

    Guarantee:
        Pure epsilon-differential privacy for one person within any `window` consecutive steps: all
        of the person's rows there, at most `contribution` in a snapshot (w-event privacy for
        people).  Each positive comparison ends a run, and the next run has fresh noise.  Proof:
        docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        window: Number of consecutive steps within which a person is hidden (w); the stream itself
            never ends.
        controller, releases, decision_share, burn_in, threshold, proportional_gain,
            integral_gain, derivative_gain, integral_window, target, step_size: What sets the
            threshold, and its settings; all as in `DSAT`.
        contribution, static, smoothing, trust_rows: Settings of every stream: the bound on a
            person's rows and how one histogram is published (`help(StreamMethod)`).

    Returns:
        A `Stream`, from `start`.  Its `next(table, rng=...)` returns a `Step`.  `worst` is the
        most that any window has cost, and `commitments(steps)` what coming windows hold already.

    Example:
        >>> from dpublish import Budget, DSATw, seeded
        >>> from dpublish.datasets.streams import bursty_stream
        >>> people = bursty_stream((10,), people=20_000, steps=20, bursts=1, seed=2)
        >>> rng = seeded(7)
        >>> stream = DSATw(columns=("x1",), window=10).start(
        ...     people.schema, budget=Budget.seeded("2"), rng=rng
        ... )
        >>> steps = [stream.next_counts(counts, rng=rng) for counts in people.counts]
        >>> [step.number for step in steps if step.action == "published"]  # half move at 17
        [1, 2, 4, 8, 12, 16, 17]
        >>> stream.worst <= 2
        True

    Reference:
        H. Li, L. Xiong, X. Jiang, J. Liu (2015), "Differentially Private Histogram Publication
        for Dynamic Datasets: An Adaptive Sampling Approach", CIKM; G. Kellaris, S. Papadopoulos,
        X. Xiao, D. Papadias (2014), "Differentially Private Event Sequences over Infinite
        Streams", PVLDB 7(12).
    """

    name: ClassVar[str] = "dsat-w"
    proofs: ClassVar[tuple[str, ...]] = ("stream", "sparse_vector", "exact")
    publishes: ClassVar[str] = "histograms of an endless stream when they are worth while"
    prefer_when: ClassVar[str] = (
        "the stream never ends, and people must be hidden within any so many steps"
    )
    standing: ClassVar[Standing] = "default"
    horizon: ClassVar[int | None] = None

    window: int = setting("People are hidden within any so many consecutive steps (w).")

    def planned_comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons:
        """Return the terms on which the default controller compares: one positive ends a run."""
        share = self.planned_share(bins)
        return Comparisons(share * epsilon / self._positives, 1)

    def planned_policy(self, bins: Bins, epsilon: Fraction) -> PlannedWindow:
        """Return the policy of the default controller."""
        share = self.planned_share(bins)
        return PlannedWindow(
            **self.planned_terms(bins, epsilon),
            window=self.window,
            publications=(1 - share) * epsilon,
            positives=self._positives,
        )

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what a publication costs; of `planned` the first, before anything is learned."""
        if self.controller == "planned":
            return self.planned_policy(bins, epsilon).first
        return self.controlled_policy(bins, epsilon).price

    @property
    def _positives(self) -> int:
        return self.releases or max(PLANNED_POSITIVES, self.window // STEPS_OF_A_POSITIVE)
