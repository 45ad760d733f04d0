"""DSAT: publish when the counts have moved far enough, by a threshold that adapts.

Known as: distance-based sampling with adaptive threshold.
Reference: H. Li, L. Xiong, X. Jiang, J. Liu, "Differentially Private Histogram Publication for
Dynamic Datasets: An Adaptive Sampling Approach", CIKM 2015.  The printed algorithm is not
private; docs/proofs/stream.md says what was mended.  People are hidden in all steps of a finite
stream; `dsat_w` hides them within windows of an endless one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log
from typing import Any, ClassVar, Literal

from dpublish.core.method import ExpectedError, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.sparse_vector.calibration import require_share
from dpublish.methods.streams.dsft import (
    CLEARLY,
    SIZE,
    ThresholdPolicy,
    share_for_decisions,
    with_people,
)
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.planning import (
    FIRST_PARTS,
    NoiseModel,
    PlannedHorizon,
    comparison_noise_bound,
)
from dpublish.methods.streams.policy import Comparisons, History, Policy, Publication
from dpublish.methods.streams.snapshot import Bins

JUMPS_ONLY = 4  # comparisons that look for jumps only get so small a part of the best share
LEAST_SHARE = Fraction(1, 100)
PLANNED_POSITIVES = 8
USUAL_RELEASES = 10
USUAL_ERRORS = 10  # recent errors that the integral of the printed controller adds up
MOST_ERRORS = 1000
MOST_GAIN = 1000  # thresholds move by factors of e to the gain, so more makes no difference
_MOST_ERROR = 3.0
_MOST_INTEGRAL = 2.0
_MOST_EXPONENT = 700.0  # e to it is still a float, and far beyond every threshold
_LARGEST_EXCESS = 2.0  # two histograms of n rows each are at most 2n apart
STATE = "threshold"
_HIGHEST = 2.0  # two normalized histograms are at most this far apart


@dataclass(frozen=True, kw_only=True)
class PIDThreshold(ThresholdPolicy):
    """Policy: multiply a first threshold up when publications are ahead, down when behind.

    It is the PID controller of DSAT, mended: the printed one measures its error wrongly and ends
    up at fixed intervals.

    All that it sees are the times of past publications, so its state is public.  The excess
    never falls below what noise hardly reaches; the noisy threshold itself is not clamped.

    Attributes:
        proportional_gain: What each publication ahead of schedule adds to the threshold's
            logarithm (P).
        integral_gain: What it adds for good at every step (I); the sum stays within 2 (no
            windup).
        derivative_gain: What its change since the last publication adds (D).
        dead_band: Publications ahead or behind that do not count.
        first_threshold: The excess on schedule, as a part of the first total.
        integral_window: How many recent errors the integral adds up; None adds up all of them.
    """

    burn_in: int = 2
    proportional_gain: float = log(4)
    integral_gain: float = 0.0
    derivative_gain: float = 0.0
    dead_band: float = 0.5
    first_threshold: float = 0.025
    integral_window: int | None = None

    def excess(self, history: History) -> float:
        """Return how far beyond the noise floor the counts must be to be published."""
        memory, error = history.memory, self._error(history)
        integral = _clip(self._integral(history, error), _MOST_INTEGRAL)
        slope = (error - memory.get("error_at_release", 0.0)) / history.age
        memory.update(error=error, integral=integral)
        lowest = CLEARLY * self.deviation(history)
        highest = max(lowest, _LARGEST_EXCESS * memory[SIZE])
        exponent = _clip(
            self.proportional_gain * error + integral + self.derivative_gain * slope, _MOST_EXPONENT
        )
        usual = max(self.first_threshold * memory[SIZE], lowest)
        return min(max(usual * exp(exponent), lowest), highest)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember the first total, and how far off schedule the last publication was."""
        super().learn(history, publication)
        history.memory["error_at_release"] = history.memory.get("error", 0.0)

    def _integral(self, history: History, error: float) -> float:
        if self.integral_window is None:
            return history.memory.get("integral", 0.0) + self.integral_gain * error
        return self.integral_gain * recent_sum(history, error, self.integral_window)

    def _error(self, history: History) -> float:
        """Publications ahead of schedule (negative: behind) beyond the dead band."""
        ahead = self._ahead(history)
        size = min(max(abs(ahead) - self.dead_band, 0.0), _MOST_ERROR)
        return size if ahead > 0 else -size

    def _ahead(self, history: History) -> float:
        done = history.step - 1
        if self.window is not None:
            due = self.quota * min(done, self.window - 1) / self.window
            return len(history.recent) - due
        steps = (self.horizon or 2) - 1
        return (history.published - 1) - (self.quota - 1) * done / steps


