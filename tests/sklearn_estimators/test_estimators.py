"""Private estimators: one paid release a fit, public facts told, and no private value in errors."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpublish import Schema, column, load
from dpublish.errors import BudgetExhausted
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit
from dpublish.sklearn import (
    PrivateClassifier,
    PrivateKMeans,
    PrivateLogisticRegression,
    PrivateRegressor,
    RefitRefused,
)

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("sex", "category", values=["F", "M"]),
        column("pay", "category", values=["low", "high"]),
    )
)


def people(n=600):
    rng = np.random.RandomState(3)
    age = rng.randint(0, 100, n)
    return pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], n)}), pd.Series(
        np.where(age > 49, "high", "low"), name="pay"
    )


def spent(books, dataset="people"):
    with Ledger(books) as ledger:
        return ledger.status(dataset).spent


def test_a_fit_is_one_paid_release(books, paying, points, tmp_path):
    X, y, _ = points
    fitted = PrivateClassifier(**paying, classes=[0, 1], output=tmp_path / "out").fit(X, y)
    assert spent(books) == 100
    assert fitted.release_.receipt.epsilon == 100
    assert fitted.release_.receipt.is_private
    assert load(tmp_path / "out").receipt.release_id == fitted.release_.receipt.release_id
    with Ledger(books) as ledger:
        assert [grant.state for grant in ledger.status("people").grants] == ["published"]
    assert fitted.score(X, y) > 0.9
    assert fitted.classes_.tolist() == [0, 1]
    assert np.allclose(fitted.predict_proba(X).sum(axis=1), 1)
    assert spent(books) == 100  # predicting is free


def test_a_second_fit_is_refused_and_a_clone_pays_again(books, paying, points):
    X, y, _ = points
    fitted = PrivateClassifier(**paying, classes=[0, 1]).fit(X, y)
    with pytest.raises(RefitRefused, match="cost epsilon again; fit a clone"):
        fitted.fit(X, y)
    assert spent(books) == 100
    clone(fitted).fit(X, y)
    assert spent(books) == 200
    fitted.set_params(allow_refit=True).fit(X, y)
    assert spent(books) == 300


def test_the_cap_ends_it(books, paying, points):
    X, y, _ = points
    common = paying | {"dataset": "little", "epsilon": "0.6"}
    PrivateClassifier(**common, classes=[0, 1]).fit(X, y)
    with pytest.raises(BudgetExhausted, match=r"has 0\.4 left"):
        PrivateClassifier(**common, classes=[0, 1]).fit(X, y)
    assert spent(books, "little") == Fraction("0.6")


def test_cross_validation_pays_once_a_fold(books, paying, points):
    X, y, _ = points
    scores = cross_val_score(PrivateClassifier(**paying, classes=[0, 1]), X, y, cv=3)
    assert scores.min() > 0.9
    assert spent(books) == 300


MISSING = [
    ({"bounds": None}, "bounds="),
    ({"classes": None}, "classes="),
    ({"ledger": None}, "ledger='books.db'"),
    ({"dataset": None}, "dataset='people'"),
    ({"epsilon": None}, "epsilon='0.5'"),
    ({"bounds": [(0, 1)]}, "1 pairs for 2 features"),
    ({"bounds": (1, 0)}, "must rise"),
    ({"bounds": "0..1"}, "a pair"),
    ({"bounds": {"x0": (0, 1)}}, "'x1'"),
    ({"classes": "ab"}, "list of all classes"),
    ({"classes": [1, "1"]}, "all texts or all numbers"),
    ({"ledger": 3}, "not int"),
    ({"schema": 3}, "not int"),
    ({"schema": SCHEMA}, "target="),
    ({"schema": SCHEMA, "target": "age"}, "PrivateRegressor"),
    ({"schema": SCHEMA, "target": "pya"}, "did you mean 'pay'"),
    ({"settings": {"pol": 3}}, "did you mean 'pool'"),
]


@pytest.mark.parametrize(("changes", "told"), MISSING)
def test_what_is_not_told_is_asked_for_and_nothing_is_spent(books, paying, points, changes, told):
    X, y, _ = points
    with pytest.raises(ValueError, match=told):
        PrivateClassifier(**{**paying, "classes": [0, 1], **changes}).fit(X, y)
    assert spent(books) == 0


def test_a_regressor_needs_the_range_of_its_target(paying, points):
    with pytest.raises(ValueError, match="target_bounds="):
        PrivateRegressor(**paying).fit(points[0], points[2])


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame(frame.to_dict("list")),
    "arrow": lambda frame: pa.table(frame.to_dict("list")),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_read_by_name_with_a_schema(books, paying, kind):
    X, y = people()
    made = PrivateClassifier(**paying | {"bounds": None}, schema=SCHEMA, target="pay")
    fitted = made.fit(FRAMES[kind](X), y.to_numpy())
    assert fitted.classes_.tolist() == ["high", "low"]
    assert fitted.score(FRAMES[kind](X), y.to_numpy()) > 0.9
    assert fitted.n_features_in_ == 2
    assert fitted.predict_proba(FRAMES[kind](X)).shape == (600, 2)
    turned = X[["sex", "age"]]
    if kind == "pandas":
        assert list(fitted.feature_names_in_) == ["age", "sex"]
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(turned)


def test_a_schema_file_and_the_name_of_y_will_do(paying, tmp_path):
    (tmp_path / "people.toml").write_text(
        '[columns.age]\nkind = "integer"\nbounds = [0, 99]\nbins = 10\n'
        '[columns.pay]\nkind = "category"\nvalues = ["low", "high"]\n'
    )
    X, y = people()
    made = PrivateClassifier(**paying | {"bounds": None}, schema=str(tmp_path / "people.toml"))
    assert made.fit(X[["age"]], y).score(X[["age"]], y) > 0.9
    assert made.release_.receipt.neighbors == AddRemoveRecord()


def test_all_rows_of_a_person_are_hidden_where_the_schema_names_a_unit(paying):
    schema = Schema(SCHEMA.columns, unit="who")
    X, y = people()
    with_unit = X.assign(who=np.arange(len(X)) // 2)
    made = PrivateClassifier(
        **paying | {"bounds": None}, schema=schema, settings={"contribution": 2}
    )
    made.fit(with_unit, y)
    assert made.release_.receipt.neighbors == AddRemoveUnit("who")
    assert made.n_features_in_ == 2
    assert made.score(X, y) > 0.9


def test_logistic_regression_has_weights_in_own_units(paying, points):
    X, y, _ = points
    fitted = PrivateLogisticRegression(**paying, classes=[0, 1], bins=4).fit(X, y)
    assert fitted.score(X, y) > 0.8
    assert fitted.coef_.shape == (1, len(fitted.coef_names_))
    assert fitted.intercept_.shape == (1,)
    weights = dict(zip(fitted.coef_names_, fitted.coef_[0], strict=True))
    cells = [weight for name, weight in weights.items() if name.startswith("x0")]
    assert cells[0] < cells[-1]


def test_two_classes_in_any_order_score_the_second_of_the_sorted_ones(paying):
    X, y = people()
    high_first = SCHEMA.columns[2]
    assert high_first.categories == ("low", "high")  # not sorted
    made = PrivateLogisticRegression(**paying | {"bounds": None}, schema=SCHEMA, target="pay")
    fitted = made.fit(X, y)
    assert fitted.classes_.tolist() == ["high", "low"]
    probability = fitted.predict_proba(X)[:, 1]
    assert probability[X["age"] < 20].mean() > 0.9  # of the class low
    if hasattr(fitted, "coef_"):
        ages = [w for n, w in zip(fitted.coef_names_, fitted.coef_[0], strict=True) if "age" in n]
        assert ages[0] > ages[-1]


def test_a_regressor_finds_the_slopes(paying, points):
    X, _, number = points
    fitted = PrivateRegressor(**paying | {"epsilon": "10000"}, target_bounds=(-15, 15))
    fitted.fit(X, number)
    assert fitted.coef_names_.tolist() == ["x0", "x1"]
    assert fitted.coef_ == pytest.approx([2, -1], abs=0.1)
    assert fitted.intercept_ == pytest.approx(0, abs=0.1)
    assert fitted.score(X, number) > 0.95
    assert fitted.predict(X) == pytest.approx(X @ fitted.coef_ + fitted.intercept_, abs=0.3)


def test_k_means_releases_centers_and_no_labels(paying):
    rng = np.random.RandomState(5)
    middles = np.array([[-3.0, -3.0], [0.0, 3.0], [3.0, -3.0]])
    X = np.concatenate([middle + 0.2 * rng.normal(size=(300, 2)) for middle in middles])
    fitted = PrivateKMeans(3, **paying | {"epsilon": "5"})
    labels = fitted.fit_predict(X)
    found = fitted.cluster_centers_[np.argsort(fitted.cluster_centers_[:, 0])]
    assert found == pytest.approx(middles, abs=0.5)
    assert not hasattr(fitted, "labels_")
    assert len(set(labels[:300])) == 1
    assert fitted.score(X) < 0
    assert fitted.predict([[np.nan, 0.0]]).tolist() == [-1]


def test_pipelines_clone_params_and_pickle(books, paying, points):
    X, y, _ = points
    pipeline = make_pipeline(FunctionTransformer(), PrivateClassifier(**paying, classes=[0, 1]))
    assert pipeline.fit(X, y).score(X, y) > 0.9
    made = clone(pipeline[-1])
    assert not hasattr(made, "release_")
    assert made.get_params()["ledger"] == books
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(X) == pipeline.predict(X)).all()
    with pytest.raises(NotFittedError):
        made.predict(X)


def test_an_open_ledger_will_do_and_stays_open(books, paying, points):
    X, y, _ = points
    with Ledger(books) as ledger:
        made = PrivateClassifier(**paying | {"ledger": ledger}, classes=[0, 1])
        clone(made).fit(X, y)
        made.fit(X, y)
        assert ledger.status("people").spent == 200


SECRET = "bob@example.org"


@pytest.mark.parametrize("value", [SECRET, None, {"a": SECRET}, [SECRET], np.nan, np.inf, 1e300])
def test_no_value_of_x_or_y_makes_a_fit_fail(paying, points, value):
    X, y, _ = points
    odd = X.astype(object)
    odd[3, 0] = value
    PrivateClassifier(**paying, classes=[0, 1]).fit(odd, y)
    labels = y.astype(object)
    labels[3] = value
    PrivateClassifier(**paying, classes=[0, 1]).fit(X, labels)
    PrivateRegressor(**paying, target_bounds=(0, 1)).fit(odd, labels)
    PrivateKMeans(2, **paying | {"epsilon": "1"}).fit(odd)


def test_an_empty_table_is_fitted_like_any_other(paying):
    none = np.empty((0, 2))
    assert PrivateClassifier(**paying, classes=[0, 1]).fit(none, []).n_features_in_ == 2


def test_a_mistake_in_shape_tells_no_number_of_rows(books, paying, points):
    X, y, _ = points
    made = PrivateClassifier(**paying, classes=[0, 1])
    for bad_x, bad_y in [(X, y[:-1]), (X[:, 0], y), (X, np.stack([y, y], 1)), (X[:, :0], y)]:
        with pytest.raises(ValueError) as refused:
            made.fit(bad_x, bad_y)
        assert "400" not in str(refused.value)
        assert "399" not in str(refused.value)
    with pytest.raises(ValueError, match="leave it out of X"):
        PrivateClassifier(**paying | {"bounds": None}, schema=SCHEMA, target="pay").fit(
            people()[0].assign(pay="low"), people()[1]
        )
    assert spent(books) == 0


def test_values_beyond_the_bounds_are_clipped(paying, points):
    X, _, number = points
    fitted = PrivateRegressor(**paying, target_bounds=(-1, 1)).fit(X * 100, number)
    assert np.abs(fitted.predict(X * 100)).max() <= 1
