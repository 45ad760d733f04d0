"""The sparse vector technique as the textbook has it, kept to compare with.

The threshold is perturbed anew after every positive, so its noise must grow with their number.
`SparseVector` perturbs it once and is never worse: use that one.

Known as: SVT-DPBook.
Reference: C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, as
Alg. 18 of D. Su, PhD thesis, Purdue, 2016.  The listing there swaps the two shares in the noise
of the answers and in the redraw, which is harmless only because they are equal.
"""

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import require_count
from dpublish.mechanisms.exact.sampler import discrete_laplace, require_rate
from dpublish.mechanisms.sparse_vector.calibration import Calibration
from dpublish.mechanisms.sparse_vector.vector import integer_gaps
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource


def calibrate_book(*, sensitivity: int, max_positives: int, budget: Budget) -> Calibration:
    """Spend `budget`, half on the thresholds and half on the answers."""
    require_count(sensitivity=sensitivity, max_positives=max_positives)
    moves = max_positives * sensitivity
    require_rate(budget.epsilon / (4 * moves))
    shares = budget.split(threshold=1, answers=1)
    return Calibration(
        noise="laplace",
        threshold_rate=shares["threshold"].spend() / moves,
        answer_rate=shares["answers"].spend() / (2 * moves),
    )


def above_threshold_book(
    answers: NDArray[np.integer],
    *,
    threshold: int,
    sensitivity: int,
    max_positives: int,
    budget: Budget,
    rng: RandomSource,
) -> NDArray[np.bool_]:
    """Say of each answer whether it is above `threshold`, up to the last positive paid for.

    Privacy:
        `budget.epsilon`-differentially private: the run is a sequence of at most
        `max_positives` (c) runs that end with their first positive, each with a threshold
        noise of its own.  In one of them the shift of the threshold costs e1 / c, negatives
        are free, and the positive, whose gap moves by at most two sensitivities, costs e2 / c.
        Assumes that one record moves no answer by more than `sensitivity`.
    """
    gaps = integer_gaps(answers, threshold)
    calibration = calibrate_book(
        sensitivity=sensitivity, max_positives=max_positives, budget=budget
    )
    noisy_gaps = gaps + discrete_laplace(calibration.answer_rate, len(gaps), rng)
    threshold_noises = discrete_laplace(calibration.threshold_rate, max_positives, rng)
    is_above = np.zeros(len(gaps), dtype=np.bool_)
    done = 0
    for threshold_noise in threshold_noises:
        hits = np.flatnonzero(noisy_gaps[done:] >= threshold_noise)
        if not len(hits):
            return is_above
        done += int(hits[0]) + 1
        is_above[done - 1] = True
    return is_above[:done]
