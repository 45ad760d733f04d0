"""The guided start as pages: answers are kept, no value is read, and what is written is right."""

import tomllib

import duckdb
import pytest

from dpublish.data.schema_file import load_schema
from dpublish.data.sources import proposable_columns
from dpublish.ledger.ledger import Ledger
from dpublish.planning.start import Start
from dpublish.planning.start_files import load_answers
from dpublish.studio.begun import start_files
from studio_world import CANARY

HEADER = "age,sex,patient_id,notes,ward,{{7*7}},<script>alert(1)</script>"
TABLE = f"{HEADER}\n31,F,p-77,{CANARY},{CANARY},1,2\n"
TABLES = {"stays.csv", "visits.parquet", "visits.toml"}
STAGES = {
    "table": {
        "row": "a stay",
        "unit": "patient_id",
        **{f"keep-{i}": "yes" for i in (0, 1, 4, 5, 6)},
    },
    "goal": {"goal": "counts", "goal_columns": "age, sex", "rows": "20,000"},
    "columns": {"column-4": "north, south", "column-5": "0..10 by 2", "column-6": "skip"},
    "budget": {"cap": "2", "epsilon": "0.5"},
}


@pytest.fixture
def stays(world):
    (world.folder / "stays.csv").write_text(TABLE)
    return world


def answer(client, stage, **changes):
    fields = {"data": "stays.csv", "dataset": "stays", "stage": stage}
    return client.post("/begin/steps", fields | STAGES[stage] | changes)


def answer_all(client):
    for stage in STAGES:
        page = answer(client, stage)
        assert page.status == 303, page.text
    return client.get("/begin/steps", data="stays.csv")


def test_a_table_becomes_a_schema_a_dataset_and_a_plan(stays):
    client = stays.client()
    assert "stays.csv" in client.get("/begin").text
    first = client.get("/begin/steps", data="stays.csv")
    assert "No value of the table is read" in first.text
    assert "left out" in first.text
    review = answer_all(client)
    assert "Write schema, dataset and plan" in review.text
    done = client.post("/begin/write", {"data": "stays.csv"})
    page = client.get(done.goes_to)
    assert "/plan?dataset=stays&amp;data=stays.csv&amp;schema=stays.toml" in page.text
    assert "goal=counts%3Aage%2Csex" in page.text
    assert "&amp;rows=20000" in page.text
    schema = load_schema(stays.folder / "stays.toml")
    assert schema.names == ("age", "sex", "ward", "{{7*7}}")
    assert schema.unit == "patient_id"
    assert schema["ward"].labels == ("north", "south")
    with Ledger(stays.folder / "books.db") as ledger:
        assert ledger.status("stays").cap == 2
    assert (stays.folder / "stays.plan.txt").exists()
    assert not (stays.folder / "stays.init.toml").exists()
    again = client.post("/begin/write", {"data": "stays.csv"})  # a second click
    assert "stays has a schema" in client.get(again.goes_to).text
    assert client.get("/begin/steps", data="stays.csv").goes_to.startswith("/begin/done")
    assert not any(CANARY in each.text or "p-77" in each.text for _, each in client.seen)


def test_without_a_ledger_one_is_made_with_the_dataset(stays):
    (stays.folder / "books.db").unlink()
    client = stays.client()
    assert "/begin" in client.get("/").text
    answer_all(client)
    client.post("/begin/write", {"data": "stays.csv"})
    with Ledger(stays.folder / "books.db") as ledger:
        assert ledger.datasets() == ("stays",)


def test_a_dataset_that_is_there_keeps_its_cap(stays):
    client = stays.client()
    with Ledger(stays.folder / "books.db") as ledger:
        ledger.add("stays", cap="0.75")
    for stage in ("table", "goal", "columns"):
        answer(client, stage)
    page = client.get("/begin/steps", data="stays.csv")
    assert "0.75 may be spent in all" in page.text
    assert 'name="cap"' not in page.text
    assert 'value="0.375"' in page.text


def test_what_may_be_spent_is_proposed_together(stays):
    client = stays.client()
    for stage in ("table", "goal", "columns"):
        answer(client, stage)
    page = client.get("/begin/steps", data="stays.csv").text
    assert 'name="cap" value="1"' in page
    assert 'name="epsilon" value="0.5"' in page


