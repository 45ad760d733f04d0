"""Schemas, columns and axes: what is declared, and what part of a cell a query covers."""

import json
import pickle
from math import inf, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.data.axis import Axis
from dpublish.data.schema import Schema, column, parse_columns
from dpublish.errors import InvalidParameter, InvalidQuery, InvalidSchema
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit

AGE = column("age", "integer", bounds=[17, 90], branching=2)
PAY = column("pay", "numeric", cuts=[0, 10, 15, 100], missing="category")
WORK = column(
    "work",
    "category",
    taxonomy={"Any": {"Paid": {"Public": ["State", "Local"], "Private": {}}, "Unpaid": {}}},
    other="Other",
    missing="category",
)
LEVEL = column("level", "ordinal", values=["low", "middle", "high", "top"], other="rest")
SCHEMA = Schema((AGE, PAY, WORK, LEVEL), unit="person", name="survey")
COLUMNS = [
    AGE,
    PAY,
    WORK,
    LEVEL,
    column("a", "integer", bounds=[-3, 20], bins=5),
    column("b", "integer", taxonomy={"young": ["(0, 9]", "(9, 17]"], "old": ["(17, 99]"]}),
    column("c", "numeric", bounds=[-1, 1], bins=10, branching=3, missing="category"),
    column("d", "ordinal", values=[1, 2, 3, 4, 5], branching=2),
    column("e", "category", values=[False, True]),
]
AXES = [each.axis(level) for each in COLUMNS for level in range(each.height + 1)]
NUMBER_AXES = [axis for axis in AXES if axis.edges is not None]
ends = st.floats(-40, 130) | st.integers(-40, 130).map(float) | st.sampled_from([-inf, inf])


def test_a_schema_finds_its_columns_and_hints_at_the_nearest():
    assert SCHEMA["pay"] is PAY
    assert SCHEMA.names == ("age", "pay", "work", "level")
    with pytest.raises(InvalidParameter, match="did you mean 'work'"):
        SCHEMA["wrok"]


def test_what_is_protected_follows_from_the_unit():
    assert SCHEMA.neighbors == AddRemoveUnit("person")
    assert Schema((AGE,)).neighbors == AddRemoveRecord()


def test_schemas_are_values():
    twin = Schema((AGE, PAY, WORK, LEVEL), unit="person", name="survey")
    assert twin == SCHEMA
    assert hash(twin) == hash(SCHEMA)
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA
    assert Schema((AGE,)) != Schema((column("age", "integer", bounds=[17, 90]),))


@pytest.mark.parametrize(
    ("columns", "unit", "complaint"),
    [((), None, "at least one"), ((AGE, AGE), None, "two columns"), ((AGE,), " ", "unit is blank")],
)
def test_a_schema_that_contradicts_itself_is_refused(columns, unit, complaint):
    with pytest.raises(InvalidSchema, match=complaint):
        Schema(columns, unit=unit)


