"""The rules that every method keeps, each checked on a small table.

What a rule says is one sentence, and its check raises `AssertionError` with another one that says
how it is broken.
"""

import copy
import dataclasses
import json
import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.folder.folder import kind_called, load
from dpublish.core.method import Method
from dpublish.core.released import Release
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, DPublishError, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, secure, seeded
from dpublish.testing.replay import ROUNDING, Diverged, Tape, removal_loss, watch

EPSILON = "1.5"
MARKER = "zq-private-marker"
"""Stands in a column that the schema does not name, so it must not appear anywhere."""


def example_schema() -> Schema:
    """Describe the small table on which methods are checked."""
    return Schema(
        (
            column("age", "integer", bounds=[0, 99], bins=10),
            column("sex", "category", values=["Female", "Male"]),
            column("height", "numeric", bounds=[100, 220], bins=6, missing="category"),
            column("town", "category", values=["East", "West", "North"], other="elsewhere"),
        )
    )


def example_rows(count: int = 60, seed: int = 1) -> pa.Table:
    """Simulate rows of that table, some of them out of bounds, missing or unknown."""
    rng = plain_generator(seed)
    ages = rng.integers(0, 100, count)
    heights = rng.normal(170, 12, count)
    heights[::11] = np.nan
    towns = rng.choice(["East", "West", "North", "Atlantis"], count)
    return pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "sex": pa.array(np.where(rng.random(count) < 0.5, "Female", "Male").tolist()),
            "height": pa.array(heights, pa.float64()),
            "town": pa.array(towns.tolist(), pa.string()),
            "note": pa.array([MARKER] * count, pa.string()),
        }
    )


def check_method(
    method: Method[Any], *, schema: Schema | None = None, rows: pa.Table | None = None
) -> None:
    """Check a method with its settings; raise AssertionError if it breaks a rule.

    Args:
        method: The method, with settings that fit the schema.
        schema: A schema of records (no units); `example_schema()` if absent.
        rows: At least two rows that fit it; `example_rows()` if absent.
    """
    world = World(
        method,
        example_schema() if schema is None else schema,
        example_rows() if rows is None else rows,
    )
    for rule in RULES:
        rule.check(world)


@dataclass
class World:
    """A method, and tables to run it on."""

    method: Method[Any]
    schema: Schema
    rows: pa.Table

    def release(
        self, rows: pa.Table | None = None, *, seed: int = 7, budget: Budget | None = None
    ) -> Release:
        """Publish from the rows, or from others, with a seed."""
        table = open_table(self.rows if rows is None else rows, self.schema)
        paid = Budget.seeded(EPSILON) if budget is None else budget
        released: Release = self.method.release(table, budget=paid, rng=seeded(seed))
        return released


def _published(release: Release) -> tuple[Any, Any, Any]:
    """Return what would be published, but for times and random names."""
    tables = {name: table.to_pydict() for name, table in release.tables().items()}
    return _unnamed(release.metadata()), repr(tables), release.schema


def _unnamed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _unnamed(v) for k, v in value.items() if k not in ("created", "release_id")}
    return [_unnamed(v) for v in value] if isinstance(value, (list, tuple)) else value


# --- Settings and words ---------------------------------------------------------------------


def _check_settings(world: World) -> None:
    method = world.method
    kind: Any = type(method)
    _require(dataclasses.is_dataclass(kind), f"{kind.__name__} must be a frozen dataclass")
    _require(hash(method) == hash(copy.copy(method)), "settings must be hashable")
    for item in dataclasses.fields(kind):
        text = item.metadata.get("help", "")
        _require(
            len(text) > 10, f"the setting {item.name!r} must be declared by setting(...), in words"
        )
        try:
            setattr(method, item.name, getattr(method, item.name))
        except dataclasses.FrozenInstanceError:
            continue
        raise AssertionError(
            f"{kind.__name__} must be frozen: dataclass(frozen=True, kw_only=True)"
        )
    for name in ("release", "release_part"):
        _require(
            getattr(kind, name) is getattr(Method, name),
            f"{kind.__name__} must write _release(run): {name} is final, for it makes the checks",
        )
    _require(kind.name, f"{kind.__name__} must have a name")
    _require((kind.__doc__ or "").strip(), f"{kind.__name__} must say what it publishes")


def _check_privacy_argument(world: World) -> None:
    for kind in type(world.method).__mro__:
        if "_release" in vars(kind):
            text = vars(kind)["_release"].__doc__ or ""
            _require(
                "Privacy:" in text, f"{kind.__name__}._release must argue its privacy (Privacy:)"
            )
            return


