"""Drafts: names and types are filled in, all else is left to the owner."""

import tomllib

import pyarrow as pa
import pytest

from dpublish.data.draft import draft_schema
from dpublish.data.schema_file import load_schema
from dpublish.errors import InvalidParameter, InvalidSchema

TYPES = {
    "size": (pa.int32(), "integer"),
    "pay": (pa.float64(), "numeric"),
    "offer": (pa.decimal128(9, 2), "numeric"),
    "work": (pa.string(), "category"),
    "town": (pa.dictionary(pa.int8(), pa.string()), "category"),
    "grade": (pa.dictionary(pa.int8(), pa.string(), ordered=True), "ordinal"),
    "day": (pa.date32(), "date"),
    "seen": (pa.timestamp("us", "UTC"), "datetime"),
    'odd "name".x': (pa.int8(), "integer"),
}
COLUMNS = [(name, kind) for name, (kind, _) in TYPES.items()]


def load(folder, text):
    path = folder / "draft.toml"
    path.write_text(text, encoding="utf-8")
    return load_schema(path)


def test_kinds_are_guessed_from_types():
    drafted = tomllib.loads(draft_schema(COLUMNS, name="survey"))
    assert drafted["name"] == "survey"
    assert {name: keys["kind"] for name, keys in drafted["columns"].items()} == {
        name: kind for name, (_, kind) in TYPES.items()
    }


def test_a_draft_says_column_by_column_what_is_missing(tmp_path):
    with pytest.raises(InvalidSchema) as refusal:
        load(tmp_path, draft_schema(COLUMNS))
    lines = str(refusal.value).splitlines()[1:]
    assert len(lines) == len(COLUMNS)
    for line, (name, (_, kind)) in zip(lines, TYPES.items(), strict=True):
        key = "values" if kind in ("category", "ordinal") else "bounds"
        assert line.strip().startswith(f"column {name!r}: {key} are missing")


def test_a_draft_loads_once_its_placeholders_are_filled_in(tmp_path):
    text = draft_schema([("size", pa.int8()), ("work", pa.string())])
    text = text.replace("# bounds = [ , ]", "bounds = [0, 9]")
    text = text.replace("# values = [ , ]", 'values = ["a", "b"]')
    schema = load(tmp_path, text)
    assert [column.size for column in schema.columns] == [10, 2]


def test_truth_values_are_known_from_their_type(tmp_path):
    schema = load(tmp_path, draft_schema([("smokes", pa.bool_())]))
    assert schema["smokes"].axis().labels == ("false", "true", "(missing)")


def test_columns_of_unusable_types_are_left_out_in_a_comment():
    text = draft_schema([("age", pa.int8()), ("tags", pa.list_(pa.string()))])
    assert list(tomllib.loads(text)["columns"]) == ["age"]
    assert "# [columns.tags]" in text


def test_public_facts_are_filled_in_and_named(tmp_path):
    text = draft_schema([("patient_age", None), ("sex", None)])
    schema = load(tmp_path, text)
    assert schema["patient_age"].bounds == (0, 120)
    assert schema["sex"].axis().labels == ("Female", "Male", "other", "(missing)")
    assert "[columns.patient_age]  # public fact: ages of people" in text
    assert '# or values = ["female", "male"], codes = ["f", "m"]' in text


def test_columns_without_a_type_are_no_longer_categories():
    text = draft_schema([("admitted", None), ("income", None), ("color", None)])
    kinds = {name: keys["kind"] for name, keys in tomllib.loads(text)["columns"].items()}
    assert kinds == {"admitted": "date", "income": "numeric", "color": "category"}


def test_what_tells_people_apart_and_free_text_are_left_out_in_comments():
    text = draft_schema([("age", None), ("patient_id", None), ("notes", None)])
    assert list(tomllib.loads(text)["columns"]) == ["age"]
    assert "# [columns.patient_id]  # left out: it tells people apart" in text
    assert "# [columns.notes]  # left out: free text" in text


def test_a_name_cannot_break_out_of_a_comment():
    odd = "id\nname = 1\n[columns.x]"
    assert list(tomllib.loads(draft_schema([("age", None), (f"{odd} id", None)]))["columns"]) == [
        "age"
    ]


def test_an_arrow_schema_will_do_and_its_rows_are_never_needed():
    assert draft_schema(pa.schema(COLUMNS)) == draft_schema(COLUMNS)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(InvalidParameter, match="two columns are called 'a'"):
        draft_schema([("a", pa.int8()), ("a", pa.int8())])
