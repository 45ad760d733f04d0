"""Impossible combinations and known totals: what they cover, and what is refused."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.core.contribution import record_schema
from dpublish.data.schema import Schema, bounded_schema, column, keep_columns
from dpublish.data.sources import open_table
from dpublish.data.statements import Combination, KnownTotal, leaves_room
from dpublish.errors import InvalidSchema

AGE = column("age", "integer", bounds=[0, 99])
TENS = column("tens", "integer", bounds=[0, 99], bins=10)
PAY = column("pay", "numeric", bounds=[0, 100], bins=4)
STATE = column(
    "state",
    "category",
    taxonomy={"Single": ["Never", "Widowed"], "Couple": ["Married"]},
    missing="category",
)
SIZE = column("size", "ordinal", values=["S", "M", "L"])
DAY = column("day", "date", bounds=["2023-01-01", "2023-12-31"], bins="month")
COLUMNS = (AGE, TENS, PAY, STATE, SIZE, DAY)


def masks(where):
    (found,) = Schema(COLUMNS, impossible=(Combination(where),)).impossible
    return dict(zip(found.columns, found.codes, strict=True))


def labels(where, name):
    axis = Schema(COLUMNS)[name].axis()
    return [label for label, holds in zip(axis.labels, masks(where)[name], strict=True) if holds]


def test_each_column_has_a_mask_over_its_leaf_codes():
    found = masks("state = Married and age < 16")
    assert [*found] == ["state", "age"]  # as they are written
    assert np.flatnonzero(found["age"]).tolist() == list(range(16))
    assert found["state"].tolist() == [False, False, True, False]
    assert not found["age"].flags.writeable


@pytest.mark.parametrize(
    ("where", "name", "covered"),
    [
        ("state = Single and age < 3", "state", ["Never", "Widowed"]),
        ("state != Married and age < 3", "state", ["Never", "Widowed", "(missing)"]),
        ('state = "(missing)" and age < 3', "state", ["(missing)"]),
        ("size >= M and age < 3", "size", ["M", "L"]),
        ("tens in 20..39 and age < 3", "tens", ["20..29", "30..39"]),
        ("tens >= 20 and tens < 30 and age < 3", "tens", ["20..29"]),
        ("pay < 25 and age < 3", "pay", ["[0, 25)"]),
        ("pay >= 50 and age < 3", "pay", ["[50, 75)", "[75, 100]"]),
        ("day < 2023-03 and age < 3", "day", ["2023-01", "2023-02"]),
        ("day = 2023-Q1 and age < 3", "day", ["2023-01", "2023-02", "2023-03"]),
        ("age = 7 and size = S", "age", ["7"]),
    ],
)
def test_conditions_of_every_kind_of_column_become_codes(where, name, covered):
    assert labels(where, name) == covered


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("tens < 16 and size = S", "covers a part of the bin '10..19' of 'tens'"),
        ("tens = 16 and size = S", "change the column's bins, cuts or bounds"),
        ("pay < 30 and size = S", "covers a part of the bin"),
        ("pay <= 25 and size = S", "bins hold their lower end, so write < and >="),
        ("pay > 25 and size = S", "bins hold their lower end, so write < and >="),
        ("day < 2023-03-15 and size = S", "covers a part of the bin '2023-03'"),
        ("age < 16", "left out of the column's values, or of its bounds"),
        ("", "fewer than two columns"),
        ("age < 5 and tens < 10 and pay < 25 and size = S and day = 2023-01", "at most 4"),
        ("aeg < 16 and size = S", "did you mean 'age'?"),
        ("size = XL and age < 3", "has no value 'XL'"),
        ("age > 200 and size = S", "holds for no value of 'age'"),
        ("age >= 0 and size = S", "holds for every value of 'age'; leave the condition"),
        ("age < 3 or size = S", "'and' only"),
    ],
)
def test_what_codes_cannot_express_is_refused_with_advice(where, told):
    with pytest.raises(InvalidSchema) as refusal:
        masks(where)
    assert told in str(refusal.value)
    assert repr(where)[1:20] in str(refusal.value)


def test_the_same_statement_written_otherwise_is_equal():
    assert Combination("age<16 and size='S'") == Combination("age < 16 and size = S")


def test_schemas_with_statements_are_values():
    one, other = (
        Schema(COLUMNS, impossible=(Combination(where),), totals=(KnownTotal(count=9),))
        for where in ("age<16 and size = S", "age < 16 and size = S")
    )
    assert one == other
    assert hash(one) == hash(other)
    assert one != Schema(COLUMNS)
    assert one != replace(one, totals=())
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.impossible[0].codes[0].sum() == 16


def test_fewer_columns_keep_the_statements_about_them():
    schema = Schema(
        COLUMNS,
        impossible=(Combination("age < 16 and size = S"), Combination("pay < 25 and size = S")),
        totals=(KnownTotal("size = S", count=4), KnownTotal("age < 16", count=3)),
    )
    kept = keep_columns(schema, ["age", "size"])
    assert [each.where for each in kept.impossible] == ["age < 16 and size = S"]
    assert [each.where for each in kept.totals] == ["size = S", "age < 16"]
    assert kept.impossible[0].codes is schema.impossible[0].codes
    assert keep_columns(schema, ["pay"]).impossible == keep_columns(schema, ["pay"]).totals == ()


def test_the_same_column_cut_otherwise_has_other_codes_or_no_statement():
    schema = Schema((AGE, SIZE), impossible=(Combination("age < 20 and size = S"),))
    tens = replace(schema, columns=(replace(TENS, name="age"), SIZE))
    assert tens.impossible[0].codes[0].sum() == 2
    wide = column("age", "integer", bounds=[0, 99], bins=3)
    assert replace(schema, columns=(wide, SIZE)).impossible == ()


def test_rows_that_are_kept_of_each_unit_have_no_known_totals():
    schema = Schema(
        (AGE, SIZE),
        unit="person",
        impossible=(Combination("age < 20 and size = S"),),
        totals=(KnownTotal(count=10),),
    )
    bounded = bounded_schema(schema, schema.columns)
    assert bounded.impossible == schema.impossible
    assert bounded.totals == ()
    assert record_schema(schema, ("age", "size")) == bounded
    rows = pa.table({"age": [1, 2], "size": ["S", "M"], "person": [1, 1]})
    assert open_table(rows, schema).bound(1, b"", ("age", "size")).schema == bounded


def test_totals_cover_codes_as_combinations_do():
    total = KnownTotal("size in {S, L} and state = Single", count=7, source="a table")
    (found,) = Schema(COLUMNS, totals=(total,)).totals
    assert found.columns == ("size", "state")
    assert found.count == 7
    assert found.source == "a table"
    assert found.codes[0].tolist() == [True, False, True]
    (whole,) = Schema(COLUMNS, totals=(KnownTotal(count=0),)).totals
    assert whole.columns == whole.codes == ()


@pytest.mark.parametrize(
    ("totals", "told"),
    [
        ([("size = S", 3), ("size in {S}", 3)], "two totals are about the same records"),
        ([("", 3), ("", 4)], "two totals are about the same records (all records)"),
        ([("", 3), ("size = S", 4)], "4 records with size = S, but only 3 records in all"),
        ([("size != S", 3), ("size = M and age < 9", 4)], "of which they are a part"),
        ([("age < 3 and size = S and pay < 25 and day = 2023-01", 1)], "at most 3"),
        ([("size = S", -1)], "count (-1) must be an integer, at least 0"),
        ([("size = S", 1.5)], "count (1.5) must be an integer"),
        ([("age < 10 and size = S and tens < 20", 5)], "is impossible"),
    ],
)
def test_totals_that_contradict_each_other_are_refused(totals, told):
    with pytest.raises(InvalidSchema) as refusal:
        Schema(
            COLUMNS,
            impossible=(Combination("age < 16 and size = S"),),
            totals=tuple(KnownTotal(where, count=count) for where, count in totals),
        )
    assert told in str(refusal.value)


def test_totals_that_agree_are_accepted():
    totals = [("", 10), ("size = S", 10), ("size = M", 0), ("age < 10 and size = S", 0)]
    given = tuple(KnownTotal(where, count=count) for where, count in totals)
    assert (
        len(
            Schema(COLUMNS, impossible=(Combination("age < 16 and size = S"),), totals=given).totals
        )
        == 4
    )


def test_a_value_may_be_impossible_altogether_but_not_everything():
    size = [Combination(f"size = S and state {sign} Single") for sign in ("=", "!=")]
    assert len(Schema(COLUMNS, impossible=tuple(size)).impossible) == 2
    rest = [Combination(f"size != S and state {sign} Single") for sign in ("=", "!=")]
    with pytest.raises(InvalidSchema, match="leave nothing possible"):
        Schema(COLUMNS, impossible=(*size, *rest))


NAMES = "abc"
SMALL = tuple(column(name, "category", values=["0", "1", "2"]) for name in NAMES)
CONDITION = st.sets(st.sampled_from("012"), min_size=1, max_size=2)
BOX = st.dictionaries(st.sampled_from(NAMES), CONDITION, min_size=2, max_size=3)


@settings(max_examples=300, deadline=None)
@given(st.lists(BOX, min_size=1, max_size=14))
def test_room_is_found_if_and_only_if_there_is_some(boxes):
    known = {each.name: each for each in SMALL}
    wheres = [
        " and ".join(f"{name} in {{{', '.join(sorted(values))}}}" for name, values in box.items())
        for box in boxes
    ]
    is_possible = any(
        not any(all(cell[NAMES.index(n)] in values for n, values in box.items()) for box in boxes)
        for cell in product("012", repeat=3)
    )
    assert leaves_room([Combination(where).bind(known) for where in wheres]) == is_possible


def test_statements_beyond_a_thousand_are_refused():
    many = tuple(Combination(f"age = {n % 99} and tens < 10") for n in range(1_001))
    with pytest.raises(InvalidSchema, match="states 1,001 facts of a kind, more than 1,000"):
        Schema(COLUMNS, impossible=many)


def test_a_count_may_be_an_integer_of_numpy():
    total = KnownTotal("size = S", count=np.int64(3))
    assert type(total.count) is int


def test_many_statements_are_checked_quickly():
    known = {"age": AGE, "tens": TENS}
    many = [Combination(f"age = {age} and tens < 50").bind(known) for age in range(99)]
    many += [Combination(f"age = {age} and tens >= 50").bind(known) for age in range(99)]
    assert leaves_room(many)
    last = [Combination(f"age = 99 and tens {sign} 50").bind(known) for sign in ("<", ">=")]
    assert not leaves_room([*many, *last])
