"""The minimizer: it meets its tolerance whatever the rows, and what its proof assumes is stated."""

import json
from fractions import Fraction

import numpy as np
import pytest

from dpublish.core.folder.folder import load
from dpublish.core.method import Run
from dpublish.data.batch import Batch
from dpublish.data.features import Features
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models import kernel_gradients, minimizer
from dpublish.methods.linear_models import output_perturbation as output_module
from dpublish.methods.linear_models import private_erm as objective_module
from dpublish.methods.linear_models.kernel_gradients import (
    LARGEST_MARGIN,
    Gradient,
    LinearGradients,
)
from dpublish.methods.linear_models.minimizer import (
    BEYOND,
    FARTHEST,
    PASSES,
    TOLERANCE,
    minimize,
    publish_weights,
)
from dpublish.methods.linear_models.output_perturbation import OutputPerturbation
from dpublish.methods.linear_models.private_erm import PrivateERM
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded
from dpublish.report.page import render_report
from method_examples import ROWS, SCHEMA, arrow_table
from methods.linear_models.tiny_world import make_table
from replay import Tape, path_loss, playing

SQUARES = np.diag([1.0, 100.0, 0.0])


def logistic(rows, signs, calls):
    def sums(weights):
        calls.append(weights)
        margins = signs * (rows @ weights)
        falls = 1 / (1 + np.exp(np.clip(margins, -700, 700)))
        loss = np.logaddexp(0, -margins).sum()
        bend = (falls * (1 - falls))[:, None]
        return Gradient(float(loss), -rows.T @ (signs * falls), rows.T @ (rows * bend))

    return sums


def gradient_at(weights, sums, ridge, pull):
    return np.linalg.norm(sums(weights).slope + ridge * weights + pull)


