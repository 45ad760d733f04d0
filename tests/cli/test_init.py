"""`dpublish init`: from a table that no one has described to a first release."""

import os
import shlex
import signal
import subprocess
import sys
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpublish import datasets
from dpublish.data.schema_file import load_schema
from dpublish.ledger.ledger import Ledger
from terminal import Terminal, talk

ANSWERS = [
    "a hospital visit",
    "",  # patient_id, as proposed
    "-postcode, -date_of_birth, -country, -satisfaction",
    "rows",
    "2000",
    "2023..2024 as %d.%m.%Y",
    "@wards.csv",
    "@diagnoses.csv",
    "Public, Private, None",
    "0..50000 by 2500",
    "1",
    "0.5",
]
OPTIONS = [
    "--row=a hospital visit",
    "--leave-out=postcode,date_of_birth,country,satisfaction",
    "--rows=2000",
    "--dates=2023..2024 as %d.%m.%Y",
    "--codes=ward=wards.csv",
    "--codes=diagnosis=diagnoses.csv",
    "--column=insurance=Public, Private, None",
    "--column=charges=0..50000 by 2500",
    "--cap=1",
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Write the table of 24 columns once."""
    folder = tmp_path_factory.mktemp("clinic")
    datasets.write_clinic(folder, 400)
    return folder


@pytest.fixture
def clinic(tmp_path, exported):
    for file in exported.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def commands(shown):
    """Return the commands that were printed last."""
    lines = [line.strip() for line in shown.splitlines() if line.startswith("  dpublish ")]
    return lines[-2:]


def paste(command, folder):
    """Run a command that was printed, in a shell of its own."""
    words = shlex.split(command)
    assert words[0] == "dpublish"
    return subprocess.run(
        [sys.executable, "-m", "dpublish", *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_twelve_answers_lead_to_a_first_release(clinic):
    assert len(ANSWERS) == 12
    assert len((clinic / "visits.csv").read_text().splitlines()[0].split(",")) == 24
    done = talk(["init", "visits.csv"], ANSWERS, clinic)
    assert done.code == 0, done.shown
    assert done.answers == 12
    assert "No value of the table is read" in done.shown
    schema = load_schema(clinic / "visits.toml")
    assert len(schema.names) == 14
    assert (schema.unit, schema.name) == ("patient_id", "visits")
    assert schema["charges"].bounds == (0, 50_000)
    assert schema["discharged"].format == "%d.%m.%Y"
    with Ledger(clinic / "books.db") as books:
        assert books.status("visits").cap == 1
        assert books.status("visits").spent == 0
    check, release = commands(done.shown)
    checked = paste(check, clinic)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "no date" not in checked.stdout
    published = paste(release, clinic)
    assert published.returncode == 0, published.stderr
    assert (clinic / "visits-rows" / "report.html").exists()
    with Ledger(clinic / "books.db") as books:
        assert str(books.status("visits").spent) == "1/2"
    assert release in (clinic / "visits.plan.txt").read_text()
    assert not (clinic / "visits.init.toml").exists()


def test_a_script_gives_the_same_files(clinic, run):
    done = run("init", "visits.csv", "--yes", *OPTIONS)
    assert done.code == 0, done.err
    scripted = {name: (clinic / name).read_bytes() for name in ("visits.toml", "visits.plan.txt")}
    for name in (*scripted, "books.db"):
        (clinic / name).unlink()
    assert talk(["init", "visits.csv"], ANSWERS, clinic).code == 0
    assert {name: (clinic / name).read_bytes() for name in scripted} == scripted
    assert paste(commands(done.out)[0], clinic).returncode == 0


def test_a_script_says_exactly_what_is_missing(clinic, run):
    done = run("init", "visits.csv", "--yes", "--column", "charges=0..9000", "--cap", "1")
    assert done.code == 1
    assert "5 answers are missing" in done.err
    for option in ("--dates", "ward=codes.csv", "diagnosis=", "insurance=", "postcode="):
        assert option in done.err
    assert not (clinic / "visits.toml").exists()
    assert not (clinic / "books.db").exists()


def test_a_script_does_not_guess_that_every_person_has_one_row(run, tmp_path):
    (tmp_path / "a.csv").write_text("age\n3\n")
    done = run("init", "a.csv", "--yes")
    assert "2 answers are missing" in done.err
    assert "--unit none if every person has one row" in done.err
    assert "--cap 1" in done.err
    assert run("init", "a.csv", "--yes", "--unit", "none", "--cap", "1").code == 0


def test_files_do_not_depend_on_rows(clinic, run, tmp_path_factory):
    """Two tables with one header and different rows: every file is the same, byte by byte."""
    other = tmp_path_factory.mktemp("other")
    datasets.write_clinic(other, 30, seed=9)
    found = []
    for table in (clinic / "visits.csv", other / "visits.csv"):
        (clinic / "visits.csv").write_bytes(table.read_bytes())
        done = run("init", "visits.csv", "--yes", "--peek", *OPTIONS)
        assert done.code == 0, done.err
        found.append([(clinic / f"visits.{end}").read_bytes() for end in ("toml", "plan.txt")])
        for name in ("visits.toml", "visits.plan.txt", "books.db"):
            (clinic / name).unlink()
    assert found[0] == found[1]


def test_kept_answers_do_not_depend_on_rows_either(clinic, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    datasets.write_clinic(other, 30, seed=9)
    kept = []
    for folder in (clinic, other):
        terminal = Terminal(["init", "visits.csv", "--peek"], folder)
        for answer in ANSWERS[:4]:
            assert terminal.wait_for_prompt()
            terminal.answer(answer)
        assert terminal.wait_for_prompt()
        terminal.process.kill()
        terminal.close()
        kept.append((folder / "visits.init.toml").read_bytes())
    assert kept[0] == kept[1]


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_start_goes_on_where_it_was(clinic, by):
    terminal = Terminal(["init", "visits.csv"], clinic)
    for answer in ANSWERS[:7]:
        assert terminal.wait_for_prompt()
        terminal.answer(answer)
    assert terminal.wait_for_prompt()
    os.kill(terminal.process.pid, by)
    assert not terminal.wait_for_prompt()
    if by != signal.SIGKILL:
        assert "run the same command to go on" in " ".join(terminal.shown.split())
    assert terminal.close() != 0
    assert not (clinic / "visits.toml").exists()
    done = talk(["init", "visits.csv"], ANSWERS[7:], clinic)
    assert done.code == 0, done.shown
    assert "going on with 7 answers" in done.shown
    assert load_schema(clinic / "visits.toml")["ward"].size == 12


def test_fresh_begins_again(clinic):
    terminal = Terminal(["init", "visits.csv"], clinic)
    for answer in ANSWERS[:3]:
        assert terminal.wait_for_prompt()
        terminal.answer(answer)
    assert terminal.wait_for_prompt()
    terminal.process.kill()
    terminal.close()
    done = talk(["init", "visits.csv", "--fresh"], ANSWERS, clinic)
    assert (done.code, done.answers) == (0, 12)


def test_a_start_that_was_killed_while_it_wrote_goes_on(clinic, run):
    """The schema is there and the ledger is not: the same command makes the rest."""
    assert run("init", "visits.csv", "--yes", *OPTIONS).code == 0
    (clinic / "books.db").unlink()
    answers = clinic / "visits.init.toml"
    names = (clinic / "visits.csv").read_text().splitlines()[0].split(",")
    answers.write_text(f"data = 'visits.csv'\ncolumns = {names!r}\n[answers]\n")
    done = run("init", "visits.csv", "--yes", *OPTIONS)
    assert done.code == 0, done.err
    assert not answers.exists()
    assert (clinic / "books.db").exists()


def test_wrong_answers_are_asked_again_with_the_reason(tmp_path):
    (tmp_path / "a.csv").write_text("age,ward,patient_id,admitted\n3,A,1,2024-01-01\n")
    answers = [
        *("a visit", "patient", "patient_id"),
        *("agee", "patient_id", "all; age=3", "all"),
        *("classify", "classify:charges", "classify:age", "many", "100"),
        *("yesterday", "2024.."),
        *("2024-01-01..2024-12-31", "", "@absent.csv", "@a.csv", "A", "A,B"),
        *("zero", "-1", "1", "1.5", "0.25"),
        "rows",  # for a classifier cannot predict a number
    ]
    done = talk(["init", "a.csv"], answers, tmp_path)
    assert done.code == 0, done.shown
    text = " ".join(done.shown.split())
    for reason in (
        "there is no column 'patient'; did you mean 'patient_id'?",
        "there is no column 'agee'; did you mean 'age'?",
        "column 'patient_id'",
        "'3' cannot be read",
        "needs the one column to predict",
        "there is no column 'charges'",
        "write a number of rows",
        "a period is written as two dates",
        "nothing is proposed here; write an answer",
        "code list absent.csv cannot be read",
        "the table itself is no list of codes",
        "'A' cannot be read",
        "cap ('zero') is not a number",
        "must be greater than 0",
        "epsilon 1.5 is more than the 1 that",
    ):
        assert reason in text, reason
    assert load_schema(tmp_path / "a.toml").names == ("age", "ward", "admitted")


def test_a_peek_is_stamped_and_shown_and_kept_nowhere(run, tmp_path):
    (tmp_path / "a.csv").write_text("age,color\n31,octarine\n57,octarine\n")
    options = ["--yes", "--unit", "none", "--cap", "1", "--column", "color=red,green"]
    done = run("init", "a.csv", *options, "--peek")
    assert done.code == 0
    assert "NOT PRIVATE: for the owner's eyes only" in done.out
    assert "octarine" in done.out
    assert "31, 57; numbers from 31 to 57" in done.out
    for file in tmp_path.iterdir():
        assert file.name == "a.csv" or b"octarine" not in file.read_bytes()
    assert load_schema(tmp_path / "a.toml")["age"].bounds == (0, 120)
    (tmp_path / "a.toml").unlink()
    assert "octarine" not in run("init", "a.csv", *options).out


def test_a_schema_is_never_overwritten(run, tmp_path):
    (tmp_path / "a.csv").write_text("age\n3\n")
    (tmp_path / "a.toml").write_text("mine")
    done = run("init", "a.csv", "--yes", "--unit", "none", "--cap", "1")
    assert done.code == 1
    assert "a.toml exists already, and is not overwritten" in done.err
    assert run("init", "a.csv", "--yes", "--fresh", "--unit", "none", "--cap", "1").code == 1
    assert (tmp_path / "a.toml").read_text() == "mine"
    assert not (tmp_path / "books.db").exists()


def test_a_ledger_that_is_there_is_used(run, tmp_path):
    (tmp_path / "a.csv").write_text("age\n3\n")
    with Ledger.create(tmp_path / "team.db") as books:
        books.add("a", cap="2")
    options = ["--yes", "--unit", "none", "--ledger", "team.db"]
    done = run("init", "a.csv", *options, "--cap", "3")
    assert done.code == 1
    assert "with a cap of 2; leave out --cap" in done.err
    done = run("init", "a.csv", *options)
    assert done.code == 0, done.err
    assert "team.db has a already: epsilon 2 may still be spent" in done.out
    assert "--epsilon 1 " in commands(done.out)[1]
    done = run("init", "a.csv", *options, "--dataset", "b", "--cap", "1/2")
    assert done.code == 0, done.err
    with Ledger(tmp_path / "team.db") as books:
        assert books.datasets() == ("a", "b")
        assert str(books.status("b").cap) == "1/2"


def test_programs_get_json(run, tmp_path):
    (tmp_path / "a.csv").write_text("age,email\n3,x@example.org\n")
    done = run("init", "a.csv", "--yes", "--unit", "none", "--cap", "1", "--json")
    facts = done.json()
    assert facts["columns"] == ["age"]
    assert facts["left_out"] == {"email": "it names people directly, and is never published"}
    assert facts["next"].startswith("dpublish release --method ")
    assert paste(facts["next"], tmp_path).returncode == 0
    assert run("init", "a.csv", "--json").code == 1


@pytest.mark.parametrize(
    ("goal", "start"),
    [
        ("counts:age,sex", "dpublish release --method histogram --columns age,sex"),
        ("classify:is_adult", "dpublish release --method privpfc --target is_adult"),
        ("statistics", "dpublish release --method statistics"),
        ("clusters", "dpublish release --method kmeans"),
        ("top:sex", "dpublish release --method topk"),
        ("stream:sex", "dpublish stream start"),
    ],
)
def test_the_printed_command_suits_the_goal_and_runs(run, tmp_path, goal, start):
    rows = "".join(f"{i % 90},{'FM'[i % 2]},{50 + i % 60},{i % 3 > 0:d}\n" for i in range(600))
    (tmp_path / "a.csv").write_text(f"age,sex,weight,is_adult\n{rows}")
    options = ["--yes", "--unit", "none", "--cap", "1", "--goal", goal]
    done = run("init", "a.csv", *options, *(["--steps", "9"] if "stream" in goal else []))
    assert done.code == 0, done.err
    command = commands(done.out)[1]
    assert command.startswith(start)
    published = paste(command, tmp_path)
    assert published.returncode == 0, published.stderr


def test_a_class_to_predict_has_no_other_and_no_missing(run, tmp_path):
    (tmp_path / "a.csv").write_text("age,sex\n3,F\n")
    run("init", "a.csv", "--yes", "--unit", "none", "--cap", "1", "--goal", "classify:sex")
    assert load_schema(tmp_path / "a.toml")["sex"].axis().labels == ("Female", "Male")


def table_of(folder, text, name="a.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"\xef\xbb\xbfage;sex\r\n3;F\r\n", "a.csv"),
        (b"age\tsex\n3\tF\n", "a.tsv"),
        (b"age|sex\n3|F\n", "a.csv"),
        (b'"age", "sex"\r\n3,F\r\n', "a.csv"),
    ],
)
def test_any_csv_that_the_reader_takes_is_taken(run, tmp_path, text, name):
    table_of(tmp_path, text, name)
    done = run("init", name, "--yes", "--unit", "none", "--cap", "1")
    assert done.code == 0, done.err
    checked = run("schema", "check", "a.toml", name)
    assert (checked.code, "the table fits the schema" in checked.out) == (0, True)


def test_odd_names_are_written_as_they_are_or_left_out(run, tmp_path):
    table_of(tmp_path, "age,\"Größe [m], 'x'\",,dup,dup,-x\n3,1,,1,2,5\n")
    odd = "Größe [m], 'x'"
    options = ["--unit", "none", "--cap", "1", "--column", f"{odd}=0..3 by 0.5"]
    done = run("init", "a.csv", "--yes", *options, "--column", "-x=0..9")
    assert done.code == 0, done.err
    schema = load_schema(tmp_path / "a.toml")
    assert schema.names == ("age", odd, "-x")
    text = (tmp_path / "a.toml").read_text()
    assert "# (no name): it has no name" in text
    assert "# dup: several columns are called so" in text
    assert paste(commands(done.out)[1], tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no header line"),
        ("34,M,2024-01-02\n35,F,2024-01-03\n", "does not seem to name its columns"),
        ("name,email\nx,y\n", "no column is left to publish"),
    ],
)
def test_a_table_that_cannot_be_begun_with_is_refused(run, tmp_path, text, message):
    done = run("init", table_of(tmp_path, text), "--yes", "--unit", "none", "--cap", "1")
    assert done.code in (1, 3)
    assert message in done.err
    assert "34" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]


def test_stored_types_are_used(run, tmp_path):
    parquet.write_table(
        pa.table({"age": pa.array([3], pa.int8()), "seen": pa.array([1], pa.date32())}),
        tmp_path / "a.parquet",
    )
    options = ["--yes", "--unit", "none", "--cap", "1"]
    done = run("init", "a.parquet", *options)
    assert "--dates" in done.err
    done = run("init", "a.parquet", *options, "--dates", "1970..1971")
    assert done.code == 0, done.err
    assert load_schema(tmp_path / "a.toml")["seen"].kind == "date"


def test_a_table_of_a_database_is_named_in_the_commands(run, tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.sql("CREATE TABLE people AS SELECT 30 AS age, 'F' AS sex")
    options = ["--table", "people", "--yes", "--unit", "none", "--cap", "1"]
    done = run("init", "a.duckdb", *options)
    assert done.code == 0, done.err
    for command in commands(done.out):
        assert command.endswith(" --table people")
        assert paste(command, tmp_path).returncode == 0


def test_input_that_ends_too_early_says_what_is_missing(run, tmp_path, monkeypatch):
    table_of(tmp_path, "age\n3\n")
    done = subprocess.run(
        [sys.executable, "-m", "dpublish", "init", "a.csv"],
        cwd=tmp_path,
        input="a person\nnone\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the input ended before all was answered" in done.stderr
    assert "\x1b" not in done.stdout
    told = SimpleNamespace(**run("init", "a.csv", "--yes", "--cap", "1", "--json").json())
    assert told.unit is None  # as it was answered before the input ended
