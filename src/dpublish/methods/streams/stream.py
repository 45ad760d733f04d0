"""An open stream: it takes snapshots of a table, one after the other, and publishes each step.

Every method is a policy, a function of the public history that plans before the snapshot is
read: publish, repeat, or compare whether the counts have moved far enough.  The one loop here
carries the plans of all methods out, so privacy has to be argued once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.methods.streams.filtering import Estimate, Scales, first_estimate, update
from dpublish.methods.streams.policy import (
    Compare,
    Comparisons,
    History,
    Plan,
    Policy,
    Publication,
    Publish,
    Repeat,
)
from dpublish.methods.streams.snapshot import Bins, Snapshot, StepRun
from dpublish.methods.streams.static import StaticHistogram
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.receipt import Receipt
from dpublish.privacy.stream_account import StreamAccount
from dpublish.randomness import RandomSource, is_secure
from dpublish.types import FloatArray, IntArray

MOST_COUNT = 2**40  # larger counts are moved here, so that distances fit into 64 bits


@dataclass(frozen=True)
class Step:
    """What a stream publishes at one step; all of it is public."""

    number: int
    action: Literal["published", "repeated"]
    estimate: FloatArray
    released: IntArray | None
    epsilon: Fraction
    noise: float
    change: float
    spent: Fraction


@dataclass(frozen=True)
class StreamState:
    """All that an open stream is made of.  `secret` is for the owner's eyes only."""

    public: Mapping[str, Any]
    secret: Mapping[str, Any] = field(repr=False)
    arrays: Mapping[str, NDArray[Any]]


