"""Records find their box by a public route, and each is counted in one part of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.data.batch import Batch
from dpublish.errors import InvalidParameter
from dpublish.methods.spatial.kernels import MAX_CELLS, BoxCells, GridRoute, TreeRoute, cut_boxes
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit

SIZES = (7, 5)
NAMES = ("age", "height")
CODES = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), max_size=30)


def batch(rows):
    codes = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Batch(len(codes), codes=dict(zip(NAMES, codes.T, strict=True)))


def answer(kernel, rows):
    found = kernel.zero()
    kernel.add(batch(rows), found)
    return found


def inside(rows, lows, highs):
    codes = np.array(rows, dtype=np.int64).reshape(-1, 1, 2)
    return np.all((lows <= codes) & (codes < highs), axis=2)


def tree_kernel(first, second, third, parts):
    """Cut the first column, then both halves along the second."""
    lows = np.array([[0, 0], [0, second], [first, 0], [first, third]])
    highs = np.array([[first, second], [first, 5], [7, third], [7, 5]])
    none = np.zeros(4, dtype=np.int64)
    route = TreeRoute(
        np.array([0, 1, 1, *(none - 1)]),
        np.array([first, second, third, *none]),
        np.array([1, 3, 5, *none]),
        3,
    )
    return BoxCells(NAMES, route, lows, highs, np.minimum(parts, highs - lows))


def grid_kernel(sides, parts):
    whole = np.zeros((1, 2), dtype=np.int64), np.array([SIZES])
    lows, highs = cut_boxes(*whole, np.array([sides]))
    route = GridRoute(SIZES, sides)
    return BoxCells(NAMES, route, lows, highs, np.minimum(parts, highs - lows))


KERNELS = st.one_of(
    st.builds(
        grid_kernel,
        st.tuples(st.integers(1, 7), st.integers(1, 5)),
        st.tuples(st.integers(1, 3), st.integers(1, 3)),
    ),
    st.builds(
        tree_kernel,
        st.integers(1, 6),
        st.integers(1, 4),
        st.integers(1, 4),
        st.tuples(st.integers(1, 3), st.integers(1, 3)),
    ),
)


@given(KERNELS, CODES)
def test_parts_are_counted_as_if_each_record_were_compared_with_each_part(kernel, rows):
    lows, highs = cut_boxes(kernel.lows, kernel.highs, kernel.parts)
    found = inside(rows, lows, highs)
    assert np.all(found.sum(axis=1) == 1)  # a partition: no record is missed or counted twice
    assert answer(kernel, rows).tolist() == found.sum(axis=0).tolist()


@given(KERNELS, CODES, CODES)
def test_the_answer_does_not_depend_on_how_records_come(kernel, first, second):
    together = answer(kernel, first + second)
    merged = answer(kernel, second)
    kernel.merge(merged, answer(kernel, first))
    assert together.tolist() == merged.tolist()


@given(KERNELS, CODES, st.tuples(*(st.integers(0, size - 1) for size in SIZES)))
def test_one_record_changes_one_count_by_one(kernel, rows, record):
    moved = answer(kernel, [*rows, record]) - answer(kernel, rows)
    assert np.abs(moved).sum() == kernel.sensitivity(AddRemoveRecord()) == 1


def test_boxes_are_cut_into_ranges_that_differ_by_one_code_at_most():
    lows, highs = cut_boxes(np.array([[2]]), np.array([[102]]), np.array([[7]]))
    assert lows[0, 0] == 2
    assert highs[-1, 0] == 102
    assert lows[1:, 0].tolist() == highs[:-1, 0].tolist()
    assert set((highs - lows).ravel().tolist()) == {14, 15}


def test_units_and_too_many_parts_are_refused():
    with pytest.raises(InvalidParameter, match="one row per unit"):
        grid_kernel((1, 1), (1, 1)).sensitivity(AddRemoveUnit("person"))
    whole = np.zeros((1, 1), dtype=np.int64), np.array([[2 * MAX_CELLS]])
    with pytest.raises(InvalidParameter, match="too many to count at once"):
        BoxCells(("age",), GridRoute((2 * MAX_CELLS,), (1,)), *whole, np.array([[MAX_CELLS + 1]]))
