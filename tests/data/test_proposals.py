"""Proposals come from names and types, and ask for what only the owner knows."""

from datetime import date

import pyarrow as pa
import pytest

from dpublish.data.proposals import propose
from dpublish.data.schema import column

TYPES = {
    "int": pa.int32(),
    "float": pa.float64(),
    "decimal": pa.decimal128(9, 2),
    "text": pa.string(),
    "date": pa.date32(),
    "time": pa.timestamp("us", "UTC"),
    "listed": pa.dictionary(pa.int8(), pa.string()),
    "ordered": pa.dictionary(pa.int8(), pa.string(), ordered=True),
}


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        ("int", "integer"),
        ("float", "numeric"),
        ("decimal", "numeric"),
        ("text", "category"),
        ("date", "date"),
        ("time", "datetime"),
        ("listed", "category"),
        ("ordered", "ordinal"),
    ],
)
def test_a_name_that_says_nothing_has_the_kind_of_its_type(stored, kind):
    proposal = propose("color", TYPES[stored])
    assert (proposal.kind, proposal.is_complete, proposal.fact) == (kind, False, None)
    assert proposal.ask


def test_without_a_type_and_a_fact_nothing_is_guessed():
    assert propose("color").kind is None
    assert propose("color", pa.null()).kind is None
    assert not propose("color").is_complete


@pytest.mark.parametrize(
    ("name", "stored", "kind", "is_complete"),
    [
        ("age", "int", "integer", True),
        ("age", "float", "integer", True),
        ("age", "text", "category", False),  # stored as text, it may be a group
        ("age", "date", "date", False),
        ("bmi", "int", "numeric", True),
        ("sex", "text", "category", True),
        ("sex", "listed", "category", True),
        ("age", "listed", "category", False),
        ("admitted", "text", "date", False),
        ("admitted", "date", "date", False),
        ("admitted", "time", "datetime", False),
        ("admitted", "int", "integer", False),  # nothing says what the numbers count
        ("date_of_birth", "date", "date", True),
        ("income", "float", "numeric", False),
    ],
)
def test_a_fact_holds_where_it_fits_the_type(name, stored, kind, is_complete):
    proposal = propose(name, TYPES[stored])
    assert (proposal.kind, proposal.is_complete) == (kind, is_complete)


def test_numbers_are_found_in_lists_of_numbers():
    assert propose("sex", pa.int8()).settings["codes"] == [0, 1, 2, 9]
    assert propose("sex", pa.int8()).why == "the codes of ISO/IEC 5218"
    assert propose("month", pa.int8()).settings["codes"][:2] == [1, 2]
    found = propose("blood_group", pa.int8())
    assert (found.kind, found.is_complete) == ("integer", False)


def test_two_spellings_are_read_and_the_rest_is_other():
    proposal = propose("sex")
    sex = column("sex", proposal.kind, missing="category", **proposal.settings)
    codes = sex.encode(pa.array(["F", "Male", "Female", "divers", None])).codes
    assert codes.tolist() == [0, 1, 0, 2, 3]


def test_truth_values_and_unusable_types_are_known_by_their_type():
    assert propose("color", pa.bool_()).settings == {"values": [False, True]}
    assert propose("age", pa.list_(pa.int8())).role == "unusable"


@pytest.mark.parametrize("stored", [None, pa.string(), pa.int64(), pa.bool_()])
def test_what_tells_people_apart_is_left_out_whatever_its_type(stored):
    assert propose("patient_id", stored).role == "identifier"
    assert propose("patient_id", stored).unit == "person"
    assert propose("household_id", stored).unit == "household"
    assert propose("visit_id", stored).unit is None
    assert propose("notes", stored).role == "text"


def test_bounds_move_with_the_calendar():
    assert propose("dob", today=date(2031, 5, 1)).settings["bounds"] == ["1900-01-01", "2031-12-31"]
    assert propose("birth_year", today=date(2031, 5, 1)).settings["cuts"][-1] == 2031


@pytest.mark.parametrize("name", ["admitted", "created_at", "year"])
def test_the_period_of_a_table_is_asked_for(name):
    assert propose(name).needs_period


@pytest.mark.parametrize("name", ["age", "date_of_birth", "income", "patient_id", "color"])
def test_what_is_no_date_needs_no_period(name):
    assert not propose(name).needs_period
