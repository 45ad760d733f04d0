"""Objective perturbation: its density by numerical integration, its minimum, its account."""

from fractions import Fraction
from itertools import product
from math import inf, log

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.method import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models import private_erm as module
from dpublish.methods.linear_models.kernel_gradients import curvature_bound
from dpublish.methods.linear_models.private_erm import (
    Perturb,
    PrivateERM,
    least_ridge,
    volume_cost,
)
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import ROWS, SCHEMA, arrow_table

WEIGHTS = np.linspace(-60, 60, 24_001)
RECORDS = [(x, y) for x in (-1.0, 0.3, 1.0) for y in (-1, 1)]
DATASETS = [(), *((one,) for one in RECORDS), *product(RECORDS, repeat=2), ((1.0, 1),) * 9]


def slope_and_bend(loss, margins):
    """How fast a loss falls, and how much it is bent."""
    if loss == "logistic":
        falls = 1 / (1 + np.exp(np.clip(margins, -700, 700)))
        return falls, falls * (1 - falls)
    falls = np.clip(1.5 - margins, 0, 1)
    return falls, ((margins > 0.5) & (margins < 1.5)).astype(float)


def log_density(loss, records, ridge, rate):
    """Density of the minimum of one weight: that of the linear term, times the volume."""
    pull = -ridge * WEIGHTS
    volume = np.full_like(WEIGHTS, ridge)
    for x, y in records:
        falls, bend = slope_and_bend(loss, y * x * WEIGHTS)
        pull += y * x * falls
        volume += bend * x * x
    return np.log(rate / 2) - rate * np.abs(pull) + np.log(volume)


def worst_loss(loss, ridge, rate_of, neighbors_of=lambda records: [(*records, r) for r in RECORDS]):
    worst = 0.0
    for records in DATASETS:
        here = log_density(loss, records, ridge, rate_of(records))
        for other in neighbors_of(records):
            there = log_density(loss, other, ridge, rate_of(other))
            worst = max(worst, np.abs(here - there).max())
    return worst


def calibrated(loss, epsilon, ridge):
    return float(Fraction(epsilon) - volume_cost(loss, Fraction(ridge)))


CASES = [
    (loss, epsilon, factor)
    for loss in ("logistic", "huber")
    for epsilon in ("1/10", "1", "4")
    for factor in (1, 5)
]


@pytest.mark.parametrize(("loss", "epsilon", "factor"), CASES)
def test_the_density_changes_by_at_most_epsilon(loss, epsilon, factor):
    ridge = factor * least_ridge(loss, Fraction(epsilon))
    rate = calibrated(loss, epsilon, ridge)
    assert rate >= float(Fraction(epsilon)) / 2
    worst = worst_loss(loss, float(ridge), lambda records: rate)
    assert worst <= float(Fraction(epsilon)) * (1 + 1e-9)
    assert worst > 0.9 * rate  # the bound is used up


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_densities_are_densities(loss):
    ridge = float(least_ridge(loss, Fraction(2)))
    for records in DATASETS[:10]:
        density = np.exp(log_density(loss, records, ridge, calibrated(loss, 2, ridge)))
        assert np.trapezoid(density, WEIGHTS) == pytest.approx(1, abs=3e-3)  # it jumps


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_a_twin_that_forgets_the_change_of_volume_is_caught(loss):
    assert worst_loss(loss, 0.05, lambda records: 0.1) > 1.7
    ridge = float(least_ridge("huber", Fraction(1)))
    if loss == "huber":
        assert worst_loss(loss, ridge, lambda records: 1.0) > 1.2


@pytest.mark.parametrize(("loss", "at_least"), [("logistic", 1.04), ("huber", 1.5)])
def test_a_twin_that_takes_a_replaced_record_for_an_added_one_is_caught(loss, at_least):
    """With one weight, the slopes of opposite logistic losses add up to 1: volume gives it away."""
    ridge = 5 * least_ridge(loss, Fraction(1))
    rate = calibrated(loss, 1, ridge)

    def replaced(records):
        return [(*records[:-1], record) for record in RECORDS] if records else []

    assert worst_loss(loss, float(ridge), lambda records: rate, replaced) > at_least


def test_a_twin_that_takes_the_sensitivity_from_the_rows_is_caught():
    ridge = least_ridge("logistic", Fraction(1))

    def rate_of(records):
        return 1 / max((abs(x) for x, _ in records), default=0.01)

    assert worst_loss("logistic", float(ridge), rate_of) > 10


