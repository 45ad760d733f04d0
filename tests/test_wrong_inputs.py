"""Wrong inputs of a user: each answer says what is wrong and what to do, without our internals.

A case is a name, what is called, the error, and the words that the answer must have.  Cases of
the shell are in `tests/cli/test_first_mistakes.py`.
"""

import subprocess
import sys
import traceback
from pathlib import Path

import pandas as pd
import pytest

import dpublish
from dpublish import datasets
from dpublish.errors import (
    BudgetExhausted,
    DPublishError,
    InputError,
    InvalidParameter,
    InvalidType,
)

ROWS = datasets.census(50)
SCHEMA = datasets.schema("census")
FRAME = pd.DataFrame({"age": [1], "sex": ["Female"]})


def release(**change):
    asked = {"columns": ["sex"], "schema": SCHEMA, "epsilon": 0.5}
    asked |= {"ledger": "books.db", "dataset": "people", "method": "histogram", "data": ROWS}
    asked |= change
    return dpublish.release(asked.pop("method"), asked.pop("data"), **asked)


def task(name, *given):
    options = {"schema": SCHEMA, "epsilon": 0.5, "ledger": "books.db", "dataset": "people"}
    return getattr(dpublish, name)(ROWS, *given, **options)


def counts():
    method = dpublish.Histogram(columns="sex")
    table = dpublish.open_table(ROWS, SCHEMA)
    return method.release(table, budget=dpublish.Budget.seeded(1), rng=dpublish.seeded(1))


def add(name, cap):
    with dpublish.Ledger("books.db") as ledger:
        ledger.add(name, cap=cap)


WRONG = {
    "epsilon None": (lambda: release(epsilon=None), InvalidType, "epsilon must be a number"),
    "epsilon True": (lambda: release(epsilon=True), InvalidType, "epsilon must be a number"),
    "epsilon list": (lambda: release(epsilon=[1]), InvalidType, "epsilon must be a number"),
    "epsilon nan": (lambda: release(epsilon=float("nan")), InvalidParameter, "a finite number"),
    "epsilon negative": (lambda: release(epsilon=-1.0), InvalidParameter, "greater than 0"),
    "epsilon word": (lambda: release(epsilon="half"), InvalidParameter, "write for example 0.5"),
    "columns number": (lambda: release(columns=3), InvalidType, 'such as ["age", "sex"]'),
    "columns numbers": (lambda: release(columns=[1, 2]), InvalidType, 'such as ["age", "sex"]'),
    "columns table": (lambda: release(columns=FRAME), InvalidType, 'such as ["age", "sex"]'),
    "columns unknown": (lambda: release(columns="sexx"), InvalidParameter, "did you mean 'sex'"),
    "setting unknown": (lambda: release(colums="sex"), InvalidParameter, "did you mean 'columns'"),
    "method misspelt": (lambda: release(method="histgram"), InvalidParameter, "'histogram'"),
    "method number": (lambda: release(method=7), InvalidType, "list_methods()"),
    "method stream": (lambda: release(method="dsat"), InvalidParameter, "StreamOperator.start"),
    "schema number": (lambda: release(schema=5), InvalidType, "the path of a schema file"),
    "schema None": (lambda: release(schema=None), InvalidType, "the path of a schema file"),
    "schema frame": (lambda: release(schema=FRAME), InvalidType, "the path of a schema file"),
    "schema missing": (lambda: release(schema="no.toml"), InputError, "dpublish schema draft"),
    "ledger None": (lambda: release(ledger=None), InvalidType, "dpublish.Ledger.create"),
    "ledger missing": (lambda: release(ledger="no.db"), InputError, "dpublish.Ledger.create"),
    "dataset number": (lambda: release(dataset=5), InvalidType, "dataset must be the name"),
    "dataset misspelt": (lambda: release(dataset="peple"), InvalidParameter, "'people'"),
    "data number": (lambda: release(data=5), InvalidType, "give a path"),
    "data missing": (lambda: release(data="no.csv"), InputError, "there is no file no.csv"),
    "output number": (lambda: release(output=5), InvalidType, "output must be the folder"),
    "load frame": (lambda: dpublish.load(FRAME), InvalidType, "the path of its folder"),
    "load_schema dict": (lambda: dpublish.load_schema({}), InvalidType, "read from its path"),
    "clusters text": (lambda: dpublish.KMeans(n_clusters="x"), InvalidType, "an integer"),
    "data None": (lambda: release(data=None), InvalidType, "give a path"),
    "data list": (lambda: release(data=[{"sex": "F"}]), InvalidType, "pandas.DataFrame(rows)"),
    "data array": (lambda: release(data=FRAME.to_numpy()), InvalidType, "give a path"),
    "where number": (lambda: release(where=18), InvalidType, "such as 'age >= 18'"),
    "purpose number": (lambda: release(purpose=5), InvalidType, "one line of text"),
    "progress word": (lambda: release(progress="yes"), InvalidType, "True, False"),
    "too much": (lambda: release(epsilon=3), BudgetExhausted, "ask for at most 2"),
    "target None": (lambda: task("classifier", None), InvalidType, "the name of one column"),
    "target list": (lambda: task("classifier", ["sex"]), InvalidType, "the name of one column"),
    "target of numbers": (lambda: task("classifier", "age"), InvalidParameter, "method model"),
    "top of two": (lambda: task("topk", ["age", "sex"]), InvalidType, "the name of one column"),
    "centers of names": (
        lambda: task("kmeans", 2, ["sex"]),
        InvalidParameter,
        "clusters need them",
    ),
    "mean of names": (lambda: task("statistics", "mean(sex)"), InvalidParameter, "by group"),
    "measure misspelt": (lambda: task("statistics", "men(age)"), InvalidParameter, "'mean'"),
    "plan nothing": (
        lambda: dpublish.plan("histogram", SCHEMA, columns="sex"),
        InvalidParameter,
        "epsilon=0.5",
    ),
    "plan wanted text": (
        lambda: dpublish.plan("histogram", SCHEMA, columns="sex", wanted_error="x"),
        InvalidType,
        "a positive number",
    ),
    "plan part of a record": (
        lambda: dpublish.plan("synth", SCHEMA, wanted_error=0.1, n_records=50),
        InvalidParameter,
        "--wanted 'tv <= 0.1'",
    ),
    "goal None": (lambda: dpublish.advise(SCHEMA, None), InvalidType, "such as 'rows'"),
    "goal bare": (lambda: dpublish.advise(SCHEMA, "classify"), InvalidParameter, "classify:income"),
    "rehearse None": (
        lambda: dpublish.rehearse("synth", SCHEMA, stand_in=None),
        InvalidType,
        "the folder of a release",
    ),
    "wanted number": (
        lambda: dpublish.rehearse("synth", SCHEMA, stand_in="simulated", wanted=0.1),
        InvalidType,
        "'wrong <= 0.18'",
    ),
    "explain None": (lambda: dpublish.explain(None), InvalidType, "such as 0.5"),
    "evaluate nothing": (lambda: dpublish.evaluate(counts(), None), InvalidType, "a file or"),
    "query number": (lambda: counts().count(5), InvalidType, "a query is text"),
    "query misspelt": (lambda: counts().count("sexx = F"), InvalidParameter, "did you mean 'sex'"),
    "rows text": (lambda: counts().rows("many"), InvalidType, "an integer"),
    "rows to predict": (lambda: counts().predict(FRAME), InvalidParameter, "does not classify"),
    "chart unknown": (lambda: counts().plot("age"), InvalidParameter, "there are:"),
    "table unknown": (lambda: counts().to_pandas("age"), InvalidParameter, "there are: counts"),
    "export pdf": (lambda: dpublish.export(counts(), to="pdf"), InvalidParameter, "xlsx"),
    "export unsaved": (lambda: dpublish.export(counts(), to="csv"), InvalidParameter, "a folder"),
    "bounds number": (
        lambda: dpublish.column("age", "integer", bounds=120),
        InvalidType,
        "such as [0, 120]",
    ),
    "values text": (
        lambda: dpublish.column("sex", "category", values="Female, Male"),
        InvalidType,
        'such as ["Female", "Male"]',
    ),
    "schema of names": (lambda: dpublish.Schema(["age"]), InvalidType, "column("),
    "dataset twice": (lambda: add("people", 1), InvalidParameter, "already"),
    "cap word": (lambda: add("more", "much"), InvalidParameter, "for example 0.5"),
    "schedule of a name": (
        lambda: dpublish.plan_releases("people", releases=12),
        InvalidType,
        'ledger.status("people")',
    ),
    "target unset": (lambda: dpublish.PrivPfC(target=None), InvalidType, "one column"),
    "setting table": (
        lambda: dpublish.Histogram(columns="age", threshold=FRAME),
        InvalidType,
        "a setting of the method",
    ),
}
ROOT = str(Path(dpublish.__file__).parent)


