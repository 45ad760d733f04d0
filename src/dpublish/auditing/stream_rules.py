"""The rules that every method for streams keeps, each checked on a few simulated snapshots."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from dpublish.auditing.examples import STREAM_SCHEMA
from dpublish.auditing.worlds import stream_counts, stream_runner
from dpublish.errors import BudgetAlreadyUsed, DPublishError
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing.replay import plain, require
from dpublish.types import IntArray

_SEEDS = 20


@dataclass(frozen=True)
class StreamWorld:
    """A method for streams, and what it may spend."""

    method: Any
    epsilon: Fraction

    def publish(self, counts: Sequence[IntArray], seed: int = 7) -> Any:
        """Publish all snapshots from a seed."""
        return plain(stream_runner(self.method, self.epsilon)(counts, seeded(seed)))


class StreamRule(NamedTuple):
    """A rule, and the check that raises AssertionError where it is broken."""

    name: str
    says: str
    check: Callable[[StreamWorld], None]


def _check_settings(world: StreamWorld) -> None:
    method = world.method
    require(hash(method) == hash(copy.copy(method)), "settings must be hashable")
    for item in dataclasses.fields(method):
        require(len(item.metadata.get("help", "")) > 10, f"{item.name!r} must be described")
        try:
            setattr(method, item.name, getattr(method, item.name))
        except dataclasses.FrozenInstanceError:
            continue
        raise AssertionError("settings must be frozen")


def _check_budget(world: StreamWorld) -> None:
    budget = Budget.seeded(world.epsilon)
    stream = world.method.start(STREAM_SCHEMA, budget=budget, rng=seeded(1))
    require(all(share.is_used for share in budget.account()), "a share was not spent")
    require(stream.receipt.epsilon == world.epsilon, "the receipt must state the budget")
    try:
        world.method.start(STREAM_SCHEMA, budget=budget, rng=seeded(1))
    except BudgetAlreadyUsed:
        return
    raise AssertionError("a budget pays once")


def _check_seeds(world: StreamWorld) -> None:
    counts = stream_counts(world.method)
    first = world.publish(counts)
    require(first == world.publish(counts), "the same seed must publish the same")
    others = (world.publish(counts, seed) for seed in range(_SEEDS))
    require(any(other != first for other in others), "other seeds must publish something else")


def _check_resuming(world: StreamWorld) -> None:
    """A stream that goes on in memory publishes what one does that is stored after every step."""
    counts, rng = stream_counts(world.method), seeded(7)
    stream = world.method.start(STREAM_SCHEMA, budget=Budget.seeded(world.epsilon), rng=rng)
    steps = [stream.next_counts(one, rng=rng) for one in counts]
    shown, _ = stream_runner(world.method, world.epsilon)(counts, seeded(7))
    require(
        plain(steps) == plain([each[0] for each in shown]), "a stored stream must go on the same"
    )


def _check_small(world: StreamWorld) -> None:
    counts = stream_counts(world.method)
    world.publish([one * 0 for one in counts])
    world.publish([one * 0 + (one == one.max()) for one in counts])


def _check_inputs(world: StreamWorld) -> None:
    counts = stream_counts(world.method)
    before = [one.tolist() for one in counts]
    world.publish(counts)
    require(before == [one.tolist() for one in counts], "counts must stay as they are")


def _check_errors(world: StreamWorld) -> None:
    words = set()
    for most in (0, 40, 10**6):
        tiny = StreamWorld(world.method, Fraction(1, 10**30))
        try:
            tiny.publish(stream_counts(world.method, 1, most))
        except DPublishError as error:
            words.add(str(error))
        else:
            words.add("")
    require(len(words) == 1, "all snapshots must raise the same errors, word for word")


STREAM_RULES = (
    StreamRule("settings", "settings are frozen, hashable and described", _check_settings),
    StreamRule("budget", "the budget is spent whole, and once", _check_budget),
    StreamRule("seeds", "a seed repeats a stream", _check_seeds),
    StreamRule("resuming", "a stored stream goes on as one in memory", _check_resuming),
    StreamRule("small snapshots", "it works on empty snapshots", _check_small),
    StreamRule("rows", "counts stay as they are", _check_inputs),
    StreamRule("errors", "all snapshots raise the same errors", _check_errors),
)
