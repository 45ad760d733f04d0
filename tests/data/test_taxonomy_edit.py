"""A drawn tree arranges the leaves of a column, and nothing else."""

import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import from_dict
from dpublish.data.taxonomy import Node, write_tree
from dpublish.data.taxonomy_edit import can_draw, current_tree, drawn_keys, read_drawn
from dpublish.errors import InvalidSchema

WARDS = {"kind": "category", "values": ["A", "B", 3], "other": "else", "missing": "category"}
AGES = {"kind": "integer", "bounds": [0, 99], "bins": 4}
NESTED = {"kind": "numeric", "taxonomy": {"all": [{"low": ["[0, 1)", "[1, 2)"]}, "[2, 4]"]}}


def group(name, *children):
    return {"name": name, "children": [{"name": c} if isinstance(c, str) else c for c in children]}


def drawn(declared, plain):
    return drawn_keys(declared, column("x", **declared), read_drawn(plain))


@pytest.mark.parametrize(
    ("declared", "tree"),
    [
        (WARDS, ["A", "B", "3"]),
        (AGES, ["0..24", "25..49", "50..74", "75..99"]),
        (AGES | {"branching": 2}, [["0..24", "25..49"], ["50..74", "75..99"]]),
        ({"kind": "ordinal", "values": [*"abc"], "branching": 2}, [["a", "b"], "c"]),
        (NESTED, {"all": [{"low": ["[0, 1)", "[1, 2)"]}, "[2, 4]"]}),
        ({"kind": "integer", "taxonomy": {"1..4": ["1..2", ["3", "4"]]}}, ["1..2", ["3", "4"]]),
    ],
)
def test_the_tree_of_a_column_is_what_its_levels_say(declared, tree):
    item = column("x", **declared)
    found = current_tree(item)
    assert write_tree(found) == tree
    again = column("x", **drawn_keys(declared, item, found))
    assert again.taxonomy.levels[1:] == item.taxonomy.levels[1:]  # the root may be renamed


def test_a_drawn_tree_becomes_levels_of_the_same_leaves():
    keys = drawn(WARDS, group(None, group("old", "B", group(None, "A", "3"))))
    assert keys == WARDS | {"taxonomy": [{"old": ["B", ["A", "3"]]}]}
    levels = from_dict({"columns": {"x": keys}})["x"].taxonomy.levels
    assert [len(level.labels) for level in levels] == [1, 3, 4, 5]
    ages = drawn(AGES, group(None, group("old", "50..74", "75..99"), "0..24", "25..49"))
    assert ages.keys() == {"kind", "taxonomy"}
    item = Schema((column("x", **ages),))["x"]
    assert item.bounds == (0, 99)
    assert item.taxonomy.labels(1) == ("0..24", "25..49", "old")


def test_a_tree_without_groups_is_a_list():
    assert drawn(WARDS, group(None, "A", "B", "3")) == WARDS
    assert drawn(AGES, group(None, "0..24", "25..49", "50..74", "75..99")) == AGES
    grouped = WARDS | {"taxonomy": ["A", ["B", "3"]]}
    assert drawn(grouped, group(None, "A", "B", "3")) == WARDS
    assert drawn(NESTED, group(None, "[0, 1)", "[1, 2)", "[2, 4]")) == {
        "kind": "numeric",
        "taxonomy": ["[0, 1)", "[1, 2)", "[2, 4]"],
    }


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        (group(None, "A", "B"), "lacks '3'"),
        (group(None, "A", "B", "3", "3.0"), "'3' twice"),
        (group(None, "A", "B", "3", "C"), "'C', which is no value"),
        (group(None, "A", "B", group("3", "else")), "lacks '3'"),
        (group(None, "A", "B", "3", group("new")), "new is empty"),
        ({"name": None}, "no name"),
        ({"name": 3, "children": []}, "no drawn tree"),
        ({"name": "x", "children": "A"}, "no drawn tree"),
        ([], "no drawn tree"),
    ],
)
def test_what_is_no_arrangement_of_the_leaves_is_refused(plain, told):
    with pytest.raises(InvalidSchema, match=told):
        drawn(WARDS, plain)


def test_a_tree_without_end_is_refused():
    plain = group(None, "A", "B", "3")
    for _ in range(100):
        plain = group(None, plain)
    with pytest.raises(InvalidSchema, match="no drawn tree"):
        read_drawn(plain)


def test_neighbors_that_are_torn_apart_are_refused_by_the_schema():
    keys = drawn(AGES, group(None, group("ends", "0..24", "75..99"), "25..49", "50..74"))
    with pytest.raises(InvalidSchema, match="gap"):
        column("x", **keys)


def test_dates_and_long_lists_are_not_drawn():
    dates = column("day", "date", bounds=["2023-01-01", "2024-12-31"])
    many = column("id", "category", values=[str(n) for n in range(1_001)])
    part = column("weekday", source=dates, part="weekday")
    for item in (dates, many, part):
        assert not can_draw(item)
        with pytest.raises(InvalidSchema):
            current_tree(item)
        with pytest.raises(InvalidSchema):
            drawn_keys({}, item, Node("a"))
    assert can_draw(column("x", **AGES))
