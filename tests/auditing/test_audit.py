"""The audit of installed methods: it passes good ones, and it can fail in every part."""

import json
from fractions import Fraction
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import dpublish
from auditing.broken_methods import BROKEN, HalfNoise
from dpublish.auditing import specimens
from dpublish.auditing.audit import auditable, planned_checks, subject_of
from dpublish.auditing.black_box import least_loss, measure
from dpublish.auditing.examples import EXAMPLES, STREAM_EXAMPLES
from dpublish.auditing.specimens import UNTESTED, specimen_of
from dpublish.core import plugins as plugins_module
from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import noise, selection
from dpublish.mechanisms import top_k as top_k_module
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import privacy_loss

RUNS = 30


def audited(method, runs=RUNS, **options):
    return dpublish.audit(method, runs=runs, seed=1, progress=False, **options)


def names(checks):
    return {check.name for check in checks}


@pytest.mark.parametrize("name", ["histogram", "topk", "minimum", "per-snapshot", "ba"])
def test_methods_of_ours_pass_and_every_twin_is_noticed(name):
    found = audited(name)
    assert found.failed == []
    assert found.proofs
    twins = [check for check in found.checks if check.part in ("replay", "mechanisms")]
    assert len(twins) >= 4
    assert all(check.noticed for check in twins)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.name)
def test_a_broken_method_fails_where_it_is_broken(kind):
    found = audited(kind(columns=("sex",)))
    assert not found.passed
    assert set(BROKEN[kind]) <= names(found.failed)
    assert all(check.reason for check in found.failed)


def test_a_black_box_alone_shows_half_the_noise():
    found = audited(HalfNoise(columns=("sex",)), runs=2_000, epsilon=2)
    assert "measured loss" in names(found.failed)


def doubled(sampler):
    """The same sampler with half the noise."""
    return lambda rate, *rest: sampler(2 * rate, *rest)


@pytest.mark.parametrize(
    ("name", "module", "sampler", "failing"),
    [
        ("histogram", noise, "discrete_laplace", "add_geometric"),
        ("majority", selection, "bernoulli_exp", "select (permute-and-flip)"),
        ("topk", top_k_module, "geometric", "top_k"),
        ("per-snapshot", noise, "discrete_laplace", "add_geometric"),
    ],
)
def test_a_mechanism_with_half_the_noise_is_noticed(monkeypatch, name, module, sampler, failing):
    monkeypatch.setattr(module, sampler, doubled(getattr(module, sampler)))
    failed = {check.name: check.reason for check in audited(name).failed}
    assert "another distribution" in failed[failing]


def test_a_twin_that_is_not_noticed_fails_the_check(monkeypatch):
    monkeypatch.setattr(specimens, "privacy_loss", privacy_loss, raising=False)
    monkeypatch.setattr("dpublish.auditing.audit.privacy_loss", lambda here, there: 1.0)
    failed = {check.name: check.reason for check in audited("histogram").failed}
    assert "does not notice its broken twin" in failed["add_geometric"]


class Leaking(PerSnapshot):
    """A stream whose bound on rows of a person is wrong."""

    def policy(self, bins, epsilon):
        return super().policy(bins, 3 * epsilon)


def test_a_broken_stream_is_noticed():
    found = audited(Leaking(columns=("hour",), horizon=12))
    assert not found.passed


# --- Specimens: each mechanism of every method, and the examples -------------------------------


def test_every_method_has_an_example():
    assert set(EXAMPLES) == set(CATALOG)
    assert {name for name, _ in STREAM_EXAMPLES} == set(STREAMS)
    assert auditable() == [*CATALOG, *STREAMS]


@pytest.mark.parametrize("name", [*CATALOG, *STREAMS])
def test_every_call_of_a_method_has_a_specimen_that_costs_epsilon(name):
    calls = subject_of(name, None, Fraction(1)).calls()
    assert calls
    kinds = {call.kind: call for call in calls if call.kind not in UNTESTED}
    for call in kinds.values():
        specimen = specimen_of(call)
        if specimen is None:
            assert call.kind == "sample"  # of all records
            continue
        assert sum(specimen.expected(1).values()) == pytest.approx(1)
        if specimen.worst is None:
            continue
        epsilon = float(specimen.epsilon)
        assert privacy_loss(*specimen.worst(1)) <= epsilon * (1 + 1e-9)
        assert privacy_loss(*specimen.worst(2)) > epsilon


# --- The black box ----------------------------------------------------------------------------


def coins(probability, seed):
    rng = plain_generator(seed)
    return lambda: [int(rng.random() < probability), "text", np.array([rng.integers(9)])]


def test_a_known_loss_is_bounded_from_below():
    truth = np.log(0.7 / 0.3)
    found = measure(coins(0.7, 1), coins(0.3, 2), 6_000)
    assert 0.7 * truth < found.loss <= truth


def test_no_loss_shows_where_there_is_none():
    assert measure(coins(0.5, 1), coins(0.5, 2), 2_000).loss == 0


def test_outcomes_that_only_one_side_has_are_bounded_by_the_number_of_runs():
    assert 2 < least_loss({"a": 1_000}, {"b": 1_000}, 1_000) < 7


# --- What it says -----------------------------------------------------------------------------


def test_an_audit_shows_itself():
    found = audited("majority")
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_dict()["passed"] is True
    assert "not checked" in str(found)
    assert "timing" in str(found)
    assert "exact distribution" in found._repr_html_()
    assert len(found.to_arrow()) == len(found.checks)


def test_the_same_seed_finds_the_same():
    first, second = (audited("ug").to_dict() | {"seconds": 0} for _ in range(2))
    assert first == second


def test_what_is_planned_is_what_is_checked():
    listed = planned_checks("topk")
    assert listed == [(each.part, each.name, each.says) for each in audited("topk").checks]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("histogramm", {}, "did you mean"),
        ("histogram", {"settings": {"columns": "nowhere"}}, "nowhere"),
        ("histogram", {"runs": 3}, "runs"),
        ("histogram", {"epsilon": "0"}, "epsilon"),
        ("histogram", {"seed": -1}, "seed"),
    ],
)
def test_a_wrong_request_is_refused(name, options, words):
    with pytest.raises(InvalidParameter, match=words):
        dpublish.audit(name, progress=False, **options)


def test_a_method_of_another_package_needs_its_settings(monkeypatch):
    point = EntryPoint("half-noise", "auditing.broken_methods:HalfNoise", plugins_module.GROUP)
    monkeypatch.setattr(plugins_module, "entry_points", lambda group: [point])
    plugins_module.plugins.cache_clear()
    try:
        with pytest.raises(InvalidParameter, match="another package"):
            dpublish.audit("half-noise", progress=False)
        assert not audited("half-noise", settings={"columns": "sex"}).passed
    finally:
        monkeypatch.undo()
        plugins_module.plugins.cache_clear()


def test_drawn_noise_is_that_of_the_stated_source():
    [specimen] = [
        found
        for call in subject_of("histogram", None, Fraction(1)).calls()
        if (found := specimen_of(call)) is not None
    ]
    drawn = [list(specimen.draw(1, seeded(5))) for _ in range(2)]
    assert drawn[0] == drawn[1]
