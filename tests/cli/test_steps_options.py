"""`--where`, `--derive` and `--lookup`: what they do, where they are named, and what is refused."""

import pytest

from dpublish.core.folder.folder import load
from dpublish.ledger.ledger import Ledger

SURE = ("--confidence", "0.999999", "--json")
FURTHER = """
[columns.decade]
kind = "integer"
bounds = [0, 9]

[columns.team]
kind = "category"
values = ["red", "blue"]
missing = "category"
"""


@pytest.fixture
def teams(workdir):
    """A schema with a derived column and one of a lookup, and that lookup."""
    schema = workdir / "people.toml"
    schema.write_text(schema.read_text() + FURTHER)
    (workdir / "teams.csv").write_text("who,team\nFemale,red\nMale,blue\n")
    return workdir


STEPS = (
    *("--where", "age in 30..70 and sex = Male"),
    *("--derive", "decade = age // 10"),
    *("--lookup", "teams.csv", "--lookup-on", "sex=who"),
)
WORDS = (
    *("release", "--method", "histogram", "--columns", "decade,team", "--data", "people.csv"),
    *("--schema", "people.toml", "--epsilon", "1", "--ledger", "books.db"),
    *("--dataset", "people"),
)


def spent():
    with Ledger("books.db") as books:
        return books.status("people").spent


def holds(run, query, true):
    answer = run("count", "out", query, *SURE).json()
    return answer["low"] <= true <= answer["high"] and answer["high"] - answer["low"] < 70


def test_records_are_filtered_derived_and_looked_up(run, teams):
    done = run(*WORDS, *STEPS, "-o", "out")
    assert done.code == 0, done.err
    assert holds(run, "decade = 3 and team = blue", 40)
    assert holds(run, "decade = 6", 40)
    assert holds(run, "team = red", 0)
    steps = load("out").receipt.steps
    assert steps[0].startswith("lookup teams.csv on sex=who (sha256 ")
    assert steps[1:] == ("derive decade = age // 10", "where age in 30..70 and sex = Male")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("--where", "agee > 3"), "did you mean 'age'"),
        (("--where", "age >"), "found the end"),
        (("--where", "age + 1"), "is no condition"),
        (("--where", "sex = Malee"), "Malee"),
        (("--where", "(" * 200 + "age"), "nested too deep"),
        (("--derive", "decade"), "write name = expression"),
        (("--derive", "sex = age"), "has a column of that name already"),
        (("--derive", "other = age"), "under [columns.other], with kind ="),
        (("--lookup", "nowhere.csv", "--lookup-on", "sex"), "there is no lookup file"),
        (("--lookup", "teams.csv"), "needs a --lookup-on"),
        (("--lookup-on", "sex"), "every --lookup FILE"),
        (("--lookup", "twice.csv", "--lookup-on", "sex=who"), "row 3 of the lookup twice.csv"),
        (("--lookup", "teams.csv", "--lookup-on", "sex=whom"), "the key column 'whom'"),
        (("--lookup", "teams.csv", "--lookup-on", "job=who"), "'job' of people.csv"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_debited(run, teams, changed, words):
    (teams / "twice.csv").write_text("who,color\nFemale,red\nMale,blue\nMale ,red\n")
    done = run(*WORDS, *STEPS[2:], *changed, "-o", "out")
    assert done.code in (1, 3)
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert spent() == 0


def test_a_division_by_zero_is_a_missing_value(run, workdir):
    schema = workdir / "people.toml"
    further = (
        '\n[columns.share]\nkind = "numeric"\nbounds = [0, 1]\nbins = 2\nmissing = "category"\n'
    )
    schema.write_text(schema.read_text() + further)
    words = [word if word != "decade,team" else "share" for word in WORDS]
    done = run(*words, "--derive", "share = 1 / (age - 8)", "-o", "out")
    assert done.code == 0, done.err
    assert holds(run, 'share = "(missing)"', 40)


def test_a_check_looks_at_records_after_the_steps(run, teams):
    done = run("schema", "check", "people.toml", "people.csv", *STEPS)
    assert done.code == 0, done.err
    assert "fits the schema" in done.out or "has columns that the schema does not name" in done.out
    assert run("schema", "check", "people.toml", "people.csv").code != 0


def test_a_release_is_evaluated_on_records_after_the_steps(run, teams):
    assert run(*WORDS, *STEPS, "-o", "out").code == 0
    done = run("evaluate", "out", "--against", "people.csv", *STEPS)
    assert done.code == 0, done.err
    assert "80 true rows" in done.out
