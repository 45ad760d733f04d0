"""What is audited: a method for tables or a method for streams, in a simulated world."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from dpublish.auditing.examples import STREAM_SCHEMA
from dpublish.auditing.stream_rules import STREAM_RULES, StreamWorld
from dpublish.auditing.worlds import (
    FORGES,
    LAST,
    ODD,
    OTHERWISE,
    Loss,
    Publishes,
    Row,
    and_first,
    and_last,
    budget_for,
    guaranteed,
    hides_values_alone,
    make_rows,
    publisher,
    record,
    replay_forged,
    replay_stream,
    replay_unrelated,
    runner,
    schema_for,
    stream_counts,
    stream_publisher,
    stream_runner,
    table_of,
    unrelated,
    user_steps,
    with_user,
)
from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import RandomSource, seeded
from dpublish.testing.conformance import MARKER, RULES, World
from dpublish.testing.replay import (
    AROUND,
    Call,
    Tape,
    exchange_loss,
    path_loss,
    removal_loss,
    require,
    watch,
)

_FEW: tuple[Row, ...] = (
    {"age": 31, "sex": "Female", "height": 171.5, "town": "Ost"},
    {"age": 8, "sex": "Male", "height": None, "town": "West"},
    {"age": 250, "sex": "Male", "height": 1e300, "town": "Atlantis"},
    {"age": 64, "sex": None, "height": float("nan"), "town": None},
    {"age": 31, "sex": "Female", "height": 160.0, "town": "Ost"},
)
"""A few odd rows: out of bounds, missing or unknown."""
_REPLAYED = ("replay", "loss")
"""Rules of `check_method` that an audit checks more thoroughly by itself."""

Rules = Iterator[tuple[str, str, Callable[[], None]]]


class Subject(Protocol):
    """A method in its world."""

    method: Any
    epsilon: Fraction
    one: str
    """What a neighbor has more than the other, in words."""
    leak: str
    """What a broken twin publishes besides, in words."""
    beyond: tuple[str, ...]
    """What is not checked of such a method, in words."""

    @property
    def name(self) -> str:
        """The method's name."""
        ...

    @property
    def allowed(self) -> float:
        """What the neighbors of the black box may lose."""
        ...

    @property
    def compared(self) -> int:
        """How many inputs are compared with those that were recorded."""
        ...

    @property
    def is_sampled(self) -> bool:
        """Whether records are drawn by lot, so that shares are amplified."""
        ...

    @property
    def spans(self) -> int:
        """How many times epsilon all calls may be paid: once in every window of a stream."""
        ...

    def rules(self) -> Rules:
        """List the rules of conformance: name, what holds, and the check."""
        ...

    def paid(self) -> tuple[Budget, Receipt]:
        """Publish once; return the budget that paid, and the receipt."""
        ...

    def receipt(self) -> Receipt:
        """Publish once, and return the receipt."""
        ...

    def calls(self) -> Sequence[Call]:
        """Return what was asked of mechanisms in one run."""
        ...

    def run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish from rows."""
        ...

    def leaking_run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish, and something exact besides."""
        ...

    def branching_run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish with an epsilon that depends on the rows."""
        ...

    def replayed(self) -> list[Tape]:
        """Replay the method itself on unrelated inputs, once."""
        ...

    def replay_unrelated(self, run: Publishes) -> list[Tape]:
        """Replay on unrelated inputs, also with forged outcomes."""
        ...

    def replay_neighbors(self, times: int = 1, spends: int = 1) -> list[Loss]:
        """Replay with a record more, or with so many at once, or at so many times epsilon."""
        ...

    def publishers(
        self, epsilon: Fraction, rng: RandomSource
    ) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Make what publishes from each of two neighbors."""
        ...


