"""What newcomers get wrong in the shell: one line that says what, why and how; nothing spent."""

import pytest

from dpublish.ledger.ledger import Ledger

RELEASE = (
    "release --method histogram --columns age --data people.csv --schema people.toml "
    "--epsilon 0.5 --ledger books.db --dataset people -o out"
)


def without(option):
    """The release command without an option and its value."""
    words = RELEASE.split()
    at = words.index(option)
    return " ".join(words[:at] + words[at + 2 :])


def changed(option, value):
    words = RELEASE.split()
    words[words.index(option) + 1] = value
    return " ".join(words)


MISTAKES = {
    # what was typed: (exit code, what the answer must say)
    "releese": (1, "did you mean release"),
    without("--method"): (1, "--method is missing", "dpublish methods"),
    without("--schema"): (1, "--schema is missing", "schema file", "dpublish release --help"),
    without("--ledger"): (1, "--ledger is missing", "postgresql://"),
    without("--dataset"): (1, "--dataset is missing"),
    without("--epsilon"): (1, "--epsilon 0.5"),
    without("-o"): (1, "--output is missing", "folder"),
    changed("--method", "histo"): (1, "histogram"),
    changed("--columns", "age sex"): (1, "'sex'", "--columns age,sex"),
    changed("--columns", "Age"): (1, "did you mean 'age'"),
    changed("--schema", "people.csv"): (1, "not a schema file", "dpublish schema draft"),
    changed("--schema", "peopel.toml"): (3, "peopel.toml", "No such file"),
    changed("--data", "people.toml"): (3, "people.toml", ".csv"),
    changed("--data", "peopel.csv"): (3, "peopel.csv"),
    changed("--epsilon", "0,5"): (1, "write a point: 0.5"),
    changed("--epsilon", "50%"): (1, "not a number", "0.5"),
    changed("--epsilon", "0"): (1, "greater than 0"),
    changed("--epsilon", "5"): (2, "2"),
    changed("--ledger", "people.csv"): (3, "not a ledger", "dpublish ledger create"),
    changed("--dataset", "person"): (1, "people"),
    RELEASE.replace("--columns", "--colums"): (1, "did you mean 'columns'"),
    "release --method privpfc --target age --data people.csv --schema people.toml "
    "--epsilon 0.5 --ledger books.db --dataset people -o out": (1, "'age'", "model"),
    "release --method kmeans --n-clusters two --data people.csv --schema people.toml "
    "--epsilon 0.5 --ledger books.db --dataset people -o out": (1, "n_clusters", "integer"),
    "count people.csv age>3": (1, "a file, not a release"),
    "count nowhere age>3": (3, "nowhere is not there", "folder"),
    "rows nowhere": (1, "--output is missing"),
    "evaluate nowhere --against people.csv": (3, "nowhere is not there"),
    "predict nowhere": (1, "ROWS is missing", "dpublish predict --help"),
    "ledger create books.db": (3, "exists already"),
    "ledger add books.db people --cap 1": (1, "already", "dpublish ledger cap"),
    "ledger add books.db other --cap -1": (1, "greater than 0"),
    "plan --method histogram --columns age --schema people.toml": (1, "--epsilon"),
    "init people.csv --schema new.toml --dataset new --yes --cap much": (
        1,
        "cap",
        "for example 0.5",
    ),
    "init people.csv --schema new.toml --dataset new --yes --unit none --cap 1 --goal classfy": (
        1,
        "classify",
    ),
    "init people.csv --schema new.toml --dataset new --yes --unit none --cap 1 "
    "--column agee=0..9": (1, "did you mean 'age'"),
    "advise --schema people.toml": (1, "--goal is missing"),
    "advise --schema people.toml --goal classify": (1, "classify:income"),
    "advise --schema people.toml --goal classify:age": (1, "model:age"),
    "rehearse --method histogram --columns age --schema people.toml": (1, "--stand-in is missing"),
    "rehearse --method histogram --columns age --schema people.toml --stand-in simulated "
    "--wanted error<0.1": (1, "known: relative"),
    "rehearse --method histogram --columns age --schema people.toml --stand-in nowhere": (
        3,
        "nowhere is not there",
        "simulated",
    ),
    "explain half": (1, "for example 0.5"),
    "ledger plan books.db people": (1, "--releases 12"),
    "export nowhere --to csv": (3, "nowhere is not there"),
    "export nowhere": (1, "--to is missing", "dpublish export --help"),
    "plan --method model --target sex --schema people.toml --rows 900 --wanted-error 0.1": (
        1,
        "dpublish rehearse",
        "wrong <= 0.1",
    ),
    "schema check people.toml --data people.csv": (1, "--data", "dpublish schema check --help"),
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_the_answer_says_what_is_wrong_and_what_to_write(run, workdir, typed):
    code, *words = MISTAKES[typed]
    done = run(*typed.split())
    assert done.code == code, done.err
    assert done.err.startswith("dpublish: ")
    assert done.err.count("\n") == 1, done.err
    assert "Traceback" not in done.err
    assert ".py" not in done.err
    for word in words:
        assert word in done.err
    assert not (workdir / "out").exists()
    with Ledger(workdir / "books.db") as ledger:
        assert ledger.status("people").spent == 0
