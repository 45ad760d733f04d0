"""Check that a method keeps the rules that every method of this package keeps.

`check_method` is for authors of methods, as scikit-learn's `check_estimator` is for authors of
estimators.  It runs a method on a small table and raises `AssertionError` with a sentence that
says which rule is broken.  What passes is not proved private; what fails is not.

`privacy_loss` and `frequency_p_value` compare what a mechanism does with what its proof says.

>>> from dpublish import Histogram
>>> check_method(Histogram(columns=("age", "sex")))
"""

import copy
import dataclasses
import json
import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, log
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from scipy.stats import chisquare

from dpublish.core import method as method_module
from dpublish.core.folder.folder import kind_called, load
from dpublish.core.method import Method
from dpublish.core.released import Release
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, DPublishError, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, secure, seeded

__all__ = ["check_method", "example_rows", "example_schema", "frequency_p_value", "privacy_loss"]

EPSILON = "1.5"
MARKER = "zq-private-marker"
"""Stands in a column that the schema does not name, so it must not appear anywhere."""
_ROUNDING = 1e-9


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
    world = _World(
        method,
        example_schema() if schema is None else schema,
        example_rows() if rows is None else rows,
    )
    for check in _CHECKS:
        check(world)


@dataclass
class _World:
    """A method, and tables to run it on."""

    method: Method[Any]
    schema: Schema
    rows: pa.Table

    def release(
        self, rows: pa.Table | None = None, *, seed: int = 7, budget: Budget | None = None
    ) -> Release:
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


def _check_settings(world: _World) -> None:
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


def _check_privacy_argument(world: _World) -> None:
    for kind in type(world.method).__mro__:
        if "_release" in vars(kind):
            text = vars(kind)["_release"].__doc__ or ""
            _require(
                "Privacy:" in text, f"{kind.__name__}._release must argue its privacy (Privacy:)"
            )
            return


def _check_expected_error(world: _World) -> None:
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


def _check_budget(world: _World) -> None:
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


def _check_nothing_is_read_unpaid(world: _World) -> None:
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


def _check_seeds(world: _World) -> None:
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
        hides = world.method.neighbors_of(open_table(world.rows, world.schema))
        ledger.add("people", cap=EPSILON)
        granted = ledger.grant(
            "people", epsilon=EPSILON, purpose="check", hides=hides, rng=secure()
        )
        _raises(
            InvalidParameter,
            lambda: world.release(budget=granted),
            "what a ledger pays for must not be drawn from a seed",
        )


# --- Tables ---------------------------------------------------------------------------------


def _check_small_tables(world: _World) -> None:
    usual = set(world.release().tables())
    first = world.rows.slice(0, 1)
    for rows in (world.rows.slice(0, 0), first, pa.concat_tables([first] * 6)):
        found = world.release(rows)
        _require(found.summary(), "a release must have a summary")
        _require(set(found.tables()) == usual, "small tables must publish the same kinds of tables")
    empty = [pa.nulls(3, field.type) for field in world.rows.schema]
    world.release(pa.table(empty, schema=world.rows.schema))


def _check_reads(world: _World) -> None:
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


def _check_errors(world: _World) -> None:
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


def _check_no_row_gets_out(world: _World) -> None:
    before = world.rows.to_pydict()
    release = world.release()
    _require(repr(world.rows.to_pydict()) == repr(before), "rows must stay as they are")
    _require(MARKER.encode() not in pickle.dumps(release), "a value of a row is in the release")


def _check_saving(world: _World) -> None:
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


@dataclass
class _Call:
    kind: str
    public: tuple[Any, ...]
    private: Any = field(repr=False)
    output: Any = field(repr=False)
    rate: float = 0.0


class _Tape:
    """What a method drew in one run; a tape made from another plays that one back."""

    def __init__(self, played: "_Tape | None" = None) -> None:
        self.played = played
        self.calls: list[_Call] = []
        self.noise = seeded(11)

    def answer(
        self,
        kind: str,
        public: tuple[Any, ...],
        private: Any,
        rate: float,
        draw: Callable[[], Any],
    ) -> Any:
        output = draw()  # in any case, for it spends the budget and may refuse
        if self.played is not None:
            number = len(self.calls)
            _require(
                number < len(self.played.calls),
                f"the method drew once more ({kind}) on other rows, given the same noise",
            )
            before = self.played.calls[number]
            _require(
                (before.kind, before.public) == (kind, public),
                f"given the same noise, the method drew {kind} {public} on other rows, and "
                f"{before.kind} {before.public} before: a plan depends on rows",
            )
            output = before.output
        self.calls.append(_Call(kind, public, copy.deepcopy(private), copy.deepcopy(output), rate))
        return copy.deepcopy(output)


