"""Occupied cells of cuts: the counts are those that one would find by hand."""

import pickle
from collections import Counter

import pyarrow as pa
import pytest

from dpublish.aggregates.cut_counts import CutCounts
from dpublish.data.batch import Batch
from dpublish.data.cut import cut_axis
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit
from dpublish.randomness import plain_generator

WORK = column(
    "work", "category", taxonomy={"Paid": ["State", "Private"], "Unpaid": ["Carer", "None"]}
)
AGE = column("age", "integer", bounds=[0, 99])
TOWN = column("town", "category", values=["Ost", "West"], missing="drop")
PAID, AGES = cut_axis(WORK, [0, 2, 3]), cut_axis(AGE, [0, 30, 65])
NAMES = ("work", "age", "town")


def records(size=500):
    rng = plain_generator(9)
    towns = ["Ost", "West", None]
    return pa.table(
        {
            "work": [WORK.labels[k] for k in rng.integers(0, 4, size)],
            "age": rng.integers(0, 100, size),
            "town": [towns[k] for k in rng.integers(0, 3, size)],
        }
    )


def by_hand(table):
    """Count complete records by cut work and age, and by age alone."""
    pairs, ages = Counter(), Counter()
    for row in table.to_pylist():
        if row["town"] is None:
            continue
        age = (row["age"] >= 30) + (row["age"] >= 65)
        work = {"State": 0, "Private": 0, "Carer": 1, "None": 2}[row["work"]]
        pairs[3 * work + age] += 1
        ages[age] += 1
    return pairs, ages


def test_all_sets_count_the_complete_records():
    kernel = CutCounts(((PAID, AGES), (AGES,)), NAMES)
    table = records()
    tallies = open_table(table, Schema((WORK, AGE, TOWN))).sum(kernel)
    for tally, expected in zip(tallies, by_hand(table), strict=True):
        keys, counts = tally.compact()
        assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == expected


def test_a_record_changes_one_cell_of_every_set():
    kernel = CutCounts(((PAID, AGES), (AGES,)), NAMES)
    assert kernel.sensitivity(AddRemoveRecord()) == 2
    with pytest.raises(InvalidParameter, match="single records"):
        kernel.sensitivity(AddRemoveUnit("person"))


def test_it_can_be_copied_to_other_processes_and_merged():
    kernel = pickle.loads(pickle.dumps(CutCounts(((AGES,),), ("age",))))
    parts = []
    for low in (10, 40):
        out = kernel.zero()
        kernel.add(Batch(2, codes={"age": AGE.encode(pa.array([low, low]))[0]}), out)
        parts.append(out)
    kernel.merge(*parts)
    assert parts[0][0].compact().keys.tolist() == [0, 1]
    assert parts[0][0].compact().counts.tolist() == [2, 2]


def test_what_cannot_be_numbered_or_is_cut_twice_is_refused():
    many = [column(f"c{k}", "integer", bounds=[0, 9999]).axis() for k in range(5)]
    with pytest.raises(InvalidParameter, match=r"2\*\*62"):
        CutCounts((tuple(many),), ())
    with pytest.raises(InvalidParameter, match="in two ways"):
        CutCounts(((AGES,), (cut_axis(AGE, [0, 50]),)), ("age",))
