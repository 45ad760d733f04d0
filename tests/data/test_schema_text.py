"""Keys of a schema's file change, and all else in it stays as it is."""

import tomllib

import pytest

from dpublish.data.schema_edit import read_text
from dpublish.data.schema_text import (
    digest,
    replace_schema,
    with_column,
    with_head,
    with_publication,
)
from dpublish.errors import InvalidParameter, InvalidSchema

TEXT = """\
# what we know
name = "visits"   # two blanks before it

[columns.ward]  # of the hospital
kind = "category"
taxonomy = [  # north to south
  ["A", "B"],  # old
  ["]", "# no comment"],
]
# the end

# about the costs
[columns.cost]  # in euros
# the kind
kind = "numeric"  # not exact
# bounds = [ , ]  # fill in from public knowledge
bins = 20

[columns."length of stay"]
kind = "integer"
bounds = [0, 9]

# Left out:
# email: it names people

[[impossible]]
where = "cost < 1 and ward = A"
"""


def changed(edited, text=TEXT):
    """Return the lines that an edit adds and those that it removes."""
    before, after = text.splitlines(), edited.splitlines()
    return [x for x in after if x not in before], [x for x in before if x not in after]


def test_lines_that_say_so_already_stay_with_their_comments():
    keys = {"kind": "numeric", "bins": 20}
    assert with_column(TEXT, "cost", keys) == TEXT
    assert changed(with_column(TEXT, "cost", keys | {"bins": 30})) == (["bins = 30"], ["bins = 20"])
    assert changed(with_column(TEXT, "cost", keys | {"kind": "integer"})) == (
        ['kind = "integer"  # not exact'],
        ['kind = "numeric"  # not exact'],
    )


def test_a_draft_is_filled_in_where_it_asks():
    edited = with_column(TEXT, "cost", {"kind": "numeric", "bounds": [0, 500]})
    assert changed(edited) == (
        ["bounds = [0, 500]"],
        ["# bounds = [ , ]  # fill in from public knowledge", "bins = 20"],
    )


def test_a_value_of_several_lines_is_replaced_whole():
    tree = [{"Old": ["A", "B"]}, "]", "# no comment"]
    edited = with_column(TEXT, "ward", {"kind": "category", "taxonomy": tree})
    assert tomllib.loads(edited)["columns"]["ward"]["taxonomy"] == tree
    assert "# the end\n\n# about the costs\n[columns.cost]  # in euros" in edited
    without = with_column(TEXT, "ward", {"kind": "category", "values": ["A"]})
    assert '# of the hospital\nkind = "category"\nvalues = ["A"]\n# the end' in without


def test_a_value_that_is_a_table_of_its_own_is_replaced():
    text = '[columns.ward]\nkind = "category"\n\n[columns.ward.taxonomy]\nN = ["A"]\n'
    edited = with_column(text, "ward", {"kind": "category", "taxonomy": ["A", ["B", "C"]]})
    assert tomllib.loads(edited)["columns"]["ward"]["taxonomy"] == ["A", ["B", "C"]]


def test_a_new_column_follows_the_others_and_comments_stay_behind_it():
    keys = {"kind": "integer", "bounds": [0, 1]}
    edited = with_column(TEXT, "age of car", keys)
    assert '\n\n[columns."age of car"]\nkind = "integer"\nbounds = [0, 1]\n\n# Left out:' in edited
    assert [*tomllib.loads(edited)["columns"]][-1] == "age of car"
    assert with_column("", "age", keys) == '[columns.age]\nkind = "integer"\nbounds = [0, 1]\n'
    draft = '[columns.a]\nkind = "numeric"\n# bounds = [ , ]  # fill in\n'
    assert with_column(draft, "b", keys).startswith(draft)


