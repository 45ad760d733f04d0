"""The audit of installed methods: it passes good ones, and it can fail in every part."""

import json
from fractions import Fraction
from functools import cache
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import dpublish
from auditing.broken_methods import BROKEN, HalfNoise, Leaves
from dpublish.auditing import specimens
from dpublish.auditing.audit import (
    _attempt,
    _disagree,
    _plan,
    _Stated,
    _unsure,
    _untested,
    auditable,
    planned_checks,
    subject_of,
)
from dpublish.auditing.black_box import least_loss, measure
from dpublish.auditing.examples import EXAMPLES, STREAM_EXAMPLES
from dpublish.auditing.specimens import UNTESTED, specimen_of
from dpublish.auditing.subjects import TableSubject
from dpublish.core import plugins as plugins_module
from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import noise, selection
from dpublish.mechanisms import top_k as top_k_module
from dpublish.mechanisms.continuous_noise import continuous_noise
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss
from dpublish.testing.replay import Call

RUNS = 30


def audited(method, runs=RUNS, **options):
    return dpublish.audit(method, runs=runs, seed=1, progress=False, **options)


@cache
def usual(name):
    """Audit a method of ours once for all tests."""
    return audited(name)


def made(method, *names, epsilon=1, runs=RUNS):
    """Make some checks of an audit, by name or by part."""
    subject = subject_of(method, None, Fraction(epsilon))
    planned = _plan(subject, seeded(1), runs)
    chosen = [each for each in planned if {each.part, each.name} & set(names)]
    assert chosen
    return [_attempt(each) for each in chosen]


def names(checks):
    return {check.name for check in checks}


@pytest.mark.parametrize("name", ["histogram", "topk", "minimum", "per-snapshot", "ba"])
def test_methods_of_ours_pass_and_every_twin_is_noticed(name):
    found = usual(name)
    assert found.failed == []
    assert found.proofs
    twins = [check for check in found.checks if check.part in ("replay", "mechanisms")]
    assert len(twins) >= 4
    assert all(check.noticed for check in twins)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.name)
def test_a_broken_method_fails_where_it_is_broken(kind):
    failed = [each for each in made(kind(columns=("sex",)), *BROKEN[kind]) if not each.passed]
    assert names(failed) == set(BROKEN[kind])
    assert all(check.reason for check in failed)


def test_a_method_that_breaks_down_is_audited_and_fails():
    found = audited(Leaves(columns=("sex",)), runs=10)
    assert {"receipt", "unrelated rows", "measured loss"} <= names(found.failed)
    assert found.proofs == ()
    assert "names none" in str(found)


def test_a_black_box_alone_shows_half_the_noise():
    [found] = made(HalfNoise(columns=("sex",)), "measured loss", runs=700)
    assert not found.passed


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
    [found] = made(name, failing)
    assert "another distribution" in found.reason
    assert found.figures["draws"].endswith("twice")


def test_noise_that_always_points_one_way_is_noticed(monkeypatch):
    monkeypatch.setattr(
        specimens, "continuous_noise", lambda *a, **b: abs(continuous_noise(*a, **b))
    )
    [found] = made("private-erm", "continuous_noise")
    assert "another distribution" in found.reason


def test_a_twin_that_is_not_noticed_fails_the_check(monkeypatch):
    monkeypatch.setattr("dpublish.auditing.audit.privacy_loss", lambda here, there: 1.0)
    [found] = made("histogram", "add_geometric")
    assert "does not notice its broken twin" in found.reason


def test_the_twin_of_the_plan_is_noticed_by_what_it_draws(monkeypatch):
    """A release of another epsilon states so: that alone must not count."""
    monkeypatch.setattr(TableSubject, "branching_run", TableSubject.leaking_run)
    [found] = made("majority", "plan")
    assert "given the same noise" in found.reason


def test_a_receipt_that_hides_a_share_disagrees():
    budget, receipt = subject_of("topk", {"with_counts": "true"}, Fraction(1)).paid()
    assert len(receipt.shares) > 1
    assert _disagree(budget, _Stated(receipt.epsilon, receipt.shares)) == ""
    assert _disagree(budget, _Stated(receipt.epsilon, receipt.shares[1:]))
    assert _disagree(budget, _Stated(2 * receipt.epsilon, receipt.shares))


