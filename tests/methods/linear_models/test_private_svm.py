"""PrivateSVM: how far a record moves the weights found, what the noise hides, and the account."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.folder.folder import load
from dpublish.core.method import Run
from dpublish.data.features import Features
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.methods.linear_models import minimizer
from dpublish.methods.linear_models import private_svm as module
from dpublish.methods.linear_models.fourier_features import (
    AMPLITUDE,
    FREQUENCY_UNIT,
    FourierFeatures,
    cosine_table,
    draw_frequencies,
)
from dpublish.methods.linear_models.minimizer import BEYOND
from dpublish.methods.linear_models.private_svm import (
    HINGE_WIDTH,
    TOLERANCE,
    PrivateSVM,
    SVMNoise,
    minimize_hinge,
    search_distance,
)
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.report.page import render_report
from method_examples import ROWS, SCHEMA, arrow_table
from replay import Tape, path_loss, playing

SMALL = Schema(
    (
        column("town", "category", values=["a", "b"]),
        column("good", "category", values=["no", "yes"]),
    )
)
TASK = ModelTask.of(SMALL, "good", model="svm")
WAVES = FourierFeatures(
    TASK.features, draw_frequencies(5, TASK.features.size, 0.7, plain_generator(3))
)
ALL = [(town, good) for town in "ab" for good in ("no", "yes")]
TABLES = ([], ALL[:1], ALL[:2] * 3, [*ALL, *ALL[:1] * 9], ALL[1:3] * 40, [*ALL * 7, *ALL[:1] * 60])


def table_of(records):
    towns, classes = zip(*records, strict=True) if records else ((), ())
    text = pa.string()
    rows = pa.table({"town": pa.array(towns, text), "good": pa.array(classes, text)})
    return open_table(rows, SMALL)


def found(records, ridge, features=TASK.features):
    run = Run(table_of(records), rng=seeded(1))
    return minimize_hinge(run, TASK, features, (1,), ridge)


def farthest(ridge, features=TASK.features, tables=TABLES, changed=lambda t, r: [*t, r]):
    """How far a record moves the weights found, at most, over some tables."""
    return max(
        float(np.linalg.norm(found(changed(t, r), ridge, features) - found(t, ridge, features)))
        for t, r in product(tables, ALL)
    )


@pytest.mark.parametrize("features", [TASK.features, WAVES], ids=["linear", "waves"])
@pytest.mark.parametrize("ridge", [0.25, 4.0])
def test_a_record_moves_the_weights_by_at_most_the_sensitivity(ridge, features):
    noise = SVMNoise.of(features, Fraction(ridge), 200)
    moved = farthest(ridge, features)
    assert moved <= float(1 / noise.ridge + 2 * noise.distance)
    assert moved * np.sqrt(features.size) <= float(noise.sensitivity)


def test_the_bound_is_attained_so_that_half_of_it_is_too_little():
    """Where no margin has come to 1, a record pulls with all its strength."""
    moved = np.linalg.norm(found(ALL[:1], 4.0) - found([], 4.0))
    assert moved == pytest.approx(1 / 4, rel=0.02)


def test_l1_needs_the_root_of_the_dimension():
    """The norm of the displacement in L1 exceeds that in L2: it must not be taken for it."""
    moved = found(ALL[1:2], 4.0) - found([], 4.0)
    assert np.abs(moved).sum() > 1.3 * np.linalg.norm(moved)
    task = ModelTask.of(SCHEMA, "sex", model="svm")
    noise = SVMNoise.of(task.features, Fraction(4), 100)
    assert noise.sensitivity >= Fraction(27, 10) * (1 / noise.ridge + 2 * noise.distance)


def test_a_twin_that_takes_a_replaced_record_for_an_added_one_is_caught():
    opposite = {r: next(o for o in ALL if o[0] == r[0] and o[1] != r[1]) for r in ALL}
    tables = [[r] for r in ALL]
    moved = farthest(4.0, tables=tables, changed=lambda t, _: [opposite[t[0]]])
    assert moved > 1.9 / 4


def test_a_twin_that_leaves_the_intercept_out_of_the_ridge_is_caught(monkeypatch):
    real = minimizer._evaluate

    def free_intercept(sums, weights, ridge, pull):
        point = real(sums, weights, ridge, pull)
        spared = ridge * (1 - 1e-3)
        slope, curvature = point.slope.copy(), point.curvature.copy()
        slope[-1] -= spared * weights[-1]
        curvature[-1, -1] -= spared
        return replace(
            point,
            value=point.value - spared / 2 * weights[-1] ** 2,
            slope=slope,
            curvature=curvature,
        )

    monkeypatch.setattr(minimizer, "_evaluate", free_intercept)
    assert farthest(4.0, tables=([],)) > 4 / 4


def test_a_twin_that_minimizes_the_mean_loss_is_caught():
    """If the true number of records divides, one record also changes the weight of all others."""
    yes, no = ("a", "yes"), ("a", "no")
    one, two = found([yes], 1 / 0.5), found([yes, no], 2 / 0.5)
    assert np.linalg.norm(one - two) > 1.9 * (0.5 / 2)
    fixed = found([yes], 2 / 0.5)
    assert np.linalg.norm(fixed - two) <= 0.5 / 2 + 1e-2


def test_a_search_that_is_broken_off_is_farther_away_than_is_paid_for(monkeypatch):
    records = [*ALL * 50, *ALL[:1] * 300, *ALL[2:3] * 100]
    exact = found(records, 0.25)
    paid = float(search_distance(TASK.features, Fraction(1, 4), 1000))
    monkeypatch.setattr(module, "TOLERANCE", 1e-9)
    assert np.linalg.norm(found(records, 0.25) - exact) <= paid
    monkeypatch.setattr(module, "TOLERANCE", 1e9)
    monkeypatch.setattr(module, "_PASSES", 1)
    assert np.linalg.norm(found(records, 0.25) - exact) > 10 * paid


@pytest.mark.parametrize("ridge", [0.25, 3.0, 100.0])
def test_the_weights_found_are_as_near_the_exact_minimum_as_is_paid_for(ridge):
    """The gradient, in Python's exact fractions, at the weights found."""
    records = [*ALL * 9, *ALL[:1] * 55, *ALL[2:3] * 13]
    weights = found(records, ridge)
    norms, width = Fraction(TASK.features.norms), Fraction(HINGE_WIDTH)
    exact = [Fraction(w) for w in weights]
    slope = [Fraction(ridge) * w for w in exact]
    for town, good in records:
        x = [Fraction(v) / norms for v in (town == "a", town == "b", 1)]
        sign = 1 if good == "yes" else -1
        margin = sign * sum(a * b for a, b in zip(x, exact, strict=True))
        fall = min(max((1 + width - margin) / (2 * width), Fraction(0)), Fraction(1))
        slope = [s - fall * sign * v for s, v in zip(slope, x, strict=True)]
    steepness = float(sum(s * s for s in slope)) ** 0.5
    noise = SVMNoise.of(TASK.features, Fraction(ridge), len(records))
    assert steepness / ridge <= float(noise.distance)
    assert float(noise.distance) < 1.01 * TOLERANCE / ridge


