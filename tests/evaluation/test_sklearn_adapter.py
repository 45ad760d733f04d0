"""Classifiers learn what there is to learn, and stay calm where there is nothing."""

import warnings
from importlib import util

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.evaluation import sklearn_adapter
from dpublish.evaluation.features import encode_classes
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS, Kind, fit
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("size", "numeric", bounds=[0, 100]),
        column("hue", "category", values=["red", "green", "blue"]),
        column("fruit", "category", values=["apple", "pear", "plum"]),
    )
)


def fruits(count, seed=1):
    """Red ones are plums; of the others the big ones are pears."""
    rng = plain_generator(seed)
    hue = np.array(["red", "green", "blue"])[rng.integers(0, 3, count)]
    size = np.where(rng.random(count) < 0.5, rng.uniform(0, 40, count), rng.uniform(60, 100, count))
    fruit = np.where(hue == "red", "plum", np.where(size > 50, "pear", "apple"))
    return pa.table({"size": size, "hue": hue, "fruit": fruit})


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_learns_a_simple_rule(name):
    fitted = fit(fruits(600), SCHEMA, "fruit", name)
    unseen = fruits(300, seed=2)
    wrong = fitted.predict(unseen) != encode_classes(unseen, SCHEMA, "fruit")
    assert wrong.mean() < 0.02


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    ("rows", "predicted"),
    [
        (fruits(0), 0),  # nothing to learn from: the first class
        (fruits(40).slice(0, 1), None),
        (pa.table({"size": [1.0] * 4, "hue": ["red"] * 4, "fruit": ["pear"] * 4}), 1),
        (pa.table({"size": [1.0, 2.0], "hue": ["red", "blue"], "fruit": [None, "?"]}), 0),
        (pa.table({"fruit": ["apple", "plum", "plum"]}), 2),  # nothing to tell them apart by
    ],
)
def test_where_there_is_nothing_to_learn_the_majority_class_is_predicted(name, rows, predicted):
    if predicted is None:
        predicted = encode_classes(rows, SCHEMA, "fruit")[0]
    fitted = fit(rows, SCHEMA, "fruit", name)
    assert fitted.predict(fruits(5)).tolist() == [predicted] * 5
    assert fitted.predict(fruits(0)).tolist() == []


def test_only_the_columns_that_the_rows_have_are_used():
    fitted = fit(fruits(300).drop_columns(["hue"]), SCHEMA, "fruit", "tree")
    assert [c.name for c in fitted.columns] == ["size"]
    assert len(fitted.predict(fruits(10))) == 10


def test_what_cannot_take_many_rows_is_given_a_draw_of_them(monkeypatch):
    seen = []

    class Counting:
        def fit(self, features, classes):
            seen.append((len(features), len(classes)))

    monkeypatch.setitem(CLASSIFIERS, "svm", Kind("counting", lambda seed: Counting(), 50))
    fit(fruits(200), SCHEMA, "fruit", "svm")
    fit(fruits(30), SCHEMA, "fruit", "svm")
    assert seen == [(50, 50), (30, 30)]


def test_warnings_of_the_library_are_not_shown(monkeypatch):
    class Worried:
        def fit(self, features, classes):
            warnings.warn("did not converge", UserWarning, stacklevel=1)

    monkeypatch.setitem(CLASSIFIERS, "tree", Kind("warning", lambda seed: Worried()))
    fit(fruits(20), SCHEMA, "fruit", "tree")  # a warning would be an error here


def test_the_same_seed_gives_the_same_classifier():
    unseen = fruits(500, seed=3)
    twice = [fit(fruits(60), SCHEMA, "fruit", "boosting", seed=4).predict(unseen) for _ in "ab"]
    assert np.array_equal(*twice)


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch):
    find = util.find_spec
    monkeypatch.setattr(
        sklearn_adapter, "find_spec", lambda name: None if name == "sklearn" else find(name)
    )
    with pytest.raises(InvalidParameter, match=r'pip install "dpublish\[evaluate\]"'):
        fit(fruits(5), SCHEMA, "fruit", "tree")


def test_a_classifier_that_is_not_known_is_refused():
    with pytest.raises(InvalidParameter, match="tree"):
        fit(fruits(5), SCHEMA, "fruit", "trees")