def test_a_logistic_loss_pays_nothing_for_the_volume_where_the_simple_bound_pays():
    slopes = np.linspace(0, 1, 100_001)
    for epsilon in (Fraction(1, 20), Fraction(1), Fraction(5)):
        ridge = least_ridge("logistic", epsilon)
        rate = epsilon - volume_cost("logistic", ridge)
        spent = float(rate) * slopes + np.log1p(slopes * (1 - slopes) / float(ridge))
        assert spent.max() <= float(epsilon) * (1 + 1e-12)
        assert float(rate) > float(epsilon) - log(1 + 0.25 / float(ridge))
        smaller = np.log1p(slopes * (1 - slopes) / (float(ridge) / 2))
        if epsilon <= 1:  # the ridge is needed: half of it is too little
            assert (float(rate) * slopes + smaller).max() > float(epsilon)


def test_the_huber_loss_pays_at_least_the_exact_change_of_volume():
    for ridge in (Fraction(1, 16), Fraction(2), Fraction(100)):
        exact = log(1 + curvature_bound("huber") / float(ridge))
        assert exact <= float(volume_cost("huber", ridge)) <= 16


COLUMNS = (
    column("size", "numeric", bounds=[0, 8], bins=8),
    column("town", "category", values=["a", "b", "c"]),
    column("good", "category", values=["no", "yes"]),
    column("grade", "category", values=["x", "y", "z"]),
)
SMALL = Schema(COLUMNS)


def small_table(size, seed=1, separable=False):
    draws = np.random.default_rng(seed)  # noqa: TID251 - rows for a test
    number = draws.uniform(0, 8, size)
    good = number > 4 if separable else number + draws.normal(0, 2, size) > 4
    return pa.table(
        {
            "size": number,
            "town": draws.choice(["a", "b", "c"], size),
            "good": np.where(good, "yes", "no"),
            "grade": draws.choice(["x", "y", "z"], size),
        }
    )


def released(rows, epsilon="1", seed=3, **settings):
    method = PrivateERM(**{"target": "good", **settings})
    budget = Budget.seeded(epsilon)
    release = method.release(open_table(rows, SMALL), budget=budget, rng=seeded(seed))
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    return release


@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize("noise", ["laplace", "spherical"])
def test_it_publishes_the_minimum_of_the_perturbed_objective(model, noise, monkeypatch):
    """Compared with the gradient of a plain loop over the rows."""
    rows, drawn, found = small_table(200), [], []

    def remember(*given, **named):
        drawn.append(continuous(*given, **named))
        return drawn[-1]

    def unpublished(run, weights, **named):
        found.append((weights, named["error"], publish(run, weights, **named)))
        return found[-1][2]

    continuous, publish = Run.continuous_noise, module.publish_weights
    monkeypatch.setattr(Run, "continuous_noise", remember)
    monkeypatch.setattr(module, "publish_weights", unpublished)
    released(rows, model=model, noise=noise, predictors=("size", "town"))
    ((weights, error, published),) = found
    task = ModelTask.of(SMALL, "good", ("size", "town"), model)
    perturb = Perturb.of(task, noise, Fraction(99, 100), None)
    gradient = drawn[0] * np.array(perturb.widths) + float(perturb.ridge) * weights
    for size, town, good in zip(
        *(rows[c].to_pylist() for c in ("size", "town", "good")), strict=True
    ):
        scaled = (np.floor(size) + 0.5) / 4 - 1
        x = np.array([scaled, town == "a", town == "b", town == "c", 1.0]) / 3**0.5
        sign = 1 if good == "yes" else -1
        loss = "logistic" if model == "logistic" else "huber"
        falls, _ = slope_and_bend(loss, np.array(sign * x @ weights))
        gradient -= sign * falls * x
    assert np.linalg.norm(gradient) <= float(error * perturb.ridge)
    scale = 2 * 5**0.5 * float(error) / 0.01
    assert 0 < np.abs(published - weights).max() < 40 * scale


@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize(
    "rows",
    [
        small_table(0),
        small_table(1),
        pa.concat_tables([small_table(1)] * 50),
        small_table(300, separable=True),
    ],
    ids=["none", "one", "same", "separable"],
)
def test_degenerate_and_separable_rows_are_fitted(rows, model):
    release = released(rows, model=model, epsilon="10")
    assert np.isfinite(release.weights).all()


