"""PrivGene: the exact privacy loss of whole releases, its generations, and what it finds."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpublish.core import run as run_module
from dpublish.core.method import Run
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import genetic_search, noise
from dpublish.methods.linear_models import privgene
from dpublish.methods.linear_models.kernel_losses import LOSS_UNIT, WEIGHT_UNIT
from dpublish.methods.linear_models.model_scores import LARGEST_WEIGHT, largest_score, score_models
from dpublish.methods.linear_models.privgene import PrivGene, first_models
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.linear_models.tiny_world import (
    DOMAIN,
    SCHEMA,
    loans_errors,
    make_table,
    random_records,
    range_of_records_present,
    run_on,
    scaled_range,
    worst_loss,
)

MODULES = (noise, run_module, genetic_search)
EPSILON = Fraction(6)


def method_of(**settings):
    return PrivGene(**({"target": "ill", "rounds": 3, "population": 24} | settings))


@pytest.fixture
def replayable(monkeypatch):
    """Breed by a source of its own, so that a replay breeds the same, and choose by `select`."""
    real = genetic_search.breed

    def choose(scores, *, count, sensitivity_range, method, budget, rng):
        assert count == 1
        by = "exponential" if method == "peel-exponential" else "permute-and-flip"
        return [
            genetic_search.select(
                scores, sensitivity_range=sensitivity_range, method=by, budget=budget, rng=rng
            )
        ]

    monkeypatch.setattr(genetic_search, "top_k", choose)
    monkeypatch.setattr(
        genetic_search,
        "breed",
        lambda parents, plan, number, rng: real(parents, plan, number, seeded(number)),
    )


@pytest.mark.usefixtures("replayable")
@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(model, monkeypatch):
    found = worst_loss(monkeypatch, method_of(model=model), EPSILON, MODULES)
    assert float(EPSILON) / 4 < found <= float(EPSILON) * (1 + 1e-6)


@pytest.mark.usefixtures("replayable")
def test_the_audit_notices_a_range_taken_too_small(monkeypatch):
    scaled_range(monkeypatch, privgene, 0.2)
    assert worst_loss(monkeypatch, method_of(), EPSILON, MODULES) > float(EPSILON)


@pytest.mark.usefixtures("replayable")
def test_the_audit_notices_a_range_of_the_records_present(monkeypatch):
    range_of_records_present(monkeypatch, privgene)
    assert worst_loss(monkeypatch, method_of(), EPSILON, MODULES, runs=3) > float(EPSILON)


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_the_range_of_the_whole_box_covers_every_loss_and_is_nearly_attained(model):
    task = ModelTask.of(SCHEMA, "ill", (), model)
    corners = LARGEST_WEIGHT * (2 * np.array(list(np.ndindex(*[2] * task.features.size))) - 1)
    worst = 0
    for record in DOMAIN:
        scores = score_models(run_on([record]), task, (1,))(corners)
        ridge = score_models(run_on([]), task, (1,))(corners).values
        worst = max(worst, int((ridge - scores.values).max()))
    assert 0.99 * largest_score(task) < worst <= largest_score(task)


def test_generations_shrink_and_their_range_with_them(monkeypatch):
    seen = []
    real = run_module.search

    def spy(score, first, plan, **more):
        def noted(generation):
            scores = score(generation)
            seen.append((generation, scores.sensitivity_range))
            return scores

        return real(noted, first, plan, **more)

    monkeypatch.setattr(run_module, "search", spy)
    method_of().release(make_table(random_records(1, 20)), budget=Budget.seeded(1), rng=seeded(1))
    assert len(seen) == 3
    assert seen[0][1] > 3 * seen[1][1] > 0
    assert seen[2][1] <= seen[1][1] <= 2 * 0.5 * LOSS_UNIT + 1
    seen.clear()
    method_of(choice="plain").release(make_table([]), budget=Budget.seeded(1), rng=seeded(1))
    task = ModelTask.of(SCHEMA, "ill")
    assert {sensitivity for _, sensitivity in seen} == {largest_score(task)}


def test_twenty_of_the_first_models_are_bare(rng):
    run = Run(make_table([]), rng=rng)
    models = first_models(run, 200, 7)
    assert not models[:20, :-1].any()
    assert (models[:10, -1] > 0).all()
    assert (models[10:20, -1] < 0).all()
    assert np.abs(models).max() <= LARGEST_WEIGHT == 5 * WEIGHT_UNIT
    assert models[20:].any(axis=1).all()
    assert first_models(run, 3, 2).shape == (3, 2)


@pytest.mark.parametrize("choice", ["range", "plain"])
@pytest.mark.parametrize(
    "records",
    [
        [],
        [(1, "b", "yes")],
        [(0, "a", "no")] * 40,
        [record for record in DOMAIN * 3 if record[2] == "yes"],
        [(0, "a", "no"), (2, "c", "yes")] * 200,
    ],
    ids=["none", "one row", "equal rows", "one class", "separable"],
)
def test_odd_tables_work_and_all_is_spent(choice, records):
    for model, target, epsilon in (("logistic", "ill", "0.01"), ("svm", "town", "5")):
        budget = Budget.seeded(epsilon)
        method = method_of(choice=choice, model=model, target=target, rounds=None)
        release = method.release(make_table(records), budget=budget, rng=seeded(2))
        assert np.abs(release.weights).max() <= 5
        assert len(release.weights) == (3 if target == "town" else 1)
        assert all(share.is_used for share in budget.account())
        assert budget.cost() == release.receipt.epsilon == Fraction(epsilon)
        assert release.notes == ("8 generations",)


def test_choices_by_range_beat_plain_choices_on_simulated_loans():
    ranged, plain = loans_errors(
        [PrivGene(target="repaid"), PrivGene(target="repaid", choice="plain")], "1"
    )
    assert ranged < plain - 0.02


def test_the_predicted_shortfall_never_grows_with_the_budget():
    for settings in ({"rounds": None}, {}, {"choice": "plain", "rounds": None}):
        method = method_of(**settings)
        for records in (None, 1_000, 100_000):
            predicted = [
                method.expected_error(SCHEMA, records, Fraction(part, 100))
                for part in (1, 5, 20, 50, 100, 300)
            ]
            figures = [one.figures[one.target] for one in predicted]
            assert all(later <= one * (1 + 1e-9) for one, later in pairwise(figures))
            assert figures[-1] < figures[0]


@pytest.mark.parametrize(
    "bad",
    [
        {"rounds": 0},
        {"rounds": 501},
        {"choice": "best"},
        {"population": 0},
        {"population": 2001},
        {"population": 9, "choice": "plain"},
    ],
)
def test_settings_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        method_of(**bad)


def test_what_cannot_be_done_is_refused_before_anything_is_spent():
    table = make_table(random_records(1, 5))
    for settings, epsilon in (
        ({}, "1e-12"),
        ({"rounds": None}, "1e-12"),
        ({"model": "linear"}, "1"),
        ({"target": "age"}, "1"),
    ):
        budget = Budget.seeded(epsilon)
        method = method_of(**settings)
        with pytest.raises(InvalidParameter):
            method.release(table, budget=budget, rng=seeded(1))
        with pytest.raises(InvalidParameter):
            method.expected_error(SCHEMA, None, Fraction(epsilon))
        assert not budget.is_used
    used = Budget.seeded(1)
    used.spend()
    with pytest.raises(BudgetAlreadyUsed):
        method_of().release(table, budget=used, rng=seeded(1))


# --- As published: the exponential mechanism, its range over the candidates -----------------------


@pytest.mark.usefixtures("replayable")
@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_the_papers_mechanism_tells_neighbors_apart_by_no_more_than_the_budget(model, monkeypatch):
    method = method_of(model=model, choice="candidates", parents=1, cost=Fraction(3))
    found = worst_loss(monkeypatch, method, EPSILON, MODULES, runs=12)
    assert float(EPSILON) / 20 < found <= float(EPSILON) * (1 + 1e-6)


@pytest.mark.usefixtures("replayable")
def test_the_audit_notices_a_loss_of_the_candidates_taken_too_small(monkeypatch):
    scaled_range(monkeypatch, privgene, 0.05)
    method = method_of(choice="candidates", parents=1)
    assert worst_loss(monkeypatch, method, EPSILON, MODULES, runs=12) > float(EPSILON)


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_the_largest_loss_of_the_candidates_is_attained_by_a_record_of_the_domain(model):
    task = ModelTask.of(SCHEMA, "ill", (), model)
    for size in (50, 1000, 5000):
        candidates = run_on([]).draw_uniform(6, task.features.size, size)
        stated = score_models(run_on([]), task, (1,), by_candidates=True)(candidates)
        losses = [
            stated.values - score_models(run_on([record]), task, (1,))(candidates).values
            for record in DOMAIN
        ]
        assert np.max(losses) <= stated.sensitivity_range <= np.max(losses) + 2
        in_box = largest_score(task)
        assert stated.sensitivity_range < in_box


def spied(monkeypatch, **settings):
    seen = []
    real = run_module.search

    def spy(score, first, plan, **more):
        def noted(generation):
            scores = score(generation)
            seen.append((generation, scores.sensitivity_range))
            return scores

        seen.append(plan)
        return real(noted, first, plan, **more)

    monkeypatch.setattr(run_module, "search", spy)
    release = method_of(**settings).release(
        make_table(random_records(1, 900)), budget=Budget.seeded(1), rng=seeded(1)
    )
    return seen[0], seen[1:], release


def test_parents_mechanism_box_and_records_per_round_enter_the_search(monkeypatch):
    plan, generations, release = spied(
        monkeypatch, choice="candidates", parents=2, bound=Fraction(1, 2), rounds=4
    )
    assert (plan.parents, plan.mechanism, plan.bound) == (2, "exponential", WEIGHT_UNIT // 2)
    assert max(np.abs(one).max() for one, _ in generations) <= WEIGHT_UNIT // 2
    assert np.abs(release.weights).max() <= 0.5
    assert PrivGene(target="ill", choice="candidates")._parents == 10
    assert PrivGene(target="ill")._parents == 1
    monkeypatch.undo()
    plan, _, _ = spied(monkeypatch, rounds=None, records_per_round=20)
    assert 20 < plan.rounds < 70  # about 900 records, 20 a round
    monkeypatch.undo()
    plan, _, _ = spied(monkeypatch, rounds=None)
    assert plan.rounds == 8


def test_the_cost_of_a_support_vector_machine_sets_what_weights_cost():
    task = ModelTask.of(SCHEMA, "ill", (), "svm")
    one = np.full((1, task.features.size), WEIGHT_UNIT)
    for cost in (Fraction(10), Fraction(1, 3), Fraction(7)):
        value = score_models(run_on([]), task, (1,), cost=cost)(one).values[0]
        wanted = (task.features.size - 1) / 2 / float(cost) * LOSS_UNIT
        assert -value == pytest.approx(wanted, abs=1)


@pytest.mark.parametrize(
    "bad",
    [
        {"parents": 0},
        {"parents": 25},
        {"records_per_round": 0},
        {"cost": Fraction(0)},
        {"bound": Fraction(100)},
        {"bound": Fraction(1, 100)},
    ],
)
def test_new_settings_without_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        method_of(**bad)
