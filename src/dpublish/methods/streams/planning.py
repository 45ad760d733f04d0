"""The default policies of DSAT: publish by plan, and early if the counts have jumped.

Published histograms show how fast the counts move: what noise does not explain of the
difference between two of them is change.  From the rate of change follow the interval at which
noise and staleness are together least, what to spend on a publication, and how far a snapshot
must be from the estimate before a fresh histogram is expected to be better.

Everything here is arithmetic on public numbers; `docs/methods/dsat.md` explains the rules.
`PlannedHorizon` serves a finite stream and `PlannedWindow` an endless one.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, log, sqrt

import numpy as np

from dpublish.mechanisms.sparse_vector.calibration import Calibration, calibrate
from dpublish.mechanisms.sparse_vector.stored import comparison_deviation
from dpublish.methods.streams.policy import Compare, History, Plan, Publication, Publish, Repeat
from dpublish.privacy.budget import Budget

GRAIN = 2**32
"""Budgets of publications are multiples of a GRAIN-th of epsilon, so that they stay exact."""

MEAN_OVER_DEVIATION = 0.75
"""E|x| for a standard deviation of 1: 0.71 for Laplace noise, 0.80 for normal change."""

_FORGET = 0.75  # weight of older evidence at each new publication
_EXPECTED_FALSE = 0.02  # false alarms that a stretch of comparisons may cause
_JUMP = 4.0  # a change so many times what the alarm stands for is a jump, not a drift
_CALM = 2.0  # an alarm needs so many times the error that a publication would leave

FIRST_PARTS = 10  # the first publication gets such a part: it is to show how many there are
DRIFT = 0.15  # part of all people by which counts are expected to drift, before anything is known
WINDOW_DRIFT = 0.2  # the same for a window
LEAST_PARTS = 4.0  # but at least so many publications are planned
_AT_ONCE = 2  # step of a second publication that follows the first at once
_MUCH_MORE = 1.5  # a second publication follows at once if it is to get so many times the first's
MOST_OF_HORIZON = 0.4  # of what is left; the rest is kept for jumps
_WORTH = 0.2  # a publication with less than so much of the last one would be noise beside it
_FEW_STEPS = 3  # with so few steps to go, nothing needs to be kept

MOST_AT_ONCE, LEAST_AT_ONCE = 0.6, 0.3  # of what a window has left, after an alarm
MOST_RESERVE = 0.4  # part of a window's budget that plans leave for jumps
_FEW_JUMPS = 3  # jumps expected in a window before anything is known
_READY = 0.9  # a planned publication waits until so much of its budget is there
_ENOUGH = 0.2  # a comparison is made only if so much of a usual budget is there


@dataclass(frozen=True)
class NoiseModel:
    """What determines the noise of a publication: the bins, the contribution bound, epsilon."""

    bins: int
    contribution: int
    epsilon: Fraction

    def exact(self, amount: float) -> Fraction:
        """Round a budget down to the grain."""
        return self.epsilon * floor(amount / float(self.epsilon) * GRAIN) / GRAIN

    def variance(self, epsilon: float) -> float:
        """Compute the variance that a publication's noise has in one bin."""
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


def expected_parts(history: History, model: NoiseModel, budget: float, drift: float) -> float:
    """Return how many publications are best if counts drift as they are expected to.

    Noise of the whole budget moves all bins together by about sqrt(bins) s / budget people, and
    that of one of C publications by C times as much.  If counts drift by a part g of all people
    meanwhile, a publication is on average g / 2C stale; both are equal at
    C = sqrt(g / 2 / noise).
    """
    noise = model.contribution * model.bins**0.5 / budget
    people = max(history.total, (model.bins * history.noise) ** 0.5)
    return max(LEAST_PARTS, sqrt(drift * people / noise / 2))


def change_rate(history: History, name: str = "shift") -> float:
    """Return the variance by which a bin moves in one step, as far as publications show."""
    seen = history.memory.get("lag", 0.0)
    return history.memory.get(name, 0.0) / seen if seen else 0.0


def learn_change(history: History) -> bool:
    """Enter the change that a publication shows; return whether it was a jump.

    Slow change has a rate, and the interval follows from it.  A jump has none: nothing is
    learned from it but that jumps happen.  Two jumps in a row are fast change: it has a rate,
    too, and the first of them is no longer counted as a jump.
    """
    memory, lag = history.memory, history.age
    alarm, after_jump = memory.pop("alarm", 0.0), memory.pop("jumped", 0.0)
    if history.published == 1 and history.step == _AT_ONCE:
        return False  # the first publication is too noisy to show what one step has changed
    if alarm and history.jump > _JUMP * alarm:
        if not after_jump:
            memory["jumped"] = 1.0
            return True
        memory["jumps"] = max(0.0, memory.get("jumps", 0.0) - 1)
    for name, seen in (("jump", history.jump), ("shift", history.shift), ("lag", lag)):
        memory[name] = _FORGET * memory.get(name, 0.0) + seen
    return False