def test_the_weights_are_near_those_of_a_true_hinge():
    """Rounding the corner moves the minimum by at most sqrt(n h / (2 ridge))."""
    records = [*ALL * 9, *ALL[:1] * 55, *ALL[2:3] * 13]
    ridge = 2.0
    weights = found(records, ridge)
    x = np.array([[t == "a", t == "b", 1] for t, _ in records]) / TASK.features.norms
    signs = np.array([1.0 if good == "yes" else -1.0 for _, good in records])

    def value(w):
        return np.maximum(1 - signs * (x @ w), 0).sum() + ridge / 2 * w @ w

    here = value(weights)
    for direction in np.vstack([np.eye(3), -np.eye(3), plain_generator(1).normal(size=(50, 3))]):
        for step in (0.3, 0.03):
            assert value(weights + step * direction / np.linalg.norm(direction)) > here


# --- The release --------------------------------------------------------------------------------


def released(table, epsilon="1", seed=3, **settings):
    method = PrivateSVM(**{"target": "good", **settings})
    budget = Budget.seeded(epsilon)
    release = method.release(table, budget=budget, rng=seeded(seed))
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    return release


@pytest.mark.parametrize("kind", ["linear", "random-fourier"])
def test_the_noise_has_the_size_that_the_release_states(monkeypatch, kind):
    """Two-sided: 0.7 and 1.3 times the noise are told apart from it."""
    monkeypatch.setattr(
        module, "minimize_hinge", lambda run, task, features, *_: np.zeros(features.size)
    )
    monkeypatch.setattr(module, "count_records", lambda *given, budget: budget.spend() and 100)
    settings = {"features": kind, "waves": 2}
    many = [released(table_of(ALL), seed=seed, **settings) for seed in range(600)]
    stated = many[0].standard_deviation
    measured = np.concatenate([release.weights.ravel() for release in many]).std()
    assert measured == pytest.approx(stated[0, 0], rel=0.1)
    assert (stated == stated[0, 0]).all()


