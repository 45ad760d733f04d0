"""Counts by classes: those of a plain loop, in any batches, and what one record moves."""

from itertools import combinations

import numpy as np
import pytest

from dpublish.data.batch import Batch
from dpublish.methods.synth import kernels
from dpublish.methods.synth.kernels import ClassCounts
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord
from dpublish.randomness import plain_generator

CODES = {"a": 5, "b": 3, "c": 7}
CLASSES = {
    ("a", 0): np.array([0, 0, 1, 1, 1]),
    ("a", 1): np.array([0, 0, 1, 2, 1]),
    ("b", 0): np.array([1, 0, 1]),
    ("c", 0): np.arange(7),
}
"""The classes of each code, by column and level."""
SETS = (
    (("a", 0), ("b", 0)),
    (("a", 1), ("c", 0)),
    (("b", 0), ("c", 0)),
    (("a", 1), ("b", 0), ("c", 0)),
    (("c", 0),),
)
KERNEL = ClassCounts(tuple(CODES), CLASSES, SETS)


def records(number, seed=3):
    rng = plain_generator(seed)
    return {name: rng.integers(0, size, number).astype(np.uint8) for name, size in CODES.items()}


def counted(kernel, codes):
    out = kernel.zero()
    kernel.add(Batch(len(codes["a"]), codes=codes), out)
    return out


def by_hand(codes, one):
    sizes = [int(CLASSES[key].max()) + 1 for key in one]
    found = np.zeros(sizes, dtype=np.int64)
    for row in range(len(codes["a"])):
        found[tuple(CLASSES[key][codes[key[0]][row]] for key in one)] += 1
    return found


@pytest.mark.parametrize("few", [0, 1 << 16])
def test_counts_are_those_of_a_loop(monkeypatch, few):
    """Small tables are counted in one way, large ones in another."""
    monkeypatch.setattr(kernels, "_FEW_CELLS", few)
    kernel, codes = KERNEL, records(500)
    for one, table in zip(SETS, kernel.split(counted(kernel, codes)), strict=True):
        assert np.array_equal(table, by_hand(codes, one))
        assert table.sum() == 500


@pytest.mark.parametrize("cuts", [(0,), (1, 2, 3), (250,), (499,), (100, 100, 400)])
def test_batches_may_be_cut_anywhere(cuts):
    kernel, codes = KERNEL, records(500)
    whole, total = counted(kernel, codes), kernel.zero()
    for start, stop in zip((0, *cuts), (*cuts, 500), strict=True):
        part = {name: along[start:stop] for name, along in codes.items()}
        kernel.merge(total, counted(kernel, part))
    assert np.array_equal(total, whole)


@pytest.mark.parametrize("record", range(12))
def test_one_record_moves_one_cell_of_every_set_by_one(record):
    kernel = KERNEL
    found = counted(
        kernel, {name: along[record : record + 1] for name, along in records(12).items()}
    )
    for table in kernel.split(found):
        assert table.sum() == table.max() == 1
        assert table.min() == 0
    assert found.sum() == kernel.sensitivity(AddRemoveRecord()) == len(SETS)


def test_a_replaced_record_moves_twice_as_much():
    assert KERNEL.sensitivity(ReplaceRecord()) == 2 * len(SETS)


def test_all_sets_need_the_same_columns_of_a_record():
    """Else a rule for missing values would leave out other records for other sets."""
    for one in combinations(CLASSES, 2):
        assert ClassCounts(tuple(CODES), CLASSES, (one,)).codes == tuple(CODES)
