"""Gradients of linear models: within the stated error of exact numbers, and blind to batches."""

import pickle
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.batch import Batch
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models import signed_records
from dpublish.methods.linear_models.kernel_gradients import (
    CURVATURE_BITS,
    LinearGradients,
    curvature_bound,
)
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 4], missing="category"),
        column("sex", "category", values=["F", "M"]),
        column("income", "category", values=["poor", "rich"]),
    )
)
FEATURES = Features.of(SCHEMA, "income")
LOSSES = ("logistic", "huber")


def make(weights, loss="logistic", second=True):
    return LinearGradients(SCHEMA, FEATURES, "income", (1,), weights, loss, second)


def draw_weights(seed, scale=3.0):
    return plain_generator(seed).normal(0, scale, FEATURES.size)


def draw_batch(seed, rows):
    rng = plain_generator(seed)
    return Batch(
        rows, codes={c.name: rng.integers(0, c.size, rows).astype(np.uint8) for c in SCHEMA.columns}
    )


def answer_of(kernel, *batches):
    answer = kernel.zero()
    for batch in batches:
        kernel.add(batch, answer)
    return answer


def exact_slope(margin, loss):
    """Minus the derivative of a loss, with thirty digits."""
    if loss == "logistic":
        return 1 / (1 + margin.exp())
    return min(max((Decimal("1.5") - margin), Decimal(0)), Decimal(1))


def exact_loss(margin, loss):
    if loss == "logistic":
        return max(-margin, Decimal(0)) + (1 + (-abs(margin)).exp()).ln()
    inside = min(max(Decimal("1.5") - margin, Decimal(0)), Decimal(1))
    return inside * inside / 2 + max(Decimal("0.5") - margin, Decimal(0))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 60.0])
def test_each_record_of_the_domain_has_its_gradient_within_the_stated_error(loss, scale):
    weights = draw_weights(1, scale)
    kernel = make(weights, loss)
    norm = Decimal(FEATURES.norms)
    for age, sex, income in product(range(6), range(2), range(2)):
        codes = {"age": age, "sex": sex, "income": income}
        batch = Batch(1, codes={name: np.array([c], np.uint8) for name, c in codes.items()})
        found = kernel.read(answer_of(kernel, batch))
        with localcontext() as context:
            context.prec = 40
            row = FEATURES.matrix({name: np.array([codes[name]]) for name in FEATURES.columns})[0]
            x = [Decimal(value) / FEATURE_UNIT / norm for value in row]
            sign = 2 * income - 1
            margin = sign * sum(a * Decimal(w) for a, w in zip(x, weights, strict=True))
            slope = -sign * exact_slope(margin, loss)
            off = sum((Decimal(g) - slope * a) ** 2 for g, a in zip(found.slope, x, strict=True))
            assert off.sqrt() <= Decimal(kernel.error_bound)
            assert abs(Decimal(found.loss) - exact_loss(margin, loss)) < Decimal(2) ** -38


def test_the_stated_error_is_small_and_grows_with_the_weights():
    small, large = (make(draw_weights(1, scale)).error_bound for scale in (1.0, 1000.0))
    assert small < 1e-13 < large < 1e-11


@pytest.mark.parametrize("loss", LOSSES)
def test_the_curvature_bounds_the_change_of_the_gradient_from_above(loss):
    batch = draw_batch(3, 300)
    weights, step = draw_weights(4, 0.5), 1e-5
    kernel = make(weights, loss)
    curvature = kernel.read(answer_of(kernel, batch)).curvature
    for index in range(FEATURES.size):
        ahead, behind = weights.copy(), weights.copy()
        ahead[index] += step
        behind[index] -= step
        slopes = [
            k.read(answer_of(k, batch)).slope for k in (make(ahead, loss), make(behind, loss))
        ]
        change = (slopes[0] - slopes[1]) / (2 * step)
        slack = 300 * 2.0**-CURVATURE_BITS + 1e-4
        assert np.abs(curvature[index] - change).max() <= slack
        assert curvature[index, index] >= change[index] - 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_no_record_has_a_larger_slope_or_curvature_than_the_proofs_assume(loss):
    kernel = make(draw_weights(5), loss)
    for code in product(range(6), range(2), range(2)):
        batch = Batch(1, codes=dict(zip(kernel.codes, np.array([code]).T, strict=True)))
        found = kernel.read(answer_of(kernel, batch))
        assert np.linalg.norm(found.slope) <= 1
        most = curvature_bound(loss) + 2.0**-CURVATURE_BITS
        assert np.linalg.eigvalsh(found.curvature).max() <= most


@given(st.integers(1, 40), st.integers(0, 5), st.sampled_from(LOSSES), st.sampled_from([0, 8192]))
def test_the_answer_does_not_depend_on_how_the_records_are_cut(rows, seed, loss, cells):
    whole = draw_batch(seed, 200)
    kernel = make(draw_weights(seed), loss)
    once = answer_of(kernel, whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signed_records, "_FEW_CELLS", cells)  # listed one by one, or counted
        copy = pickle.loads(pickle.dumps(make(draw_weights(seed), loss)))
        merged = copy.zero()
        for part in whole.cut(rows):
            copy.merge(merged, answer_of(copy, part))
    assert merged.tolist() == once.tolist()


def test_without_records_all_sums_are_zero():
    kernel = make(draw_weights(1), second=False)
    found = kernel.read(kernel.zero())
    assert (found.loss, found.curvature) == (0, None)
    assert found.slope.tolist() == [0] * FEATURES.size


@pytest.mark.parametrize(
    "weights",
    [
        np.zeros(3),
        np.zeros(FEATURES.size, dtype=int),
        np.full(FEATURES.size, np.nan),
        np.full(FEATURES.size, 1e6),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights):
    with pytest.raises(InvalidParameter):
        make(weights)
