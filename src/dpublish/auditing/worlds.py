"""Simulated tables and streams, and how a method is replayed on them.

All rows are simulated here, from fixed seeds: an audit reads no table of an owner.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.auditing.examples import SCHEMA, SPAN, STREAM_SCHEMA
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.errors import DPublishError
from dpublish.methods.streams.stream import StreamState
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource, plain_generator
from dpublish.testing.replay import (
    AROUND,
    Tape,
    all_low,
    all_zero,
    exchange_loss,
    path_loss,
    removal_loss,
    require,
    watch,
)
from dpublish.types import IntArray

Row = Mapping[str, Any]
Publishes = Callable[..., Any]
"""Publishes from rows or snapshots, given `rng` and `progress`."""
FORGES = (all_zero, all_low)
"""What mechanisms return instead of what they drew, when outcomes are forged."""

_TYPES = {"age": pa.int64(), "height": pa.float64()}
LAST: tuple[Row, ...] = (
    {"age": 64, "sex": "Male", "height": 181.0, "town": "Nord"},
    {"age": 0, "sex": "Female", "height": 220.0, "town": "Atlantis"},
)
"""Records that come or go, last in their table."""
ODD: Row = {"age": 31, "sex": "Female", "height": None, "town": "Ost"}
"""A record without a height: what is missing is counted by code of its own."""
OTHERWISE: Row = {"age": 99, "height": 100.0, "town": "Sued"}
"""Other values of such a record, for methods that hide values alone."""


# --- Tables -----------------------------------------------------------------------------------


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Make a table of a few rows."""
    return pa.table(
        {
            name: pa.array([row[name] for row in rows], _TYPES.get(name, pa.string()))
            for name in SCHEMA.names
        }
    )


def people(count: int, seed: int) -> pa.Table:
    """Simulate rows of the public schema; its columns depend on each other."""
    rng = plain_generator(seed)
    ages = rng.integers(0, 100, count)
    sexes = np.where(rng.random(count) < 0.3 + ages / 250, "Female", "Male")
    heights = rng.normal(165 + 12 * (sexes == "Male"), 9)
    towns = np.array(["Ost", "West", "Nord", "Sued"])[np.minimum(ages // 30, 3)]
    return pa.table({"age": ages, "sex": sexes, "height": heights, "town": towns})


def strangers(count: int) -> pa.Table:
    """Simulate rows of another kind, many of them out of bounds, missing or unknown."""
    rng = plain_generator(77)
    ages = rng.integers(-50, 1000, count).astype(object)
    ages[::7] = None
    heights = rng.standard_cauchy(count) * 50 + 100
    heights[::11] = np.nan
    heights[::13] = np.inf
    towns = np.where(rng.random(count) < 0.5, "", "nowhere").astype(object)
    towns[::5] = "Sued"
    towns[::17] = None
    sexes = np.where(rng.random(count) < 0.9, "Male", "?")
    return pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "sex": pa.array(sexes, pa.string()),
            "height": pa.array(heights, pa.float64()),
            "town": pa.array(towns, pa.string()),
        }
    )


def and_first(table: pa.Table, row: Row) -> pa.Table:
    """Add a row at the beginning."""
    return pa.concat_tables([table_of([row]).cast(table.schema), table])


def and_last(table: pa.Table, *rows: Row) -> pa.Table:
    """Add rows at the end."""
    return pa.concat_tables([table, table_of(rows).cast(table.schema)])


class Rows(NamedTuple):
    """The tables on which a method is recorded and replayed."""

    base: pa.Table
    """Neighbors have one record more than this."""
    many: pa.Table
    empty: pa.Table
    strangers: pa.Table


def make_rows(base: int = 300, many: int = 2_000) -> Rows:
    """Simulate the tables."""
    return Rows(people(base, 5), people(many, 6), table_of([]), strangers(many))


# --- A method, replayed -----------------------------------------------------------------------


def schema_for(method: Any, schema: Schema = SCHEMA) -> Schema:
    """Return the schema of tables of a method: with levels, if it needs them."""
    return method.prepare(schema) if hasattr(method, "prepare") else schema


