"""The default model: fitted to what was published, and to nothing else."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core import run as mechanisms
from dpublish.core.folder.folder import load
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.loans import loans
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import noise
from dpublish.methods.linear_models import model as synopsis_model
from dpublish.methods.linear_models.model import LinearModel, fit_weights
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.privpfc import privpfc as grid_choice
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 7], branching=2),
        column("work", "category", values=["a", "b", "c"]),
        column("class", "category", values=["no", "yes"]),
        column("pay", "integer", bounds=[0, 100]),
    )
)


def make_table(rows=3000, seed=5):
    draws = plain_generator(seed)
    age = draws.integers(0, 8, rows)
    work = draws.integers(0, 3, rows)
    yes = draws.random(rows) < np.where((age >= 3) & (age < 6), 0.9, 0.1)
    columns = {
        "age": age,
        "work": np.array(["a", "b", "c"])[work],
        "class": np.where(yes, "yes", "no"),
        "pay": np.clip(10 * age + 5 * work + draws.normal(0, 3, rows), 0, 100).astype(np.int64),
    }
    return pa.table(columns)


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_what_rises_and_falls_again_is_learned(model):
    rows = make_table()
    table = open_table(rows, SCHEMA)
    method = LinearModel(target="class", predictors=("age", "work"), model=model)
    release = method.release(table, budget=Budget.seeded(2), rng=seeded(1))
    predicted = np.array(release.predict(rows).to_pylist())
    assert np.mean(predicted != np.array(rows["class"].to_pylist())) < 0.13
    assert release.model == model
    assert release.receipt.method == "model"


def test_a_number_gets_a_line():
    rows = make_table(20_000)
    release = LinearModel(target="pay", predictors=("age", "work")).release(
        open_table(rows, SCHEMA), budget=Budget.seeded(5), rng=seeded(1)
    )
    assert release.model == "linear"
    errors = np.abs(np.array(release.predict(rows).to_pylist()) - rows["pay"].to_numpy())
    assert errors.mean() < 5


@pytest.mark.parametrize("size", [0, 1, 40])
@pytest.mark.parametrize("target", ["class", "work", "pay"])
def test_every_share_is_spent_whatever_the_table_holds(target, size, tmp_path):
    budget = Budget.seeded("0.7")
    release = LinearModel(target=target, pool=20).release(
        open_table(make_table(size), SCHEMA), budget=budget, rng=seeded(3)
    )
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == release.receipt.epsilon == Fraction("0.7")
    release.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again == release
    rows = make_table(30, seed=9)
    assert again.predict(rows).equals(release.predict(rows))


def test_fitting_reads_no_rows_so_equal_synopses_give_equal_models(monkeypatch):
    """What was published decides the model: replayed on a neighbor it is the same."""
    found = []

    def release(table):
        method = LinearModel(target="class", predictors=("age", "work"), pool=10)
        found.append(method.release(table, budget=Budget.seeded(3), rng=seeded(4)))

    here, there = (open_table(make_table(60).slice(0, size), SCHEMA) for size in (60, 59))
    modules = (noise, mechanisms)
    loss = privacy_loss(release, here, there, modules, monkeypatch)
    assert loss <= 3 * (1 + 1e-6)
    assert np.array_equal(found[0].weights, found[1].weights)


def test_a_model_that_looks_at_the_rows_again_is_noticed(monkeypatch):
    found = []
    honest = synopsis_model.fit_to_grid

    def release(table):
        count = int(table.sum(grid_choice.Counts(SCHEMA, ((),)))[0])
        monkeypatch.setattr(
            synopsis_model, "fit_to_grid", lambda *parts: honest(*parts) + count / 1000
        )
        method = LinearModel(target="class", predictors=("age", "work"), pool=10)
        found.append(method.release(table, budget=Budget.seeded(3), rng=seeded(4)))

    here, there = (open_table(make_table(60).slice(0, size), SCHEMA) for size in (60, 59))
    privacy_loss(release, here, there, (noise, mechanisms), monkeypatch)
    assert not np.array_equal(found[0].weights, found[1].weights)


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_separable_rows_have_a_finite_fit(model):
    features = np.column_stack([np.repeat([-1.0, 1.0], 50), np.ones(100)])
    weights = fit_weights(features, np.repeat([0.0, 1.0], 50), model=model, ridge=1e-3)
    assert np.isfinite(weights).all()
    assert weights[0] > 0.5


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"target": "class", "model": "linear"}, "classes"),
        ({"target": "pay", "model": "svm"}, "numbers"),
        ({"target": "nowhere"}, "nowhere"),
        ({"target": "class", "predictors": ("class",)}, "class"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_paid(settings, advice):
    budget = Budget.seeded(1)
    method = LinearModel(**settings)
    with pytest.raises(InvalidParameter, match=advice):
        method.expected_error(SCHEMA, None, Fraction(1))
    with pytest.raises(InvalidParameter, match=advice):
        method.release(open_table(make_table(5), SCHEMA), budget=budget, rng=seeded(1))
    assert not budget.is_used


def test_loans_are_predicted_better_than_by_the_majority_class():
    from dpublish.datasets.benchmarks import BENCHMARKS

    simulated = BENCHMARKS["simulated"]
    schema = simulated.schema(None)
    rows = loans(6000, 7)
    release = LinearModel(target=simulated.target).release(
        open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(2)
    )
    fresh = loans(4000, 8)
    truth = np.array(fresh[simulated.target].to_pylist())
    wrong = np.mean(np.array(release.predict(fresh).to_pylist()) != truth)
    _, counts = np.unique(truth, return_counts=True)
    assert wrong < 0.97 * (1 - counts.max() / truth.size)


# --- what the budget is split by, and what a line cannot express --------------------------------


def test_a_plan_without_a_size_states_no_error():
    method = LinearModel(target="class", predictors=("age", "work"))
    unknown = method.expected_error(SCHEMA, None, Fraction(1))
    assert "--rows" in unknown.summary
    assert not any(name.endswith("_95") for name in unknown.figures)
    known = method.expected_error(SCHEMA, 20_000, Fraction(1))
    assert known.figures["one_cell_95"] > 0


def test_a_release_states_the_error_of_its_own_plan():
    """Refinements take from the grid's budget; a plan for no records would not know of them."""
    rows = make_table(22_000)
    method = LinearModel(target="class", predictors=("age", "work"), pool=20)
    release = method.release(open_table(rows, SCHEMA), budget=Budget.seeded(1), rng=seeded(1))
    planned = method.expected_error(SCHEMA, 22_000, Fraction(1))
    assert release.expected_error()["rounds"] == planned.figures["rounds"] > 0
    assert release.expected_error()["one_cell_95"] == planned.figures["one_cell_95"]