@pytest.mark.parametrize(
    ("settings_of", "complaint"),
    [
        ({"kind": "number"}, r"kind \(number\) must be one of"),
        ({"kind": "numeric"}, "bounds are missing"),
        ({"kind": "numeric", "bounds": [1]}, "two numbers"),
        ({"kind": "numeric", "bounds": [1, 1]}, "the lower first"),
        ({"kind": "numeric", "bounds": [0, inf]}, "finite"),
        ({"kind": "numeric", "bounds": [0, 10**400]}, "too large"),
        ({"kind": "numeric", "bounds": [-1e308, 1e308]}, "finite"),
        ({"kind": "numeric", "bounds": [0, 5e-324], "bins": 1}, "a float can measure"),
        ({"kind": "numeric", "bounds": [1, 1 + 4e-16], "bins": 9}, "tell apart"),
        ({"kind": "numeric", "bounds": [0, 1], "bins": 0}, r"bins \(0\)"),
        ({"kind": "numeric", "bounds": [0, 1], "bins": 10**7}, "choose 1 to 1000000"),
        ({"kind": "numeric", "cuts": [0]}, "at least two edges"),
        ({"kind": "numeric", "cuts": [0, 2, 1]}, "increase"),
        ({"kind": "numeric", "cuts": [0, 2], "bins": 2}, "remove bins"),
        ({"kind": "numeric", "cuts": [0, 2], "bounds": [0, 3]}, "bounds contradict cuts"),
        ({"kind": "numeric", "bounds": [0, 1], "values": ["a"]}, "values does not apply"),
        ({"kind": "numeric", "bounds": [0, 1], "other": "a"}, "other does not apply"),
        ({"kind": "numeric", "bounds": [0, 1], "missing": "ignore"}, "missing"),
        ({"kind": "numeric", "bounds": [0, 1], "branching": 1}, "branching"),
        ({"kind": "numeric", "taxonomy": ["[0, 1)", "[1, 3)"], "bounds": [0, 2]}, "contradict"),
        ({"kind": "numeric", "taxonomy": ["[0, 1)"], "branching": 2}, "exclude each other"),
        ({"kind": "integer", "bounds": [0, 1.5]}, "integers"),
        ({"kind": "integer", "bounds": [0, 10**6]}, "1000001 integers.*set bins"),
        ({"kind": "integer", "bounds": [0, 2**60], "bins": 2}, "2\\^53"),
        ({"kind": "integer", "taxonomy": ["[0, 1)", "[1, 1e300)"]}, "2\\^53"),
        ({"kind": "integer", "bounds": [0, 3], "bins": 5}, "choose 1 to 4"),
        ({"kind": "integer", "cuts": [0, 0.5, 0.7, 3]}, "increase"),
        ({"kind": "category"}, "values are missing"),
        ({"kind": "category", "values": []}, "values are missing"),
        ({"kind": "category", "values": ["a", "a"]}, "'a' twice"),
        ({"kind": "category", "values": ["1", 1]}, "'1' twice"),
        ({"kind": "category", "values": ["a", ""]}, "blank"),
        ({"kind": "category", "values": ["a"], "bounds": [0, 1]}, "bounds does not apply"),
        ({"kind": "category", "values": ["a"], "branching": 2}, "branching does not apply"),
        ({"kind": "category", "values": ["(missing)"], "missing": "category"}, "twice"),
        ({"kind": "category", "values": ["a"], "taxonomy": ["a", "b"]}, "has 'b', which values"),
        ({"kind": "category", "values": ["a", "b"], "taxonomy": ["a"]}, "no leaf for 'b'"),
        ({"kind": "category", "taxonomy": {"x": ["a"], "b": {}}, "other": "x"}, "'x' twice"),
        ({"kind": "ordinal", "values": ["a", "b"], "taxonomy": ["b", "a"]}, "the order of values"),
    ],
)
def test_a_column_that_contradicts_itself_is_refused_by_name(settings_of, complaint):
    with pytest.raises(InvalidSchema, match=f"^column 'x': .*{complaint}") as refusal:
        column("x", **settings_of)
    assert "\n" not in str(refusal.value)


def test_leaves_are_numbered_in_the_order_of_the_taxonomy():
    typed = column("x", "category", values=[1, 2, 3], taxonomy={"odd": ["3", "1"], "even": [2]})
    assert typed.categories == (3, 1, 2)
    assert typed.axis(1).labels == ("odd", "even")


def test_special_cells_come_last_on_every_level_but_the_root():
    assert WORK.axis(1).labels == ("Paid", "Unpaid", "Other", "(missing)")
    assert WORK.axis().labels == ("State", "Local", "Private", "Unpaid", "Other", "(missing)")
    assert PAY.axis().labels == ("[0, 10)", "[10, 15)", "[15, 100]", "(missing)")
    assert PAY.axis().edges == (0, 10, 15, 100)
    assert PAY.axis(0).edges == (0, 100)


def test_integer_cells_say_what_they_hold():
    ages = column("x", "integer", cuts=[0, 18, 65, 120]).axis()
    assert ages.labels == ("0..17", "18..64", "65..120")
    assert ages.edges == (0, 18, 65, 121)
    assert ages.holds_integers


def test_labels_stay_distinct_when_edges_are_very_near():
    near = column("x", "numeric", cuts=[1, 1 + 1e-14, 1 + 2e-14])
    assert len(set(near.axis().labels)) == 2


def test_named_groups_of_intervals_keep_their_names():
    ages = next(each for each in COLUMNS if each.name == "b")
    assert ages.axis(1).labels == ("young", "old")
    assert ages.axis(2).labels == ("1..9", "10..17", "18..99")


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: f"{axis.column}@{axis.level}")
def test_an_axis_survives_json_and_lists_every_leaf_once(axis):
    assert Axis.from_dict(json.loads(json.dumps(axis.to_dict(), sort_keys=True))) == axis
    leaves = [leaf for cell in range(axis.size) for leaf in axis.leaves_of(cell)]
    assert tuple(leaves) == axis.leaf_labels
    assert list(np.bincount(axis.leaf_to_cell)) == [
        len(axis.leaves_of(c)) for c in range(axis.size)
    ]


