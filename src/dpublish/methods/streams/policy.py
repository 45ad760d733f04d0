"""What a stream does at its next step, planned from its public history alone.

A method is a policy: a function of the history that plans before the snapshot is read.  Nothing
in a history was computed from a snapshot other than through a mechanism, so a policy that sees
only a history cannot leak, whatever it does with it.
"""

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from dpublish.privacy.epsilon import format_epsilon, read_exact


@dataclass(frozen=True)
class Publish:
    """Publish a fresh histogram and spend `epsilon` on it."""

    epsilon: Fraction


@dataclass(frozen=True)
class Repeat:
    """Return the last estimate again; the snapshot is not read and nothing is spent."""


@dataclass(frozen=True)
class Compare:
    """Publish with `epsilon` if the snapshot is far from the last estimate, else repeat it.

    The distance is the sum over bins of |count - estimate|; it is compared privately with a
    public integer `threshold`.  The comparison is paid for by the stream's sparse vector, or
    costs `price` at this step.
    """

    threshold: int
    epsilon: Fraction
    price: Fraction | None = None


Plan = Publish | Repeat | Compare


@dataclass(frozen=True)
class Comparisons:
    """Terms of the sparse vector: what a run costs and how many positives end it."""

    epsilon: Fraction
    positives: int


@dataclass(frozen=True)
class Publication:
    """A histogram was published at step `number`, by plan or because a comparison was positive."""

    number: int
    epsilon: Fraction
    by_comparison: bool


@dataclass
class History:
    """What has happened so far, and what is known about the last estimate.

    Attributes:
        window: Number of steps within which a person is hidden; None hides people in all steps.
        number: Steps done.
        published: Publications so far.
        positives: Comparisons that were positive, so far.
        last: Step of the last publication; 0 if there was none.
        spent: Spent on publications so far, in all.
        recent: The publications of the last window - 1 steps (window streams only).
        recent_spending: What they cost together.
        recent_positives: How many of them followed from a comparison.
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
        """Forget the publications that share no window with the step to come."""
        while self.window and self.recent and self.recent[0].number <= self.step - self.window:
            past = self.recent.popleft()
            self.recent_spending -= past.epsilon
            self.recent_positives -= past.by_comparison

    def record(self, publication: Publication) -> None:
        """Enter a publication of the step to come."""
        self.published += 1
        self.positives += publication.by_comparison
        self.last = publication.number
        self.spent += publication.epsilon
        if self.window:
            self.recent.append(publication)
            self.recent_spending += publication.epsilon
            self.recent_positives += publication.by_comparison

    def to_dict(self) -> dict[str, Any]:
        """Turn the history into plain values for a file."""
        return {
            "window": self.window,
            "number": self.number,
            "published": self.published,
            "positives": self.positives,
            "last": self.last,
            "spent": format_epsilon(self.spent),
            "recent": [
                [past.number, format_epsilon(past.epsilon), past.by_comparison]
                for past in self.recent
            ],
            "noise": self.noise,
            "total": self.total,
            "jump": self.jump,
            "shift": self.shift,
            "memory": dict(self.memory),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "History":
        """Read back what `to_dict` wrote."""
        recent = deque(Publication(n, read_exact(e), by) for n, e, by in plain["recent"])
        return cls(
            **{
                **plain,
                "spent": read_exact(plain["spent"]),
                "recent": recent,
                "recent_spending": sum((past.epsilon for past in recent), Fraction(0)),
                "recent_positives": sum(past.by_comparison for past in recent),
            }
        )


class Policy(Protocol):
    """What a method adds to the loop; both verbs see the public history only."""

    def plan(self, history: History) -> Plan:
        """Plan the step to come."""
        ...

    def learn(self, history: History, publication: Publication) -> None:
        """Draw conclusions from a publication, into `history.memory`."""
        ...
