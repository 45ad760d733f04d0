"""Publish a fresh histogram at every step.

Known as: the per-snapshot baseline; every step gets an equal part of the budget.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.contract import Policy
from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.plan import Publish


@dataclass(frozen=True)
class EveryStep:
    """Policy: publish at every step, at an equal price."""

    price: Fraction

    def plan(self, history: History) -> Publish:
        """Publish."""
        return Publish(self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Learn nothing."""


@dataclass(frozen=True, kw_only=True)
class PerSnapshot(StreamMethod):
    """Method: an equal part of the budget for every step of the horizon, or of a window."""

    name: ClassVar[str] = "per-snapshot"

    horizon: int | None = setting("Number of steps of the stream.", default=None)
    window: int | None = setting(
        "Hide a user within so many consecutive steps, for ever; give horizon or window.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_horizon_or_window(self.horizon, self.window)

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy for a stream of `epsilon`."""
        return EveryStep(self.publication_epsilon(bins, epsilon))

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Say what every step costs."""
        return epsilon / (self.horizon or self.window or 1)


def require_horizon_or_window(horizon: int | None, window: int | None) -> None:
    """Refuse a stream that is neither finite nor protected by windows, or both."""
    if (horizon is None) == (window is None):
        raise InvalidParameter(
            "give either horizon (the stream ends after so many steps; users are hidden in all "
            "of them) or window (it never ends; users are hidden within so many steps)"
        )
    require_count(steps=horizon if window is None else window)
