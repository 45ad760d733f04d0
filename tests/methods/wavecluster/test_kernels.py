"""Counting records in cells that are cut again: a partition, found from one record alone."""

import numpy as np
import pytest

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.data.batch import Batch
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.wavecluster.kernels import SplitGrid
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord
from dpublish.randomness import plain_generator

BOX = Box.of(Schema(tuple(column(name, "numeric", bounds=[0, 1]) for name in "xy")))
SPLITS = np.array([1, 2, 3, 1, 5, 1, 4, 2, 1])


def batch_of(points):
    return Batch(len(points), values=dict(zip("xy", np.array(points).T.copy(), strict=True)))


def count(kernel, points):
    answer = kernel.zero()
    kernel.add(batch_of(points), answer)
    return answer


def test_every_record_lies_in_one_part_whatever_batch_it_comes_in():
    points = np.concatenate([plain_generator(1).random((500, 2)), [[0, 0], [1, 1], [0, 1]]])
    kernel = SplitGrid(BOX, 3, SPLITS)
    whole = count(kernel, points)
    one_by_one = [count(kernel, [point]) for point in points]
    assert all(part.sum() == 1 for part in one_by_one)
    assert np.array_equal(np.sum(one_by_one, axis=0), whole)
    merged = count(kernel, points[:200])
    kernel.merge(merged, count(kernel, points[200:]))
    assert np.array_equal(merged, whole)


def test_the_parts_of_a_cell_add_up_to_the_cell():
    points = plain_generator(2).random((1000, 2))
    kernel = SplitGrid(BOX, 3, SPLITS)
    sums = np.add.reduceat(count(kernel, points), kernel.starts[:-1])
    coarse = BoxGrid(BOX, (3, 3)).zero()
    BoxGrid(BOX, (3, 3)).add(batch_of(points), coarse)
    assert np.array_equal(sums, coarse)


@pytest.mark.parametrize("split", [1, 2, 4])
def test_equal_parts_are_those_of_an_equal_grid(split):
    points = np.concatenate([plain_generator(3).random((1000, 2)), np.eye(2)])
    parts = count(SplitGrid(BOX, 4, np.full(16, split)), points)
    fine = BoxGrid(BOX, (4 * split,) * 2).zero()
    BoxGrid(BOX, (4 * split,) * 2).add(batch_of(points), fine)
    ordered = parts.reshape(4, 4, split, split).transpose(0, 2, 1, 3).ravel()
    assert np.array_equal(ordered, fine)


def test_one_record_changes_the_counts_by_one():
    kernel = SplitGrid(BOX, 3, SPLITS)
    assert kernel.sensitivity(AddRemoveRecord()) == 1
    assert kernel.sensitivity(ReplaceRecord()) == 2
    with pytest.raises(InvalidParameter):
        kernel.sensitivity(AddRemoveUnit("who"))


@pytest.mark.parametrize(
    ("size", "splits"),
    [
        (3, SPLITS[:-1]),
        (3, SPLITS * 0),
        (3, SPLITS * 10_000),
        (0, SPLITS),
        (3, SPLITS.astype(float)),
        (3, SPLITS << 30),
    ],
)
def test_what_is_no_grid_or_too_large_is_refused(size, splits):
    with pytest.raises(InvalidParameter):
        SplitGrid(BOX, size, splits)
