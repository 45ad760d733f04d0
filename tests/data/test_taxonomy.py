"""Taxonomies: nested by construction, refused when they are not trees."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.data.interval import order_intervals, parse_interval, whole_bins
from dpublish.data.taxonomy import Level, Taxonomy, canonical_text, read_tree, write_tree
from dpublish.errors import InvalidParameter, InvalidSchema

WORK = {"Paid": {"Public": ["State", "Local"], "Private": {}}, "Unpaid": ["Family"]}


def name_leaves(shape, names):
    return [name_leaves(x, names) for x in shape] if isinstance(shape, list) else next(names)


@st.composite
def trees(draw):
    """Draw nested lists of distinct leaves, in which no group stands alone in a group."""
    groups = st.recursive(st.none(), lambda x: st.lists(x, min_size=2, max_size=4), max_leaves=20)
    shape = draw(groups.filter(lambda x: x is not None))
    return name_leaves(shape, (f"leaf {number}" for number in range(100)))


@settings(deadline=None)
@given(tree=trees(), extra=st.sampled_from([(), ("(missing)",), ("rest", "(missing)")]))
def test_every_level_refines_the_one_above(tree, extra):
    taxonomy = Taxonomy.from_tree(read_tree(tree), extra)
    counts = np.arange(1, taxonomy.size + 1)
    for level in range(taxonomy.height):
        coarse, fine = taxonomy.leaf_to_cell(level), taxonomy.leaf_to_cell(level + 1)
        parent = dict(zip(fine, coarse, strict=True))
        assert [parent[cell] for cell in fine] == list(coarse)
        via_fine = np.bincount([parent[c] for c in range(fine[-1] + 1)], np.bincount(fine, counts))
        assert list(via_fine) == list(np.bincount(coarse, counts))
    assert list(taxonomy.leaf_to_cell(0)) == [0] * taxonomy.size
    assert list(taxonomy.leaf_to_cell(taxonomy.height)) == list(range(taxonomy.size))


def test_levels_made_by_scaling_are_refused_because_they_do_not_nest():
    def scaled(cells):
        starts = tuple(-(-16 * cell // cells) for cell in range(cells))
        return Level(starts, tuple(f"{cells}/{cell}" for cell in range(cells)))

    assert Taxonomy((scaled(1), scaled(2), scaled(4), scaled(16))).height == 3
    with pytest.raises(InvalidSchema, match="not nested"):
        Taxonomy((scaled(1), scaled(2), scaled(5), scaled(16)))


@settings(deadline=None)
@given(tree=trees())
def test_a_tree_survives_json_even_with_sorted_keys(tree):
    root = read_tree({"zebra": {"b": tree, "a": ["x"]}})
    assert read_tree(json.loads(json.dumps(write_tree(root), sort_keys=True))) == root
    assert read_tree(write_tree(read_tree(tree))) == read_tree(tree)


def test_a_leaf_above_a_level_stays_itself():
    taxonomy = Taxonomy.from_tree(read_tree(WORK))
    assert taxonomy.labels(0) == ("any",)
    assert taxonomy.labels(1) == ("Paid", "Unpaid")
    assert taxonomy.labels(2) == ("Public", "Private", "Family")
    assert taxonomy.labels(3) == ("State", "Local", "Private", "Family")
    assert list(taxonomy.cell_starts(2)) == [0, 2, 3, 4]
    with pytest.raises(InvalidParameter, match="at most 3"):
        taxonomy.labels(4)


def test_a_single_group_names_the_root_and_extra_leaves_hang_under_it():
    taxonomy = Taxonomy.from_tree(read_tree({"Any": WORK}), extra=("(missing)",))
    assert taxonomy.labels(0) == ("Any",)
    assert taxonomy.labels(1) == ("Paid", "Unpaid", "(missing)")
    assert taxonomy.labels(3)[-1] == "(missing)"


def test_unnamed_groups_are_called_after_their_ends():
    taxonomy = Taxonomy.from_tree(read_tree([["low", "middle"], "high"]))
    assert taxonomy.labels(1) == ("low..middle", "high")


def test_a_tree_is_drawn_with_every_node_once():
    drawn = Taxonomy.from_tree(read_tree(WORK), extra=("(missing)",)).render()
    assert drawn.splitlines() == [
        "any",
        "  Paid",
        "    Public",
        "      State",
        "      Local",
        "    Private",
        "  Unpaid",
        "    Family",
        "  (missing)",
    ]


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        (["a", "b", "a"], "'a' twice"),
        ({"x": ["a", "b"], "y": ["b"]}, "'b' twice"),
        ({"a": ["a", "b"], "c": {}}, "'a' twice"),  # both a group and a leaf
        ([{"x": ["a"]}, "b", {"x": ["c"]}], "'x' twice"),
        (["3", 3], "'3' twice"),
        (["3", "3.0"], "twice"),
        (["3.0", "3"], "twice"),
        (["a", [], "b"], "empty list"),
        ([], "is empty"),
        (["a", " "], "blank"),
        ({"a": 3}, "tables and lists"),
        (["a", 2.5], "text, integers"),
    ],
)
def test_what_is_not_a_tree_is_refused_in_words(tree, complaint):
    with pytest.raises(InvalidSchema, match=complaint):
        Taxonomy.from_tree(read_tree(tree))


def test_a_tree_without_end_is_refused():
    tree = ["a", "b"]
    for _ in range(2000):
        tree = [tree]
    with pytest.raises(InvalidSchema, match="deeper than 50"):
        read_tree(tree)


@given(count=st.integers(1, 70), branching=st.integers(2, 5), extra=st.integers(0, 2))
def test_merging_joins_neighbors_until_one_step_below_the_root(count, branching, extra):
    names = [f"extra {number}" for number in range(extra)]
    leaves = [str(number) for number in range(count)]
    taxonomy = Taxonomy.merging(leaves, branching, lambda a, b: f"{a}-{b}", names)
    for level in range(1, taxonomy.height + 1):
        width = branching ** (taxonomy.height - level)
        cells = [leaf // width for leaf in range(count)]
        specials = [cells[-1] + 1 + number for number in range(extra)]
        assert list(taxonomy.leaf_to_cell(level)) == cells + specials
    assert len(taxonomy.labels(1)) - extra <= branching


def test_texts_agree_whatever_type_a_value_had():
    assert len({canonical_text(x) for x in (7, 7.0, "7", "7.0", " 7 ", np.int8(7))}) == 1
    assert len({canonical_text(x) for x in (True, "true", "True", " TRUE", np.True_)}) == 1
    assert len({canonical_text(x) for x in ("07", "7", "7.5", "7.05", "a", "A")}) == 6


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("(14.0, 20.0]", (14, 20, False, True)),
        (" [-1.5,2e3) ", (-1.5, 2000, True, False)),
        ("30..34", (30, 34, True, True)),
        ("-3", (-3, -3, True, True)),
        ("[0, 1e999)", None),
        ("young", None),
        ("", None),
    ],
)
def test_intervals_are_read_with_their_ends(text, ends):
    span = parse_interval(text)
    assert ends == (span and (span.low, span.high, span.include_low, span.include_high))


def test_intervals_are_sorted_by_number_not_by_text():
    plain = {"(0, 300]": {"(100, 300]": {}, "(0, 100]": ["(5, 100]", "(0, 5]"]}}
    tree = order_intervals(read_tree(plain), whole=False)
    assert tree.partition.edges == (0, 5, 100, 300)
    assert tree.partition.closed == "right"
    assert Taxonomy.from_tree(tree.root).labels(1) == ("[0, 100]", "(100, 300]")


def test_integers_may_be_written_as_any_interval_that_holds_them():
    for leaves in (
        ["(14.0, 20.0]", "(20.0, 25.0]"],
        ["15..20", "21..25"],
        ["[15, 21)", "[21, 26)"],
    ):
        tree = order_intervals(read_tree(leaves), whole=True)
        assert tree.partition.edges == (15, 21, 26)
        assert tree.partition.labels == ("15..20", "21..25")


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        (["[0, 5)", "[6, 9)"], "a gap where 5 meets 6"),
        (["[0, 5)", "(5, 9)"], "a gap where 5 meets 5"),
        (["[0, 5)", "[4, 9)"], "an overlap where 5 meets 4"),
        (["[0, 5]", "[5, 9)"], "an overlap where 5 meets 5"),
        ({"[0, 10)": ["[0, 5)", "[5, 9)"]}, "do not fill"),
        (["[0, 5)", "[5, 7]", "(7, 9)"], "same side"),
        (["[0, 5)", "old"], "'old' that is no interval"),
        (["[5, 5]", "(5, 6]"], "holds nothing"),
    ],
)
def test_intervals_must_tile_their_parent(tree, complaint):
    with pytest.raises(InvalidSchema, match=complaint):
        order_intervals(read_tree(tree), whole=False)


@given(low=st.integers(-50, 50), count=st.integers(1, 60), data=st.data())
def test_whole_bins_are_those_of_integer_division(low, count, data):
    bins = data.draw(st.integers(1, count))
    cells = whole_bins(low, low + count - 1, bins)
    numbers = np.arange(low, low + count, dtype=np.float64)
    assert list(cells.locate(numbers)) == [i * bins // count for i in range(count)]
    widths = [high - low for low, high in pairwise(cells.edges)]
    assert max(widths) - min(widths) <= 1