def test_names_of_columns_are_shown_and_never_run(stays):
    text = stays.client().get("/begin/steps", data="stays.csv").text
    assert "{{7*7}}" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_answers_are_kept_where_the_command_line_finds_them(stays):
    client = stays.client()
    answer(client, "table")
    kept = tomllib.loads((stays.folder / "stays.init.toml").read_text())
    assert kept["answers"]["unit"] == "patient_id"
    assert kept["answers"]["row"] == "a stay"
    page = client.get("/begin/steps", data="stays.csv")
    assert "What for?" in page.text
    back = client.get("/begin/steps", data="stays.csv", stage="table")
    assert 'value="a stay"' in back.text
    assert '<option value="patient_id" selected>' in back.text
    files = start_files(stays.studio.desk, "stays.csv")
    start = Start.of(proposable_columns(files.data), folder=files.schema.parent)
    assert load_answers(start, files).answers["row"] == "a stay"
    client.post("/begin/forget", {"data": "stays.csv"})
    assert "a stay" not in client.get("/begin/steps", data="stays.csv").text


def test_what_cannot_be_used_is_asked_again_and_the_rest_is_kept(stays):
    client = stays.client()
    answer(client, "table")
    answer(client, "goal")
    page = answer(client, "columns", **{"column-4": "x", "column-5": "9..1"})
    assert page.status == 422
    assert page.text.count('class="fault"') == 2
    assert 'value="9..1"' in page.text
    kept = tomllib.loads((stays.folder / "stays.init.toml").read_text())["answers"]
    assert "column:<script>alert(1)</script>" in kept
    assert "column:ward" not in kept
    assert answer(client, "columns").status == 303
    page = answer(client, "budget", epsilon="3")
    assert "more than the 2" in page.text
    assert client.get("/begin/steps", data="stays.csv", stage="budget").text.count("value=") > 3


@pytest.mark.parametrize(
    ("stage", "changes", "told"),
    [
        ("table", {"unit": "no one"}, "there is no column"),
        ("table", {"row": ""}, "write an answer"),
        ("goal", {"goal": "riches", "goal_columns": ""}, "there is no goal"),
        ("goal", {"goal_columns": "income"}, "income"),
        ("goal", {"rows": "many"}, "number of rows"),
        ("columns", {"column-4": "@../secret.csv"}, "not in the studio"),
        ("columns", {"column-4": "@ ../secret.csv"}, "not in the studio"),
        ("columns", {"column-4": "category @/etc/passwd"}, "not in the studio"),
        ("columns", {"column-4": "@none.csv"}, "there is no file"),
        ("columns", {"column-4": "@stays.csv:ward"}, "values are private"),
        ("budget", {"cap": "-1"}, "cap"),
    ],
)
def test_wrong_answers_are_refused(stays, stage, changes, told):
    (stays.folder.parent / "secret.csv").write_text("code\nhidden-code\nother-code\n")
    client = stays.client()
    for earlier in STAGES:
        if earlier == stage:
            break
        answer(client, earlier)
    page = answer(client, stage, **changes)
    assert page.status == 422
    assert told in page.text
    assert not any("hidden-code" in each.text or CANARY in each.text for _, each in client.seen)


def test_columns_that_are_left_out_can_have_public_values(stays):
    client = stays.client()
    answer(client, "table", **{"say-3": "none, some"})
    kept = tomllib.loads((stays.folder / "stays.init.toml").read_text())["answers"]["columns"]
    assert kept == "all; notes=none, some"
    bad = answer(client, "table", **{"say-3": "none, some; ward=@/etc/passwd"})
    assert "semicolon" in bad.text
    back = client.get("/begin/steps", data="stays.csv", stage="table")
    assert back.status == 200


def test_codes_are_uploaded_and_named_within_the_folder(stays):
    client = stays.client()
    sent = client.upload(
        "/schemas/codes", "codes", "wards.csv", b"code\nnorth\nsouth\n", {"back": "//evil"}
    )
    assert "wards.csv is in the folder" in sent.text
    assert "evil" not in sent.text
    answer(client, "table")
    answer(client, "goal")
    answer(client, "columns", **{"column-4": "@wards.csv"})
    page = client.get("/begin/steps", data="stays.csv", stage="columns")
    assert 'value="@wards.csv"' in page.text
    answer(client, "budget")
    client.post("/begin/write", {"data": "stays.csv"})
    text = (stays.folder / "stays.toml").read_text()
    assert tomllib.loads(text)["columns"]["ward"]["values"] == "wards.csv"


