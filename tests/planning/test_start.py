"""A guided start without a terminal: what is asked, refused and written."""

import pytest

from dpublish.data.schema_file import parse_schema
from dpublish.errors import InputError, InvalidParameter, UnreadableData
from dpublish.planning.start import Start, split_names, split_said
from dpublish.planning.start_files import (
    StartFiles,
    load_answers,
    prepare,
    save_answers,
    schema_text,
)

COLUMNS = ["visit_id", "patient_id", "age", "sex", "admitted", "ward", "charges", "notes", "dob"]


@pytest.fixture
def start(tmp_path):
    return Start.of([(name, None) for name in COLUMNS], folder=tmp_path)


def answered(start, **answers):
    for key, text in answers.items():
        start = start.answered(key.replace("__", ":"), text)
    return start


def test_steps_come_in_order_and_only_for_what_is_open(start):
    asked = []
    answers = {
        "row": "a visit",
        "unit": "patient_id",
        "columns": "all",
        "goal": "rows",
        "rows": "unknown",
        "period": "2023..2024",
        "column:ward": "A,B",
        "column:charges": "skip",
        "cap": "1",
        "epsilon": "0.5",
    }
    while (step := start.next_step()) is not None:
        asked.append(step.key)
        start = start.answered(step.key, answers[step.key])
    assert asked == [*answers]
    assert [each.name for each in start.described] == ["age", "sex", "admitted", "ward", "dob"]


