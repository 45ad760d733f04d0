"""`dpublish advise`: what it prints is a command that publishes."""

import shlex
from fractions import Fraction
from pathlib import Path

import pytest
from pyarrow import csv

from dpublish import datasets, load
from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.registry import list_methods
from dpublish.data.schema_file import dumps_toml
from dpublish.ledger.ledger import Ledger

RUN = "  run: dpublish "
ROWS = 2_000


@pytest.fixture
def owner(run, tmp_path):
    """Write a simulated table, its schema and a ledger; ask for advice on it."""

    def ask(name, goal, *more):
        schema = tmp_path / f"{name}.toml"
        schema.write_text(dumps_toml(datasets.schema(name)))
        if not (tmp_path / "books.db").exists():
            with Ledger.create(tmp_path / "books.db") as ledger:
                for each in datasets.NAMES:
                    ledger.add(each, cap="9")
        return run(
            *("advise", "--schema", schema.name, "--goal", goal, "--rows", ROWS),
            *("--data", f"{name}.csv", "--ledger", "books.db", "--dataset", name, *more),
        )

    return ask


def commands(out):
    return [line.removeprefix(RUN) for line in out.splitlines() if line.startswith(RUN)]


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("census", "rows:age,sex,income"),
        ("census", "counts"),
        ("census", "counts:age,sex"),
        ("census", "statistics:hours,sex"),
        ("census", "classify:income"),
        ("census", "model:age"),
        ("census", "clusters"),
        ("hospital", "counts:ward,sex"),
        ("hospital", "top:diagnosis"),
        ("hospital", "model:readmitted"),
        ("hospital", "clusters:home_east,home_north"),
        ("baskets", "top"),
        ("points", "counts:x1,x2"),
    ],
)
def test_the_printed_commands_publish(owner, run, tmp_path, name, goal):
    made = {"hospital": datasets.hospital(500), "baskets": datasets.baskets(ROWS)}
    rows = made[name] if name in made else simulated(name)
    csv.write_csv(rows, tmp_path / f"{name}.csv")
    told = owner(name, goal, "--epsilon", "1")
    assert told.code == 0, told.err
    found = commands(told.out)
    assert found
    for command in found:
        words = shlex.split(command)
        done = run(*words)
        assert done.code == 0, done.err
        release = load(tmp_path / words[-1])
        assert release.receipt.epsilon == 1
    with Ledger(tmp_path / "books.db") as ledger:
        assert ledger.status(name).spent == len(found)


def simulated(name):
    if name == "census":
        return datasets.census(ROWS)
    return datasets.point_cloud(5, 4, ROWS)


def test_the_printed_command_starts_a_stream(owner, run, tmp_path):
    told = owner("hospital", "stream:ward", "--horizon", 20, "-o", "wards")
    assert told.code == 0, told.err
    (command,) = commands(told.out)
    assert run(*shlex.split(command)).code == 0
    csv.write_csv(datasets.hospital(200), tmp_path / "day.csv")
    assert run("stream", "next", "wards.stream", "day.csv").code == 0
    assert load(tmp_path / "wards").receipt.method == "dsat"


def test_no_row_is_read_for_advice(owner, tmp_path):
    """The table need not be there, and what is in it changes nothing."""
    absent = owner("census", "classify:income").out
    csv.write_csv(datasets.census(30), tmp_path / "census.csv")
    assert owner("census", "classify:income").out == absent
    assert "take privpfc" in absent


def test_what_is_not_named_is_told_to_be_an_example(run, workdir):
    told = run("advise", "--schema", "people.toml", "--goal", "counts:age,sex").out
    assert "to be replaced: --data, --ledger, --dataset" in told
    assert "dpublish ledger create books.db" not in told.partition("take")[0]
    named = run(
        *("advise", "--schema", "people.toml", "--goal", "counts:age,sex", "--data", "people.csv"),
        *("--ledger", "books.db", "--dataset", "people"),
    ).out
    assert "to be replaced" not in named
    assert "ledger create" not in named
    stream = run(
        *("advise", "--schema", "people.toml", "--goal", "stream:sex", "--horizon", 50),
        *("--ledger", "new.db", "--dataset", "people"),
    ).out
    assert "to be replaced" not in stream
    assert "dpublish ledger create new.db; dpublish ledger add new.db people --cap 1" in stream