def rate_after_alarm(history: History) -> float:
    """Return the rate of change if an alarm were steady change, not a jump."""
    lag = history.memory.get("lag", 0.0)
    return (lag * change_rate(history) + history.memory["alarm"]) / (lag + history.age)


def threshold(
    model: NoiseModel, history: History, epsilon: float, life: float, noise_bound: float
) -> int:
    """Return how far a snapshot must be from the estimate for a publication to pay.

    A publication of `epsilon` leaves an error of its noise plus what moves in its lifetime;
    the estimate must be worse than that by a factor.  It must also stand out from what noise in
    the estimate explains, by the `noise_bound` that the comparison's own noise calls for.
    """
    usual = model.variance(epsilon) + change_rate(history, "jump") * life
    scale = MEAN_OVER_DEVIATION * model.bins
    pays = scale * (_CALM * usual + history.noise) ** 0.5
    stands_out = scale * history.noise**0.5 + noise_bound
    limit = max(pays, stands_out)
    history.memory["alarm"] = (limit / scale) ** 2 - history.noise
    return int(min(limit, 2.0**60))


def comparison_noise_bound(
    epsilon: Fraction, positives: int, contribution: int, steps: int
) -> float:
    """Return how far noise moves a comparison but for once in fifty stretches of `steps`.

    One-sided noise has an exponential tail, so the bound grows with the logarithm of the
    number of comparisons.
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


@dataclass(frozen=True)
class PlannedHorizon:
    """Policy: spend what is left in proportion to how long a publication will last.

    Attributes:
        model: What determines the noise of a publication.
        horizon: Number of steps.
        publications: What all publications together may cost.
        positives: How many comparisons may be positive.
        noise_bound: How far a distance must stand out from noise (`comparison_noise_bound`).
    """

    model: NoiseModel
    horizon: int
    publications: Fraction
    positives: int
    noise_bound: float

    @property
    def first(self) -> Fraction:
        """What the first publication costs, before anything is known."""
        return self.model.exact(float(self.publications) / min(FIRST_PARTS, self.horizon))

    def plan(self, history: History) -> Plan:
        """Publish when the last publication's time is up, and compare before."""
        if not history.published:
            return Publish(self.first)
        left = float(self.publications - history.spent)
        steps = self.horizon - history.number
        life = self._life(history, left, steps)
        epsilon = self._share(history, left, life, steps)
        if not epsilon:
            return Repeat()
        limit = threshold(self.model, history, float(epsilon), life, self.noise_bound)
        is_worth = float(epsilon) > _WORTH * history.memory["paid"]
        if is_worth and history.step >= history.memory["next"]:
            return Publish(epsilon)
        if history.positives >= self.positives:
            return Repeat()
        shorter = self._life_after_alarm(history, left, steps, life)
        return Compare(limit, self._share(history, left, shorter, steps) or epsilon)

    def learn(self, history: History, publication: Publication) -> None:
        """Learn how fast counts move, and plan the next publication."""
        steps = max(self.horizon - publication.number, 1)
        left = float(self.publications - history.spent - publication.epsilon)
        if not history.published:
            parts = expected_parts(history, self.model, float(self.publications), DRIFT)
            history.memory["parts"] = min(parts, self.horizon)
        elif learn_change(history):
            history.memory["jumps"] = history.memory.get("jumps", 0) + 1
        life = self._life(history, left, steps, publication.number if history.published else 0)
        if not history.published:
            wanted = left * min(MOST_OF_HORIZON, life / steps)
            life = 1.0 if wanted > _MUCH_MORE * float(publication.epsilon) else life
        elif life > self._most(history) * steps > _FEW_STEPS:
            life = self._most(history) * steps  # no more than that was paid for
        history.memory["paid"] = float(publication.epsilon)
        history.memory["next"] = publication.number + max(1, round(life))

    def _life(self, history: History, left: float, steps: int, seen: int | None = None) -> float:
        """Predict how many steps a publication will last: until the next planned one or a jump.

        Only steps up to a publication that could be compared with one before it (`seen`)
        show how rare jumps are; the second one says nothing if it follows at once.
        """
        jumps = history.memory.get("jumps", 0)
        if seen is None:
            seen = history.last if history.published > 1 else 0
        seen = seen if seen > _AT_ONCE else 0
        between_jumps = (self.horizon / history.memory["parts"] + seen) / (1 + jumps)
        rate = change_rate(history)
        interval = best_interval(left, steps, rate, self.model.contribution)
        return max(1.0, min(interval, between_jumps, steps))

    def _life_after_alarm(self, history: History, left: float, steps: int, life: float) -> float:
        """Take an alarm for steady change: if it is, the publication will not last long."""
        rate = rate_after_alarm(history)
        return min(life, best_interval(left, steps, rate, self.model.contribution))

    def _share(self, history: History, left: float, life: float, steps: int) -> Fraction:
        whole = self.publications - history.spent
        if steps <= _FEW_STEPS and life >= steps:
            return whole
        return min(whole, self.model.exact(left * min(self._most(history), life / steps)))

    def _most(self, history: History) -> float:
        """Return the largest part of what is left that a publication may get."""
        return MOST_OF_HORIZON + (1 - MOST_OF_HORIZON) * history.number / self.horizon