@pytest.mark.parametrize("factor", [1, 2])
def test_what_neighbors_differ_by_costs_the_budget_and_no_more(monkeypatch, factor):
    """Weights that lie as far apart as the proof allows: the whole share, and twice it if twice."""
    epsilon = Fraction(1)
    size = TASK.features.size

    def run_with(side):
        def fake(run, task, features, positive, ridge):
            moved = 1 / Fraction(ridge) + 2 * search_distance(features, Fraction(ridge), most)
            return np.full(size, side * factor * float(moved) / 2 / np.sqrt(size))

        most = 100 + int(116 / (epsilon / 50)) + 1
        monkeypatch.setattr(module, "minimize_hinge", fake)
        tape = Tape()
        with playing(tape):
            PrivateSVM(target="good").release(
                table_of(ALL * 25), budget=Budget.seeded(epsilon), rng=tape.source
            )
        return tape

    if factor == 1:
        loss = path_loss(run_with(1), run_with(-1))
        assert 0.97 * 0.98 <= loss <= 0.98 * 1.0001
    else:
        with pytest.raises(AssertionError):
            path_loss(run_with(1), run_with(-1))


@pytest.mark.parametrize("kind", ["linear", "random-fourier"])
@pytest.mark.parametrize("records", [[], ALL[:1], ALL[:1] * 40, ALL[1:3] * 30])
def test_degenerate_and_separable_rows_are_fitted(records, kind):
    release = released(table_of(records), features=kind, waves=3)
    assert np.isfinite(release.weights).all()


def rings(count, seed=4):
    """Two classes that no straight line divides: the middle of a disk, and its edge."""
    draws = plain_generator(seed)
    x, y = draws.uniform(-1, 1, (2, count))
    labels = np.where(x**2 + y**2 < 0.6, "in", "out")
    schema = Schema(
        (
            column("x", "numeric", bounds=[-1, 1], bins=32),
            column("y", "numeric", bounds=[-1, 1], bins=32),
            column("ring", "category", values=["in", "out"]),
        )
    )
    return pa.table({"x": x, "y": y, "ring": labels}), schema


def test_waves_learn_what_no_plane_divides():
    rows, schema = rings(6000)
    fresh, _ = rings(1000, seed=5)
    table = open_table(rows, schema)

    def wrong(**settings):
        method = PrivateSVM(target="ring", cost=Fraction(300), **settings)
        release = method.release(table, budget=Budget.seeded(4), rng=seeded(1))
        return np.mean(np.array(release.predict(fresh)) != np.array(fresh["ring"]))

    assert wrong() > 0.4
    assert wrong(features="random-fourier", waves=20, bandwidth=Fraction(1, 2)) < 0.2


