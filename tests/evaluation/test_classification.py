"""What a release is worth for classifying, measured on rows that it has not seen."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.released import Release
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.evaluation.classification import (
    HeldOut,
    evaluate_release,
    evaluate_true_rows,
    stratified_folds,
)
from dpublish.evaluation.evaluations import Request, evaluate
from dpublish.evaluation.metrics.classification import misclassification
from dpublish.randomness import plain_generator

SCHEMA = Schema(
    (
        column("sex", "category", values=["F", "M"]),
        column("pay", "category", values=["low", "high"]),
    )
)
ROWS = pa.table({"sex": ["F", "M", "M", "F", "M"], "pay": ["low", "high", "high", "high", "?"]})


class Told(Release):
    """A release that is told what to say; only what is asked of it is there."""

    kind = "told"
    schema = SCHEMA
    tables = metadata = from_parts = summary = expected_error = None

    def __init__(self, settings=None):
        self.receipt = SimpleNamespace(settings=settings or {})


class Predicting(Told):
    def predict(self, rows):
        return pa.array(["high"] * rows.num_rows)


class Drawing(Told):
    def rows(self, n=None, *, seed=None):
        return pa.table({"sex": ["F", "M"] * 50, "pay": ["low", "high"] * 50})


Silent = type("Silent", (Told,), {})
for kind in (Told, Predicting, Drawing, Silent):
    kind.__abstractmethods__ = frozenset()


def held_out(rows=ROWS):
    return HeldOut.of(rows, SCHEMA, "pay")


def by_name(scores):
    return {score.classifier: score.misclassification for score in scores}


def test_rows_whose_class_is_not_known_are_not_measured_on():
    assert held_out().classes.tolist() == [0, 1, 1, 1]
    assert held_out().rows.num_rows == 4
    with pytest.raises(InvalidParameter, match="known class"):
        held_out(ROWS.slice(4))


def test_a_release_that_classifies_is_measured_as_it_is():
    scores = evaluate_release(Predicting(), held_out(), target="pay")
    assert by_name(scores) == {"direct": 0.25}
    assert {score.basis for score in scores} == {"release"}


def test_a_release_that_gives_rows_trains_classifiers():
    scores = evaluate_release(Drawing(), held_out(), target="pay", classifiers=["direct", "tree"])
    assert by_name(scores) == {"tree": 0.25}  # F is low and M is high; one F is high


def test_references_come_from_the_rows_to_train_on_not_from_those_measured_on():
    train = pa.table({"sex": ["F"] * 30 + ["M"] * 20, "pay": ["low"] * 30 + ["high"] * 20})
    scores = evaluate_true_rows(
        train, held_out(), schema=SCHEMA, target="pay", classifiers=["direct", "tree"]
    )
    assert by_name(scores) == {"majority": 0.75, "tree": 0.25}
    assert {score.basis for score in scores} == {"true rows"}


@pytest.mark.parametrize("names", [[], ["forest"], ["tree", "Direct"]])
def test_classifiers_that_are_not_known_are_refused(names):
    with pytest.raises(InvalidParameter, match="classifier"):
        evaluate_release(Predicting(), held_out(), target="pay", classifiers=names)


def test_the_evaluations_are_picked_by_what_the_release_can_do():
    (found,) = evaluate(Request(Predicting({"target": "pay"}), ROWS, classifiers=("direct",)))
    assert (found.name, found.figures["target"], found.figures["rows"]) == (
        "classification",
        "pay",
        4,
    )
    own, majority, ridge = found.rows
    assert own == ["the release's own classifier", "0.2500", "", "", ""]
    assert majority == ["always the majority class", "", "", "0.2500", ""]
    assert ridge[:2] == ["ridge regression", ""]
    train = Request(Drawing(), ROWS, train=ROWS, target="pay", classifiers=("tree", "svm"))
    found = evaluate(train)[-1]
    assert found.name == "classification"
    assert [row[0].split()[0] for row in found.rows] == [
        "decision",
        "support",
        "always",
        "ridge",
    ]
    assert any("8,000" in note for note in found.notes)
    for odd in (Silent({"target": "pay"}), Predicting({"target": "nonsense"})):
        with pytest.raises(InvalidParameter, match="nothing can be measured"):
            evaluate(Request(odd, ROWS))
    with pytest.raises(InvalidParameter, match="serves none"):
        evaluate(Request(Drawing(), ROWS, target="pay", classifiers=("direct",)))


@pytest.mark.parametrize("folds", [2, 3, 10])
def test_folds_hold_equal_parts_of_every_class(folds):
    classes = plain_generator(5).choice(4, size=997, p=[0.7, 0.2, 0.09, 0.01])
    found = stratified_folds(classes, folds, seed=1)
    for rows in [np.ones_like(classes, dtype=bool), *(classes == c for c in range(4))]:
        sizes = np.bincount(found[rows], minlength=folds)
        assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(found, stratified_folds(classes, folds, seed=1))
    assert not np.array_equal(found, stratified_folds(classes, folds, seed=2))


def test_folds_do_not_follow_the_order_of_the_rows():
    found = stratified_folds(np.zeros(1000, dtype=np.int64), 10, seed=1)
    turns = found == np.arange(1000) % 10  # dealing out unshuffled rows would agree everywhere
    assert turns.mean() < 0.2


def test_the_error_is_the_part_that_is_wrong():
    assert misclassification(np.array([1, 1, 0]), np.array([1, 0, 0])) == pytest.approx(1 / 3)
    with pytest.raises(InvalidParameter, match="no row"):
        misclassification(np.array([]), np.array([]))
    with pytest.raises(InvalidParameter, match="equally many"):
        misclassification(np.array([1]), np.array([1, 0]))
