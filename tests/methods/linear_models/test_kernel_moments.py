"""Moments of features: exact sums, nothing twice, and the most that one record can change."""

import pickle
from itertools import product

import numpy as np
import pytest

from dpublish.data.batch import Batch
from dpublish.data.features import FEATURE_UNIT, Features
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models.kernel_moments import RESPONSE_UNIT, LinearMoments
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit
from dpublish.randomness import plain_generator

TARGET = column("pay", "category", values=["low", "high"])
KINDS = {
    "number": column("age", "integer", bounds=[0, 2]),
    "number with missing": column("rent", "numeric", bounds=[0, 1], bins=4, missing="category"),
    "wide number with missing": column("tax", "numeric", bounds=[0, 1], bins=2, missing="category"),
    "another wide one": column("tip", "numeric", bounds=[0, 1], bins=2, missing="category"),
    "ordinal": column("rank", "ordinal", values=["a", "b", "c"], missing="category"),
    "category": column("town", "category", values=["x", "y", "z"]),
    "category with other": column("job", "category", values=["x", "y"], other="o"),
    "one value": column("one", "category", values=["x"]),
}
SIGNS = np.array([[-RESPONSE_UNIT], [RESPONSE_UNIT]])
CLASSES = RESPONSE_UNIT * np.eye(2, dtype=np.int64)
NUMBERS = np.array([[-RESPONSE_UNIT], [RESPONSE_UNIT // 4]])


def kernel_of(*kinds, responses=SIGNS):
    schema = Schema((*(KINDS[kind] for kind in kinds), TARGET))
    return LinearMoments(schema, Features.of(schema, "pay"), "pay", responses)


def records_of(kernel):
    """Every record of the domain, as a batch of codes."""
    names = kernel.codes
    every = np.array(list(product(*(range(kernel.schema[name].size) for name in names))))
    return {name: every[:, index] for index, name in enumerate(names)}


def answers_of(kernel):
    """What each record of the domain adds to the published products and to the vectors."""
    codes = records_of(kernel)
    size = len(codes["pay"])
    matrices, vectors = [], []
    for row in range(size):
        out = kernel.zero()
        kernel.add(Batch(1, {name: column[[row]] for name, column in codes.items()}), out)
        matrices.append(out[:, : kernel.features.size][kernel.pairs])
        vectors.append(out[:, kernel.features.size :])
    return np.array(matrices), np.array(vectors)


MIXES = [
    ("number", "category"),
    ("number with missing",),
    ("wide number with missing", "number with missing", "ordinal"),
    ("wide number with missing", "another wide one"),
    ("ordinal", "category with other", "number"),
    ("one value", "category", "category with other"),
]


@pytest.mark.parametrize("kinds", MIXES)
@pytest.mark.parametrize(
    "responses", [SIGNS, CLASSES, NUMBERS], ids=["signs", "classes", "numbers"]
)
def test_sensitivities_are_the_largest_change_over_the_whole_domain(kinds, responses):
    kernel = kernel_of(*kinds, responses=responses)
    matrices, vectors = answers_of(kernel)
    notion = AddRemoveRecord()
    assert kernel.matrix_sensitivity(notion) == np.abs(matrices).sum(axis=1).max()
    assert kernel.vector_sensitivity(notion) == np.abs(vectors).sum(axis=(1, 2)).max()


def test_the_sum_form_of_five_equal_features_is_that_of_the_specification():
    """Four columns that reach 1 and the intercept: d = 5, every |x| = 1 / sqrt(d)."""
    columns = tuple(column(f"x{index}", "integer", bounds=[0, 1]) for index in range(4))
    schema = Schema((*columns, TARGET))
    kernel = LinearMoments(schema, Features.of(schema, "pay"), "pay", SIGNS)
    matrix = kernel.matrix_sensitivity(AddRemoveRecord()) / FEATURE_UNIT**2 / 5
    vector = kernel.vector_sensitivity(AddRemoveRecord()) / FEATURE_UNIT**2 / 5**0.5
    assert 2 * vector + matrix == pytest.approx(7.4721, abs=1e-4)
    assert vector / 2 + matrix / 8 == pytest.approx(1.4930, abs=1e-4)


def test_one_indicator_a_column_counts_not_all_of_them():
    """Bounds by the number of features, not of columns, would be far larger."""
    kernel = kernel_of("category", "category with other")
    unit = FEATURE_UNIT**2
    assert kernel.matrix_sensitivity(AddRemoveRecord()) == 4 * unit  # three pairs and n
    assert kernel.vector_sensitivity(AddRemoveRecord()) == 3 * unit


@pytest.mark.parametrize("kinds", MIXES)
def test_the_matrix_is_made_whole_from_what_is_published(kinds):
    kernel = kernel_of(*kinds)
    codes = records_of(kernel)
    chosen = plain_generator(1).integers(len(codes["pay"]), size=200)
    drawn = {name: column[chosen] for name, column in codes.items()}
    out = kernel.zero()
    kernel.add(Batch(200, drawn), out)
    size = kernel.features.size
    rows = kernel.features.matrix(drawn)
    assert np.array_equal(out[:, :size], rows.T @ rows)
    assert np.array_equal(out[:, size:], rows.T @ SIGNS[drawn["pay"]])
    matrix = out[:, :size]
    assert np.array_equal(kernel.fill(matrix[kernel.pairs].astype(float)), matrix)
    assert len(kernel.pairs[0]) < size * (size + 1) / 2 or not len(kernel.indicators)


def test_neither_the_cut_nor_the_merging_matters(monkeypatch):
    kernel = kernel_of("ordinal", "category", "number with missing")
    codes = records_of(kernel)
    batch = Batch(len(codes["pay"]), codes)
    whole, parts, merged = kernel.zero(), kernel.zero(), kernel.zero()
    kernel.add(batch, whole)
    for part in batch.cut(7):
        partial = kernel.zero()
        pickle.loads(pickle.dumps(kernel)).add(part, partial)
        kernel.merge(merged, partial)
    monkeypatch.setattr("dpublish.methods.linear_models.kernel_moments._CELLS", 50)
    kernel.add(batch, parts)
    assert np.array_equal(whole, parts)
    assert np.array_equal(whole, merged)


@pytest.mark.parametrize(
    "responses",
    [
        np.array([[0.5], [1.0]]),
        np.array([1, 2]),
        np.array([[0], [0], [0]]),
        np.array([[RESPONSE_UNIT + 1], [0]]),
        np.zeros((0, 1), dtype=np.int64),
    ],
)
def test_bad_responses_are_refused(responses):
    with pytest.raises(InvalidParameter, match="responses must"):
        kernel_of("number", responses=responses)


def test_other_neighbors_are_refused():
    kernel = kernel_of("number")
    for sensitivity in (kernel.matrix_sensitivity, kernel.vector_sensitivity):
        with pytest.raises(InvalidParameter):
            sensitivity(AddRemoveUnit("person"))