class _TapedRun(Run):
    """A run whose draws are kept on a tape."""

    tape: ClassVar[_Tape]

    def _drawing(self) -> Run:
        return Run(self.table, rng=self.tape.noise)

    def add_noise(
        self, answer: Any, *, of: Any = None, sensitivity: Any = None, budget: Any
    ) -> Any:
        moved = sensitivity if of is None else of.sensitivity(self.neighbors)
        return self.tape.answer(
            "add_noise",
            (budget.epsilon, moved, np.shape(answer)),
            np.asarray(answer),
            float(budget.epsilon / moved),
            lambda: self._drawing().add_noise(
                answer, of=of, sensitivity=sensitivity, budget=budget
            ),
        )

    def add_laplace(self, values: Any, *, budget: Any, **rest: Any) -> Any:
        return self.tape.answer(
            "add_laplace",
            (budget.epsilon, tuple(sorted(rest.items())), np.shape(values)),
            np.asarray(values, dtype=np.float64),
            float(budget.epsilon / Fraction(rest["sensitivity"])),
            lambda: self._drawing().add_laplace(values, budget=budget, **rest),
        )

    def noisy_size(self, size: int, *, budget: Any) -> int:
        found: int = self.tape.answer(
            "noisy_size",
            (budget.epsilon,),
            np.asarray(size),
            float(budget.epsilon),
            lambda: self._drawing().noisy_size(size, budget=budget),
        )
        return found

    def select(
        self,
        scores: Any,
        *,
        of: Any = None,
        sensitivity_range: Any = None,
        budget: Any,
        **rest: Any,
    ) -> int:
        moved = sensitivity_range if of is None else of.range_sensitivity(self.neighbors)
        found: int = self.tape.answer(
            "select",
            (budget.epsilon, moved, np.shape(scores)),
            np.asarray(scores),
            float(budget.epsilon / moved),
            lambda: self._drawing().select(
                scores, of=of, sensitivity_range=sensitivity_range, budget=budget, **rest
            ),
        )
        return found

    def top_k(
        self, scores: Any, *, count: int, sensitivity_range: Any, budget: Any, **rest: Any
    ) -> list[int]:
        found: list[int] = self.tape.answer(
            "top_k",
            (budget.epsilon, sensitivity_range, count, np.shape(scores)),
            np.asarray(scores),
            float(budget.epsilon / sensitivity_range),
            lambda: self._drawing().top_k(
                scores,
                count=count,
                sensitivity_range=sensitivity_range,
                budget=budget,
                **rest,
            ),
        )
        return found

    def quantile(self, values: Any, *, budget: Any, **rest: Any) -> float:
        found: float = self.tape.answer(
            "quantile",
            (budget.epsilon, tuple(sorted(rest.items()))),
            None,
            0.0,
            lambda: self._drawing().quantile(values, budget=budget, **rest),
        )
        return found

    def sparse_counts(
        self, keys: Any, counts: Any, *, sensitivity: int = 1, budget: Any, **rest: Any
    ) -> Any:
        cells = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        return self.tape.answer(
            "sparse_counts",
            (budget.epsilon, sensitivity, tuple(sorted(rest.items()))),
            cells,
            float(budget.epsilon / sensitivity),
            lambda: self._drawing().sparse_counts(
                keys, counts, sensitivity=sensitivity, budget=budget, **rest
            ),
        )


@contextmanager
def _taped(tape: _Tape) -> Iterator[None]:
    """Let every run draw from the tape."""
    usual = method_module.Run
    method_module.Run = type("Taped", (_TapedRun,), {"tape": tape})  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        method_module.Run = usual  # type: ignore[misc]


def _replayed(world: _World, rows: pa.Table, tape: _Tape) -> tuple[Any, Any, Any]:
    with _taped(tape):
        return _published(world.release(rows))


def _check_replay(world: _World) -> None:
    """Given the same noise and choices, a method publishes the same whatever the rows are."""
    tape = _Tape()
    seen = _replayed(world, world.rows, tape)
    _require(tape.calls, "the method drew nothing through its run")
    backward = world.rows.take(pa.array(range(world.rows.num_rows - 1, -1, -1)))
    unrelated = (world.rows.slice(0, 0), pa.concat_tables([world.rows, backward, backward]))
    for rows in unrelated:
        other = _Tape(tape)
        found = _replayed(world, rows, other)
        _require(
            len(other.calls) == len(tape.calls),
            "given the same noise, the method drew less on other rows: a plan depends on rows",
        )
        _require(
            found == seen,
            "given the same noise, the method published something else on other rows: something "
            "goes around the mechanisms",
        )


