"""A threshold that keeps publications on schedule: it rises when they run ahead.

Known as: the controller of DSAT (distance-based sampling with adaptive threshold), mended: the
printed one measures its error wrongly and ends up at fixed intervals.
"""

from dataclasses import dataclass
from math import exp, log

from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.threshold_policy import CLEARLY, SIZE, ThresholdPolicy

_MOST_ERROR = 3.0
_MOST_INTEGRAL = 2.0
_MOST_EXPONENT = 700.0  # e to it is still a float, and far beyond every threshold
_LARGEST_MARGIN = 2.0  # two histograms of n rows each are at most 2n apart


@dataclass(frozen=True, kw_only=True)
class ScheduledThreshold(ThresholdPolicy):
    """Policy: multiply a first threshold up when publications are ahead, down when behind.

    All that it sees are the times of past publications, so its state is public.  The margin
    never falls below what noise hardly reaches; the noisy threshold itself is not clamped.

    Attributes:
        gain: What each publication ahead of schedule adds to the threshold's logarithm (P).
        integral_gain: What it adds for good at every step (I); the sum stays within 2 (no
            windup).
        slope_gain: What its change since the last publication adds (D).
        dead_band: Publications ahead or behind that do not count.
        first_threshold: The margin on schedule, as a part of the rows at first.
    """

    burn_in: int = 2
    gain: float = log(4)
    integral_gain: float = 0.0
    slope_gain: float = 0.0
    dead_band: float = 0.5
    first_threshold: float = 0.025

    def margin(self, history: History) -> float:
        """Say how far beyond the noise's floor the counts must be to be published."""
        memory, error = history.memory, self._error(history)
        integral = _clip(memory.get("integral", 0.0) + self.integral_gain * error, _MOST_INTEGRAL)
        slope = (error - memory.get("error_at_release", 0.0)) / history.age
        memory.update(error=error, integral=integral)
        lowest = CLEARLY * self.deviation(history)
        highest = max(lowest, _LARGEST_MARGIN * memory[SIZE])
        exponent = _clip(self.gain * error + integral + self.slope_gain * slope, _MOST_EXPONENT)
        usual = max(self.first_threshold * memory[SIZE], lowest)
        return min(max(usual * exp(exponent), lowest), highest)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember the rows at first, and how far off schedule the last publication was."""
        super().learn(history, publication)
        history.memory["error_at_release"] = history.memory.get("error", 0.0)

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


def _clip(value: float, most: float) -> float:
    return min(max(value, -most), most)
