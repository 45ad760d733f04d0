"""What every stream method must satisfy, run on all that can be found."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpublish.core.catalog import STREAMS
from dpublish.data.schema import Schema, column
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.streams.method import make_stream_method, stream_class, stream_settings
from dpublish.methods.streams.snapshot import StepRun
from dpublish.methods.streams.static import IdentityHistogram
from dpublish.methods.streams.stream import StreamState
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveUnit, UserInWindow
from dpublish.randomness import seeded

ROOT = Path(__file__).parents[3]
SCHEMA = Schema(
    (column("zone", "category", values=["a", "b", "c"]), column("age", "integer", bounds=[0, 9])),
    unit="user",
)
STEPS = 12
VERBS = ("add_noise", "is_far", "draw_vector", "compare", "release")
"""All by which a step may draw: replay and audits hook these."""
SPANS = {"bd": {"window": 4}, "ba": {"window": 4}, "dsat-w": {"window": 4}}


def method(name, **settings):
    span = SPANS.get(name, {"horizon": STEPS})
    return make_stream_method(name, {"columns": ("zone", "age"), **span, **settings})


def snapshots(seed=1):
    rng = np.random.default_rng(seed)  # noqa: TID251 - public rows for a test
    return rng.integers(0, 200, (STEPS, 30))


def open_stream(name, epsilon="0.8", **settings):
    return method(name, **settings).start(SCHEMA, budget=Budget.seeded(epsilon), rng=seeded(1))


@pytest.mark.parametrize("name", STREAMS)
def test_settings_are_explained_and_the_name_is_its_own(name):
    assert stream_class(name).name == name
    for setting in stream_settings(name):
        assert setting.help.endswith(".")


@pytest.mark.parametrize("name", STREAMS)
def test_the_class_says_what_the_index_says(name):
    kind, entry = stream_class(name), STREAMS[name]
    assert (kind.task, kind.publishes, kind.prefer_when) == (
        entry.task,
        entry.publishes,
        entry.prefer_when,
    )
    assert kind.publishes


@pytest.mark.parametrize("name", STREAMS)
def test_the_class_is_a_manual_page(name):
    page = stream_class(name).__doc__
    for heading in ("Guarantee:", "Parameters:", "Returns:", "Example:", "Reference:"):
        assert f"\n    {heading}\n" in page
    for setting in stream_settings(name):
        assert setting.name in page


@pytest.mark.parametrize("name", STREAMS)
def test_it_has_a_page_and_a_line_in_the_index(name):
    page = (ROOT / f"docs/methods/{name}.md").read_text()
    for heading in ("Publishes", "Guarantees", "Prefer it when", "Costs", "Peers"):
        assert f"\n## {heading}\n" in page
    assert f"| [`{name}`]({name}.md) |" in (ROOT / "docs/methods/index.md").read_text()


@pytest.mark.parametrize("name", STREAMS)
def test_the_receipt_says_what_is_hidden_and_what_it_costs(name):
    stream = open_stream(name)
    assert stream.receipt.epsilon == Fraction(4, 5)
    hidden = stream.receipt.neighbors
    assert hidden == (UserInWindow("user", 4) if name in SPANS else AddRemoveUnit("user"))


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("contribution", [1, 3])
def test_no_window_costs_more_than_epsilon(name, contribution):
    stream = open_stream(name, contribution=contribution)
    for counts in snapshots():
        step = stream.next_counts(counts, rng=seeded(7))
        assert step.spent <= stream.worst <= Fraction(4, 5)
    assert stream.worst > 0


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_stored_and_opened_again_goes_on_as_if_nothing_had_happened(name):
    straight, stored, rng, other = open_stream(name), open_stream(name), seeded(3), seeded(3)
    for counts in snapshots():
        here = straight.next_counts(counts, rng=rng)
        there = stored.next_counts(counts, rng=other)
        assert here.estimate.tolist() == there.estimate.tolist()
        assert (here.action, here.epsilon, here.spent) == (there.action, there.epsilon, there.spent)
        kept = stored.state()
        state = StreamState(
            json.loads(json.dumps(kept.public)), json.loads(json.dumps(kept.secret)), kept.arrays
        )
        stored = method(name).resume(SCHEMA, state, stored.receipt)


@pytest.mark.parametrize("name", STREAMS)
def test_the_budget_is_taken_once(name):
    budget = Budget.seeded(1)
    method(name).start(SCHEMA, budget=budget, rng=seeded(1))
    assert budget.cost() == 1
    with pytest.raises(BudgetAlreadyUsed):
        method(name).start(SCHEMA, budget=budget, rng=seeded(1))


@pytest.mark.parametrize("name", STREAMS)
def test_what_cannot_be_started_is_refused_beforehand(name):
    for bad in ({"columns": ("zone", "zone")}, {"columns": ("unknown",)}, {"columns": ("user",)}):
        with pytest.raises(InvalidParameter):
            method(name, **bad).expected_error(SCHEMA, None, Fraction(1))
    with pytest.raises(InvalidParameter):
        method(name).expected_error(SCHEMA, None, Fraction(1, 10**30))


@pytest.mark.parametrize("name", STREAMS)
def test_the_predicted_error_falls_with_epsilon(name):
    errors = [method(name).expected_error(SCHEMA, 100, Fraction(e)) for e in (1, 2, 4)]
    figures = [error.figures[error.target] for error in errors]
    assert figures == sorted(figures, reverse=True)
    assert figures[0] > figures[-1]


class GuardedSource:
    """Randomness that may be drawn inside a verb of `StepRun` only."""

    def __init__(self, monkeypatch):
        self._source, self._depth = seeded(3), 0
        self.used = set()
        for verb in VERBS:
            monkeypatch.setattr(StepRun, verb, self._guarded(verb, getattr(StepRun, verb)))

    def _guarded(self, verb, original):
        def call(*args, **named):
            self._depth += 1
            try:
                return original(*args, **named)
            finally:
                self._depth -= 1
                self.used.add(verb)

        return call

    def words(self, count):
        assert self._depth, "drawn outside the verbs of a step"
        return self._source.words(count)


def draw_steps(name, source, **settings):
    stream = open_stream(name, epsilon="8", **settings)
    for counts in snapshots():
        stream.next_counts(counts, rng=source)


@pytest.mark.parametrize("static", ["identity", "grouped", "privelet"])
@pytest.mark.parametrize("name", STREAMS)
def test_a_step_draws_through_its_run_alone(name, static, monkeypatch):
    source = GuardedSource(monkeypatch)
    draw_steps(name, source, static=static)
    compared = {
        "dsat": {"draw_vector", "compare"},
        "dsat-w": {"draw_vector", "compare"},
        "dsft": {"draw_vector", "compare"},
        "bd": {"is_far", "add_noise"},
        "ba": {"is_far", "add_noise"},
    }.get(name, set())
    assert source.used == compared | {"release" if static == "privelet" else "add_noise"}


def test_a_draw_beside_the_run_is_noticed(monkeypatch):
    publish = IdentityHistogram.publish

    def shuffled(self, run, *, budget):
        run.rng.words(1)
        return publish(self, run, budget=budget)

    monkeypatch.setattr(IdentityHistogram, "publish", shuffled)
    with pytest.raises(AssertionError, match="outside"):
        draw_steps("per-snapshot", GuardedSource(monkeypatch))