@pytest.fixture
def books(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with dpublish.Ledger.create("books.db") as ledger:
        ledger.add("people", cap=2)


def lines_of_ours(error):
    """Return which functions of the package a traceback shows."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.name for frame in frames if frame.filename.startswith(ROOT)]


def is_helpful(message):
    """Return whether a message is one printable line without names of other packages' types."""
    hidden = ("pyarrow.", "duckdb.", "sqlite3.", "numpy.", "msgspec", "Traceback", "object has no")
    return message.isprintable() and not any(word in message for word in hidden)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_input_is_answered(books, case):
    call, error, told = WRONG[case]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, DPublishError)
    assert told in str(caught.value)
    assert is_helpful(str(caught.value))
    assert set(lines_of_ours(caught.value)) <= {"checked"}
    assert caught.value.__cause__ is None
    with dpublish.Ledger("books.db") as ledger:
        assert ledger.status("people").spent == 0


def test_there_are_enough_cases():
    assert len(WRONG) >= 44


def test_a_fault_of_ours_shows_whole(books, monkeypatch):
    def broken(*_):
        raise KeyError("ours")

    monkeypatch.setattr("dpublish.publishing.tasks.read_method", broken)
    with pytest.raises(KeyError) as caught:
        release()
    assert "release" in lines_of_ours(caught.value)
    assert "broken" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize(("options", "shown"), [((), False), (("-X", "dev"), True)])
def test_development_mode_shows_our_lines_of_a_mistake(options, shown):
    code = "import dpublish; dpublish.explain(None)"
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=False
    )
    assert "InvalidType: epsilon must be a number" in done.stderr
    assert ("in parse_epsilon" in done.stderr) == shown