def test_a_column_that_is_described_among_the_columns_is_not_asked_for(start):
    start = answered(start, unit="none", columns="all; ward=A,B; charges=0..100; age=18..99")
    assert "column:ward" not in [step.key for step in start.steps()]
    assert start.described[0].settings["bounds"] == [18, 99]
    assert start.described[0].why == "as the owner says"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("all", ("age", "sex", "admitted", "ward", "charges", "dob")),
        ("age, sex", ("age", "sex")),
        ("-ward,-charges", ("age", "sex", "admitted", "dob")),
        ("age, sex, -sex", ("age",)),
        ("age, notes", ("age", "notes")),
        ("age; visit_id=a,b", ("visit_id", "age")),
    ],
)
def test_one_answer_chooses_the_columns(start, said, kept):
    assert answered(start, unit="patient_id", columns=said).chosen.names == kept


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("row", "", "what a row is"),
        ("unit", "person", "there is no column 'person'"),
        ("columns", "visit_id", "it tells rows apart"),
        ("columns", "-age,-sex,-admitted,-ward,-charges,-dob", "no column is left"),
        ("columns", "all; age=none of it", "cannot be read"),
        ("goal", "magic", "there is no goal"),
        ("goal", "counts:notes", "there is no column 'notes'"),
        ("rows", "-3", "write a number of rows"),
        ("period", "soon", "two dates"),
        ("period", "2023..2024 as %Q", "format"),
        ("cap", "0", "greater than 0"),
        ("epsilon", "a lot", "not a number"),
        ("column:notes", "a,b,", "blank"),
        ("column:color", "a,b", "there is no column 'color'"),
        ("taste", "sweet", "there is no answer"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(start, key, text, message):
    with pytest.raises(InvalidParameter, match=message):
        start.answered(key, text)


def test_what_the_goal_needs_cannot_be_skipped(start):
    start = answered(start, unit="none", columns="all", goal="counts:ward")
    with pytest.raises(InvalidParameter, match="the goal counts:ward needs column 'ward'"):
        start.answered("column:ward", "skip")


def test_the_last_column_cannot_be_skipped(start):
    start = answered(start, unit="none", columns="ward")
    with pytest.raises(InvalidParameter, match="is the only column"):
        start.answered("column:ward", "skip")


def test_a_unit_may_be_no_person(tmp_path):
    start = Start.of([("household_id", None), ("age", None), ("box", None)], folder=tmp_path)
    files = StartFiles.of("a.csv")
    text = schema_text(answered(start, unit="household_id", columns="age"), files)
    assert parse_schema(text, tmp_path).unit_name == "household"
    text = schema_text(answered(start, unit="box as crate", columns="age"), files)
    assert (parse_schema(text, tmp_path).unit, parse_schema(text, tmp_path).unit_name) == (
        "box",
        "crate",
    )
    assert "hides all rows of any one crate" in text


def test_the_format_of_dates_is_for_all_of_them(start):
    start = answered(start, unit="none", columns="admitted, dob", period="2023..2024 as %d/%m/%Y")
    assert [each.settings["format"] for each in start.described] == ["%d/%m/%Y"] * 2
    assert start.described[1].settings["bounds"][0] == "1900-01-01"


def test_what_is_written_cannot_leave_its_comment(tmp_path):
    start = Start.of([("age", None), ("id\nname = 'x'", None)], folder=tmp_path)
    start = answered(start, unit="none", columns="all")
    files = StartFiles.of("a\nb.csv")
    schema = parse_schema(schema_text(start, files), tmp_path)
    assert schema.names == ("age",)
    with pytest.raises(InvalidParameter):
        start.answered("row", "")


def test_a_first_line_of_numbers_is_no_header():
    for row in (["34", "2.5", "M"], ["2024-01-02", "17", ""]):
        with pytest.raises(UnreadableData) as refusal:
            Start.of([(value, None) for value in row])
        assert not any(value and value in str(refusal.value) for value in row)
    assert Start.of([("2023", None), ("age", None)]).proposals[1].column == "age"


def test_answers_are_kept_and_taken_up_again(start, tmp_path):
    files = StartFiles.of("visits.csv", schema=str(tmp_path / "visits.toml"))
    before = answered(start, row="a visit", unit="patient_id", columns="-ward")
    save_answers(before, files)
    assert load_answers(start, files).answers == before.answers
    other = Start.of([("age", None)], folder=tmp_path)
    with pytest.raises(InvalidParameter, match="have changed since"):
        load_answers(other, files)
    files.answers.write_text("nothing = 1")
    with pytest.raises(InputError, match="is not a file of answers"):
        load_answers(start, files)


def test_an_answer_that_no_longer_fits_is_asked_again(start, tmp_path):
    files = StartFiles.of("visits.csv", schema=str(tmp_path / "visits.toml"))
    (tmp_path / "wards.csv").write_text("ward\nA\nB\n")
    before = answered(start, row="x", unit="none", columns="ward")
    before = before.answered("column:ward", f"@{tmp_path / 'wards.csv'}")
    save_answers(before, files)
    (tmp_path / "wards.csv").unlink()
    after = load_answers(start, files)
    assert set(before.answers) - set(after.answers) == {"column:ward"}


def test_a_plan_names_a_folder_that_is_not_there(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits-rows").mkdir()
    start = answered(start, unit="none", columns="age, sex", cap="1", epsilon="0.5")
    prepared = prepare(start, StartFiles.of("visits.csv"))
    assert prepared.command.endswith("-o visits-rows-2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["visits-rows"]


@pytest.mark.parametrize(
    ("data", "stem"),
    [
        ("visits.csv", "visits"),
        ("data/my visits.csv.gz", "my-visits"),
        ("parts/part-*.parquet", "part"),
        ("folder/", "folder"),
        ("s3://bucket/x.parquet", "x"),
    ],
)
def test_files_are_named_after_the_table(data, stem):
    assert (StartFiles.of(data).dataset, str(StartFiles.of(data).schema)) == (stem, f"{stem}.toml")


def test_names_are_split_at_commas_and_the_longest_known_name_counts():
    assert split_names('a, "b, c",, d') == ["a", "b, c", "d"]
    assert split_said("a=b=c", ["a", "a=b"]) == ("a=b", "c")
    assert split_said("x=1", ["a"]) is None


@pytest.mark.parametrize(
    "said", ["@parts/a.csv", "@parts/a.csv:ward", "category @parts/a.csv", "ordinal @./parts/a.csv"]
)
@pytest.mark.parametrize("data", ["parts/a.csv", "parts", "parts/*.csv"])
def test_the_table_is_no_list_of_codes_however_it_is_named(data, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.csv").write_text("ward,age\nSecret,3\nHidden,4\n")
    start = Start.of([("ward", None), ("age", None)], folder=tmp_path, data=data)
    with pytest.raises(InvalidParameter, match="the table itself is no list of codes"):
        start.answered("column:ward", said)
    with pytest.raises(InvalidParameter, match="the table itself is no list of codes"):
        start.answered("columns", f"all; ward={said}")
    (tmp_path / "wards.csv").write_text("ward\nA\nB\n")
    assert start.answered("column:ward", "@wards.csv:ward").answers


def test_dates_that_are_described_by_themselves_need_no_common_period():
    start = Start.of([("born", None), ("admitted_on", None)], account=None).answered(
        "columns", "all"
    )
    assert "period" in [step.key for step in start.open_steps()]
    dated = [each.column for each in start.proposals if each.needs_period]
    for name in dated:
        start = start.answered(f"column:{name}", "2023..2024 by month")
    assert dated
    assert "period" not in [step.key for step in start.open_steps()]
