"""The default policy of a finite stream: publish by plan, and early if counts have jumped."""

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

FIRST_PARTS = 10  # before anything is known, the stream is planned to need so many publications
MOST_AT_ONCE = 0.4  # of what is left; the rest is kept for jumps
_FEW_STEPS = 3  # with so few steps to go, nothing needs to be kept


@dataclass(frozen=True)
class PlannedHorizon:
    """Policy: spend what is left in proportion to how long a publication will last.

    Attributes:
        metadata: Public facts of the stream.
        horizon: Number of steps.
        publications: What all publications together may cost.
        positives: How many questions may be answered with yes.
        margin: How far a distance must stand out from noise (`comparison_margin`).
    """

    metadata: Facts
    horizon: int
    publications: Fraction
    positives: int
    margin: float

    def plan(self, history: History) -> Plan:
        """Publish when the last publication's time is up, and ask before."""
        left = float(self.publications - history.spent)
        steps = self.horizon - history.number
        life = self._life(history, left, steps)
        epsilon = self._share(history, left, life, steps)
        if not epsilon:
            return Repeat()
        bar = threshold(self.metadata, history, float(epsilon), life, self.margin)
        if history.step >= history.memory.get("next", 0):
            return Publish(epsilon)
        if history.positives >= self.positives:
            return Repeat()
        shorter = self._life_after_alarm(history, left, steps, life)
        return Ask(bar, self._share(history, left, shorter, steps) or epsilon)

    def learn(self, history: History, publication: Publication) -> None:
        """Learn how fast counts move, and plan the next publication."""
        if history.published and learn_change(history):
            history.memory["jumps"] = history.memory.get("jumps", 0) + 1
        left = float(self.publications - history.spent - publication.epsilon)
        seen = publication.number if history.published else 0
        life = self._life(history, left, max(self.horizon - publication.number, 1), seen)
        history.memory["next"] = publication.number + max(1, round(life))

    def _life(self, history: History, left: float, steps: int, seen: int | None = None) -> float:
        """Say how many steps a publication will last: until the next planned one or a jump.

        Only steps up to a publication that could be compared with one before it (`seen`)
        tell how rare jumps are.
        """
        if seen is None:
            seen = history.last if history.published > 1 else 0
        jumps = history.memory.get("jumps", 0)
        between_jumps = (self.horizon / FIRST_PARTS + seen) / (1 + jumps)
        rate = change_rate(history)
        interval = best_interval(left, steps, rate, self.metadata.contribution)
        return max(1.0, min(interval, between_jumps, steps))

    def _life_after_alarm(self, history: History, left: float, steps: int, life: float) -> float:
        """Take an alarm for steady change: if it is, the publication will not last long."""
        memory = history.memory
        seen = memory.get("shift", 0.0) + memory["alarm"]
        rate = seen / (memory.get("lag", 0.0) + history.age)
        return min(life, best_interval(left, steps, rate, self.metadata.contribution))

    def _share(self, history: History, left: float, life: float, steps: int) -> Fraction:
        whole = self.publications - history.spent
        if steps <= _FEW_STEPS and life >= steps:
            return whole
        return min(whole, self.metadata.exact(left * min(MOST_AT_ONCE, life / steps)))
