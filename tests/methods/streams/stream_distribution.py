"""Exact likelihood of what a stream publishes, with the noisy thresholds summed out.

The real loop runs, with its policy and its account; only the draws of noise are replaced.
A scripted answer replaces each comparison and a scripted histogram each publication, and `Side`
adds up how likely they are.  Given the noisy threshold the comparisons of a run are independent,
so a run is a sum over the values of its noisy threshold.

The neighbor has one more user, who is at every step in one of three states: absent, in a bin
that holds more than the estimate says (the distance rises by all of their rows) or in one that
holds less (it falls by them).  Published histograms are such that every publication tells as
much as it can.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import expm1, inf, log, log1p

import numpy as np
import pytest
from scipy.special import logsumexp

from dpublish.data.schema import Schema, column
from dpublish.mechanisms.sparse_vector.calibration import Calibration, calibrate
from dpublish.methods.streams import snapshot
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.policy import Compare
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

SCHEMA = Schema((column("area", "category", values=["rises", "one", "two", "dense"]),))
BINS = len(SCHEMA["area"].axis().labels)
SHARED = {"columns": ("area",), "trust_rows": True}
DENSE = 1_000_000
ABSENT, RISES, FALLS = None, "rises", "falls"


class DistributionVector:
    """Stands in for a stored vector: a weight for each value of its noisy threshold."""

    def __init__(self, calibration: Calibration, positives: int, side: "Side") -> None:
        self.calibration, self.positives_left, self.side = calibration, positives, side
        rate = float(calibration.threshold_rate)
        bound = int(60 / rate + 120 / float(calibration.answer_rate)) + 2
        is_one_sided = calibration.noise == "exponential"
        values = np.arange(0 if is_one_sided else -bound, bound + 1)
        height = log(-expm1(-rate)) if is_one_sided else log(np.tanh(rate / 2))
        self.thresholds = values + calibration.offset
        self.weights = height - rate * np.abs(values)

    @classmethod
    def draw(cls, *, sensitivity, max_positives, budget, side):
        calibration = calibrate(
            sensitivity=sensitivity, max_positives=max_positives, monotonic=False, budget=budget
        )
        return cls(calibration, max_positives, side)

    def above(self, answer, threshold, rng):
        is_above = self.side.answer()
        needed = self.needed(answer, threshold)
        tail = log_tail if is_above else log_below
        rate = float(self.calibration.answer_rate)
        self.weights = self.weights + tail(self.calibration.noise, rate, needed)
        self.positives_left -= is_above
        return is_above, self

    def needed(self, answer, threshold):
        """Noise on the answer that makes it a positive, at every value of the threshold."""
        return self.thresholds + threshold - answer


@dataclass
class Side:
    """One of two neighboring streams: what is published there, and how likely it is."""

    aboves: frozenset[int]
    vector: type[DistributionVector] = DistributionVector
    step: int = 0
    threshold: int = 0
    published: int = 0
    likelihood: float = 0.0
    runs: list[DistributionVector] = field(default_factory=list)

    def answer(self) -> bool:
        return self.step in self.aboves

    def draw(self, *, sensitivity, max_positives, budget, rng) -> DistributionVector:
        self.runs.append(
            self.vector.draw(
                sensitivity=sensitivity, max_positives=max_positives, budget=budget, side=self
            )
        )
        return self.runs[-1]

    def add_noise(self, values, *, sensitivity, budget, rng):
        """Stands in for noise: on one distance, or on a histogram."""
        draw = self.publish if values.ndim else self.compare
        return draw(values, sensitivity=sensitivity, budget=budget, rng=rng)

    def compare(self, distance, *, sensitivity, budget, rng):
        """Stands in for the noise on a single comparison."""
        rate = float(budget.spend() / sensitivity)
        tail = log_tail if self.answer() else log_below
        self.likelihood += float(tail("laplace", rate, np.array(self.threshold - int(distance))))
        return np.array(self.threshold if self.answer() else self.threshold - 1)

    def publish(self, counts, *, sensitivity, budget, rng):
        """Stands in for the noise on a histogram."""
        rate = float(budget.spend() / sensitivity)
        scripted = np.zeros(BINS, dtype=np.int64)
        scripted[1 + (self.published + 1) % 2] = 10
        scripted[3] = DENSE
        self.likelihood -= rate * float(np.abs(scripted - counts).sum())
        self.published += 1
        return scripted

    def total(self) -> float:
        return self.likelihood + sum(float(logsumexp(run.weights)) for run in self.runs)


@dataclass(frozen=True)
class Audit:
    """A method and what to measure it with."""

    method: StreamMethod
    epsilon: Fraction
    steps: int
    monkeypatch: pytest.MonkeyPatch
    vector: type[DistributionVector] = DistributionVector
    below_gap: int = 6
    above_gap: int = -30

    @cached_property
    def receipt(self):
        started = self.method.start(SCHEMA, budget=Budget.seeded(self.epsilon), rng=seeded(1))
        return started.receipt

    def loss(self, positions, aboves) -> float:
        """Log ratio of the likelihoods of one outcome without and with the user."""
        return self.likelihood([ABSENT] * self.steps, aboves) - self.likelihood(positions, aboves)

    def likelihood(self, positions, aboves) -> float:
        side = Side(frozenset(aboves), self.vector)
        opened = self.method.resume(SCHEMA, None, self.receipt)
        with self.monkeypatch.context() as patch:
            patch.setattr(snapshot, "StoredVector", side)
            patch.setattr(snapshot, "add_geometric", side.add_noise)
            for position in positions:
                side.step = opened.number + 1
                opened.next_counts(self.snapshot(opened, side, position), rng=seeded(1))
        assert opened.worst <= self.epsilon
        return side.total()

    def snapshot(self, opened, side, position) -> np.ndarray:
        """Counts whose distance from the estimate is the threshold plus the gap wanted."""
        history = deepcopy(opened._history)
        history.begin_step()
        plan = opened._policy.plan(history)
        falling = 1 + side.published % 2
        counts = np.zeros(BINS, dtype=np.int64)
        counts[[falling, 3]] = 5, DENSE
        if isinstance(plan, Compare):
            side.threshold = plan.threshold
            gap = self.above_gap if side.answer() else self.below_gap
            estimate = opened.estimate if opened.estimate is not None else np.zeros(BINS)
            counts[0] = max(0, plan.threshold + gap - int(np.abs(counts - estimate).sum()))
        if position is not ABSENT:
            counts[0 if position is RISES else falling] += self.method.contribution
        return counts

    def outcomes(self):
        """All sets of steps that may be told to be above; the first step asks nothing."""
        for answers in product([False, True], repeat=self.steps - 1):
            yield {number for number, is_above in enumerate(answers, 2) if is_above}

    def worst(self, neighbors) -> float:
        """Largest loss over all outcomes and the given positions of the user."""
        found = -inf
        for aboves in self.outcomes():
            here = self.likelihood([ABSENT] * self.steps, aboves)
            for positions in neighbors:
                found = max(found, abs(here - self.likelihood(positions, aboves)))
        return found


def log_tail(noise, rate, k):
    """Log of P(noise >= k)."""
    if noise == "exponential":
        return -rate * np.maximum(k, 0)
    scale = log1p(np.exp(-rate))
    with np.errstate(over="ignore"):
        inner = np.log1p(-np.exp(-rate * np.maximum(1 - k, 0) - scale))
    return np.where(k >= 1, -rate * k - scale, inner)


def log_below(noise, rate, k):
    """Log of P(noise < k)."""
    if noise == "laplace":
        return log_tail(noise, rate, 1 - k)
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(-rate * np.maximum(k, 0)))
