"""A released model in scikit-learn's hands: piped, cross-validated, never refitted."""

import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.evaluation.evaluate import as_classifier
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

AGE = column("age", "integer", bounds=[0, 100])
SEX = column("sex", "category", values=["F", "M"])
#                   age  F    M   intercept
WEIGHTS = np.array([[2.0, 0.0, 1.0, -0.5]])


def make(values=("rich", "poor"), model="logistic", weights=WEIGHTS, target=None):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="model", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=seeded(1)
    )
    income = target or column("income", "category", values=list(values))
    return LinearModelRelease(
        receipt=receipt,
        schema=Schema((AGE, SEX, income)),
        model=model,
        target="income",
        weights=weights,
        expected={},
    )


def public_rows(count=60):
    rng = plain_generator(1)
    return pandas.DataFrame(
        {"age": rng.integers(0, 101, count), "sex": rng.choice(["F", "M"], count)}
    )


def test_classes_are_sorted_and_probabilities_follow_them():
    release, rows = make(), public_rows()
    classifier = as_classifier(release)
    assert classifier.classes_.tolist() == ["poor", "rich"]
    assert classifier.predict(rows).tolist() == release.predict(rows).to_pylist()
    probabilities = classifier.predict_proba(rows)
    assert probabilities[:, 0].tolist() == release.predict_proba(rows)["poor"].to_pylist()
    found = classifier.classes_[probabilities.argmax(axis=1)]
    assert found.tolist() == classifier.predict(rows).tolist()
    signs = classifier.decision_function(rows) > 0
    assert classifier.classes_[signs.astype(int)].tolist() == found.tolist()


def test_classes_keep_the_owners_type():
    assert as_classifier(make((0, 1))).classes_.tolist() == [0, 1]
    assert as_classifier(make((False, True))).predict(public_rows()).dtype == bool
    missing = column("income", "category", values=[0, 1], missing="category")
    several = make(target=missing, weights=np.repeat(WEIGHTS, 3, axis=0) * [[1], [2], [3]])
    assert as_classifier(several).classes_.tolist() == ["(missing)", "0", "1"]


def test_several_classes_are_scored_in_the_sorted_order():
    weights = np.array([[0.0, 0, 0, 1], [0, 5, 0, 0], [0, 0, 5, 0]])
    classifier = as_classifier(make(("c", "a", "b"), weights=weights))
    rows = public_rows(8)
    best = classifier.decision_function(rows).argmax(axis=1)
    assert classifier.classes_[best].tolist() == classifier.predict(rows).tolist()
    assert classifier.predict(rows).tolist() == ["a" if s == "F" else "b" for s in rows["sex"]]
    best = classifier.predict_proba(rows).argmax(axis=1)
    assert classifier.classes_[best].tolist() == classifier.predict(rows).tolist()


def test_a_class_of_missing_values_is_predicted_by_its_name():
    missing = column("income", "category", values=["x", "y"], missing="category")
    weights = np.array([[0.0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])
    classifier = as_classifier(make(target=missing, weights=weights))
    assert set(classifier.predict(public_rows(5))) == {"(missing)"}


def test_a_released_model_refuses_to_be_fitted():
    from sklearn.base import clone, is_classifier

    classifier = as_classifier(make())
    rows = public_rows()
    for one in (classifier, clone(classifier, safe=False), pickle.loads(pickle.dumps(classifier))):
        assert is_classifier(one)
        with pytest.raises(InvalidParameter, match="FrozenEstimator"):
            one.fit(rows, one.predict(rows))


def test_cross_validation_does_not_fit_it_silently():
    from sklearn.model_selection import cross_val_score

    classifier, rows = as_classifier(make()), public_rows()
    with pytest.raises((InvalidParameter, ValueError)):
        cross_val_score(classifier, rows, classifier.predict(rows), cv=3, error_score="raise")


def test_frozen_it_is_scored_by_cross_validation_as_it_is():
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import cross_val_score

    classifier, rows = as_classifier(make()), public_rows()
    truth = classifier.predict(rows)
    truth[:6] = "rich"
    frozen = FrozenEstimator(classifier)
    scores = cross_val_score(frozen, rows, truth, cv=3)
    assert scores.mean() == pytest.approx((truth == classifier.predict(rows)).mean())
    ranked = cross_val_score(frozen, rows, truth, cv=3, scoring="roc_auc")
    assert ranked.min() > 0.8  # sorted classes: the right one counts as positive


def test_it_works_at_the_end_of_a_pipeline():
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    rows = public_rows()
    classifier = as_classifier(make())
    renamed = rows.rename(columns={"age": "years"})
    rename = FunctionTransformer(lambda frame: frame.rename(columns={"years": "age"}))
    pipeline = Pipeline([("names", rename), ("model", FrozenEstimator(classifier))])
    found = pipeline.fit(renamed, classifier.predict(rows)).predict(renamed)
    assert found.tolist() == classifier.predict(rows).tolist()


def test_rows_without_names_are_read_in_order():
    classifier, rows = as_classifier(make()), public_rows()
    assert classifier.feature_names_in_.tolist() == ["age", "sex"]
    found = classifier.predict(rows.to_numpy(dtype=object))
    assert found.tolist() == classifier.predict(pa.table(rows)).tolist()
    with pytest.raises(InvalidQuery, match="2 columns"):
        classifier.predict(np.zeros((3, 5)))


def test_a_support_vector_machine_has_scores_and_no_probabilities():
    classifier = as_classifier(make(model="svm"))
    assert not hasattr(classifier, "predict_proba")
    assert classifier.decision_function(public_rows(4)).shape == (4,)


def test_a_model_of_numbers_is_no_classifier():
    numbers = column("income", "numeric", bounds=[0, 9])
    with pytest.raises(InvalidParameter, match="class"):
        as_classifier(make(model="linear", target=numbers)).predict(public_rows(3))


def test_a_grid_classifier_gives_probabilities_as_well():
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="model",
        settings={"target": "income"},
        budget=budget,
        neighbors=AddRemoveRecord(),
        rng=seeded(1),
    )
    income = column("income", "category", values=["rich", "poor"])
    release = PrivPfCRelease(
        receipt=receipt,
        schema=Schema((SEX, income)),
        axes=(SEX.axis(), income.axis()),
        cells=np.arange(4),
        counts=np.array([60, 20, 3, 31]),
        noise_rate=Fraction(1, 2),
        scores=np.array([500, -500, -1200, 1200]),
    )
    classifier, rows = as_classifier(release), public_rows()[["sex"]]
    probabilities = classifier.predict_proba(rows)
    assert probabilities[:, ::-1].tolist() == release.predict_proba(rows).tolist()
    found = classifier.classes_[probabilities.argmax(axis=1)]
    assert found.tolist() == classifier.predict(rows).tolist()
    assert set(found) == {"rich", "poor"}
    assert not hasattr(classifier, "decision_function")
