"""More than two classes: each against all others, with shares that add up to epsilon."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpublish.auditing.worlds import and_last, people
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.errors import DPublishError
from dpublish.methods.linear_models.task import ModelTask
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import SCHEMA
from replay import ROUNDING, Tape, path_loss, removal_loss, watch
from test_replay import runner

EPSILON = Fraction(3, 2)  # as in `runner`
TARGET = "town"
CLASSES = SCHEMA[TARGET].size
BY_CLASS = {
    "privgene": {"rounds": 2, "population": 20},
    "privlocal": {"rounds": 2},
    "private-erm": {},
    "output-perturbation": {},
    "private-svm": {},
}
"""Methods that fit one problem after the other; a record is in all of them."""
AT_ONCE = {"functional": {}, "model": {"pool": 5}, "gupt": {"blocks": 3}}
"""Methods that publish one thing for all classes, which costs what it does for two."""
PEOPLE = people(120, 8)
LAST = (
    {"age": 64, "sex": "Male", "height": 181.0, "town": "Nord"},
    {"age": 0, "sex": "Female", "height": 220.0, "town": "Atlantis"},
)


def method_of(name, **settings):
    given = {"target": TARGET, "predictors": ("age", "sex")}
    return make_method(name, {**given, **(BY_CLASS | AT_ONCE)[name], **settings})


def release_of(name, budget=None, **settings):
    budget = budget or Budget.seeded(EPSILON)
    table = open_table(PEOPLE, SCHEMA)
    return method_of(name, **settings).release(table, budget=budget, rng=seeded(3))


def class_costs(budget):
    """What each class costs, by its name, added up from the ends of the account."""
    last = budget.purpose.rpartition("/")[-1]
    if last.startswith("class "):
        return {last.removeprefix("class "): budget.cost()}
    return {name: cost for child in budget._children for name, cost in class_costs(child).items()}


@pytest.mark.parametrize("name", BY_CLASS)
def test_the_receipt_states_an_equal_share_for_every_class(name):
    budget = Budget.seeded(EPSILON)
    receipt = release_of(name, budget).receipt
    costs = class_costs(budget)
    assert list(costs) == list(SCHEMA[TARGET].axis().labels)
    assert len(costs) == CLASSES == 5
    assert len(set(costs.values())) == 1
    others = sum((share for purpose, share in receipt.shares if "/class " not in purpose), 0)
    assert sum(costs.values()) + others == EPSILON
    for label in costs:
        assert any(f"/class {label}" in purpose for purpose, _ in receipt.shares)
    assert budget.cost() == receipt.epsilon == EPSILON
    assert all(share.is_used for share in budget.account())


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_is_published_for_all_classes_at_once_has_no_shares_by_class(name):
    receipt = release_of(name).receipt
    assert not any("class " in purpose for purpose, _ in receipt.shares)
    assert sum(share for _, share in receipt.shares) == EPSILON


@pytest.mark.parametrize("last", LAST, ids=["listed", "elsewhere"])
@pytest.mark.parametrize("name", [*BY_CLASS, *AT_ONCE])
def test_the_account_of_one_against_the_rest_is_replayed(name, last):
    run = runner(method_of(name))
    played = Tape()
    seen = watch(partial(run, PEOPLE), played)
    assert removal_loss(run, and_last(PEOPLE, last), played, seen) <= float(EPSILON) + ROUNDING


def unpaid_shares(task, budget):
    """The twin: every class gets all of epsilon, and the account does not know of it."""
    budget.split(**{f"class {label}": 1 for label in task.target.axis().labels})
    return tuple(Budget.seeded(budget.epsilon) for _ in task.problems)


def one_share(task, budget):
    """Another twin: one budget is spent by every class."""
    return (budget,) * len(task.problems)


@pytest.mark.parametrize("twin", [unpaid_shares, one_share])
@pytest.mark.parametrize("name", BY_CLASS)
def test_a_twin_that_charges_every_class_epsilon_is_caught_by_the_account(monkeypatch, name, twin):
    monkeypatch.setattr(ModelTask, "split", twin)
    with pytest.raises((DPublishError, RuntimeError), match=r"spen|left|used"):
        release_of(name)


@pytest.mark.parametrize("name", ["private-svm", "output-perturbation", "privgene"])
def test_a_twin_that_charges_every_class_epsilon_is_caught_by_its_loss(monkeypatch, name):
    """If the account were fooled: the same record, in all problems, loses more than epsilon."""

    def spent_shares(task, budget):
        budget.spend()
        return tuple(Budget.seeded(budget.epsilon) for _ in task.problems)

    def loss():
        run = runner(method_of(name))
        nothing = PEOPLE.slice(0, 0)
        played, replayed = Tape(), Tape()
        seen = watch(partial(run, nothing), played)
        replayed = Tape(played)
        assert watch(partial(run, and_last(nothing, LAST[0])), replayed) == seen
        return path_loss(played, replayed)

    honest = loss()
    monkeypatch.setattr(ModelTask, "split", spent_shares)
    assert honest <= float(EPSILON) + ROUNDING < loss()


@pytest.mark.parametrize("name", ["privgene", "privlocal", "private-erm", "functional"])
def test_probabilities_of_many_classes_add_up_and_agree_with_predictions(name):
    release = release_of(name)
    rows = PEOPLE.select(["age", "sex"])
    probabilities = np.column_stack(release.predict_proba(rows).columns)
    assert probabilities.shape == (PEOPLE.num_rows, CLASSES)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert (probabilities >= 0).all()
    labels = np.array(release.classes.labels)
    assert (labels[probabilities.argmax(axis=1)] == np.array(release.predict(rows))).all()
