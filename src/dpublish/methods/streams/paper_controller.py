"""The controller of DSAT as it was printed, for reproduction: prefer `schedule`.

Its error is 1 when publications are exactly on schedule, so the threshold runs from one end of
its range to the other and publications fall at fixed intervals, whatever the data does.
The printed algorithm clamps the *noisy* threshold, which removes its noise and with it the
privacy; here the public state is clamped and noise is added afterward.  For windows it
divides by the length of the stream so far; here by that of the window.
"""

from dataclasses import dataclass

from dpublish.methods.streams.history import History
from dpublish.methods.streams.threshold_policy import SIZE, ThresholdPolicy

STATE = "threshold"
_HIGHEST = 2.0  # two normalized histograms are at most this far apart


@dataclass(frozen=True, kw_only=True)
class PaperController(ThresholdPolicy):
    """Policy: move the threshold by a step that depends on the rate of publications.

    Attributes:
        step_size: The step at an error of 1 (theta), in parts of the rows at first.
        target: The printed set point of the error (delta).
        first_threshold: Where the threshold begins, in parts of the rows at first.
    """

    burn_in: int = 2
    step_size: float = 0.5
    target: float = 0.05
    first_threshold: float = 0.5

    def margin(self, history: History) -> float:
        """Say how far beyond the noise's floor the counts must be to be published."""
        state = history.memory.get(STATE, self.first_threshold)
        history.memory[STATE] = self.move(state, history)
        return history.memory[STATE] * history.memory[SIZE]

    def move(self, state: float, history: History) -> float:
        """Move the public state: down when publications are due, else up; within its range."""
        span = self.horizon or self.window or 1
        elapsed = history.step if self.window is None else min(history.step, self.window)
        published = self.count(history)
        error = abs(published / elapsed - self.quota / span)
        change = self.step_size * abs(error - self.target) / self.target
        if published * span <= self.quota * elapsed:
            return max(0.0, state - change)
        return min(_HIGHEST, state + change)