def test_a_release_with_waves_survives_its_folder(tmp_path):
    release = released(table_of(ALL * 5), features="random-fourier", waves=4)
    release.save(tmp_path / "out")
    again = load(tmp_path / "out")
    assert again == release
    rows = pa.table({"town": ["a", "b"]})
    assert again.predict(rows).equals(release.predict(rows))
    assert release.summary()["weighs"] == "4 random waves over these columns"
    page = render_report(release, with_charts=True)
    assert "Weights of random waves" in page
    broken = dict(release.tables(), frequencies=release.tables()["frequencies"].slice(1))
    with pytest.raises(CorruptRelease):
        LinearModelRelease.from_parts(
            receipt=release.receipt,
            schema=release.schema,
            metadata=release.metadata(),
            tables=broken,
        )


def test_each_of_many_classes_has_its_own_weights_and_share():
    method = PrivateSVM(target="town", cost=Fraction(5))
    table = open_table(arrow_table(ROWS), SCHEMA)
    budget = Budget.seeded("1.5")
    release = method.release(table, budget=budget, rng=seeded(1))
    assert len(release.weights) == release.classes.size > 2
    assert len(np.unique(release.weights)) == release.weights.size
    classes = [share for name, share in release.receipt.shares if "/class " in name]
    assert len(classes) == release.classes.size
    assert sum(classes) == Fraction(3, 2) * Fraction(49, 50)


def test_the_cost_is_that_of_features_from_minus_one_to_one():
    """(C / n) times the sum of losses and half the squares, as in the paper."""
    method = PrivateSVM(target="good", cost=Fraction(10))
    noise = method._noise(TASK, TASK.features, Fraction(1), 5000, 6000)
    assert float(noise.ridge) == pytest.approx(5000 / 10 / 2, rel=1e-4)  # norm: sqrt(2)


def test_the_receipt_names_what_the_proof_assumes(monkeypatch):
    named = released(table_of(ALL)).receipt.assumptions
    for words in ("16,777,216 (2^24) records", "10^-50", "16,384 passes"):
        assert any(words in each for each in named)
    assert BEYOND not in named
    monkeypatch.setattr(
        module, "count_records", lambda *given, budget: budget.spend() and (1 << 24) + 1
    )
    assert BEYOND in released(table_of(ALL)).receipt.assumptions


def test_what_cannot_be_fitted_is_refused_before_the_budget_opens():
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter):
        PrivateSVM(target="x").release(table_of([]), budget=budget, rng=seeded(1))
    assert not budget.is_used
    method = PrivateSVM(target="good")
    with pytest.raises(InvalidParameter):
        method.expected_error(SMALL, None, Fraction(1, 10**30))
    with pytest.raises(InvalidParameter, match="at most 16,777,216"):
        method.expected_error(SMALL, (1 << 24) + 1, Fraction(1))
    for wrong in (
        {"cost": Fraction(0)},
        {"cost": Fraction(1 << 21)},
        {"bandwidth": Fraction(-1)},
        {"waves": 0},
        {"waves": 1024},
        {"features": "cubic"},
        {"model": "logistic"},
    ):
        with pytest.raises(InvalidParameter):
            PrivateSVM(**{"target": "good", **wrong})


def test_errors_fall_with_epsilon_and_with_records():
    method = PrivateSVM(target="good")
    figures = [
        method.expected_error(SMALL, n, Fraction(e)).figures["one_weight"]
        for n, e in ((None, "1/10"), (10_000, "1"), (1_000_000, "1"))
    ]
    assert figures == sorted(figures, reverse=True)


# --- Random waves -------------------------------------------------------------------------------


