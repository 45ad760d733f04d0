"""A line is put into a schema file; all else in it stays as it is."""

import json
import tomllib
from pathlib import Path

import pytest

from dpublish.data.schema_edit import read_plain, with_keys
from dpublish.errors import InputError, InvalidSchema

FILE = Path("people.toml")
BOUNDS = {"bounds": [0, 500]}
TEXT = """\
# what we know
name = "visits"   # two blanks before it

[columns.ward]
kind = "category"
taxonomy = [
  ["A", "B"],
  ["C"],
]

[columns.cost]  # in euros
# the kind
kind = "numeric"  # not whole
# bounds = [ , ]  # fill in from public knowledge
bins = 20

[columns."length of stay"]
kind = "integer"
"""


def added(text, column, **keys):
    """Return the lines that an edit adds and those that it removes."""
    before, after = text.splitlines(), with_keys(FILE, text, column, keys).splitlines()
    return [x for x in after if x not in before], [x for x in before if x not in after]


def test_the_line_that_a_draft_asks_for_is_filled_in():
    new, gone = added(TEXT, "cost", bounds=[0, 500])
    assert new == ["bounds = [0, 500]"]
    assert gone == ["# bounds = [ , ]  # fill in from public knowledge"]


def test_without_such_a_line_bounds_follow_the_kind_and_nothing_is_lost():
    edited = with_keys(FILE, TEXT, "length of stay", {"bounds": [1, 15]})
    assert edited == TEXT + "bounds = [1, 15]\n"


def test_a_column_that_is_not_there_is_added_at_the_end():
    edited = with_keys(FILE, TEXT, "age of car", {"kind": "numeric", "bounds": [0, 1.5]})
    assert edited == f'{TEXT}\n[columns."age of car"]\nkind = "numeric"\nbounds = [0, 1.5]\n'


def test_a_file_without_a_last_line_end_and_an_empty_one_are_edited_too():
    text = '[columns.cost]\nkind = "numeric"'
    assert with_keys(FILE, text, "cost", BOUNDS) == f"{text}\nbounds = [0, 500]\n"
    assert (
        with_keys(FILE, "[columns.cost]", "cost", BOUNDS) == "[columns.cost]\nbounds = [0, 500]\n"
    )
    assert with_keys(FILE, "", "cost", BOUNDS) == "[columns.cost]\nbounds = [0, 500]\n"


def test_line_ends_of_windows_stay(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    edited = with_keys(path, read_plain(path)[0], "cost", BOUNDS)
    assert edited.replace("\r\n", "").count("\n") == 0
    assert "bounds = [0, 500]\r\n" in edited


def test_a_header_within_a_text_of_several_lines_is_not_taken_for_one():
    text = 'name = """\n[columns.cost]\n"""\n\n[columns.cost]\nkind = "numeric"\n'
    with pytest.raises(InvalidSchema, match=r"bounds = \[0, 500\]"):
        with_keys(FILE, text, "cost", BOUNDS)


@pytest.mark.parametrize(
    "text",
    [
        'columns = { cost = { kind = "numeric" } }\n',
        '[columns]\ncost = { kind = "numeric" }\n',
        'columns.cost.kind = "numeric"\n',
    ],
)
def test_what_cannot_be_edited_line_by_line_is_refused_with_the_line_to_write(text):
    with pytest.raises(InvalidSchema, match=r"bounds = \[0, 500\]"):
        with_keys(FILE, text, "cost", BOUNDS)


def test_spaces_and_quotes_in_a_header_are_understood():
    text = '[ columns . "cost" ]\nkind = "numeric"\n'
    assert with_keys(FILE, text, "cost", BOUNDS) == text + "bounds = [0, 500]\n"


def test_json_is_written_anew_with_all_that_it_said(tmp_path):
    path = tmp_path / "people.json"
    said = {"name": "é", "columns": {"cost": {"kind": "numeric"}}}
    path.write_text(json.dumps(said))
    text, plain = read_plain(path)
    assert plain == said
    said["columns"]["cost"] |= BOUNDS
    assert json.loads(with_keys(path, text, "cost", BOUNDS)) == said


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError):
        read_plain(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = ")
    with pytest.raises(InvalidSchema):
        read_plain(tmp_path / "bad.toml")
    (tmp_path / "listed.json").write_text('{"columns": [{"name": "cost"}]}')
    with pytest.raises(InvalidSchema, match="columns"):
        read_plain(tmp_path / "listed.json")


def test_a_table_within_the_column_is_not_taken_for_the_column():
    text = '[columns.cost.more]\na = 1\n\n[columns.cost]\nkind = "numeric"\n'
    assert with_keys(FILE, text, "cost", BOUNDS) == text + "bounds = [0, 500]\n"


STATED = """\
[columns.cost]
kind = "numeric"
# bounds = [ , ]  # fill in
function_of = "ward"
map = { A = 10, B = 20 }

[columns.ward]
kind = "category"
values = ["A", "B"]

[[impossible]]  # by the house rules
where = "ward = A and cost < 100"

[[totals]]
count = 10
"""


def test_statements_stay_when_bounds_are_entered():
    edited = with_keys(Path("a.toml"), STATED, "cost", {"bounds": [0, 500]})
    assert edited == STATED.replace("# bounds = [ , ]  # fill in", "bounds = [0, 500]")
    added = with_keys(Path("a.toml"), STATED, "age", {"kind": "integer", "bounds": [0, 99]})
    assert added.startswith(STATED)
    assert tomllib.loads(added)["totals"] == [{"count": 10}]
    plain = tomllib.loads(STATED)
    as_json = json.loads(with_keys(Path("a.json"), json.dumps(plain), "cost", {"bounds": [0, 1]}))
    assert as_json["impossible"] == plain["impossible"]
