"""Cuts through taxonomies: their cells, their names, and what is refused."""

import pytest

from dpublish.data.cut import cut_axis
from dpublish.data.schema import column
from dpublish.errors import InvalidParameter

WORK = column(
    "work",
    "category",
    taxonomy={"Paid": {"Gov": ["State", "Local"], "Private": {}}, "Unpaid": ["Carer", "None"]},
    missing="category",
)
AGE = column("age", "integer", bounds=[0, 99], bins=10, missing="category")


@pytest.mark.parametrize(
    ("starts", "labels"),
    [
        ([0, 2, 3, 5], ("Gov", "Private", "Unpaid", "(missing)")),
        ([0, 1, 2, 3, 5], ("State", "Local", "Private", "Unpaid", "(missing)")),
        ([0, 3, 4, 5], ("Paid", "Carer", "None", "(missing)")),
        ([0], ("any",)),
    ],
)
def test_cells_are_named_after_the_nodes_that_they_are(starts, labels):
    axis = cut_axis(WORK, starts)
    assert axis.labels == labels
    assert axis.leaf_starts.tolist() == [*starts, 6]
    assert axis.leaf_labels == WORK.axis().leaf_labels
    for cell, label in enumerate(labels):
        assert all(axis.leaf_to_cell[leaf] == cell for leaf in _leaves(axis, cell)), label


def _leaves(axis, cell):
    return range(axis.leaf_starts[cell], axis.leaf_starts[cell + 1])


@pytest.mark.parametrize(
    "starts",
    [[], [1, 2], [0, 1], [0, 2], [0, 3, 3], [0, 3, 2], [0, 6], [0, 5, 9], [0, 4]],
    ids=str,
)
def test_what_is_no_node_is_refused(starts):
    with pytest.raises(InvalidParameter, match="'work' are not nodes"):
        cut_axis(WORK, starts)


def test_numbers_may_be_cut_anywhere_but_missing_ones_stay_apart():
    axis = cut_axis(AGE, [0, 3, 7, 10])
    assert axis.labels == ("0..29", "30..69", "70..99", "(missing)")
    assert axis.edges == (0, 30, 70, 100)
    assert axis.cover(low=35, high=64).tolist() == [0, 0.75, 0, 0]
    for starts in ([0, 3], [0, 3, 11], [0, 3, 3, 10], [0, 7, 3, 10], [-1, 3, 10]):
        with pytest.raises(InvalidParameter, match="'age' are not nodes"):
            cut_axis(AGE, starts)


def test_a_number_cell_that_is_a_node_keeps_its_name():
    named = column("age", "integer", taxonomy={"young": ["0..9", "10..19"], "old": ["20..99"]})
    assert cut_axis(named, [0, 2]).labels[0] == named.axis(1).labels[0]


def test_queries_are_answered_by_the_part_of_a_cell():
    axis = cut_axis(WORK, [0, 3, 4, 5])
    assert axis.match("State").round(3).tolist() == [0.333, 0, 0, 0]
    assert axis.match("Paid", "Carer").tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("known", [WORK, AGE], ids=["work", "age"])
def test_a_cut_that_is_a_level_is_that_level(known):
    for level in range(known.height + 1):
        axis = known.axis(level)
        assert cut_axis(known, axis.leaf_starts[:-1].tolist()) == axis


def test_of_nodes_with_the_same_leaves_the_first_gives_its_name():
    groups = {"A": {"B": {"C": ["x", "y"]}}, "D": {"E": {"F": ["z", "w"], "G": {}}}}
    chain = column("work", "category", taxonomy=groups)
    assert cut_axis(chain, [0, 1, 2]).labels == ("x", "y", "D")
