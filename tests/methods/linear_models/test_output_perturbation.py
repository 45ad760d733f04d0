"""Output perturbation: how far a record moves the minimum, and the account."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.method import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models import output_perturbation as module
from dpublish.methods.linear_models.minimizer import minimize_on
from dpublish.methods.linear_models.output_perturbation import OutputNoise, OutputPerturbation
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import ROWS, SCHEMA, arrow_table

SMALL = Schema(
    (
        column("town", "category", values=["a", "b"]),
        column("good", "category", values=["no", "yes"]),
    )
)


def table_of(records):
    towns, classes = zip(*records, strict=True) if records else ((), ())
    text = pa.string()
    rows = pa.table({"town": pa.array(towns, text), "good": pa.array(classes, text)})
    return open_table(rows, SMALL)


def minimum(records, model, ridge):
    task = ModelTask.of(SMALL, "good", model=model)
    run = Run(table_of(records), rng=seeded(1))
    return minimize_on(run, task, (1,), ridge, np.zeros(task.features.size))


ALL = [(town, good) for town in "ab" for good in ("no", "yes")]


@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize("ridge", [0.25, 4.0])
def test_a_record_moves_the_minimum_by_at_most_one_over_the_ridge(model, ridge):
    for records in ([], ALL[:1], ALL[:2] * 3, [*ALL, *ALL[:1] * 9]):
        here = minimum(records, model, ridge)
        for record in ALL:
            moved = np.linalg.norm(minimum([*records, record], model, ridge) - here)
            assert moved <= 1 / ridge + 1e-4


def test_the_bound_is_attained_and_half_of_it_is_too_little():
    """Where the Huber loss is a straight line, a record pulls with all its strength."""
    moved = np.linalg.norm(minimum(ALL[:1], "svm", 4.0) - minimum([], "svm", 4.0))
    assert moved == pytest.approx(1 / 4, abs=1e-4)


def released(table, epsilon="1", seed=3, **settings):
    method = OutputPerturbation(**{"target": "good", **settings})
    budget = Budget.seeded(epsilon)
    release = method.release(table, budget=budget, rng=seeded(seed))
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    return release


@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize("records", [[], ALL[:1], ALL[:1] * 40, ALL[1:3] * 30])
def test_degenerate_and_separable_rows_are_fitted(records, model):
    assert np.isfinite(released(table_of(records), model=model).weights).all()


def test_the_noise_has_the_size_that_the_release_states(monkeypatch):
    monkeypatch.setattr(module, "minimize_on", lambda *given: np.zeros(3))
    monkeypatch.setattr(module, "count_records", lambda *given, budget: budget.spend() and 100)
    found = [released(table_of(ALL), seed=seed) for seed in range(300)]
    stated = found[0].standard_deviation
    measured = np.concatenate([release.weights.ravel() for release in found]).std()
    assert measured == pytest.approx(stated[0, 0], rel=0.15)
    assert (stated == stated[0, 0]).all()


def test_noise_and_rounding_are_calibrated_to_the_ridge():
    task = ModelTask.of(SMALL, "good")
    for ridge in (Fraction(1, 1000), Fraction(3), Fraction(500)):
        perturb = OutputNoise.of(task, Fraction(1, 2), ridge)
        assert perturb.ridge >= max(ridge, Fraction(1, 16))
        assert perturb.scale == 2 / perturb.ridge
        assert perturb.error * 400 < perturb.scale


def test_each_of_many_classes_has_its_own_weights():
    method = OutputPerturbation(target="town", regularization=Fraction(1, 100))
    table = open_table(arrow_table(ROWS), SCHEMA)
    release = method.release(table, budget=Budget.seeded("1.5"), rng=seeded(1))
    assert len(release.weights) == release.classes.size > 2
    assert len(np.unique(release.weights)) == release.weights.size


def test_what_cannot_be_fitted_is_refused_before_the_budget_opens():
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter):
        OutputPerturbation(target="x").release(table_of([]), budget=budget, rng=seeded(1))
    assert not budget.is_used
    with pytest.raises(InvalidParameter):
        OutputPerturbation(target="good").expected_error(SMALL, None, Fraction(1, 10**30))
    with pytest.raises(InvalidParameter):
        OutputPerturbation(target="good", regularization=Fraction(-1))


def test_errors_fall_with_epsilon_and_with_records():
    method = OutputPerturbation(target="good")
    figures = [
        method.expected_error(SMALL, n, Fraction(e)).figures["one_weight"]
        for n, e in ((None, "1/10"), (10_000, "1"), (1_000_000, "1"))
    ]
    assert figures == sorted(figures, reverse=True)