def budget_for(method: Any, epsilon: Fraction) -> Budget:
    """Make the budget of a release of `epsilon`, by level if the method takes levels."""
    found: Budget = method.budget(epsilon) if hasattr(method, "budget") else Budget.seeded(epsilon)
    return found


def runner(method: Any, epsilon: Fraction, schema: Schema = SCHEMA) -> Publishes:
    """Make the function that publishes from a table, for `watch`."""
    described = schema_for(method, schema)

    def run(rows: pa.Table, rng: Any, progress: Any = None) -> Any:
        release = method.release(
            open_table(rows, described),
            budget=budget_for(method, epsilon),
            rng=rng,
            progress=progress,
        )
        return release, release.metadata(), release.tables(), release.summary()

    return run


def publisher(
    method: Any, epsilon: Fraction, rows: pa.Table, rng: RandomSource, schema: Schema = SCHEMA
) -> Callable[[], Any]:
    """Make the function that publishes from a table what a black box shows: tables and figures."""
    table = open_table(rows, schema_for(method, schema))

    def run() -> Any:
        release = method.release(table, budget=budget_for(method, epsilon), rng=rng)
        return release.tables(), release.metadata()

    return run


def guaranteed(method: Any, record: Row, epsilon: Fraction) -> float:
    """Return what a record may lose: epsilon, or what its own level pays."""
    if not hasattr(method, "spending"):
        return float(epsilon)
    spending = method.spending(epsilon)
    own = _levels_of_rule(method).get(str(record.get(method.preference)))
    return float(spending[own] if own in spending else max(spending.values()))


def _levels_of_rule(method: Any) -> dict[str, Fraction]:
    """Read which value gives which level: `Female=1.5; Male=3`."""
    pairs = (pair.partition("=") for pair in (method.rule or "").split(";") if "=" in pair)
    return {value.strip(): Fraction(level.strip()) for value, _, level in pairs}


def hides_values_alone(method: Any) -> bool:
    """Check whether it is public who is in the table, and at which level."""
    return getattr(method, "mode", None) == "values-only"


class Loss(NamedTuple):
    """What a record lost in a replay, and what it may lose."""

    lost: float
    allowed: float


def record(run: Publishes, rows: Any) -> tuple[Tape, Any]:
    """Publish from rows, and keep what the mechanisms returned."""
    played = Tape()
    return played, watch(partial(run, rows), played)


def replay_unrelated(method: Any, run: Publishes, rows: Rows) -> list[Tape]:
    """Replay on unrelated tables, which must publish the same; return the tapes recorded."""
    recorded = []
    for first, others in unrelated(method, rows):
        played, seen = record(run, first)
        require(
            any(call.private is not None for call in played.calls), "no mechanism was given rows"
        )
        for other in others:
            require(watch(partial(run, other), Tape(played)) == seen, AROUND)
        recorded.append(played)
    return recorded


def replay_forged(run: Publishes, rows: Any, others: Sequence[Any]) -> None:
    """Replay with outcomes that are rare: noisy numbers that all tie, or are all far below 0.

    A method may refuse them; it must then refuse them on all rows, in the same words.
    """

    def publish(given: Any, rng: Any, progress: Any) -> Any:
        try:
            return run(given, rng=rng, progress=progress)
        except DPublishError as refusal:
            return type(refusal).__name__, str(refusal)

    for forge in FORGES:
        played = Tape(forge=forge)
        seen = watch(partial(publish, rows), played)
        for other in others:
            require(watch(partial(publish, other), Tape(played)) == seen, AROUND)


def unrelated(method: Any, rows: Rows) -> list[tuple[pa.Table, tuple[pa.Table, ...]]]:
    """Pair tables to record on with those to replay on."""
    if hides_values_alone(method):  # who is there is public: all columns but the levels differ
        others = rows.strangers.slice(0, rows.base.num_rows)
        position = others.column_names.index("sex")
        return [(rows.base, (others.set_column(position, "sex", rows.base["sex"]),))]
    return [(rows.many, (rows.empty,)), (rows.base, (rows.empty, rows.strangers))]


