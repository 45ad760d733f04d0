"""A public tree: every record takes one route, and lists of nodes that are no tree are refused."""

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.trees.tree import Branches, Routes, TreeShape, branch_conditions, write_rules

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 5]),
        column("work", "category", values=["a", "b", "c"]),
    )
)
TREE = {0: Branches("age", (0, 2), 1), 2: Branches("work", (0, 1, 2), 3)}
ROUTES = Routes(SCHEMA, TREE)
ALL = [(age, work) for age in range(6) for work in range(3)]


def end(age, work):
    """The same tree, written by hand."""
    return 1 if age < 2 else 3 + work


def test_every_record_goes_where_the_tree_says():
    codes = {"age": np.array([r[0] for r in ALL]), "work": np.array([r[1] for r in ALL])}
    assert ROUTES.follow(codes, len(ALL)).tolist() == [end(age, work) for age, work in ALL]


def test_an_unknown_value_stops_at_the_node_that_splits_by_it():
    codes = {"age": np.array([-1, 5, 0]), "work": np.array([0, -1, -1])}
    assert ROUTES.follow(codes, 3).tolist() == [0, 2, 1]


def test_runs_and_children_of_a_node_belong_together():
    branches = TREE[2]
    assert list(branches.children) == [3, 4, 5]
    assert branches.runs(3) == [(0, 1), (1, 2), (2, 3)]
    assert list(branch_conditions(SCHEMA, TREE)) == [
        "age < 2",
        "age >= 2",
        "work = a",
        "work = b",
        "work = c",
    ]


def test_branches_that_predict_the_same_class_are_one_rule():
    lines = write_rules(SCHEMA, TREE, [0, 0, 0, 1, 0, 1], ["no", "yes"]).split("\n")
    assert lines == ["age >= 2", "  work in a, c: yes", "  work = b: no", "age < 2: no"]
    assert write_rules(SCHEMA, TREE, [0] * 6, ["no", "yes"]) == "all records: no"


@pytest.mark.parametrize(
    "tree",
    [
        {0: Branches("age", (0, 2), 2)},
        {0: Branches("age", (0, 2), 1), 3: Branches("work", (0, 1), 3)},
        {0: Branches("age", (0, 2), 1), 2: Branches("work", (0, 1), 3), 1: TREE[2]},
    ],
    ids=["gap", "orphan", "order"],
)
def test_nodes_that_are_not_numbered_level_by_level_are_refused(tree):
    with pytest.raises(InvalidParameter):
        TreeShape(tree)