@settings(deadline=None)
@pytest.mark.parametrize("axis", NUMBER_AXES, ids=lambda axis: f"{axis.column}@{axis.level}")
@given(low=ends, high=ends, include_low=st.booleans(), include_high=st.booleans())
def test_cells_are_covered_in_proportion_to_what_they_hold(
    axis, low, high, include_low, include_high
):
    weights = axis.cover(low, high, include_low, include_high)
    cells = len(axis.edges) - 1
    assert np.all((weights >= 0) & (weights <= 1))
    assert not weights[cells:].any()
    covered = weights[:cells] * np.diff(axis.edges)
    first, last = axis.edges[0], axis.edges[-1]
    if not axis.holds_integers:
        assert isclose(covered.sum(), max(0, min(high, last) - max(low, first)), abs_tol=1e-9)
        return
    for cell, held in enumerate(covered):
        numbers = range(int(axis.edges[cell]), int(axis.edges[cell + 1]))
        inside = [
            (low < x or (include_low and low == x)) and (x < high or (include_high and x == high))
            for x in numbers
        ]
        assert isclose(held, sum(inside), abs_tol=1e-9)


@settings(deadline=None)
@pytest.mark.parametrize("axis", NUMBER_AXES, ids=lambda axis: f"{axis.column}@{axis.level}")
@given(middle=st.floats(-40, 130))
def test_two_halves_cover_the_whole(axis, middle):
    halves = axis.cover(high=middle, include_high=False) + axis.cover(low=middle)
    np.testing.assert_allclose(halves, axis.cover(), atol=1e-12)
    np.testing.assert_array_equal(axis.cover()[: len(axis.edges) - 1], 1.0)


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: f"{axis.column}@{axis.level}")
def test_all_leaves_together_match_every_cell_fully(axis):
    np.testing.assert_allclose(axis.match(*axis.leaf_labels), 1.0)
    single = sum(axis.match(leaf) for leaf in axis.leaf_labels)
    if axis.level > 0 or axis.edges is None or not axis.special:
        np.testing.assert_allclose(single, 1.0)


def test_a_value_in_a_coarser_cell_counts_as_one_of_its_leaves():
    np.testing.assert_allclose(WORK.axis(1).match("Local"), [1 / 3, 0, 0, 0])
    np.testing.assert_allclose(WORK.axis(1).match("Public", "Local"), [2 / 3, 0, 0, 0])
    np.testing.assert_allclose(WORK.axis().match("Paid", "(missing)"), [1, 1, 1, 0, 0, 1])
    np.testing.assert_allclose(WORK.axis().match("Any"), [1] * 6)


def test_integers_match_their_share_of_a_bin():
    bins = column("x", "integer", bounds=[0, 9], bins=2).axis()
    np.testing.assert_allclose(bins.match(3, "4", 4.0, 5), [0.4, 0.2])
    np.testing.assert_allclose(bins.match("0..4", 2), [1, 0])


def test_ordinal_ranges_follow_the_order_of_values_and_leave_out_the_rest():
    axis = LEVEL.axis()
    np.testing.assert_array_equal(axis.cover("middle"), [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(axis.cover("low", "high", False, False), [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(axis.cover(high="low"), [1, 0, 0, 0, 0])
    steps = next(each for each in COLUMNS if each.name == "d").axis(1)
    assert steps.labels == ("1..4", "5")
    np.testing.assert_allclose(steps.cover(2, 3.0), [0.5, 0])


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda: WORK.axis().match("Lokal"), "did you mean 'Local'"),
        (lambda: WORK.axis().match("?"), "known: State, Local"),
        (lambda: WORK.axis().cover("State"), "has no order"),
        (lambda: LEVEL.axis().cover("rest"), "no position in the order"),
        (lambda: LEVEL.axis().cover("hihg"), "did you mean 'high'"),
        (lambda: AGE.axis().match(200), "integers from 17 to 90, not 200"),
        (lambda: AGE.axis().match(20.5), "integers from 17 to 90"),
        (lambda: AGE.axis().cover("old"), "holds numbers, and 'old' is none"),
        (lambda: AGE.axis().cover(float("nan")), "is none"),
        (lambda: PAY.axis().match(3), "ask for a range"),
    ],
)
def test_a_query_without_an_answer_is_refused_with_a_hint(ask, complaint):
    with pytest.raises(InvalidQuery, match=complaint):
        ask()


def test_columns_may_be_asked_for_on_a_level():
    assert parse_columns("age@2, work", SCHEMA) == (("age", 2), ("work", None))
    odd = Schema((column("a@1", "category", values=["x"]),))
    assert parse_columns("a@1", odd) == (("a@1", None),)
    assert parse_columns("a@1@0", odd) == (("a@1", 0),)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agee", "did you mean 'age'"),
        ("agee@1", "did you mean 'age'"),
        ("age@99", r"levels 0 \(one cell\) to 7"),
        ("age@x", "levels 0"),
        ("age@", "levels 0"),
        ("", "no column ''"),
        ("age,age@1", "listed twice"),
    ],
)
def test_columns_that_do_not_exist_are_refused(text, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        parse_columns(text, SCHEMA)