class StreamSettings(Protocol):
    """What the loop needs to know of a method (`StreamMethod`)."""

    name: ClassVar[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that make up the bins."""
        ...

    @property
    def contribution(self) -> int:
        """Most rows of one person that a snapshot keeps."""
        ...

    @property
    def smooths(self) -> bool:
        """Whether publications are weighed against each other over time."""
        ...

    @property
    def window(self) -> int | None:
        """Steps within which a person is hidden; None hides people in all steps."""
        ...

    @property
    def horizon(self) -> int | None:
        """Number of steps after which the stream is over; None if it never is."""
        ...

    def static_histogram(self) -> StaticHistogram:
        """Return the method that publishes one histogram."""
        ...

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy for a stream of `epsilon`."""
        ...

    def comparisons(self, bins: Bins, epsilon: Fraction) -> Comparisons | None:
        """Return the terms of the sparse vector, if the policy compares without a price."""
        ...


class Stream:
    """A stream at work.  After an error it refuses to go on: open its stored state again."""

    def __init__(
        self,
        method: StreamSettings,
        schema: Schema,
        receipt: Receipt,
        state: StreamState | None = None,
    ) -> None:
        self.method = method
        self.schema = schema
        self.receipt = receipt
        self.bins = Bins.of(schema, method.columns)
        self._static = method.static_histogram()
        self._policy = method.policy(self.bins, receipt.epsilon)
        self._comparisons = method.comparisons(self.bins, receipt.epsilon)
        self._scales = Scales(self.bins.shape)
        self._refused_rate = Fraction(0)
        self._accepted_rate: Fraction | None = None
        self._has_failed = False
        self._grant = _grant_of(receipt)
        self._history = History(method.window)
        self._account = StreamAccount(receipt.epsilon, method.window, self._grant)
        self._vector: StoredVector | None = None
        self._estimate: Estimate | None = None
        if state is not None:
            self._restore(state)

    def __repr__(self) -> str:
        return f"Stream({self.method.name!r}, step {self.number})"

    @property
    def number(self) -> int:
        """Steps done."""
        return self._history.number

    @property
    def is_over(self) -> bool:
        """Whether the horizon is reached."""
        return self.method.horizon is not None and self.number >= self.method.horizon

    @property
    def spent(self) -> Fraction:
        """What the whole stream has cost so far, or the window that ends at the last step."""
        return self._account.spent

    @property
    def worst(self) -> Fraction:
        """The most that any window has cost so far; never more than epsilon."""
        return self._account.worst

    @property
    def estimate(self) -> FloatArray | None:
        """The last estimate of every bin; None before the first step."""
        return None if self._estimate is None else self._estimate.at(self.number).level

    def commitments(self, steps: int) -> list[tuple[int, Fraction]]:
        """List what of each coming step's window is used up already."""
        return self._account.ahead(self.number, steps)

    def next(self, snapshot: Table, *, rng: RandomSource) -> Step:
        """Take the next snapshot and return what is published for it.

        Privacy:
            All steps together (of any window, for window streams) are epsilon-differentially
            private for the receipt's neighbors.  The plan is a function of earlier outputs.
            A snapshot keeps at most `contribution` = s rows of a person, chosen by a rule that
            looks at that person's rows alone, so the counts move by at most s in all and so does
            their distance from the last estimate, which is public.  A publication is one run of
            an e/s-private mechanism: e for s rows (group privacy).  Comparisons are a sparse
            vector's or perturbed one by one.  The account adds these up along the outputs
            that did happen and stops before epsilon is exceeded (adaptive composition); for
            windows a run of comparisons counts at every step that used it (docs/proofs/stream.md).
        """
        self._require_same(snapshot.schema)
        keyed = self.receipt.release_id.encode()
        return self._step(Snapshot.of(snapshot, self.bins, self.method.contribution, keyed), rng)

    def next_counts(self, counts: IntArray, *, rng: RandomSource) -> Step:
        """Take the next snapshot as exact counts of people who are bounded already.

        Privacy:
            As `next`; the caller vouches for the contribution bound.
        """
        return self._step(Snapshot.of_counts(counts, self.bins), rng)

    def state(self) -> StreamState:
        """Return all that is needed to go on in another process."""
        self._require_sound()
        vector = self._vector
        plain, arrays = (None, {}) if self._estimate is None else self._estimate.to_dict()
        public = {
            "history": self._history.to_dict(),
            "account": self._account.to_dict(),
            "estimate": plain,
        }
        secret = {"vector": None if vector is None else vector.to_dict()}
        return StreamState(public, secret, arrays)

    def _restore(self, state: StreamState) -> None:
        self._history = History.from_dict(dict(state.public["history"]))
        self._account = StreamAccount.from_dict(dict(state.public["account"]), self._grant)
        if state.public["estimate"] is not None:
            self._estimate = Estimate.from_dict(state.public["estimate"], state.arrays)
        if state.secret["vector"] is not None:
            self._vector = StoredVector.from_dict(dict(state.secret["vector"]))

    def _step(self, snapshot: Snapshot, rng: RandomSource) -> Step:
        self._require_sound()
        if self.is_over:
            raise BudgetExhausted(f"the stream is over: its {self.number} steps are published")
        if self._grant is not None and not is_secure(rng):
            raise InvalidParameter("a ledger granted this stream: draw from randomness.secure()")
        self._has_failed = True  # until the step is through
        run = StepRun(snapshot, self.method.contribution, rng)
        number = self._history.step
        self._history.begin_step()
        self._account.begin_step(number)
        before = self._estimated(number - 1)
        if self._estimate is not None:
            self._history.noise = self._noise(number)
        plan = self._feasible(self._policy.plan(self._history))
        epsilon, by_comparison = self._decide(plan, run, number)
        released = None
        if epsilon is not None:
            released = self._publish(run, number, epsilon, by_comparison)
        elif isinstance(plan, Compare) and is_secure(rng):
            self._rehearse(run, number, plan.epsilon)
        self._history.number = number
        self._has_failed = False
        return self._outcome(number, before, released, epsilon)

    def _feasible(self, plan: Plan) -> Plan:
        """Repeat where the static method would refuse so small an epsilon.

        It is settled here, from public numbers: a refusal after the comparison would reveal its
        outcome, again and again, to whoever sees the step fail.
        """
        if isinstance(plan, Repeat):
            return plan
        rate = plan.epsilon / self.method.contribution
        if rate <= self._refused_rate:
            return Repeat()
        if self._accepted_rate is None or rate < self._accepted_rate:
            try:
                self._static.check(self.schema, self.bins, rate)
            except InvalidParameter:
                self._refused_rate = rate
                return Repeat()
            self._accepted_rate = rate
        return plan

    def _decide(self, plan: Plan, run: StepRun, number: int) -> tuple[Fraction | None, bool]:
        """Carry out the plan up to the publication: what to spend on it, if anything."""
        if isinstance(plan, Repeat):
            return None, False
        if isinstance(plan, Publish):
            return plan.epsilon, False
        return (plan.epsilon, True) if self._is_far(plan, run, number) else (None, False)

    def _is_far(self, plan: Compare, run: StepRun, number: int) -> bool:
        if plan.price is not None:
            budget = self._account.draw(number, plan.price, "comparison")
            return run.is_far(self._distance(run), plan.threshold, budget=budget)
        terms = self._comparisons
        if terms is None:
            raise InvalidParameter(f"{self.method.name} compares without a sparse vector")
        if self._vector is None:
            budget = self._account.open_run(number, terms.epsilon)
            self._vector = run.draw_vector(terms.positives, budget=budget)
        else:
            self._account.continue_run(number, terms.epsilon)
        is_above, vector = run.compare(self._vector, self._distance(run), plan.threshold)
        # On a window stream the next comparison begins a new run with a fresh threshold.
        ends = is_above and self.method.window is not None and not vector.positives_left
        self._vector = None if ends else vector
        return is_above

    def _distance(self, run: StepRun) -> int:
        """Sum over bins of |count - estimate|; exact, so private."""
        counts = np.minimum(run.counts, MOST_COUNT)
        reference = self._estimated(self._history.step)
        whole = np.rint(np.clip(reference, -MOST_COUNT, MOST_COUNT)).astype(np.int64)
        return int(np.abs(counts - whole).sum())

    def _publish(
        self, run: StepRun, number: int, epsilon: Fraction, by_comparison: bool
    ) -> IntArray:
        budget = self._account.draw(number, epsilon, "histogram")
        released, variance = self._static.publish(run, budget=budget)
        self._estimate = self._updated(released, variance, number)
        self._history.noise = self._noise(number)
        self._history.total = float(self._estimate.at(number).level.sum())
        self._history.jump = self._estimate.jump
        self._history.shift = self._estimate.shift
        publication = Publication(number, epsilon, by_comparison)
        self._policy.learn(self._history, publication)
        self._history.record(publication)
        return released

    def _rehearse(self, run: StepRun, number: int, epsilon: Fraction) -> None:
        """Do the work of a publication, and discard it.

        A time limit, or too little memory, would else stop only the steps that publish, and so
        reveal or change the outcome of the comparison.  With seeded noise there is nothing to
        hide, and experiments are spared the work.

        Privacy:
            Nothing of it is kept or leaves, so it costs nothing.
        """
        released, variance = self._static.publish(run, budget=Budget.seeded(epsilon))
        self._updated(released, variance, number)

    def _updated(self, released: IntArray, variance: float, number: int) -> Estimate:
        """Weigh a publication against the estimate so far."""
        smoothing = self.method.smooths
        if self._estimate is None:
            return first_estimate(
                released, variance, number, scales=self._scales, smoothing=smoothing
            )
        return update(
            self._estimate, released, variance, number, scales=self._scales, smoothing=smoothing
        )

    def _estimated(self, number: int) -> FloatArray:
        """Return the estimate for a step; zeros before the first publication."""
        known = self._estimate
        return np.zeros(self.bins.size) if known is None else known.at(number).level

    def _noise(self, number: int) -> float:
        """Return the mean squared error that noise leaves in a bin of the estimate for a step."""
        if self._estimate is None:
            return 0.0
        track = self._estimate.at(number)
        return max(track.error, self._scales.mean(track.variance))

    def _outcome(
        self,
        number: int,
        before: FloatArray,
        released: IntArray | None,
        epsilon: Fraction | None,
    ) -> Step:
        estimate = self._estimated(number)
        return Step(
            number=number,
            action="repeated" if released is None else "published",
            estimate=estimate,
            released=released,
            epsilon=epsilon or Fraction(0),
            noise=self._noise(number) ** 0.5,
            change=float(np.abs(estimate - before).sum()),
            spent=self._account.spent,
        )

    def _require_same(self, schema: Schema) -> None:
        """Refuse a table that identifies people, or cuts bins, in another way than the stream."""
        same_bins = all(schema[name] == self.schema[name] for name in self.bins.names)
        if schema.unit != self.schema.unit or not same_bins:
            raise InvalidParameter("open the snapshot with the schema that the stream began with")

    def _require_sound(self) -> None:
        if self._has_failed:
            raise InvalidParameter("a step of this stream failed: open its stored state again")


def _grant_of(receipt: Receipt) -> Grant | None:
    if receipt.dataset is None or receipt.anchor is None:
        return None
    return Grant(receipt.dataset, *receipt.anchor, time=receipt.created)
