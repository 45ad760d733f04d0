"""The public history of a stream: all that the plan for its next step may depend on.

Nothing in here was computed from a snapshot other than through a mechanism, so a policy that
sees only a history cannot leak, whatever it does with it.
"""

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpublish.privacy.epsilon import format_epsilon, read_exact


@dataclass(frozen=True)
class Publication:
    """A histogram was published at step `number`, because the comparison said so or as planned."""

    number: int
    epsilon: Fraction
    was_asked: bool


@dataclass
class History:
    """What has happened so far, and what is known about the last estimate.

    Attributes:
        window: Number of steps within which a user is hidden; None hides her in all steps.
        number: Steps done.
        published: Publications so far.
        positives: Comparisons of the sparse vector that were above, so far.
        last: Step of the last publication; 0 if there was none.
        spent: Spent on publications so far, in all.
        recent: The publications of the last window - 1 steps (window streams only).
        recent_spending: What they cost together.
        recent_positives: How many of them a comparison asked for.
        noise: Variance that noise gives one bin of the estimate.
        total: Sum of the estimate over all bins.
        jump: Excess of the last publication over the estimate before it, as a variance of one
            bin, after taking off what noise explains; 0 if noise explains it all.
        shift: The same seen at the scale of range queries: larger than `jump` where
            neighboring bins move together.
        memory: What the policy remembers by itself: public numbers only.
    """

    window: int | None
    number: int = 0
    published: int = 0
    positives: int = 0
    last: int = 0
    spent: Fraction = Fraction(0)
    recent: deque[Publication] = field(default_factory=deque)
    recent_spending: Fraction = Fraction(0)
    recent_positives: int = 0
    noise: float = 0.0
    total: float = 0.0
    jump: float = 0.0
    shift: float = 0.0
    memory: dict[str, float] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Number of the step to come."""
        return self.number + 1

    @property
    def age(self) -> int:
        """Steps from the last publication to the step to come."""
        return self.step - self.last

    def begin_step(self) -> None:
        """Forget the publications that are out of sight of the step to come."""
        while self.window and self.recent and self.recent[0].number <= self.step - self.window:
            past = self.recent.popleft()
            self.recent_spending -= past.epsilon
            self.recent_positives -= past.was_asked

    def record(self, publication: Publication) -> None:
        """Enter a publication of the step to come."""
        self.published += 1
        self.positives += publication.was_asked
        self.last = publication.number
        self.spent += publication.epsilon
        if self.window:
            self.recent.append(publication)
            self.recent_spending += publication.epsilon
            self.recent_positives += publication.was_asked

    def to_dict(self) -> dict[str, Any]:
        """Turn the history into plain values for a file."""
        return {
            "window": self.window,
            "number": self.number,
            "published": self.published,
            "positives": self.positives,
            "last": self.last,
            "spent": format_epsilon(self.spent),
            "recent": [[p.number, format_epsilon(p.epsilon), p.was_asked] for p in self.recent],
            "noise": self.noise,
            "total": self.total,
            "jump": self.jump,
            "shift": self.shift,
            "memory": dict(self.memory),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "History":
        """Read back what `to_dict` wrote."""
        recent = deque(Publication(n, read_exact(e), asked) for n, e, asked in plain["recent"])
        return cls(
            **{
                **plain,
                "spent": read_exact(plain["spent"]),
                "recent": recent,
                "recent_spending": sum((past.epsilon for past in recent), Fraction(0)),
                "recent_positives": sum(past.was_asked for past in recent),
            }
        )
