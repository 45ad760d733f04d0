"""Publish at fixed intervals and repeat the last histogram in between.

Known as: fixed sampling.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.per_snapshot import require_horizon_or_window
from dpublish.methods.streams.plan import Plan, Publish, Repeat

USUAL_RELEASES = 10


@dataclass(frozen=True)
class EveryInterval:
    """Policy: publish at steps 1, 1 + interval, 1 + 2 interval, ..., at an equal price."""

    interval: int
    price: Fraction

    def plan(self, history: History) -> Plan:
        """Publish if it is time."""
        return Repeat() if history.number % self.interval else Publish(self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Learn nothing."""


@dataclass(frozen=True, kw_only=True)
class FixedSampling(StreamMethod):
    """Method: a histogram at every so many steps, each with an equal part of the budget."""

    name: ClassVar[str] = "fixed-sampling"

    horizon: int | None = setting("Number of steps of the stream.", default=None)
    window: int | None = setting(
        "Hide a user within so many consecutive steps, for ever; give horizon or window.",
        default=None,
    )
    releases: int | None = setting(
        "Most histograms to publish within the horizon or a window; 10 unless told otherwise.",
        default=None,
    )
    interval: int | None = setting(
        "Steps from one histogram to the next, instead of releases.", default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_horizon_or_window(self.horizon, self.window)
        if self.releases is not None and self.interval is not None:
            raise InvalidParameter(
                "give releases or interval, not both: one follows from the other"
            )
        for name in ("releases", "interval"):
            if getattr(self, name) is not None:
                require_count(**{name: getattr(self, name)})

    def policy(self, bins: Bins, epsilon: Fraction) -> EveryInterval:
        """Give the policy for a stream of `epsilon`."""
        return EveryInterval(self._steps_between(), self.publication_epsilon(bins, epsilon))

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Say what every histogram costs: no more of them lie in the horizon or any window."""
        return epsilon / _divided_up(self._span(), self._steps_between())

    def _span(self) -> int:
        return self.horizon or self.window or 1

    def _steps_between(self) -> int:
        return self.interval or _divided_up(self._span(), self.releases or USUAL_RELEASES)


def _divided_up(total: int, parts: int) -> int:
    return -(-total // parts)