def test_a_column_is_removed_with_what_is_said_in_it():
    edited = with_column(TEXT, "length of stay", None)
    assert changed(edited)[0] == []
    assert "bins = 20\n\n# Left out:\n# email" in edited
    assert [*tomllib.loads(with_column(TEXT, "ward", None))["columns"]] == [
        "cost",
        "length of stay",
    ]
    text = '[columns]\na = { kind = "numeric", bounds = [0, 1] }\nb = { kind = "numeric" }\n'
    assert with_column(text, "b", None) == text.partition("b =")[0]


def test_a_column_in_one_line_is_written_in_one_line():
    text = '[columns]\na = { kind = "numeric", bounds = [0, 1] }  # so\n'
    edited = with_column(text, "a", {"kind": "integer", "bounds": [0, 2]})
    assert edited == '[columns]\na = { kind = "integer", bounds = [0, 2] }  # so\n'


def test_what_cannot_be_changed_is_refused_with_the_lines_to_write():
    text = 'columns.cost.kind = "numeric"\ncolumns.cost.bins = 3\n'
    with pytest.raises(InvalidSchema, match=r"by hand(.|\n)*bounds = \[0, 5\]"):
        with_column(text, "cost", {"kind": "integer", "bounds": [0, 5]})


@pytest.mark.parametrize("text", ["a = ", "columns = 3\n", "publication = 3\ncolumns = 3\n"])
def test_what_is_no_schema_is_refused(text):
    for change in (
        lambda: with_column(text, "cost", {"kind": "numeric"}),
        lambda: with_publication(text + "publication = 4\n", {"title": "x"}),
    ):
        with pytest.raises(InvalidSchema):
            change()


def test_the_head_and_the_words_for_publication_change_alone():
    edited = with_head(TEXT, {"name": "stays", "unit": "patient", "unit_name": None})
    assert changed(edited)[0] == ['name = "stays"   # two blanks before it', 'unit = "patient"']
    assert with_head(edited, {"name": "visits", "unit": None}) == TEXT
    stated = with_publication(TEXT, {"title": "Visits", "license": None})
    assert 'before it\n\n[publication]\ntitle = "Visits"\n\n[columns.ward]' in stated
    assert tomllib.loads(with_publication(stated, {"title": None}))["publication"] == {}
    assert with_publication(TEXT, {"title": None}) == TEXT
    assert with_head('[columns.a]\nkind = "numeric"\n', {"name": "x"}).startswith('name = "x"\n')


def test_line_ends_of_windows_stay():
    text = TEXT.replace("\n", "\r\n")
    edited = with_column(text, "cost", {"kind": "numeric", "bounds": [0, 1], "cuts": [[1], [2]]})
    assert edited.replace("\r\n", "").count("\n") == 0


SOUND = '[columns.age]\nkind = "integer"\nbounds = [0, 99]\n'


def test_a_file_that_changed_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(SOUND)
    seen = digest(read_text(path))
    path.write_text(SOUND + "# more\n")
    with pytest.raises(InvalidParameter, match="has changed since"):
        replace_schema(path, SOUND, seen=seen)
    assert path.read_text() == SOUND + "# more\n"


def test_a_sound_schema_stays_sound_and_a_draft_gets_no_worse(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(SOUND)
    broken = SOUND.replace("99", "-1")
    for text in (broken, "nonsense", SOUND + '\n[other]\na = "b"\n', SOUND + "unknown = 1\n"):
        with pytest.raises(InvalidSchema):
            replace_schema(path, text, seen=digest(SOUND))
    assert path.read_text() == SOUND
    path.write_text(broken)
    other = broken + '\n[columns.b]\nkind = "numeric"\nbounds = [0, 1]\n'
    replace_schema(path, other, seen=digest(broken), column="b")
    assert path.read_text() == other
    with pytest.raises(InvalidSchema, match="age"):
        replace_schema(path, other, seen=digest(other), column="age")
    with pytest.raises(InvalidSchema, match="column 'b'"):
        replace_schema(path, other.replace("[0, 1]", "[1, 0]"), seen=digest(other))
    path.write_text("a = ")
    replace_schema(path, broken, seen=digest("a = "))  # better than before
