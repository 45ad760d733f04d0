"""The default controllers: what they guarantee, tried on streams whose answer is known."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SHAPE = (8, 8)
SCHEMA = Schema(tuple(column(name, "integer", bounds=[0, 7], bins=8) for name in "xy"))
STEPS = 120


def configured(name, **settings):
    return make_stream_method(name, {"columns": ("x", "y"), "trust_rows": True, **settings})


def follow(method, counts, epsilon="1", seed=1):
    stream = method.start(SCHEMA, budget=Budget.seeded(epsilon), rng=seeded(seed))
    rng = seeded(seed + 1000)
    return stream, [stream.next_counts(row, rng=rng) for row in counts]


def error(method, counts, epsilon="1", repeats=4):
    found = []
    for seed in range(repeats):
        _, steps = follow(method, counts, epsilon, seed)
        found.append(
            np.mean([np.abs(s.estimate - c).mean() for s, c in zip(steps, counts, strict=True)])
        )
    return float(np.mean(found))


def histogram(seed, n=40_000):
    rng = plain_generator(seed)
    return rng.multinomial(n, rng.dirichlet(np.full(64, 0.7))).astype(np.int64)


STATIC = np.tile(histogram(1), (STEPS, 1))
BURSTS = np.concatenate([np.tile(histogram(seed), (40, 1)) for seed in (1, 2, 3)])
BOTH = [("dsat", {"horizon": STEPS}), ("dsat-w", {"window": 30})]


@pytest.mark.parametrize(("name", "span"), BOTH)
@pytest.mark.parametrize("controller", ["planned", "schedule", "paper"])
@pytest.mark.parametrize("counts", [STATIC, BURSTS, BURSTS * 0], ids=["static", "bursts", "empty"])
def test_no_window_costs_more_than_epsilon(name, span, controller, counts):
    method = configured(name, controller=controller, **span)
    stream, steps = follow(method, counts, "0.7")
    assert stream.worst <= Fraction(7, 10)
    assert len(steps) == STEPS
    window = span.get("window", STEPS)
    spent = [step.epsilon for step in steps]
    for start in range(STEPS):
        assert sum(spent[start : start + window], Fraction(0)) <= Fraction(7, 10)


def test_on_static_data_the_default_beats_fixed_sampling():
    fixed = error(configured("fixed-sampling", horizon=STEPS, releases=10), STATIC)
    assert error(configured("dsat", horizon=STEPS), STATIC) < 0.7 * fixed
    windowed = error(configured("fixed-sampling", window=30, interval=8), STATIC)
    assert error(configured("dsat-w", window=30), STATIC) < 0.95 * windowed


def test_after_a_burst_the_default_publishes_at_once():
    for name, span in BOTH:
        _, steps = follow(configured(name, **span), BURSTS)
        published = {step.number for step in steps if step.action == "published"}
        assert {41, 81} <= published


def test_it_learns_a_rhythm_from_fast_change():
    rng = plain_generator(4)
    counts = np.abs(np.cumsum(rng.normal(0, 200, (STEPS, 64)), axis=0) + 5_000).astype(np.int64)
    _, quiet = follow(configured("dsat-w", window=30), STATIC)
    _, lively = follow(configured("dsat-w", window=30), counts)
    assert sum(s.action == "published" for s in lively) > 3 * sum(
        s.action == "published" for s in quiet
    )


def test_smoothing_can_be_switched_off():
    plain = configured("dsat", horizon=STEPS, smoothing=False)
    _, steps = follow(plain, STATIC)
    for step in steps:
        if step.released is not None:
            assert step.estimate.tolist() == step.released.tolist()


@pytest.mark.parametrize(
    "settings", [{"horizon": 1}, {"horizon": 2}, {"horizon": 5, "releases": 9}]
)
@pytest.mark.parametrize("controller", ["planned", "schedule", "paper"])
def test_short_horizons_spend_what_there_is(settings, controller):
    method = configured("dsat", controller=controller, **settings)
    stream, _ = follow(method, STATIC[: settings["horizon"]])
    assert stream.is_over
    assert Fraction(9, 10) <= stream.worst <= 1


@pytest.mark.parametrize("window", [1, 2, 3])
def test_short_windows_publish_at_nearly_every_step_of_a_lively_stream(window):
    rng = plain_generator(4)
    counts = rng.integers(0, 10_000, (40, 64))
    _, steps = follow(configured("dsat-w", window=window), counts)
    assert sum(s.action == "published" for s in steps) >= 40 // window


def test_wrong_settings_are_refused():
    for settings in (
        {"horizon": 0},
        {"horizon": 10, "releases": 0},
        {"horizon": 10, "decision_share": Fraction(1)},
        {"horizon": 10, "burn_in": 0},
        {"horizon": 10, "contribution": 0},
    ):
        with pytest.raises(InvalidParameter):
            configured("dsat", **settings)
    with pytest.raises(InvalidParameter, match="unit"):
        make_stream_method("dsat", {"columns": ("x",), "horizon": 5}).expected_error(
            SCHEMA, None, Fraction(1)
        )


def test_a_snapshot_without_the_users_is_refused():
    """A table opened without the unit would slip past the contribution bound."""
    owned = Schema(SCHEMA.columns, unit="user")
    method = make_stream_method("dsat", {"columns": ("x", "y"), "horizon": 3})
    stream = method.start(owned, budget=Budget.seeded(1), rng=seeded(1))
    rows = pa.table({"x": [1, 1], "y": [2, 2], "user": ["ann", "ann"]})
    with pytest.raises(InvalidParameter, match="schema"):
        stream.next(open_table(rows, SCHEMA), rng=seeded(2))
    assert stream.next(open_table(rows, owned), rng=seeded(2)).number == 1


@pytest.mark.parametrize("share", ["1/30", "0.9", "0.99", "0.9999999", "0.9999999999999"])
@pytest.mark.parametrize(("name", "span"), BOTH)
def test_what_is_not_refused_beforehand_can_be_run_and_is_as_noisy_as_predicted(name, span, share):
    method = configured(name, decision_share=Fraction(share), **span)
    try:
        predicted = method.expected_error(SCHEMA, None, Fraction(1)).figures["one_bin_95"]
    except InvalidParameter:
        with pytest.raises(InvalidParameter):
            method.start(SCHEMA, budget=Budget.seeded(1), rng=seeded(1))
        return
    _, steps = follow(method, STATIC[:3])
    # A bin's noise is within about 2.1 standard deviations in 95 of 100 publications.
    noise = (2**0.5) / float(steps[0].epsilon)
    assert predicted == pytest.approx(2.1 * noise, rel=0.3, abs=2)


def test_the_state_does_not_show_its_secret():
    method = configured("dsat", controller="schedule", horizon=STEPS)
    stream, _ = follow(method, STATIC[:5], "0.000001")
    noise = stream.state().secret["vector"]["threshold_noise"]
    assert str(abs(noise)) not in repr(stream.state())
    assert str(abs(noise)) not in repr(stream)