def test_json_has_all_that_is_said(owner):
    told = owner("census", "counts:age,sex", "--json").json()
    assert told["goal"] == "counts:age,sex"
    assert Fraction(told["epsilon"]) <= 1
    (choice,) = told["choices"]
    assert choice["method"] == "histogram"
    assert choice["settings"] == {"columns": "age,sex"}
    assert choice["expected_error"]["cells"] == 32
    assert choice["command"].startswith("dpublish release --method histogram --columns age,sex")
    said = owner("census", "counts:age,sex").out
    for text in (choice["why"], choice["gives"], choice["command"], told["epsilon_why"]):
        assert text in said


@pytest.mark.parametrize(
    ("words", "told", "code"),
    [
        (("--goal", "rows"), "--schema is missing", 1),
        (("--schema", "people.toml"), "--goal is missing", 1),
        (("--schema", "peple.toml", "--goal", "rows"), "cannot read the schema peple.toml", 3),
        (("--schema", "people.toml", "--goal", "predict:age"), "there is no goal 'predict'", 1),
        (("--schema", "people.toml", "--goal", "counts:agee"), "did you mean 'age'", 1),
        (("--schema", "people.toml", "--goal", "classify:age"), "model:age", 1),
        (("--schema", "people.toml", "--goal", "stream:sex"), "--horizon 365", 1),
        (("--schema", "people.toml", "--goal", "rows", "--rows", "many"), "'many'", 1),
        (("--schema", "people.toml", "--goal", "rows", "--rows", "-5"), "at least 1", 1),
        (("--schema", "people.toml", "--goal", "rows", "--epsilon", "0"), "greater than 0", 1),
        (("--schema", "people.toml", "--goal", "rows", "--gaol", "x"), "--goal", 1),
        (
            ("--schema=people.toml", "--goal=rows", "--ledger=books.db", "--dataset=peple"),
            "did you mean 'people'",
            1,
        ),
        (
            ("--schema=people.toml", "--goal=rows", "--ledger=people.csv", "--dataset=people"),
            "people.csv",
            3,
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(run, workdir, words, told, code):
    done = run("advise", *words)
    assert done.code == code
    assert told in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""


# --- dpublish methods --------------------------------------------------------------------------


def test_defaults_come_first_and_baselines_apart(run):
    out = run("methods").out
    parts = [out.index(title) for title in ("* the default", "alternatives,", "baselines of")]
    assert parts == sorted(parts)
    first, middle, last = (
        out[start:stop] for start, stop in zip(parts, [*parts[1:], None], strict=True)
    )
    for part, standing in ((first, "default"), (middle, "alternative"), (last, "baseline")):
        names = [each.name for each in list_methods() if each.standing == standing]
        assert names
        listed = [line.split() for line in part.splitlines()[2:] if line.strip()]
        assert [words[1] if words[0] == "*" else words[0] for words in listed] == names
        assert all((words[0] == "*") == (standing == "default") for words in listed)


def test_every_task_has_a_default(run):
    listed = run("methods", "--json").json()
    tasks = {each["task"] for each in listed}
    assert {each["task"] for each in listed if each["standing"] == "default"} == tasks
    by_task = [each["task"] for each in listed if each["standing"] == "default"]
    doubled = {task for task in tasks if by_task.count(task) > 1}
    # Counts and numbers by group, and streams with and without an end, are different goals.
    assert doubled == {"counting", "streams"}


def test_one_method_tells_its_standing(run):
    assert "the default for clustering" in run("methods", "kmeans").out
    assert "a baseline of the literature" in run("methods", "dplloyd").out
    assert run("methods", "ag", "--json").json()["standing"] == "alternative"
    only = run("methods", "--task", "ranking").out
    assert "topk" in only
    assert "baselines" not in only


def test_the_page_of_methods_groups_them_alike():
    page = (Path(__file__).parents[2] / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    for standing, title in (
        ("default", "default of its task"),
        ("alternative", "alternative: suits some tables better"),
        ("baseline", "baseline of the literature, to compare with"),
    ):
        names = [name for name, each in {**CATALOG, **STREAMS}.items() if each.standing == standing]
        assert f"| {title} | {', '.join(f'`{name}`' for name in names)} |" in page