@pytest.mark.parametrize("ridge", [1 / 16, 1.0, 1000.0])
@pytest.mark.parametrize("length", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("case", ["none", "separable", "mixed", "constant"])
def test_the_gradient_is_within_the_tolerance(case, length, ridge):
    draws = np.random.default_rng(1)  # noqa: TID251 - rows for a test
    rows = draws.uniform(-0.5, 0.5, (0 if case == "none" else 2000, 3))
    if case == "constant":
        rows[:] = 0.5
    signs = np.where(rows[:, 0] > 0, 1.0, -1.0)
    if case == "mixed":
        signs[::3] *= -1
    pull = length * np.array([0.6, -0.8, 0.0])
    calls = []
    sums = logistic(rows, signs, calls)
    weights = minimize(sums, ridge=ridge, pull=pull, tolerance=1e-5, passes=10)
    assert 10 <= len(calls) < 60
    assert gradient_at(weights, sums, ridge, pull) <= 1e-5


def test_all_passes_are_made_even_if_the_first_step_is_enough():
    calls = []

    def sums(weights):
        calls.append(weights)
        return Gradient(float(weights @ SQUARES @ weights) / 2, SQUARES @ weights, SQUARES)

    pull = np.array([1.0, 2.0, 3.0])
    weights = minimize(sums, ridge=0.5, pull=pull, tolerance=1e-6, passes=7)
    assert len(calls) == 7
    assert weights == pytest.approx(-pull / np.array([1.5, 100.5, 0.5]))


def test_points_stay_where_the_rows_can_be_evaluated():
    calls = []
    sums = logistic(np.zeros((1, 1)), np.ones(1), calls)
    minimize(sums, ridge=1e-6, pull=np.array([1e6]), tolerance=1e-9, passes=3)
    assert max(np.linalg.norm(weights) for weights in calls) <= FARTHEST * (1 + 1e-9)


def many_rows(loss, records):
    """Sums over very many equal rows, from the very kernel that methods use."""
    columns = (
        column("sex", "category", values=["F", "M"]),
        column("income", "category", values=["low", "high"]),
    )
    schema = Schema(columns)
    features = Features.of(schema, "income")
    batch = Batch(
        2,
        codes={
            "sex": np.array([0, 1], dtype=np.uint8),
            "income": np.array([0, 1], dtype=np.uint8),
        },
    )

    def sums(weights):
        kernel = LinearGradients(schema, features, "income", (1,), weights, loss, second=True)
        answer = kernel.zero()
        kernel.add(batch, answer)
        return kernel.read(answer * records)

    return sums


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("records", [4096, 4097, 10**6, 8 * 10**6])
@pytest.mark.parametrize("ridge", [1 / 16, 1.0])
def test_separable_tables_of_millions_are_searched_to_the_end(loss, records, ridge):
    """Rounded curvatures must not hold the search up, and no point may be refused."""
    sums = many_rows(loss, records)
    pull = np.array([0.3, -0.2, 0.5])
    calls = []

    def counted(weights):
        calls.append(weights)
        return sums(weights)

    weights = minimize(counted, ridge=ridge, pull=pull, tolerance=TOLERANCE, passes=PASSES[loss])
    assert gradient_at(weights, sums, ridge, pull) <= TOLERANCE
    assert len(calls) < 200


def test_every_point_that_is_tried_can_be_evaluated():
    assert FARTHEST < LARGEST_MARGIN


# Hinges of a few kinds of records whose numbers differ by powers of ten: (features, sign, count).
_UNEVEN = [
    ((0.0625, -0.25, -0.5), -1, 37),
    ((-0.25, 0.0078125, -0.25), 1, 207659),
    ((-0.0625, 0.001953125, -0.001953125), -1, 2553),
    ((0.25, -0.001953125, -0.25), 1, 7517),
    ((-0.015625, -0.001953125, 0.0625), -1, 1027064),
    ((-0.0009765625, 0.03125, -0.00390625), -1, 29668),
    ((-0.001953125, 0.5, -0.25), 1, 5),
    ((-0.25, -0.03125, -0.25), -1, 39744),
    ((-0.015625, -0.5, 0.015625), 1, 83),
    ((-0.03125, -0.001953125, -0.5), -1, 170593),
    ((-0.0625, -0.00390625, -0.0009765625), 1, 5303),
]
_PULL = np.array(
    [-1.2633416670390547, -2.9142594066002188, 2.9884266588045505, -2.8015491889332065]
)


# Records of a few kinds whose numbers differ even more, with columns that hardly differ.
_UNEVEN_CODES = {
    "x0": [1022, 1020, 1021, 1025, 1024, 1019, 1024, 1023, 1024, 1027, 1020, 1026],
    "x1": [1025, 1023, 1022, 1025, 1025, 1024, 1025, 1022, 1022, 1025, 1028, 1025],
    "x2": [1029, 1025, 1019, 1023, 1028, 1024, 1019, 1022, 1023, 1024, 1029, 1026],
    "x3": [0, 2, 0, 0, 2, 3, 2, 3, 2, 0, 1, 3],
    "x4": [1023, 1027, 1023, 1017, 1022, 1024, 1026, 1028, 1025, 1025, 1024, 1024],
}
_UNEVEN_SIGNS = [1, -1, -1, 1, 1, -1, -1, 1, -1, -1, -1, -1]
_UNEVEN_COUNTS = [81, 22, 593, 565428, 37033, 916, 15018, 29907, 200077, 151, 17121, 1733002]


def _hinges(rows, signs, counts):
    def sums(weights):
        losses, slopes, bends = kernel_gradients._huber(signs * (rows @ weights))
        curvature = (rows * (counts * bends)[:, None]).T @ rows
        return Gradient(float(counts @ losses), -(counts * slopes * signs) @ rows, curvature)

    return sums


def _few_kinds():
    rows = np.array([[*features, 0.5] for features, _, _ in _UNEVEN])
    signs, counts = (np.array([float(row[part]) for row in _UNEVEN]) for part in (1, 2))
    return _hinges(rows, signs, counts)


def _columns_that_hardly_differ(more=0):
    """Sums over 2.6 million records; `more` of the first kind are added."""
    columns = [
        column(name, "category", values=list("abcd"))
        if name == "x3"
        else column(name, "integer", bounds=[0, 2048])
        for name in _UNEVEN_CODES
    ]
    schema = Schema((*columns, column("y", "category", values=["a", "b"])))
    features = Features.of(schema, "y")
    codes = {name: np.array(values) for name, values in _UNEVEN_CODES.items()}
    counts = np.array(_UNEVEN_COUNTS, dtype=float)
    counts[0] += more
    rows = features.matrix(codes) / features.norms
    return _hinges(rows, np.array(_UNEVEN_SIGNS, dtype=float), counts)


_NO_PULL = np.zeros(9)  # a weight for each number and category, and the intercept
_CASES = {
    "few kinds": (_few_kinds, 2.0, _PULL),
    "columns": (_columns_that_hardly_differ, 1 / 16, _NO_PULL),
}


def _search(case, search=minimizer.minimize):
    """Return the length of the gradient where a search ends, and how many passes it took."""
    make, ridge, pull = _CASES[case]
    sums, passes = make(), []

    def counted(weights):
        passes.append(1)
        return sums(weights)

    found = search(counted, ridge=ridge, pull=pull, tolerance=2.0**-16, passes=48)
    return float(np.linalg.norm(sums(found).slope + ridge * found + pull)), len(passes)


def search_that_takes_gradients_on_their_word(
    sums, *, ridge, pull, tolerance, passes, most_passes=1_000
):
    """The broken twin: a shorter gradient is followed, however much the value rises."""
    best = minimizer._evaluate(sums, np.zeros_like(pull), ridge, pull)
    step, length, shortest = best.newton_step(), 1.0, best.steepness
    for done in range(1, most_passes):
        if done >= passes and best.steepness <= tolerance:
            break
        trial = minimizer._evaluate(
            sums, minimizer._inside(best.weights + length * step), ridge, pull
        )
        descent = -1e-4 * float(best.slope @ (trial.weights - best.weights))
        if best.value - trial.value >= max(descent, 0) or trial.steepness <= 0.9 * shortest:
            best, length = trial, 1.0
            step, shortest = best.newton_step(), min(shortest, trial.steepness)
        else:
            length /= 4
    return best.weights


@pytest.mark.parametrize("case", _CASES)
def test_hinges_over_very_uneven_kinds_of_records_are_searched_to_the_end(case):
    steepness, passes = _search(case)
    assert steepness <= 2.0**-16
    assert passes < 200


def test_a_search_that_follows_short_gradients_would_be_caught():
    steepness, passes = _search("columns", search_that_takes_gradients_on_their_word)
    assert passes == 1_000
    assert steepness > 1_000


def test_one_record_more_moves_what_is_found_no_further_than_the_minimum():
    found = [
        minimizer.minimize(
            _columns_that_hardly_differ(more),
            ridge=1 / 16,
            pull=_NO_PULL,
            tolerance=2.0**-16,
            passes=48,
        )
        for more in (0, 1)
    ]
    assert np.linalg.norm(found[0] - found[1]) <= 16 + 2 * 16 * 2.0**-16


def test_values_never_rise_along_a_search(monkeypatch):
    tried, taken = [], []
    sums = _columns_that_hardly_differ()

    def watched(weights):
        found = sums(weights)
        tried.append(found.loss + float(weights @ weights) / 32)
        return found

    class Watched(minimizer._Step):
        def __init__(self, begin):
            super().__init__(begin)
            taken.append(begin.value)

    monkeypatch.setattr(minimizer, "_Step", Watched)
    minimizer.minimize(watched, ridge=1 / 16, pull=_NO_PULL, tolerance=2.0**-16, passes=48)
    assert max(np.diff(taken)) <= 1e-6
    assert max(tried) > taken[0]  # lengths that were too long were tried, and not taken


# --- Publishing weights -------------------------------------------------------------------------

EPSILON = Fraction(1, 50)


def published(weights, error):
    tape = Tape()
    with playing(tape):
        run = Run(make_table([]), rng=tape.source)
        publish_weights(run, weights, error=error, budget=Budget.seeded(EPSILON))
    return tape


@pytest.mark.parametrize("size", [1, 4, 17])
@pytest.mark.parametrize("error", [Fraction(1, 3), Fraction(1, 10**6)])
def test_weights_that_err_to_opposite_sides_cost_epsilon_and_no_more(size, error):
    """Two tables give the same minimum, and both searches are off by as much as they may be."""
    minimum = np.linspace(-1, 1, size)
    apart = float(error) / np.sqrt(size) * np.where(np.arange(size) % 2, 1, -1)
    here, there = (published(minimum + sign * apart, error) for sign in (1, -1))
    assert 0.99 * EPSILON <= path_loss(here, there) <= EPSILON


# --- What the proof assumes ---------------------------------------------------------------------

CATALOG = [
    PrivateERM(target="sex", noise="spherical"),
    PrivateERM(target="sex", regularization=Fraction(1, 10), noise="laplace"),
    OutputPerturbation(target="sex"),
]


def released(method):
    table = open_table(arrow_table(ROWS), SCHEMA)
    return method.release(table, budget=Budget.seeded(2), rng=seeded(1))


@pytest.mark.parametrize("method", CATALOG, ids=lambda method: method.name)
def test_the_receipt_the_page_and_the_folder_name_the_assumptions(method, tmp_path):
    release = released(method)
    named = release.receipt.assumptions
    for words in ("16,777,216 (2^24) records", "10^-50", "16,384 passes"):
        assert any(words in each for each in named)
    is_spherical = any("square root" in each for each in named)
    assert is_spherical == (getattr(method, "noise", "spherical") != "laplace")
    assert BEYOND not in named
    page = render_report(release, with_charts=False)
    assert all(each.replace("'", "&#39;") in page for each in named)
    release.save(tmp_path / "out")
    head = json.loads((tmp_path / "out" / "release.json").read_text())
    assert tuple(head["receipt"]["assumptions"]) == named
    assert load(tmp_path / "out").receipt == release.receipt


def test_other_receipts_look_as_they_did():
    receipt = released(CATALOG[0]).receipt
    plain = receipt.to_dict()
    del plain["assumptions"]
    bare = Receipt.from_dict(plain)
    assert bare.assumptions == ()
    assert bare.to_dict() == plain


@pytest.mark.parametrize("method", CATALOG, ids=lambda method: method.name)
def test_a_public_size_beyond_the_proof_is_refused(method):
    method.expected_error(SCHEMA, 1 << 24, Fraction(2))
    with pytest.raises(InvalidParameter, match=r"at most 16,777,216 \(2\^24\) records"):
        method.expected_error(SCHEMA, (1 << 24) + 1, Fraction(2))


@pytest.mark.parametrize(
    ("module", "method"), [(objective_module, CATALOG[1]), (output_module, CATALOG[2])]
)
@pytest.mark.parametrize("extra", [0, 1])
def test_a_noisy_size_beyond_the_proof_is_stamped_and_not_refused(
    monkeypatch, module, method, extra
):
    def count(*_given, budget):
        return budget.spend() and (1 << 24) + extra

    monkeypatch.setattr(module, "count_records", count)
    assert (BEYOND in released(method).receipt.assumptions) == bool(extra)