def _check_expected_error(world: World) -> None:
    loose = world.method.expected_error(world.schema, 1000, Fraction(1, 10))
    tight = world.method.expected_error(world.schema, 1000, Fraction(1))
    _require(
        tight.target in tight.figures, "the target of the expected error must be a figure of it"
    )
    _require(
        tight.figures[tight.target] < loose.figures[loose.target],
        "the expected error must fall as epsilon grows",
    )
    _require(
        world.method.expected_error(world.schema, None, Fraction(1)).summary,
        "the expected error must be known without a number of records, if only in words",
    )


# --- Budget ---------------------------------------------------------------------------------


def _check_budget(world: World) -> None:
    budget = Budget.seeded(EPSILON)
    receipt = world.release(budget=budget).receipt
    _require(
        all(share.is_used for share in budget.account()), "a share of the budget was not spent"
    )
    _require(
        budget.cost() == receipt.epsilon == Fraction(EPSILON),
        "the receipt must state what the budget cost",
    )
    _raises(BudgetAlreadyUsed, lambda: world.release(budget=budget), "a budget pays once")


def _check_nothing_is_read_unpaid(world: World) -> None:
    class Untouchable:
        schema, neighbors, is_bounded = world.schema, world.schema.neighbors, False
        steps, made, opened = (), (), world.schema.names

        def __getattr__(self, name: str) -> Any:
            raise AssertionError("rows were read before the budget was opened")

    budget = Budget.seeded(EPSILON)
    budget.spend()
    _raises(
        BudgetAlreadyUsed,
        lambda: world.method.release(Untouchable(), budget=budget, rng=seeded(1)),
        "a used budget must be refused before any row is read: split it first",
    )


def _check_seeds(world: World) -> None:
    first = world.release()
    _require(
        any("NOT PRIVATE" in stamp for stamp in first.receipt.stamps),
        "a release from a seed must be stamped",
    )
    _require(
        _published(first) == _published(world.release()), "the same seed must publish the same"
    )
    others = (_published(world.release(seed=seed)) for seed in range(20))
    _require(
        any(other != _published(first) for other in others),
        "other seeds must publish something else: where is the noise?",
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.create(Path(folder) / "books.db") as ledger,
    ):
        granted = _grant(ledger, world)
        _raises(
            InvalidParameter,
            lambda: world.release(budget=granted),
            "what a ledger pays for must not be drawn from a seed",
        )


def _grant(ledger: Ledger, world: World) -> Budget:
    """Let a ledger of its own pay for the method, by level if people have levels."""
    method: Any = world.method
    hides = method.neighbors_of(open_table(world.rows, world.schema))
    if hasattr(method, "spending"):
        ledger.add("people", levels=method.levels)
        amounts = method.spending(Fraction(EPSILON))
        return ledger.grant_levels("people", amounts, purpose="check", hides=hides, rng=secure())
    ledger.add("people", cap=EPSILON)
    return ledger.grant("people", epsilon=EPSILON, purpose="check", hides=hides, rng=secure())


# --- Tables ---------------------------------------------------------------------------------


def _check_small_tables(world: World) -> None:
    usual = set(world.release().tables())
    first = world.rows.slice(0, 1)
    few = [world.rows.slice(0, 0), first, world.rows.slice(0, 2), pa.concat_tables([first] * 6)]
    for rows in few:
        found = world.release(rows)
        _require(found.summary(), "a release must have a summary")
        _require(set(found.tables()) == usual, "small tables must publish the same kinds of tables")
    empty = [pa.nulls(3, field.type) for field in world.rows.schema]
    world.release(pa.table(empty, schema=world.rows.schema))


def _check_reads(world: World) -> None:
    read = world.method.reads(world.schema)
    _require(read, "reads(schema) must name a column: without any, rows cannot be counted")
    unknown = set(read) - set(world.schema.names)
    _require(not unknown, f"reads(schema) names columns that the schema lacks: {sorted(unknown)}")
    sources = {world.schema[name].source_name for name in read}
    others = [name for name in world.rows.column_names if name not in sources]
    table = open_table(world.rows.drop_columns(others), world.schema, columns=read)
    rule = "a table with the columns that reads(schema) names, and no others, must publish the same"
    try:
        few = world.method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(7))
    except DPublishError as error:
        raise AssertionError(f"{rule} ({error})") from None
    _require(_published(few) == _published(world.release()), rule)


def _check_errors(world: World) -> None:
    """Neighbors raise the same errors, word for word."""
    words = []
    for rows in (world.rows, world.rows.slice(1), world.rows.slice(0, 0)):
        try:
            world.release(rows, budget=Budget.seeded("1e-30"))
        except DPublishError as error:
            words.append(str(error))
        else:
            words.append("")
    _require(len(set(words)) == 1, "neighboring tables must raise the same errors, word for word")


