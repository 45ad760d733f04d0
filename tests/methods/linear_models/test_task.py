"""What a model is to predict: checked from the schema alone, and paid for class by class."""

from fractions import Fraction

import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget

AGE = column("age", "integer", bounds=[0, 9])
SEX = column("sex", "category", values=["F", "M"])
WORK = column("work", "ordinal", values=["none", "part", "full"])
WAGE = column("wage", "numeric", bounds=[0, 9], missing="category")
SCHEMA = Schema((SEX, AGE, WORK, WAGE))


def test_two_classes_make_one_problem_that_gets_the_whole_budget():
    task = ModelTask.of(SCHEMA, "sex", ("work", "age"))
    assert task.schema.names == ("work", "age", "sex")
    assert task.features.columns == ("work", "age")
    assert task.problems == ((1,),)
    budget = Budget.seeded("0.5")
    assert task.split(budget) == (budget,)
    assert not budget.is_used


def test_more_classes_make_a_problem_each_and_their_budgets_add_up():
    task = ModelTask.of(SCHEMA, "work")
    assert task.problems == ((0,), (1,), (2,))
    budget = Budget.seeded("0.5")
    budgets = task.split(budget)
    assert [share.purpose for share in budgets] == [
        f"release/class {x}" for x in ("none", "part", "full")
    ]
    assert {share.epsilon for share in budgets} == {task.share(Fraction(1, 2))} == {Fraction(1, 6)}
    assert budget.cost() == sum(share.spend() for share in budgets) == Fraction(1, 2)


def test_a_linear_model_has_one_problem_without_classes():
    task = ModelTask.of(SCHEMA, "age", model="linear", models=("linear",))
    assert task.problems == ((),)
    assert task.share(Fraction(1)) == 1


@pytest.mark.parametrize(
    ("target", "predictors", "model", "message"),
    [
        ("sex", (), "linear", "no model"),
        ("sex", (), "forest", "no model"),
        ("job", (), "svm", "no column"),
        ("age", (), "svm", "holds numbers"),
        ("sex", ("sex",), "svm", "itself"),
        ("sex", ("age", "age"), "svm", "twice"),
    ],
)
def test_what_cannot_be_fitted_is_refused(target, predictors, model, message):
    with pytest.raises(InvalidParameter, match=message):
        ModelTask.of(SCHEMA, target, predictors, model)


def test_a_linear_model_needs_a_target_of_numbers_only():
    for target, message in (("sex", "has classes"), ("wage", "missing")):
        with pytest.raises(InvalidParameter, match=message):
            ModelTask.of(SCHEMA, target, model="linear", models=("linear",))


def test_one_class_and_units_of_several_rows_are_refused():
    only = column("only", "category", values=["x"])
    with pytest.raises(InvalidParameter, match="one class"):
        ModelTask.of(Schema((AGE, only)), "only")
    with pytest.raises(InvalidParameter, match="person may have several"):
        ModelTask.of(Schema((AGE, SEX), unit="person"), "sex")