def _check_loss(world: _World) -> None:
    """Between neighbors the draws cost at most epsilon, each by its own account."""
    tape = _Tape()
    _replayed(world, world.rows, tape)
    for number in range(min(5, world.rows.num_rows)):
        fewer = pa.concat_tables([world.rows.slice(0, number), world.rows.slice(number + 1)])
        other = _Tape(tape)
        _replayed(world, fewer, other)
        loss = sum(_loss(here, there) for here, there in zip(tape.calls, other.calls, strict=True))
        _require(
            loss <= float(Fraction(EPSILON)) + _ROUNDING,
            f"removing one record costs {loss:.3f}, more than epsilon ({EPSILON}): a sensitivity "
            "is too small, or shares add up to more than the budget",
        )


def _loss(here: _Call, there: _Call) -> float:
    if here.private is None:
        return 0.0
    if here.kind == "sparse_counts":
        cells = here.private.keys() | there.private.keys()
        apart = sum(abs(here.private.get(c, 0) - there.private.get(c, 0)) for c in cells)
        return here.rate * float(apart)
    moves = there.private.astype(np.float64) - here.private.astype(np.float64)
    if here.kind == "select":
        return here.rate * float(moves.max() - moves.min())
    if here.kind == "top_k":
        # Winners pay for what they rise less than the candidate that rises most, or fall behind.
        won = moves[np.asarray(here.output)]
        paying = max(1, min(len(here.output), moves.size - 1))
        lost: float = max(float((moves.max() - won).sum()), float((won - moves.min()).sum()))
        return float(here.rate / paying * lost)
    return here.rate * float(np.abs(moves).sum())


# --- What a mechanism does, and what its proof says ------------------------------------------


def privacy_loss(here: Mapping[Hashable, float], there: Mapping[Hashable, float]) -> float:
    """Find the largest log ratio of an outcome's probability on two neighboring datasets.

    >>> round(privacy_loss({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}), 3)
    0.693
    """
    loss = 0.0
    for outcome in here.keys() | there.keys():
        first, second = here.get(outcome, 0.0), there.get(outcome, 0.0)
        if first == second:
            continue
        if min(first, second) == 0:
            return inf  # an outcome that only one of them can produce gives it away
        loss = max(loss, abs(log(first / second)))
    return loss


def frequency_p_value(
    samples: Iterable[Hashable], expected: Mapping[Hashable, float], *, min_expected: float = 5
) -> float:
    """Test by chi-squared whether `samples` were drawn from the `expected` distribution.

    Outcomes expected fewer than `min_expected` times are pooled; an outcome that should be
    impossible gives 0.

    Raises:
        ValueError: All outcomes would be pooled into one, so that no sample could fail.
    """
    seen = Counter(samples)
    if any(expected.get(outcome, 0) <= 0 for outcome in seen):
        return 0.0
    total = seen.total()
    scale = total / sum(expected.values())
    observed: list[float] = []
    wanted: list[float] = []
    rare_observed = rare_wanted = 0.0
    for outcome, probability in expected.items():
        if probability * scale >= min_expected:
            observed.append(seen[outcome])
            wanted.append(probability * scale)
        else:
            rare_observed += seen[outcome]
            rare_wanted += probability * scale
    if rare_wanted > 0:
        observed.append(rare_observed)
        wanted.append(rare_wanted)
    if len(wanted) < 2:
        raise ValueError("a test on fewer than two sets of outcomes cannot fail")
    rescale = sum(observed) / sum(wanted)
    return float(chisquare(observed, [w * rescale for w in wanted]).pvalue)


def _require(holds: object, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _raises(kind: type[Exception], call: Callable[[], Any], rule: str) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(rule)


_CHECKS: Sequence[Callable[[_World], None]] = (
    _check_settings,
    _check_privacy_argument,
    _check_expected_error,
    _check_budget,
    _check_nothing_is_read_unpaid,
    _check_seeds,
    _check_small_tables,
    _check_reads,
    _check_no_row_gets_out,
    _check_replay,
    _check_loss,
    _check_errors,
    _check_saving,
)
