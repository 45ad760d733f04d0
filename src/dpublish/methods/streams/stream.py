"""An open stream: hand it snapshots of a table, one after the other, and publish what it gives.

Every method is a policy, a function of the public history that says what to do before the
snapshot is read: publish, repeat, or ask whether the counts have moved far enough.  The one
loop here carries the plans of all methods out, so privacy has to be argued once.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import BudgetExhausted, InvalidParameter
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.contract import AnyStreamMethod, Step, StreamState
from dpublish.methods.streams.filtering import Belief, believe, make_blocks, revise
from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.plan import Ask, Plan, Publish, Repeat
from dpublish.methods.streams.reading import Reading
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.receipt import Receipt
from dpublish.privacy.stream_account import StreamAccount
from dpublish.randomness import RandomSource, is_secure

MOST_COUNT = 2**40  # larger counts are moved here, so that distances fit into 64 bits


class Stream:
    """A stream at work.  After an error it refuses to go on: open its stored state again."""

    def __init__(
        self,
        method: AnyStreamMethod,
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
        self._blocks = make_blocks(self.bins.shape)
        self._refused_rate = Fraction(0)
        self._accepted_rate: Fraction | None = None
        self._is_spoilt = False
        self._grant = _grant_of(receipt)
        self._history = History(method.window)
        self._account = StreamAccount(receipt.epsilon, method.window, self._grant)
        self._vector: StoredVector | None = None
        self._belief: Belief | None = None
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
    def estimate(self) -> NDArray[np.float64] | None:
        """The last estimate of every bin; None before the first step."""
        return None if self._belief is None else self._belief.at(self.number).level

    def commitments(self, steps: int) -> list[tuple[int, Fraction]]:
        """Say what of each coming step's window is used up already."""
        return self._account.ahead(self.number, steps)

    def next(self, snapshot: Table, *, rng: RandomSource) -> Step:
        """Take the next snapshot and give out what is published for it.

        Privacy:
            All steps together (of any window, for window streams) are epsilon-differentially
            private for the receipt's neighbors.  The plan is a function of earlier outputs.
            A snapshot keeps at most `contribution` = s rows of a user, chosen by a rule that
            looks at her rows alone, so the counts move by at most s in all and so does their
            distance from the last estimate, which is public.  A publication is one run of
            an e/s-private mechanism: e for s rows (group privacy).  Comparisons are a sparse
            vector's or perturbed one by one.  The account adds these up along the outputs
            that did happen and stops before epsilon is exceeded (adaptive composition); for
            windows a run of comparisons counts wherever it asked (docs/proofs/stream.md).
        """
        self._require_same(snapshot.schema)
        keyed = self.receipt.release_id.encode()
        return self._step(Reading.of(snapshot, self.bins, self.method.contribution, keyed), rng)

    def next_counts(self, counts: NDArray[np.int64], *, rng: RandomSource) -> Step:
        """Take the next snapshot as exact counts of users who are bounded already.

        Privacy:
            As `next`; the caller vouches for the contribution bound.
        """
        return self._step(Reading.of_counts(counts, self.bins), rng)

    def state(self) -> StreamState:
        """Give all that is needed to go on in another process."""
        self._require_sound()
        vector = self._vector
        plain, arrays = (None, {}) if self._belief is None else self._belief.to_dict()
        public = {
            "history": self._history.to_dict(),
            "account": self._account.to_dict(),
            "belief": plain,
        }
        secret = {"vector": None if vector is None else vector.to_dict()}
        return StreamState(public, secret, arrays)

    def _restore(self, state: StreamState) -> None:
        self._history = History.from_dict(dict(state.public["history"]))
        self._account = StreamAccount.from_dict(dict(state.public["account"]), self._grant)
        if state.public["belief"] is not None:
            self._belief = Belief.from_dict(state.public["belief"], state.arrays)
        if state.secret["vector"] is not None:
            self._vector = StoredVector.from_dict(dict(state.secret["vector"]))

    def _step(self, reading: Reading, rng: RandomSource) -> Step:
        self._require_sound()
        if self.is_over:
            raise BudgetExhausted(f"the stream is over: its {self.number} steps are published")
        if self._grant is not None and not is_secure(rng):
            raise InvalidParameter("a ledger granted this stream: draw from randomness.secure()")
        self._is_spoilt = True  # until the step is through
        number = self._history.step
        self._history.begin_step()
        self._account.begin_step(number)
        before = self._believed(number - 1)
        if self._belief is not None:
            self._history.noise = self._belief.at(number).variance
        plan = self._feasible(self._policy.plan(self._history))
        epsilon, was_asked = self._decide(plan, reading, number, rng)
        released = None
        if epsilon is not None:
            released = self._publish(reading, number, epsilon, was_asked, rng)
        elif isinstance(plan, Ask) and is_secure(rng):
            self._rehearse(reading, number, plan.epsilon, rng)
        self._history.number = number
        self._is_spoilt = False
        return self._outcome(number, before, released, epsilon)

    def _feasible(self, plan: Plan) -> Plan:
        """Repeat where the static method would refuse so small an epsilon.

        It is settled here, from public numbers: a refusal after the comparison would tell its
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

    def _decide(
        self, plan: Plan, reading: Reading, number: int, rng: RandomSource
    ) -> tuple[Fraction | None, bool]:
        """Carry out the plan up to the publication: what to spend on it, if anything."""
        if isinstance(plan, Repeat):
            return None, False
        if isinstance(plan, Publish):
            return plan.epsilon, False
        is_far = self._is_far(plan, reading, number, rng)
        return (plan.epsilon, True) if is_far else (None, False)

    def _is_far(self, plan: Ask, reading: Reading, number: int, rng: RandomSource) -> bool:
        contribution = self.method.contribution
        if plan.price is not None:
            budget = self._account.draw(number, plan.price, "comparison")
            distance = np.array(self._distance(reading), dtype=np.int64)
            noisy = add_geometric(distance, sensitivity=contribution, budget=budget, rng=rng)
            return int(noisy) >= plan.threshold
        terms = self._comparisons
        if terms is None:
            raise InvalidParameter(f"{self.method.name} asks without a sparse vector")
        if self._vector is None:
            self._vector = StoredVector.draw(
                sensitivity=contribution,
                max_positives=terms.positives,
                budget=self._account.open_run(number, terms.epsilon),
                rng=rng,
            )
        else:
            self._account.continue_run(number, terms.epsilon)
        is_above, vector = self._vector.above(self._distance(reading), plan.threshold, rng)
        # On a window stream the next question begins a new run with a fresh threshold.
        ends = is_above and self.method.window is not None and not vector.positives_left
        self._vector = None if ends else vector
        return is_above

    def _distance(self, reading: Reading) -> int:
        """Sum over bins of |count - estimate|; exact, so private."""
        counts = np.minimum(reading.counts, MOST_COUNT)
        reference = self._believed(self._history.step)
        whole = np.rint(np.clip(reference, -MOST_COUNT, MOST_COUNT)).astype(np.int64)
        return int(np.abs(counts - whole).sum())

    def _publish(
        self,
        reading: Reading,
        number: int,
        epsilon: Fraction,
        was_asked: bool,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        budget = self._account.draw(number, epsilon, "histogram")
        released, variance = self._static.publish(
            reading, contribution=self.method.contribution, budget=budget, rng=rng
        )
        self._belief = self._revised(released, variance, number)
        self._history.noise = self._belief.at(number).variance
        self._history.total = float(self._belief.at(number).level.sum())
        self._history.jump = self._belief.jump
        self._history.shift = self._belief.shift
        publication = Publication(number, epsilon, was_asked)
        self._policy.learn(self._history, publication)
        self._history.record(publication)
        return released

    def _rehearse(
        self, reading: Reading, number: int, epsilon: Fraction, rng: RandomSource
    ) -> None:
        """Do the work of a publication, and throw it away.

        A time limit, or too little memory, would else stop only the steps that publish, and so
        tell or change the outcome of the comparison.  With seeded noise there is nothing to
        hide, and experiments are spared the work.

        Privacy:
            Nothing of it is kept or leaves, so it costs nothing.
        """
        released, variance = self._static.publish(
            reading, contribution=self.method.contribution, budget=Budget.seeded(epsilon), rng=rng
        )
        self._revised(released, variance, number)

    def _revised(self, released: NDArray[np.int64], variance: float, number: int) -> Belief:
        """Weigh a publication against what is believed."""
        smoothing = self.method.smooths
        if self._belief is None:
            return believe(released, variance, number, smoothing=smoothing)
        return revise(
            self._belief, released, variance, number, blocks=self._blocks, smoothing=smoothing
        )

    def _believed(self, number: int) -> NDArray[np.float64]:
        """Give the estimate for a step; nothing is zeros."""
        belief = self._belief
        return np.zeros(self.bins.size) if belief is None else belief.at(number).level

    def _outcome(
        self,
        number: int,
        before: NDArray[np.float64],
        released: NDArray[np.int64] | None,
        epsilon: Fraction | None,
    ) -> Step:
        estimate = self._believed(number)
        variance = 0.0 if self._belief is None else self._belief.at(number).variance
        return Step(
            number=number,
            action="repeated" if released is None else "published",
            estimate=estimate,
            released=released,
            epsilon=epsilon or Fraction(0),
            noise=variance**0.5,
            change=float(np.abs(estimate - before).sum()),
            spent=self._account.spent,
        )

    def _require_same(self, schema: Schema) -> None:
        """Refuse a table that tells users apart, or cuts bins, in another way than the stream."""
        same_bins = all(schema[name] == self.schema[name] for name in self.bins.names)
        if schema.unit != self.schema.unit or not same_bins:
            raise InvalidParameter("open the snapshot with the schema that the stream began with")

    def _require_sound(self) -> None:
        if self._is_spoilt:
            raise InvalidParameter("a step of this stream failed: open its stored state again")


def _grant_of(receipt: Receipt) -> Grant | None:
    if receipt.dataset is None or receipt.anchor is None:
        return None
    return Grant(receipt.dataset, *receipt.anchor, time=receipt.created)
