"""How often to publish, and when a question is worth asking: from published numbers alone.

Published histograms tell how fast the counts move: what noise does not explain of the
difference between two of them is change.  From the rate of change follow the interval at which
noise and staleness are together least, what to spend on a publication, and how far a snapshot
must be from the estimate before a fresh histogram is expected to be better.

Everything here is arithmetic on public numbers; `docs/methods/dsat.md` explains the rules.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, log

import numpy as np

from dpublish.mechanisms.sparse_vector.calibration import Calibration, calibrate
from dpublish.mechanisms.sparse_vector.stored import comparison_deviation
from dpublish.methods.streams.history import History
from dpublish.privacy.budget import Budget

GRAIN = 2**32
"""Budgets of publications are whole multiples of a GRAIN-th of epsilon, so that they stay exact."""

MEAN_OVER_DEVIATION = 0.75
"""E|x| for a standard deviation of 1: 0.71 for Laplace noise, 0.80 for normal change."""

_FORGET = 0.75  # weight of older evidence at each new publication
_EXPECTED_FALSE = 0.02  # false alarms that a stretch of comparisons may cause
_JUMP = 4.0  # a change so many times what the alarm stands for is a jump, not a drift
_CALM = 2.0  # an alarm needs so many times the error that a publication would leave


@dataclass(frozen=True)
class Facts:
    """Public facts of a stream that its planning depends on."""

    bins: int
    contribution: int
    epsilon: Fraction

    def exact(self, amount: float) -> Fraction:
        """Round a budget down to the grain."""
        return self.epsilon * floor(amount / float(self.epsilon) * GRAIN) / GRAIN

    def variance(self, epsilon: float) -> float:
        """Give the variance that a publication's noise has in one bin."""
        return 2 * (self.contribution / epsilon) ** 2


def best_interval(budget: float, steps: float, change: float, contribution: int) -> float:
    """Find the interval at which noise and staleness are together least.

    `budget` lasts for `steps` steps, so a publication every i steps gets budget * i / steps.
    Counts move by a variance of `change` a step: a publication is on average change (i - 1) / 2
    stale.  Its noise counts half as it is and half as smoothing leaves it, since steady drift
    is smoothed less well than the filter supposes.
    """
    if change <= 0 or budget <= 0:
        return inf
    intervals = np.unique(np.rint(np.geomspace(1, max(steps, 1), 80)))
    noise = 2 * (contribution * steps / (budget * intervals)) ** 2
    moved = change * intervals
    smoothed = (np.sqrt(moved**2 + 4 * moved * noise) - moved) / 2
    cost = (noise + smoothed) / 2 + change * (intervals - 1) / 2
    return float(intervals[np.argmin(cost)])


def change_rate(history: History, name: str = "shift") -> float:
    """Say by what variance a bin moves in one step, as far as publications show."""
    seen = history.memory.get("lag", 0.0)
    return history.memory.get(name, 0.0) / seen if seen else 0.0


def learn_change(history: History) -> bool:
    """Enter the change that a publication shows; say whether it was a jump.

    Slow change has a rate, and the interval follows from it.  A jump has none: nothing is
    learned from it but that jumps happen.
    """
    memory, lag = history.memory, history.age
    alarm = memory.pop("alarm", 0.0)
    if alarm and history.jump > _JUMP * alarm:
        return True
    for name, seen in (("jump", history.jump), ("shift", history.shift), ("lag", lag)):
        memory[name] = _FORGET * memory.get(name, 0.0) + seen
    return False


def threshold(metadata: Facts, history: History, epsilon: float, life: float, margin: float) -> int:
    """Say how far a snapshot must be from the estimate for a publication to pay.

    A publication of `epsilon` leaves an error of its noise plus what moves in its lifetime;
    the estimate must be worse than that by a factor.  It must also stand out from what noise in
    the estimate explains, by the `margin` that the comparison's own noise calls for.
    """
    usual = metadata.variance(epsilon) + change_rate(history, "jump") * life
    scale = MEAN_OVER_DEVIATION * metadata.bins
    pays = scale * (_CALM * usual + history.noise) ** 0.5
    stands_out = scale * history.noise**0.5 + margin
    bar = max(pays, stands_out)
    history.memory["alarm"] = (bar / scale) ** 2 - history.noise
    return int(min(bar, 2.0**60))


def comparison_margin(epsilon: Fraction, positives: int, contribution: int, steps: int) -> float:
    """Say how far noise moves a comparison but for once in fifty stretches of `steps`.

    One-sided noise has an exponential tail, so the margin grows with the logarithm of the
    number of questions.
    """
    terms = comparison_terms(epsilon, positives, contribution)
    return comparison_deviation(terms) * max(1.0, log(steps / _EXPECTED_FALSE) - 1)


def comparison_terms(epsilon: Fraction, positives: int, contribution: int) -> Calibration:
    """Predict the noise of the sparse vector that the stream will pay for."""
    return calibrate(
        sensitivity=contribution,
        max_positives=positives,
        monotonic=False,
        budget=Budget.seeded(epsilon, "predicted"),
    )
