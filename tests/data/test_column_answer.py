"""What an owner says of a column, in one line."""

import pytest

from dpublish.data.column_answer import read_answer, read_period
from dpublish.data.proposals import propose
from dpublish.data.schema import column
from dpublish.errors import InvalidParameter

READ = [
    ("color", "0..100", {"kind": "integer", "bounds": [0, 100]}),
    ("color", "0..99 by 10", {"kind": "integer", "bounds": [0, 99], "bins": 10}),
    ("color", "0..12 by 5", {"kind": "integer", "cuts": [0, 5, 10, 12]}),
    ("color", "-5..5", {"kind": "integer", "bounds": [-5, 5]}),
    ("color", "0..1 by 0.25", {"kind": "numeric", "bounds": [0, 1], "bins": 4}),
    ("color", "0..5000", {"kind": "integer", "bounds": [0, 5000], "bins": 20}),
    ("income", "0..50,000 by 1000", {"kind": "numeric", "bounds": [0, 50000], "bins": 50}),
    ("income", "0..50_000", {"kind": "numeric", "bounds": [0, 50000], "bins": 20}),
    ("color", "number 0..8", {"kind": "numeric", "bounds": [0, 8], "bins": 20}),
    ("color", "red, green", {"kind": "category", "values": ["red", "green"], "other": "other"}),
    ("color", "red, Other", {"kind": "category", "values": ["red", "Other"], "other": "Other"}),
    ("color", '"a, b", c', {"kind": "category", "values": ["a, b", "c"], "other": "other"}),
    ("size", "S < M < L", {"kind": "ordinal", "values": ["S", "M", "L"], "other": "other"}),
    ("color", "category 1..3", {"kind": "category", "values": [1, 2, 3], "other": "other"}),
    ("color", "ordinal a,b", {"kind": "ordinal", "values": ["a", "b"], "other": "other"}),
    ("admitted", "2023..2024", {"kind": "date", "bounds": ["2023", "2024"]}),
    (
        "admitted",
        "2023-01-01..2024-12-31 by month as %d.%m.%Y",
        {
            "kind": "date",
            "bounds": ["2023-01-01", "2024-12-31"],
            "bins": "month",
            "format": "%d.%m.%Y",
        },
    ),
    ("color", "2023-01..2024-06", {"kind": "date", "bounds": ["2023-01", "2024-06"]}),
    ("color", "datetime 2023..2024", {"kind": "datetime", "bounds": ["2023", "2024"]}),
    ("color", "2015..2024", {"kind": "integer", "bounds": [2015, 2024]}),
]


@pytest.mark.parametrize(("name", "text", "settings"), READ)
def test_an_answer_becomes_keys_of_a_schema(name, text, settings):
    found = read_answer(text, propose(name))
    assert found == settings
    assert column(name, **found).size > 1


def test_skip_leaves_a_column_out():
    assert read_answer(" Skip ", propose("color")) is None


def test_a_list_is_chosen_by_its_name():
    assert read_answer("numbers", propose("sex"))["codes"] == [0, 1, 2, 9]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("red", "cannot be read"),
        ("a..b", "cannot be read"),
        ("10..1", "is no range"),
        ("5..5", "is no range"),
        ("0..10 by 0", "is no range"),
        ("0..10 by x", "'x' is no number"),
        ("0..10 as %Y", "leave it out for numbers"),
        ("date 0..10", "are no date"),
        ("a, a", "twice"),
        ("2024-01-01..2023-01-01", "the later one comes first"),
        ("2024-01-01..2024-99-01", "no date"),
        ("2024-01-01..2024-12-31 by fortnight", "must be one of"),
        ("2024-01-01..2024-12-31 as %Q", "format"),
        ("@absent.csv", "cannot be read"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_with_the_reason(text, message, tmp_path):
    with pytest.raises(InvalidParameter, match=message):
        read_answer(text, propose("color"), tmp_path)


def test_known_lists_are_offered_for_a_word_that_names_none():
    with pytest.raises(InvalidParameter, match="known lists: words, lowercase, numbers"):
        read_answer("letters", propose("sex"))


def test_a_file_of_codes_is_named_from_the_folder_of_the_schema(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "wards.csv").write_text("code,name\nA,Surgery\nB,Other\n")
    found = read_answer("@lists/wards.csv", propose("ward"), tmp_path / "schemas")
    assert found == {"kind": "category", "values": "../lists/wards.csv", "other": "other"}
    found = read_answer("@lists/wards.csv:name", propose("ward"), tmp_path)
    assert found["values"] == {"file": "lists/wards.csv", "column": "name"}
    assert found["other"] == "Other"


def test_a_period_bounds_dates_and_years():
    assert read_period("2023-02-01..2024", propose("year"))["bounds"] == [2023, 2024]
    assert read_period("2023..2024", propose("created_at"))["kind"] == "datetime"
    assert read_period("2024", propose("admitted"))["bounds"] == ["2024", "2024"]
    assert read_period("2024-Q2 as %d.%m.%Y", propose("admitted"))["format"] == "%d.%m.%Y"
    with pytest.raises(InvalidParameter, match="a period is written as two dates"):
        read_period("last year", propose("admitted"))
