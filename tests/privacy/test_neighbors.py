import json

import pytest

from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    PersonalRecord,
    ReplaceRecord,
    UserInWindow,
    from_dict,
    hides_units,
    plural,
    to_dict,
)

ALL = [
    AddRemoveRecord(),
    ReplaceRecord(),
    AddRemoveUnit("person"),
    UserInWindow("person", 3),
    *(PersonalRecord("pref", ("0.01", "1"), mode, unit="person") for mode in ("frame", "levels")),
    *(PersonalRecord("pref", ("0.01", "1"), mode) for mode in ("frame", "levels", "values-only")),
]


@pytest.mark.parametrize("notion", ALL, ids=lambda notion: notion.name)
def test_a_notion_survives_a_file(notion):
    assert from_dict(json.loads(json.dumps(to_dict(notion)))) == notion


def test_reading_leaves_the_plain_values_as_they_were():
    plain = to_dict(AddRemoveUnit("person"))
    from_dict(plain)
    assert plain == {"name": "add-remove-unit", "column": "person"}


def test_notions_have_names_and_descriptions_of_their_own():
    assert len({notion.name for notion in ALL}) == len({type(notion) for notion in ALL})
    assert len({notion.describe() for notion in ALL}) == len(ALL)


def test_the_description_says_whose_rows_and_how_long():
    assert UserInWindow("person", 3).describe() == (
        "all records of any one person within 3 consecutive snapshots were added or removed"
    )


@pytest.mark.parametrize("window", [0, -1, 1.5, True, "3"])
def test_a_window_is_a_integer_of_snapshots(window):
    with pytest.raises(InvalidParameter, match="window"):
        UserInWindow("person", window)


def test_levels_have_one_spelling_each_and_an_order():
    assert PersonalRecord("pref", ("0.10", "1/1"), "levels").levels == ("0.1", "1")
    for levels in [(), ("1", "0.1"), ("0",), ("1", "1.0"), "12", (None,)]:
        with pytest.raises(InvalidParameter, match="level"):
            PersonalRecord("pref", levels, "levels")


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(InvalidParameter, match=r"no mode 'level'; did you mean 'levels'"):
        PersonalRecord("pref", ("1",), "level")


def test_what_stays_public_is_said_where_levels_are():
    assert "except the level that 'pref' gives it" in ALL[-1].describe()


def test_a_person_with_several_records_is_hidden_at_the_smallest_of_their_levels():
    notion = PersonalRecord("pref", ("0.01", "1"), "levels", unit="patient_id")
    whole = "all records of any one person ('patient_id'), at the smallest level that 'pref' gives"
    assert notion.describe().startswith(whole)
    assert notion.brief().startswith("all records of one person ('patient_id'), at the smallest")
    assert notion.presence == AddRemoveUnit("patient_id")
    assert PersonalRecord("pref", ("1",), "levels").presence == AddRemoveRecord()


def test_values_alone_are_hidden_of_one_record_only():
    with pytest.raises(InvalidParameter, match="not a unit"):
        PersonalRecord("pref", ("1",), "values-only", unit="person")
    with pytest.raises(InvalidParameter, match="must be text"):
        PersonalRecord("pref", ("1",), "levels", unit=3)


def test_a_notion_without_a_unit_is_written_and_read_as_it_always_was():
    plain = to_dict(PersonalRecord("pref", ("0.1", "1"), "levels"))
    assert set(plain) == {"name", "column", "levels", "mode", "rule", "cells"}
    assert from_dict(plain).unit is None


@pytest.mark.parametrize("plain", [{}, {"name": "everyone"}])
def test_a_notion_of_a_later_version_is_refused(plain):
    with pytest.raises(InvalidParameter, match="newer dpublish"):
        from_dict(plain)


def test_what_is_hidden_cannot_be_changed_afterward():
    with pytest.raises(AttributeError):
        ALL[3].window = 30


@pytest.mark.parametrize("noun", ["", "  ", "two\nlines", "bell\a", None, 7])
def test_what_cannot_stand_in_a_sentence_is_no_name_of_a_unit(noun):
    for make in (lambda: AddRemoveUnit("id", noun), lambda: UserInWindow("id", 3, noun)):
        with pytest.raises(InvalidParameter, match="must be a word, such as person or basket"):
            make()


@pytest.mark.parametrize("column", [None, 3, ("pref",)])
def test_the_column_of_levels_has_a_name(column):
    with pytest.raises(InvalidParameter, match="preference column must be named"):
        PersonalRecord(column, ("1",), "levels")


def test_only_notions_of_a_unit_for_all_time_hide_all_its_rows_at_once():
    told = [hides_units(notion) for notion in ALL]
    assert told == [False, False, True, False, True, True, False, False, False]


@pytest.mark.parametrize(
    ("notion", "told"),
    [
        (PersonalRecord("own", ("1",), "levels"), "the level that column 'own' gives it"),
        (
            PersonalRecord("own", ("1",), "levels", rule="own >= 3"),
            "the level that the rule 'own >= 3' of column 'own' gives it",
        ),
    ],
)
def test_a_level_is_told_with_what_gives_it(notion, told):
    assert notion.brief() == f"one record, at {told} (mode levels)"


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("person", "people"),
        ("household", "households"),
        ("family", "families"),
        ("journey", "journeys"),
        ("class", "classes"),
        ("box", "boxes"),
        ("branch", "branches"),
        ("dish", "dishes"),
    ],
)
def test_a_noun_is_written_for_several(noun, several):
    assert plural(noun) == several
