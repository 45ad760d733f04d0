"""Classes of ranks: nested, about equal, and a taxonomy over the same values."""

from itertools import pairwise

import numpy as np
import pytest

from dpublish.data.column import with_taxonomy
from dpublish.data.schema import Schema, column
from dpublish.data.taxonomy import Taxonomy
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.released_hybrid import MOST_CLASSES, classed_schema, rank_levels
from dpublish.randomness import plain_generator


def test_classes_are_nested_and_hold_about_as_much():
    probabilities = plain_generator(1).dirichlet(np.full(500, 2.0))
    levels = rank_levels(probabilities, 500)
    assert [len(level) for level in levels] == [2, 4, 8, 16, 32]
    for coarse, fine in pairwise(levels):
        assert set(coarse) <= set(fine)
    for level in levels:
        masses = np.add.reduceat(probabilities, level)
        assert masses.max() < 1 / len(level) + probabilities.max()


@pytest.mark.parametrize(
    ("probabilities", "levels"),
    [
        ([1.0], ()),
        ([0.95, 0.05], ()),  # the values themselves are all there is
        ([0.96, 0.01, 0.01, 0.01, 0.01], ((0, 1), (0, 1, 2))),
        ([0.0, 0.0, 0.0], ((0, 1),)),  # nothing is known: cut by position
    ],
)
def test_few_or_uneven_values_have_few_classes(probabilities, levels):
    assert rank_levels(np.array(probabilities), len(probabilities)) == levels


def test_special_values_stay_alone_on_every_level():
    levels = rank_levels(np.array([0.2, 0.2, 0.2, 0.2, 0.15, 0.05]), 4)
    assert levels
    assert all(level[-2:] == (4, 5) for level in levels)


def test_a_classed_column_counts_the_same_values():
    schema = Schema((column("age", "integer", bounds=[0, 99], missing="category"),))
    classed = classed_schema(schema, {"age": ((0, 30, 100), (0, 10, 30, 60, 100))})
    own = classed["age"]
    assert own.size == schema["age"].size
    assert own.height == 3
    assert own.axis(1).labels == ("0 to 29", "30 to 99", "(missing)")
    assert own.axis(2).leaf_to_cell[[0, 9, 10, 99, 100]].tolist() == [0, 0, 1, 3, 4]
    assert own.axis(3).labels == schema["age"].axis().labels
    assert schema["age"].height == 1  # the column itself stays as it was


def test_levels_over_other_values_are_refused():
    with pytest.raises(InvalidParameter, match="not the leaves"):
        with_taxonomy(column("age", "integer", bounds=[0, 3]), Taxonomy.flat(("a", "b")))


def test_there_are_never_too_many_classes():
    assert len(rank_levels(np.full(10_000, 1e-4), 10_000)[-1]) == MOST_CLASSES