@dataclass(frozen=True, kw_only=True)
class PaperController(ThresholdPolicy):
    """Policy: move the threshold by a step that depends on the rate of publications.

    It is the controller of DSAT as it was printed, for reproduction: prefer `PIDThreshold`.  Its
    error is 1 when publications are exactly on schedule, so the threshold runs from one end of
    its range to the other and publications fall at fixed intervals, whatever the data does.  The
    printed algorithm clamps the *noisy* threshold, which removes its noise and with it the
    privacy; here the public state is clamped and noise is added afterward.  For windows it
    divides by the length of the stream so far; here by that of the window.

    Attributes:
        step_size: The step at an error of 1 (theta), in parts of the first total.
        target: The printed set point of the error (delta).
        first_threshold: Where the threshold begins, in parts of the first total.
        proportional_gain: Weight of the error itself (theta_P); the thesis has 1.
        integral_gain: Weight of the sum of recent errors (theta_I); the thesis has 0.
        derivative_gain: Weight of its change since the last publication (theta_D); 0.
        integral_window: How many recent errors that sum has (w).
    """

    burn_in: int = 2
    step_size: float = 0.5
    target: float = 0.05
    first_threshold: float = 0.5
    proportional_gain: float = 1.0
    integral_gain: float = 0.0
    derivative_gain: float = 0.0
    integral_window: int = USUAL_ERRORS

    def excess(self, history: History) -> float:
        """Return how far beyond the noise floor the counts must be to be published."""
        state = history.memory.get(STATE, self.first_threshold)
        history.memory[STATE] = self.move(state, history)
        return history.memory[STATE] * history.memory[SIZE]

    def move(self, state: float, history: History) -> float:
        """Move the public state: down when publications are due, else up; within its range."""
        span = self.horizon or self.window or 1
        elapsed = history.step if self.window is None else min(history.step, self.window)
        published = self.count(history)
        feedback = abs(published / elapsed - self.quota / span)
        error = abs(feedback - self.target) / self.target
        change = self.step_size * self._output(history, error)
        if published * span <= self.quota * elapsed:
            return min(_HIGHEST, max(0.0, state - change))
        return min(_HIGHEST, max(0.0, state + change))

    def learn(self, history: History, publication: Publication) -> None:
        """Remember the first total, and the error at the last publication."""
        super().learn(history, publication)
        history.memory["error_at_release"] = history.memory.get("error", 0.0)

    def _output(self, history: History, error: float) -> float:
        """Add up the three terms of the printed controller (its equation 4.2.3)."""
        memory = history.memory
        slope = (error - memory.get("error_at_release", 0.0)) / history.age
        memory["error"] = error
        integral = recent_sum(history, error, self.integral_window) if self.integral_gain else 0.0
        return (
            self.proportional_gain * error
            + self.integral_gain * integral
            + self.derivative_gain * slope
        )


def recent_sum(history: History, error: float, window: int) -> float:
    """Enter an error in the memory, and add up the last `window` of them.

    >>> history = History(None)
    >>> def enter(error):
    ...     history.number += 1
    ...     return recent_sum(history, error, 2)
    >>> [enter(error) for error in (1.0, 2.0, 4.0)]
    [1.0, 3.0, 6.0]
    """
    memory = history.memory
    memory[f"error {history.step % window}"] = error
    return sum(memory.get(f"error {position}", 0.0) for position in range(window))


PID_SETTINGS: Mapping[str, str] = {
    "threshold": "first_threshold",
    "proportional_gain": "proportional_gain",
    "integral_gain": "integral_gain",
    "derivative_gain": "derivative_gain",
    "integral_window": "integral_window",
}
PAPER_SETTINGS: Mapping[str, str] = {
    **PID_SETTINGS,
    "target": "target",
    "step_size": "step_size",
}


