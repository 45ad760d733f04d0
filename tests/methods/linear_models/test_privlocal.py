"""PrivLocal: the exact privacy loss of whole releases, and what they find."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import noise
from dpublish.methods.linear_models import local_search
from dpublish.methods.linear_models import privlocal as local_model
from dpublish.methods.linear_models.privgene import PrivGene
from dpublish.methods.linear_models.privlocal import PrivLocal
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.linear_models.tiny_world import (
    DOMAIN,
    SCHEMA,
    loans_errors,
    make_table,
    random_records,
    range_of_records_present,
    scaled_range,
    worst_loss,
)

MODULES = (noise, local_search)
EPSILON = Fraction(4)


def method_of(**settings):
    return PrivLocal(**({"target": "ill", "rounds": 2} | settings))


@pytest.mark.parametrize("moves", ["group", "single"])
@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(moves, model, monkeypatch):
    found = worst_loss(monkeypatch, method_of(moves=moves, model=model), EPSILON, MODULES)
    assert float(EPSILON) * 0.35 < found <= float(EPSILON) * (1 + 1e-6)


@pytest.mark.parametrize("settings", [{"rounds": None}, {"target": "town", "rounds": 1}])
def test_nor_with_a_noisy_size_or_several_classes(settings, monkeypatch):
    found = worst_loss(monkeypatch, method_of(**settings), EPSILON, MODULES, runs=12)
    assert float(EPSILON) / 8 < found <= float(EPSILON) * (1 + 1e-6)


@pytest.mark.parametrize(("moves", "factor"), [("group", 0.3), ("single", 0.5)])
def test_the_audit_notices_a_range_taken_too_small(moves, factor, monkeypatch):
    scaled_range(monkeypatch, local_model, factor)
    method = method_of(moves=moves, rounds=1)
    assert worst_loss(monkeypatch, method, EPSILON, MODULES) > float(EPSILON)


@pytest.mark.parametrize("moves", ["group", "single"])
def test_the_audit_notices_a_range_of_the_records_present(moves, monkeypatch):
    range_of_records_present(monkeypatch, local_model)
    found = worst_loss(monkeypatch, method_of(moves=moves), EPSILON, MODULES, runs=3)
    assert found > float(EPSILON)


def test_the_audit_notices_steps_whose_groups_share_records(monkeypatch):
    """As if all columns were one: a record is touched by several of their weights."""
    real = local_search.climb_by_groups

    def as_one(score, start, groups, plan, **more):
        together = tuple(place for group in groups for place in group)
        return real(score, start, (together, together), plan, **more)

    monkeypatch.setattr(local_model, "climb_by_groups", as_one)
    assert worst_loss(monkeypatch, method_of(rounds=1), Fraction(40), MODULES) > 40


def test_the_audit_notices_a_choice_that_is_not_paid_for(monkeypatch):
    """As if the scores of the last round could be used once more for free."""
    real = local_search.climb

    def once_more(score, start, plan, *, budget, rng, watcher):
        last = []

        def noted(candidates):
            last[:] = [candidates, score(candidates)]
            return last[1]

        real(noted, start, plan, budget=budget, rng=rng, watcher=watcher)
        candidates, (values, reach) = last
        again = local_search.select(
            values, sensitivity_range=reach, budget=Budget.seeded(3 * EPSILON), rng=rng
        )
        return candidates[again]

    monkeypatch.setattr(local_model, "climb", once_more)
    assert worst_loss(monkeypatch, method_of(moves="single"), EPSILON, MODULES) > float(EPSILON)


@pytest.mark.parametrize("moves", ["group", "single"])
@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize(
    "records",
    [
        [],
        [(1, "b", "yes")],
        [(0, "a", "no")] * 40,
        [record for record in DOMAIN * 3 if record[2] == "yes"],
        [(0, "a", "no"), (2, "c", "yes")] * 200,
        [(None, "a", "yes")] * 9,
    ],
    ids=["none", "one row", "equal rows", "one class", "separable", "missing only"],
)
def test_odd_tables_work_and_all_is_spent(moves, model, records):
    for seed, epsilon in ((1, "0.01"), (2, "5")):  # the noisy size is often negative
        budget = Budget.seeded(epsilon)
        method = method_of(moves=moves, model=model, rounds=None)
        release = method.release(make_table(records), budget=budget, rng=seeded(seed))
        assert np.abs(release.weights).max() <= 5
        assert all(share.is_used for share in budget.account())
        assert budget.cost() == release.receipt.epsilon == Fraction(epsilon)


def test_separable_records_are_told_apart_with_enough_budget():
    records = [(0, "a", "no"), (2, "c", "yes")] * 200
    for model in ("logistic", "svm"):
        method = method_of(model=model, rounds=None)
        release = method.release(make_table(records), budget=Budget.seeded(20), rng=seeded(3))
        codes = {"age": np.array([0, 2]), "town": np.array([0, 2])}
        assert release.predict_codes(codes).tolist() == [0, 1]


def test_more_than_two_classes_get_a_row_of_weights_each():
    schema = Schema((SCHEMA["age"], SCHEMA["ill"], SCHEMA["town"]))
    records = [(age, "no", "abc"[age]) for age in (0, 1, 2)] * 300
    budget = Budget.seeded(300)
    release = PrivLocal(target="town").release(
        make_table(records, schema), budget=budget, rng=seeded(1)
    )
    assert release.weights.shape == (3, 5)
    names = {purpose.split("/")[2] for purpose, _ in release.receipt.shares if "search" in purpose}
    assert names == {"class a", "class b", "class c"}
    assert release.predict_codes({"age": np.array([0, 2]), "ill": np.array([0, 0])}).tolist() == [
        0,
        2,
    ]


def test_moves_of_groups_beat_a_genetic_search_on_simulated_loans():
    local, evolved = loans_errors([PrivLocal(target="repaid"), PrivGene(target="repaid")], "0.2")
    assert local < evolved


def test_the_predicted_shortfall_falls_with_the_budget():
    for moves in ("group", "single"):
        method = method_of(moves=moves, rounds=None)
        for records in (None, 1_000, 100_000):
            predicted = [
                method.expected_error(SCHEMA, records, Fraction(part, 100))
                for part in (1, 5, 20, 50, 100, 300)
            ]
            figures = [one.figures[one.target] for one in predicted]
            assert all(later <= one * (1 + 1e-9) for one, later in pairwise(figures))
            assert figures[-1] < figures[0]


def test_progress_counts_the_rounds_of_all_classes():
    calls = []
    PrivLocal(target="town", rounds=2).release(
        make_table(random_records(1, 9)),
        budget=Budget.seeded(1),
        rng=seeded(1),
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(done, 6, "rounds") for done in range(1, 7)]


@pytest.mark.parametrize("bad", [{"rounds": 0}, {"rounds": 501}, {"moves": "all"}])
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
        ({"target": "nowhere"}, "1"),
        ({"predictors": ("ill",)}, "1"),
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
    unit = Schema((*SCHEMA.columns, column("who", "category", values=["x"])), unit="who")
    with pytest.raises(InvalidParameter):
        method_of().expected_error(unit, None, Fraction(1))
