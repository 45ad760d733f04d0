"""Features: public, whole, and bounded over the domain by enumeration."""

from itertools import product

import numpy as np
import pytest

from dpublish.data.features import FEATURE_UNIT, MAX_FEATURES, Features, Scale, scaled_leaves
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.randomness import plain_generator

AGE = column("age", "integer", bounds=[0, 4], missing="category")
HEIGHT = column("height", "numeric", bounds=[1, 2], bins=4)
GRADE = column("grade", "ordinal", values=["low", "mid", "high"], missing="category")
SEX = column("sex", "category", values=["F", "M"], other="X")
INCOME = column("income", "category", values=["poor", "rich"])
SCHEMA = Schema((AGE, HEIGHT, GRADE, SEX, INCOME))
FEATURES = Features.of(SCHEMA, "income")


def whole_domain(features):
    """Codes of every record that the domain allows."""
    cells = np.array([*product(*(range(c.size) for c in features.predictors))])
    return dict(zip(features.columns, cells.T, strict=True))


def draw_weights(seed, count=7, largest=3000):
    return plain_generator(seed).integers(-largest, largest + 1, (count, FEATURES.size))


def test_features_are_named_and_grouped_by_column():
    assert FEATURES.columns == ("age", "height", "grade", "sex")
    assert FEATURES.names == (
        "age",
        "age=(missing)",
        "height",
        "grade",
        "grade=(missing)",
        "sex=F",
        "sex=M",
        "sex=X",
        "(intercept)",
    )
    assert FEATURES.size == 9
    assert FEATURES.groups == ((0, 1), (2,), (3, 4), (5, 6, 7), (8,))


def test_numbers_are_told_by_the_middle_of_their_leaf_on_the_scale_of_the_bounds():
    assert scaled_leaves(HEIGHT).tolist() == [-768, -256, 256, 768]
    ages = column("age", "integer", bounds=[0, 9], bins=2)  # 0..4 and 5..9
    assert (scaled_leaves(ages) / FEATURE_UNIT).round(3).tolist() == [-0.556, 0.556]
    assert scaled_leaves(GRADE).tolist() == [-FEATURE_UNIT, 0, FEATURE_UNIT]


def test_a_column_with_one_value_only_says_nothing():
    assert scaled_leaves(column("age", "integer", bounds=[7, 7])).tolist() == [0]
    assert scaled_leaves(column("grade", "ordinal", values=["only"])).tolist() == [0]


def test_a_missing_value_has_its_own_feature_and_no_number():
    codes = {"age": [5, 2], "height": [0, 0], "grade": [3, 2], "sex": [2, 0]}
    found = FEATURES.matrix({name: np.array(x) for name, x in codes.items()}) / FEATURE_UNIT
    assert found.tolist() == [
        [0, 1, -0.75, 0, 1, 0, 0, 1, 1],
        [0, 0, -0.75, 1, 0, 1, 0, 0, 1],
    ]


def test_an_unknown_code_gives_zeros_for_its_column_alone():
    codes = {name: np.array([-1]) for name in FEATURES.columns}
    assert FEATURES.matrix(codes).tolist() == [[0] * 8 + [FEATURE_UNIT]]
    with pytest.raises(InvalidQuery, match="'sex'"):
        FEATURES.matrix({name: codes[name] for name in ("age", "height", "grade")})


def test_no_record_of_the_domain_exceeds_the_norm_and_one_attains_it():
    features = FEATURES.matrix(whole_domain(FEATURES)) / FEATURE_UNIT
    largest = np.sqrt(np.square(features).sum(axis=1)).max()
    assert largest <= FEATURES.norms
    without_height = Features((AGE, GRADE, SEX))  # whose leaves' middles are below 1
    features = without_height.matrix(whole_domain(without_height)) / FEATURE_UNIT
    largest = np.sqrt(np.square(features).sum(axis=1)).max()
    assert largest == pytest.approx(without_height.norms, rel=1e-15)


def test_sum_and_distance_are_the_largest_over_the_whole_domain_exactly():
    everyone = FEATURES.matrix(whole_domain(FEATURES))
    weights = draw_weights(1)
    sums = everyone @ weights.T
    assert (FEATURES.largest_sum(weights) * FEATURE_UNIT == np.abs(sums).max(axis=0)).all()
    gaps = np.abs(sums[:, :, None] - sums[:, None, :]).max(axis=0)
    assert (FEATURES.distances(weights) * FEATURE_UNIT == gaps).all()
    assert FEATURES.distance(weights[0], weights[1]) * FEATURE_UNIT == gaps[0, 1]


def test_a_block_of_a_category_counts_once_and_its_plain_sum_would_be_too_large():
    weights = np.array([0, 0, 0, 0, 0, 5, 5, 5, -5])
    assert FEATURES.largest_sum(weights) == 0  # the same for all records, and taken back
    assert np.abs(weights).sum() == 20


def test_products_weigh_each_leaf():
    weights = draw_weights(2)[0].astype(float)
    *blocks, intercept = FEATURES.products(weights)
    codes = whole_domain(FEATURES)
    sums = intercept[0] + sum(
        b[codes[name]] for name, b in zip(FEATURES.columns, blocks, strict=True)
    )
    assert np.allclose(sums, FEATURES.matrix(codes) @ weights / FEATURE_UNIT)


def test_weights_in_own_units_give_the_same_sums():
    schema = Schema((AGE, GRADE, SEX, INCOME))
    features = Features.of(schema, "income")
    weights = draw_weights(3)[0, : features.size].astype(float)
    own = dict(features.explain(weights))
    assert list(own) == list(features.names)
    codes = whole_domain(features)
    scores = features.matrix(codes) @ weights / FEATURE_UNIT
    for index, score in enumerate(scores):
        age, grade, sex = (int(codes[name][index]) for name in features.columns)
        said = own["(intercept)"] + own[f"sex={SEX.axis().labels[sex]}"]
        said += own["age=(missing)"] if age == 5 else own["age"] * age
        said += own["grade=(missing)"] if grade == 3 else own["grade"] * grade
        assert said == pytest.approx(score)


def test_the_scale_is_that_of_public_bounds():
    slope, offset = Scale.of(HEIGHT)
    assert (slope * 1 + offset, slope * 2 + offset) == (-1, 1)


@pytest.mark.parametrize(
    ("target", "predictors", "message"),
    [
        ("wage", (), "wage"),
        ("income", ("age", "wage"), "wage"),
        ("income", ("age", "age"), "twice"),
        ("income", ("income",), "itself"),
    ],
)
def test_columns_that_do_not_fit_are_refused(target, predictors, message):
    with pytest.raises(InvalidParameter, match=message):
        Features.of(SCHEMA, target, predictors)


def test_units_of_several_rows_and_too_many_features_are_refused():
    with pytest.raises(InvalidParameter, match="person may have several"):
        Features.of(Schema((AGE, INCOME), unit="person"), "income")
    with pytest.raises(InvalidParameter, match="no column"):
        Features.of(Schema((INCOME,)), "income")
    many = column("town", "category", values=[f"t{i}" for i in range(MAX_FEATURES)])
    with pytest.raises(InvalidParameter, match="features"):
        Features.of(Schema((many, INCOME)), "income")
