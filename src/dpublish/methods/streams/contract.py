"""What a stream method offers, and what an open stream gives out at every step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpublish.core.method import ExpectedError
from dpublish.data.schema import Schema
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.plan import Plan
from dpublish.methods.streams.static import StaticHistogram
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import Neighbors
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import RandomSource

if TYPE_CHECKING:
    from dpublish.methods.streams.stream import Stream


@dataclass(frozen=True)
class Step:
    """What a stream gives out at one step; all of it is public."""

    number: int
    action: Literal["published", "repeated"]
    estimate: NDArray[np.float64]
    released: NDArray[np.int64] | None
    epsilon: Fraction
    noise: float
    change: float
    spent: Fraction


@dataclass(frozen=True)
class Comparisons:
    """Terms of the sparse vector: what a run costs and how many positives end it."""

    epsilon: Fraction
    positives: int


@dataclass(frozen=True)
class StreamState:
    """All that an open stream is made of.  `secret` is for the owner's eyes only."""

    public: Mapping[str, Any]
    secret: Mapping[str, Any] = field(repr=False)
    arrays: Mapping[str, NDArray[Any]]


class Policy(Protocol):
    """What a method adds to the loop; both verbs see public facts only."""

    def plan(self, history: History) -> Plan:
        """Say what to do at the step to come."""
        ...

    def learn(self, history: History, publication: Publication) -> None:
        """Draw conclusions from a publication, into `history.memory`."""
        ...


class AnyStreamMethod(Protocol):
    """A way to publish a histogram at every step: public settings and one verb."""

    name: ClassVar[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that make up the bins."""
        ...

    @property
    def contribution(self) -> int:
        """Most rows of one user that a snapshot keeps."""
        ...

    @property
    def smooths(self) -> bool:
        """Whether publications are weighed against each other over time."""
        ...

    @property
    def window(self) -> int | None:
        """Steps within which a user is hidden; None hides her in all steps."""
        ...

    @property
    def horizon(self) -> int | None:
        """Number of steps after which the stream is over; None if it never is."""
        ...

    def static_histogram(self) -> StaticHistogram:
        """Give the method that publishes one histogram."""
        ...

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy for a stream of `epsilon`."""
        ...

    def comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons | None:
        """Give the terms of the sparse vector, if the policy asks without a price."""
        ...

    def start(self, schema: Schema, *, budget: Budget, rng: RandomSource) -> "Stream":
        """Open a stream that costs `budget`.

        Privacy:
            That of `Stream.next`.
        """
        ...

    def resume(self, schema: Schema, state: StreamState, receipt: Receipt) -> "Stream":
        """Open a stream where it was left."""
        ...

    def neighbors(self, schema: Schema) -> Neighbors:
        """Say what is hidden."""
        ...

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error from public facts, and refuse all that `start` would."""
        ...
