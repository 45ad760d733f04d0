"""Tree counts: every record goes one way, is counted once, and in whatever batches."""

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.methods.trees.kernels import Branches, Routes, TreeCounts
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


def test_every_record_goes_where_the_tree_says():
    codes = {"age": np.array([r[0] for r in ALL]), "work": np.array([r[1] for r in ALL])}
    assert ROUTES.follow(codes, len(ALL)).tolist() == [end(age, work) for age, work, _ in ALL]


def test_an_unknown_value_stops_at_the_node_that_asks_for_it():
    codes = {"age": np.array([-1, 5, 0]), "work": np.array([0, -1, -1])}
    assert ROUTES.follow(codes, 3).tolist() == [0, 2, 1]


def test_counts_are_those_of_a_loop_over_the_records():
    kernel = TreeCounts(ROUTES, (1, 4), ("age", "work"), "class")
    answer = kernel.zero()
    kernel.add(batch(ALL * 2), answer)
    by_column = kernel.split(answer)
    for place, node in enumerate((1, 4)):
        ages, works = np.zeros((6, 2), int), np.zeros((3, 2), int)
        for age, work, label in ALL * 2:
            if end(age, work) == node:
                ages[age, label] += 1
                works[work, label] += 1
        assert (by_column["age"][place] == ages).all()
        assert (by_column["work"][place] == works).all()


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
