"""The majority class: its distribution, its loss, and its forecast."""

from fractions import Fraction
from math import exp

import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.selection import shortfall_95
from dpublish.methods.trees.majority import Majority
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("class", "category", values=["a", "b", "c"]),
    )
)


def table(a, b, c=0):
    classes = pa.array(["a"] * a + ["b"] * b + ["c"] * c, pa.string())
    return open_table(
        pa.table({"age": pa.array([1] * (a + b + c), pa.int64()), "class": classes}), SCHEMA
    )


def release(counts, epsilon=1, seed=1):
    method = Majority(target="class")
    return method.release(table(*counts), budget=Budget.seeded(epsilon), rng=seeded(seed))


def distribution(counts, epsilon):
    """Exact probabilities of permute-and-flip among three, by listing which coins show heads."""
    odds = [exp(-epsilon * (max(counts) - count)) for count in counts]
    probabilities = dict.fromkeys(range(3), 0.0)
    for heads in range(1, 8):
        shown = [i for i in range(3) if heads >> i & 1]
        probability = 1.0
        for i in range(3):
            probability *= odds[i] if i in shown else 1 - odds[i]
        for i in shown:
            probabilities[i] += probability / len(shown)
    return probabilities


def test_classes_are_chosen_with_the_probabilities_of_the_proof():
    drawn = [release((3, 2, 1), seed=seed).label for seed in range(600)]
    assert frequency_p_value(drawn, distribution((3, 2, 1), 1)) > 1e-3
    assert frequency_p_value(drawn, distribution((3, 2, 1), 2)) < 1e-3


@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 0, 0), (3, 2, 1), (0, 9, 9)])
def test_one_record_costs_the_budget_at_most(counts):
    for added in range(3):
        more = tuple(count + (i == added) for i, count in enumerate(counts))
        assert privacy_loss(distribution(counts, 1), distribution(more, 1)) <= 1 + 1e-9
    apart = (counts[0] + 3, *counts[1:])
    assert (
        privacy_loss(distribution((0, 9, 9), 1), distribution((3, 9, 9), 1)) > 1
    )  # three records would be seen
    assert apart != counts


def test_it_is_one_leaf_that_always_says_the_same():
    tree = release((2, 40), epsilon=4)
    assert tree.label == 1
    assert tree.predict(pa.table({"age": [5, 80]})).to_pylist() == ["b", "b"]
    assert tree.predict_codes({}, 3).tolist() == [1, 1, 1]
    assert tree.rules() == "all records: b"
    assert tree.schema.names == ("class",)
    assert set(tree.tables()) == {"nodes"}
    assert "b" in tree.summary()["always"]


def test_the_receipt_shows_the_one_choice():
    receipt = release((2, 40)).receipt
    assert receipt.shares == (("release/choice", Fraction(1)),)
    assert receipt.parallel == ()


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("gap", [1, 3, 10, 30])
def test_the_forecast_holds_exactly(epsilon, gap):
    """The probability to fall behind by more than predicted, computed exactly: at most 5 %."""
    bound = shortfall_95(3, epsilon)
    probabilities = distribution((gap, 0, 0), float(epsilon))
    if gap > bound:
        assert probabilities[1] + probabilities[2] <= 0.05
    assert (
        sum(v for i, v in distribution((bound, 0, 0), float(epsilon)).items() if i) > 0.01
    )  # not idle


def test_numbers_are_no_classes():
    with pytest.raises(InvalidParameter, match="holds numbers"):
        Majority(target="age").expected_error(SCHEMA, None, Fraction(1))