class TableSubject:
    """A method that publishes once from a table."""

    def __init__(self, method: Any, epsilon: Fraction) -> None:
        self.method, self.epsilon = method, epsilon
        self.rows = make_rows()
        self.is_about_values = hides_values_alone(method)
        self.one = "other values of one record" if self.is_about_values else "one record"
        self.leak = "publishes the exact sum of a column besides"
        self.beyond: tuple[str, ...] = (
            "people with several records: every simulated record is a person",
        )
        self.spans = 1
        self._run = runner(method, epsilon)
        self._less = runner(method, epsilon / 2)
        self.calls = cache(self._calls)
        self.paid = cache(self._paid)
        self.replayed = cache(partial(self.replay_unrelated, self.run))

    @property
    def name(self) -> str:
        """The method's name."""
        found: str = self.method.name
        return found

    @property
    def allowed(self) -> float:
        """What the neighbors of the black box may lose."""
        return guaranteed(self.method, LAST[0], self.epsilon)

    @property
    def compared(self) -> int:
        """How many tables are compared with those that were recorded."""
        pairs = [others for _, others in unrelated(self.method, self.rows)]
        return sum(map(len, pairs)) + len(FORGES) * len(pairs[-1])

    @property
    def is_sampled(self) -> bool:
        """Whether records are drawn by lot, so that shares are amplified."""
        return any(call.kind in ("sample", "sample_by") for call in self.calls())

    def rules(self) -> Rules:
        """List the rules of conformance."""
        rows = table_of(_FEW).append_column("note", pa.array([MARKER] * len(_FEW), pa.string()))
        world = World(self.method, schema_for(self.method), rows)
        for rule in RULES:
            if rule.name not in _REPLAYED:
                yield rule.name, rule.says, partial(rule.check, world)

    def _paid(self) -> tuple[Budget, Receipt]:
        budget = budget_for(self.method, self.epsilon)
        table = open_table(self.rows.base, schema_for(self.method))
        return budget, self.method.release(table, budget=budget, rng=seeded(3)).receipt

    def receipt(self) -> Receipt:
        """Publish once, and return the receipt."""
        return self.paid()[1]

    def _calls(self) -> Sequence[Call]:
        return record(self.run, self.rows.base)[0].calls

    def run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish from rows."""
        return self._run(rows, rng=rng, progress=progress)

    def leaking_run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish, and something exact besides."""
        return self.run(rows, rng, progress), pc.sum(rows["age"]).as_py()

    def branching_run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish with an epsilon that depends on the rows."""
        known = rows.equals(self.rows.base) or rows.equals(self.rows.many)
        return (self._run if known else self._less)(rows, rng=rng, progress=progress)

    def replay_unrelated(self, run: Publishes) -> list[Tape]:
        """Replay on unrelated tables, also with forged outcomes."""
        tapes = replay_unrelated(self.method, run, self.rows)
        replay_forged(run, *unrelated(self.method, self.rows)[-1])
        return tapes

    def replay_neighbors(self, times: int = 1, spends: int = 1) -> list[Loss]:
        """Replay with a record more, or with so many at once, or at so many times epsilon."""
        base = self.rows.base
        run = self._run if spends == 1 else runner(self.method, spends * self.epsilon)
        is_twin = (times, spends) != (1, 1)  # which LAST, at the end of a table, has to show
        records = LAST if is_twin else (*LAST, ODD)
        if self.is_about_values:
            return [self._exchanged(run, row, times) for row in records]
        found = self._removed(run, base, records, times, is_first=not is_twin)
        return found if is_twin else found + self._removed(run, self.rows.empty, records, 1)

    def _exchanged(self, run: Publishes, row: Row, times: int) -> Loss:
        here, there = (
            and_last(self.rows.base, *[one] * times) for one in (row, {**row, **OTHERWISE})
        )
        return Loss(exchange_loss(run, here, there), guaranteed(self.method, row, self.epsilon))

    def _removed(
        self,
        run: Publishes,
        rows: pa.Table,
        records: Sequence[Row],
        times: int,
        *,
        is_first: bool = False,
    ) -> list[Loss]:
        """Add records to a table: last, and first, too, if records have no coins by position."""
        played, seen = record(run, rows)
        found = []
        for row in records:
            allowed = guaranteed(self.method, row, self.epsilon)
            more = and_last(rows, *[row] * times)
            found.append(Loss(removal_loss(run, more, played, seen), allowed))
            if is_first and not played.coins:
                tape = Tape(played)
                require(watch(partial(run, and_first(rows, row)), tape) == seen, AROUND)
                found.append(Loss(path_loss(played, tape), allowed))
        return found

    def publishers(
        self, epsilon: Fraction, rng: RandomSource
    ) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Publish from no record and from one, or from one and from other values of it."""
        last = LAST[0]
        rows: tuple[list[Row], list[Row]] = ([], [last])
        if self.is_about_values:
            rows = [last], [{**last, **OTHERWISE}]
        first, second = (publisher(self.method, epsilon, table_of(each), rng) for each in rows)
        return first, second