def test_values_are_seen_by_the_owner_alone_and_once(stays):
    client = stays.client()
    sent = client.post("/begin/peek", {"data": "stays.csv"})
    page = client.look(sent.goes_to)
    assert "NOT PRIVATE" in page.text
    assert CANARY in page.text
    assert page.headers["cache-control"] == "no-store"
    assert CANARY not in client.get(sent.goes_to).text  # a reload shows nothing
    reader = stays.client("reader")
    assert reader.get(sent.goes_to).status == 403
    written = {path.name for path in stays.folder.rglob("*") if path.is_file()}
    assert written == {"books.db", "studio.db", *TABLES}
    for name in written - TABLES:
        path = next(stays.folder.rglob(name))
        assert CANARY.encode() not in path.read_bytes()


def test_a_table_of_a_database_is_asked_for(world):
    with duckdb.connect(str(world.folder / "clinic.duckdb")) as database:
        database.execute("create table stays (age int, sex text)")
        database.execute("create table people (age int)")
    client = world.client()
    page = client.get("/begin/steps", data="clinic.duckdb")
    assert "tables: people, stays" in page.text
    assert '<option value="clinic.duckdb" selected>' in page.text
    page = client.get("/begin/steps", data="clinic.duckdb", table="stays")
    assert 'name="table" value="stays"' in page.text
    assert "sex" in page.text


def test_a_table_is_uploaded_whole_under_its_own_name(world):
    client = world.client()
    sent = client.upload("/begin/upload", "table", "new.csv", b"age,sex\n1,F\n")
    assert sent.goes_to == "/begin/steps?data=new.csv"
    assert (world.folder / "new.csv").read_bytes() == b"age,sex\n1,F\n"
    again = client.upload("/begin/upload", "table", "new.csv", b"other\n1\n")
    assert "exists already" in again.text
    assert (world.folder / "new.csv").read_bytes().startswith(b"age")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("../up.csv", b"a\n1\n", "not in the studio"),
        ("sub/../../up.csv", b"a\n1\n", "not in the studio"),
        ("/tmp/up.csv", b"a\n1\n", "not in the studio"),
        (".hidden.csv", b"a\n1\n", "not in the studio"),
        ("books.db", b"a\n1\n", "exists already"),
        ("evil.toml", b"a = 1\n", "must end in"),
        ("evil.py", b"a = 1\n", "must end in"),
        ("rows.csv", b"31,42\n1,2\n", "does not seem to name"),
        ("rows.parquet", b"no parquet", "parquet"),
        ("", b"", "choose a file"),
        ("a b.csv", b"a\n", "cannot be a name"),
        ("x%0d%0aSet-Cookie: a=b.csv", b"a\n", "cannot be a name"),
    ],
)
def test_uploads_of_other_names_and_kinds_are_refused(world, name, content, told):
    before = sorted(path.name for path in world.folder.iterdir())
    parents = sorted(path.name for path in world.folder.parent.iterdir())
    answer = world.client().upload("/begin/upload", "table", name, content)
    assert answer.status in (404, 422)
    assert told in answer.text
    assert "set-cookie" not in answer.headers
    assert sorted(path.name for path in world.folder.iterdir()) == before
    assert sorted(path.name for path in world.folder.parent.iterdir()) == parents


@pytest.mark.parametrize("name", ["../visits.parquet", "/etc/passwd", "none.csv", "visits.toml"])
def test_tables_elsewhere_are_not_opened(world, name):
    answer = world.client().get("/begin/steps", data=name)
    assert answer.status in (404, 422)
    assert "root:" not in answer.text


def test_a_goal_that_cannot_be_met_is_asked_again(stays):
    client = stays.client()
    answer(client, "table")
    answer(client, "goal", goal="clusters", goal_columns="sex")
    answer(client, "columns")
    answer(client, "budget")
    page = client.get("/begin/steps", data="stays.csv")
    assert page.status == 422
    assert "What for?" in page.text