def test_it_learns_what_there_is_to_learn():
    rows = small_table(3000, separable=True)
    predicted = released(rows, epsilon="2").predict(rows).to_pylist()
    right = np.mean([a == b for a, b in zip(predicted, rows["good"].to_pylist(), strict=True)])
    assert right > 0.9


def test_each_of_many_classes_has_its_own_weights_and_its_own_share():
    release = released(small_table(100), target="grade")
    assert release.weights.shape == (3, release.features.size)
    assert len(np.unique(release.weights)) == release.weights.size
    names = [name for name, _ in release.receipt.shares]
    assert sum("rounding" in name for name in names) == 3


def test_a_ridge_for_each_record_costs_a_noisy_size():
    release = released(small_table(100), regularization=Fraction(1, 10))
    assert any(name.endswith("size") for name, _ in release.receipt.shares)
    plain = released(small_table(100))
    assert not any(name.endswith("size") for name, _ in plain.receipt.shares)


def test_auto_takes_the_noise_with_the_smaller_variance():
    wide = ModelTask.of(SCHEMA, "sex")
    few = ModelTask.of(SMALL, "good", ("size",))
    method = PrivateERM(target="sex")
    for task, best in ((wide, "laplace"), (few, "spherical")):
        pulls = {
            shape: Perturb.of(task, shape, Fraction(1), None).pull
            for shape in ("laplace", "spherical")
        }
        assert method._shape(task) == best == min(pulls, key=pulls.get)


def test_a_record_is_never_longer_than_the_noise_is_calibrated_for():
    """In the norm of the noise, over all records of the domain; the longest uses it up."""
    for task in (ModelTask.of(SCHEMA, "sex"), ModelTask.of(SMALL, "good")):
        features = task.features
        perturb = Perturb.of(task, "laplace", Fraction(1), None)
        codes = np.array(list(product(*(range(c.size) for c in features.predictors))))
        records = features.matrix(dict(zip(features.columns, codes.T, strict=True)))
        lengths = np.abs(records / 1024 / features.norms / np.array(perturb.widths)).sum(axis=1)
        assert 0.9 * float(perturb.sensitivity) < lengths.max() <= float(perturb.sensitivity)
        even = len(features.groups) ** 0.5 * (2 * features.size) ** 0.5
        assert float(perturb.pull) < even * 1.05  # no louder than even noise


def test_the_rounding_noise_is_far_below_the_noise_of_the_objective():
    task = ModelTask.of(SCHEMA, "sex")
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10)):
        perturb = Perturb.of(task, "laplace", epsilon, None)
        rounding = 2 * task.features.size**0.5 * float(perturb.error / (epsilon / 100))
        assert rounding < 0.1 * min(perturb.widths) * float(perturb.scale / perturb.ridge)


@pytest.mark.parametrize(
    "settings",
    [
        {"target": "size"},
        {"target": "good", "predictors": ("good",)},
        {"target": "good", "model": "linear"},
        {"target": "nowhere"},
    ],
)
def test_what_cannot_be_fitted_is_refused_before_the_budget_opens(settings):
    method = PrivateERM(**settings)
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter):
        method.expected_error(SMALL, None, Fraction(1))
    with pytest.raises(InvalidParameter):
        method.release(open_table(small_table(3), SMALL), budget=budget, rng=seeded(1))
    assert not budget.is_used


@pytest.mark.parametrize(
    "settings", [{"noise": "gauss"}, {"regularization": Fraction(0)}, {"regularization": 0.1}]
)
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(InvalidParameter):
        PrivateERM(target="good", **settings)


def test_a_tiny_epsilon_is_refused_and_errors_fall_with_epsilon():
    method = PrivateERM(target="good")
    with pytest.raises(InvalidParameter):
        method.expected_error(SMALL, None, Fraction(1, 10**30))
    figures = [method.expected_error(SMALL, 100, Fraction(e)).figures for e in ("1/10", "1")]
    assert figures[1]["pull_of_noise"] < figures[0]["pull_of_noise"] < inf


def test_the_example_table_of_all_methods_is_fitted():
    method = PrivateERM(target="town")
    release = method.release(
        open_table(arrow_table(ROWS), SCHEMA), budget=Budget.seeded("1.5"), rng=seeded(1)
    )
    assert len(release.weights) == release.classes.size