def test_cosine_and_sine_lie_within_their_circle_in_integers():
    """Exactly, for all angles there are: a norm that floats might exceed is no bound."""
    table = cosine_table().astype(np.int64)
    assert len(table) == 4096
    sines = np.roll(table, 1024)
    assert (table**2 + sines**2).max() <= AMPLITUDE**2
    assert np.abs(table / AMPLITUDE - np.cos((np.arange(4096) + 0.5) * 2 * np.pi / 4096)).max() < (
        1.01 / AMPLITUDE
    )
    nearest = np.rint(AMPLITUDE * np.cos((np.arange(4096) + 0.5) * 2 * np.pi / 4096))
    assert (nearest**2 + np.roll(nearest, 1024) ** 2).max() > AMPLITUDE**2  # the twin


def every_record(schema, features):
    sizes = [schema[name].size for name in features.columns]
    codes = np.array(list(product(*map(range, sizes))))
    return dict(zip(features.columns, codes.T, strict=True))


@pytest.mark.parametrize("waves", [1, 7, 64])
def test_no_record_of_the_domain_is_longer_than_the_norm(waves):
    task = ModelTask.of(SCHEMA, "sex", model="svm")
    frequencies = draw_frequencies(waves, task.features.size, 0.5, plain_generator(waves))
    features = FourierFeatures(task.features, frequencies)
    matrix = features.matrix(every_record(SCHEMA, features))
    squares = (matrix.astype(np.int64) ** 2).sum(axis=1)
    assert squares.max() <= Fraction(features.norms) ** 2 * (1 << 20)
    assert squares.max() > 0.95 * features.norms**2 * (1 << 20)
    weights = plain_generator(1).normal(size=features.size)
    assert np.abs(matrix @ weights / 1024).max() <= features.largest_sum(weights)


def test_the_features_of_a_record_do_not_depend_on_the_others():
    task = ModelTask.of(SCHEMA, "sex", model="svm")
    frequencies = draw_frequencies(9, task.features.size, 0.5, plain_generator(1))
    features = FourierFeatures(task.features, frequencies)
    codes = every_record(SCHEMA, features)
    whole = features.matrix(codes)
    weights = plain_generator(1).normal(size=features.size)
    sums = features.sums(codes, weights)
    for some in (slice(0, 1), slice(3, 20), slice(1, None, 7)):
        part = {name: column[some] for name, column in codes.items()}
        assert (features.matrix(part) == whole[some]).all()
        assert (features.sums(part, weights) == sums[some]).all()


def test_waves_come_near_a_gaussian_kernel():
    base = Features((column("a", "numeric", bounds=[-1, 1], bins=64),))
    frequencies = draw_frequencies(1000, base.size, 0.5, plain_generator(1))
    features = FourierFeatures(base, frequencies)
    matrix = features.matrix({"a": np.arange(64)})[:, :-1] / AMPLITUDE
    kernel = matrix @ matrix.T / 1000
    points = base.matrix({"a": np.arange(64)})[:, 0] / 1024
    wanted = np.exp(-(np.subtract.outer(points, points) ** 2) / (2 * 0.25))
    assert np.abs(kernel - wanted).max() < 0.1


@pytest.mark.parametrize(
    "frequencies",
    [
        np.zeros((0, 3), dtype=np.int64),
        np.zeros((1, 2), dtype=np.int64),
        np.zeros((1, 3)),
        np.full((1, 3), (1 << 30) + 1),
        np.zeros((1024, 3), dtype=np.int64),
    ],
)
def test_waves_that_cannot_be_are_refused(frequencies):
    with pytest.raises(InvalidParameter):
        FourierFeatures(TASK.features, frequencies)


def test_frequencies_are_turns_in_whole_units():
    drawn = draw_frequencies(2000, 2, 2.0, plain_generator(1))
    assert drawn[:, 0].std() / FREQUENCY_UNIT == pytest.approx(1 / (4 * np.pi), rel=0.05)
    assert (drawn[:, 1] >= 0).all()
