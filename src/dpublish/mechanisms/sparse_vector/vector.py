"""The sparse vector technique: which of many answers lie above a threshold?

Asking is free; being above is not.  The threshold is perturbed once and every answer afresh,
and only the side on which an answer falls is published.  The budget therefore pays for the
few answers above, however many are asked.  Answers and thresholds are integers: real
ones are put on a lattice first, and the sensitivity is counted in its steps.

Known as: SVT, AboveThreshold.
Reference: M. Lyu, D. Su, N. Li, "Understanding the Sparse Vector Technique for Differential
Privacy", PVLDB 10(6), 2017; D. Su, PhD thesis, Purdue, 2016, Alg. 23.
Proof: `docs/proofs/sparse_vector.md`.
"""

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from operator import index
from threading import Lock
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.exact.sampler import discrete_laplace
from dpublish.mechanisms.sparse_vector.calibration import SAMPLERS, NoiseKind, calibrate
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

MAX_THRESHOLD = 2**60
_MAX_ANSWER = 2**61  # so far beyond every threshold that clipping changes no outcome
_FIRST_BATCH, _LARGEST_BATCH = 32, 8192
_FIRST_BLOCK, _LARGEST_BLOCK = 4096, 65_536


class SparseVector:
    """Compare answers with thresholds, one at a time or in blocks, until enough are above.

    >>> from dpublish.randomness import seeded
    >>> budget = Budget.seeded(2)
    >>> vector = SparseVector(sensitivity=1, max_positives=2, budget=budget, rng=seeded(1))
    >>> vector.above(3, 50), vector.above(96, 50), vector.positives_left
    (False, True, 1)
    >>> vector.above_each(np.array([5, 88, 7]), 50)
    array([False,  True])
    """

    __slots__ = (
        "_batch",
        "_lock",
        "_positives_left",
        "_predrawn",
        "_process",
        "_rng",
        "_threshold_noise",
        "_values_left",
        "calibration",
    )

    def __init__(
        self,
        *,
        sensitivity: int,
        max_positives: int,
        monotonic: bool = False,
        noise: NoiseKind = "exponential",
        ratio: int | Fraction | None = None,
        values_share: Fraction | None = None,
        budget: Budget,
        rng: RandomSource,
    ) -> None:
        """Pay for the whole run and perturb the threshold; the settings are those of `calibrate`.

        Privacy:
            All outcomes together are `budget.epsilon`-differentially private, for neighbors
            that move no answer by more than `sensitivity` (and all one way if `monotonic`).
            Fix an outcome; pair threshold noise z on D with z + sensitivity on D', which costs
            exp(e1), e1 being the threshold's share.  Negatives are then free: no answer rises
            by more than the threshold did.  A positive has its gap moved by at most two
            sensitivities, costs exp(e2 / c), and there are at most c.  If all answers move
            together gaps move by one: pair z with itself if they fall.  Only upward shifts
            are used, so one-sided noise serves.  A published value costs e3 / c more.
            Queries and thresholds may depend on earlier outcomes; thresholds are public.
        """
        self.calibration = calibrate(
            sensitivity=sensitivity,
            max_positives=max_positives,
            monotonic=monotonic,
            noise=noise,
            ratio=ratio,
            values_share=values_share,
            budget=budget,
        )
        self._rng = rng
        self._lock = Lock()
        self._process = os.getpid()
        self._positives_left = max_positives
        self._values_left = 0
        self._predrawn: list[int] = []
        self._batch = _FIRST_BATCH
        threshold_noise = SAMPLERS[noise](self.calibration.threshold_rate, 1, rng)
        self._threshold_noise = int(threshold_noise[0]) + self.calibration.offset

    def __repr__(self) -> str:
        return f"SparseVector({self.calibration}, positives_left={self._positives_left})"

    def __reduce__(self) -> NoReturn:
        # A copy would use the same noise twice and count its positives anew.
        raise TypeError("a sparse vector cannot be copied or pickled")

    @property
    def positives_left(self) -> int:
        """How many more positive outcomes are paid for (public: it follows from the outcomes)."""
        return self._positives_left

    def above(self, answer: int, threshold: int) -> bool:
        """Return whether a true answer is above a public threshold."""
        gap = _integer(answer) - _integer(threshold)
        with self._lock:
            self._require_open()
            if not self._predrawn:
                self._predrawn = self._draw(self._batch).tolist()
                self._batch = min(2 * self._batch, _LARGEST_BATCH)
            is_above = gap + self._predrawn.pop() >= self._threshold_noise
            if is_above:
                self._count(1)
        return is_above

    def above_each(
        self, answers: NDArray[np.integer], thresholds: int | NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Say of each answer whether it is above its threshold, up to the last positive paid for.

        The result is shorter than `answers` if it ends at that positive.
        """
        gaps = integer_gaps(answers, thresholds)
        done = 0
        size = _FIRST_BLOCK
        parts = [np.empty(0, dtype=np.bool_)]
        with self._lock:
            self._require_open()
            while done < len(gaps) and self._positives_left:
                block = gaps[done : done + size]
                # The noise of a block is drawn for it alone; what lies past the end is dropped.
                is_above = block + self._draw(len(block)) >= self._threshold_noise
                hits = np.flatnonzero(is_above)[: self._positives_left]
                self._count(len(hits))
                parts.append(is_above if self._positives_left else is_above[: hits[-1] + 1])
                done += size
                size = min(2 * size, _LARGEST_BLOCK)
        return np.concatenate(parts)

    def noisy_value(self, answer: int) -> int:
        """Publish an answer that was found above, with noise of its own.

        The value that was compared must stay secret: it would tell where the noisy threshold
        is, and negatives would no longer be free.  Paid for by `values_share`, once a positive.
        """
        true_answer = _integer(answer)
        rate = self.calibration.value_rate
        if rate is None:
            raise InvalidParameter("no values were paid for; set values_share")
        with self._lock:
            self._require_process()
            if not self._values_left:
                raise BudgetAlreadyUsed("each positive outcome pays for one value, and all are out")
            self._values_left -= 1
            return true_answer + int(discrete_laplace(rate, 1, self._rng)[0])

    def _draw(self, count: int) -> NDArray[np.int64]:
        return SAMPLERS[self.calibration.noise](self.calibration.answer_rate, count, self._rng)

    def _count(self, positives: int) -> None:
        self._positives_left -= positives
        self._values_left += positives

    def _require_open(self) -> None:
        self._require_process()
        if not self._positives_left:
            raise BudgetAlreadyUsed("max_positives outcomes were positive; start with a new budget")

    def _require_process(self) -> None:
        if os.getpid() != self._process:
            raise BudgetAlreadyUsed(
                "a sparse vector stays in its process: a fork would reuse noise"
            )


def above_threshold(
    answers: Iterable[int],
    *,
    threshold: int,
    sensitivity: int,
    max_positives: int,
    monotonic: bool = False,
    noise: NoiseKind = "exponential",
    ratio: int | Fraction | None = None,
    budget: Budget,
    rng: RandomSource,
) -> Iterator[bool]:
    """Say of each answer whether it is above `threshold`, until enough are.

    The answers are read one by one, so a query may depend on the outcomes before it.  Checks
    and debit happen at the call, not at the first outcome.

    Privacy:
        `budget.epsilon`-differentially private, as a `SparseVector` that is asked in turn
        and ends with its last positive; the same assumptions hold.

    >>> from dpublish.randomness import seeded
    >>> settings = {"threshold": 50, "sensitivity": 1, "max_positives": 2}
    >>> list(above_threshold([3, 96, 5, 88, 7], **settings, budget=Budget.seeded(2), rng=seeded(1)))
    [False, True, False, True]
    """
    public_threshold = _integer(threshold)
    vector = SparseVector(
        sensitivity=sensitivity,
        max_positives=max_positives,
        monotonic=monotonic,
        noise=noise,
        ratio=ratio,
        budget=budget,
        rng=rng,
    )

    def outcomes() -> Iterator[bool]:
        for answer in answers:
            yield vector.above(answer, public_threshold)
            if not vector.positives_left:
                return

    return outcomes()


def integer_gaps(
    answers: NDArray[np.integer], thresholds: int | NDArray[np.integer]
) -> NDArray[np.int64]:
    """Subtract public thresholds from answers, refusing what is not whole.

    Refusals look at types and public thresholds alone.  Answers beyond all thresholds are
    clipped, which brings no two neighboring answers further apart and so costs nothing.
    """
    for name, values in (("answers", answers), ("thresholds", np.asarray(thresholds))):
        if not (isinstance(values, np.ndarray) and np.can_cast(values.dtype, np.int64)):
            raise InvalidParameter(f"{name} must be an array of integers of at most 64 bits")
    limits = np.asarray(thresholds, dtype=np.int64)
    if answers.ndim != 1 or limits.shape not in ((), answers.shape):
        raise InvalidParameter("answers must be one-dimensional, with one threshold or one each")
    if np.any((limits > MAX_THRESHOLD) | (limits < -MAX_THRESHOLD)):  # abs would wrap at -2**63
        raise InvalidParameter(f"thresholds must be at most {MAX_THRESHOLD} in size")
    return np.clip(answers.astype(np.int64), -_MAX_ANSWER, _MAX_ANSWER) - limits


def _integer(number: int) -> int:
    try:
        return index(number)
    except TypeError:
        raise InvalidParameter("answers and thresholds must be integers") from None