def _check_no_row_gets_out(world: World) -> None:
    before = world.rows.to_pydict()
    release = world.release()
    _require(repr(world.rows.to_pydict()) == repr(before), "rows must stay as they are")
    _require(MARKER.encode() not in pickle.dumps(release), "a value of a row is in the release")
    beside = [name for name in getattr(release, "__dict__", ()) if not _is_declared(release, name)]
    _require(
        not beside, f"a release holds its fields, and nothing beside them: {', '.join(beside)}"
    )


def _is_declared(release: Any, name: str) -> bool:
    """Check whether an attribute is a field, or computed from fields when it is asked for."""
    fields = {item.name for item in dataclasses.fields(release)}
    return name in fields or isinstance(getattr(type(release), name, None), cached_property)


def _check_saving(world: World) -> None:
    release = world.release()
    rebuilt = type(release).from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata=json.loads(json.dumps(release.metadata())),
        tables=release.tables(),
    )
    _require(rebuilt == release, "a release must be rebuilt from its metadata and tables")
    if kind_called(release.kind) is None:  # `load` knows it once it is installed
        return
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "out")
        _require(load(Path(folder) / "out") == release, "a release must load as it was saved")


# --- Replay ---------------------------------------------------------------------------------


def _runner(world: World) -> Callable[..., Any]:
    """Make the function that publishes from rows, for `watch`."""

    def run(rows: pa.Table, rng: Any, progress: Any) -> Any:
        table = open_table(rows, world.schema)
        budget = Budget.seeded(EPSILON)
        release = world.method.release(table, budget=budget, rng=rng, progress=progress)
        return release, release.metadata(), release.tables(), release.summary()

    return run


def _check_replay(world: World) -> None:
    """Given the same noise and choices, a method publishes the same whatever the rows are."""
    run, tape = _runner(world), Tape()
    seen = watch(partial(run, world.rows), tape)
    _require(
        any(call.private is not None for call in tape.calls),
        "the method drew nothing through its run",
    )
    backward = world.rows.take(pa.array(range(world.rows.num_rows - 1, -1, -1)))
    for rows in (world.rows.slice(0, 0), pa.concat_tables([world.rows, backward, backward])):
        try:
            found = watch(partial(run, rows), Tape(tape))
        except Diverged as other:
            raise AssertionError(
                f"given the same noise, the method drew something else on other rows ({other}): a "
                "plan depends on rows"
            ) from None
        _require(
            found == seen,
            "given the same noise, the method published something else on other rows: something "
            "goes around the mechanisms",
        )


def _check_loss(world: World) -> None:
    """Between neighbors the draws cost at most epsilon, each by its own account."""
    run = _runner(world)
    for number in range(min(5, world.rows.num_rows)):
        fewer = pa.concat_tables([world.rows.slice(0, number), world.rows.slice(number + 1)])
        tape = Tape()
        seen = watch(partial(run, fewer), tape)
        more = pa.concat_tables([fewer, world.rows.slice(number, 1)])
        loss = removal_loss(run, more, tape, seen)
        _require(
            loss <= float(Fraction(EPSILON)) + ROUNDING,
            f"removing one record costs {loss:.3f}, more than epsilon ({EPSILON}): a sensitivity "
            "is too small, or shares add up to more than the budget",
        )


def _require(holds: object, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _raises(kind: type[Exception], call: Callable[[], Any], rule: str) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(rule)


class Rule(NamedTuple):
    """A rule, and the check that raises AssertionError where it is broken."""

    name: str
    says: str
    check: Callable[[World], None]


RULES = (
    Rule("settings", "settings are frozen, hashable and described", _check_settings),
    Rule("privacy argued", "the code argues why it is private", _check_privacy_argument),
    Rule("expected error", "the error is predicted without data", _check_expected_error),
    Rule("budget", "the budget is spent whole, and once", _check_budget),
    Rule("paid first", "no row is read before it is paid for", _check_nothing_is_read_unpaid),
    Rule(
        "seeds",
        "a seed repeats a release, which is stamped not private; no ledger pays for one",
        _check_seeds,
    ),
    Rule("small tables", "it works on no row, one, two and equal rows", _check_small_tables),
    Rule("columns", "it reads the columns that it names, and no others", _check_reads),
    Rule("rows", "rows stay as they are, and the release holds none", _check_no_row_gets_out),
    Rule("replay", "given the same noise, all rows publish the same", _check_replay),
    Rule("loss", "one record costs at most epsilon", _check_loss),
    Rule("errors", "neighboring tables raise the same errors", _check_errors),
    Rule("saving", "a release is rebuilt from what is saved", _check_saving),
)