@dataclass(frozen=True, kw_only=True)
class AdaptiveSampling(StreamMethod):
    """What both forms of DSAT share: three controllers, and the settings of each."""

    controller: Literal["planned", "schedule", "paper"] = setting(
        "What sets the threshold: planned publishes in a rhythm that it learns, and early after a "
        "jump; schedule keeps to `releases` by a PID controller; paper is the thesis's, repaired.",
        default="planned",
    )
    releases: int | None = setting(
        "schedule, paper: most publications (C), 10 unless given; planned: most early ones.",
        default=None,
    )
    decision_share: Fraction | None = setting(
        "Share of epsilon that pays for comparisons; by default what serves the controller best.",
        default=None,
    )
    burn_in: int = setting("schedule, paper: no comparison up to this step (M).", default=2)
    threshold: Fraction | None = setting(
        "schedule, paper: where the threshold begins (T), as a part of the first total; 1/40 and "
        "1/2.",
        default=None,
    )
    proportional_gain: Fraction | None = setting(
        "schedule: what a publication ahead adds to the threshold's logarithm (P), ln 4; paper: "
        "weight of the error, 1.",
        default=None,
    )
    integral_gain: Fraction | None = setting(
        "schedule, paper: what being ahead adds at each step (I); 0.", default=None
    )
    derivative_gain: Fraction | None = setting(
        "schedule, paper: what getting further ahead adds (D); 0.", default=None
    )
    integral_window: int | None = setting(
        "schedule, paper: recent errors that the integral adds up; all of them, and 10.",
        default=None,
    )
    target: Fraction | None = setting(
        "paper: set point of the error in the rate of publications (delta); 1/20.", default=None
    )
    step_size: Fraction | None = setting(
        "paper: step of the threshold at an error of 1 (theta); 1/2.", default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(burn_in=self.burn_in)
        if self.releases is not None:
            require_count(releases=self.releases)
        if self.decision_share is not None:
            require_share(decision_share=self.decision_share)
        for name, steps in (("horizon", self.horizon), ("window", self.window)):
            if steps is not None:
                require_count(**{name: steps})
        self._require_sound_controller()

    def _require_sound_controller(self) -> None:
        """Refuse settings of the thesis's controllers that have no sense."""
        for name in ("threshold", "target", "step_size"):
            given = getattr(self, name)
            if given is not None and not 0 < given <= MOST_GAIN:
                raise InvalidParameter(f"{name} must be above 0 and at most {MOST_GAIN:,}")
        if self.integral_window is not None and not 1 <= self.integral_window <= MOST_ERRORS:
            raise InvalidParameter(f"integral_window must be from 1 to {MOST_ERRORS:,}")
        for name in ("proportional_gain", "integral_gain", "derivative_gain"):
            if abs(getattr(self, name) or 0) > MOST_GAIN:
                raise InvalidParameter(f"{name} must be at most {MOST_GAIN:,}")

    @property
    def smooths(self) -> bool:
        """Whether publications are weighed against each other over time."""
        return self.controller == "planned" if self.smoothing is None else self.smoothing

    def comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons | None:
        """Return the terms of the sparse vector."""
        if self.controller == "planned":
            return self.planned_comparisons(bins, epsilon)
        return self.controlled_policy(bins, epsilon).comparisons

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy for a stream of `epsilon`."""
        if self.controller == "planned":
            return self.planned_policy(bins, epsilon)
        return self.controlled_policy(bins, epsilon)

    def planned_policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy of the default controller."""
        raise NotImplementedError

    def planned_comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons:
        """Return the terms on which the default controller compares."""
        raise NotImplementedError

    def planned_share(self, bins: Bins) -> Fraction:
        """Return the share of epsilon for comparisons of the default controller.

        Comparisons only have to notice jumps, so they get a part of what would measure
        distances best; with many bins that is little.
        """
        if self.decision_share is not None:
            return self.decision_share
        best = share_for_decisions(
            None,
            bins=bins.size,
            releases=USUAL_RELEASES,
            horizon=self.horizon,
            window=self.window,
        )
        return max(best / JUMPS_ONLY, LEAST_SHARE)

    def planned_terms(self, bins: Bins, epsilon: Fraction) -> dict[str, Any]:
        """Return what the default controllers of both forms are made from."""
        terms = self.planned_comparisons(bins, epsilon)
        return {
            "model": NoiseModel(bins.size, self.contribution, epsilon),
            "noise_bound": comparison_noise_bound(
                terms.epsilon, terms.positives, self.contribution, self.span
            ),
        }

    def controlled_policy(self, bins: Bins, epsilon: Fraction) -> PIDThreshold | PaperController:
        """Return the policy of one of the thesis's controllers."""
        releases = self.releases or USUAL_RELEASES
        share = share_for_decisions(
            self.decision_share,
            bins=bins.size,
            releases=releases,
            horizon=self.horizon,
            window=self.window,
        )
        terms: dict[str, Any] = {
            "bins": bins.size,
            "contribution": self.contribution,
            "epsilon_decisions": share * epsilon,
            "epsilon_publications": (1 - share) * epsilon,
            "releases": releases,
            "horizon": self.horizon,
            "window": self.window,
            "burn_in": self.burn_in,
        }
        if self.controller == "paper":
            return PaperController(**terms, **self._given(PAPER_SETTINGS))
        return PIDThreshold(**terms, **self._given(PID_SETTINGS))

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a publication, and how many people a controller's decisions need."""
        found = super().expected_error(schema, n_records, epsilon)
        if self.controller == "planned":
            return found
        policy = self.controlled_policy(Bins.of(schema, self.columns), epsilon)
        return with_people(found, policy, policy.first_threshold)

    def _given(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings that were given, under their names in a controller."""
        found = {}
        for name, its_name in names.items():
            value = getattr(self, name)
            if value is not None:
                found[its_name] = value if isinstance(value, int) else float(value)
        return found


@dataclass(frozen=True, kw_only=True)
class DSAT(AdaptiveSampling):
    """Publish a fresh histogram of a finite stream when the counts have moved far enough.

    DSAT is distance-based sampling with an adaptive threshold.  Choose it when the stream has an
    end and people must be hidden in all of it; choose `DSATw` for an endless stream.

    Guarantee:
        Pure epsilon-differential privacy for all rows of one person in all steps of the horizon.
        A snapshot keeps at most `contribution` rows of a person.  Proof: docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        horizon: Number of steps of the stream.
        controller: What sets the threshold.  `"planned"` publishes in a rhythm that it learns,
            and early after a jump; `"schedule"` keeps to `releases` publications by a PID
            controller; `"paper"` is the printed controller, repaired.
        releases: With `"schedule"` and `"paper"` the most publications (10 unless given); with
            `"planned"` the most early ones.
        decision_share: Share of epsilon that pays for comparisons.
        burn_in: With `"schedule"` and `"paper"`, no comparison up to this step.
        threshold: With `"schedule"` and `"paper"`, where the threshold begins.
        proportional_gain, integral_gain, derivative_gain: Gains of the PID controller.
        integral_window: Recent errors that its integral adds up.
        target, step_size: With `"paper"`, its set point (delta) and step (theta).
        contribution: Most rows of one person that a snapshot keeps.
        static: How one histogram is published; `"identity"` adds noise to every bin.
        smoothing: Whether publications are weighed against each other over time.
        trust_rows: Take a schema without a unit; you vouch for the contribution bound.

    Returns:
        `start` returns a `Stream`.  Its `next(table, rng=...)` returns a `Step` with `estimate`,
        `released`, `noise` and `spent`.  `StreamOperator` keeps a stream in files for years.

    Example:
        >>> from dpublish import DSAT, Budget, open_table, seeded
        >>> from dpublish.datasets.streams import bursty_stream, snapshots
        >>> people = bursty_stream((10,), people=20_000, steps=20, bursts=1, seed=2)
        >>> rng, method = seeded(7), DSAT(columns=("x1",), horizon=20)
        >>> stream = method.start(people.schema, budget=Budget.seeded("2"), rng=rng)
        >>> tables = (open_table(rows, people.schema) for rows in snapshots(people))
        >>> steps = [stream.next(table, rng=rng) for table in tables]
        >>> [step.number for step in steps if step.action == "published"]  # half move at 17
        [1, 2, 3, 7, 15, 17, 20]

    Reference:
        H. Li, L. Xiong, X. Jiang, J. Liu (2015), "Differentially Private Histogram Publication
        for Dynamic Datasets: An Adaptive Sampling Approach", CIKM.
    """

    name: ClassVar[str] = "dsat"
    proofs: ClassVar[tuple[str, ...]] = ("stream", "sparse_vector", "exact")
    publishes: ClassVar[str] = (
        "histograms of a finite stream when they are worth while, in a rhythm that it learns and "
        "early after a jump"
    )
    prefer_when: ClassVar[str] = "the stream has an end, and people must be hidden in all of it"
    standing: ClassVar[Standing] = "default"
    window: ClassVar[int | None] = None

    horizon: int = setting("Number of steps of the stream; people are hidden in all of them.")

    def planned_comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons:
        """Return the terms on which the default controller compares."""
        share = self.planned_share(bins)
        return Comparisons(share * epsilon, self.releases or PLANNED_POSITIVES)

    def planned_policy(self, bins: Bins, epsilon: Fraction) -> PlannedHorizon:
        """Return the policy of the default controller."""
        terms = self.planned_comparisons(bins, epsilon)
        return PlannedHorizon(
            **self.planned_terms(bins, epsilon),
            horizon=self.horizon,
            publications=epsilon - terms.epsilon,
            positives=terms.positives,
        )

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what a publication costs; of `planned` the first, before anything is learned."""
        if self.controller == "planned":
            policy = self.planned_policy(bins, epsilon)
            return policy.model.exact(float(policy.publications) / min(FIRST_PARTS, self.horizon))
        return self.controlled_policy(bins, epsilon).price


def _clip(value: float, most: float) -> float:
    return min(max(value, -most), most)
