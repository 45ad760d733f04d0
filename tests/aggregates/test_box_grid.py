"""Cells of a box: a record lies in one of them, whatever its batch, and moves one count by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.aggregates.box_grid import MOST_CELLS, BoxGrid
from dpublish.data.batch import Batch
from dpublish.data.box import UNIT, Box
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord

RECORDS = AddRemoveRecord()


def box_of(dimensions, low=0, high=12):
    names = [f"x{number}" for number in range(dimensions)]
    return Box.of(Schema(tuple(column(n, "numeric", bounds=[low, high]) for n in names)))


def count(kernel, points, cuts=()):
    answer = kernel.zero()
    for part in np.split(np.array(points, dtype=float).reshape(-1, kernel.box.dimensions), cuts):
        values = dict(zip(kernel.values, part.T, strict=True))
        kernel.add(Batch(len(part), values=values), answer)
    return answer


class CountsEdgesTwice(BoxGrid):
    """Broken: a point on the edge of two cells counts in both."""

    def add(self, batch, out):
        lattice = self.box.lattice(batch)
        np.add.at(out, self.locate(lattice), 1)
        below = self.locate(np.maximum(lattice - 1, -UNIT))
        np.add.at(out, below[below != self.locate(lattice)], 1)


def most_change(kernel):
    """Most that a record changes all counts, over records inside, on edges and at the bounds."""
    points = np.linspace(0, 12, 49)
    empty = kernel.zero()
    worlds = product(points, repeat=kernel.box.dimensions)
    return max(np.abs(count(kernel, [point]) - empty).sum() for point in worlds)


@pytest.mark.parametrize("sizes", [(1,), (3,), (4,), (7,), (3, 4), (2, 1)])
def test_a_record_changes_one_count_by_one(sizes):
    kernel = BoxGrid(box_of(len(sizes)), sizes)
    assert most_change(kernel) == kernel.sensitivity(RECORDS) == 1


def test_a_grid_that_counts_edges_twice_is_caught():
    kernel = CountsEdgesTwice(box_of(1), (3,))
    assert most_change(kernel) == 2 > kernel.sensitivity(RECORDS)


def test_cells_are_equal_parts_with_their_lower_end_and_come_row_by_row():
    kernel = BoxGrid(box_of(2), (3, 4))
    assert count(kernel, [[0, 0]]).nonzero()[0].tolist() == [0]
    assert count(kernel, [[0, 2.9]]).nonzero()[0].tolist() == [0]
    assert count(kernel, [[0, 3]]).nonzero()[0].tolist() == [1]
    assert count(kernel, [[4, 0]]).nonzero()[0].tolist() == [4]
    assert count(kernel, [[12, 12]]).nonzero()[0].tolist() == [11]


@given(
    st.lists(st.tuples(st.floats(0, 12), st.floats(0, 12)), max_size=12),
    st.integers(0, 12),
)
def test_counts_do_not_depend_on_the_cut_or_the_order(points, cut):
    kernel = BoxGrid(box_of(2), (5, 3))
    whole = count(kernel, points)
    assert whole.sum() == len(points)
    assert np.array_equal(whole, count(kernel, points, [min(cut, len(points))]))
    assert np.array_equal(whole, count(kernel, points[::-1]))
    other = count(kernel, points)
    kernel.merge(other, whole)
    assert np.array_equal(other, 2 * whole)


def test_sensitivity_depends_on_what_is_hidden():
    kernel = BoxGrid(box_of(1), (3,))
    assert kernel.sensitivity(ReplaceRecord()) == 2
    with pytest.raises(InvalidParameter, match="any number of rows"):
        kernel.sensitivity(AddRemoveUnit("x"))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((3,), "one number of cells"), ((0, 2), "at least 1"), ((MOST_CELLS, 2), "too many")],
)
def test_impossible_grids_are_refused(sizes, words):
    with pytest.raises(InvalidParameter, match=words):
        BoxGrid(box_of(2), sizes)


def test_the_finest_grid_on_a_line_still_counts_each_record_once():
    kernel = BoxGrid(box_of(1), (MOST_CELLS,))
    assert count(kernel, [[0], [0.001], [11.999], [12], [12]]).sum() == 5