def test_a_right_method_raises_no_false_alarm_where_noise_is_rare():
    found = made("histogram", "mechanisms", "account", epsilon=1)
    assert [each.passed for each in found] == [True, True, True]
    for epsilon in (8, 1_000):
        audit = audited("histogram", epsilon=epsilon, runs=10)
        assert audit.passed
        assert "add_geometric" not in names(audit.checks)
        assert any(each.startswith("add_geometric: no test") for each in audit.not_checked)


def test_one_rare_outcome_is_no_proof_of_another_distribution():
    expected = {"usual": 0.6, "often": 0.39999, "rare": 1e-5}
    samples = ["usual"] * 1_800 + ["often"] * 1_199 + ["rare"]
    assert frequency_p_value(samples, expected) > 0.5
    samples = ["usual"] * 1_800 + ["often"] * 1_200 + ["rare"] * 300
    assert frequency_p_value(samples, expected) < 1e-3


def test_what_was_not_compared_is_listed():
    beyond = usual("majority").not_checked
    assert any("no broken twin was noticed" in each for each in beyond)
    assert any("several records" in each for each in beyond)
    for name in ("psd", "p-hp"):
        subject = subject_of(name, None, Fraction(1))
        assert "mechanisms that ran" not in [each.name for each in _plan(subject, seeded(1), RUNS)]
        assert any(each.startswith("the sum of") for each in _unsure(subject))
    calls = Call("new", ()), Call("sample", (Fraction(1), None))
    assert [each.partition(":")[0] for each in _untested(calls)] == ["new", "sample"]


def test_a_check_that_passed_claims_no_more_than_it_compared():
    says = {check.name: check.says for check in usual("majority").checks}
    assert "confidence" not in says["measured loss"]
    assert "tried" in says["neighbors"]
    assert "tables" in says["unrelated rows"]


class Leaking(PerSnapshot):
    """A stream whose bound on rows of a person is wrong."""

    def policy(self, bins, epsilon):
        return super().policy(bins, 3 * epsilon)


def test_a_broken_stream_is_noticed():
    found = made(Leaking(columns=("hour",), horizon=12), "neighbors", "mechanisms that ran")
    assert [each.passed for each in found] == [False, False]


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
    found = usual("majority")
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_dict()["passed"] is True
    assert "not checked" in str(found)
    assert "timing" in str(found)
    assert "exact distribution" in found._repr_html_()
    assert len(found.to_arrow()) == len(found.checks)


def test_the_same_seed_finds_the_same():
    first, second = (made("majority", "mechanisms", "black box") for _ in range(2))
    assert first == second


def test_what_is_planned_is_what_is_checked():
    listed = planned_checks("topk")
    assert listed == [(each.part, each.name, each.says) for each in usual("topk").checks]


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
        assert not audited("half-noise", settings={"columns": "sex"}, runs=10).passed
    finally:
        monkeypatch.undo()
        plugins_module.plugins.cache_clear()


@pytest.mark.parametrize("settings", [{}, {"selection": "sparse-vector"}])
def test_as_many_are_drawn_as_the_audit_says(settings):
    calls = subject_of("topk", {"column": "age@2", **settings}, Fraction(1)).calls()
    found = {call.kind: specimen_of(call) for call in calls if call.kind not in UNTESTED}
    assert found
    for specimen in found.values():
        assert len(list(specimen.draw(1, seeded(5)))) == specimen.draws


def test_a_ranking_is_tried_with_its_own_sensitivity():
    call = Call("top_k", (Fraction(1, 6), (4,), 2), epsilon=Fraction(1))
    specimen = specimen_of(call)
    assert specimen.sensitivity == 3
    assert specimen_of(Call("top_k", (Fraction(1, 600), (4,), 2), epsilon=Fraction(1))).draws
    assert privacy_loss(*specimen.worst(1)) == pytest.approx(1, rel=1e-6)
    assert frequency_p_value(specimen.draw(1, seeded(5)), specimen.expected(1)) > 1e-6


def test_drawn_noise_is_that_of_the_stated_source():
    [specimen] = [
        found
        for call in subject_of("histogram", None, Fraction(1)).calls()
        if (found := specimen_of(call)) is not None
    ]
    drawn = [list(specimen.draw(1, seeded(5))) for _ in range(2)]
    assert drawn[0] == drawn[1]
