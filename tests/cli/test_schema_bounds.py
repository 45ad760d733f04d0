"""`dpublish schema bounds` from the shell."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from dpublish import Schema, load

SCHEMA = """\
[columns.age]
kind = "integer"
bounds = [0, 99]

[columns.cost]
kind = "numeric"
# bounds = [ , ]  # fill in from public knowledge
"""


@pytest.fixture
def bounds(run, workdir):
    """Measure bounds of `cost` with any option replaced; None leaves one out."""
    (workdir / "people.toml").write_text(SCHEMA)
    rows = {"age": [30] * 4_000, "cost": [float(i % 400) for i in range(4_000)]}
    parquet.write_table(pa.table(rows), workdir / "people.parquet")

    def call(*words, data="people.parquet", **changes):
        options = {
            "schema": "people.toml",
            "column": "cost",
            "epsilon": "0.5",
            "ledger": "books.db",
            "dataset": "people",
            "lower": "0",
            **changes,
        }
        given = [x for k, v in options.items() if v is not None for x in (f"--{k}", v)]
        return run("schema", "bounds", *([data] if data else []), *given, *words)

    return call


def test_it_says_what_was_entered_what_clipping_means_and_what_it_cost(bounds, workdir):
    done = bounds("--rows", "4000")
    assert done.code == 0, done.err
    first, *rest = done.out.splitlines()
    assert first == "entered bounds = [0, 500] of cost in people.toml"
    assert "lie over 500; they count as 500" in done.out
    assert (
        "expected: 146 points; about 40 values beyond each measured bound, at most 84" in done.out
    )
    assert "  in it: records with cost" in rest
    assert "  hidden: one record" in rest
    assert rest[-1] == "  spent: epsilon 0.5; left for people: 1.5"
    assert "bounds = [0, 500]\n" in (workdir / "people.toml").read_text()
    assert (workdir / "people-cost-bounds" / "release.json").exists()


def test_json_holds_the_bounds_and_the_receipt(bounds):
    told = bounds("--json", "-o", "elsewhere").json()
    assert (told["path"], told["bounds"], told["left"]) == ("elsewhere", [0, 500], "1.5")
    assert told["receipt"]["method"] == "bounds"
    assert told["expected_error"]["points_to_choose_from"] == 146


def test_rows_may_be_named_by_an_option_too_but_not_twice(bounds):
    assert "named twice" in bounds("--data", "people.parquet").err
    assert bounds("--data", "people.parquet", data=None).code == 0


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"column": "age"}, "has bounds already"),
        ({"column": "weight"}, "weight"),
        ({"schema": "none.toml"}, "none.toml"),
        ({"data": "none.parquet"}, "none.parquet"),
        ({"data": None}, "--data"),
        ({"epsilon": "3"}, "left"),
        ({"coverage": "2"}, "coverage"),
        ({"contribution": "0"}, "contribution"),
    ],
)
def test_mistakes_cost_nothing(bounds, run, changes, fault):
    failed = bounds(**changes)
    assert failed.code != 0
    assert fault in failed.err
    assert "Traceback" not in failed.err
    assert "0.5" not in run("ledger", "show", "books.db").out


def test_measured_bounds_serve_the_next_release(bounds, run):
    assert bounds().code == 0
    done = run(
        *("release", "--method", "histogram", "--columns", "cost", "--data", "people.parquet"),
        *("--schema", "people.toml", "--epsilon", "0.5", "--ledger", "books.db"),
        *("--dataset", "people", "-o", "costs"),
    )
    assert done.code == 0, done.err
    assert run("ledger", "verify", "books.db", "--release", "people-cost-bounds").code == 0


def test_help_names_the_command(run):
    assert "bounds" in run("schema", "--help").out
    assert "--nonnegative" in run("schema", "bounds", "--help").out


def test_bounds_of_a_column_that_follows_from_others_are_measured_by_themselves(bounds, workdir):
    schema = workdir / "people.toml"
    stated = schema.read_text() + "\n[[totals]]\ncount = 4000\n"
    function = '[columns.cost]\nfunction = "age * 10"'
    schema.write_text(stated.replace("[columns.cost]", function))
    done = bounds()
    assert done.code == 0, done.err
    entered = schema.read_text()
    assert function in entered
    assert "[[totals]]\ncount = 4000\n" in entered
    assert Schema.read(schema).functions[0].describe() == "cost = age * 10"


WORDS = """\
[publication]
title = "Costs of visits"
license = "CC-BY-4.0"

"""


def test_the_release_says_what_the_file_says_of_releases(bounds, workdir):
    measured = 'kind = "numeric"\nmeasured_in = "euros"\ndescription = "Cost of a visit"\n'
    text = WORDS + SCHEMA.replace('kind = "numeric"\n', measured)
    (workdir / "people.toml").write_text(text)
    done = bounds()
    assert done.code == 0, done.err
    found = load(workdir / "people-cost-bounds").schema
    assert found.publication.to_dict() == {"title": "Costs of visits", "license": "CC-BY-4.0"}
    assert (found["cost"].measured_in, found["cost"].description) == ("euros", "Cost of a visit")
    package = json.loads((workdir / "people-cost-bounds" / "datapackage.json").read_text())
    assert (package["title"], package["licenses"]) == ("Costs of visits", [{"name": "CC-BY-4.0"}])
    assert (workdir / "people.toml").read_text() == text.replace(
        "# bounds = [ , ]  # fill in from public knowledge", "bounds = [0, 500]"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[publication]\ntitel = "x"\n', "people.toml: publication: there is no key 'titel'"),
        ("[publication]\ntitle = 3\n", "people.toml: publication: title must be text"),
        ('publication = "x"\n', "people.toml: publication"),
    ],
)
def test_a_bad_publication_costs_nothing(bounds, run, workdir, text, fault):
    (workdir / "people.toml").write_text(text + SCHEMA)
    failed = bounds()
    assert failed.code != 0
    assert fault in failed.err
    assert "Traceback" not in failed.err
    assert "0.5" not in run("ledger", "show", "books.db").out