class StreamSubject:
    """A method that publishes step by step."""

    def __init__(self, method: Any, epsilon: Fraction) -> None:
        self.method, self.epsilon = method, epsilon
        self.one = "one person, in all steps or in any window,"
        self.leak = "publishes an exact sum besides"
        self.beyond: tuple[str, ...] = ()
        self.compared = 2 + 2 * len(FORGES)
        self.is_sampled = False
        self.spans = len(stream_counts(method)) // method.window if method.window else 1
        self._run = stream_runner(method, epsilon)
        self._less = stream_runner(method, epsilon / 2)
        self.calls = cache(self._calls)
        self.paid = cache(self._paid)
        self.replayed = cache(partial(self.replay_unrelated, self.run))

    @property
    def name(self) -> str:
        """The method's name."""
        found: str = self.method.name
        return found

    @property
    def allowed(self) -> float:
        """What the neighbors of the black box may lose."""
        return float(self.epsilon)

    def rules(self) -> Rules:
        """List the rules of conformance."""
        world = StreamWorld(self.method, self.epsilon)
        for rule in STREAM_RULES:
            yield rule.name, rule.says, partial(rule.check, world)

    def _paid(self) -> tuple[Budget, Receipt]:
        budget = Budget.seeded(self.epsilon)
        return budget, self.method.start(STREAM_SCHEMA, budget=budget, rng=seeded(3)).receipt

    def receipt(self) -> Receipt:
        """Open a stream, and return the receipt."""
        return self.paid()[1]

    def _calls(self) -> Sequence[Call]:
        return record(self.run, stream_counts(self.method))[0].calls

    def run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish a stream."""
        return self._run(rows, rng=rng, progress=progress)

    def leaking_run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish, and something exact besides."""
        return self.run(rows, rng, progress), int(rows[-1].sum())

    def branching_run(self, rows: Any, rng: Any, progress: Any) -> Any:
        """Publish with an epsilon that depends on the counts."""
        is_empty = int(rows[0].sum()) < int(stream_counts(self.method)[0].sum())
        return (self._less if is_empty else self._run)(rows, rng=rng, progress=progress)

    def replay_unrelated(self, run: Publishes) -> list[Tape]:
        """Replay on unrelated snapshots."""
        usual = stream_counts(self.method)
        others = stream_counts(self.method, 2, 0), stream_counts(self.method, 3, 10**6)
        played, seen = record(run, usual)
        for other in others:
            require(watch(partial(run, other), Tape(played)) == seen, AROUND)
        replay_forged(run, usual, others)
        return [played]

    def replay_neighbors(self, times: int = 1, spends: int = 1) -> list[Loss]:
        """Replay with a person more, or with so many at once, or at so many times epsilon."""
        run = self._run if spends == 1 else stream_runner(self.method, spends * self.epsilon)
        return replay_stream(self.method, run, self.epsilon, people=times)[1]

    def publishers(
        self, epsilon: Fraction, rng: RandomSource
    ) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """Publish streams of no one, and of one person who is always there."""
        empty = [one * 0 for one in stream_counts(self.method)]
        steps = user_steps(self.method, len(empty))[0]
        counts = empty[: steps.stop], with_user(empty, steps, self.method.contribution)
        first, second = (
            stream_publisher(self.method, epsilon, each[: steps.stop], rng) for each in counts
        )
        return first, second
