"""The default policy of an endless stream: publish by plan, keep a reserve for jumps."""

from dataclasses import dataclass
from fractions import Fraction

from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.plan import Ask, Plan, Publish, Repeat
from dpublish.methods.streams.planning import (
    Facts,
    best_interval,
    change_rate,
    learn_change,
    threshold,
)

FIRST_SHARE = 0.35  # of a window's budget, for the first publication
MOST_AT_ONCE, LEAST_AT_ONCE = 0.6, 0.3  # of what a window has left, after an alarm
MOST_RESERVE = 0.4  # part of a window's budget that plans leave for jumps
_FEW_JUMPS = 3  # jumps expected in a window before anything is known
_READY = 0.9  # a planned publication waits until so much of its budget is there
_WORTHWHILE = 0.2  # a question is asked only if so much of a usual budget is there


@dataclass(frozen=True)
class PlannedWindow:
    """Policy: a steady rhythm that fits the rate of change, and a reserve for jumps.

    Attributes:
        metadata: Public facts of the stream.
        window: Number of steps in a window.
        publications: What the publications of any window may cost.
        positives: How many questions of any window may be answered with yes.
        margin: How far a distance must stand out from noise (`comparison_margin`).
    """

    metadata: Facts
    window: int
    publications: Fraction
    positives: int
    margin: float

    @property
    def first(self) -> Fraction:
        """What the first publication costs, before anything is known."""
        return self.metadata.exact(float(self.publications) * max(FIRST_SHARE, 1 / self.window))

    def plan(self, history: History) -> Plan:
        """Publish in rhythm when there is budget for it, and ask in between."""
        if not history.published:
            return Publish(self.first)
        available = self.publications - history.recent_spending
        life = self._life(history)
        wanted = self._usual(life) * (1 - self._reserve(life))
        spend = float(available) * MOST_AT_ONCE
        bar = threshold(self.metadata, history, max(spend, wanted), life, self.margin)
        if history.step >= history.memory["next"] and available >= _READY * wanted:
            return self._publish(min(available, self.metadata.exact(wanted)))
        if history.recent_positives >= self.positives or available < _WORTHWHILE * wanted:
            return Repeat()
        steady = self._usual(self._life_after_alarm(history, life))
        least = float(available) * LEAST_AT_ONCE
        epsilon = self.metadata.exact(min(max(steady, least), spend))
        return Ask(bar, epsilon) if epsilon else Repeat()

    def learn(self, history: History, publication: Publication) -> None:
        """Learn how fast counts move, and plan the next publication."""
        memory = history.memory
        if history.published:
            lag = history.age
            is_jump = learn_change(history)
            memory["jumps"] = (
                0.8 * memory.get("jumps", 0.0) + 1 if is_jump else memory.get("jumps", 0.0)
            )
            memory["quiet"] = (0.8 if is_jump else 1.0) * memory.get("quiet", 0.0) + lag
        memory["next"] = publication.number + max(1, round(self._life(history)))

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
        between_jumps = (self.window / _FEW_JUMPS + quiet) / (1 + jumps)
        return max(1.0, min(self._interval(change_rate(history)), between_jumps, self.window))

    def _life_after_alarm(self, history: History, life: float) -> float:
        """Take an alarm for steady change: if it is, the publication will not last long."""
        memory = history.memory
        seen = memory.get("shift", 0.0) + memory["alarm"]
        rate = seen / (memory.get("lag", 0.0) + history.age)
        return max(1.0, min(life, self._interval(rate)))

    def _interval(self, rate: float) -> float:
        budget, contribution = float(self.publications), self.metadata.contribution
        return best_interval(budget, self.window, rate, contribution)
