"""Tree counts: every record is counted once, in whatever batches."""

import numpy as np
import pytest

from dpublish.data.batch import Batch
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.trees.kernels import TreeCounts
from dpublish.methods.trees.tree import Branches, Routes
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 5]),
        column("work", "category", values=["a", "b", "c"]),
        column("class", "category", values=["no", "yes"]),
    )
)
ROUTES = Routes(SCHEMA, {0: Branches("age", (0, 2), 1), 2: Branches("work", (0, 1, 2), 3)})
ALL = [(age, work, label) for age in range(6) for work in range(3) for label in range(2)]


def batch(records):
    columns = np.array(records, dtype=np.uint8).reshape(-1, 3).T
    return Batch(len(records), codes=dict(zip(("age", "work", "class"), columns, strict=True)))


def end(age, work):
    """The same tree, written by hand."""
    return 1 if age < 2 else 3 + work


def test_counts_are_those_of_a_loop_over_the_records():
    kernel = TreeCounts(ROUTES, (1, 4), ("age", "work"), "class")
    answer = kernel.zero()
    kernel.add(batch(ALL * 2), answer)
    by_column = kernel.split(answer)
    for position, node in enumerate((1, 4)):
        ages, works = np.zeros((6, 2), int), np.zeros((3, 2), int)
        for age, work, label in ALL * 2:
            if end(age, work) == node:
                ages[age, label] += 1
                works[work, label] += 1
        assert (by_column["age"][position] == ages).all()
        assert (by_column["work"][position] == works).all()


def test_batches_may_be_cut_anywhere():
    kernel = TreeCounts(ROUTES, (1, 3, 4, 5), ("age", "work"), "class")
    whole, first, second = kernel.zero(), kernel.zero(), kernel.zero()
    kernel.add(batch(ALL), whole)
    kernel.add(batch(ALL[:7]), first)
    kernel.add(batch(ALL[7:]), second)
    kernel.merge(first, second)
    assert (whole == first).all()


@pytest.mark.parametrize("record", ALL)
def test_one_record_changes_one_count_of_each_column_by_one(record):
    kernel = TreeCounts(ROUTES, (1, 3, 4, 5), ("age", "work"), "class")
    answer = kernel.zero()
    kernel.add(batch([record]), answer)
    for counts in kernel.split(answer).values():
        assert counts.sum() == counts.max() == kernel.sensitivity(AddRemoveRecord())


def test_every_kernel_over_the_same_columns_reads_the_same_columns():
    # Otherwise a rule for missing values would leave out other records on the next level.
    root = TreeCounts(Routes(SCHEMA, {}), (0,), ("age", "work"), "class")
    assert root.codes == TreeCounts(ROUTES, (1,), ("age", "work"), "class").codes


def test_replaced_records_have_no_sensitivity_here():
    with pytest.raises(InvalidParameter):
        TreeCounts(ROUTES, (1,), ("age",), "class").sensitivity(ReplaceRecord())