def interacting(rows, seed):
    """Whether two columns match decides the class; neither of them predicts it alone."""
    draws = plain_generator(seed)
    first, second = draws.integers(0, 3, (2, rows))
    match = (first == second) ^ (draws.random(rows) < 0.1)
    labels = np.array(["a", "b", "c"])
    columns = {"left": labels[first], "right": labels[second]}
    return pa.table(columns | {"class": np.where(match, "yes", "no")})


def interacting_schema():
    values = {"values": ["a", "b", "c"]}
    left, right = (column(name, "category", **values) for name in ("left", "right"))
    return Schema((left, right, column("class", "category", values=["no", "yes"])))


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_what_a_line_cannot_express_is_published_as_the_grid(epsilon, tmp_path):
    table = open_table(interacting(2000, 1), interacting_schema())
    method = LinearModel(target="class")
    release = method.release(table, budget=Budget.seeded(epsilon), rng=seeded(2))
    assert isinstance(release, PrivPfCRelease)
    assert release.receipt.method == "model"
    assert release.receipt.epsilon == Fraction(epsilon)
    fresh = interacting(3000, 2)
    truth = np.array(fresh["class"].to_pylist())
    assert np.mean(np.array(release.predict(fresh).to_pylist()) != truth) < 0.2
    release.save(tmp_path / "model")
    assert load(tmp_path / "model") == release


def test_a_line_is_kept_where_it_expresses_what_the_grid_knows():
    table = open_table(make_table(3000), SCHEMA)
    method = LinearModel(target="class", predictors=("age", "work"))
    assert isinstance(
        method.release(table, budget=Budget.seeded(1), rng=seeded(1)), LinearModelRelease
    )
