"""Functional mechanism: what a record can change is paid for, and the weights are the minimum."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core import run as run_module
from dpublish.core.method import Run
from dpublish.data.features import FEATURE_UNIT
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.linear_models import functional
from dpublish.methods.linear_models.functional import (
    FunctionalMechanism,
    NoisyMoments,
    moment_kernel,
    product_noise,
    published_sensitivities,
    release_moments,
    solve,
    trimmed_inverse,
)
from dpublish.methods.linear_models.kernel_moments import LinearMoments
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 8]),
        column("rent", "integer", bounds=[0, 3], missing="category"),
        column("town", "category", values=["x", "y", "z"]),
        column("sex", "category", values=["F", "M"]),
        column("pay", "integer", bounds=[0, 40]),
    )
)
LINEAR = FunctionalMechanism(target="pay", predictors=("age", "rent", "town"), model="linear")
TWO = FunctionalMechanism(target="sex", predictors=("age", "rent", "town"))
MANY = FunctionalMechanism(target="town", predictors=("age", "rent", "sex"))
CATALOG = pytest.mark.parametrize("method", [LINEAR, TWO, MANY], ids=["linear", "two", "many"])
EPSILON = Fraction(2)


def table_of(records):
    """Records are codes; a rent of 4 is missing."""
    ages, rents, towns, sexes, pays = (
        np.array(records, dtype=np.int64).reshape(-1, 5).T.tolist() if len(records) else [[]] * 5
    )
    rows = pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "rent": pa.array([None if code == 4 else code for code in rents], pa.int64()),
            "town": pa.array(["xyz"[code] for code in towns], pa.string()),
            "sex": pa.array(["FM"[code] for code in sexes], pa.string()),
            "pay": pa.array(pays, pa.int64()),
        }
    )
    return open_table(rows, SCHEMA)


def draw(count, seed=0):
    """Records whose pay and sex depend on the rest."""
    source = plain_generator(seed)
    ages, rents, towns = (source.integers(size, size=count) for size in (9, 5, 3))
    pays = np.clip(5 + 2 * ages + 3 * (towns == 1) + source.integers(-3, 4, count), 0, 40)
    sexes = (ages + 2 * (towns == 2) + source.integers(-3, 4, count) > 4).astype(int)
    return np.stack([ages, rents, towns, sexes, pays], axis=1)


def release_of(method, table, epsilon=EPSILON, seed=1):
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))


EXTREMES = [
    (age, rent, town, sex, pay)
    for age, rent, town, sex, pay in product((0, 4, 8), (0, 3, 4), (0, 2), (0, 1), (0, 40))
]


def worst_loss(monkeypatch, method, records):
    losses = []
    for seed, extra in enumerate(EXTREMES):
        pair = table_of(records), table_of([*records, extra])
        run = lambda table, seed=seed: release_of(method, table, seed=seed)  # noqa: E731
        losses.append(privacy_loss(run, *pair, (run_module,), monkeypatch))
        losses.append(privacy_loss(run, *pair[::-1], (run_module,), monkeypatch))
    return max(losses)


@CATALOG
@pytest.mark.parametrize("size", [0, 1, 20])
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(method, size, monkeypatch):
    found = worst_loss(monkeypatch, method, draw(size).tolist())
    assert found <= float(EPSILON) * (1 + 1e-9)
    assert found > float(EPSILON) / 4  # the noise is not so wide that nothing was tested


@pytest.mark.parametrize("name", ["matrix_sensitivity", "vector_sensitivity"])
@CATALOG
def test_the_audit_notices_too_small_a_sensitivity(method, name, monkeypatch):
    """Twin: as if a record changed a few of the sums only."""
    whole = getattr(LinearMoments, name)
    monkeypatch.setattr(LinearMoments, name, lambda kernel, notion: whole(kernel, notion) // 8)
    assert worst_loss(monkeypatch, method, draw(20).tolist()) > float(EPSILON)


@CATALOG
def test_both_sums_can_change_by_all_that_is_paid_for(method):
    """Attained: the loss of the worst record is the budget, neither more nor less."""
    kernel = moment_kernel(method.model_task(SCHEMA))
    notion = SCHEMA.neighbors
    shares = method._shares(kernel)
    size = kernel.features.size
    losses = []
    for extra in EXTREMES:
        sums = np.abs(table_of([extra]).sum(kernel))
        matrix, vector = sums[:, :size][kernel.pairs].sum(), sums[:, size:].sum()
        losses.append(
            shares["matrix"] * Fraction(int(matrix), kernel.matrix_sensitivity(notion))
            + shares["vector"] * Fraction(int(vector), kernel.vector_sensitivity(notion))
        )
    assert max(losses) == sum(shares.values())


def test_the_number_of_records_has_noise_too(rng):
    kernel = moment_kernel(TWO.model_task(SCHEMA))
    table = table_of(draw(50))
    budgets = Budget.seeded(1).split(vector=1, matrix=1)
    moments = release_moments(Run(table, rng=rng), kernel, **budgets)
    assert moments.matrix[-1, -1] != 50


def true_rows(method, records):
    """Features and responses (-1 to 1) of records, in the clear."""
    task = method.model_task(SCHEMA)
    codes = dict(zip(SCHEMA.names, np.asarray(records).T, strict=True))
    rows = task.features.matrix(codes) / FEATURE_UNIT
    return rows, codes


def test_linear_regression_is_ordinary_least_squares_when_noise_is_small():
    records = draw(3000)
    found = release_of(LINEAR, table_of(records), epsilon=10**6)
    rows, codes = true_rows(LINEAR, records)
    best, *_ = np.linalg.lstsq(rows, codes["pay"].astype(float), rcond=None)
    predicted = found.predict_numbers(codes)
    assert predicted == pytest.approx(np.clip(rows @ best, 0, 40), abs=0.05)
    # One year more adds as much as least squares says, in the owner's units.
    table = found.coefficients().to_pydict()
    own = dict(zip(table["feature"], table["weight_in_own_units"], strict=True))
    assert own["age"] == pytest.approx(best[0] / 4, abs=0.01)
    assert own["town=y"] - own["town=x"] == pytest.approx(best[4] - best[3], abs=0.05)
    start = own["(intercept)"] + own["town=x"] + own["rent"] * 2 + own["age"] * 3
    record = {"age": np.array([3]), "rent": np.array([2]), "town": np.array([0])}
    assert found.predict_numbers(record) == pytest.approx([start], abs=0.01)  # features are rounded


def test_logistic_regression_minimizes_the_second_order_of_the_loss():
    records = draw(3000)
    found = release_of(TWO, table_of(records), epsilon=10**6)
    rows, codes = true_rows(TWO, records)
    signs = np.where(codes["sex"] == 1, 1.0, -1.0)

    def objective(weights):
        scores = rows @ weights
        return np.sum(-signs * scores / 2 + scores**2 / 8)

    best = 2 * np.linalg.lstsq(rows, signs, rcond=None)[0]
    assert objective(found.weights[0]) == pytest.approx(objective(best), rel=1e-4)
    assert np.mean((found.predict_codes(codes) == 1) == (signs > 0)) > 0.8


def test_many_classes_are_each_set_against_the_rest():
    records = draw(3000)
    found = release_of(MANY, table_of(records), epsilon=10**6)
    rows, codes = true_rows(MANY, records)
    for code, weights in enumerate(found.weights):
        signs = np.where(codes["town"] == code, 1.0, -1.0)
        best = 2 * np.linalg.lstsq(rows, signs, rcond=None)[0]
        assert rows @ weights == pytest.approx(rows @ best, abs=0.02)


@CATALOG
def test_the_standard_deviation_is_that_of_many_releases(method):
    """Noise far smaller than the sums: first order is then all there is."""
    table = table_of(draw(3000))
    many = [release_of(method, table, epsilon=200, seed=seed) for seed in range(150)]
    measured = np.std([model.weights for model in many], axis=0)
    stated = np.mean([model.standard_deviation for model in many], axis=0)
    ratio = measured / stated
    assert 0.8 < np.median(ratio) < 1.2
    assert ratio.min() > 0.6
    assert ratio.max() < 1.6


def test_the_noise_of_products_is_computed_exactly():
    """Against a Jacobian by differences, product by product, with parts that are not kept."""
    kernel = moment_kernel(MANY.model_task(SCHEMA))
    size = kernel.features.size
    sums = table_of(draw(400)).sum(kernel)[:, :size] / FEATURE_UNIT**2
    published = sums[kernel.pairs]
    vectors, weights = np.ones((1, size)), plain_generator(1).normal(size=size)

    def moments(values):
        return NoisyMoments(kernel, kernel.fill(values), vectors, 400.0, 1.0)

    whole = moments(published)
    assert 0 < np.count_nonzero(whole.kept == 0) < whole.kept.size

    def product_of(values):
        changed = moments(values)
        shrunk = changed.independent + whole.kept * (changed.matrix - changed.independent)
        return shrunk @ weights

    step = 1e-4
    effects = np.array(
        [
            (product_of(published + step * unit) - product_of(published - step * unit)) / step / 2
            for unit in np.eye(published.size)
        ]
    )
    assert product_noise(weights, whole) == pytest.approx(effects.T @ effects, abs=1e-5)


def test_directions_that_noise_made_negative_are_left_out():
    matrix = np.diag([5.0, -3.0, 0.0])
    assert trimmed_inverse(matrix, 1.0) == pytest.approx(np.diag([1 / 6, 0.0, 1.0]))
    assert trimmed_inverse(-np.eye(2), 0.5).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_weights_are_no_longer_than_the_bound():
    kernel = moment_kernel(TWO.model_task(SCHEMA))
    size = kernel.features.size
    moments = NoisyMoments(kernel, 1e-3 * np.eye(size), np.full((1, size), 1e6), 0.0, 0.0)
    found = solve(moments, factor=2.0, longest=3.0)
    assert np.linalg.norm(found.weights) == pytest.approx(3.0)
    tight = FunctionalMechanism(target="sex", bound=Fraction(1, 10))
    model = release_of(tight, table_of(draw(500)), epsilon=100)
    assert np.linalg.norm(model.weights) * model.features.norms <= 0.1 + 1e-9


@CATALOG
@pytest.mark.parametrize("case", ["none", "one", "same", "one class"])
@pytest.mark.parametrize("epsilon", ["0.001", "1000"])
def test_degenerate_tables_have_a_model(method, case, epsilon):
    records = {"none": [], "one": [(1, 4, 0, 0, 3)], "same": [(8, 0, 2, 1, 40)] * 30}
    records["one class"] = [(age, age % 5, 0, 1, 40) for age in range(9)]
    budget = Budget.seeded(epsilon)
    model = method.release(table_of(records[case]), budget=budget, rng=seeded(3))
    assert np.isfinite(model.weights).all()
    assert budget.cost() == budget.epsilon
    assert [share.purpose for share in budget.account()] == ["release/vector", "release/matrix"]
    assert all(share.is_used for share in budget.account())


def test_separable_classes_are_distinguished():
    records = [(age, 0, 0, int(age > 4), 0) for age in range(9)] * 200
    model = release_of(TWO, table_of(records), epsilon=50)
    codes = dict(zip(SCHEMA.names, np.array(records).T, strict=True))
    assert np.mean(model.predict_codes(codes) == codes["sex"]) > 0.85


@CATALOG
def test_the_noise_is_predicted_and_falls_with_the_budget(method):
    figures = [method.expected_error(SCHEMA, None, Fraction(e)).figures for e in (1, 2)]
    for name in ("vector_deviation", "matrix_deviation"):
        assert figures[0][name] == pytest.approx(2 * figures[1][name], rel=1e-3)
    kernel = moment_kernel(method.model_task(SCHEMA))
    most = method._shares(kernel)
    scale = sum(most.values()) / FEATURE_UNIT**2  # all coefficients have the same noise, S / ε
    assert figures[0]["matrix_deviation"] == pytest.approx(2**0.5 * scale, rel=1e-3)


def test_what_cannot_be_fitted_is_refused_before_anything_is_spent():
    for wrong in ({"target": "pay"}, {"target": "sex", "model": "linear"}):
        budget = Budget.seeded(1)
        with pytest.raises(InvalidParameter):
            FunctionalMechanism(**wrong).release(table_of([]), budget=budget, rng=seeded(1))
        assert not budget.is_used
    with pytest.raises(InvalidParameter):
        FunctionalMechanism(target="sex", model="svm").expected_error(SCHEMA, None, Fraction(1))
    with pytest.raises(InvalidParameter, match="rate"):
        TWO.expected_error(SCHEMA, None, Fraction(1, 10**30))
    with pytest.raises(InvalidParameter):
        FunctionalMechanism(target="sex", bound=Fraction(0))


def test_a_used_budget_is_refused_before_any_row_is_read(monkeypatch):
    monkeypatch.setattr(functional, "release_moments", lambda *_, **__: pytest.fail("read"))
    budget = Budget.seeded(1)
    budget.spend()
    with pytest.raises(BudgetAlreadyUsed):
        TWO.release(table_of([]), budget=budget, rng=seeded(1))


def test_the_task_says_which_sums_are_needed():
    assert moment_kernel(ModelTask.of(SCHEMA, "sex")).responses.tolist() == [[-1024], [1024]]
    assert moment_kernel(ModelTask.of(SCHEMA, "town")).responses.trace() == 3 * 1024
    task = ModelTask.of(SCHEMA, "pay", (), "linear", models=("linear",))
    assert moment_kernel(task).responses[[0, 20, 40], 0].tolist() == [-1024, 0, 1024]


# --- As published ---------------------------------------------------------------------------------


PUBLISHED = pytest.mark.parametrize(
    "method",
    [replace(method, calibration="paper") for method in (LINEAR, TWO, MANY)],
    ids=["linear", "two", "many"],
)


@PUBLISHED
def test_the_papers_noise_tells_neighbors_apart_by_no_more_than_the_budget(method, monkeypatch):
    """Its bound is loose: the loss stays far below epsilon, and never above."""
    found = worst_loss(monkeypatch, method, draw(20).tolist())
    assert 0 < found <= float(EPSILON)


@PUBLISHED
def test_the_audit_notices_noise_for_less_than_a_record_changes(method, monkeypatch):
    monkeypatch.setattr(
        functional, "published_sensitivities", lambda kernel, *_: {"vector": 9, "matrix": 9}
    )
    assert worst_loss(monkeypatch, method, draw(20).tolist()) > float(EPSILON)


@PUBLISHED
def test_every_coefficient_has_the_noise_of_the_papers_bound(method):
    """Delta / epsilon for features divided by sqrt(d), in features from -1 to 1."""
    kernel = moment_kernel(method.model_task(SCHEMA))
    shares = method._shares(kernel)
    noise, total, size = method._noise(kernel), sum(shares.values()), kernel.features.size
    unit = FEATURE_UNIT**2 / functional._ROUGH
    scales = {name: float(noise[name] * total) / shares[name] / unit for name in noise}
    if method.model == "linear":
        delta = 2 * (1 + 2 * size + size**2)
        coefficients = {"vector": 2 * scales["vector"], "matrix": scales["matrix"]}
    else:
        delta = size**2 / 4 + 3 * size
        coefficients = {"vector": scales["vector"] / 2, "matrix": scales["matrix"] / 8}
    assert coefficients["vector"] == pytest.approx(delta * size**0.5, rel=1e-3)
    assert coefficients["matrix"] == pytest.approx(delta * size, rel=1e-3)


@PUBLISHED
def test_the_papers_bound_is_never_less_than_what_a_record_changes(method):
    kernel = moment_kernel(method.model_task(SCHEMA))
    noise = published_sensitivities(kernel, method.model, {"vector": 1, "matrix": 10**9})
    assert noise["vector"] >= kernel.vector_sensitivity(AddRemoveRecord()) / functional._ROUGH
    other = published_sensitivities(kernel, method.model, {"vector": 10**9, "matrix": 1})
    size = kernel.features.size
    changed = []
    before = table_of(draw(40).tolist()).sum(kernel)
    for record in draw(300).tolist():
        after = before + table_of([record]).sum(kernel)
        moved = np.abs(after // functional._ROUGH - before // functional._ROUGH)
        changed.append(moved[:, :size][np.triu_indices(size)].sum())
    assert max(changed) <= other["matrix"]


def test_without_noise_the_published_form_predicts_as_ours():
    method = replace(TWO, calibration="paper")
    records = draw(500).tolist()
    rough, tight = (
        release_of(one, table_of(records), epsilon=Fraction(10**9)) for one in (method, TWO)
    )
    assert rough.standard_deviation is None
    codes = {
        name: draw(500)[:, index].astype(np.int64)
        for index, name in enumerate(("age", "rent", "town"))
    }
    assert (rough.predict_codes(codes) == tight.predict_codes(codes)).mean() > 0.95
    with pytest.raises(InvalidParameter):
        replace(TWO, calibration="loose")
