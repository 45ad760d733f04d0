"""Preferences: a record is never charged above its own number, and its own content decides."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations, pairwise
from math import inf, nan, nextafter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.aggregates.counts import Counts
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.preferences import Preferences, levels_of, look_up, parse_rule
from dpublish.privacy.neighbors import PersonalRecord
from dpublish.testing import frequency_p_value

TENTH, HALF, ONE = Fraction(1, 10), Fraction(1, 2), Fraction(1)
LEVELS = (Fraction(1, 100), TENTH, Fraction(3, 10), ONE)
PEOPLE = Schema(
    (column("a", "integer", bounds=[0, 2]), column("sex", "category", values=["F", "M"]))
)
AGE = column("age", "integer", bounds=[0, 99])
PAY = column("pay", "numeric", cuts=[0, 10, 50, 99])
WORK = column(
    "work",
    "category",
    taxonomy={"Paid": ["Private", "State, Local"], "Unpaid": {}},
    other="else",
    missing="category",
)
HEALTH = column("health", "ordinal", values=["poor", "fair", "good"], missing="category")


def preferences(**changes):
    return Preferences(**{"column": "own", "levels": LEVELS} | changes)


def people(numbers, values=None, kind=None):
    values = [0] * len(numbers) if values is None else values
    arrays = {
        "own": pa.array(numbers, kind or pa.float64()),
        "a": pa.array(values, pa.int64()),
        "sex": pa.array(["F"] * len(numbers), pa.string()),
    }
    return open_table(pa.table(arrays), preferences().schema(PEOPLE))


def cells(table, name="a"):
    return table.sum(Counts(table.schema, (((name, None),),))).tolist()


def sizes_of(table):
    return [sum(cells(preferences().group(table, [level]))) for level in LEVELS]


# -- levels


@given(st.lists(st.floats() | st.none() | st.sampled_from([*map(float, LEVELS), 0.0, inf, nan])))
def test_a_number_is_rounded_down_to_a_level_and_below_the_first_left_out(numbers):
    expected = [0] * len(LEVELS)
    for number in numbers:
        found = [b for b, e in enumerate(LEVELS) if number is not None and number >= float(e)]
        if found:
            expected[found[-1]] += 1
    assert sizes_of(people(numbers)) == expected


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (0.3, pa.float64()),
        ("0.3", pa.string()),
        (" 0.30 ", pa.string()),
        ("3e-1", pa.string()),
        (Decimal("0.3"), pa.decimal128(5, 2)),
    ],
)
def test_what_is_written_as_a_level_is_that_level(number, kind):
    assert sizes_of(people([number], kind=kind)) == [0, 0, 1, 0]


def test_a_number_just_below_a_level_belongs_to_the_one_before():
    assert sizes_of(people([nextafter(0.3, 0), nextafter(0.01, 0)])) == [0, 1, 0, 0]
    assert float(np.float32(0.7)) < 0.7  # so narrow floats may fall below, never above
    own = preferences(levels=(HALF, Fraction(7, 10)))
    table = open_table(
        pa.table({"own": pa.array([0.7], pa.float32()), "a": [0], "sex": ["F"]}),
        own.schema(PEOPLE),
    )
    assert sum(cells(own.group(table, [HALF]))) == 1


@pytest.mark.parametrize("absent", [None, nan, -1.0, 0.0, -inf, 0.0099])
def test_who_gives_no_number_or_less_than_the_first_level_is_in_no_group(absent):
    assert sizes_of(people([absent, 1.0])) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"levels": ()},
        {"levels": (ONE, TENTH)},
        {"levels": (ONE, ONE)},
        {"levels": (Fraction(0), ONE)},
        {"levels": ("0.1", "one")},
        {"levels": tuple(Fraction(x) for x in range(1, 1002))},
        {"levels": (Fraction(1001),)},
        {"levels": (ONE, 1 + Fraction(1, 10**30))},
        {"levels": (Fraction(1, 10**400), ONE)},
        {"column": " "},
        {"mode": "public"},
        {"mode": "frame"},
        {"sizes": (1, 2, 3, 4)},
        {"mode": "values-only", "sizes": (1, 2, 3, 4)},
        {"mode": "frame", "sizes": (1, 2, 3)},
        {"mode": "frame", "sizes": (1, 2, 3, -4)},
        {"mode": "frame", "sizes": (1, 2, 3, 4.5)},
        {"derived": True},
    ],
)
def test_settings_that_do_not_fit_are_refused(changes):
    with pytest.raises(InvalidParameter):
        preferences(**changes)


def test_a_thousand_levels_are_told_apart():
    own = preferences(levels=tuple(Fraction(x, 1000) for x in range(1, 1001)))
    column = own.schema(PEOPLE)["own"]
    codes, keep = column.encode(pa.array([x / 1000 for x in range(1001)]))
    assert codes.tolist() == list(range(1001))
    assert keep is None


# -- amounts


@given(epsilon=st.fractions(0, 1).filter(bool))
def test_levels_pay_in_proportion_and_exactly(epsilon):
    amounts = preferences().amounts(epsilon)
    assert tuple(amounts) == LEVELS
    assert amounts[ONE] == epsilon
    assert {amount / level for level, amount in amounts.items()} == {epsilon}


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(101, 100), float("nan")])
def test_an_epsilon_that_no_level_can_pay_is_refused(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        preferences().amounts(epsilon)


def test_the_notion_of_neighbors_names_the_column_the_levels_and_the_mode():
    framed = preferences(mode="frame", sizes=(5, 0, 2, 9))
    expected = PersonalRecord("own", ("0.01", "0.1", "0.3", "1"), "frame")
    assert framed.neighbors(framed.schema(PEOPLE)) == expected


def homes(**groups):
    tree = {"all": {name: list(values) for name, values in groups.items()}}
    return Schema((column("home", "category", taxonomy=tree),))


def test_a_rule_whose_groups_mean_something_else_is_another_notion():
    def notion(schema, rule="near=0.1, far=1"):
        own = Preferences.by_rule(schema, source="home", rule=rule, derived=True)
        return own.neighbors(schema)

    first = notion(homes(near="ab", far="cd"))
    assert first == notion(homes(far="dc", near="ba"), "far = 1.0 ; near=0.10")
    assert first != notion(homes(near="abc", far="d"))
    assert first != notion(homes(near="cd", far="ab"))
    assert first != notion(homes(near="ab", far="cd"), "near=1, far=0.1")


@pytest.mark.parametrize("other", [{"other": "rest"}, {"missing": "drop"}])
def test_a_rule_that_gives_unlisted_values_another_level_is_another_notion(other):
    """A person of a value that is not listed would have 0.1 here and 1 there."""
    rule = "a=0.1; b=0.1; rest=1; (missing)=0.1"
    listed = {"values": ["a", "b", "rest"], "missing": "category"}

    def notion(**settings):
        schema = Schema((column("home", "category", **(listed | settings)),))
        parts = rule if schema["home"].missing == "category" else rule[: rule.rindex(";")]
        own = Preferences.by_rule(schema, source="home", rule=parts, derived=True)
        return own.neighbors(schema)

    assert notion().cells != notion(**other).cells


def test_a_rule_whose_groups_of_numbers_are_cut_elsewhere_is_another_notion():
    def notion(*groups):
        tree = {"all": dict(zip(("young", "old"), groups, strict=True))}
        people = Schema((column("age", "integer", bounds=[0, 99], taxonomy=tree),))
        own = Preferences.by_rule(people, source="age", rule="young=0.1, old=1", derived=True)
        return own.neighbors(people)

    first = notion(["0..24"], ["25..99"])
    assert first == notion(["0..9", "10..24"], ["25..99"])  # how finely they are cut is the same
    assert first != notion(["0..25"], ["26..99"])
    assert first.rule == notion(["0..25"], ["26..99"]).rule


# -- schemas


def test_the_preference_column_is_added_or_takes_its_own_position():
    own = preferences()
    added = own.schema(PEOPLE)
    assert added.names == ("a", "sex", "own")
    assert own.without(added) == PEOPLE
    there = Schema((column("own", "numeric", bounds=[0, 5]), *PEOPLE.columns), name="people")
    replaced = own.schema(there)
    assert replaced.names == ("own", "a", "sex")
    assert replaced.name == "people"
    assert replaced["own"] == added["own"]
    assert own.schema(replaced) == replaced


def test_a_table_opened_with_other_leaves_is_refused():
    own = preferences()
    for schema in (
        PEOPLE,
        Schema((*PEOPLE.columns, column("own", "numeric", bounds=[0, 2]))),
        preferences(levels=LEVELS[1:]).schema(PEOPLE),
    ):
        with pytest.raises(InvalidParameter, match=r"open the table with preferences\.schema"):
            own.check(schema)
    own.check(own.schema(PEOPLE))


def test_columns_without_numbers_are_refused_and_units_where_who_is_there_is_public():
    people = Schema(PEOPLE.columns, unit="person")
    with pytest.raises(InvalidParameter, match="records belong to people here"):
        preferences(mode="values-only").schema(people)
    assert preferences().schema(people).unit == "person"
    with pytest.raises(InvalidParameter, match="holds no numbers"):
        preferences(column="sex").schema(PEOPLE)


# -- groups


@given(
    rows=st.lists(st.tuples(st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0, nan]), st.integers(0, 2))),
    new=st.tuples(st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.99, 7.0]), st.integers(0, 2)),
    starts=st.sets(st.sampled_from([1, 2, 3])),
)
def test_groups_share_out_who_has_a_level_and_a_new_record_changes_only_its_own(rows, new, starts):
    cuts = [0, *sorted(starts), len(LEVELS)]
    groups = [LEVELS[i:j] for i, j in pairwise(cuts)]

    def count(present):
        table = people([number for number, _ in present], [value for _, value in present])
        return np.array([cells(preferences().group(table, group)) for group in groups])

    before, after = count(rows), count([*rows, new])
    eligible = [value for number, value in rows if number >= 0.01]
    assert before.sum(axis=0).tolist() == [eligible.count(value) for value in range(3)]
    level = max(e for e in LEVELS if float(e) <= new[0])
    change = np.array([[int(level in g and a == new[1]) for a in range(3)] for g in groups])
    assert np.array_equal(after - before, change)


def test_groups_of_the_records_present_are_caught():
    """The twin as printed: two groups, cut in the middle of whoever is there."""

    def twin(numbers):
        middle = sorted(numbers)[len(numbers) // 2]
        return [[x for x in numbers if (x >= middle) == upper] for upper in (False, True)]

    def fixed(numbers):
        table = people(numbers)
        return [cells(preferences().group(table, group)) for group in (LEVELS[:2], LEVELS[2:])]

    here, there = [0.2, 0.3, 0.4, 0.5], [0.2, 0.3, 0.4, 0.5, 0.01]
    changes = [
        sum(x != y for x, y in zip(groups(here), groups(there), strict=True))
        for groups in (twin, fixed)
    ]
    assert changes == [2, 1]


def test_a_group_shows_all_but_the_preferences():
    part = preferences().group(people([1.0]), [ONE])
    assert part.schema == PEOPLE


def test_a_number_that_is_no_level_names_no_group(rng):
    with pytest.raises(InvalidParameter, match="not one of the levels"):
        preferences().group(people([]), [HALF])
    with pytest.raises(InvalidParameter, match="not one of the levels"):
        preferences().sample(Run(people([]), rng=rng), {HALF: ONE})


def test_each_level_is_sampled_at_its_own_rate(rng):
    """Records below the first level, and at levels without a rate, never stay."""
    table = people([0.1, 1.0, 0.01, 0.0, nan], [0, 1, 2, 2, 2])
    rates = {TENTH: Fraction(1, 4), ONE: Fraction(3, 4)}
    run = Run(table, rng=rng)
    kept = [tuple(cells(preferences().sample(run, rates).table)) for _ in range(3000)]
    distribution = {(0, 0, 0): 3 / 16, (1, 0, 0): 1 / 16, (0, 1, 0): 9 / 16, (1, 1, 0): 3 / 16}
    assert frequency_p_value(kept, distribution) > 1e-3
    swapped = {(0, 0, 0): 3 / 16, (0, 1, 0): 1 / 16, (1, 0, 0): 9 / 16, (1, 1, 0): 3 / 16}
    assert frequency_p_value(kept, swapped) < 1e-20


# -- rules


@pytest.mark.parametrize(
    ("column", "rule", "expected"),
    [
        (AGE, "0..17=0.1, 18..=1", [TENTH] * 18 + [ONE] * 82),
        (AGE, "*=1, ..17=0.1", [TENTH] * 18 + [ONE] * 82),
        (AGE, "[0, 18)=0, 18=0.1, (18, 200]=1", [0] * 18 + [TENTH] + [ONE] * 81),
        (PAY, "[0, 10)=0.1, [10, 99]=1", [TENTH, ONE, ONE]),
        (PAY, "10..=1, *=0.0", [0, ONE, ONE]),
        (WORK, "Paid=0.1; Unpaid=1; *=0", [TENTH, TENTH, ONE, 0, 0]),
        (WORK, "State, Local=0.1; (missing)=0.3; *=1", [ONE, TENTH, ONE, ONE, Fraction(3, 10)]),
        (HEALTH, "poor..fair=0.1, good=1, (missing)=0", [TENTH, TENTH, ONE, 0]),
        (HEALTH, "fair..=1, *=0.1", [TENTH, ONE, ONE, TENTH]),
    ],
)
def test_a_rule_gives_every_leaf_its_level(column, rule, expected):
    assert list(look_up(parse_rule(rule), column)) == expected


@pytest.mark.parametrize(
    ("column", "rule", "reason"),
    [
        (AGE, "0..17=0.1", "gives '18' of column 'age' no level"),
        (AGE, "0..17=0.1, 17..=1", "another part has too"),
        (AGE, "17..3=0.1, *=1", "holds no value"),
        (AGE, "200..=0.1, *=1", "holds no value"),
        (AGE, "young=0.1, *=1", "holds numbers"),
        (AGE, "a..b=0.1, *=1", "holds numbers"),
        (PAY, "[0, 20)=0.1, *=1", "only some of"),
        (PAY, "[0, 10]=0.1, *=1", "belongs to another cell"),
        (PAY, "..10=0.1, *=1", "belongs to another cell"),
        (PAY, "(10, 50)=0.1, *=1", "belongs to another cell"),
        (PAY, "[50, 99)=0.1, *=1", "belongs to another cell"),
        (WORK, "Pade=0.1, *=1", "did you mean 'Paid'"),
        (WORK, "Paid=0.1, Private=1, *=1", "another part has too"),
        (HEALTH, "poor..better=1, *=0", "has no value 'better'"),
    ],
)
def test_a_rule_that_leaves_doubt_about_anybody_is_refused(column, rule, reason):
    with pytest.raises(InvalidParameter, match=reason):
        look_up(parse_rule(rule), column)


@pytest.mark.parametrize("rule", ["", "18..", "=1", "a=", "a=-1", "a=x", "a=1,", "a=1,,b=1"])
def test_what_is_no_rule_is_refused(rule):
    with pytest.raises(InvalidParameter):
        parse_rule(rule)


def test_intervals_that_are_closed_at_the_right_are_kept_as_they_are():
    closed = column("x", "numeric", taxonomy={"all": ["[0, 5]", "(5, 9]"]})
    assert look_up(parse_rule("[0, 5]=0.1, (5, 9]=1"), closed) == (TENTH, ONE)
    for rule in ("[0, 5)=0.1, *=1", "5..=1, *=0"):
        with pytest.raises(InvalidParameter, match="belongs to another cell"):
            look_up(parse_rule(rule), closed)


def test_levels_made_from_a_column_are_refused_unless_the_owner_says_so():
    with pytest.raises(InvalidParameter, match=r"learns something about that column.*derived=True"):
        preferences(column="age", rule="..17=0.1, *=1")
    said = preferences(column="age", rule="..17=0.1, *=1", derived=True)
    schema = Schema((AGE, *PEOPLE.columns))
    assert said.schema(schema) == schema == said.without(schema)


def test_a_rule_gives_only_levels_that_are_declared():
    with pytest.raises(InvalidParameter, match=r"gives 0\.2, which is no level"):
        preferences(column="age", rule="..17=0.2, *=1", derived=True)
    assert levels_of(parse_rule("a=1, b=0, c=0.1, d=1")) == (TENTH, ONE)


def test_a_rule_must_fit_the_column_before_any_row_is_read():
    schema = Schema((AGE,))
    with pytest.raises(InvalidParameter, match="no level"):
        Preferences.by_rule(schema, source="age", rule="..17=0.1", derived=True)
    with pytest.raises(InvalidParameter, match="did you mean 'age'"):
        Preferences.by_rule(schema, source="agee", rule="*=1", derived=True)
    by_person, rule = Schema((AGE,), unit="u"), {"source": "age", "rule": "*=1", "derived": True}
    with pytest.raises(InvalidParameter, match="records belong to people here"):
        Preferences.by_rule(by_person, mode="values-only", **rule)
    assert Preferences.by_rule(by_person, **rule).neighbors(by_person).unit == "u"


def test_groups_of_a_rule_are_look_ups_and_keep_the_column_for_what_is_published(rng):
    schema = Schema((column("age", "integer", bounds=[0, 99], missing="drop"),))
    own = Preferences.by_rule(schema, source="age", rule="..9=0, 10..17=0.1, 18..=1", derived=True)
    ages = [5, 10, 17, 18, 99, 140, -3, None]
    table = open_table(pa.table({"age": pa.array(ages, pa.int64())}), schema)
    young, old = own.group(table, [TENTH]), own.group(table, [ONE])
    assert young.schema == schema
    seen = [np.flatnonzero(cells(part, "age")).tolist() for part in (young, old)]
    assert seen == [[10, 17], [18, 99]]
    assert cells(old, "age")[99] == 2  # 140 is clipped to 99, as everywhere
    everyone = own.sample(Run(table, rng=rng), {TENTH: ONE, ONE: ONE}).table
    assert np.array_equal(cells(everyone, "age"), np.add(cells(young, "age"), cells(old, "age")))


def test_groups_of_different_levels_are_disjoint_for_every_rule():
    schema = Schema((WORK, AGE))
    rule = "Paid=0.1; Unpaid=1; else=0.3; *=0"
    own = Preferences.by_rule(schema, source="work", rule=rule, derived=True)
    leaves = [np.flatnonzero(own.level_of_code(schema) == number) for number in (1, 2, 3)]
    for first, second in combinations(leaves, 2):
        assert not np.intersect1d(first, second).size
    assert np.concatenate(leaves).size == WORK.size - 1
