"""A published model: what it predicts, in which units, and what it refuses to be."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import DPublishError, InvalidParameter, InvalidQuery
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded

AGE = column("age", "integer", bounds=[0, 100])
SEX = column("sex", "category", values=["F", "M"])
RISK = column("risk", "category", values=["low", "high"])
WORK = column("work", "category", values=["none", "part"], missing="category")
WAGE = column("wage", "numeric", bounds=[0, 200], missing="drop")
ROWS = pa.table({"age": [0, 50, 100, None], "sex": ["F", "M", "F", "?"]})
#                   age  F    M   intercept
WEIGHTS = np.array([[2.0, 0.0, 1.0, -0.5]])


def receipt():
    budget = Budget.seeded(1)
    budget.spend()
    return Receipt.issue(
        method="model",
        settings={"target": "risk"},
        budget=budget,
        neighbors=AddRemoveRecord(),
        rng=seeded(1),
    )


def make(predicted=RISK, **changes):
    settings = {
        "receipt": receipt(),
        "schema": Schema((AGE, SEX, predicted)),
        "model": "logistic",
        "target": predicted.name,
        "weights": WEIGHTS,
        "expected": {"excess_loss_95": 3.0},
    }
    return LinearModelRelease(**{**settings, **changes})


def make_many(model="logistic"):
    weights = np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0.5]])
    return make(WORK, model=model, weights=weights)


def make_linear():
    return make(WAGE, model="linear")


def again(model):
    tables = model.tables()
    return LinearModelRelease.from_parts(
        receipt=model.receipt, schema=model.schema, metadata=model.metadata(), tables=tables
    )


def test_a_positive_score_predicts_the_second_class():
    codes = {"age": np.array([0, 50, 100]), "sex": np.array([0, 1, 0])}
    assert make().decision(codes)[:, 0].tolist() == [-2.5, 0.5, 1.5]
    assert make().predict(ROWS).to_pylist() == ["low", "high", "high", "low"]


def test_unknown_values_add_nothing_to_a_score():
    codes = {"age": np.array([-1]), "sex": np.array([-1])}
    assert make().decision(codes).tolist() == [[-0.5]]


def test_the_highest_score_wins_among_several_classes_and_missing_is_one():
    model = make_many()
    assert model.predict(ROWS).to_pylist() == ["none", "part", "none", None]
    assert model.scored == ("none", "part", "(missing)")


def test_probabilities_follow_the_scores_and_add_up_to_one():
    found = make().predict_proba(ROWS)
    assert found.column_names == ["low", "high"]
    assert found["high"].to_numpy()[1] == pytest.approx(1 / (1 + np.exp(-0.5)))
    many = np.column_stack(make_many().predict_proba(ROWS).columns)
    assert many.sum(axis=1) == pytest.approx(1)
    assert many.argmax(axis=1).tolist() == [0, 1, 0, 2]


def test_probabilities_are_sound_where_no_class_is_likely_at_all():
    many = replace(make_many(), weights=np.full((3, 4), -1000.0))
    assert np.column_stack(many.predict_proba(ROWS.slice(1, 1)).columns) == pytest.approx(1 / 3)


def test_a_support_vector_machine_gives_no_probabilities():
    svm = make(model="svm")
    assert svm.predict(ROWS).equals(make().predict(ROWS))
    with pytest.raises(InvalidQuery, match="no probabilities"):
        svm.predict_proba(ROWS)


def test_a_linear_model_predicts_numbers_within_the_bounds():
    codes = {"age": np.array([0, 50, 100, 51]), "sex": np.array([0, 1, 0, -1])}
    assert make_linear().predict_numbers(codes).round(6).tolist()[:3] == [0, 150, 200]
    assert make_linear().predict(ROWS.slice(0, 3)).to_pylist() == [0, 150, 200]
    assert make_linear().predict_codes(codes).tolist()[:3] == [0, 12, 15]
    with pytest.raises(InvalidQuery, match="classes"):
        make().predict_numbers(codes)


def test_coefficients_in_own_units_give_the_scores_of_values_in_own_units():
    table = make().coefficients()
    own = {row["feature"]: row["weight_in_own_units"] for row in table.to_pylist()}
    assert own["(intercept)"] + 50 * own["age"] + own["sex=M"] == pytest.approx(0.5)
    assert own["(intercept)"] + 100 * own["age"] + own["sex=F"] == pytest.approx(1.5)


def test_coefficients_of_a_linear_model_give_the_number_itself():
    table = make_linear().coefficients()
    own = {row["feature"]: row["weight_in_own_units"] for row in table.to_pylist()}
    assert own["(intercept)"] + 50 * own["age"] + own["sex=M"] == pytest.approx(150)


def test_a_number_with_one_value_only_is_predicted_as_that():
    constant = column("wage", "integer", bounds=[7, 7])
    model = make(constant, model="linear")
    assert model.predict(ROWS.slice(0, 3)).to_pylist() == [7, 7, 7]
    assert model.coefficients()["weight_in_own_units"].to_pylist()[:3] == [0, 0, 0]


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("first", [make, make_many, make_linear])
def test_a_model_survives_its_parts(first, noisy):
    model = first()
    rng = plain_generator(1)
    model = replace(model, weights=rng.normal(size=model.weights.shape), notes=("one", "two"))
    if noisy:
        model = replace(model, standard_deviation=rng.uniform(size=model.weights.shape))
    found = again(model)
    assert found == model
    assert found.weights.tolist() == model.weights.tolist()
    assert (found.standard_deviation is None) != noisy
    assert found != replace(model, weights=model.weights + 1)
    assert found.expected_error() == {"excess_loss_95": 3.0}


def test_the_summary_states_what_is_predicted_from_what():
    shown = make(notes=("warm start",)).summary()
    assert shown["model"] == "logistic regression"
    assert shown["predicts"] == "risk (low, high)"
    assert shown["from"] == "age, sex; 4 weights"
    assert shown["note"] == "warm start"
    assert make_linear().summary()["predicts"] == "wage (0 to 200)"
    assert make_many().summary()["predicts"] == "work (none, part, missing)"


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "forest"},
        {"model": "linear"},
        {"target": "wage"},
        {"weights": WEIGHTS[:, 1:]},
        {"weights": np.vstack([WEIGHTS, WEIGHTS])},
        {"weights": WEIGHTS.astype(np.float32)},
        {"weights": np.full_like(WEIGHTS, np.inf)},
        {"standard_deviation": -np.ones((1, 4))},
        {"standard_deviation": np.ones((1, 3))},
        {"expected": {"error": "small"}},
        {"schema": Schema((AGE, SEX, column("risk", "category", values=["low"])))},
    ],
)
def test_what_no_method_would_publish_is_refused(changes):
    with pytest.raises(InvalidParameter):
        make(**changes)


def test_a_table_of_weights_that_lacks_features_is_refused():
    model = make()
    for table in (model.coefficients().slice(1), model.coefficients().slice(0, 0)):
        with pytest.raises(DPublishError):
            LinearModelRelease.from_parts(
                receipt=model.receipt,
                schema=model.schema,
                metadata=model.metadata(),
                tables={"weights": table},
            )


def test_a_model_gives_no_rows_and_no_counts():
    with pytest.raises(InvalidQuery):
        make().rows(3)
    with pytest.raises(InvalidQuery):
        make().count("sex = F")