def replay_neighbors(
    method: Any, run: Publishes, rows: Rows, epsilon: Fraction, last: Sequence[Row] = LAST
) -> list[Loss]:
    """Replay on neighboring tables; return what each record lost."""
    if hides_values_alone(method):
        return [
            Loss(
                exchange_loss(
                    run, and_last(rows.base, row), and_last(rows.base, {**row, **OTHERWISE})
                ),
                guaranteed(method, row, epsilon),
            )
            for row in last
        ]
    played, seen = record(run, rows.base)
    return [
        Loss(
            removal_loss(run, and_last(rows.base, row), played, seen),
            guaranteed(method, row, epsilon),
        )
        for row in last
    ]


# --- A stream, replayed -----------------------------------------------------------------------


def snapshots(seed: int, most: int, bins: int, steps: int = 2 * SPAN) -> list[IntArray]:
    """Simulate counts of bins over time, with a jump now and then."""
    rng = plain_generator(seed)
    levels = [rng.integers(0, most + 1, bins) for _ in range(4)]
    return [levels[step // 3 % 4] + rng.integers(0, 3, bins) for step in range(steps)]


def with_user(counts: Sequence[IntArray], steps: range, contribution: int) -> list[IntArray]:
    """Add a user who has as many rows as they may, in a few bins, at the given steps."""
    changed = [one.copy() for one in counts]
    for step in steps:
        cells = (5 * step + 7 * np.arange(contribution)) % changed[step].size
        np.add.at(changed[step], cells, 1)
    return changed


def stream_runner(method: Any, epsilon: Fraction, schema: Schema = STREAM_SCHEMA) -> Publishes:
    """Make the function that publishes a stream, stored and opened again after every step."""

    def run(counts: Sequence[IntArray], rng: Any, progress: Any = None) -> Any:
        stream = method.start(schema, budget=Budget.seeded(epsilon), rng=rng)
        shown = []
        for one in counts:
            step = stream.next_counts(one, rng=rng)
            state = stream.state()
            public, secret = (json.loads(json.dumps(x)) for x in (state.public, state.secret))
            shown.append((step, public, secret, state.arrays, stream.spent, stream.worst))
            state = StreamState(public, secret, state.arrays)
            stream = method.resume(schema, state, stream.receipt)
        return shown, stream.receipt

    return run


def stream_counts(method: Any, seed: int = 1, most: int = 40) -> list[IntArray]:
    """Simulate the snapshots of a stream of the public schema."""
    bins = 1
    for name in method.columns:
        bins *= {"hour": 8, "zone": 3}[name]
    return snapshots(seed, most, bins)


def user_steps(method: Any, steps: int) -> list[range]:
    """List when a user who is hidden may be there: always, or in any window."""
    if not method.window:
        return [range(steps)]
    starts = (0, method.window // 2, steps - method.window)
    return [range(start, start + method.window) for start in starts]


def replay_stream(
    method: Any, run: Publishes, epsilon: Fraction, people: int = 1
) -> tuple[Tape, list[Loss]]:
    """Replay a stream on unrelated snapshots and with one user more; return what that cost.

    With more `people` than one the snapshots are no neighbors, and what they cost tells so.
    """
    usual = stream_counts(method)
    played, seen = record(run, usual)
    require(any(call.private is not None for call in played.calls), "no mechanism was given rows")
    for other in (stream_counts(method, 2, 0), stream_counts(method, 3, 10**6)):
        require(watch(partial(run, other), Tape(played)) == seen, AROUND)
    losses = []
    for steps in user_steps(method, len(usual)):
        tape = Tape(played)
        changed = with_user(usual, steps, people * method.contribution)
        require(watch(partial(run, changed), tape) == seen, AROUND)
        lost = path_loss(played, tape, changes=method.contribution)
        losses.append(Loss(lost, float(epsilon)))
    return played, losses


def stream_publisher(
    method: Any, epsilon: Fraction, counts: Sequence[IntArray], rng: RandomSource
) -> Callable[[], Any]:
    """Make the function that publishes a stream, as those see it who get its steps."""

    def run() -> Any:
        stream = method.start(STREAM_SCHEMA, budget=Budget.seeded(epsilon), rng=rng)
        steps = [stream.next_counts(one, rng=rng) for one in counts]
        return [(step.action, step.estimate, float(step.spent)) for step in steps]

    return run