@dataclass(frozen=True)
class PlannedWindow:
    """Policy: a steady rhythm that fits the rate of change, and a reserve for jumps.

    Attributes:
        model: What determines the noise of a publication.
        window: Number of steps in a window.
        publications: What the publications of any window may cost.
        positives: How many comparisons of any window may be positive.
        noise_bound: How far a distance must stand out from noise (`comparison_noise_bound`).
    """

    model: NoiseModel
    window: int
    publications: Fraction
    positives: int
    noise_bound: float

    @property
    def first(self) -> Fraction:
        """What the first publication costs, before anything is known."""
        return self.model.exact(float(self.publications) / min(FIRST_PARTS, self.window))

    def plan(self, history: History) -> Plan:
        """Publish in rhythm when there is budget for it, and compare in between."""
        if not history.published:
            return Publish(self.first)
        available = self.publications - history.recent_spending
        life = self._life(history)
        wanted = self._usual(life) * (1 - self._reserve(life))
        spend = float(available) * MOST_AT_ONCE
        limit = threshold(self.model, history, max(spend, wanted), life, self.noise_bound)
        if history.step >= history.memory["next"] and available >= _READY * wanted:
            return self._publish(min(available, self.model.exact(wanted)))
        if history.recent_positives >= self.positives or available < _ENOUGH * wanted:
            return Repeat()
        steady = self._usual(self._life_after_alarm(history, life))
        least = float(available) * LEAST_AT_ONCE
        epsilon = self.model.exact(min(max(steady, least), spend))
        return Compare(limit, epsilon) if epsilon else Repeat()

    def learn(self, history: History, publication: Publication) -> None:
        """Learn how fast counts move, and plan the next publication."""
        memory = history.memory
        if not history.published:
            parts = expected_parts(history, self.model, float(self.publications), WINDOW_DRIFT)
            memory["parts"] = min(max(_FEW_JUMPS, parts), self.window)
        else:
            lag = history.age
            is_jump = learn_change(history)
            memory["jumps"] = (
                0.8 * memory.get("jumps", 0.0) + 1 if is_jump else memory.get("jumps", 0.0)
            )
            memory["quiet"] = (0.8 if is_jump else 1.0) * memory.get("quiet", 0.0) + lag
        life = self._life(history)
        if not history.published and self._usual(life) > _MUCH_MORE * float(publication.epsilon):
            life = 1.0
        memory["next"] = publication.number + max(1, round(life))

    def _publish(self, epsilon: Fraction) -> Plan:
        return Publish(epsilon) if epsilon else Repeat()

    def _usual(self, life: float) -> float:
        """What a publication costs in a rhythm of one every `life` steps."""
        return float(self.publications) * life / self.window

    def _reserve(self, life: float) -> float:
        """What plans leave for jumps: little where the next publication is near anyway."""
        return MOST_RESERVE * min(1.0, 2 * life / self.window) * (1 - 1 / life)

    def _life(self, history: History) -> float:
        jumps, quiet = (history.memory.get(name, 0.0) for name in ("jumps", "quiet"))
        between_jumps = (self.window / history.memory["parts"] + quiet) / (1 + jumps)
        return max(1.0, min(self._interval(change_rate(history)), between_jumps, self.window))

    def _life_after_alarm(self, history: History, life: float) -> float:
        """Take an alarm for steady change: if it is, the publication will not last long."""
        return max(1.0, min(life, self._interval(rate_after_alarm(history))))

    def _interval(self, rate: float) -> float:
        budget, contribution = float(self.publications), self.model.contribution
        return best_interval(budget, self.window, rate, contribution)
