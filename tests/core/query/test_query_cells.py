"""Counts of cells: many boxes at once, grids of integers, and the noise that answers carry."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpublish.core.grid_counts import GridCounts
from dpublish.core.query.cells import CellCounts
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidQuery
from dpublish.randomness import plain_generator

AGE = column("age", "integer", bounds=[0, 99], bins=10, branching=2)
SEX = column("sex", "category", values=["F", "M"], missing="category")
HEIGHT = column("height", "numeric", bounds=[100, 220], bins=6, missing="category")


def draw_boxes(columns, queries=60):
    rng = plain_generator(7)
    sizes = np.array([each.size for each in columns])
    ends = rng.integers(0, sizes + 1, (2, queries, len(columns)))
    return np.minimum(*ends), np.maximum(*ends)


def dense(columns, levels=(None, None, None)):
    axes = tuple(each.axis(level) for each, level in zip(columns, levels, strict=False))
    size = int(np.prod([axis.size for axis in axes]))
    counts = plain_generator(1).integers(-5, 50, size)
    return CellCounts(axes, counts, Fraction(1, 2))


def sparse_twin(counts, threshold):
    cells = np.flatnonzero(counts.counts >= threshold)
    kept = counts.counts[cells]
    return replace(counts, counts=kept, cells=cells, threshold=threshold)


def test_boxes_of_leaves_hold_the_sum_of_their_counts():
    counts = dense((AGE, SEX, HEIGHT))
    tensor = counts.counts.reshape(counts.shape)
    lows, highs = draw_boxes((HEIGHT, AGE))
    found = counts.boxes(("height", "age"), lows, highs)
    for low, high, value in zip(lows, highs, found, strict=True):
        assert value == tensor[low[1] : high[1], :, low[0] : high[0]].sum()


def test_boxes_in_a_sparse_histogram_hold_the_published_counts():
    counts = dense((AGE, SEX, HEIGHT))
    kept = np.where(counts.counts >= 30, counts.counts, 0)
    lows, highs = draw_boxes((AGE, SEX))
    found = sparse_twin(counts, 30).boxes(("age", "sex"), lows, highs)
    assert found == pytest.approx(replace(counts, counts=kept).boxes(("age", "sex"), lows, highs))


def test_a_box_is_the_same_as_a_query():
    for counts in (dense((AGE, SEX)), dense((AGE, SEX), (2, None)), dense((AGE, SEX), (0, 1))):
        boxes = counts.boxes(("age", "sex"), np.array([[3, 1]]), np.array([[7, 2]]))
        assert boxes[0] == pytest.approx(counts.answer("age in 30..69 and sex = M", 0.9).value)


def test_a_box_over_a_root_that_holds_missing_values_is_the_same_as_a_query():
    counts = dense((HEIGHT,), (0,))
    boxes = counts.boxes(("height",), np.array([[0], [3]]), np.array([[6], [6]]))
    asked = [counts.answer(query, 0.9).value for query in ("height >= 0", "height >= 160")]
    assert boxes.tolist() == pytest.approx(asked)


def test_no_columns_or_no_boxes_are_boxes_too():
    counts = dense((AGE, SEX))
    empty = np.zeros((3, 0), dtype=np.int64)
    assert counts.boxes((), empty, empty).tolist() == [counts.counts.sum()] * 3
    none = np.zeros((0, 1), dtype=np.int64)
    assert counts.boxes(("age",), none, none).shape == (0,)
    assert sparse_twin(counts, 30).boxes((), empty, empty)[0] > 0


@pytest.mark.parametrize(
    ("columns", "lows"),
    [(("income",), [[0]]), (("age", "age"), [[0, 0]]), (("age",), [[0, 0]])],
)
def test_boxes_that_are_none_are_refused(columns, lows):
    lows = np.array(lows)
    with pytest.raises(InvalidQuery):
        dense((AGE, SEX)).boxes(columns, lows, lows + 1)


def test_boxes_are_answered_in_blocks_as_all_at_once(monkeypatch):
    counts, (lows, highs) = dense((AGE, SEX)), draw_boxes((AGE, SEX))
    whole = counts.boxes(("age", "sex"), lows, highs)
    monkeypatch.setattr("dpublish.core.query.cells._AT_ONCE", 7)
    assert np.array_equal(counts.boxes(("age", "sex"), lows, highs), whole)


# --- grids over a box ---------------------------------------------------------------------------

FEW = column("few", "integer", bounds=[-2, 2])
POINTS = Schema((FEW, HEIGHT))


def test_cells_of_integers_are_those_in_which_records_were_counted():
    # Cells of [-2, 2] cut in 8: the numbers -2, -1, 0, 1 start the even ones, 2 ends the last.
    counts = np.array([10, 1, 20, 1, 30, 1, 40, 50])
    grid = GridCounts(Box((FEW,)), (8,), counts, Fraction(1))
    assert [grid.cells.answer(f"few = {n}", 0.9).value for n in range(-2, 3)] == [
        10,
        20,
        30,
        40,
        50,
    ]
    assert grid.cells.answer("", 0.9).value == 150  # what lies between is noise
    wide = GridCounts(Box((FEW,)), (2,), np.array([30, 100]), Fraction(1))
    assert wide.cells.answer("few < 0", 0.9).value == 30  # -2 and -1
    assert wide.cells.answer("few = 0", 0.9).value == pytest.approx(100 / 3)


def test_boxes_of_leaves_are_measured_in_the_grid_by_their_length():
    grid = GridCounts(Box.of(POINTS), (2, 3), np.arange(6) * 6, Fraction(1))
    lows, highs = np.array([[0, 0], [0, 1], [2, 6]]), np.array([[5, 6], [2, 3], [5, 7]])
    found = grid.boxes(("few", "height"), lows, highs)
    # All; the first cell's numbers by height from 120 to 160; missing heights, not counted.
    assert found.tolist() == pytest.approx([90, 0.5 * 0 + 0.5 * 6, 0])
    assert found[0] == grid.cells.answer("", 0.9).value


def test_a_query_about_missing_numbers_is_refused_since_they_were_not_counted():
    grid = GridCounts(Box.of(POINTS), (2, 3), np.arange(6), Fraction(1))
    with pytest.raises(InvalidQuery):
        grid.cells.answer("height = '(missing)'", 0.9)
