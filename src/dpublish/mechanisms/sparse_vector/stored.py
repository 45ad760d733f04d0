"""A sparse vector that outlives its process: comparisons over weeks with one threshold.

`SparseVector` keeps its noisy threshold in memory.  A stream makes one comparison an hour, so
the noisy threshold must be stored between two comparisons.  It is a secret: whoever reads it
knows how far each answer was from it.  Noise of answers is drawn when it is needed and never
stored.

Known as: SVT, AboveThreshold; `docs/proofs/sparse_vector.md` has the proof.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.mechanisms.sparse_vector.calibration import SAMPLERS, Calibration, calibrate
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.randomness import RandomSource

MAX_GAP = 2**61  # beyond every threshold by far, so that clipping changes no outcome


@dataclass(frozen=True)
class StoredVector:
    """A noisy threshold in force and the positives that are still paid for.

    It is a value: a comparison gives the vector with which to go on.  Using an old one again
    would count a positive twice, so whoever stores it replaces it at once.

    Attributes:
        threshold_rate: Rate of the threshold's noise (public).
        answer_rate: Rate of each answer's noise (public).
        threshold_noise: What is added to every threshold.  Secret.
        positives_left: Positives that are still paid for (public).
        value_rate: Rate of the noise on a value that is published (public); None if none is paid.
    """

    threshold_rate: Fraction
    answer_rate: Fraction
    threshold_noise: int
    positives_left: int
    value_rate: Fraction | None = None

    def __repr__(self) -> str:
        return f"StoredVector(positives_left={self.positives_left})"

    @classmethod
    def draw(
        cls,
        *,
        sensitivity: int,
        max_positives: int,
        monotonic: bool = False,
        values_share: Fraction | None = None,
        budget: Budget,
        rng: RandomSource,
    ) -> "StoredVector":
        """Pay for a run of comparisons and perturb its threshold; settings as for `calibrate`.

        Privacy:
            All outcomes together are `budget.epsilon`-differentially private for neighbors
            that move no answer by more than `sensitivity` (and all one way if `monotonic`):
            `SparseVector`'s argument, which is about rates and outcomes and not about where
            the noisy threshold is kept.  One-sided noise; answers and thresholds may depend on
            earlier outcomes.  With `values_share`, one value for each positive is paid for.
        """
        calibration = calibrate(
            sensitivity=sensitivity,
            max_positives=max_positives,
            monotonic=monotonic,
            values_share=values_share,
            budget=budget,
        )
        noise = int(SAMPLERS[calibration.noise](calibration.threshold_rate, 1, rng)[0])
        return cls(
            threshold_rate=calibration.threshold_rate,
            answer_rate=calibration.answer_rate,
            threshold_noise=noise + calibration.offset,
            positives_left=max_positives,
            value_rate=calibration.value_rate,
        )

    def above(self, answer: int, threshold: int, rng: RandomSource) -> "tuple[bool, StoredVector]":
        """Say whether a true answer is above a public threshold, and how to go on."""
        if not self.positives_left:
            raise BudgetAlreadyUsed("all positives that were paid for are used")
        gap = max(-MAX_GAP, min(int(answer) - int(threshold), MAX_GAP))
        noise = int(SAMPLERS["exponential"](self.answer_rate, 1, rng)[0])
        is_above = gap + noise >= self.threshold_noise
        return is_above, replace(self, positives_left=self.positives_left - is_above)

    def value(self, answer: int, rng: RandomSource) -> int:
        """Perturb the answer to a query that was found above; once for each positive.

        The noise is fresh: that of the comparison would tell where the noisy threshold is.
        """
        if self.value_rate is None:
            raise InvalidParameter("no values were paid for; set values_share")
        return int(answer) + int(discrete_laplace(self.value_rate, 1, rng)[0])

    def to_dict(self) -> dict[str, Any]:
        """Turn the vector into plain values for a file that only the owner can read."""
        rate = self.value_rate
        values = {} if rate is None else {"value_rate": format_epsilon(rate)}
        return {
            "threshold_rate": format_epsilon(self.threshold_rate),
            "answer_rate": format_epsilon(self.answer_rate),
            "threshold_noise": self.threshold_noise,
            "positives_left": self.positives_left,
            **values,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "StoredVector":
        """Read back what `to_dict` wrote."""
        return cls(
            threshold_rate=parse_epsilon(plain["threshold_rate"]),
            answer_rate=parse_epsilon(plain["answer_rate"]),
            threshold_noise=int(plain["threshold_noise"]),
            positives_left=int(plain["positives_left"]),
            value_rate=parse_epsilon(plain["value_rate"]) if "value_rate" in plain else None,
        )


def comparison_deviation(calibration: Calibration) -> float:
    """Say how far noise moves a comparison: the standard deviation of answer minus threshold."""
    answer = calibration.answer_deviation
    threshold = calibration._replace(answer_rate=calibration.threshold_rate).answer_deviation
    return float((answer**2 + threshold**2) ** 0.5)
