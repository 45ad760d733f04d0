"""Counts from synthetic rows: always the same, near what the release says, without intervals."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.query import sampled as sampled_count
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.kmeans.released import TreeKMeansRelease
from dpublish.methods.privpfc.released import PrivPfCRelease, grid_scores
from dpublish.methods.privpfc.released_columns import Refinement
from dpublish.methods.privpfc.score_card import UNIT
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded
from method_examples import SCHEMA


def people(count=5000):
    rng = plain_generator(8)
    age = rng.integers(0, 100, count)
    return pa.table(
        {
            "age": age,
            "sex": np.array(["Female", "Male"])[(age + rng.integers(0, 60, count)) // 80],
            "height": rng.uniform(100, 220, count),
            "town": np.array(["Ost", "West", "Nord"])[rng.integers(0, 3, count)],
        }
    )


PEOPLE = people()
AGES, SEXES = PEOPLE["age"].to_numpy(), PEOPLE["sex"].to_numpy(zero_copy_only=False)


def publish(method, **settings):
    chosen = make_method(method, settings)
    return chosen.release(open_table(PEOPLE, SCHEMA), budget=Budget.seeded(500), rng=seeded(1))


@pytest.fixture(scope="module")
def network():
    return publish("privbayes", columns=("age", "sex", "town", "height"), max_degree=1)


def test_columns_of_one_joint_are_counted_in_it_with_an_interval(network):
    answer = network.count("sex = Male")
    assert answer.low <= answer.value <= answer.high
    assert answer.value == pytest.approx((SEXES == "Male").sum(), abs=5)


def test_columns_of_no_joint_are_counted_in_rows_between_what_the_joints_allow(network):
    query = "age < 50 and sex = Male and town = Ost and height < 160"
    answer = network.count(query)
    truth = ((AGES < 50) & (SEXES == "Male")).sum() / 6
    assert answer.interval == "confidence"
    assert answer.low <= truth <= answer.high <= (AGES < 50).sum() + 10
    assert "however they depend" in answer.assumption
    assert answer.value == pytest.approx(truth, rel=0.4)
    alone = network.sample.answer(query, 0.95)  # without counts of single columns
    assert alone.low is alone.high is None
    assert "no confidence interval" in alone.assumption
    assert "no confidence interval" in str(alone)
    assert network.count(query) == answer


def test_the_rows_are_drawn_once_for_all_queries(network, monkeypatch):
    network.count("age < 50 and sex = Male and town = Ost and height < 160")
    monkeypatch.setattr(type(network), "rows", None)
    query = "age < 20 and sex = Male and town = Ost and height < 160"
    assert network.count(query).value >= 0


def test_a_query_that_nothing_satisfies_is_known_to_be_zero(network):
    query = "age > 50 and age < 20 and sex = Male and town = Ost and height < 160"
    answer = network.count(query)
    assert (answer.value, answer.low, answer.high) == (0, 0, 0)


def test_two_cuts_of_one_leaf_are_no_obstacle_in_rows(network):
    query = "age >= 33 and age != 35 and sex = Female and town = Ost and height < 160"
    answer = network.count(query)
    assert 0 < answer.value <= answer.high


def test_many_boxes_are_answered_as_one_query_each(network):
    lows, highs = np.array([[0, 0, 1], [3, 1, 0]]), np.array([[5, 1, 2], [10, 2, 3]])
    found = network.count_boxes(("age", "sex", "town"), lows, highs)
    one = network.sample.answer("age < 50 and sex = Female and town = West", 0.95).value
    assert found[0] == pytest.approx(one)
    with pytest.raises(InvalidQuery, match="income"):
        network.count_boxes(("income",), lows[:, :1], highs[:, :1])


def test_unknown_columns_and_confidences_are_refused(network):
    with pytest.raises(InvalidQuery, match="only of age, sex"):
        network.count("income > 3")
    with pytest.raises(InvalidParameter, match="confidence"):
        network.sample.answer("", 2)


def test_a_tree_of_marginals_is_asked_through_its_rows(monkeypatch):
    monkeypatch.setattr(sampled_count, "SAMPLE", 20_000)
    rng = plain_generator(2)
    names = ("a", "b", "c", "d")
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 1], bins=10) for name in names))
    table = open_table(pa.table({name: rng.random(3000) ** 2 for name in names}), schema)
    method = make_method("kmeans", {"n_clusters": 2})
    centers = method.release(table, budget=Budget.seeded(500), rng=seeded(1))
    assert isinstance(centers, TreeKMeansRelease)
    answer = centers.count("a < 0.25")  # half of them
    assert answer.low is None
    assert answer.value == pytest.approx(1500, rel=0.1)
    boxes = centers.count_boxes(("a",), np.array([[0]]), np.array([[5]]))
    assert boxes[0] == pytest.approx(centers.count("a < 0.5").value)


def test_columns_that_refine_a_grid_are_counted_in_its_rows(monkeypatch):
    monkeypatch.setattr(sampled_count, "SAMPLE", 20_000)
    risk = column("risk", "category", values=["low", "high"])
    job = column("job", "category", values=["paid", "unpaid"])
    sex = column("sex", "category", values=["F", "M"])
    counts = np.array([60, 20, 3, 31])
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="privpfc", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=seeded(1)
    )
    sums = np.array([[[0, 0]], [[15, 5]], [[27, 9]], [[12, 4]]])
    classifier = PrivPfCRelease(
        receipt=receipt,
        schema=Schema((job, sex, risk)),
        axes=(job.axis(), risk.axis()),
        cells=np.arange(4),
        counts=counts,
        noise_rate=Fraction(1, 2),
        scores=grid_scores(counts.reshape(2, 2), (2,), 114.0, 0.5).ravel(),
        refinements=(
            # Three in four are F, at every probability: what 86 and 28 records of these use.
            Refinement(sex.axis(), 2, UNIT * sums, Fraction(1, UNIT)),
        ),
    )
    on_the_grid, refined = classifier.count("job = paid"), classifier.count("sex = F")
    assert (on_the_grid.value, on_the_grid.low is None) == (80, False)
    assert (refined.low, refined.high) == (0, classifier.count().high)  # what the grid allows
    assert refined.value == pytest.approx(114 * 0.75, rel=0.05)
    with pytest.raises(InvalidQuery, match="only of job, sex, risk"):
        classifier.count("income > 3")


def test_centers_without_a_grid_say_that_they_answer_no_counts():
    lloyd = publish("dplloyd", columns=("age", "height"), n_clusters=2)
    with pytest.raises(InvalidQuery, match="holds no grid"):
        lloyd.count("age < 50")
