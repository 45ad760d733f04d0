"""Retraversal and the exponential mechanism on long lists, drawn at once.  Not private.

The real mechanisms draw noise for every item in every pass, or weigh all items for every
choice.  On lists of tens of thousands of items an experiment would wait for minutes.  What is
drawn here has the same distribution, up to the rounding of floats, in one step:

- Given the noisy threshold, an item passes each test with the same probability p, and tests are
  independent; so the pass in which it is first found above is geometric with p.
- Choosing c items one after another by the exponential mechanism is choosing the c highest
  scores plus Gumbel noise of scale c / epsilon.
"""

from fractions import Fraction

import numpy as np

from dpublish.mechanisms.sparse_vector.calibration import SAMPLERS, NoiseKind, calibrate
from dpublish.mechanisms.sparse_vector.retraversal import noisy_order_statistic
from dpublish.mechanisms.top_k import random_order
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray, IntArray

LONG = 20_000
"""Lists of more items than this are long."""
_THRESHOLD_SHARE = Fraction(1, 10)


def retraverse_at_once(
    scores: IntArray,
    *,
    count: int,
    threshold: int | None,
    deviations: int | Fraction = 3,
    max_passes: int = 100,
    sensitivity: int,
    monotonic: bool,
    noise: NoiseKind,
    budget: Budget,
    rng: RandomSource,
) -> list[int]:
    """Choose as `retraverse` does, from the same distribution.

    Privacy:
        None: it computes with floats.  For experiments on public data.
    """
    if threshold is None:
        shares = budget.split(level=_THRESHOLD_SHARE, search=1 - _THRESHOLD_SHARE)
        budget = shares["search"]
        threshold = noisy_order_statistic(
            scores, rank=count, sensitivity=sensitivity, budget=shares["level"], rng=rng
        )
    calibration = calibrate(
        sensitivity=sensitivity,
        max_positives=count,
        monotonic=monotonic,
        noise=noise,
        budget=budget,
    )
    drawn = int(SAMPLERS[noise](calibration.threshold_rate, 1, rng)[0])
    rise = round(deviations * Fraction(calibration.answer_deviation))
    needed = threshold + rise + drawn + calibration.offset - scores
    passes = _first_passes(_tail(noise, float(calibration.answer_rate), needed), rng)
    order = random_order(len(scores), rng)
    found = order[passes[order] <= max_passes]
    chosen: list[int] = found[np.argsort(passes[found], kind="stable")][:count].tolist()
    return chosen


def choose_at_once(scores: IntArray, count: int, epsilon: float, rng: RandomSource) -> list[int]:
    """Choose as `top_k(method="peel-exponential")` does, from the same distribution.

    Privacy:
        None: it computes with floats.  For experiments on public data.
    """
    keys = scores * (epsilon / count) - np.log(-np.log(_uniform(len(scores), rng)))
    finalists = np.argpartition(keys, -count)[-count:]
    chosen: list[int] = finalists[np.argsort(-keys[finalists])].tolist()
    return chosen


def _first_passes(probabilities: FloatArray, rng: RandomSource) -> FloatArray:
    """Draw the first success of each in a row of trials; infinite if there is never one."""
    with np.errstate(divide="ignore"):  # certain and impossible successes
        drawn = np.log(_uniform(len(probabilities), rng)) / np.log1p(-probabilities)
    return np.maximum(np.ceil(np.where(probabilities > 0, drawn, np.inf)), 1)


def _tail(noise: NoiseKind, rate: float, needed: IntArray) -> FloatArray:
    """Compute the probability that noise is at least what is needed."""
    if noise == "exponential":
        return np.asarray(np.exp(-rate * np.maximum(needed, 0)), dtype=np.float64)
    far = np.exp(-rate * np.maximum(needed, 1 - needed)) / (1 + np.exp(-rate))
    return np.asarray(np.where(needed >= 1, far, 1 - far), dtype=np.float64)


def _uniform(size: int, rng: RandomSource) -> FloatArray:
    """Draw numbers between 0 and 1, both excluded."""
    words = np.right_shift(rng.words(size), np.uint64(11)).astype(np.float64)
    return (words + 0.5) / 2.0**53
