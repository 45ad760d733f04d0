"""A published tree: what it predicts, its rules, and what it refuses to be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import DPublishError, InvalidParameter, InvalidQuery
from dpublish.methods.trees.released import DecisionTreeRelease
from dpublish.methods.trees.tree import Branches
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10, missing="category"),
        column("job", "category", taxonomy={"Paid": ["clerk", "nurse"], "Unpaid": ["none"]}),
        column("risk", "category", values=["low", "<high>"]),
    )
)
#          age < 30?           left: job in three runs
BRANCHES = {0: Branches("age", (0, 3), 1), 1: Branches("job", (0, 1, 2), 3)}
COUNTS = np.array([[50, 1], [9, 1], [-2, 12], [4, 4]])  # of the nodes 2, 3, 4, 5


def make(**changes):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="diffpid3",
        settings={},
        budget=budget,
        neighbors=AddRemoveRecord(),
        rng=seeded(1),
    )
    settings = {
        "receipt": receipt,
        "schema": SCHEMA,
        "target": "risk",
        "branches": BRANCHES,
        "counts": COUNTS,
        "sizes": {0: 79, 1: 28},
        "size_rate": Fraction(1, 6),
        "count_rates": (Fraction(5, 6), Fraction(1, 2), Fraction(1, 3)),
        "expected": {"choice_shortfall_95": 12.0, "leaf_count_95": 9.0},
    }
    return DecisionTreeRelease(**{**settings, **changes})


ROWS = pa.table(
    {
        "age": [80, 10, 10, 10, None, 10],
        "job": ["none", "clerk", "nurse", "none", "clerk", "pilot"],
    }
)


def test_each_row_gets_the_majority_class_of_its_leaf():
    assert make().predict(ROWS).to_pylist()[:4] == ["low", "low", "<high>", "low"]


def test_equal_counts_go_to_the_first_class():
    assert make().predicted[5] == 0


def test_missing_values_with_a_cell_of_their_own_follow_it():
    assert make().predict(ROWS).to_pylist()[4] == "low"  # "(missing)" lies right of every number


def test_an_unknown_value_stops_and_gets_the_majority_class_of_the_leaves_below():
    tree = make()
    assert tree.node_counts[1].tolist() == [11, 17]
    assert tree.predict(ROWS).to_pylist()[5] == "<high>"
    codes = {"age": np.array([-1, 0]), "job": np.array([0, -1])}
    assert tree.predict_codes(codes).tolist() == [0, 1]


def test_pruned_a_branch_needs_a_clear_lead_to_differ_from_its_parent():
    noisy = make(count_rates=(Fraction(1, 5), Fraction(1, 10), Fraction(1, 10)), prune=True)
    assert noisy.predicted.tolist() == [0, 0, 0, 0, 0, 0]  # a lead of 14 against noise of 20
    clear = make(prune=True)
    assert clear.predicted.tolist() == [0, 0, 0, 0, 1, 0]
    assert make(prune=False).predicted.tolist() == [0, 1, 0, 0, 1, 0]


def test_the_rules_state_what_the_tree_predicts():
    assert make().rules().split("\n") == [
        "age < 30",
        "  job in clerk, Unpaid: low",
        "  job = nurse: <high>",
        "age >= 30 or (missing): low",
    ]


def test_branches_that_agree_are_one_rule():
    assert make(counts=np.abs(COUNTS[:, ::-1]) * [1, 0]).rules() == "all records: low"


def test_it_is_rebuilt_from_its_parts():
    for tree in (make(), make(prune=True), make(branches={}, counts=COUNTS[:1], sizes={0: 1})):
        again = DecisionTreeRelease.from_parts(
            receipt=tree.receipt, schema=tree.schema, metadata=tree.metadata(), tables=tree.tables()
        )
        assert again == tree
        assert again.predict(ROWS) == tree.predict(ROWS)
    assert make() != make(prune=True)
    assert make() != make(counts=COUNTS + 1)


def test_rows_lack_a_column_or_codes_differ_in_length():
    with pytest.raises(InvalidQuery, match="age"):
        make().predict(pa.table({"job": ["none"]}))
    with pytest.raises(InvalidQuery, match="job"):
        make().predict_codes({"age": np.array([1])})
    with pytest.raises(InvalidQuery, match="length"):
        make().predict_codes({"age": np.array([1]), "job": np.array([1, 2])})
    with pytest.raises(InvalidQuery, match="length"):
        make().predict_codes({})


def test_it_gives_no_rows():
    with pytest.raises(InvalidQuery, match="rows"):
        make().rows(5)


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "nonsense"},
        {"target": "job"},
        {"counts": COUNTS[:2]},
        {"counts": COUNTS.astype(float)},
        {"counts": None},
        {"counts": None, "label": 1},
        {"label": 1},
        {"branches": {}, "counts": None, "label": 2},
        {"branches": {}, "counts": None, "label": True},
        {"branches": {0: Branches("age", (0, 3), 2)}},
        {"branches": {0: Branches("age", (1, 3), 1)}},
        {"branches": {0: Branches("age", (0, 11), 1)}},
        {"branches": {0: Branches("age", (0,), 1)}},
        {"branches": {1: BRANCHES[1]}},
        {"branches": {0: BRANCHES[0], 1: BRANCHES[0]}},
        {"branches": {0: BRANCHES[0], 2: replace(BRANCHES[1], first_child=3), 1: BRANCHES[1]}},
        {"branches": {0: Branches("income", (0, 3), 1)}},
        {"sizes": {6: 3}},
        {"sizes": {0: 3.5}},
        {"sizes": {}},
        {"size_rate": None},
        {"size_rate": Fraction(-1)},
        {"count_rates": (Fraction(1), Fraction(1))},
        {"count_rates": (Fraction(0),) * 3},
        {"expected": {"x": float("nan")}},
    ],
    ids=str,
)
def test_what_no_method_would_publish_is_refused(changes):
    with pytest.raises(InvalidParameter):
        make(**changes)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("parent", [None, 0, 0, 1, 1, 9]),
        ("parent", [0, 0, 0, 1, 1, 1]),
        ("parent", [None, 0, 0, 1, 0, 1]),
        ("first_code", [None, 0, 3, 0, 1, None]),
        ("split_by", ["age", None, None, None, None, None]),
        ("split_by", ["age", "job", "job", None, None, None]),
        ("noisy_size", [1.5, None, None, None, None, None]),
    ],
)
def test_a_changed_list_of_nodes_is_refused(name, values):
    tree = make()
    tables = tree.tables()
    number = tables["nodes"].column_names.index(name)
    tables["nodes"] = tables["nodes"].set_column(number, name, pa.array(values))
    with pytest.raises((DPublishError, TypeError)):
        DecisionTreeRelease.from_parts(
            receipt=tree.receipt, schema=tree.schema, metadata=tree.metadata(), tables=tables
        )


def test_the_summary_names_the_columns_that_split_the_tree():
    assert make().summary()["from"] == "age, job"
